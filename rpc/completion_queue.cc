#include "rpc/completion_queue.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "rpc/internal/callback_scope.h"
#include "rpc/logging.h"

namespace rpc {

CompletionQueue::~CompletionQueue() {
  absl::MutexLock lock(&mutex_);
  if (under_way_ == 0) return;
  Log(LogLevel::kError,
      absl::StrCat("a CompletionQueue is destroyed with ", under_way_,
                   " operations under way: Shutdown, and take events until "
                   "Next says false"));
}

bool CompletionQueue::Begin(ChannelInterface* channel) {
  absl::MutexLock lock(&mutex_);
  if (shut_down_) return false;
  // A new channel may be where one was that is gone.
  if (channel != nullptr && (channel != channel_ || weak_channel_.expired())) {
    channel_ = channel;
    weak_channel_ = channel->weak_from_this();
  }
  ++under_way_;
  return true;
}

bool CompletionQueue::IsDriving(const ChannelInterface& channel) const {
  return driven_.load(std::memory_order_relaxed) ==
         channel.call_target().transport->driven();
}

// A thread that changes over would be waited for where it was.
std::shared_ptr<ChannelInterface> CompletionQueue::Visit(
    const std::shared_ptr<ChannelInterface>& channel) {
  const void* const driven =
      channel == nullptr ? nullptr : channel->call_target().transport->driven();
  if (driven == driven_.load(std::memory_order_relaxed)) {
    if (visited_.expired()) visited_ = channel;
    return nullptr;
  }
  driven_.store(driven, std::memory_order_relaxed);
  std::shared_ptr<ChannelInterface> before = visited_.lock();
  visited_ = channel;
  return before;
}

void CompletionQueue::SetServerTransport(
    std::weak_ptr<ServerTransport> transport) {
  absl::MutexLock lock(&mutex_);
  weak_server_ = std::move(transport);
}

void CompletionQueue::Push(internal::CompletionQueueTag* tag, bool ok) {
  tag->ok_ = ok;
  tag->next_event_ = nullptr;
  Waiter* waiter;
  {
    absl::MutexLock lock(&mutex_);
    waiter = WaiterForEvent();
    if (waiter == nullptr) {
      (first_ == nullptr ? first_ : last_->next_event_) = tag;
      last_ = tag;
      return;
    }
    RemoveWaiter(waiter);
    waiter->got = tag;
    if (--under_way_ == 0 && shut_down_) WakeAll();
  }
  Wake(waiter);
}

void CompletionQueue::Wake(Waiter* waiter) {
  if (waiter->thread == internal::CallbackScope::ThisThread()) {
    waiter->event.SetByWaiter();
    return;
  }
  // The waiter goes as soon as its event is set, and may sleep through one that
  // no callback of its transport sets.
  const std::shared_ptr<ChannelInterface> channel = waiter->channel;
  const std::shared_ptr<ServerTransport> server = waiter->server;
  waiter->event.Set();
  if (channel != nullptr) {
    channel->call_target().transport->WakeWaiters();
  } else if (server != nullptr) {
    server->WakeWaiters();
  }
}

void CompletionQueue::Shutdown() {
  absl::MutexLock lock(&mutex_);
  shut_down_ = true;
  if (IsOver()) WakeAll();
}

CompletionQueue::NextStatus CompletionQueue::NextUntil(void** tag, bool* ok,
                                                       absl::Time deadline) {
  while (true) {
    internal::CompletionQueueTag* event = nullptr;
    const NextStatus status = Take(&event, deadline);
    if (status != GOT_EVENT) return status;
    *ok = event->ok_;
    if (event->FinalizeResult(tag, ok)) return GOT_EVENT;
  }
}

CompletionQueue::NextStatus CompletionQueue::Take(
    internal::CompletionQueueTag** event, absl::Time deadline) {
  Waiter waiter;
  std::shared_ptr<ChannelInterface> not_visited;
  {
    absl::MutexLock lock(&mutex_);
    *event = PopEvent();
    if (*event != nullptr) return GOT_EVENT;
    if (IsOver()) return SHUTDOWN;
    if (deadline == absl::InfiniteFuture()) {
      waiter.channel = weak_channel_.lock();
      if (waiter.channel == nullptr) waiter.server = weak_server_.lock();
    }
    not_visited = Visit(waiter.channel);
    AddWaiter(&waiter);
  }
  if (not_visited != nullptr) {
    not_visited->call_target().transport->EndVisits();
    not_visited.reset();
  }
  if (waiter.channel != nullptr) {
    waiter.channel->call_target().transport->WaitAsGuest(waiter.event);
  } else if (waiter.server != nullptr) {
    waiter.server->Wait(waiter.event);
  }
  if (!waiter.event.WaitUntil(deadline)) {
    absl::MutexLock lock(&mutex_);
    if (!waiter.event.is_set() && waiter.got == nullptr) {
      RemoveWaiter(&waiter);
      return TIMEOUT;
    }
  }
  // Whoever took it out of the list sets it soon.
  waiter.event.WaitUntil(absl::InfiniteFuture());
  *event = waiter.got;
  return *event == nullptr ? SHUTDOWN : GOT_EVENT;
}

internal::CompletionQueueTag* CompletionQueue::PopEvent() {
  internal::CompletionQueueTag* const event = first_;
  if (event == nullptr) return nullptr;
  first_ = event->next_event_;
  if (--under_way_ == 0 && shut_down_) WakeAll();
  return event;
}

// The thread that brings the event, where it is one that waits: it needs not be
// woken.
CompletionQueue::Waiter* CompletionQueue::WaiterForEvent() {
  const void* const self = internal::CallbackScope::ThisThread();
  for (Waiter* waiter = waiters_; waiter != nullptr; waiter = waiter->next) {
    if (waiter->thread == self) return waiter;
  }
  return waiters_;
}

void CompletionQueue::AddWaiter(Waiter* waiter) {
  waiter->next = waiters_;
  if (waiters_ != nullptr) waiters_->previous = waiter;
  waiters_ = waiter;
}

void CompletionQueue::RemoveWaiter(Waiter* waiter) {
  if (waiter->previous != nullptr) waiter->previous->next = waiter->next;
  if (waiter->next != nullptr) waiter->next->previous = waiter->previous;
  if (waiters_ == waiter) waiters_ = waiter->next;
}

void CompletionQueue::WakeAll() {
  while (waiters_ != nullptr) {
    Waiter* const waiter = waiters_;
    RemoveWaiter(waiter);
    Wake(waiter);
  }
}

}  // namespace rpc
