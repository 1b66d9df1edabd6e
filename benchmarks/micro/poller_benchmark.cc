// A turn of a poller that finds nothing: what a driver that spins does over and
// over, and so what a message waits for at most before it is seen.
//
//   bazel run -c opt //benchmarks/micro:poller_benchmark
//
// The argument is idle connections on the poller's CQ. Included is what only
// some turns do: reading the clock, timers, events. The turns are counted where
// the driver polls its CQ, by a function put in front of the device's, which
// adds a call through a pointer.
#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "benchmark/benchmark.h"
#include "benchmarks/micro/soft_endpoint.h"
#include "rdma_transport/device_context.h"
#include "rdma_transport/poller.h"
#include "rdma_transport/verbs/queues.h"
#include "rpc/transport.h"

namespace {

using benchmarks::OrDie;
using benchmarks::SoftEndpoint;

// Sets an event in the last of a number of polls. One at a time.
class PollCount {
 public:
  static void PutInFrontOf(ibv_context* context) {
    real_ = std::exchange(context->ops.poll_cq, &Poll);
  }
  static void SetAfter(int64_t polls, rpc::Event* event) {
    left_ = polls;
    event_ = event;
  }

 private:
  static int Poll(ibv_cq* cq, int capacity, ibv_wc* completions) {
    if (--left_ == 0) event_->Set();
    return real_(cq, capacity, completions);
  }

  inline static int (*real_)(ibv_cq*, int, ibv_wc*);
  inline static int64_t left_;
  inline static rpc::Event* event_;
};

class NoCalls final : public rdma::CallDeliverer {
 public:
  void DeliverNext(rdma::Call&) override {}
};

void EmptyTurn(benchmark::State& state) {
  constexpr int64_t kTurns = 1024;
  auto context = OrDie(rdma::DeviceContext::Create(benchmarks::OpenSoftDevice(),
                                                   uint64_t{64} << 20));
  NoCalls no_calls;
  // Without keepers, and never asleep: this thread drives.
  const auto poller =
      OrDie(rdma::Poller::Create(context, &no_calls, {.spin = absl::Hours(1)}));
  SoftEndpoint peer(0);
  std::vector<std::unique_ptr<rdma::QueuePair>> idle;
  for (int64_t i = 0; i < state.range(0); ++i) {
    idle.push_back(OrDie(rdma::QueuePair::Create(
        context->pd(), poller->cq(), poller->srq(),
        {16, 1, context->device()->max_inline_data()})));
    benchmarks::Connect(poller->connection_manager(), idle.back()->get(),
                        peer.manager(), peer.AddQp()->get());
  }
  PollCount::PutInFrontOf(context->device()->context());
  rpc::Event enough;
  while (state.KeepRunningBatch(kTurns)) {
    PollCount::SetAfter(kTurns, &enough);
    poller->Wait(enough);
    enough.Reset();
  }
}
BENCHMARK(EmptyTurn)->Arg(0)->Arg(1)->Arg(64);

}  // namespace
