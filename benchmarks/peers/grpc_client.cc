#include "benchmarks/peers/grpc_client.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "benchmarks/rpc_bench.grpc.pb.h"
#include "benchmarks/rpc_bench.pb.h"
#include "benchmarks/test_pattern.h"
#include "grpcpp/generic/generic_stub.h"

namespace benchmarks {
namespace {

using Mode = PeerWorkload::Mode;

// What is sent, and how answers are checked: as rpc_bench does both
// (benchmarks/rpc_bench_payloads.h).
class Payloads {
 public:
  Payloads(const PeerWorkload& workload, bool raw)
      : bytes_(workload.payload_bytes),
        items_(static_cast<size_t>(std::clamp<uint64_t>(
            workload.working_set_bytes / std::max<size_t>(bytes_, 1), 1,
            kMostPayloads))) {
    for (size_t i = 0; i < items_.size(); ++i) {
      Item& item = items_[i];
      item.request.set_data(TestPattern(bytes_, i));
      item.checksum = Checksum(item.request.data());
      if (!raw) continue;
      const grpc::Slice slice(item.request.data().data(), bytes_,
                              grpc::Slice::STATIC_SLICE);
      item.raw_request = grpc::ByteBuffer(&slice, 1);
    }
  }

  const Payload& request(uint64_t number) const { return at(number).request; }
  // The bytes of request(number), by reference.
  const grpc::ByteBuffer& raw_request(uint64_t number) const {
    return at(number).raw_request;
  }

  // Whether the contents of call `number` are to be looked at: now and then, as
  // that takes its time.
  static bool IsSampled(uint64_t number) { return number % 256 == 0; }

  absl::Status CheckEcho(uint64_t number, const Payload& response) const {
    const std::string& sent = request(number).data();
    const bool right = response.data().size() == sent.size() &&
                       (!IsSampled(number) || response.data() == sent);
    return right ? absl::OkStatus() : WrongAnswer(response.data().size());
  }

  absl::Status CheckReceipt(uint64_t number, const Receipt& receipt) const {
    const bool right =
        receipt.bytes() == bytes_ &&
        (!IsSampled(number) || receipt.checksum() == at(number).checksum);
    return right ? absl::OkStatus() : WrongAnswer(receipt.bytes());
  }

 private:
  struct Item {
    Payload request;
    grpc::ByteBuffer raw_request;
    uint64_t checksum = 0;
  };

  static constexpr uint64_t kMostPayloads = 1 << 16;

  const Item& at(uint64_t number) const {
    return items_[number % items_.size()];
  }
  absl::Status WrongAnswer(uint64_t bytes) const {
    return absl::DataLossError(
        absl::StrCat("wrong answer: ", bytes_, " bytes were sent, ", bytes,
                     bytes == bytes_ ? " came, with other contents" : " came"));
  }

  const size_t bytes_;
  std::vector<Item> items_;
};

absl::Status ToAbsl(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
}

// The kinds of calls: how each is started, and its answer checked.

class EchoCalls {
 public:
  using Answer = Payload;

  EchoCalls(const std::shared_ptr<grpc::Channel>& channel,
            const Payloads& payloads)
      : stub_(Bench::NewStub(channel)), payloads_(payloads) {}

  grpc::Status Call(uint64_t number, grpc::ClientContext* context,
                    Payload* answer) {
    return stub_->Echo(context, payloads_.request(number), answer);
  }
  auto Prepare(uint64_t number, grpc::ClientContext* context,
               grpc::CompletionQueue* queue) {
    return stub_->PrepareAsyncEcho(context, payloads_.request(number), queue);
  }
  void Start(uint64_t number, grpc::ClientContext* context, Payload* answer,
             std::function<void(grpc::Status)> done) {
    stub_->async()->Echo(context, &payloads_.request(number), answer,
                         std::move(done));
  }
  absl::Status Check(uint64_t number, const Payload& answer) const {
    return payloads_.CheckEcho(number, answer);
  }

 private:
  const std::unique_ptr<Bench::Stub> stub_;
  const Payloads& payloads_;
};

class PutCalls {
 public:
  using Answer = Receipt;

  PutCalls(const std::shared_ptr<grpc::Channel>& channel,
           const Payloads& payloads)
      : stub_(Bench::NewStub(channel)), payloads_(payloads) {}

  auto Prepare(uint64_t number, grpc::ClientContext* context,
               grpc::CompletionQueue* queue) {
    const Payload& request = payloads_.request(number);
    return payloads_.IsSampled(number)
               ? stub_->PrepareAsyncPutChecked(context, request, queue)
               : stub_->PrepareAsyncPut(context, request, queue);
  }
  void Start(uint64_t number, grpc::ClientContext* context, Receipt* answer,
             std::function<void(grpc::Status)> done) {
    const Payload* const request = &payloads_.request(number);
    if (payloads_.IsSampled(number)) {
      stub_->async()->PutChecked(context, request, answer, std::move(done));
    } else {
      stub_->async()->Put(context, request, answer, std::move(done));
    }
  }
  absl::Status Check(uint64_t number, const Receipt& answer) const {
    return payloads_.CheckReceipt(number, answer);
  }

 private:
  const std::unique_ptr<Bench::Stub> stub_;
  const Payloads& payloads_;
};

class RawPutCalls {
 public:
  using Answer = grpc::ByteBuffer;

  RawPutCalls(const std::shared_ptr<grpc::Channel>& channel,
              const Payloads& payloads)
      : stub_(channel), payloads_(payloads) {}

  auto Prepare(uint64_t number, grpc::ClientContext* context,
               grpc::CompletionQueue* queue) {
    return stub_.PrepareUnaryCall(context, MethodOf(number),
                                  payloads_.raw_request(number), queue);
  }
  void Start(uint64_t number, grpc::ClientContext* context, Answer* answer,
             std::function<void(grpc::Status)> done) {
    stub_.UnaryCall(context, MethodOf(number), grpc::StubOptions(),
                    &payloads_.raw_request(number), answer, std::move(done));
  }
  absl::Status Check(uint64_t number, const Answer& answer) const {
    grpc::Slice slice;
    Receipt receipt;
    if (!answer.DumpToSingleSlice(&slice).ok() ||
        !receipt.ParseFromArray(slice.begin(),
                                static_cast<int>(slice.size()))) {
      return absl::DataLossError("wrong answer: not a Receipt");
    }
    return payloads_.CheckReceipt(number, receipt);
  }

 private:
  const std::string& MethodOf(uint64_t number) const {
    return payloads_.IsSampled(number) ? put_checked_ : put_;
  }

  const std::string put_ =
      absl::StrCat("/", Bench::service_full_name(), "/Put");
  const std::string put_checked_ = absl::StrCat(put_, "Checked");
  grpc::GenericStub stub_;
  const Payloads& payloads_;
};

void RunBlocking(EchoCalls& calls, Recorder& recorder) {
  Payload answer;
  for (uint64_t number = 0;; ++number) {
    // As Verbena's: rpc_bench_workload.cc.
    const uint64_t start_ns = SteadyNowNs();
    grpc::ClientContext context;
    const grpc::Status status = calls.Call(number, &context, &answer);
    // Before the answer is looked at: that is not the call's time.
    const uint64_t end_ns = SteadyNowNs();
    const absl::Status outcome =
        status.ok() ? calls.Check(number, answer) : ToAbsl(status);
    if (!recorder.Note(start_ns, end_ns, outcome)) return;
  }
}

// One of the calls in flight; when it is over it becomes the next one.
template <class Calls>
struct Slot {
  uint64_t number = 0;
  uint64_t start_ns = 0;
  std::optional<grpc::ClientContext> context;
  std::unique_ptr<grpc::ClientAsyncResponseReader<typename Calls::Answer>>
      reader;
  typename Calls::Answer answer;
  grpc::Status status;
};

// One thread and one queue.
template <class Calls>
void RunAsync(Calls& calls, int concurrency, Recorder& recorder) {
  SharedClock clock(concurrency);
  grpc::CompletionQueue queue;
  uint64_t next_number = 0;
  const auto start = [&](Slot<Calls>& slot) {
    slot.number = next_number++;
    slot.reader.reset();  // it lives in the memory of the context's call
    slot.context.emplace();
    slot.start_ns = clock.NowNs();
    slot.reader = calls.Prepare(slot.number, &*slot.context, &queue);
    slot.reader->StartCall();
    slot.reader->Finish(&slot.answer, &slot.status, &slot);
  };
  std::vector<Slot<Calls>> slots(static_cast<size_t>(concurrency));
  for (Slot<Calls>& slot : slots) start(slot);
  void* tag = nullptr;
  bool ok = false;
  while (queue.Next(&tag, &ok)) {
    const uint64_t end_ns = clock.NowNs();
    Slot<Calls>& slot = *static_cast<Slot<Calls>*>(tag);
    const absl::Status outcome = slot.status.ok()
                                     ? calls.Check(slot.number, slot.answer)
                                     : ToAbsl(slot.status);
    if (recorder.Note(slot.start_ns, end_ns, outcome)) {
      start(slot);
    } else if (--concurrency == 0) {
      queue.Shutdown();
    }
  }
}

// gRPC's own threads.
template <class Calls>
void RunCallbacks(Calls& calls, int concurrency, Recorder& recorder) {
  SharedClock clock(concurrency);
  absl::BlockingCounter running(concurrency);
  std::atomic<uint64_t> next_number{0};
  std::function<void(Slot<Calls>&)> start;
  const auto done = [&](Slot<Calls>& slot, const grpc::Status& status) {
    const uint64_t end_ns = clock.NowNs();
    const absl::Status outcome =
        status.ok() ? calls.Check(slot.number, slot.answer) : ToAbsl(status);
    if (recorder.Note(slot.start_ns, end_ns, outcome)) {
      start(slot);
    } else {
      running.DecrementCount();
    }
  };
  start = [&](Slot<Calls>& slot) {
    slot.number = next_number.fetch_add(1, std::memory_order_relaxed);
    slot.context.emplace();
    slot.start_ns = clock.NowNs();
    calls.Start(slot.number, &*slot.context, &slot.answer,
                [&](const grpc::Status& status) { done(slot, status); });
  };
  std::vector<Slot<Calls>> slots(static_cast<size_t>(concurrency));
  for (Slot<Calls>& slot : slots) start(slot);
  running.Wait();
}

template <class Calls>
void RunInFlight(Calls calls, GrpcApi api, int concurrency,
                 Recorder& recorder) {
  if (api == GrpcApi::kAsync) {
    RunAsync(calls, concurrency, recorder);
  } else {
    RunCallbacks(calls, concurrency, recorder);
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> ConnectGrpc(
    const std::string& address) {
  grpc::ChannelArguments arguments;
  for (const GrpcArgument& argument : kGrpcArguments) {
    arguments.SetInt(argument.name, argument.value);
  }
  std::shared_ptr<grpc::Channel> channel = grpc::CreateCustomChannel(
      address, grpc::InsecureChannelCredentials(), arguments);
  if (!channel->WaitForConnected(std::chrono::system_clock::now() +
                                 std::chrono::seconds(10))) {
    return absl::UnavailableError(
        absl::StrCat("gRPC does not get a connection to ", address));
  }
  return channel;
}

absl::StatusOr<GrpcRun> PrepareGrpc(
    const std::shared_ptr<grpc::Channel>& channel,
    const GrpcClientOptions& options, const PeerWorkload& workload) {
  if (options.raw && workload.mode != Mode::kBandwidth) {
    return absl::InvalidArgumentError("--raw takes --mode=bandwidth");
  }
  const auto payloads = std::make_shared<const Payloads>(workload, options.raw);
  return [=](Recorder& recorder) {
    if (options.raw) {
      RunInFlight(RawPutCalls(channel, *payloads), options.api,
                  workload.concurrency, recorder);
    } else if (workload.mode == Mode::kBandwidth) {
      RunInFlight(PutCalls(channel, *payloads), options.api,
                  workload.concurrency, recorder);
    } else if (workload.mode == Mode::kRate) {
      RunInFlight(EchoCalls(channel, *payloads), options.api,
                  workload.concurrency, recorder);
    } else {
      EchoCalls calls(channel, *payloads);
      RunBlocking(calls, recorder);
    }
  };
}

}  // namespace benchmarks
