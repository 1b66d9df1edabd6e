#include "benchmarks/peers/ucx_client.h"

#include <cstring>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

DEFINE_bool(one_way, false,
            "--mode=rate: send messages one way, not echoes; an "
            "acknowledgement comes for each 64");
DEFINE_bool(leave_data, false,
            "leave eager data in UCX's receive buffers, unread");

namespace benchmarks {

absl::Status UcxClient::Prepare(const PeerWorkload& workload) {
  bytes_ = workload.payload_bytes;
  is_bandwidth_ = workload.mode == PeerWorkload::Mode::kBandwidth;
  const size_t slots =
      FLAGS_one_way ? kGroup * kGroups : size_t(workload.concurrency);
  memory_ = Memory();  // before there is more of it
  payloads_.reset();
  absl::StatusOr<Memory> memory =
      Memory::Allocate(RawPayloads::MemoryBytes(workload));
  if (!memory.ok()) return memory.status();
  memory_ = *std::move(memory);
  payloads_.emplace(workload, memory_.data());
  if (absl::Status status = slots_.Create(this, slots, bytes_); !status.ok()) {
    return status;
  }
  calls_.assign(slots, {});
  groups_sent_ = groups_done_ = 0;
  next_number_ = 0;
  is_ready_ = false;
  const Setup setup = {bytes_, slots};
  const Header header = {};
  Pending pending;
  worker_.Send(worker_.endpoint(), kSetup, &header, &setup, sizeof(setup),
               &pending, UCP_AM_SEND_FLAG_REPLY);
  return SpinUntil([&] { return is_ready_ && pending.sends == 0; });
}

absl::Status UcxClient::RunCalls(Recorder& recorder) {
  recorder_ = &recorder;
  more_ = true;
  over_.clear();
  for (ClientSlot& slot : slots_.all()) over_.push_back(&slot);
  in_flight_ = over_.size();
  while (in_flight_ != 0) {
    if (!over_.empty()) StartOver();
    turn_ns_ = 0;
    if (!worker_.Progress() && watch_.IsGone()) {
      return absl::UnavailableError("the server is gone");
    }
    if (!worker_.status().ok()) return worker_.status();
  }
  // Messages of its own by which UCX ends a rendezvous may not be sent yet.
  const ucs_status_ptr_t flush = worker_.Flush();
  const absl::Status status =
      SpinUntil([&] { return Worker::IsFlushed(flush); });
  if (!status.ok()) return status;
  return SpinUntil([&] { return slots_.IsIdle(); });
}

void UcxClient::StartOver() {
  const uint64_t now_ns = SteadyNowNs();
  size_t kept = 0;
  for (ClientSlot* const slot : over_) {
    if (!more_) {
      --in_flight_;
    } else if (slot->pending.sends == 0) {
      Start(*slot, now_ns);
    } else {
      over_[kept++] = slot;
    }
  }
  over_.resize(kept);
}

ucs_status_t UcxClient::OnAnswer(const Message& message) {
  ClientSlot* const slot = slots_.Find(message.header.slot);
  if (slot == nullptr || message.bytes != bytes_) {
    worker_.Fail(absl::DataLossError(absl::StrCat(
        "an answer of ", message.bytes, " bytes came, not of ", bytes_)));
    return UCS_OK;
  }
  if (message.is_rendezvous()) {
    if (worker_.Fetch(message.data, slot->buffer, bytes_, ClientSlot::OnFetched,
                      slot)) {
      OnData(*slot);
    }
    return UCS_INPROGRESS;
  }
  if (FLAGS_leave_data) {
    OnEcho(*slot, static_cast<const char*>(message.data));
    return UCS_OK;
  }
  std::memcpy(slot->buffer, message.data, bytes_);
  OnEcho(*slot, slot->buffer);
  return UCS_OK;
}

void UcxClient::OnEcho(ClientSlot& slot, const char* data) {
  const uint64_t end_ns = TurnNowNs();
  Finish(slot,
         payloads_->CheckEcho(calls_[slot.header.slot].number, data, bytes_),
         end_ns);
}

ucs_status_t UcxClient::OnReceipt(const Message& message) {
  const uint64_t end_ns = TurnNowNs();
  ClientSlot* const slot = slots_.Find(message.header.slot);
  if (slot == nullptr) {
    worker_.Fail(absl::DataLossError("a receipt of no call"));
    return UCS_OK;
  }
  uint64_t checksum = 0;
  if (message.bytes == sizeof(checksum)) {
    std::memcpy(&checksum, message.data, sizeof(checksum));
  }
  Finish(*slot,
         payloads_->CheckReceipt(calls_[message.header.slot].number,
                                 message.header.bytes, checksum),
         end_ns);
  return UCS_OK;
}

void UcxClient::Finish(ClientSlot& slot, const absl::Status& status,
                       uint64_t end_ns) {
  more_ &= recorder_->Note(calls_[slot.header.slot].start_ns, end_ns, status);
  over_.push_back(&slot);
}

// Sends group after group; waits where as many are on their way as may be. What
// finds the FIFO full, UCX queues and sends when there is room.
absl::Status UcxClient::RunOneWay(Recorder& recorder) {
  recorder_ = &recorder;
  more_ = true;
  while (more_) {
    const absl::Status status = SpinUntil(
        [&] { return groups_sent_ - groups_done_ < kGroups || !more_; });
    if (!status.ok()) return status;
    const uint32_t group = groups_sent_++ % kGroups;
    group_starts_ns_[group] = SteadyNowNs();
    for (uint32_t i = 0; i < kGroup; ++i) {
      ClientSlot& slot = slots_.all()[group * kGroup + i];
      if (slot.pending.sends != 0) {
        const absl::Status sent =
            SpinUntil([&] { return slot.pending.sends == 0; });
        if (!sent.ok()) return sent;
      }
      worker_.Send(worker_.endpoint(), kOneWay, &slot.header,
                   payloads_->data(next_number_++), bytes_, &slot.pending);
    }
    turn_ns_ = 0;
    worker_.Progress();
  }
  return SpinUntil([&] { return groups_done_ == groups_sent_; });
}

ucs_status_t UcxClient::OnGroupReceipt(const Message& message) {
  const uint64_t end_ns = SteadyNowNs();
  if (message.header.slot != groups_done_ ||
      message.header.bytes != kGroup * bytes_) {
    worker_.Fail(absl::DataLossError("a group did not arrive as it was sent"));
    return UCS_OK;
  }
  const uint64_t start_ns = group_starts_ns_[groups_done_++ % kGroups];
  for (uint32_t i = 0; i < kGroup; ++i) {
    more_ &= recorder_->Note(start_ns, end_ns, absl::OkStatus());
  }
  return UCS_OK;
}

}  // namespace benchmarks
