// Joint memory: what peers write to, made and given back by a thread.
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "memory/round_up.h"
#include "rdma_transport/registered_memory.h"

namespace rdma {
namespace {

// Huge pages, and few arenas, as a software device has 4,096 at most.
constexpr size_t kJointArenaUnit = size_t{4} << 20;
constexpr size_t kMostJointArenas = 256;
// Where the system gave none.
constexpr absl::Duration kJointRetry = absl::Seconds(10);
// A peer that does not stop writing delays the end of a region by 200 ms, in
// vain (the software device's kRevokeLimitNs). It is tried again after this.
constexpr absl::Duration kHeldRetry = absl::Seconds(5);
// Whoever presses for such bytes waits so long.
constexpr absl::Duration kJointWait = absl::Seconds(1);

}  // namespace

void RegisteredMemory::StartMakingJoint(uint64_t owner, size_t bytes) {
  if (joint_.made_for != kShared || absl::Now() < joint_.none_before) return;
  bytes = memory::RoundUp(bytes, kJointArenaUnit);
  const uint64_t limit = budget_bytes_ / 2;
  if (registered_bytes_ + bytes > limit) ReleaseFreeArenas(owner);
  uint64_t rest = registered_bytes_;  // once that is freed
  for (const auto& region : joint_.released) rest -= region->size();
  if (rest + bytes > limit ||
      joint_.arenas - joint_.released.size() >= kMostJointArenas) {
    return;
  }
  if (!joint_.thread.joinable()) {
    try {
      joint_.thread = std::thread([this] { DoJointWork(); });
    } catch (const std::system_error&) {
      joint_.none_before = absl::Now() + kJointRetry;
      return;
    }
  }
  joint_.made_for = owner;
  joint_.bytes = bytes;
  joint_wake_.Signal();
}

void RegisteredMemory::CancelMakingJoint() {
  joint_.made_for = joint_.making ? kRetired : kShared;
}

void RegisteredMemory::DoJointWork() {
  pthread_setname_np(pthread_self(), "verbena-memory");
  // Whatever the driver's, which may be a real-time one.
  const sched_param normal = {};
  pthread_setschedparam(pthread_self(), SCHED_OTHER, &normal);
  absl::MutexLock lock(&mutex_);
  while (!joint_.stops) {
    if (!joint_.released.empty()) {
      std::unique_ptr<MemoryRegion> region = std::move(joint_.released.back());
      joint_.released.pop_back();
      FreeJoint(std::move(region));
    } else if (joint_.made_for != kShared) {
      MakeJoint();
    } else if (joint_.held.empty()) {
      joint_wake_.Wait(&mutex_);
    } else if (joint_wake_.WaitWithDeadline(&mutex_, joint_.held_until)) {
      // One at a time, as it may be in vain for as long as that takes.
      std::unique_ptr<MemoryRegion> region;
      do {
        region = std::move(joint_.held.front());
        joint_.held.pop_front();
      } while (FreeJoint(std::move(region)) && !joint_.held.empty());
      joint_.held_until = absl::Now() + kHeldRetry;
    }
  }
}

void RegisteredMemory::MakeJoint() {
  const size_t bytes = joint_.bytes;
  // Not where what was to be freed is still there.
  if (registered_bytes_ + bytes > budget_bytes_ / 2 ||
      joint_.arenas >= kMostJointArenas) {
    joint_.made_for = kShared;
    return;
  }
  registered_bytes_ += bytes;
  ++joint_.arenas;
  joint_.making = true;
  mutex_.Unlock();
  absl::StatusOr<std::unique_ptr<MemoryRegion>> region =
      MemoryRegion::Create(pd_, bytes, access_, MemoryUse::kJointReads);
  mutex_.Lock();
  joint_.making = false;
  const uint64_t owner = std::exchange(joint_.made_for, kShared);
  if (!region.ok()) {
    joint_.none_before = absl::Now() + kJointRetry;
    registered_bytes_ -= bytes;
    --joint_.arenas;
  } else if (owner == kRetired) {
    joint_.released.push_back(*std::move(region));
  } else {
    AddArena(*std::move(region), owner);
  }
}

bool RegisteredMemory::FreeJoint(std::unique_ptr<MemoryRegion> region) {
  const size_t bytes = region->size();
  joint_.freeing = true;
  mutex_.Unlock();
  const bool freed = region->Free() == 0;
  mutex_.Lock();
  joint_.freeing = false;
  if (!freed) {
    if (joint_.held.empty()) joint_.held_until = absl::Now() + kHeldRetry;
    joint_.held.push_back(std::move(region));
    return false;
  }
  registered_bytes_ -= bytes;
  --joint_.arenas;
  return true;
}

bool RegisteredMemory::WaitForJointWork(size_t bytes) {
  CancelMakingJoint();
  // Nor is it made again meanwhile: this one would never see the room.
  joint_.none_before = std::max(joint_.none_before, absl::Now() + kJointWait);
  if (!joint_.making && !joint_.freeing && joint_.released.empty())
    return false;
  const auto made = +[](bool* makes) { return !*makes; };
  mutex_.Await(absl::Condition(made, &joint_.making));
  const auto done = [this, bytes]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return registered_bytes_ + bytes <= budget_bytes_ ||
           (joint_.released.empty() && !joint_.freeing);
  };
  return mutex_.AwaitWithTimeout(absl::Condition(&done), kJointWait);
}

void RegisteredMemory::ReleaseJoint(uint64_t owner) {
  absl::MutexLock lock(&mutex_);
  if (joint_.made_for == owner) CancelMakingJoint();
  for (auto it = arenas_.begin(); it != arenas_.end();) {
    Arena& arena = *it->second;
    if (arena.owner == owner && arena.used_bytes == 0) {
      it = ReleaseArena(it);
      continue;
    }
    if (arena.owner == owner) Retire(arena);
    ++it;
  }
}

void RegisteredMemory::Retire(Arena& arena) {
  std::vector<Run> free;
  std::byte* const end = arena.region->data() + arena.region->size();
  for (auto it = free_by_address_.lower_bound(arena.region->data());
       it != free_by_address_.end() && it->first < end;) {
    free.push_back(it->second);
    EraseFree(it++);
  }
  arena.owner = kRetired;
  for (const Run& run : free) InsertFree(run);
}

}  // namespace rdma
