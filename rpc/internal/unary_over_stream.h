// Unary calls of channels with interceptors: they are streams of one message
// each way, so that interception is in one place (client_interception.h).
//
// Slower than client_unary_call.h's, which all other channels' calls are.
#ifndef VERBENA_RPC_INTERNAL_UNARY_OVER_STREAM_H_
#define VERBENA_RPC_INTERNAL_UNARY_OVER_STREAM_H_

#include <functional>
#include <utility>

#include "rpc/channel_interface.h"
#include "rpc/client_context.h"
#include "rpc/internal/client_reactor_stream.h"
#include "rpc/internal/message_ref.h"
#include "rpc/internal/rpc_method.h"
#include "rpc/status.h"

namespace rpc::internal {

// Blocks until it is over.
Status UnaryOverStream(ChannelInterface* channel, const RpcMethod& method,
                       ClientContext* context, ConstMessageRef request,
                       MessageRef response);

// One that calls functions; see ClientStreamReactor for where. Destroys itself
// once it is over, or is destroyed before StartCall.
class UnaryStreamReactor final : public ClientStreamReactor {
 public:
  // Not started. `request` is needed until the call is over, as the rest.
  // `on_metadata` may be none.
  UnaryStreamReactor(ChannelInterface* channel, const RpcMethod& method,
                     ClientContext* context, ConstMessageRef request,
                     MessageRef response, std::function<void()> on_metadata,
                     std::function<void(const Status&)> on_done);
  ~UnaryStreamReactor() override = default;

 private:
  void OnReadInitialMetadataDone(bool ok) override;
  void OnDone(const Status& status) override;

  const std::function<void()> on_metadata_;
  const std::function<void(const Status&)> on_done_;
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_UNARY_OVER_STREAM_H_
