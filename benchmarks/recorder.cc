#include "benchmarks/recorder.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "benchmarks/cpu_time.h"

namespace benchmarks {
namespace {

double PerCall(int64_t begin_ns, int64_t end_ns, uint64_t calls) {
  if (begin_ns < 0 || end_ns < 0 || calls == 0) return -1;
  return static_cast<double>(end_ns - begin_ns) / static_cast<double>(calls);
}

// Threads that share a clock may have its readings in another order.
uint64_t Elapsed(uint64_t start_ns, uint64_t end_ns) {
  return end_ns > start_ns ? end_ns - start_ns : 0;
}

uint64_t Nanoseconds(absl::Duration duration) {
  return static_cast<uint64_t>(absl::ToInt64Nanoseconds(duration));
}

}  // namespace

uint64_t SteadyNowNs() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(
          std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

double Measurement::RatePerSecond() const {
  return static_cast<double>(latencies->count()) / absl::ToDoubleSeconds(time);
}

Recorder::Recorder(const Options& options)
    : server_(options.server),
      begin_ns_(SteadyNowNs() + Nanoseconds(options.warm_up)),
      end_ns_(begin_ns_ + Nanoseconds(options.time)),
      latencies_(std::make_unique<LatencyHistogram>()) {}

bool Recorder::Note(uint64_t start_ns, uint64_t end_ns,
                    const absl::Status& status) {
  // An error counts whenever it comes: also a warm-up has to go well.
  if (!status.ok()) NoteError(status);
  if (end_ns < begin_ns_) return true;
  if (!begun_.load(std::memory_order_relaxed)) NoteBegin();
  if (end_ns < end_ns_) {
    if (status.ok()) latencies_->Add(Elapsed(start_ns, end_ns));
    return true;
  }
  return NoteLateCall(start_ns, end_ns, status.ok());
}

Measurement Recorder::Finish() {
  absl::MutexLock lock(&mutex_);
  const uint64_t end_ns = std::max(end_ns_, last_late_end_ns_);
  const CpuTimes now = ReadCpuTimes();
  Measurement result = {
      .errors = errors_,
      .first_error = first_error_,
      .time = absl::Nanoseconds(static_cast<int64_t>(end_ns - begin_ns_))};
  const uint64_t calls = latencies_->count();
  result.client_cpu_ns_per_call =
      PerCall(at_begin_.client_ns, now.client_ns, calls);
  result.server_cpu_ns_per_call =
      PerCall(at_begin_.server_ns, now.server_ns, calls);
  result.latencies = std::move(latencies_);
  return result;
}

Recorder::CpuTimes Recorder::ReadCpuTimes() const {
  return {.client_ns = ProcessCpuTimeNs(0),
          .server_ns = server_ != 0 ? ProcessCpuTimeNs(server_) : -1};
}

void Recorder::NoteBegin() {
  absl::MutexLock lock(&mutex_);
  if (!begun_.exchange(true)) at_begin_ = ReadCpuTimes();
}

void Recorder::NoteError(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  if (errors_++ == 0) first_error_ = status.ToString();
}

// Where calls take so long that hardly any ended in time, later ones count too,
// and the time is extended to their end.
bool Recorder::NoteLateCall(uint64_t start_ns, uint64_t end_ns, bool ok) {
  absl::MutexLock lock(&mutex_);
  if (!ok || errors_ > 0 || latencies_->count() >= kLeastCalls) return false;
  latencies_->Add(Elapsed(start_ns, end_ns));
  last_late_end_ns_ = std::max(last_late_end_ns_, end_ns);
  return latencies_->count() < kLeastCalls;
}

}  // namespace benchmarks
