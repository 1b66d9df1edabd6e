#include "rpc/internal/message_codec.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "rpc/internal/chain_input_stream.h"

namespace rpc::internal {
Status MessageTooLargeToSend(uint64_t bytes, uint64_t limit) {
  return Status(
      StatusCode::RESOURCE_EXHAUSTED,
      absl::StrCat("Sent message larger than max (", bytes, " vs. ", limit,
                   limit == kMaxProtobufBytes
                       ? "): protobuf's own limit; large data may go as an "
                         "attachment"
                       : ")"));
}

Status MessageChangedWhileSent() {
  return Status(StatusCode::INTERNAL,
                "the message was changed while it was being serialized");
}

Status NoMemoryToSend(uint64_t bytes, const absl::Status& cause) {
  return Status(static_cast<StatusCode>(cause.code()),
                absl::StrCat("no memory to send a message of ", bytes,
                             " bytes: ", cause.message()));
}

bool CheckAttachmentSize(uint64_t bytes, const Limits& limits, Status* error) {
  if (bytes <= limits.max_attachment_bytes) return true;
  *error = Status(StatusCode::RESOURCE_EXHAUSTED,
                  absl::StrCat("Sent attachment larger than max (", bytes,
                               " vs. ", limits.max_attachment_bytes, ")"));
  return false;
}

Status ParseFailure(const BufferChain& chain,
                    const google::protobuf::MessageLite& message) {
  return Status(StatusCode::INTERNAL,
                absl::StrCat("Failed to parse ", chain.size(), " bytes as a ",
                             message.GetTypeName()));
}

bool DecodePieces(const BufferChain& chain,
                  google::protobuf::MessageLite* message, Status* error) {
  if (chain.size() > kMaxProtobufBytes) {
    *error = Status(
        StatusCode::RESOURCE_EXHAUSTED,
        absl::StrCat("Received message larger than max (", chain.size(),
                     " vs. ", kMaxProtobufBytes, "): protobuf's own limit"));
    return false;
  }
  ChainInputStream stream(chain);
  if (message->ParseFromZeroCopyStream(&stream)) return true;
  *error = ParseFailure(chain, *message);
  return false;
}

}  // namespace rpc::internal
