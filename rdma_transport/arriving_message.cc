#include "rdma_transport/arriving_message.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "rdma_transport/registered_memory.h"

namespace rdma {
namespace {

// Another thread brings the next chunk, and wakes this one; should that one go
// on to a callback that blocks, this one looks after it.
constexpr absl::Duration kFirstLook = absl::Microseconds(50);
constexpr absl::Duration kLastLook = absl::Milliseconds(100);

}  // namespace

absl::Span<const std::byte> ArrivingMessage::Next() noexcept {
  if (!rest_.empty()) return std::exchange(rest_, {});
  bool has_room = false;
  {
    absl::MutexLock lock(&mutex_);
    has_room = given_back_ < taken_;
    given_back_ = taken_;
  }
  if (bytes_taken_ == total_bytes_) {
    parser_.Set(false);
    // A handler may take its time.
    memory_.reset();
    return {};
  }
  if (has_room) {
    poller_->Run([self = shared_from_this()] {
      if (self->owner_ != nullptr) self->owner_->ReadOn();
    });
  }
  return TakeChunk();
}

absl::Span<const std::byte> ArrivingMessage::TakeChunk() {
  parser_.Set(false);
  WaitFor(&ArrivingMessage::HasChunkOrEnd);
  absl::MutexLock lock(&mutex_);
  if (came_ == taken_) return {};
  parser_.Set(true);
  const size_t place = taken_++ % kChunks;
  bytes_taken_ += sizes_[place];
  return {memory_.data() + place * kChunkBytes, sizes_[place]};
}

bool ArrivingMessage::ReadInto(absl::Span<std::byte> to) noexcept {
  const auto copy_from_rest = [&](uint64_t most) {
    const size_t bytes = std::min<uint64_t>(rest_.size(), most);
    std::copy_n(rest_.data(), bytes, to.data());
    rest_.remove_prefix(bytes);
    to.remove_prefix(bytes);
    return bytes;
  };
  copy_from_rest(to.size());
  if (to.empty()) return true;
  {
    absl::MutexLock lock(&mutex_);
    given_back_ = taken_;
    aimed_ = stored_ = false;
  }
  poller_->Run([self = shared_from_this(), to, taken = bytes_taken_] {
    if (self->owner_ != nullptr) self->Aim(to, taken);
  });
  parser_.Set(false);
  WaitFor(&ArrivingMessage::IsAimedOrEnded);
  bool aimed;
  uint64_t by_ring;
  {
    absl::MutexLock lock(&mutex_);
    aimed = aimed_;
    // At the end all that will ever come is in the ring.
    by_ring = aimed ? by_ring_ : to.size();
  }
  while (by_ring > 0) {
    rest_ = TakeChunk();
    if (rest_.empty()) break;
    by_ring -= copy_from_rest(by_ring);
  }
  bool came = by_ring == 0;
  if (aimed) {
    parser_.Set(false);
    WaitFor(&ArrivingMessage::HasStoredOrEnded);
    bytes_taken_ += to.size();
    absl::MutexLock lock(&mutex_);
    came = came && stored_;
  }
  parser_.Set(came);
  return came;
}

void ArrivingMessage::Aim(absl::Span<std::byte> to, uint64_t taken) {
  const uint64_t by_ring = std::min(added_bytes_ - taken, uint64_t{to.size()});
  to.remove_prefix(by_ring);
  target_ = {to.data(), to.size(), to.size()};
  {
    absl::MutexLock lock(&mutex_);
    aimed_ = true;
    by_ring_ = by_ring;
    stored_ = to.empty();
  }
  owner_->ReadOn();
}

void ArrivingMessage::WaitFor(bool (ArrivingMessage::*condition)() const) {
  const auto is_met = [&] {
    absl::MutexLock lock(&mutex_);
    return (this->*condition)();
  };
  bool drive = !is_met();
  absl::Duration look = kFirstLook;
  for (;;) {
    if (drive) poller_->DriveWithoutCallbacks(is_met);
    absl::MutexLock lock(&mutex_);
    if (mutex_.AwaitWithTimeout(absl::Condition(this, condition), look)) {
      return;
    }
    drive = !poller_->IsLookedAfter();
    look = std::min(2 * look, kLastLook);
  }
}

void ArrivingMessage::StopParsing() {
  parser_.Set(false);
  if (bytes_taken_ == total_bytes_) return;
  poller_->Run([self = shared_from_this()] {
    if (self->owner_ != nullptr) self->owner_->StopReading(*self);
  });
}

ArrivingMessage::Room ArrivingMessage::NextRoom() {
  if (target_.left > 0) {
    return {target_.to, target_.left, reserved_lkey_, target_.bytes};
  }
  absl::MutexLock lock(&mutex_);
  // The ring's come behind a string's when those have come.
  if (storing_ > 0) return {};
  const bool is_look = can_read_into() && given_back_ == 0;
  if (added_ >= given_back_ + (is_look ? 1 : kChunks)) return {};
  const size_t place = added_ % kChunks;
  return {memory_.mutable_data() + place * kChunkBytes,
          is_look ? kLookBytes : kChunkBytes, RegisteredMemory::LkeyOf(memory_),
          kBytes};
}

void ArrivingMessage::AddChunk(uint32_t bytes) {
  added_bytes_ += bytes;
  if (target_.left == 0) {
    sizes_[added_++ % kChunks] = bytes;
    ++ring_reads_;
    return;
  }
  target_.to += bytes;
  target_.left -= bytes;
  absl::MutexLock lock(&mutex_);
  ++storing_;
}

void ArrivingMessage::ChunkCame() {
  absl::MutexLock lock(&mutex_);
  if (ring_reads_ > 0) {
    --ring_reads_;
    // What failed took its connection along before it came to this.
    if (!ended_) ++came_;
    return;
  }
  if (storing_ > 0) --storing_;  // see EndStoring
  if (!ended_) stored_ = storing_ == 0 && target_.left == 0;
}

void ArrivingMessage::End() {
  owner_ = nullptr;
  absl::MutexLock lock(&mutex_);
  ended_ = true;
}

void ArrivingMessage::EndStoring() {
  absl::MutexLock lock(&mutex_);
  storing_ = 0;
}

}  // namespace rdma
