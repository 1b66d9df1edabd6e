#include "rdma_transport/growing_message.h"

#include "rdma_transport/transport_counters.h"

namespace rdma {

namespace {

// Measured in docs/large_messages.md: requests that are read into their strings
// gain sooner than all others.
constexpr uint64_t kFewestBytes = 6 << 20;
constexpr uint64_t kFewestBytesInPlace = 1 << 20;

}  // namespace

std::shared_ptr<rpc::GrowingMessage> GrowMessage(
    Poller& poller, Sender sender, std::shared_ptr<void> keep_alive,
    uint64_t total) {
  const bool in_place = sender == Sender::kClient &&
                        poller.context().device()->reserved_lkey() != 0;
  if (total < (in_place ? kFewestBytesInPlace : kFewestBytes)) return nullptr;
  if (poller.counters().unanswered_offers.value() > 0) return nullptr;
  return std::make_shared<GrowingMessage>(&poller, std::move(keep_alive),
                                          total);
}

GrowingMessage::GrowingMessage(Poller* poller, std::shared_ptr<void> keep_alive,
                               uint64_t total)
    : poller_(poller),
      keep_alive_(std::move(keep_alive)),
      total_(total),
      writer_(poller) {
  writer_.Set(true);
}

void GrowingMessage::Offer() {
  if (owner_ != nullptr) owner_->OfferMore(*this);
}

void GrowingMessage::SetWritten(uint64_t bytes) {
  written_.store(bytes, std::memory_order_release);
  if (bytes == total_) writer_.Set(false);
  poller_->Run([self = shared_from_this()] { self->Offer(); });
}

void GrowingMessage::SetAllWritten(rpc::NextWait next_wait) {
  if (next_wait != rpc::NextWait::kAtOnce) return SetWritten(total_);
  written_.store(total_, std::memory_order_release);
  writer_.Set(false);
  const auto offer = [self = shared_from_this()] { self->Offer(); };
  if (!poller_->RunNow(offer, /*stay=*/true)) poller_->Run(offer);
}

void GrowingMessage::Fail(const absl::Status& why) {
  writer_.Set(false);
  poller_->Run([self = shared_from_this(), why] {
    self->failure_ = why;
    if (self->owner_ != nullptr) self->owner_->EndGrowing(*self, why);
  });
}

}  // namespace rdma
