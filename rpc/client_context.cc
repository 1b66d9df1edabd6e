#include "rpc/client_context.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "rpc/channel_interface.h"
#include "rpc/internal/child_calls.h"
#include "rpc/internal/sent_metadata.h"
#include "rpc/server_context.h"

namespace rpc {

class ClientContext::Parent {
 public:
  Parent() = default;
  ~Parent() {
    if (self_ == nullptr) return;
    internal::ChildCalls::Get().Remove(name_, self_);
    self_->End();
  }

  // The parent's end cancels `context`, until this is destroyed.
  void CancelWith(internal::ServerCallControl& parent, ClientContext* context) {
    self_ = std::make_shared<internal::ChildCall>(
        [context] { context->TryCancel(); });
    name_ = parent.AddChild(self_);
  }

  absl::Time deadline = absl::InfiniteFuture();
  // Where the call may be cancelled by another thread; see TryCancel.
  std::shared_ptr<const ChannelInterface> channel;

 private:
  internal::ParentCall name_;
  std::shared_ptr<internal::ChildCall> self_;  // null: not to be cancelled
};

// Here, for the compiler's tuning (tools/cc.bzl) to be this library's
// and not its user's.
ClientContext::ClientContext() = default;

ClientContext::SentMetadata::SentMetadata() = default;
ClientContext::SentMetadata::~SentMetadata() = default;

ClientContext::SentMetadata& ClientContext::sent() {
  if (sent_ == nullptr) sent_ = std::make_unique<SentMetadata>();
  return *sent_;
}

std::unique_ptr<ClientContext> ClientContext::FromServerContext(
    const ServerContextBase& server_context, PropagationOptions options) {
  auto context = std::make_unique<ClientContext>();
  // All of it is there before another thread may cancel.
  Parent& parent = *(context->sent().parent = std::make_unique<Parent>());
  if (options.deadline()) parent.deadline = server_context.deadline_;
  if (options.cancellation()) {
    if (server_context.call_ != nullptr) {
      parent.CancelWith(*server_context.call_, context.get());
    } else if (server_context.IsCancelled()) {
      context->TryCancel();
    }
  }
  return context;
}

std::unique_ptr<ClientContext> ClientContext::FromCallbackServerContext(
    const CallbackServerContext& server_context, PropagationOptions options) {
  return FromServerContext(server_context, options);
}

void ClientContext::AddMetadata(const std::string& key,
                                const std::string& value) {
  sent().pairs.emplace(key, value);
}

absl::Time ClientContext::EarlierDeadline() const {
  if (sent_ == nullptr || sent_->parent == nullptr) return deadline_;
  return std::min(deadline_, sent_->parent->deadline);
}

Status ClientContext::EncodeSent(const internal::CallTarget& target,
                                 absl::Span<const std::byte>* header) {
  if (Parent* const parent = sent_->parent.get(); parent != nullptr) {
    deadline_ = EarlierDeadline();
    if (target.channel != nullptr) {
      parent->channel = target.channel->shared_from_this();
    }
  }
  if (sent_->credentials != nullptr) {
    return Status(StatusCode::UNAUTHENTICATED,
                  "the channel is not secure enough for call credentials");
  }
  Status error = internal::EncodeInitialMetadata(
      sent_->pairs, sent_->authority, transport_->limits().max_header_bytes,
      sent_->encoded);
  *header = absl::MakeConstSpan(
      reinterpret_cast<const std::byte*>(sent_->encoded.data()),
      sent_->encoded.size());
  return error;
}

std::string ClientContext::peer() const {
  if (transport_ == nullptr) return "";
  std::string peer = transport_->peer();
  // A transport on top of others has told it with what came.
  return peer.empty() && received_ != nullptr ? received_->peer() : peer;
}

// The text is the status's, which the caller has; here is what the server said.
std::string ClientContext::debug_error_string() const {
  if (status_code_ == StatusCode::OK) return "";
  const std::string code =
      StatusCodeName(static_cast<StatusCode>(status_code_));
  if (received_ == nullptr || received_->status_message().empty()) return code;
  return absl::StrCat(code, " from ", peer(), ": ",
                      std::string(received_->status_message()));
}

void ClientContext::AddCancelListener(
    std::shared_ptr<internal::CancelListener> listener) {
  {
    absl::MutexLock lock(&sent_->mutex);
    sent_->cancel_listeners.push_back(listener);
  }
  if (phase_.load() & kCancelled) listener->OnTryCancel();
}

void ClientContext::TryCancel() {
  const uint32_t before =
      phase_.fetch_or(kCancelled, std::memory_order_acq_rel);
  if (sent_ != nullptr) {
    std::vector<std::shared_ptr<internal::CancelListener>> listeners;
    {
      absl::MutexLock lock(&sent_->mutex);
      listeners = sent_->cancel_listeners;
    }
    for (const auto& listener : listeners) listener->OnTryCancel();
  }
  // Not started: whoever starts it sees the bit.
  if ((before & kStarted) == 0 || (before & kOver) != 0) return;
  transport_->Cancel(handle_, absl::CancelledError("CANCELLED"));
}

}  // namespace rpc
