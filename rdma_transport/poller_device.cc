// What a poller hears of its device, and what it asks of it: events, and room
// in the completion queue.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rdma_transport/poller.h"
#include "rpc/logging.h"

namespace rdma {

// Possibly a thread that drives another poller: the task is left, and somebody
// is woken for it; where nobody sleeps or drives, the monitor sends a keeper.
void Poller::OnDeviceEvent(const DeviceEvent& event) {
  switch (event.type) {
    case IBV_EVENT_CQ_ERR:
      if (event.cq != cq_->get()) return;
      break;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
      break;
    default:
      return;  // nothing that a poller would act on
  }
  PushTask([this, event] { HandleDeviceEvent(event); });
  WakeAnySleeper();
}

void Poller::HandleDeviceEvent(const DeviceEvent& event) {
  const std::string device(context_->device()->name());
  const std::string what =
      absl::StrCat("the device ", device, ": ", ibv_event_type_str(event.type));
  switch (event.type) {
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_DEVICE_FATAL:
      return Fail(absl::UnavailableError(what));
    case IBV_EVENT_PORT_ERR: {
      const absl::Status why =
          absl::UnavailableError(absl::StrCat(what, ", port ", event.port));
      rpc::Log(rpc::LogLevel::kError, std::string(why.message()));
      return BreakConnections(why, /*completions_lost=*/false);
    }
    case IBV_EVENT_PORT_ACTIVE:
      return rpc::Log(rpc::LogLevel::kInfo,
                      absl::StrCat(what, ", port ", event.port));
    default:
      break;
  }
  const auto found = connections_.find(event.qp_num);
  if (found == connections_.end()) return;  // another poller's, or gone
  rpc::Log(rpc::LogLevel::kError, absl::StrCat(what, ", QP ", event.qp_num));
  found->second->OnDeviceError(absl::UnavailableError(what),
                               /*completions_lost=*/false);
}

void Poller::Fail(const absl::Status& why) {
  if (!failure_.ok()) return;
  failure_ = why;
  rpc::Log(rpc::LogLevel::kError,
           absl::StrCat(std::string(why.message()),
                        "; its connections are closed, and there can be no "
                        "others before the process is started again"));
  BreakConnections(why, /*completions_lost=*/true);
}

void Poller::BreakConnections(const absl::Status& why, bool completions_lost) {
  // Their owners may make new ones meanwhile.
  std::vector<PolledConnection*> all;
  for (const auto& [number, connection] : connections_) {
    all.push_back(connection);
  }
  for (PolledConnection* const connection : all) {
    connection->OnDeviceError(why, completions_lost);
  }
}

absl::Status Poller::ReserveCompletions(const PolledConnection* connection,
                                        uint32_t count, uint32_t keep_free) {
  const auto wanted = [&] {
    return uint64_t{reserved_completions_} + count + keep_free;
  };
  for (;;) {
    if (wanted() > completion_limit_) {
      for (const auto& [number, other] : connections_) {
        // What it asks for is on top of what it has.
        if (other != connection) other->GiveBackCompletions();
      }
    }
    if (wanted() > completion_limit_) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the completion queue's ", completion_limit_,
                       " entries, the most that the device ",
                       std::string(context_->device()->name()),
                       " has, are all promised to receives and connections"));
    }
    const auto depth = static_cast<uint32_t>(cq_->depth());
    if (wanted() <= depth) break;
    const uint64_t larger = std::min<uint64_t>(
        std::max(wanted(), uint64_t{2} * depth), completion_limit_);
    const absl::Status status = cq_->Resize(static_cast<int>(larger));
    if (status.ok()) break;
    // Some devices cannot. What there is has to do from now on.
    rpc::Log(rpc::LogLevel::kInfo, status.ToString());
    completion_limit_ = depth;
  }
  reserved_completions_ += count;
  return absl::OkStatus();
}

absl::Status Poller::ReserveMoreCompletions(const PolledConnection* connection,
                                            uint32_t count) {
  if (uint64_t{reserved_completions_} + count > completion_limit_ / 2) {
    return absl::ResourceExhaustedError(
        "the other entries of the completion queue are kept for others");
  }
  return ReserveCompletions(connection, count, 0);
}

void Poller::UnreserveCompletions(uint32_t count) {
  reserved_completions_ -= count;
  for (PolledConnection* const connection :
       std::exchange(notify_when_unreserved_, {})) {
    if (connection == nullptr) continue;
    connection->waits_for_completions_ = false;
    MarkDirty(connection);
  }
}

}  // namespace rdma
