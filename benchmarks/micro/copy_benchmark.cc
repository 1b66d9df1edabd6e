// What copying a message's bytes costs, by memcpy and by what the software
// device copies with.
//
//   bazel run -c opt //benchmarks/micro:copy_benchmark
//
// The arguments are the bytes, and how far the destination lies behind the
// source, modulo 4,096; of what is long, in MiB, how long the destination is
// that chunk after chunk is copied to, from memory that is in no cache.
#include <cstddef>
#include <cstring>
#include <vector>

#include "benchmark/benchmark.h"
#include "memory/copy_bytes.h"

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

// In chunks, as an RDMA READ of the software device.
template <void (*copy)(std::byte*, const std::byte*, size_t)>
void CopyThrough(benchmark::State& state) {
  constexpr size_t kChunk = 256 << 10;
  static const auto* const all_source =
      new std::vector<std::byte>(size_t{256} << 20, std::byte{1});
  const std::vector<std::byte>& source = *all_source;
  std::vector<std::byte> destination(static_cast<size_t>(state.range(0)) << 20);
  size_t from = 0;
  size_t to = 0;
  for (auto _ : state) {
    copy(destination.data() + to, source.data() + from, kChunk);
    benchmark::ClobberMemory();
    from = (from + kChunk) % source.size();
    to = (to + kChunk) % destination.size();
  }
  state.SetBytesProcessed(state.iterations() * kChunk);
}

void LongSizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgsProduct({{2, 4, 8, 16, 32, 64}});
}

void Sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgsProduct({{1024, 8192, 65536, 262144}, {0, 16}});
}

BENCHMARK(Copy<Memcpy>)->Apply(Sizes);
BENCHMARK(Copy<memory::CopyBytes>)->Apply(Sizes);
BENCHMARK(CopyThrough<Memcpy>)->Apply(LongSizes);
BENCHMARK(CopyThrough<memory::CopyBytes>)->Apply(LongSizes);
BENCHMARK(CopyThrough<memory::CopyPastCaches>)->Apply(LongSizes);

}  // namespace
