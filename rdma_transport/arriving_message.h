// A message of the peer's that is parsed while it is being read: what
// rpc::ArrivingMessage is here.
//
// It passes through a ring of a few chunks. Each is what one READ brings, and
// is read anew when the parser is through with it: while it is, the next ones
// are on their way, and what a CPU copies is still in its cache. Where the
// device can store anywhere (Device::reserved_lkey), the parser has long
// strings read right to where they belong: ReadInto. Until it asks for more
// than the first chunk, no other is read there, for a string may begin in that.
//
// Thread rule: rpc::ArrivingMessage's functions are the parser's, from any
// thread; the others are the poller's driver's.
#ifndef VERBENA_RDMA_TRANSPORT_ARRIVING_MESSAGE_H_
#define VERBENA_RDMA_TRANSPORT_ARRIVING_MESSAGE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "rdma_transport/poller.h"
#include "rpc/buffer.h"
#include "rpc/transport.h"

namespace rdma {

class ArrivingMessage;

// Who reads a message: its connection. Called by the poller's driver.
class ArrivingMessageOwner {
 public:
  // There is room again.
  virtual void ReadOn() = 0;
  // Nobody wants the rest.
  virtual void StopReading(const ArrivingMessage& message) = 0;

 protected:
  ~ArrivingMessageOwner() = default;
};

class ArrivingMessage final
    : public rpc::ArrivingMessage,
      public std::enable_shared_from_this<ArrivingMessage> {
 public:
  static constexpr size_t kChunks = 4;
  static constexpr uint32_t kChunkBytes = 256 << 10;
  static constexpr size_t kBytes = kChunks * kChunkBytes;
  // The first chunk, where strings can be read to where they belong: most of a
  // message may be one that begins there.
  static constexpr uint32_t kLookBytes = 16 << 10;

  // `memory`: kBytes of it, registered. `reserved_lkey`: Device's. REQUIRES:
  // `poller` and `owner` stay until the parser is through; see StopParsing.
  ArrivingMessage(Poller* poller, ArrivingMessageOwner* owner,
                  rpc::Buffer memory, uint32_t reserved_lkey,
                  uint64_t total_bytes)
      : poller_(poller),
        memory_(std::move(memory)),
        reserved_lkey_(reserved_lkey),
        total_bytes_(total_bytes),
        owner_(owner),
        parser_(poller) {}

  uint64_t total_bytes() const override { return total_bytes_; }
  // It drives, and what that throws must not be taken for the parser's.
  absl::Span<const std::byte> Next() noexcept override;
  bool can_read_into() const override { return reserved_lkey_ != 0; }
  bool ReadInto(absl::Span<std::byte> to) noexcept override;
  // The parser's last words, wherever it stands.
  void StopParsing();

  // Where the next READ stores, and how much it may bring.
  struct Room {
    std::byte* to = nullptr;
    uint64_t bytes = 0;  // 0: there is none for now
    uint32_t lkey = 0;
    uint64_t whole_bytes = 0;  // of the memory that it is a chunk of
  };
  Room NextRoom();
  bool HasRoom() { return NextRoom().bytes > 0; }
  // A READ of so many bytes goes there. REQUIRES: NextRoom has them.
  void AddChunk(uint32_t bytes);
  // The oldest one that was added has come, or failed after End.
  void ChunkCame();
  // No more will come. The owner hears of nothing any more. What was added and
  // has not come may still be stored.
  void End();
  // After that: nor is anything stored any more.
  void EndStoring();

 private:
  // A string that is read to where it belongs.
  struct Target {
    std::byte* to = nullptr;  // of the next READ
    uint64_t left = 0;        // that no READ was added for
    uint64_t bytes = 0;       // in all
  };

  // Driver: of what follows `taken` bytes of the message, what is not in the
  // ring or on its way there is read into `to`.
  void Aim(absl::Span<std::byte> to, uint64_t taken);

  // Parser: waits until the condition, or the end.
  void WaitFor(bool (ArrivingMessage::*condition)() const);
  // Parser: the next chunk of the ring; empty where none will come.
  absl::Span<const std::byte> TakeChunk();

  bool HasChunkOrEnd() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return came_ > taken_ || ended_;
  }
  bool IsAimedOrEnded() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return aimed_ || ended_;
  }
  // `to` is its owner's again.
  bool HasStoredOrEnded() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stored_ || (ended_ && storing_ == 0);
  }

  Poller* const poller_;
  rpc::Buffer memory_;
  const uint32_t reserved_lkey_;
  const uint64_t total_bytes_;

  // The driver's.
  ArrivingMessageOwner* owner_;  // null: it has ended
  uint64_t added_ = 0;           // chunks of the ring
  uint64_t added_bytes_ = 0;     // wherever to
  uint32_t ring_reads_ = 0;      // under way
  std::array<uint32_t, kChunks> sizes_{};
  Target target_;

  // The parser's.
  uint64_t bytes_taken_ = 0;
  absl::Span<const std::byte> rest_;  // of the last chunk, behind a string
  Poller::ComesBack parser_;  // is on a piece, and comes for the next one

  mutable absl::Mutex mutex_;
  uint64_t came_ ABSL_GUARDED_BY(mutex_) = 0;
  // Chunks that the parser was given, and those it is through with.
  uint64_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t given_back_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  // Of the string: whether the driver has taken aim, how much of it comes by
  // the ring; whether all else is there, and READs of that which are under way.
  bool aimed_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t by_ring_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stored_ ABSL_GUARDED_BY(mutex_) = false;
  uint32_t storing_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_ARRIVING_MESSAGE_H_
