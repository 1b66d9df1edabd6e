// A device's asynchronous events, ibv_get_async_event(3): SRQ limits, last
// receives, CQ overruns. `fd` is readable while there is one.
//
//   events.Raise(IBV_EVENT_SRQ_LIMIT_REACHED, srq);
//   ibv_async_event event;
//   if (events.Get(&event) == 0) { ... events.Ack(event); }
//
// Thread rule: thread-safe.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_ASYNC_EVENTS_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_ASYNC_EVENTS_H_

#include <infiniband/verbs.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <unordered_map>

#include "absl/status/statusor.h"
#include "rdma_transport/provider/unique_fd.h"

namespace rdma::soft {

class AsyncEvents {
 public:
  // Fails where there is no descriptor left.
  static absl::StatusOr<std::unique_ptr<AsyncEvents>> Create();

  int fd() const { return fd_.get(); }

  // `object` is the ibv_cq, ibv_qp or ibv_srq that the event names.
  void Raise(ibv_event_type type, void* object);

  // 0, or -1 and EAGAIN.
  int Get(ibv_async_event* event);
  void Ack(const ibv_async_event& event);

  // Before an object goes: drops its events that nobody got, and waits until
  // those that somebody got are acknowledged, as the man page has it.
  void Forget(void* object);

 private:
  explicit AsyncEvents(UniqueFd fd) : fd_(std::move(fd)) {}

  const UniqueFd fd_;
  std::mutex mutex_;
  std::condition_variable acknowledged_;
  std::deque<ibv_async_event> pending_;     // guarded by mutex_
  std::unordered_map<void*, int> unacked_;  // guarded by mutex_
};

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_ASYNC_EVENTS_H_
