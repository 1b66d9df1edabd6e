// Protobuf messages into outgoing frames and out of incoming ones.
//
// A small message is serialized into scratch memory on the caller's stack,
// which the transport copies; a larger one straight into the transport's
// registered memory, contiguously. Parsing reads the frame's memory where it
// lies.
//
//   MessageScratch scratch;
//   OutgoingFrame frame;
//   Status error;
//   if (!EncodeMessage(request, transport, limits, scratch, frame, &error)) ...
//
// Success is a bool here, for these are on the path of every call, and a Status
// that nobody looks at has to be made and destroyed all the same.
//
// Thread rule: no state; the messages belong to the caller.
#ifndef VERBENA_RPC_INTERNAL_MESSAGE_CODEC_H_
#define VERBENA_RPC_INTERNAL_MESSAGE_CODEC_H_

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "absl/status/statusor.h"
#include "google/protobuf/message_lite.h"
#include "memory/copy_bytes.h"
#include "rpc/buffer.h"
#include "rpc/internal/message_functions.h"
#include "rpc/internal/protobuf_in_line.h"
#include "rpc/status.h"
#include "rpc/transport.h"

namespace rpc::internal {

// Protobuf's format ends here: lengths within a message are 31 bits.
inline constexpr uint64_t kMaxProtobufBytes = INT_MAX;

// Where a small message is serialized. Left uninitialised: only what is written
// is read.
struct MessageScratch {
  static constexpr size_t kBytes = 1088;

  // With room in front of it.
  std::byte* message() { return memory + kSmallMessageRoom; }

  alignas(16) std::byte memory[kSmallMessageRoom + kBytes + kSlopBytes];
};

// How a side sends its messages.
struct EncodeLimits {
  // Up to this many bytes go by scratch memory; at most max_bytes.
  uint64_t copy_bytes = 0;
  // A larger message is refused.
  uint64_t max_bytes = 0;

  EncodeLimits() = default;
  // `max_message_bytes`: what the user allows.
  EncodeLimits(const Limits& limits, uint64_t max_message_bytes)
      : max_bytes(std::min(
            {limits.max_message_bytes, max_message_bytes, kMaxProtobufBytes})) {
    copy_bytes = std::min<uint64_t>(
        {limits.copy_message_bytes, MessageScratch::kBytes, max_bytes});
  }
};

// What may be worth sending while it is written: the transport has limits of
// its own (docs/defaults.md).
inline constexpr size_t kFewestBytesInParts = 1 << 20;

Status MessageTooLargeToSend(uint64_t bytes, uint64_t limit);
Status MessageChangedWhileSent();
Status NoMemoryToSend(uint64_t bytes, const absl::Status& cause);
Status NoMemoryToParse(uint64_t bytes);

// False where an attachment is larger than the peer or the transport can take:
// RESOURCE_EXHAUSTED, which names both sizes.
bool CheckAttachmentSize(uint64_t bytes, const Limits& limits, Status* error);

// Of many megabytes.
bool SerializePastCaches(const google::protobuf::MessageLite& message,
                         Buffer& target);

// False where the message did not fit its own size, which is the buffer's.
inline bool SerializeTo(const google::protobuf::MessageLite& message,
                        Buffer& target, Status* error,
                        const MessageFunctions& functions = kProtobufsOwn) {
  const size_t size = target.size();
  const bool fits =
      ABSL_PREDICT_TRUE(size < memory::kFewestBytesPastCaches)
          ? functions.fill(message, size,
                           reinterpret_cast<uint8_t*>(target.mutable_data()),
                           size + target.tailroom())
          : SerializePastCaches(message, target);
  if (ABSL_PREDICT_TRUE(fits)) return true;
  *error = MessageChangedWhileSent();
  return false;
}

// EncodeMessage for a message of `size` > limits.copy_bytes bytes, or
// kChangedMeanwhile.
template <class Allocator>
ABSL_ATTRIBUTE_NOINLINE bool EncodeLargeMessage(
    const google::protobuf::MessageLite& message, size_t size,
    Allocator& allocator, const EncodeLimits& limits, OutgoingFrame& frame,
    Status* error, const MessageFunctions& functions) {
  if (size == kChangedMeanwhile) {
    *error = MessageChangedWhileSent();
    return false;
  }
  if (size > limits.max_bytes) {
    *error = MessageTooLargeToSend(size, limits.max_bytes);
    return false;
  }
  absl::StatusOr<Buffer> buffer = allocator.AllocateBuffer(size);
  if (!buffer.ok()) {
    *error = NoMemoryToSend(size, buffer.status());
    return false;
  }
  if constexpr (requires { allocator.Grow(size); }) {
    if (size >= kFewestBytesInParts) frame.growing = allocator.Grow(size);
    if (frame.growing != nullptr) {
      frame.has_message = true;
      frame.message.Append(*std::move(buffer));
      return true;
    }
  }
  if (!SerializeTo(message, *buffer, error, functions)) return false;
  frame.has_message = true;
  frame.message.Append(*std::move(buffer));
  return true;
}

// Sets `frame`'s message where it has no more than limits.copy_bytes. Returns
// its size, or kChangedMeanwhile.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline size_t EncodeSmallMessage(
    const google::protobuf::MessageLite& message, const EncodeLimits& limits,
    MessageScratch& scratch, OutgoingFrame& frame,
    const MessageFunctions& functions) {
  const size_t size =
      functions.write(message, reinterpret_cast<uint8_t*>(scratch.message()),
                      static_cast<size_t>(limits.copy_bytes));
  if (ABSL_PREDICT_TRUE(size <= limits.copy_bytes)) {
    frame.has_message = true;
    frame.small_message = absl::MakeConstSpan(scratch.message(), size);
    frame.small_message_room = kSmallMessageRoom;
  }
  return size;
}

// Sets `frame`'s message. `scratch` must live until the frame is sent.
// `functions` are the message type's.
// `allocator` has an AllocateBuffer: a ClientTransport, a server's call. Where
// it also has a Grow, as GrowMessage, a large message may be left to be written
// when the frame is sent: `frame.growing` says so (message_in_parts.h).
// Errors: RESOURCE_EXHAUSTED (the size limit, or the memory budget), INTERNAL
// (the message changed meanwhile).
template <class Allocator>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool EncodeMessage(
    const google::protobuf::MessageLite& message, Allocator& allocator,
    const EncodeLimits& limits, MessageScratch& scratch, OutgoingFrame& frame,
    Status* error, const MessageFunctions& functions = kProtobufsOwn) {
  const size_t size =
      EncodeSmallMessage(message, limits, scratch, frame, functions);
  if (ABSL_PREDICT_TRUE(size <= limits.copy_bytes)) return true;
  return EncodeLargeMessage(message, size, allocator, limits, frame, error,
                            functions);
}

// DecodeMessage where the message is empty, in pieces, too large, or does not
// parse.
bool DecodeUnusual(const BufferChain& chain,
                   google::protobuf::MessageLite* message, Status* error);
Status ParseFailure(uint64_t bytes,
                    const google::protobuf::MessageLite& message);

// Parses `chain` into `*message`, whose former content is gone; strings and
// sub-messages that it already has are used again. INTERNAL where the bytes are
// not a complete message of this type.
inline bool DecodeMessage(const BufferChain& chain,
                          google::protobuf::MessageLite* message,
                          Status* error) {
  if (ABSL_PREDICT_FALSE(!chain.is_one_buffer() ||
                         chain.size() > kMaxProtobufBytes)) {
    return DecodeUnusual(chain, message, error);
  }
  if (ABSL_PREDICT_TRUE(ParseInLine(chain.only().view(), message))) return true;
  *error = ParseFailure(chain.size(), *message);
  return false;
}

// The same of one that still arrives, as it does. REQUIRES: it is no larger
// than kMaxProtobufBytes.
enum class Arrival {
  kParsed,
  kMalformed,
  kCutOff,  // the rest does not come: the call is over, and nobody sees `error`
};
Arrival DecodeArriving(ArrivingMessage& arriving,
                       google::protobuf::MessageLite* message, Status* error);

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_MESSAGE_CODEC_H_
