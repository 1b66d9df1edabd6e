// Registered memory for the fronts of frames that a device gathers: what comes
// before a buffer that is not ours to write in front of.
//
// Thread rule: the poller's driver.
#ifndef VERBENA_RDMA_TRANSPORT_FRONT_RING_H_
#define VERBENA_RDMA_TRANSPORT_FRONT_RING_H_

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "rdma_transport/cache_lines.h"
#include "rdma_transport/registered_memory.h"
#include "rpc/buffer.h"

namespace rdma {

class FrontRing {
 public:
  // Room for a frame's prefix and a small message, or a few headers.
  static constexpr size_t kFrontBytes = 128;
  // As many as a busy connection has under way.
  static constexpr uint32_t kFronts = 64;

  // Of the memory that Next gives.
  uint32_t lkey() const { return lkey_; }

  // The next front, which stays the next until Take. Null where all are taken,
  // or `memory`, the same each time, has no more. Connections that never ask
  // have none.
  std::byte* Next(RegisteredMemory& memory) {
    if (fronts_.empty() && !Allocate(memory)) [[unlikely]]
      return nullptr;
    return taken_ - returned_ == kFronts ? nullptr : At(taken_);
  }
  void Take() {
    ++taken_;
    // The next one's last reader has it still, which a frame would wait for.
    FetchForWriting(At(taken_));
  }
  // Gives back the oldest one: its SEND is complete.
  void Return() {
    assert(taken_ != returned_);
    ++returned_;
  }

  bool has_memory() const { return !fronts_.empty(); }
  // Gives the memory back, unless some are out.
  void GiveBackMemory() {
    if (taken_ == returned_) fronts_.reset();
  }

 private:
  bool Allocate(RegisteredMemory& memory) {
    absl::StatusOr<rpc::Buffer> fronts = memory.Allocate(kFronts * kFrontBytes);
    if (!fronts.ok()) return false;
    fronts_ = *std::move(fronts);
    lkey_ = RegisteredMemory::LkeyOf(fronts_);
    return true;
  }
  std::byte* At(uint32_t number) {
    return fronts_.mutable_data() + number % kFronts * kFrontBytes;
  }

  rpc::Buffer fronts_;
  uint32_t lkey_ = 0;
  uint32_t taken_ = 0;
  uint32_t returned_ = 0;
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_FRONT_RING_H_
