// The files of a server, fetched by server reflection one by one and kept.
//
// Each question is a stream of its own: one that is kept open would take a
// thread of the server for as long, from the very call that the user makes.
//
// Thread rule: one thread at a time, which a DescriptorPool sees to for what it
// calls.
#ifndef VERBENA_TOOLS_RPC_CLI_REFLECTION_DATABASE_H_
#define VERBENA_TOOLS_RPC_CLI_REFLECTION_DATABASE_H_

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/descriptor_database.h"
#include "grpc/reflection/v1/reflection.pb.h"
#include "rpc/channel_interface.h"
#include "tools/rpc_cli/reflection_schema.h"

namespace rpc_cli {

class ReflectionDatabase final : public google::protobuf::DescriptorDatabase {
 public:
  using File = google::protobuf::FileDescriptorProto;
  using Request = grpc::reflection::v1::ServerReflectionRequest;
  using Response = grpc::reflection::v1::ServerReflectionResponse;

  ReflectionDatabase(std::shared_ptr<rpc::ChannelInterface> channel,
                     ReflectionOptions options);

  absl::StatusOr<std::vector<std::string>> ServiceNames();

  // Why something could not be looked up, the first time that this happened.
  const absl::Status& error() const { return error_; }

  // ---- DescriptorDatabase. False: there is none, or error().

  bool FindFileByName(const std::string& name, File* file) override;
  bool FindFileContainingSymbol(const std::string& symbol, File* file) override;
  bool FindFileContainingExtension(const std::string& type, int number,
                                   File* file) override;
  bool FindAllExtensionNumbers(const std::string& type,
                               std::vector<int>* numbers) override;

 private:
  // NOT_FOUND: the server's answer. Another error: error() has it, too.
  absl::StatusOr<Response> Ask(const Request& request);
  // The same by the version that kPaths[version_] names.
  rpc::Status AskVersion(const Request& request, Response* response) const;
  // True where the files of the answer are in known_ now.
  bool Fetch(const Request& request);
  void Note(const absl::Status& error);

  const std::shared_ptr<rpc::ChannelInterface> channel_;
  const ReflectionOptions options_;
  size_t version_ = 0;
  std::set<std::string> names_;  // of the files in known_
  google::protobuf::SimpleDescriptorDatabase known_;
  absl::Status error_;
};

}  // namespace rpc_cli

#endif  // VERBENA_TOOLS_RPC_CLI_REFLECTION_DATABASE_H_
