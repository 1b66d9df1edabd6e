#include "rpc/internal/message_codec.h"

#include <new>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "rpc/internal/arriving_parser.h"
#include "rpc/internal/chain_input_stream.h"
#include "rpc/internal/serialize_large.h"

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

Status NoMemoryToParse(uint64_t bytes) {
  return Status(
      StatusCode::RESOURCE_EXHAUSTED,
      absl::StrCat("no memory to parse a message of ", bytes, " bytes into"));
}

bool SerializePastCaches(const google::protobuf::MessageLite& message,
                         Buffer& target) {
  return SerializeLarge(message, {target.mutable_data(), target.size()},
                        target.size(), [](size_t) {});
}

bool CheckAttachmentSize(uint64_t bytes, const Limits& limits, Status* error) {
  if (bytes <= limits.max_attachment_bytes) return true;
  *error = Status(StatusCode::RESOURCE_EXHAUSTED,
                  absl::StrCat("Sent attachment larger than max (", bytes,
                               " vs. ", limits.max_attachment_bytes, ")"));
  return false;
}

Status ParseFailure(uint64_t bytes,
                    const google::protobuf::MessageLite& message) {
  return Status(StatusCode::INTERNAL,
                absl::StrCat("Failed to parse ", bytes, " bytes as a ",
                             message.GetTypeName()));
}

bool DecodeUnusual(const BufferChain& chain,
                   google::protobuf::MessageLite* message, Status* error) {
  if (chain.size() > kMaxProtobufBytes) {
    *error = Status(
        StatusCode::RESOURCE_EXHAUSTED,
        absl::StrCat("Received message larger than max (", chain.size(),
                     " vs. ", kMaxProtobufBytes, "): protobuf's own limit"));
    return false;
  }
  if (chain.empty()) {
    if (ParseInLine(std::string_view(""), message)) return true;
  } else {
    ChainInputStream stream(chain);
    if (message->ParseFromZeroCopyStream(&stream)) return true;
  }
  *error = ParseFailure(chain.size(), *message);
  return false;
}

Arrival DecodeArriving(ArrivingMessage& arriving,
                       google::protobuf::MessageLite* message, Status* error) {
  const uint64_t bytes = arriving.total_bytes();
  ArrivingParser parser(arriving);
  try {
    if (parser.Parse(*message)) {
      arriving.Next();  // its end: the memory is of no use any more
      return Arrival::kParsed;
    }
    *error = ParseFailure(bytes, *message);
  } catch (const std::bad_alloc&) {
    *error = NoMemoryToParse(bytes);
  }
  return parser.is_cut_off() ? Arrival::kCutOff : Arrival::kMalformed;
}

}  // namespace rpc::internal
