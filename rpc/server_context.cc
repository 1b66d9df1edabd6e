#include "rpc/server_context.h"

namespace rpc {

bool ServerContextBase::IsCancelled() const {
  return call_ != nullptr && call_->IsCancelled();
}

void ServerContextBase::TryCancel() const {
  if (call_ != nullptr) call_->Cancel();
}

ServerContextBase::SentMetadata& ServerContextBase::sent() {
  if (sent_ == nullptr) sent_ = std::make_unique<SentMetadata>();
  return *sent_;
}

void ServerContextBase::AddInitialMetadata(const std::string& key,
                                           const std::string& value) {
  sent().initial.emplace(key, value);
}

void ServerContextBase::AddTrailingMetadata(const std::string& key,
                                            const std::string& value) {
  sent().trailing.emplace(key, value);
}

absl::StatusOr<Buffer> ServerContextBase::AllocateBuffer(size_t bytes) {
  if (call_ == nullptr) return Buffer::FromHeap(bytes);
  return call_->AllocateBuffer(bytes);
}

std::string ServerContextBase::peer() const {
  return call_ == nullptr ? std::string() : call_->peer();
}

}  // namespace rpc
