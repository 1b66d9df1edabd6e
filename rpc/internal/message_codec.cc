#include "rpc/internal/message_codec.h"

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "rpc/internal/chain_input_stream.h"
#include "rpc/internal/piece_input_stream.h"

namespace rpc::internal {
namespace {

class ArrivingInputStream final : public PieceInputStream {
 public:
  explicit ArrivingInputStream(ArrivingMessage& message) : message_(message) {}

  bool is_cut_off() const { return is_cut_off_; }

 private:
  absl::Span<const std::byte> NextPiece() override {
    const absl::Span<const std::byte> piece = message_.Next();
    is_cut_off_ = piece.empty() &&
                  static_cast<uint64_t>(ByteCount()) < message_.total_bytes();
    return piece;
  }

  ArrivingMessage& message_;
  bool is_cut_off_ = false;
};

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

Status NoMemoryToParse(uint64_t bytes) {
  return Status(
      StatusCode::RESOURCE_EXHAUSTED,
      absl::StrCat("no memory to parse a message of ", bytes, " bytes into"));
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
  ArrivingInputStream stream(arriving);
  // One that is cut off may be a shorter one, and lengths in it may be any.
  const bool parsed =
      message->ParseFromBoundedZeroCopyStream(&stream, static_cast<int>(bytes));
  if (parsed) {
    arriving.Next();  // its end: the memory is of no use any more
    return Arrival::kParsed;
  }
  *error = ParseFailure(bytes, *message);
  return stream.is_cut_off() ? Arrival::kCutOff : Arrival::kMalformed;
}

}  // namespace rpc::internal
