// A message on its way out, as interceptors see, serialize and replace it.
//
// Thread rule: one thread at a time.
#ifndef VERBENA_RPC_INTERNAL_INTERCEPTED_MESSAGE_H_
#define VERBENA_RPC_INTERNAL_INTERCEPTED_MESSAGE_H_

#include "rpc/byte_buffer.h"
#include "rpc/internal/message_ref.h"
#include "rpc/status.h"

namespace rpc::internal {

class InterceptedMessage {
 public:
  // Refers to `message`, which may be none, until it is serialized or replaced.
  explicit InterceptedMessage(ConstMessageRef message)
      : type_(message), object_(message.object()) {}

  bool has_message() const { return type_.has_message(); }

  // Null where it is serialized.
  const void* object() const { return object_; }
  // The message is its bytes from now on. Null where they cannot be had: then
  // error() says why.
  ByteBuffer* Serialize();
  // By another of its type.
  void Replace(const void* object);

  // What is to be sent. REQUIRES: error() is OK.
  ConstMessageRef ref() const {
    return object_ == nullptr && has_message() ? ConstMessageRef(bytes_)
                                               : type_.WithObject(object_);
  }
  const Status& error() const { return error_; }

 private:
  const ConstMessageRef type_;
  const void* object_;
  ByteBuffer bytes_;
  Status error_;
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_INTERCEPTED_MESSAGE_H_
