#include "tools/rpc_cli/reflection_database.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "rpc/client_context.h"
#include "rpc/internal/rpc_method.h"
#include "rpc/sync_stream.h"
#include "tools/rpc_cli/exit_status.h"

namespace rpc_cli {
namespace {

// Versions differ by their names alone. Newest first.
constexpr const char* kPaths[] = {
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
};

constexpr char kNoReflection[] =
    "the server has no server reflection. Either let it call "
    "rpc::reflection::InitProtoReflectionServerBuilderPlugin(), of rpc/rpc.h, "
    "before it is built; or say what it serves with -proto FILE.proto "
    "-import-path DIR";

absl::Status ErrorOf(const grpc::reflection::v1::ErrorResponse& error) {
  return absl::Status(
      static_cast<absl::StatusCode>(error.error_code()),
      absl::StrCat("server reflection: ", error.error_message()));
}

}  // namespace

ReflectionDatabase::ReflectionDatabase(
    std::shared_ptr<rpc::ChannelInterface> channel, ReflectionOptions options)
    : channel_(std::move(channel)), options_(std::move(options)) {}

// ---- Asking.

rpc::Status ReflectionDatabase::AskVersion(const Request& request,
                                           Response* response) const {
  rpc::ClientContext context;
  context.set_deadline(
      std::min(options_.deadline, absl::Now() + options_.call_time));
  for (const auto& [key, value] : options_.metadata) {
    context.AddMetadata(key, value);
  }
  const rpc::internal::RpcMethod method(
      kPaths[version_], rpc::internal::RpcMethod::BIDI_STREAMING, channel_);
  const std::unique_ptr<rpc::ClientReaderWriter<Request, Response>> stream(
      rpc::internal::ClientReaderWriterFactory<Request, Response>::Create(
          channel_.get(), method, &context));
  // Where one of them fails, the status says why.
  const bool answered = stream->Write(request) && stream->Read(response);
  stream->WritesDone();
  rpc::Status status = stream->Finish();
  if (answered || !status.ok()) return status;
  return rpc::Status(rpc::StatusCode::INTERNAL,
                     "server reflection ended without an answer");
}

absl::StatusOr<ReflectionDatabase::Response> ReflectionDatabase::Ask(
    const Request& request) {
  Response response;
  rpc::Status status = AskVersion(request, &response);
  while (status.error_code() == rpc::StatusCode::UNIMPLEMENTED &&
         version_ + 1 < std::size(kPaths)) {
    ++version_;
    status = AskVersion(request, &response);
  }
  absl::Status error;
  if (status.error_code() == rpc::StatusCode::UNIMPLEMENTED) {
    version_ = 0;
    error = absl::FailedPreconditionError(kNoReflection);
  } else if (!status.ok()) {
    error = CallError(status);
  } else if (response.has_error_response()) {
    error = ErrorOf(response.error_response());
  }
  if (error.ok()) return response;
  if (!absl::IsNotFound(error) || IsCallError(error)) Note(error);
  return error;
}

void ReflectionDatabase::Note(const absl::Status& error) {
  if (error_.ok()) error_ = error;
}

absl::StatusOr<std::vector<std::string>> ReflectionDatabase::ServiceNames() {
  Request request;
  request.set_list_services("*");
  const absl::StatusOr<Response> response = Ask(request);
  if (!response.ok()) return response.status();
  std::vector<std::string> names;
  for (const auto& service : response->list_services_response().service()) {
    names.push_back(service.name());
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool ReflectionDatabase::Fetch(const Request& request) {
  const absl::StatusOr<Response> response = Ask(request);
  if (!response.ok()) return false;
  const auto& files = response->file_descriptor_response();
  for (const std::string& bytes : files.file_descriptor_proto()) {
    File file;
    if (!file.ParseFromString(bytes)) {
      Note(absl::InternalError("server reflection: a file that is not one"));
      return false;
    }
    if (names_.insert(file.name()).second) known_.Add(file);
  }
  return true;
}

// ---- DescriptorDatabase.

bool ReflectionDatabase::FindFileByName(const std::string& name, File* file) {
  if (known_.FindFileByName(name, file)) return true;
  Request request;
  request.set_file_by_filename(name);
  return Fetch(request) && known_.FindFileByName(name, file);
}

bool ReflectionDatabase::FindFileContainingSymbol(const std::string& symbol,
                                                  File* file) {
  if (known_.FindFileContainingSymbol(symbol, file)) return true;
  Request request;
  request.set_file_containing_symbol(symbol);
  return Fetch(request) && known_.FindFileContainingSymbol(symbol, file);
}

bool ReflectionDatabase::FindFileContainingExtension(const std::string& type,
                                                     int number, File* file) {
  if (known_.FindFileContainingExtension(type, number, file)) return true;
  Request request;
  request.mutable_file_containing_extension()->set_containing_type(type);
  request.mutable_file_containing_extension()->set_extension_number(number);
  return Fetch(request) &&
         known_.FindFileContainingExtension(type, number, file);
}

bool ReflectionDatabase::FindAllExtensionNumbers(const std::string& type,
                                                 std::vector<int>* numbers) {
  Request request;
  request.set_all_extension_numbers_of_type(type);
  const absl::StatusOr<Response> response = Ask(request);
  if (!response.ok()) return false;
  const auto& all = response->all_extension_numbers_response();
  numbers->assign(all.extension_number().begin(), all.extension_number().end());
  return true;
}

}  // namespace rpc_cli
