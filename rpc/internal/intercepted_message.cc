#include "rpc/internal/intercepted_message.h"

#include <utility>

#include "rpc/buffer.h"

namespace rpc::internal {

ByteBuffer* InterceptedMessage::Serialize() {
  if (object_ != nullptr) {
    BufferChain chain;
    error_ = type_.WithObject(object_).Serialize(&chain);
    object_ = nullptr;
    bytes_ = ByteBuffer(std::move(chain));
  }
  return error_.ok() ? &bytes_ : nullptr;
}

void InterceptedMessage::Replace(const void* object) {
  object_ = object;
  bytes_.Clear();
  error_ = Status();
}

}  // namespace rpc::internal
