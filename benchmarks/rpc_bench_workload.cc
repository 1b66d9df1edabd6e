#include "benchmarks/rpc_bench_workload.h"

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/time/clock.h"
#include "benchmarks/rpc_bench.rpc.pb.h"
#include "benchmarks/rpc_bench_payloads.h"

namespace benchmarks {
namespace {

// As users of gRPC do it.
void SetDeadline(std::chrono::milliseconds timeout,
                 rpc::ClientContext& context) {
  if (timeout.count() == 0) return;
  context.set_deadline(std::chrono::system_clock::now() + timeout);
}

// A call's time is that from before its context until its answer, as in gRPC's
// own benchmarks: what the one before leaves to be destroyed is no part of it.
void RunBlockingCalls(Bench::Stub& stub, const Payloads& payloads,
                      const WorkloadOptions& options, Recorder& recorder) {
  const bool fetch = options.mode == Mode::kFetch;
  Wanted wanted;
  wanted.set_bytes(options.payload_bytes);
  Payload response;
  for (uint64_t number = 0;; ++number) {
    const uint64_t start_ns = SteadyNowNs();
    rpc::ClientContext context;
    SetDeadline(options.timeout, context);
    if (!payloads.attachment(number).empty()) {
      context.set_attachment(payloads.attachment(number));
    }
    const rpc::Status status =
        fetch ? stub.Get(&context, wanted, &response)
              : stub.Echo(&context, payloads.request(number), &response);
    // Before the answer is looked at: that is not the call's time.
    const uint64_t end_ns = SteadyNowNs();
    const absl::Status outcome =
        status.ok() ? payloads.CheckEcho(number, response, context.attachment())
                    : status.ToAbslStatus();
    if (!recorder.Note(start_ns, end_ns, outcome)) return;
    if (options.pause > absl::ZeroDuration()) absl::SleepFor(options.pause);
  }
}

// What the slots of a run share.
struct SlotsRun {
  Bench::Stub& stub;
  const Payloads& payloads;
  Recorder& recorder;
  bool put;
  int concurrency;
  std::chrono::milliseconds timeout;
  SharedClock clock{concurrency};
  absl::BlockingCounter running{concurrency};
};

// One of the calls in flight; when it is over it becomes the next one. All
// together take numbers in turns.
class Slot final : public rpc::ClientUnaryReactor {
 public:
  Slot(SlotsRun* run, int index)
      : run_(*run), number_(static_cast<uint64_t>(index)) {}

  void Start() {
    context_.emplace();
    SetDeadline(run_.timeout, *context_);
    const rpc::BufferChain& attachment = run_.payloads.attachment(number_);
    if (!attachment.empty()) context_->set_attachment(attachment);
    start_ns_ = run_.clock.NowNs();
    Bind(run_.payloads.request(number_));
    StartCall();
  }

  void OnDone(const rpc::Status& status) override {
    const uint64_t end_ns = run_.clock.NowNs();
    const absl::Status outcome =
        status.ok() ? CheckAnswer() : status.ToAbslStatus();
    if (run_.recorder.Note(start_ns_, end_ns, outcome)) {
      number_ += static_cast<uint64_t>(run_.concurrency);
      Start();
    } else {
      run_.running.DecrementCount();
    }
  }

 private:
  void Bind(const Payload& request) {
    if (!run_.put) {
      run_.stub.async()->Echo(&*context_, &request, &echoed_, this);
    } else if (run_.payloads.IsSampled(number_)) {
      run_.stub.async()->PutChecked(&*context_, &request, &receipt_, this);
    } else {
      run_.stub.async()->Put(&*context_, &request, &receipt_, this);
    }
  }

  absl::Status CheckAnswer() const {
    if (!run_.put) {
      return run_.payloads.CheckEcho(number_, echoed_, context_->attachment());
    }
    return run_.payloads.CheckReceipt(number_, receipt_,
                                      run_.payloads.IsSampled(number_));
  }

  SlotsRun& run_;
  uint64_t number_;
  uint64_t start_ns_ = 0;
  std::optional<rpc::ClientContext> context_;
  Payload echoed_;
  Receipt receipt_;
};

void RunSlots(Bench::Stub& stub, const Payloads& payloads,
              const WorkloadOptions& options, Recorder& recorder) {
  SlotsRun run = {.stub = stub,
                  .payloads = payloads,
                  .recorder = recorder,
                  .put = options.mode == Mode::kBandwidth,
                  .concurrency = options.concurrency,
                  .timeout = options.timeout};
  std::vector<std::unique_ptr<Slot>> slots;
  for (int i = 0; i < options.concurrency; ++i) {
    slots.push_back(std::make_unique<Slot>(&run, i));
  }
  for (const std::unique_ptr<Slot>& slot : slots) slot->Start();
  run.running.Wait();
}

}  // namespace

double PayloadBytesPerCall(const WorkloadOptions& options) {
  const bool one_way =
      options.mode == Mode::kBandwidth || options.mode == Mode::kFetch;
  const double ways = one_way ? 1 : 2;
  return ways * static_cast<double>(options.payload_bytes);
}

double GigabytesPerSecond(const Measurement& measurement,
                          const WorkloadOptions& options) {
  return measurement.RatePerSecond() * PayloadBytesPerCall(options) / 1e9;
}

absl::StatusOr<Measurement> RunWorkload(
    const WorkloadOptions& options,
    const std::shared_ptr<rpc::Channel>& channel) {
  const absl::StatusOr<Payloads> payloads = Payloads::Create(
      {.payload_bytes = options.payload_bytes,
       .attachment = options.attachment,
       .working_set_bytes =
           options.mode == Mode::kFetch ? 0 : options.working_set_bytes},
      *channel);
  if (!payloads.ok()) return payloads.status();
  const std::unique_ptr<Bench::Stub> stub = Bench::NewStub(channel);
  Recorder recorder({options.warm_up, options.time, options.server});
  if (options.mode == Mode::kLatency || options.mode == Mode::kFetch) {
    RunBlockingCalls(*stub, *payloads, options, recorder);
  } else {
    RunSlots(*stub, *payloads, options, recorder);
  }
  return recorder.Finish();
}

}  // namespace benchmarks
