#include "rpc/internal/message_codec.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "rpc/internal/chain_input_stream.h"

namespace rpc::internal {
namespace {

Status ParseFailure(const BufferChain& chain,
                    const google::protobuf::MessageLite& message) {
  return Status(StatusCode::INTERNAL,
                absl::StrCat("Failed to parse ", chain.size(), " bytes as a ",
                             message.GetTypeName()));
}

}  // namespace

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

Status CheckAttachmentSize(uint64_t bytes, const Limits& limits) {
  if (bytes <= limits.max_attachment_bytes) return Status();
  return Status(StatusCode::RESOURCE_EXHAUSTED,
                absl::StrCat("Sent attachment larger than max (", bytes,
                             " vs. ", limits.max_attachment_bytes, ")"));
}

Status DecodeMessage(const BufferChain& chain,
                     google::protobuf::MessageLite* message) {
  if (ABSL_PREDICT_FALSE(chain.size() > kMaxProtobufBytes)) {
    return Status(
        StatusCode::RESOURCE_EXHAUSTED,
        absl::StrCat("Received message larger than max (", chain.size(),
                     " vs. ", kMaxProtobufBytes, "): protobuf's own limit"));
  }
  bool parsed;
  if (ABSL_PREDICT_TRUE(chain.contiguous())) {
    const std::string_view bytes = chain.front_view();
    parsed =
        message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  } else {
    ChainInputStream stream(chain);
    parsed = message->ParseFromZeroCopyStream(&stream);
  }
  if (ABSL_PREDICT_TRUE(parsed)) return Status();
  return ParseFailure(chain, *message);
}

}  // namespace rpc::internal
