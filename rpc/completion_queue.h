// Where the asynchronous API says that an operation is done.
//
//   rpc::CompletionQueue queue;
//   auto call = stub->AsyncSayHello(&context, request, &queue);
//   call->Finish(&response, &status, tag);
//   void* done;
//   bool ok;
//   while (queue.Next(&done, &ok)) ...
//
// Each operation that was begun with a tag gives one event. What `ok` means is
// as in gRPC: of a read, that there was a message; of a write, that it is on
// its way; of a client's Finish always true; of a server's request for a call,
// that there is one (false: the server shuts down).
//
// A queue ends by Shutdown, after which operations that are under way still
// give their events, and Next says false after the last. It must not be
// destroyed before that where operations are under way.
//
// A thread in Next drives the transport of the calls that were begun last, as
// one in a blocking call does: an answer costs no hand-over between threads. So
// does one in a server's queue, where all of the server's methods are
// asynchronous (a handler of another API would run on it). AsyncNext with a
// deadline sleeps instead.
//
// Thread rule: any thread. Several may wait in Next; each event goes to one.
// Messages are parsed by the thread that gets the event.
#ifndef VERBENA_RPC_COMPLETION_QUEUE_H_
#define VERBENA_RPC_COMPLETION_QUEUE_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rpc/channel_interface.h"
#include "rpc/internal/callback_scope.h"
#include "rpc/internal/deadline.h"
#include "rpc/transport.h"

namespace rpc {

class CompletionQueue;

namespace internal {

// What an operation puts into a queue. A part of the operation: an event costs
// no memory of its own.
class CompletionQueueTag {
 public:
  // On the thread that takes the event: what is left to do, and what the user
  // is to see. False: nothing, the event was the runtime's own. May destroy
  // this object.
  virtual bool FinalizeResult(void** tag, bool* ok) = 0;

 protected:
  ~CompletionQueueTag() = default;

 private:
  friend class rpc::CompletionQueue;
  bool ok_ = false;
  CompletionQueueTag* next_event_ = nullptr;
};

}  // namespace internal

class CompletionQueue {
 public:
  enum NextStatus {
    SHUTDOWN,   // it is shut down, and no event is left
    GOT_EVENT,  // *tag and *ok are set
    TIMEOUT,    // the deadline passed
  };

  CompletionQueue() = default;
  virtual ~CompletionQueue();
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  // Waits for an event. False: the queue is shut down, and none is left.
  bool Next(void** tag, bool* ok) {
    return NextUntil(tag, ok, absl::InfiniteFuture()) == GOT_EVENT;
  }
  // The same with a deadline: absl::Time, or a time point of std::chrono's
  // system or steady clock. One that has passed takes what is there.
  template <class T>
  NextStatus AsyncNext(void** tag, bool* ok, const T& deadline) {
    return NextUntil(tag, ok, internal::ToTime(deadline));
  }
  // Begins something first.
  template <class T, class F>
  NextStatus DoThenAsyncNext(F&& f, void** tag, bool* ok, const T& deadline) {
    f();
    return AsyncNext(tag, ok, deadline);
  }

  // Nothing may be begun any more. May be called more than once.
  void Shutdown();

  // ---- For the runtime.

  // An operation begins: an event will come. False, with no effect: the queue
  // is shut down. `channel`: a client's, whose transport it is of.
  bool Begin(ChannelInterface* channel = nullptr);
  // Whether threads in Next drive the channel's transport, or have just done so
  // and come back.
  bool IsDriving(const ChannelInterface& channel) const;
  // What threads drive that have no calls of a channel to wait for.
  void SetServerTransport(std::weak_ptr<ServerTransport> transport);
  // It is done.
  void Push(internal::CompletionQueueTag* tag, bool ok);

 private:
  // A thread in Next; on its stack.
  struct Waiter {
    Event event;
    internal::CompletionQueueTag* got = nullptr;
    // What it drives, if anything: the channel's, or else the server's.
    std::shared_ptr<ChannelInterface> channel;
    std::shared_ptr<ServerTransport> server;
    const void* const thread = internal::CallbackScope::ThisThread();
    Waiter* previous = nullptr;
    Waiter* next = nullptr;
  };

  // A thread comes to drive `channel`, or null for none. Gives what is to hear
  // of EndVisits, or null.
  std::shared_ptr<ChannelInterface> Visit(
      const std::shared_ptr<ChannelInterface>& channel)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  NextStatus NextUntil(void** tag, bool* ok, absl::Time deadline);
  NextStatus Take(internal::CompletionQueueTag** event, absl::Time deadline);
  internal::CompletionQueueTag* PopEvent()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddWaiter(Waiter* waiter) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Waiter* WaiterForEvent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveWaiter(Waiter* waiter) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sets the event of one that was removed. The queue may be gone then.
  static void Wake(Waiter* waiter);
  // Shut down, and no event is under way.
  bool IsOver() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return shut_down_ && under_way_ == 0;
  }
  // Has all that wait find out that it IsOver.
  void WakeAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t under_way_ ABSL_GUARDED_BY(mutex_) = 0;  // begun and not taken
  internal::CompletionQueueTag* first_ ABSL_GUARDED_BY(mutex_) = nullptr;
  internal::CompletionQueueTag* last_ ABSL_GUARDED_BY(mutex_) = nullptr;
  const ChannelInterface* channel_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::weak_ptr<ChannelInterface> weak_channel_ ABSL_GUARDED_BY(mutex_);
  std::weak_ptr<ServerTransport> weak_server_ ABSL_GUARDED_BY(mutex_);
  // What the thread that came last drives, if it is a channel's.
  std::weak_ptr<ChannelInterface> visited_ ABSL_GUARDED_BY(mutex_);
  std::atomic<const void*> driven_{nullptr};  // ClientTransport::driven
  // The one that came last first: its stack is still warm.
  Waiter* waiters_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

// A server's; made by ServerBuilder::AddCompletionQueue. Shut it down after the
// server, and take what is left in it.
class ServerCompletionQueue final : public CompletionQueue {
 public:
  explicit ServerCompletionQueue(bool is_frequently_polled)
      : is_frequently_polled_(is_frequently_polled) {}
  bool IsFrequentlyPolled() const { return is_frequently_polled_; }

 private:
  const bool is_frequently_polled_;
};

}  // namespace rpc

#endif  // VERBENA_RPC_COMPLETION_QUEUE_H_
