// Tells ThreadSanitizer what absl::Mutex and absl::CondVar order. See real.h.
//
// Where the library calls its own functions through the dynamic linker, they
// arrive here too; only the outermost call speaks. From a "pre" to its "post"
// the sanitizer ignores what the thread does. That is right: in there the
// library may run other threads' conditions, for which it holds the mutex.
#include "absl/synchronization/mutex.h"

#include <sanitizer/tsan_interface.h>

#include "absl/time/time.h"
#include "real.h"

namespace {

using absl::Mutex;
using verbena_tsan::Real;

// True in the outermost of this thread's calls.
class Outermost {
 public:
  Outermost() { ++depth_; }
  ~Outermost() { --depth_; }
  explicit operator bool() const { return depth_ == 1; }

 private:
  static thread_local int depth_;
};
thread_local int Outermost::depth_ = 0;

// The mutexes that this thread holds as a reader: who waits has to say how.
class ReadLocks {
 public:
  void Add(const Mutex* mutex) {
    if (count_ < kMost) held_[count_++] = mutex;
  }
  void Remove(const Mutex* mutex) {
    for (int i = count_ - 1; i >= 0; --i) {
      if (held_[i] != mutex) continue;
      held_[i] = held_[--count_];
      return;
    }
  }
  unsigned FlagsOf(const Mutex* mutex) const {
    for (int i = 0; i < count_; ++i) {
      if (held_[i] == mutex) return __tsan_mutex_read_lock;
    }
    return 0;
  }

 private:
  static constexpr int kMost = 64;
  const Mutex* held_[kMost] = {};
  int count_ = 0;
};
// Has no destructor: mutexes are used until the thread's very end.
thread_local ReadLocks read_locks;

// Announces a lock, and at its end that the mutex is locked.
class LockScope {
 public:
  LockScope(Mutex* mutex, unsigned flags) : mutex_(mutex), flags_(flags) {
    __tsan_mutex_pre_lock(mutex_, flags_);
  }
  ~LockScope() {
    if ((flags_ & __tsan_mutex_try_lock_failed) == 0 &&
        (flags_ & __tsan_mutex_read_lock) != 0) {
      read_locks.Add(mutex_);
    }
    __tsan_mutex_post_lock(mutex_, flags_, 0);
  }
  void Failed() { flags_ |= __tsan_mutex_try_lock_failed; }

 private:
  Mutex* const mutex_;
  unsigned flags_;
};

// `lock` locks `mutex`, however long it takes, in the way that `flags` says.
template <typename Call>
auto Lock(Mutex* mutex, unsigned flags, Call lock) {
  const Outermost outermost;
  if (!outermost) return lock();
  const LockScope scope(mutex, flags);
  return lock();
}

template <typename Call>
bool TryLock(Mutex* mutex, unsigned flags, Call try_lock) {
  const Outermost outermost;
  if (!outermost) return try_lock();
  LockScope scope(mutex, flags | __tsan_mutex_try_lock);
  const bool locked = try_lock();
  if (!locked) scope.Failed();
  return locked;
}

template <typename Call>
void Unlock(Mutex* mutex, unsigned flags, Call unlock) {
  const Outermost outermost;
  if (!outermost) return unlock();
  if (flags == __tsan_mutex_read_lock) read_locks.Remove(mutex);
  __tsan_mutex_pre_unlock(mutex, flags);
  unlock();
  __tsan_mutex_post_unlock(mutex, flags);
}

// `wait` unlocks `mutex` and locks it again, in the way in which it was.
template <typename Call>
auto Wait(Mutex* mutex, Call wait) {
  const Outermost outermost;
  if (!outermost) return wait();
  const unsigned flags = read_locks.FlagsOf(mutex);
  if (flags != 0) read_locks.Remove(mutex);
  __tsan_mutex_pre_unlock(mutex, flags);
  __tsan_mutex_post_unlock(mutex, flags);
  const LockScope scope(mutex, flags);
  return wait();
}

constexpr unsigned kWrite = 0;
constexpr unsigned kRead = __tsan_mutex_read_lock;

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN

Mutex::~Mutex() {
  static auto* const real = Real<void(Mutex*)>("5MutexD1Ev");
  __tsan_mutex_destroy(this, __tsan_mutex_not_static);
  real(this);
}

void Mutex::Lock() {
  static auto* const real = Real<void(Mutex*)>("5Mutex4LockEv");
  ::Lock(this, kWrite, [this] { real(this); });
}

void Mutex::Unlock() {
  static auto* const real = Real<void(Mutex*)>("5Mutex6UnlockEv");
  ::Unlock(this, kWrite, [this] { real(this); });
}

bool Mutex::TryLock() {
  static auto* const real = Real<bool(Mutex*)>("5Mutex7TryLockEv");
  return ::TryLock(this, kWrite, [this] { return real(this); });
}

void Mutex::ReaderLock() {
  static auto* const real = Real<void(Mutex*)>("5Mutex10ReaderLockEv");
  ::Lock(this, kRead, [this] { real(this); });
}

void Mutex::ReaderUnlock() {
  static auto* const real = Real<void(Mutex*)>("5Mutex12ReaderUnlockEv");
  ::Unlock(this, kRead, [this] { real(this); });
}

bool Mutex::ReaderTryLock() {
  static auto* const real = Real<bool(Mutex*)>("5Mutex13ReaderTryLockEv");
  return ::TryLock(this, kRead, [this] { return real(this); });
}

void Mutex::LockWhen(const Condition& condition) {
  static auto* const real =
      Real<void(Mutex*, const Condition&)>("5Mutex8LockWhenERKNS0_9ConditionE");
  ::Lock(this, kWrite, [&] { real(this, condition); });
}

bool Mutex::LockWhenWithTimeout(const Condition& condition, Duration timeout) {
  static auto* const real = Real<bool(Mutex*, const Condition&, Duration)>(
      "5Mutex19LockWhenWithTimeoutERKNS0_9ConditionENS0_8DurationE");
  return ::Lock(this, kWrite, [&] { return real(this, condition, timeout); });
}

bool Mutex::LockWhenWithDeadline(const Condition& condition, Time deadline) {
  static auto* const real = Real<bool(Mutex*, const Condition&, Time)>(
      "5Mutex20LockWhenWithDeadlineERKNS0_9ConditionENS0_4TimeE");
  return ::Lock(this, kWrite, [&] { return real(this, condition, deadline); });
}

void Mutex::ReaderLockWhen(const Condition& condition) {
  static auto* const real = Real<void(Mutex*, const Condition&)>(
      "5Mutex14ReaderLockWhenERKNS0_9ConditionE");
  ::Lock(this, kRead, [&] { real(this, condition); });
}

bool Mutex::ReaderLockWhenWithTimeout(const Condition& condition,
                                      Duration timeout) {
  static auto* const real = Real<bool(Mutex*, const Condition&, Duration)>(
      "5Mutex25ReaderLockWhenWithTimeoutERKNS0_9ConditionENS0_8DurationE");
  return ::Lock(this, kRead, [&] { return real(this, condition, timeout); });
}

bool Mutex::ReaderLockWhenWithDeadline(const Condition& condition,
                                       Time deadline) {
  static auto* const real = Real<bool(Mutex*, const Condition&, Time)>(
      "5Mutex26ReaderLockWhenWithDeadlineERKNS0_9ConditionENS0_4TimeE");
  return ::Lock(this, kRead, [&] { return real(this, condition, deadline); });
}

void Mutex::Await(const Condition& condition) {
  static auto* const real =
      Real<void(Mutex*, const Condition&)>("5Mutex5AwaitERKNS0_9ConditionE");
  ::Wait(this, [&] { real(this, condition); });
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  static auto* const real = Real<bool(Mutex*, const Condition&, Duration)>(
      "5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE");
  return ::Wait(this, [&] { return real(this, condition, timeout); });
}

bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  static auto* const real = Real<bool(Mutex*, const Condition&, Time)>(
      "5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE");
  return ::Wait(this, [&] { return real(this, condition, deadline); });
}

void CondVar::Wait(Mutex* mutex) {
  static auto* const real =
      Real<void(CondVar*, Mutex*)>("7CondVar4WaitEPNS0_5MutexE");
  ::Wait(mutex, [&] { real(this, mutex); });
}

bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  static auto* const real = Real<bool(CondVar*, Mutex*, Duration)>(
      "7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE");
  return ::Wait(mutex, [&] { return real(this, mutex, timeout); });
}

bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  static auto* const real = Real<bool(CondVar*, Mutex*, Time)>(
      "7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE");
  return ::Wait(mutex, [&] { return real(this, mutex, deadline); });
}

ABSL_NAMESPACE_END
}  // namespace absl
