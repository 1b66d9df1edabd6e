// The software device from post to poll, without the way between two CPUs: one
// thread posts at one end and polls at the other.
//
//   bazel run -c opt //benchmarks/micro:soft_device_benchmark
//
// Between two processes on two CPUs: //benchmarks:soft_echo. The argument is
// bytes of payload, or connections that are idle.
#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

#include "benchmark/benchmark.h"
#include "benchmarks/micro/soft_endpoint.h"
#include "rdma_transport/verbs/protection_domain.h"

namespace {

using benchmarks::Connect;
using benchmarks::SoftEndpoint;

// As the transport does it: most sends make no completion.
constexpr uint32_t kSignalEvery = 32;
// Polls until something came, at most: it is there already.
constexpr int kMaxPolls = 1000;

ibv_qp* ConnectOne(SoftEndpoint& from, SoftEndpoint& to) {
  ibv_qp* const qp = from.AddQp()->get();
  Connect(from.manager(), qp, to.manager(), to.AddQp()->get());
  return qp;
}

// The next completion; false where none comes, or one of a failure.
bool PollOne(SoftEndpoint& endpoint, ibv_wc* completion) {
  for (int i = 0; i < kMaxPolls; ++i) {
    const int count = ibv_poll_cq(endpoint.cq(), 1, completion);
    if (count != 0) return count == 1 && completion->status == IBV_WC_SUCCESS;
  }
  return false;
}

bool Post(ibv_qp* qp, ibv_send_wr wr, void* local, uint32_t bytes,
          uint32_t lkey) {
  ibv_sge sge = {reinterpret_cast<uint64_t>(local), bytes, lkey};
  wr.sg_list = &sge;
  wr.num_sge = 1;
  ibv_send_wr* bad;
  return ibv_post_send(qp, &wr, &bad) == 0;
}

// Post a SEND, poll it, post its receive again.
void SendToPoll(benchmark::State& state) {
  const auto bytes = static_cast<uint32_t>(state.range(0));
  SoftEndpoint from(SoftEndpoint::kReceiveBytes), to(0);
  ibv_qp* const qp = ConnectOne(from, to);
  ibv_send_wr wr = {};
  wr.opcode = IBV_WR_SEND_WITH_IMM;
  const unsigned int inline_flag =
      bytes <= from.device().max_inline_data() ? IBV_SEND_INLINE : 0;
  ibv_wc completion;
  for (auto _ : state) {
    const bool signaled = ++wr.imm_data % kSignalEvery == 0;
    wr.send_flags = inline_flag | (signaled ? IBV_SEND_SIGNALED : 0);
    if (!Post(qp, wr, from.memory().data(), bytes, from.memory().lkey()) ||
        !PollOne(to, &completion)) {
      state.SkipWithError("a SEND did not arrive");
      break;
    }
    to.Repost(completion.wr_id);
    if (signaled && !PollOne(from, &completion)) {
      state.SkipWithError("a SEND did not complete");
      break;
    }
    benchmark::DoNotOptimize(completion);
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(SendToPoll)->Arg(0)->Arg(64)->Arg(256)->Arg(1024)->Arg(8 << 10);

// Post a READ, poll its completion: the requester copies.
void ReadToPoll(benchmark::State& state) {
  const auto bytes = static_cast<uint32_t>(state.range(0));
  SoftEndpoint from(bytes), to(bytes);
  ibv_qp* const qp = ConnectOne(from, to);
  ibv_send_wr wr = {};
  wr.opcode = IBV_WR_RDMA_READ;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma = {reinterpret_cast<uint64_t>(to.memory().data()),
                to.memory().rkey()};
  ibv_wc completion;
  for (auto _ : state) {
    if (!Post(qp, wr, from.memory().data(), bytes, from.memory().lkey()) ||
        !PollOne(from, &completion)) {
      state.SkipWithError("a READ did not complete");
      break;
    }
    benchmark::DoNotOptimize(completion);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(ReadToPoll)->Arg(64)->Arg(64 << 10)->Arg(1 << 20);

// A poll that finds nothing.
void EmptyPoll(benchmark::State& state) {
  SoftEndpoint from(0), to(0);
  for (int64_t i = 0; i < state.range(0); ++i) ConnectOne(from, to);
  ibv_wc completion;
  for (auto _ : state) {
    if (ibv_poll_cq(to.cq(), 1, &completion) != 0) {
      state.SkipWithError("something came");
      break;
    }
    benchmark::ClobberMemory();
  }
}
BENCHMARK(EmptyPoll)->Arg(0)->Arg(1)->Arg(64);

}  // namespace
