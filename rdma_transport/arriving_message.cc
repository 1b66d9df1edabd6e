#include "rdma_transport/arriving_message.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "rdma_transport/poller.h"

namespace rdma {
namespace {

// Another thread brings the next chunk, and wakes this one; should that one go
// on to a callback that blocks, this one looks after it.
constexpr absl::Duration kFirstLook = absl::Microseconds(50);
constexpr absl::Duration kLastLook = absl::Milliseconds(100);

}  // namespace

void ArrivingMessage::SetAtWork(bool at_work) {
  if (std::exchange(at_work_, at_work) == at_work) return;
  poller_->CountParsers(at_work ? 1 : -1);
}

absl::Span<const std::byte> ArrivingMessage::Next() noexcept {
  bool has_room = false;
  {
    absl::MutexLock lock(&mutex_);
    has_room = given_back_ < taken_;
    given_back_ = taken_;
  }
  if (bytes_taken_ == total_bytes_) {
    SetAtWork(false);
    // A handler may take its time.
    memory_.reset();
    return {};
  }
  if (has_room) {
    poller_->Run([self = shared_from_this()] {
      if (self->owner_ != nullptr) self->owner_->ReadOn();
    });
  }
  SetAtWork(false);
  WaitForPiece();
  absl::MutexLock lock(&mutex_);
  if (came_ == taken_) return {};
  SetAtWork(true);
  const size_t place = taken_++ % kChunks;
  bytes_taken_ += sizes_[place];
  return {memory_.data() + place * kChunkBytes, sizes_[place]};
}

void ArrivingMessage::WaitForPiece() {
  bool drive = !HasPieceOrEnd();
  absl::Duration look = kFirstLook;
  for (;;) {
    if (drive) {
      poller_->DriveWithoutCallbacks([this] { return HasPieceOrEnd(); });
    }
    absl::MutexLock lock(&mutex_);
    if (mutex_.AwaitWithTimeout(
            absl::Condition(this, &ArrivingMessage::CanGoOn), look)) {
      return;
    }
    drive = !poller_->IsLookedAfter();
    look = std::min(2 * look, kLastLook);
  }
}

void ArrivingMessage::StopParsing() {
  SetAtWork(false);
  if (bytes_taken_ == total_bytes_) return;
  poller_->Run([self = shared_from_this()] {
    if (self->owner_ != nullptr) self->owner_->StopReading(*self);
  });
}

bool ArrivingMessage::HasRoom() const {
  absl::MutexLock lock(&mutex_);
  return added_ < given_back_ + kChunks;
}

std::byte* ArrivingMessage::AddChunk(uint32_t bytes) {
  const size_t place = added_++ % kChunks;
  sizes_[place] = bytes;
  return memory_.mutable_data() + place * kChunkBytes;
}

void ArrivingMessage::ChunkCame() {
  absl::MutexLock lock(&mutex_);
  // What failed took its connection along before it came to this.
  if (!ended_) ++came_;
}

void ArrivingMessage::End() {
  owner_ = nullptr;
  absl::MutexLock lock(&mutex_);
  ended_ = true;
}

}  // namespace rdma
