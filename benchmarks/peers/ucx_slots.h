// The calls that a side of ucx_bench can have in flight.
#ifndef VERBENA_BENCHMARKS_PEERS_UCX_SLOTS_H_
#define VERBENA_BENCHMARKS_PEERS_UCX_SLOTS_H_

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmarks/peers/raw_payloads.h"
#include "benchmarks/peers/ucx_messages.h"
#include "benchmarks/peers/ucx_worker.h"

namespace benchmarks {

// One of the calls that can be in flight; the memory it is received in.
template <typename Side>
struct Slot {
  Side* side = nullptr;
  Pending pending;
  Header header = {};
  uint64_t checksum = 0;
  char* buffer = nullptr;
  MessageId id = kSetup;  // of what is being fetched

  static void OnFetched(void* request, ucs_status_t status, size_t /*bytes*/,
                        void* user_data) {
    auto& slot = *static_cast<Slot*>(user_data);
    ucp_request_free(request);
    if (status != UCS_OK) slot.side->worker().Fail(ToStatus(status, "fetch"));
    slot.side->OnData(slot);
  }
};

// Slots with memory.
template <typename Side>
class Slots {
 public:
  absl::Status Create(Side* side, size_t count, size_t bytes) {
    absl::StatusOr<Memory> memory = Memory::Allocate(count * bytes);
    if (!memory.ok()) return memory.status();
    memory_ = *std::move(memory);
    slots_ = std::vector<Slot<Side>>(count);
    for (size_t i = 0; i < count; ++i) {
      slots_[i].side = side;
      slots_[i].header = {static_cast<uint32_t>(i),
                          static_cast<uint32_t>(bytes)};
      slots_[i].buffer = memory_.data() + i * bytes;
    }
    return absl::OkStatus();
  }

  Slot<Side>* Find(uint32_t index) {
    return index < slots_.size() ? &slots_[index] : nullptr;
  }
  std::vector<Slot<Side>>& all() { return slots_; }
  bool IsIdle() const {
    for (const Slot<Side>& slot : slots_) {
      if (slot.pending.sends != 0) return false;
    }
    return true;
  }

 private:
  std::vector<Slot<Side>> slots_;
  Memory memory_;
};

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_PEERS_UCX_SLOTS_H_
