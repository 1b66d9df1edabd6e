// What copying a message's bytes costs, by memcpy and by what the software
// device copies with.
//
//   bazel run -c opt //benchmarks/micro:copy_benchmark
//
// The arguments are the bytes, and how far the destination lies behind the
// source, modulo 4,096.
#include <cstddef>
#include <cstring>
#include <vector>

#include "benchmark/benchmark.h"
#include "rdma_transport/copy_bytes.h"

namespace {

constexpr size_t kPage = 4096;

template <void (*copy)(std::byte*, const std::byte*, size_t)>
void Copy(benchmark::State& state) {
  const auto bytes = static_cast<size_t>(state.range(0));
  const auto behind = static_cast<size_t>(state.range(1));
  const size_t pages = (bytes / kPage + 2) * kPage;
  std::vector<std::byte> memory(2 * pages + kPage);
  std::byte* const from = memory.data();
  std::byte* const to = from + pages + behind;
  for (auto _ : state) {
    copy(to, from, bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void Memcpy(std::byte* to, const std::byte* from, size_t bytes) {
  std::memcpy(to, from, bytes);
}

void Sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgsProduct({{1024, 8192, 65536, 262144}, {0, 16}});
}

BENCHMARK(Copy<Memcpy>)->Apply(Sizes);
BENCHMARK(Copy<rdma::CopyBytes>)->Apply(Sizes);

}  // namespace
