#include "rdma_transport/growing_message.h"

#include "rdma_transport/connection.h"
#include "rdma_transport/poller.h"

namespace rdma {

void GrowingMessage::SetWritten(uint64_t bytes) {
  written_.store(bytes, std::memory_order_release);
  poller_->Run([self = shared_from_this()] {
    if (self->connection_ != nullptr) self->connection_->OfferMore(*self);
  });
}

void GrowingMessage::Fail(const absl::Status& why) {
  poller_->Run([self = shared_from_this(), why] {
    self->failure_ = why;
    if (self->connection_ != nullptr) self->connection_->EndGrowing(*self, why);
  });
}

}  // namespace rdma
