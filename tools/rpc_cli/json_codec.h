// Messages to JSON and back, by protobuf's own rules, for types that are known
// at run time only.
//
// Thread rule: any thread.
#ifndef VERBENA_TOOLS_RPC_CLI_JSON_CODEC_H_
#define VERBENA_TOOLS_RPC_CLI_JSON_CODEC_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/util/type_resolver.h"

namespace rpc_cli {

struct JsonOptions {
  bool compact = false;        // a message is one line
  bool emit_defaults = false;  // also fields that have their default value
};

class JsonCodec {
 public:
  // `pool` has the types, also those that are in a google.protobuf.Any; it
  // must outlive the codec.
  JsonCodec(const google::protobuf::DescriptorPool* pool,
            const JsonOptions& options);

  // INVALID_ARGUMENT: it is not JSON, or not of the message's type; the text
  // says what is wrong, and not with which message.
  absl::Status Parse(const std::string& json,
                     google::protobuf::Message* message) const;

  // Without an end of line. INTERNAL: the type of an Any is not known.
  absl::StatusOr<std::string> Print(
      const google::protobuf::Message& message) const;

 private:
  const std::unique_ptr<google::protobuf::util::TypeResolver> types_;
  const JsonOptions options_;
};

}  // namespace rpc_cli

#endif  // VERBENA_TOOLS_RPC_CLI_JSON_CODEC_H_
