#include "benchmarks/peers/grpc_server.h"

#include <poll.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmarks/rpc_bench.grpc.pb.h"
#include "benchmarks/rpc_bench.pb.h"
#include "benchmarks/test_pattern.h"
#include "grpcpp/alarm.h"
#include "grpcpp/grpcpp.h"

namespace benchmarks {
namespace {

// More than any benchmark has in flight, so that no call waits to be accepted.
constexpr int kAcceptedAhead = 256;

// What the methods answer, whichever API they are served by.

void Receive(const Payload& request, bool checked, Receipt* receipt) {
  receipt->set_bytes(request.data().size());
  if (checked) receipt->set_checksum(Checksum(request.data()));
}

void Receive(const grpc::ByteBuffer& request, bool checked,
             grpc::ByteBuffer* response) {
  Receipt receipt;
  receipt.set_bytes(request.Length());
  if (checked) {
    std::vector<grpc::Slice> slices;
    std::string bytes;
    if (!request.Dump(&slices).ok()) slices.clear();
    for (const grpc::Slice& slice : slices) {
      bytes.append(slice.begin(), slice.end());
    }
    receipt.set_checksum(Checksum(bytes));
  }
  const grpc::Slice slice(receipt.SerializeAsString());
  *response = grpc::ByteBuffer(&slice, 1);
}

class SyncService final : public Bench::Service {
 public:
  grpc::Status Echo(grpc::ServerContext* context, const Payload* request,
                    Payload* response) override {
    response->set_data(request->data());
    return grpc::Status::OK;
  }
  grpc::Status Put(grpc::ServerContext* context, const Payload* request,
                   Receipt* response) override {
    Receive(*request, /*checked=*/false, response);
    return grpc::Status::OK;
  }
  grpc::Status PutChecked(grpc::ServerContext* context, const Payload* request,
                          Receipt* response) override {
    Receive(*request, /*checked=*/true, response);
    return grpc::Status::OK;
  }
};

// Of the callback API: `Base` has the methods as virtual functions that take
// `Request` and `Response`.
template <class Base, class Request, class Response>
class CallbackPuts : public Base {
 public:
  grpc::ServerUnaryReactor* Put(grpc::CallbackServerContext* context,
                                const Request* request,
                                Response* response) final {
    return Finish(context, *request, /*checked=*/false, response);
  }
  grpc::ServerUnaryReactor* PutChecked(grpc::CallbackServerContext* context,
                                       const Request* request,
                                       Response* response) final {
    return Finish(context, *request, /*checked=*/true, response);
  }

 private:
  grpc::ServerUnaryReactor* Finish(grpc::CallbackServerContext* context,
                                   const Request& request, bool checked,
                                   Response* response) {
    Receive(request, checked, response);
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

class CallbackService final
    : public CallbackPuts<Bench::CallbackService, Payload, Receipt> {
 public:
  grpc::ServerUnaryReactor* Echo(grpc::CallbackServerContext* context,
                                 const Payload* request,
                                 Payload* response) override {
    response->set_data(request->data());
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

using RawCallbackService =
    CallbackPuts<Bench::WithRawCallbackMethod_Put<
                     Bench::WithRawCallbackMethod_PutChecked<Bench::Service>>,
                 grpc::ByteBuffer, grpc::ByteBuffer>;
using RawAsyncService =
    Bench::WithRawMethod_Put<Bench::WithRawMethod_PutChecked<Bench::Service>>;

// An API's way to serve, and its service.
class Serving {
 public:
  virtual ~Serving() = default;
  // Once the server runs.
  virtual void Start() {}
  // Once it does not any more.
  virtual void Stop() {}
};

// In threads of gRPC's own.
template <class Service>
class ThreadsServing final : public Serving {
 public:
  explicit ThreadsServing(grpc::ServerBuilder& builder) {
    builder.RegisterService(&service_);
  }

 private:
  Service service_;
};

// A call of the async API, over and over: it waits for one, answers it, waits
// for the next.
class AsyncCall {
 public:
  virtual ~AsyncCall() = default;
  virtual void Accept() = 0;
  virtual void Answer() = 0;

  bool answered = false;
};

template <class Request, class Response>
class UnaryAsyncCall final : public AsyncCall {
 public:
  using Writer = grpc::ServerAsyncResponseWriter<Response>;
  using AcceptFunction = std::function<void(grpc::ServerContext*, Request*,
                                            Writer*, AsyncCall* tag)>;
  // Returns the answer, `response` or something that lives as long.
  using Method = std::function<const Response&(const Request&, Response*)>;

  UnaryAsyncCall(AcceptFunction accept, Method method)
      : accept_(std::move(accept)), method_(std::move(method)) {}

  void Accept() override {
    answered = false;
    writer_.reset();
    context_.emplace();
    writer_.emplace(&*context_);
    // Large memory goes back at once: the next call is another object's, and
    // warm memory is better than much.
    request_ = Request();
    accept_(&*context_, &request_, &*writer_, this);
  }

  void Answer() override {
    answered = true;
    writer_->Finish(method_(request_, &response_), grpc::Status::OK, this);
  }

 private:
  const AcceptFunction accept_;
  const Method method_;
  std::optional<grpc::ServerContext> context_;
  std::optional<Writer> writer_;
  Request request_;
  Response response_;
};

// The async API: one thread that takes what happens out of one queue.
class AsyncServing : public Serving {
 public:
  void Start() final {
    for (const std::unique_ptr<AsyncCall>& call : calls_) call->Accept();
    thread_ = std::thread([this] { Loop(); });
  }

  void Stop() final {
    // The loop stops accepting, then: a queue that is shut down takes none.
    grpc::Alarm alarm;
    alarm.Set(queue_.get(), gpr_now(GPR_CLOCK_REALTIME), nullptr);
    thread_.join();
  }

 protected:
  explicit AsyncServing(grpc::ServerBuilder& builder)
      : queue_(builder.AddCompletionQueue()) {}

  // `accept`: a member function of `service`, such as RequestPut.
  template <class Request, class Response, class Service, class Function>
  void Add(Service& service, Function accept,
           typename UnaryAsyncCall<Request, Response>::Method method) {
    for (int i = 0; i < kAcceptedAhead; ++i) {
      calls_.push_back(std::make_unique<UnaryAsyncCall<Request, Response>>(
          [this, &service, accept](grpc::ServerContext* context,
                                   Request* request, auto* writer,
                                   AsyncCall* tag) {
            (service.*accept)(context, request, writer, queue_.get(),
                              queue_.get(), tag);
          },
          method));
    }
  }

  template <class Request, class Response, class Service>
  void AddPuts(Service& service) {
    Add<Request, Response>(
        service, &Service::RequestPut,
        [](const Request& request, Response* response) -> const Response& {
          Receive(request, /*checked=*/false, response);
          return *response;
        });
    Add<Request, Response>(
        service, &Service::RequestPutChecked,
        [](const Request& request, Response* response) -> const Response& {
          Receive(request, /*checked=*/true, response);
          return *response;
        });
  }

 private:
  void Loop() {
    bool stopping = false;
    void* tag = nullptr;
    bool ok = false;
    while (queue_->Next(&tag, &ok)) {
      AsyncCall* const call = static_cast<AsyncCall*>(tag);
      if (call == nullptr) {
        stopping = true;
        queue_->Shutdown();
      } else if (call->answered) {
        if (!stopping) call->Accept();
      } else if (ok) {
        call->Answer();
      }
    }
  }

  const std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::vector<std::unique_ptr<AsyncCall>> calls_;
  std::thread thread_;
};

class ProtobufAsyncServing final : public AsyncServing {
 public:
  explicit ProtobufAsyncServing(grpc::ServerBuilder& builder)
      : AsyncServing(builder) {
    builder.RegisterService(&service_);
    AddPuts<Payload, Receipt>(service_);
    Add<Payload, Payload>(service_, &Bench::AsyncService::RequestEcho,
                          [](const Payload& request,
                             Payload*) -> const Payload& { return request; });
  }

 private:
  Bench::AsyncService service_;
};

class RawAsyncServing final : public AsyncServing {
 public:
  explicit RawAsyncServing(grpc::ServerBuilder& builder)
      : AsyncServing(builder) {
    builder.RegisterService(&service_);
    AddPuts<grpc::ByteBuffer, grpc::ByteBuffer>(service_);
  }

 private:
  RawAsyncService service_;
};

// nullptr: gRPC does not have it.
std::unique_ptr<Serving> MakeServing(GrpcApi api, bool raw,
                                     grpc::ServerBuilder& builder) {
  switch (api) {
    case GrpcApi::kSync:
      if (raw) return nullptr;
      return std::make_unique<ThreadsServing<SyncService>>(builder);
    case GrpcApi::kCallback:
      if (raw) {
        return std::make_unique<ThreadsServing<RawCallbackService>>(builder);
      }
      return std::make_unique<ThreadsServing<CallbackService>>(builder);
    case GrpcApi::kAsync:
      if (raw) return std::make_unique<RawAsyncServing>(builder);
      return std::make_unique<ProtobufAsyncServing>(builder);
  }
  return nullptr;
}

absl::Status WaitFor(int fd) {
  pollfd event = {.fd = fd, .events = POLLIN};
  while (poll(&event, 1, -1) < 0) {
    if (errno != EINTR) return absl::ErrnoToStatus(errno, "poll");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ServeGrpc(const GrpcServerOptions& options,
                       const std::function<void()>& ready, int stop_fd) {
  grpc::ServerBuilder builder;
  for (const GrpcArgument& argument : kGrpcArguments) {
    builder.AddChannelArgument(argument.name, argument.value);
  }
  // Of the synchronous API; it would be one for each CPU of the machine.
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::NUM_CQS,
                              1);
  builder.AddListeningPort(options.address, grpc::InsecureServerCredentials());
  const std::unique_ptr<Serving> serving =
      MakeServing(options.api, options.raw, builder);
  if (serving == nullptr) {
    return absl::InvalidArgumentError(
        "--raw takes --server_api=callback or async: gRPC has no synchronous "
        "API for raw bytes");
  }
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("gRPC cannot listen at ", options.address));
  }
  serving->Start();
  ready();
  const absl::Status status = WaitFor(stop_fd);
  server->Shutdown(std::chrono::system_clock::now());
  serving->Stop();
  return status;
}

}  // namespace benchmarks
