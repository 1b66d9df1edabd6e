#include "rpc/client_callback.h"

#include <utility>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "rpc/internal/callback_scope.h"
#include "rpc/internal/channel_hold.h"
#include "rpc/internal/unary_answer.h"

namespace rpc::internal {

void ReactorCall::Bind(ChannelInterface* channel, const RpcMethod& method,
                       ClientContext* context, ConstMessageRef request,
                       MessageRef response) {
  channel_ = HoldChannel(channel);
  bound_ = {&channel->call_target(),
            method.number(),
            &method.messages(),
            context,
            request,
            response};
  if (ABSL_PREDICT_FALSE(bound_.target->transport == nullptr)) {
    BindWithoutTransport(method);
  }
}

// The method is needed now: a generic stub's does not live until StartCall.
void ReactorCall::BindWithoutTransport(const RpcMethod& method) {
  if (bound_.target->interceptors == nullptr) return;
  ClientUnaryReactor* const reactor = &reactor_;
  over_stream_ = std::make_unique<UnaryStreamReactor>(
      channel_.get(), method, bound_.context, bound_.request, bound_.response,
      [reactor] { reactor->OnReadInitialMetadataDone(true); },
      [reactor](const Status& status) { reactor->OnDone(status); });
  channel_.reset();
}

void ReactorCall::StartBound() {
  if (ABSL_PREDICT_FALSE(bound_.target->transport == nullptr)) {
    return StartWithoutTransport();
  }
  Start(bound_, /*done_on_other_thread=*/true);
}

// It destroys itself.
void ReactorCall::StartWithoutTransport() {
  if (over_stream_ != nullptr) return over_stream_.release()->StartCall();
  ClientUnaryCall::StartWithoutTransport(*bound_.target, bound_.context,
                                         /*done_on_other_thread=*/true);
}

void ReactorCall::OnInitialMetadata() {
  CallbackScope scope(this);
  reactor_.OnReadInitialMetadataDone(true);
}

// The reactor's OnDone may destroy it, and this with it.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void ReactorCall::TellDone() {
  const ChannelRelease release(std::move(channel_));
  const Status status = TakeStatus();
  reactor_.OnDone(status);
}

bool ReactorCall::OnOnlyMessage(std::string_view message, Buffer* both) {
  if (ABSL_PREDICT_FALSE(both != nullptr))
    return ClientUnaryCall::OnOnlyMessage(message, both);
  if (!TakeOnlyMessage(message)) return false;
  CallbackScope scope(this);
  reactor_.OnReadInitialMetadataDone(true);
  End();
  TellDone();
  return true;
}

void ReactorCall::OnDone() {
  CallbackScope scope(this);
  TellDone();
}

void ReactorCall::DoneElsewhere() {
  if (!Executor::ForCallbacks().Post(this)) OnDone();
}

}  // namespace rpc::internal
