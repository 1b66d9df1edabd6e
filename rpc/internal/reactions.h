// What happened to a stream that its reactor has not been told of yet.
//
// Any thread notes what happened; one thread at a time tells the reactor, so
// that a user's reactions never run at the same time. It is the thread that
// noted first, unless that is within a user's own call of a stream, who may
// hold locks there: then it is one of Executor::ForCallbacks.
//
// Each operation that was begun and each hold keeps the end away: OnEnd runs
// when none is left, and nothing is told after it.
//
// Thread rule: Note, Hold and Release from any thread.
#ifndef VERBENA_RPC_INTERNAL_REACTIONS_H_
#define VERBENA_RPC_INTERNAL_REACTIONS_H_

#include <atomic>
#include <cstdint>

#include "rpc/internal/stream_operation.h"

namespace rpc::internal {

class Reactions {
 public:
  // What there is to tell; of each at most one at a time.
  enum Event : uint32_t {
    kInitialMetadata = 1,
    kRead = 2,
    kWrite = 4,
    kWritesDone = 8,
    kCancel = 16,
    kOver = 32,
  };

  // An operation of a stream whose completion is an event.
  class Operation final : public StreamOperation {
   public:
    Operation(Reactions* reactions, Event event)
        : reactions_(*reactions), event_(event) {}
    void Complete(bool ok) override {
      ok_ = ok;
      reactions_.Note(event_);
    }
    bool ok() const { return ok_; }

   private:
    Reactions& reactions_;
    const Event event_;
    bool ok_ = false;
  };

  // For the stack of what a user calls, of any stream.
  class UserScope {
   public:
    UserScope() { ++depth_; }
    ~UserScope() { --depth_; }
    UserScope(const UserScope&) = delete;
    UserScope& operator=(const UserScope&) = delete;

   private:
    friend class Reactions;
    static constinit thread_local int depth_;
  };

 protected:
  Reactions() = default;
  ~Reactions() = default;
  // As new, with one hold.
  void Reset();

  void Hold(int64_t count = 1) {
    holds_.fetch_add(count, std::memory_order_relaxed);
  }
  // The end may come of it.
  void Release() {
    if (holds_.fetch_sub(1, std::memory_order_acq_rel) == 1) Note(kEnd);
  }
  // It happened, and React is due.
  void Note(uint32_t event);
  // Nobody is told anything until Continue. REQUIRES: nothing can have been
  // noted yet.
  void Pause() { state_.store(kRunning, std::memory_order_relaxed); }
  void Continue();
  // What PostReactions has a thread do.
  void Run();

 private:
  // Besides the events: no hold is left; somebody is in Run, or will be.
  enum : uint32_t { kEnd = uint32_t{1} << 30, kRunning = uint32_t{1} << 31 };

  // Tells the user.
  virtual void React(Event event) = 0;
  // The last thing that happens: nothing touches this object afterwards.
  virtual void OnEnd() = 0;
  // Has another thread call Run, or calls it where there is none.
  virtual void PostReactions() = 0;

  // Run, here or elsewhere.
  void Begin();

  std::atomic<uint32_t> state_{0};
  std::atomic<int64_t> holds_{1};
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_REACTIONS_H_
