// Counts what a warm call must not do, apart for its two sides: allocate, take
// locks, call the kernel.
//
//   Tally& tally = Tally::Map(fd);  // of Tally::CreateShared
//   CountOnThisThread(&tally);
//   tally.SetSide(Side::kClient);
//   ...                             // is the client's
//   tally.SetSide(Side::kNobody);
//   tally[Side::kClient].allocations
//
// Allocations and locks are counted within the program (counted_functions.h),
// system calls by the one that traces it (program.h), into the same memory.
//
// Thread rule: one thread; the process that traces it writes while it is
// stopped.
#ifndef VERBENA_TESTS_WARM_CALL_TALLY_H_
#define VERBENA_TESTS_WARM_CALL_TALLY_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace warm_call {

enum class Side : int { kNobody, kClient, kServer };

struct Counts {
  int64_t allocations = 0;
  int64_t locks = 0;
  int64_t system_calls = 0;
  int64_t last_system_call = -1;  // its number
};

class Tally {
 public:
  // A descriptor that a child inherits, or -1 and errno.
  static int CreateShared();
  // Maps what CreateShared made, for as long as the process lives.
  static Tally& Map(int fd);

  Tally(const Tally&) = delete;
  Tally& operator=(const Tally&) = delete;

  // What follows is done for `side`.
  void SetSide(Side side) { side_.store(side, std::memory_order_relaxed); }
  const Counts& operator[](Side side) const {
    return counts_[static_cast<size_t>(side)];
  }

  void CountAllocation() { ++Current().allocations; }
  void CountLock() { ++Current().locks; }
  void CountSystemCall(int64_t number) {
    ++Current().system_calls;
    Current().last_system_call = number;
  }

 private:
  Tally() = default;

  Counts& Current() {
    return counts_[static_cast<size_t>(side_.load(std::memory_order_relaxed))];
  }

  std::atomic<Side> side_{Side::kNobody};
  std::array<Counts, 3> counts_;
};

}  // namespace warm_call

#endif  // VERBENA_TESTS_WARM_CALL_TALLY_H_
