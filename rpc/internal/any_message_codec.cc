#include "rpc/internal/any_message_codec.h"

#include <utility>

namespace rpc::internal {

bool EncodeByTraits(ConstMessageRef message, const EncodeLimits& limits,
                    OutgoingFrame& frame, Status* error) {
  BufferChain bytes;
  *error = message.Serialize(&bytes);
  if (!error->ok()) return false;
  if (bytes.size() > limits.max_bytes) {
    *error = MessageTooLargeToSend(bytes.size(), limits.max_bytes);
    return false;
  }
  frame.has_message = true;
  frame.message = std::move(bytes);
  return true;
}

bool DecodeByTraits(BufferChain& chain, MessageRef message, Status* error) {
  *error = message.Deserialize(std::move(chain));
  return error->ok();
}

}  // namespace rpc::internal
