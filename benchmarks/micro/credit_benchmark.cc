// What a frame costs in the accounts of flow control, both sides of it.
//
//   bazel run -c opt //benchmarks/micro:credit_benchmark
//
// The argument is the window.
#include <cstdint>

#include "benchmark/benchmark.h"
#include "rdma_transport/credit_window.h"

namespace {

using rdma::ReceiveCredits;
using rdma::SendCredits;

// One direction of a connection.
struct Direction {
  explicit Direction(benchmark::State& state) {
    sender.Reset(static_cast<uint32_t>(state.range(0)));
    receiver.Reset(static_cast<uint32_t>(state.range(0)));
  }

  // False: a law of flow control does not hold.
  bool Frame() {
    if (!sender.CanSend()) return false;
    sender.Spend();
    return receiver.Consume();
  }
  bool Grant() { return sender.Add(receiver.Grant()); }

  SendCredits sender;
  ReceiveCredits receiver;
};

constexpr char kBroken[] = "the credits do not add up";

// A frame that is answered: the answer grants its credit again.
void AnsweredFrame(benchmark::State& state) {
  Direction direction(state);
  for (auto _ : state) {
    if (!direction.Frame() || !direction.Grant()) {
      state.SkipWithError(kBroken);
      break;
    }
    benchmark::DoNotOptimize(direction);
  }
}
BENCHMARK(AnsweredFrame)->Arg(3)->Arg(256);

// Frames one way: credits come back when half the window is owed.
void UnansweredFrame(benchmark::State& state) {
  Direction direction(state);
  for (auto _ : state) {
    if (!direction.Frame() ||
        (direction.receiver.ShouldGrantNow() && !direction.Grant())) {
      state.SkipWithError(kBroken);
      break;
    }
    benchmark::DoNotOptimize(direction);
  }
}
BENCHMARK(UnansweredFrame)->Arg(3)->Arg(256);

}  // namespace
