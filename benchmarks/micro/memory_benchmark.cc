// What a buffer costs to get and to give back: to send from, and to receive
// into.
//
//   bazel run -c opt //benchmarks/micro:memory_benchmark
//
// The argument is the buffer's size in bytes. Memory is registered before; its
// bytes are not touched.
#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "benchmark/benchmark.h"
#include "benchmarks/micro/soft_endpoint.h"
#include "rdma_transport/receive_pool.h"
#include "rdma_transport/registered_memory.h"
#include "rdma_transport/verbs/protection_domain.h"
#include "rdma_transport/verbs/queues.h"
#include "rpc/buffer.h"

namespace {

using benchmarks::OrDie;

constexpr uint64_t kBudgetBytes = uint64_t{256} << 20;

void AllocateAndRelease(benchmark::State& state) {
  const auto bytes = static_cast<size_t>(state.range(0));
  const std::unique_ptr<rdma::Device> device = benchmarks::OpenSoftDevice();
  const auto pd = OrDie(rdma::ProtectionDomain::Create(device.get()));
  rdma::RegisteredMemory memory(pd.get(), kBudgetBytes);
  for (auto _ : state) {
    rpc::Buffer buffer = OrDie(memory.Allocate(bytes));
    benchmark::DoNotOptimize(buffer);
  }
}
BENCHMARK(AllocateAndRelease)->RangeMultiplier(32)->Range(1 << 10, 32 << 20);

// An SRQ that only remembers what was posted: the pool's own work is what is
// measured, without the device's. One at a time.
class PostedReceives {
 public:
  explicit PostedReceives(ibv_context* context) {
    wr_ids_.clear();
    context->ops.post_srq_recv = [](ibv_srq*, ibv_recv_wr* wr, ibv_recv_wr**) {
      for (; wr != nullptr; wr = wr->next) wr_ids_.push_back(wr->wr_id);
      return 0;
    };
  }

  // The one that a message came into.
  uint64_t Next() {
    const uint64_t wr_id = wr_ids_.back();
    wr_ids_.pop_back();
    return wr_id;
  }

 private:
  inline static std::vector<uint64_t> wr_ids_;
};

void ReceiveAndReplenish(benchmark::State& state) {
  constexpr uint32_t kDepth = 1024;
  const std::unique_ptr<rdma::Device> device = benchmarks::OpenSoftDevice();
  const auto pd = OrDie(rdma::ProtectionDomain::Create(device.get()));
  auto srq = OrDie(rdma::SharedReceiveQueue::Create(pd.get(), kDepth, 1));
  PostedReceives posted(device->context());
  rdma::ReceivePool* const pool = OrDie(rdma::ReceivePool::Create(
      pd.get(), srq.get(), /*keep_alive=*/nullptr,
      {static_cast<uint32_t>(state.range(0)), kBudgetBytes, kDepth}));
  if (const absl::Status status = pool->Reserve(64); !status.ok()) {
    benchmarks::Die(status);
  }
  for (auto _ : state) {
    rpc::Buffer buffer = pool->Take(posted.Next(), 64);
    benchmark::DoNotOptimize(pool->IsTight());
    benchmark::DoNotOptimize(buffer);
    buffer.reset();
    pool->Replenish();
  }
  srq.reset();
  pool->Close();
}
BENCHMARK(ReceiveAndReplenish)->Arg(10240);

}  // namespace
