// How rpc_bench prints what it measured: JSON objects, one a line, for
// programs, or a table for people.
//
//   Reporter reporter(/*json=*/true, stdout);
//   reporter.Print(setup, options, measurement);
//
// Thread rule: one thread at a time.
#ifndef VERBENA_BENCHMARKS_RPC_BENCH_REPORT_H_
#define VERBENA_BENCHMARKS_RPC_BENCH_REPORT_H_

#include <cstdio>
#include <string>
#include <vector>

#include "benchmarks/rpc_bench_workload.h"

namespace benchmarks {

// What holds for all workloads of a run.
struct Setup {
  std::string device;
  std::vector<int> cpus;  // the client's, the server's; empty: not bound
};

std::string ModeName(Mode mode);

// Without the line's end.
std::string JsonLine(const Setup& setup, const WorkloadOptions& options,
                     const Measurement& measurement);
std::string TableHeader();
std::string TableLine(const Setup& setup, const WorkloadOptions& options,
                      const Measurement& measurement);

class Reporter {
 public:
  Reporter(bool json, std::FILE* out) : json_(json), out_(out) {}

  // Flushes, so that a pipe's reader sees each line as it comes.
  void Print(const Setup& setup, const WorkloadOptions& options,
             const Measurement& measurement);

 private:
  const bool json_;
  std::FILE* const out_;
  bool has_header_ = false;
};

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_RPC_BENCH_REPORT_H_
