#include "rdma_transport/growing_message.h"

#include "rdma_transport/poller.h"
#include "rdma_transport/transport_counters.h"

namespace rdma {

std::shared_ptr<rpc::GrowingMessage> GrowMessage(
    Poller& poller, std::shared_ptr<void> keep_alive, uint64_t total) {
  if (poller.counters().unanswered_offers.value() > 0) return nullptr;
  return std::make_shared<GrowingMessage>(&poller, std::move(keep_alive),
                                          total);
}

void GrowingMessage::SetWritten(uint64_t bytes) {
  written_.store(bytes, std::memory_order_release);
  poller_->Run([self = shared_from_this()] {
    if (self->owner_ != nullptr) self->owner_->OfferMore(*self);
  });
}

void GrowingMessage::Fail(const absl::Status& why) {
  poller_->Run([self = shared_from_this(), why] {
    self->failure_ = why;
    if (self->owner_ != nullptr) self->owner_->EndGrowing(*self, why);
  });
}

}  // namespace rdma
