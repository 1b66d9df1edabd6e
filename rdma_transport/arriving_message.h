// A message of the peer's that is parsed while it is being read: what
// rpc::ArrivingMessage is here.
//
// It passes through a ring of a few chunks. Each is what one READ brings, and
// is read anew when the parser is through with it: while it is, the next ones
// are on their way, and what a CPU copies is still in its cache.
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
#include "rpc/buffer.h"
#include "rpc/transport.h"

namespace rdma {

class ArrivingMessage;
class Poller;

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

  // `memory`: kBytes of it, registered. REQUIRES: `poller` and `owner` stay
  // until the parser is through; see StopParsing.
  ArrivingMessage(Poller* poller, ArrivingMessageOwner* owner,
                  rpc::Buffer memory, uint64_t total_bytes)
      : poller_(poller),
        memory_(std::move(memory)),
        total_bytes_(total_bytes),
        owner_(owner) {}

  uint64_t total_bytes() const override { return total_bytes_; }
  // It drives, and what that throws must not be taken for the parser's.
  absl::Span<const std::byte> Next() noexcept override;
  // The parser's last words, wherever it stands.
  void StopParsing();

  // Whether a further chunk can be read, and where to.
  bool HasRoom() const;
  std::byte* AddChunk(uint32_t bytes);
  const rpc::Buffer& memory() const { return memory_; }
  // The oldest one that was added has come, or failed after End.
  void ChunkCame();
  // No more will come. The owner hears of nothing any more.
  void End();

 private:
  // What the parser waits for.
  bool HasPieceOrEnd() const {
    absl::MutexLock lock(&mutex_);
    return CanGoOn();
  }
  bool CanGoOn() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return came_ > taken_ || ended_;
  }
  void WaitForPiece();
  void SetAtWork(bool at_work);

  Poller* const poller_;
  rpc::Buffer memory_;
  const uint64_t total_bytes_;

  // The driver's.
  ArrivingMessageOwner* owner_;  // null: it has ended
  uint64_t added_ = 0;
  std::array<uint32_t, kChunks> sizes_{};

  // The parser's.
  uint64_t bytes_taken_ = 0;
  bool at_work_ = false;  // on a piece, and comes for the next one

  mutable absl::Mutex mutex_;
  uint64_t came_ ABSL_GUARDED_BY(mutex_) = 0;
  // Chunks that the parser was given, and those it is through with.
  uint64_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t given_back_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_ARRIVING_MESSAGE_H_
