// Timers of one poller: deadlines, retries, idle connections.
//
// A hierarchical wheel: scheduling and cancelling cost a few pointer writes, so
// that each call can have a deadline. Timers fire within about a millisecond
// after their time, never before.
//
// Time is whatever the caller says it is (nanoseconds of one clock): the wheel
// reads no clock. Thread rule: the poller's driver.
#ifndef VERBENA_RDMA_TRANSPORT_TIMER_WHEEL_H_
#define VERBENA_RDMA_TRANSPORT_TIMER_WHEEL_H_

#include <cstddef>
#include <cstdint>

namespace rdma {

class TimerWheel;

// Something to be called at a time. Lives as long as it is scheduled.
class Timer {
 public:
  Timer() = default;
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  bool scheduled() const { return next_ != nullptr; }

 protected:
  virtual ~Timer() { Unlink(); }
  // Takes itself off the wheel where it is still on it.
  void Unlink() {
    if (scheduled()) [[unlikely]]
      TakeOff();
  }

 private:
  friend class TimerWheel;

  // Off the wheel already; may schedule itself anew or delete itself.
  virtual void OnTimer() = 0;

  void TakeOff();

  TimerWheel* wheel_ = nullptr;
  Timer* next_ = nullptr;
  Timer* previous_ = nullptr;
  uint64_t expiry_tick_ = 0;
};

class TimerWheel {
 public:
  static constexpr int64_t kTickNs = 1 << 20;  // 1.05 ms
  static constexpr int64_t kNever = INT64_MAX;

  explicit TimerWheel(int64_t now_ns);
  // REQUIRES: no timer is scheduled.
  ~TimerWheel() = default;

  TimerWheel(const TimerWheel&) = delete;
  TimerWheel& operator=(const TimerWheel&) = delete;

  // Fires once at or after `time_ns`; one in the past fires with the next
  // Advance. A timer that is scheduled already is moved.
  void Schedule(Timer* timer, int64_t time_ns);
  void Cancel(Timer* timer) { timer->Unlink(); }

  // Fires what is due.
  void Advance(int64_t now_ns);

  // When Advance should be called next: not after the earliest timer; perhaps
  // before it, where that is far off. kNever without timers.
  int64_t NextAdvanceNs() const;

  bool empty() const { return count_ == 0; }

 private:
  friend class Timer;

  static constexpr int kLevels = 6;
  static constexpr int kSlotBits = 6;
  static constexpr size_t kSlots = 1 << kSlotBits;

  // A list head is a timer that is never fired.
  class Head final : public Timer {
    void OnTimer() override {}
  };

  void Insert(Timer* timer);
  void InsertInto(Head& head, Timer* timer);
  void Cascade(int level);
  void FireSlot(Head& head);

  uint64_t tick_;  // timers up to this tick have fired
  size_t count_ = 0;
  Head slots_[kLevels][kSlots];
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_TIMER_WHEEL_H_
