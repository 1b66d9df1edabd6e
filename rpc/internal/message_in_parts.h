// A large protobuf message that is sent first and serialized then: the peer
// fetches what is there while the rest is being written.
//
//   OutgoingFrame frame;
//   if (!EncodeMessage(request, memory, ...)) ...  // memory has a Grow
//   if (frame.growing != nullptr) {
//     MessageInParts rest(frame);
//     transport->Send(call, std::move(frame));
//     rest.Write(request, NextWait::kUnknown);
//   }
//
// Thread rule: one thread; the message belongs to the caller and must not
// change.
#ifndef VERBENA_RPC_INTERNAL_MESSAGE_IN_PARTS_H_
#define VERBENA_RPC_INTERNAL_MESSAGE_IN_PARTS_H_

#include <cstddef>
#include <memory>

#include "google/protobuf/message_lite.h"
#include "rpc/buffer.h"
#include "rpc/transport.h"

namespace rpc::internal {

class MessageInParts {
 public:
  // REQUIRES: `frame.growing` is not null. The frame is to be sent afterwards.
  explicit MessageInParts(const OutgoingFrame& frame)
      : growing_(frame.growing), memory_(frame.message.buffers().front()) {}

  // Serializes the message whose ByteSizeLong EncodeMessage asked for. Where it
  // is another one by now, its call ends with INTERNAL.
  // `next_wait`: of the thread, once it is written.
  void Write(const google::protobuf::MessageLite& message, NextWait next_wait);

 private:
  const std::shared_ptr<GrowingMessage> growing_;
  Buffer memory_;
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_MESSAGE_IN_PARTS_H_
