#include "rpc/internal/large_spares.h"

#include <algorithm>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "rpc/internal/alarm_clock.h"

namespace rpc::internal {

// An alarm looks at it as long as there is something on it. It may go off when
// the owner is gone, and so keeps it, too.
class LargeSpares::Shelf final : public std::enable_shared_from_this<Shelf>,
                                 private AlarmClock::Alarm {
 public:
  FreeListNode* Take() {
    absl::MutexLock lock(&mutex_);
    if (nodes_.count == 0) return nullptr;
    FreeListNode* const node = nodes_.Pop();
    least_ = std::min(least_, nodes_.count);
    return node;
  }

  // The owner goes, and with it perhaps what the nodes need to be deleted.
  void Clear() {
    FreeListStack rest;
    {
      absl::MutexLock lock(&mutex_);
      nodes_.MoveTo(rest, kMost);
      mutex_.Await(absl::Condition(
          +[](bool* is_deleting) { return !*is_deleting; }, &is_deleting_));
    }
    rest.DeleteAll();
  }

  // False: there are enough.
  bool Give(FreeListNode* node) {
    {
      absl::MutexLock lock(&mutex_);
      if (nodes_.count == kMost) return false;
      nodes_.Push(node);
      if (watched_ != nullptr) return true;
      watched_ = shared_from_this();
    }
    SetAlarm();
    return true;
  }

 private:
  void SetAlarm() { AlarmClock::Get().Set(this, absl::Now() + kIdleTimeout); }

  void OnTime() override {
    FreeListStack idle;
    std::shared_ptr<Shelf> self;
    {
      absl::MutexLock lock(&mutex_);
      nodes_.MoveTo(idle, least_);
      least_ = nodes_.count;
      is_deleting_ = true;
    }
    idle.DeleteAll();
    {
      absl::MutexLock lock(&mutex_);
      is_deleting_ = false;
      if (nodes_.count == 0) self = std::move(watched_);
    }
    if (self == nullptr) SetAlarm();
  }

  absl::Mutex mutex_;
  FreeListStack nodes_ ABSL_GUARDED_BY(mutex_);
  // The fewest there were since the last look: so many were not needed.
  uint32_t least_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_deleting_ ABSL_GUARDED_BY(mutex_) = false;
  // Itself, while the alarm is set.
  std::shared_ptr<Shelf> watched_ ABSL_GUARDED_BY(mutex_);
};

LargeSpares::LargeSpares() : shelf_(std::make_shared<Shelf>()) {}

LargeSpares::~LargeSpares() { shelf_->Clear(); }

FreeListNode* LargeSpares::Take() { return shelf_->Take(); }

void LargeSpares::Give(FreeListNode* node) {
  if (!shelf_->Give(node)) delete node;
}

}  // namespace rpc::internal
