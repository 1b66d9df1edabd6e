// What a small or a larger warm call takes of a CPU, client and server
// together: both are driven by one thread, so nobody waits for the other side's
// cache lines, and what is measured repeats within a few per cent. Of a call
// between two CPUs, this much is work; see rpc_bench for the whole.
#include <benchmark/benchmark.h>

#include <iterator>

#include "tests/warm_call/one_thread.h"
#include "tests/warm_call/plan.h"
#include "tests/warm_call/stopped_clock.h"

namespace {

void WarmCall(benchmark::State& state, const warm_call::Form& form) {
  warm_call::OneThread both(
      form, [](bool) {}, [] {});
  warm_call::StartClock();
  for (auto _ : state) both.Call();
  warm_call::StopClock();
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  for (const warm_call::Form& form : warm_call::kForms) {
    benchmark::RegisterBenchmark(form.name, WarmCall, form);
  }
  benchmark::RunSpecifiedBenchmarks();
}
