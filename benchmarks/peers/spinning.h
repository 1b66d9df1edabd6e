// When a loop that spins is to end: it asks with every turn that brought no
// work, and every some thousand of these the kernel is asked.
//
//   StopWatch watch(stop_fd);             // in the server
//   while (Poll() || !watch.MustStop()) {
//   }
//
// Not thread-safe.
#ifndef VERBENA_BENCHMARKS_PEERS_SPINNING_H_
#define VERBENA_BENCHMARKS_PEERS_SPINNING_H_

#include <cstdint>

namespace benchmarks {

// Of the server: whether `stop_fd` can be read or has hung up.
class StopWatch {
 public:
  explicit StopWatch(int stop_fd) : stop_fd_(stop_fd) {}
  bool MustStop() { return ++idle_turns_ % kTurns == 0 && IsReadable(); }

 private:
  static constexpr uint32_t kTurns = 10'000;

  bool IsReadable() const;

  const int stop_fd_;
  uint32_t idle_turns_ = 0;
};

// Of the client: whether its child, the server, has ended, so that no answer
// will come any more.
class ChildWatch {
 public:
  bool IsGone() { return ++idle_turns_ % kTurns == 0 && HasExited(); }

 private:
  static constexpr uint32_t kTurns = 1'000'000;

  static bool HasExited();

  uint32_t idle_turns_ = 0;
};

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_PEERS_SPINNING_H_
