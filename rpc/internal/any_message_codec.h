// message_codec.h for messages of any type that can be sent: protobuf's go its
// way, others by their SerializationTraits.
//
// Thread rule: no state; the messages belong to the caller.
#ifndef VERBENA_RPC_INTERNAL_ANY_MESSAGE_CODEC_H_
#define VERBENA_RPC_INTERNAL_ANY_MESSAGE_CODEC_H_

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "rpc/buffer.h"
#include "rpc/internal/message_codec.h"
#include "rpc/internal/message_functions.h"
#include "rpc/internal/message_ref.h"
#include "rpc/status.h"
#include "rpc/transport.h"

namespace rpc::internal {

// EncodeAnyMessage and DecodeAnyMessage of a message that is not protobuf's.
bool EncodeByTraits(ConstMessageRef message, const EncodeLimits& limits,
                    OutgoingFrame& frame, Status* error);
bool DecodeByTraits(BufferChain& chain, MessageRef message, Status* error);

// See EncodeMessage. Errors besides: what the type's traits return.
template <class Allocator>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool EncodeAnyMessage(
    ConstMessageRef message, Allocator& allocator, const EncodeLimits& limits,
    MessageScratch& scratch, OutgoingFrame& frame, Status* error,
    const MessageFunctions& functions = kProtobufsOwn) {
  const auto* const lite = message.lite();
  if (ABSL_PREDICT_FALSE(lite == nullptr)) {
    return EncodeByTraits(message, limits, frame, error);
  }
  return EncodeMessage(*lite, allocator, limits, scratch, frame, error,
                       functions);
}

// See DecodeMessage. What is in `chain` afterwards is of no use.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool DecodeAnyMessage(BufferChain& chain,
                                                          MessageRef message,
                                                          Status* error) {
  auto* const lite = message.lite();
  if (ABSL_PREDICT_FALSE(lite == nullptr)) {
    return DecodeByTraits(chain, message, error);
  }
  return DecodeMessage(chain, lite, error);
}

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_ANY_MESSAGE_CODEC_H_
