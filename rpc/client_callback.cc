#include "rpc/client_callback.h"

#include <utility>

#include "rpc/internal/callback_scope.h"

namespace rpc::internal {

void ReactorCall::Bind(ChannelInterface* channel, const RpcMethod& method,
                       ClientContext* context, ConstMessageRef request,
                       MessageRef response) {
  channel_ = channel->shared_from_this();
  method_ = method.number();
  bound_context_ = context;
  request_ = request;
  bound_response_ = response;
}

void ReactorCall::StartBound() {
  Start(channel_->call_target(), method_, bound_context_, request_,
        bound_response_, /*done_on_other_thread=*/true);
}

void ReactorCall::OnInitialMetadata() {
  CallbackScope scope(this);
  reactor_.OnReadInitialMetadataDone(true);
}

void ReactorCall::OnDone() {
  // OnDone may destroy the reactor, and this with it.
  CallbackScope scope(this);
  const std::shared_ptr<ChannelInterface> channel = std::move(channel_);
  const Status status = TakeStatus();
  reactor_.OnDone(status);
}

void ReactorCall::DoneElsewhere() {
  if (!Executor::ForCallbacks().Post(this)) OnDone();
}

}  // namespace rpc::internal
