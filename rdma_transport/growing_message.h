// A message that is offered to the peer part by part, while it is being
// written: what rpc::GrowingMessage is here.
//
// The writer says how much is there; the connection that has offered the
// message (Attach) then offers what is new. Where no connection has done so
// yet, as the frame still waits, it will offer all that is there at once.
//
// Thread rule: rpc::GrowingMessage's functions are the writer's, from any
// thread; the others are the poller's driver's.
#ifndef VERBENA_RDMA_TRANSPORT_GROWING_MESSAGE_H_
#define VERBENA_RDMA_TRANSPORT_GROWING_MESSAGE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "rdma_transport/poller.h"
#include "rpc/transport.h"

namespace rdma {

class GrowingMessage;

// Who has offered a message: its connection. Called by the poller's driver.
class GrowingMessageOwner {
 public:
  // Offers what has been written of it since.
  virtual void OfferMore(GrowingMessage& message) = 0;
  // It cannot be completed: ends its call with `why`.
  virtual void EndGrowing(const GrowingMessage& message,
                          const absl::Status& why) = 0;

 protected:
  ~GrowingMessageOwner() = default;
};

// Null where it is too small to be worth it, or where peers have other large
// messages of the poller's to read: then nobody is idle while this one is
// written, and parts only cost frames.
enum class Sender { kClient, kServer };
std::shared_ptr<rpc::GrowingMessage> GrowMessage(
    Poller& poller, Sender sender, std::shared_ptr<void> keep_alive,
    uint64_t total);

class GrowingMessage final
    : public rpc::GrowingMessage,
      public std::enable_shared_from_this<GrowingMessage> {
 public:
  // REQUIRES: `keep_alive` keeps `poller`, or the writer's call does.
  GrowingMessage(Poller* poller, std::shared_ptr<void> keep_alive,
                 uint64_t total);

  void SetWritten(uint64_t bytes) override;
  void SetAllWritten(rpc::NextWait next_wait) override;
  void Fail(const absl::Status& why) override;

  uint64_t total() const { return total_; }
  uint64_t written() const { return written_.load(std::memory_order_acquire); }
  // OK, or why it will never be complete.
  const absl::Status& failure() const { return failure_; }

  // `owner` has offered it, as `offer_id`, and hears of what is new until
  // Detach.
  void Attach(GrowingMessageOwner* owner, uint64_t offer_id) {
    owner_ = owner;
    offer_id_ = offer_id;
  }
  void Detach() { owner_ = nullptr; }
  uint64_t offer_id() const { return offer_id_; }
  // A frame waits that will offer what is there then.
  bool part_waits = false;

 private:
  // Driver: what is there.
  void Offer();

  Poller* const poller_;
  const std::shared_ptr<void> keep_alive_;
  const uint64_t total_;
  Poller::ComesBack writer_;
  std::atomic<uint64_t> written_{0};
  absl::Status failure_;
  GrowingMessageOwner* owner_ = nullptr;
  uint64_t offer_id_ = 0;
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_GROWING_MESSAGE_H_
