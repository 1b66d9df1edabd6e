// Protobuf messages into outgoing frames and out of incoming ones.
//
// A small message is serialized into scratch memory on the caller's stack,
// which the transport copies; a larger one straight into the transport's
// registered memory, contiguously. Parsing reads the frame's memory where it
// lies.
//
//   MessageScratch scratch;
//   OutgoingFrame frame;
//   Status status = EncodeMessage(request, transport, limits, scratch, frame);
//
// Thread rule: no state; the messages belong to the caller.
#ifndef VERBENA_RPC_INTERNAL_MESSAGE_CODEC_H_
#define VERBENA_RPC_INTERNAL_MESSAGE_CODEC_H_

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdint>

#include "absl/base/optimization.h"
#include "absl/status/statusor.h"
#include "google/protobuf/message_lite.h"
#include "rpc/buffer.h"
#include "rpc/status.h"
#include "rpc/transport.h"

namespace rpc::internal {

// Protobuf's format ends here: lengths within a message are 31 bits.
inline constexpr uint64_t kMaxProtobufBytes = INT_MAX;

// Where a small message is serialized. Left uninitialised: only what is written
// is read.
struct MessageScratch {
  static constexpr size_t kBytes = 1024;
  alignas(16) std::byte bytes[kBytes];
};

// How a side sends its messages.
struct EncodeLimits {
  // Up to this many bytes go by scratch memory.
  size_t copy_bytes = 0;
  // A larger message is refused.
  uint64_t max_bytes = kMaxProtobufBytes;

  // `max_message_bytes`: what the user allows.
  EncodeLimits(const Limits& limits, uint64_t max_message_bytes)
      : copy_bytes(std::min<size_t>(limits.copy_message_bytes,
                                    MessageScratch::kBytes)),
        max_bytes(std::min({limits.max_message_bytes, max_message_bytes,
                            kMaxProtobufBytes})) {}
};

Status MessageTooLargeToSend(uint64_t bytes, uint64_t limit);
Status MessageChangedWhileSent();
Status NoMemoryToSend(uint64_t bytes, const absl::Status& cause);

// RESOURCE_EXHAUSTED where an attachment is larger than the peer or the
// transport can take; names both sizes.
Status CheckAttachmentSize(uint64_t bytes, const Limits& limits);

// Sets `frame`'s message. `scratch` must live until the frame is sent.
// `transport` is a ClientTransport or a ServerTransport. Errors:
// RESOURCE_EXHAUSTED (the size limit, or the memory budget), INTERNAL (the
// message changed meanwhile).
template <class Transport>
Status EncodeMessage(const google::protobuf::MessageLite& message,
                     Transport& transport, const EncodeLimits& limits,
                     MessageScratch& scratch, OutgoingFrame& frame) {
  const size_t size = message.ByteSizeLong();
  if (ABSL_PREDICT_FALSE(size > limits.max_bytes)) {
    return MessageTooLargeToSend(size, limits.max_bytes);
  }
  std::byte* target = scratch.bytes;
  Buffer buffer;
  if (size > limits.copy_bytes) {
    absl::StatusOr<Buffer> allocated = transport.AllocateBuffer(size);
    if (!allocated.ok()) return NoMemoryToSend(size, allocated.status());
    buffer = *std::move(allocated);
    target = buffer.mutable_data();
  }
  auto* const begin = reinterpret_cast<uint8_t*>(target);
  const uint8_t* const end = message.SerializeWithCachedSizesToArray(begin);
  if (ABSL_PREDICT_FALSE(end != begin + size)) return MessageChangedWhileSent();
  frame.has_message = true;
  if (size > limits.copy_bytes) {
    frame.message.Append(std::move(buffer));
  } else {
    frame.small_message = absl::MakeConstSpan(target, size);
  }
  return Status();
}

// Parses `chain` into `*message`, whose former content is gone; strings and
// sub-messages that it already has are used again. INTERNAL where the bytes are
// not a complete message of this type.
Status DecodeMessage(const BufferChain& chain,
                     google::protobuf::MessageLite* message);

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_MESSAGE_CODEC_H_
