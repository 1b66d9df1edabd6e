#include "benchmarks/api_bench_clients.h"

#include <optional>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "benchmarks/api_bench.rpc.pb.h"

namespace benchmarks {
namespace {

ApiPayload PayloadOf(size_t bytes) {
  ApiPayload payload;
  payload.set_data(std::string(bytes, 'p'));
  return payload;
}

ApiOrder OrderOf(int64_t count, size_t bytes) {
  ApiOrder order;
  order.set_count(count);
  order.set_bytes(static_cast<int64_t>(bytes));
  return order;
}

// Adds the time of each call, one after the other, and says when it is enough.
class Stopwatch {
 public:
  Stopwatch(absl::Time end, LatencyHistogram* latencies)
      : end_ns_(absl::ToUnixNanos(end)), latencies_(*latencies) {}

  // Whether another call is due; it begins now.
  bool Begin() {
    begin_ns_ = absl::GetCurrentTimeNanos();
    return begin_ns_ < end_ns_;
  }
  void End() {
    latencies_.Add(
        static_cast<uint64_t>(absl::GetCurrentTimeNanos() - begin_ns_));
  }

 private:
  const int64_t end_ns_;
  LatencyHistogram& latencies_;
  int64_t begin_ns_ = 0;
};

class StubClient : public ApiClient {
 public:
  explicit StubClient(const std::shared_ptr<rpc::Channel>& channel)
      : stub_(ApiEcho::NewStub(channel)) {}

 protected:
  const std::unique_ptr<ApiEcho::Stub> stub_;
};

// ---- Blocking.

class BlockingClient final : public StubClient {
 public:
  using StubClient::StubClient;

  rpc::Status MakeCalls(absl::Time end, size_t bytes,
                        LatencyHistogram* latencies) override {
    Stopwatch watch(end, latencies);
    const ApiPayload request = PayloadOf(bytes);
    ApiPayload response;
    rpc::Status status;
    while (status.ok() && watch.Begin()) {
      rpc::ClientContext context;
      status = stub_->Say(&context, request, &response);
      watch.End();
    }
    return status;
  }
  rpc::Status ReadStream(int64_t count, size_t bytes) override {
    rpc::ClientContext context;
    const auto reader = stub_->List(&context, OrderOf(count, bytes));
    ApiPayload response;
    while (reader->Read(&response)) {
    }
    return reader->Finish();
  }
};

// ---- Callback. OnDone begins the next call.

class CallChain final : public rpc::ClientUnaryReactor {
 public:
  CallChain(ApiEcho::Stub* stub, const Stopwatch& watch, size_t bytes)
      : stub_(*stub), watch_(watch), request_(PayloadOf(bytes)) {}

  rpc::Status Run() {
    Next();
    done_.WaitForNotification();
    return status_;
  }

 private:
  void Next() {
    if (!status_.ok() || !watch_.Begin()) return done_.Notify();
    context_.emplace();
    stub_.async()->Say(&*context_, &request_, &response_, this);
    StartCall();
  }
  void OnDone(const rpc::Status& status) override {
    watch_.End();
    status_ = status;
    Next();
  }

  ApiEcho::Stub& stub_;
  Stopwatch watch_;
  const ApiPayload request_;
  ApiPayload response_;
  std::optional<rpc::ClientContext> context_;
  rpc::Status status_;
  absl::Notification done_;
};

class StreamReader final : public rpc::ClientReadReactor<ApiPayload> {
 public:
  rpc::Status Run(ApiEcho::Stub& stub, const ApiOrder& order) {
    stub.async()->List(&context_, &order, this);
    StartRead(&response_);
    StartCall();
    done_.WaitForNotification();
    return status_;
  }

 private:
  void OnReadDone(bool ok) override {
    if (ok) StartRead(&response_);
  }
  void OnDone(const rpc::Status& status) override {
    status_ = status;
    done_.Notify();
  }

  rpc::ClientContext context_;
  ApiPayload response_;
  rpc::Status status_;
  absl::Notification done_;
};

class CallbackClient final : public StubClient {
 public:
  using StubClient::StubClient;

  rpc::Status MakeCalls(absl::Time end, size_t bytes,
                        LatencyHistogram* latencies) override {
    return CallChain(stub_.get(), Stopwatch(end, latencies), bytes).Run();
  }
  rpc::Status ReadStream(int64_t count, size_t bytes) override {
    return StreamReader().Run(*stub_, OrderOf(count, bytes));
  }
};

// ---- Queue.

class QueueClient final : public StubClient {
 public:
  using StubClient::StubClient;
  ~QueueClient() override {
    queue_.Shutdown();
    Next();
  }

  rpc::Status MakeCalls(absl::Time end, size_t bytes,
                        LatencyHistogram* latencies) override {
    Stopwatch watch(end, latencies);
    const ApiPayload request = PayloadOf(bytes);
    ApiPayload response;
    rpc::Status status;
    while (status.ok() && watch.Begin()) {
      rpc::ClientContext context;
      const auto call = stub_->AsyncSay(&context, request, &queue_);
      call->Finish(&response, &status, nullptr);
      Next();
      watch.End();
    }
    return status;
  }
  rpc::Status ReadStream(int64_t count, size_t bytes) override {
    rpc::ClientContext context;
    const auto reader =
        stub_->AsyncList(&context, OrderOf(count, bytes), &queue_, nullptr);
    Next();
    ApiPayload response;
    do {
      reader->Read(&response, nullptr);
    } while (Next());
    rpc::Status status;
    reader->Finish(&status, nullptr);
    Next();
    return status;
  }

 private:
  // Whether there is an event, and says yes.
  bool Next() {
    void* tag;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  rpc::CompletionQueue queue_;
};

// ---- Coroutine.

rpc::Task<rpc::Status> CallOn(ApiEcho::Stub* stub, Stopwatch watch,
                              size_t bytes) {
  const ApiPayload request = PayloadOf(bytes);
  ApiPayload response;
  rpc::Status status;
  while (status.ok() && watch.Begin()) {
    rpc::ClientContext context;
    status = co_await stub->coro()->Say(&context, request, &response);
    watch.End();
  }
  co_return status;
}

rpc::Task<rpc::Status> ReadOn(ApiEcho::Stub* stub, ApiOrder order) {
  rpc::ClientContext context;
  const auto reader = stub->coro()->List(&context, order);
  ApiPayload response;
  while (co_await reader->Read(&response)) {
  }
  co_return co_await reader->Finish();
}

class CoroutineClient final : public StubClient {
 public:
  using StubClient::StubClient;

  rpc::Status MakeCalls(absl::Time end, size_t bytes,
                        LatencyHistogram* latencies) override {
    return rpc::SyncWait(CallOn(stub_.get(), Stopwatch(end, latencies), bytes));
  }
  rpc::Status ReadStream(int64_t count, size_t bytes) override {
    return rpc::SyncWait(ReadOn(stub_.get(), OrderOf(count, bytes)));
  }
};

}  // namespace

std::unique_ptr<ApiClient> MakeApiClient(
    const std::string& api, const std::shared_ptr<rpc::Channel>& channel) {
  if (api == "blocking") return std::make_unique<BlockingClient>(channel);
  if (api == "callback") return std::make_unique<CallbackClient>(channel);
  if (api == "queue") return std::make_unique<QueueClient>(channel);
  if (api == "coroutine") return std::make_unique<CoroutineClient>(channel);
  return nullptr;
}

}  // namespace benchmarks
