#include "rpc/ext/reflection_service.h"

#include <cstddef>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/message.h"
#include "grpc/reflection/v1/reflection.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "rpc/internal/rpc_method.h"
#include "rpc/internal/rpc_service_method.h"
#include "rpc/internal/sync_stream_handlers.h"
#include "rpc/server_context.h"
#include "rpc/status.h"
#include "rpc/sync_stream.h"

namespace rpc::reflection {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::FileDescriptorProto;
using grpc::reflection::v1::ErrorResponse;
using grpc::reflection::v1::ExtensionNumberResponse;
using grpc::reflection::v1::ExtensionRequest;
using grpc::reflection::v1::FileDescriptorResponse;
using grpc::reflection::v1::ListServiceResponse;
using grpc::reflection::v1::ServerReflectionRequest;
using grpc::reflection::v1::ServerReflectionResponse;

template <class... Words>
Status NotFound(const Words&... words) {
  return Status(StatusCode::NOT_FOUND, absl::StrCat(words...));
}

// The answers of one stream.
class Answers {
 public:
  explicit Answers(const std::vector<std::string>& services)
      : services_(services) {}

  ServerReflectionResponse To(const ServerReflectionRequest& request) {
    ServerReflectionResponse response;
    response.set_valid_host(request.host());
    *response.mutable_original_request() = request;
    const Status status = Answer(request, response);
    if (!status.ok()) {
      ErrorResponse& error = *response.mutable_error_response();
      error.set_error_code(status.error_code());
      error.set_error_message(status.error_message());
    }
    return response;
  }

 private:
  Status Answer(const ServerReflectionRequest& request,
                ServerReflectionResponse& response) {
    switch (request.message_request_case()) {
      case ServerReflectionRequest::kFileByFilename:
        return FileByName(request.file_by_filename(), response);
      case ServerReflectionRequest::kFileContainingSymbol:
        return FileOfSymbol(request.file_containing_symbol(), response);
      case ServerReflectionRequest::kFileContainingExtension:
        return FileOfExtension(request.file_containing_extension(), response);
      case ServerReflectionRequest::kAllExtensionNumbersOfType:
        return ExtensionNumbers(
            request.all_extension_numbers_of_type(),
            *response.mutable_all_extension_numbers_response());
      case ServerReflectionRequest::kListServices:
        ListServices(*response.mutable_list_services_response());
        return Status::OK;
      case ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
        break;
    }
    return Status(StatusCode::UNIMPLEMENTED,
                  "a reflection request of no kind that this server knows");
  }

  Status FileByName(const std::string& name,
                    ServerReflectionResponse& response) {
    const FileDescriptor* file = pool_.FindFileByName(name);
    if (file == nullptr) return NotFound("no file '", name, "'");
    AddFiles(file, *response.mutable_file_descriptor_response());
    return Status::OK;
  }

  Status FileOfSymbol(const std::string& symbol,
                      ServerReflectionResponse& response) {
    const FileDescriptor* file = pool_.FindFileContainingSymbol(symbol);
    if (file == nullptr) return NotFound("no symbol '", symbol, "'");
    AddFiles(file, *response.mutable_file_descriptor_response());
    return Status::OK;
  }

  Status FileOfExtension(const ExtensionRequest& request,
                         ServerReflectionResponse& response) {
    const Descriptor* type =
        pool_.FindMessageTypeByName(request.containing_type());
    if (type == nullptr) {
      return NotFound("no message '", request.containing_type(), "'");
    }
    const FieldDescriptor* extension =
        pool_.FindExtensionByNumber(type, request.extension_number());
    if (extension == nullptr) {
      return NotFound("no extension ", request.extension_number(), " of '",
                      request.containing_type(), "'");
    }
    AddFiles(extension->file(), *response.mutable_file_descriptor_response());
    return Status::OK;
  }

  Status ExtensionNumbers(const std::string& name,
                          ExtensionNumberResponse& response) {
    const Descriptor* type = pool_.FindMessageTypeByName(name);
    if (type == nullptr) return NotFound("no message '", name, "'");
    std::vector<const FieldDescriptor*> extensions;
    pool_.FindAllExtensions(type, &extensions);
    response.set_base_type_name(name);
    for (const FieldDescriptor* extension : extensions) {
      response.add_extension_number(extension->number());
    }
    return Status::OK;
  }

  void ListServices(ListServiceResponse& response) {
    for (const std::string& name : services_) {
      response.add_service()->set_name(name);
    }
  }

  // `file` in any case, and of what it imports what the stream has not had yet.
  void AddFiles(const FileDescriptor* file, FileDescriptorResponse& response) {
    sent_.insert(file);
    std::vector<const FileDescriptor*> files = {file};
    for (size_t i = 0; i < files.size(); ++i) {
      FileDescriptorProto proto;
      files[i]->CopyTo(&proto);
      proto.SerializeToString(response.add_file_descriptor_proto());
      for (int j = 0; j < files[i]->dependency_count(); ++j) {
        const FileDescriptor* imported = files[i]->dependency(j);
        if (sent_.insert(imported).second) files.push_back(imported);
      }
    }
  }

  const DescriptorPool& pool_ = *DescriptorPool::generated_pool();
  const std::vector<std::string>& services_;
  absl::flat_hash_set<const FileDescriptor*> sent_;
};

Status Serve(ReflectionService* service, ServerContext*,
             ServerReaderWriter<ServerReflectionResponse,
                                ServerReflectionRequest>* stream) {
  Answers answers(service->service_list());
  ServerReflectionRequest request;
  while (stream->Read(&request) && stream->Write(answers.To(request))) {
  }
  return Status::OK;
}

}  // namespace

ReflectionService::ReflectionService(const char* path) {
  // v1alpha's file can be asked for like any other.
  google::protobuf::LinkMessageReflection<
      grpc::reflection::v1alpha::ServerReflectionRequest>();
  AddMethod(new internal::RpcServiceMethod(
      path, internal::RpcMethod::BIDI_STREAMING,
      new internal::BidiStreamingHandler<
          ReflectionService, ServerReflectionRequest, ServerReflectionResponse>(
          Serve, this)));
}

}  // namespace rpc::reflection
