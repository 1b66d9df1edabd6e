// A completion channel: what a thread sleeps on until an armed CQ has news.
//
// `fd` is an epoll descriptor, readable while GetEvent may have an event: it
// watches the links of the channel's QPs, which peers ring where a CQ is armed,
// an event counter for what this side does itself, and a timer. The work that
// follows a ring (taking packets in, completing) is done by GetEvent, because
// nobody else would do it.
//
// Thread rule: as its CQs; Notify from any thread that may use one of them.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_COMPLETION_CHANNEL_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_COMPLETION_CHANNEL_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "rdma_transport/provider/unique_fd.h"
#include "rdma_transport/software/clock.h"
#include "rdma_transport/software/engine/poll_target.h"

namespace rdma::soft {

class CompletionQueue;

class CompletionChannel final : public ibv_comp_channel {
 public:
  // Null and errno where descriptors ran out.
  static std::unique_ptr<CompletionChannel> Create(ibv_context* context,
                                                   Clock* clock);

  // Takes the next event: the CQ, or null and errno EAGAIN.
  CompletionQueue* GetEvent();

  // --- For CQs and QPs ---

  void Add(CompletionQueue* cq);
  // Also drops the CQ's events that nobody took.
  void Remove(CompletionQueue* cq);

  // Watches a link's descriptor. False: no more descriptors can be watched.
  bool Watch(int link_fd, PollTarget* target);
  void Unwatch(int link_fd);

  // `cq` has an event.
  void Post(CompletionQueue* cq);
  // Somebody may sleep while there is work that no peer will ring for.
  void Kick();
  // Wakes at this time of the clock at the latest.
  void WakeAt(int64_t deadline_ns);

 private:
  CompletionChannel(ibv_context* context, Clock* clock, UniqueFd epoll,
                    UniqueFd counter, UniqueFd timer);

  // Does what the descriptors ask for.
  void ServeDescriptors();
  // Does the work of all CQs.
  void ProgressAll();
  bool AnyBusy() const;
  void ClearCounterIfIdle();

  Clock* const clock_;
  const UniqueFd epoll_;
  const UniqueFd counter_;
  const UniqueFd timer_;
  bool counter_set_ = false;
  int64_t wake_at_ns_ = 0;  // 0: the timer is off
  std::deque<CompletionQueue*> pending_;
  std::vector<CompletionQueue*> cqs_;
};

inline CompletionChannel* FromVerbs(ibv_comp_channel* channel) {
  return static_cast<CompletionChannel*>(channel);
}

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_COMPLETION_CHANNEL_H_
