// The measuring side of ucx_bench.
#ifndef VERBENA_BENCHMARKS_PEERS_UCX_CLIENT_H_
#define VERBENA_BENCHMARKS_PEERS_UCX_CLIENT_H_

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "benchmarks/peers/peer_main.h"
#include "benchmarks/peers/raw_payloads.h"
#include "benchmarks/peers/spinning.h"
#include "benchmarks/peers/ucx_messages.h"
#include "benchmarks/peers/ucx_slots.h"
#include "benchmarks/peers/ucx_worker.h"
#include "benchmarks/recorder.h"
#include "gflags/gflags.h"

DECLARE_bool(one_way);

namespace benchmarks {

class UcxClient {
 public:
  using ClientSlot = Slot<UcxClient>;

  absl::Status Connect(const std::string& address) {
    absl::Status status = worker_.Open();
    if (!status.ok()) return status;
    status.Update(worker_.Handle<&UcxClient::OnReady>(kReady, this));
    status.Update(worker_.Handle<&UcxClient::OnAnswer>(kAnswer, this));
    status.Update(worker_.Handle<&UcxClient::OnReceipt>(kReceipt, this));
    status.Update(
        worker_.Handle<&UcxClient::OnGroupReceipt>(kGroupReceipt, this));
    if (!status.ok()) return status;
    return worker_.Connect(address);
  }

  absl::Status Prepare(const PeerWorkload& workload);
  absl::Status RunCalls(Recorder& recorder);
  absl::Status RunOneWay(Recorder& recorder);

  Worker& worker() { return worker_; }
  void OnData(ClientSlot& slot) { OnEcho(slot, slot.buffer); }

 private:
  struct Call {
    uint64_t number = 0;
    uint64_t start_ns = 0;
  };

  // Lets UCX work until `condition`, or until something went wrong.
  template <typename Condition>
  absl::Status SpinUntil(Condition condition) {
    while (!condition()) {
      if (!worker_.status().ok()) return worker_.status();
      if (!worker_.Progress() && watch_.IsGone()) {
        return absl::UnavailableError("the server is gone");
      }
    }
    return absl::OkStatus();
  }

  void Start(ClientSlot& slot, uint64_t now_ns) {
    Call& call = calls_[slot.header.slot];
    call = {next_number_++, now_ns};
    MessageId id = kEcho;
    if (is_bandwidth_) {
      id = RawPayloads::IsSampled(call.number) ? kPutChecked : kPut;
    }
    worker_.Send(worker_.endpoint(), id, &slot.header,
                 payloads_->data(call.number), bytes_, &slot.pending);
  }

  // Starts what is over anew, except where UCX still uses the last message.
  void StartOver();

  ucs_status_t OnReady(const Message&) {
    is_ready_ = true;
    return UCS_OK;
  }
  ucs_status_t OnAnswer(const Message& message);
  ucs_status_t OnReceipt(const Message& message);
  ucs_status_t OnGroupReceipt(const Message& message);
  void OnEcho(ClientSlot& slot, const char* data);
  void Finish(ClientSlot& slot, const absl::Status& status, uint64_t end_ns);

  // The time of this call of ucp_worker_progress.
  uint64_t TurnNowNs() {
    if (turn_ns_ == 0) turn_ns_ = SteadyNowNs();
    return turn_ns_;
  }

  size_t bytes_ = 0;
  bool is_bandwidth_ = false;
  bool is_ready_ = false;
  Memory memory_;
  std::optional<RawPayloads> payloads_;
  Slots<UcxClient> slots_;
  std::vector<Call> calls_;
  std::vector<ClientSlot*> over_;
  uint64_t next_number_ = 0;
  uint64_t turn_ns_ = 0;
  uint32_t groups_sent_ = 0;
  uint32_t groups_done_ = 0;
  uint64_t group_starts_ns_[kGroups] = {};
  Recorder* recorder_ = nullptr;
  bool more_ = false;
  size_t in_flight_ = 0;
  ChildWatch watch_;
  Worker worker_;  // the first to go: what it calls is still there
};

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_PEERS_UCX_CLIENT_H_
