// The answering side of ucx_bench.
#ifndef VERBENA_BENCHMARKS_PEERS_UCX_SERVER_H_
#define VERBENA_BENCHMARKS_PEERS_UCX_SERVER_H_

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmarks/peers/ucx_messages.h"
#include "benchmarks/peers/ucx_slots.h"
#include "benchmarks/peers/ucx_worker.h"

namespace benchmarks {

class UcxServer {
 public:
  using ServerSlot = Slot<UcxServer>;

  // Returns what the client needs to connect.
  absl::StatusOr<std::string> Open();
  // Serves until `stop_fd` can be read.
  absl::Status Run(int stop_fd);

  Worker& worker() { return worker_; }
  // All data of the slot's message is in its buffer.
  void OnData(ServerSlot& slot) { Respond(slot, slot.buffer); }

 private:
  // Not out of the callback: slots may still be in use.
  ucs_status_t OnSetup(const Message& message);
  void SetUp();
  ucs_status_t OnMessage(const Message& message);
  ucs_status_t OnEager(ServerSlot& slot, const Message& message);
  void Respond(ServerSlot& slot, const char* data);
  void CountOneWay(ServerSlot& slot);

  std::optional<Setup> setup_;
  ucp_ep_h client_ = nullptr;  // UCX's own: nobody else closes it
  Slots<UcxServer> slots_;
  size_t bytes_ = 0;
  uint64_t one_way_messages_ = 0;
  uint64_t one_way_bytes_ = 0;
  Header receipts_[kGroups] = {};
  Header ready_ = {};
  Pending ready_pending_;
  Worker worker_;  // the first to go: what it calls is still there
};

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_PEERS_UCX_SERVER_H_
