#include "benchmarks/api_bench_servers.h"

#include <cstddef>
#include <cstdint>
#include <thread>

#include "benchmarks/api_bench.rpc.pb.h"

namespace benchmarks {
namespace {

ApiPayload PayloadOf(const ApiOrder& order) {
  ApiPayload payload;
  payload.set_data(std::string(static_cast<size_t>(order.bytes()), 'p'));
  return payload;
}

// ---- Blocking.

class BlockingServer final : public ApiServer, private ApiEcho::Service {
 public:
  void AddTo(rpc::ServerBuilder& builder) override {
    builder.RegisterService(this);
  }

 private:
  rpc::Status Say(rpc::ServerContext*, const ApiPayload* request,
                  ApiPayload* response) override {
    response->set_data(request->data());
    return rpc::Status::OK;
  }
  rpc::Status List(rpc::ServerContext*, const ApiOrder* order,
                   rpc::ServerWriter<ApiPayload>* writer) override {
    const ApiPayload payload = PayloadOf(*order);
    for (int64_t i = 0; i < order->count(); ++i) {
      if (!writer->Write(payload)) break;
    }
    return rpc::Status::OK;
  }
};

// ---- Callback.

class ListReactor final : public rpc::ServerWriteReactor<ApiPayload> {
 public:
  explicit ListReactor(const ApiOrder& order)
      : payload_(PayloadOf(order)), left_(order.count()) {
    WriteNext();
  }
  void OnWriteDone(bool ok) override {
    ok ? WriteNext() : Finish(rpc::Status::CANCELLED);
  }
  void OnDone() override { delete this; }

 private:
  void WriteNext() {
    left_-- > 0 ? StartWrite(&payload_) : Finish(rpc::Status::OK);
  }

  const ApiPayload payload_;
  int64_t left_;
};

class CallbackServer final : public ApiServer,
                             private ApiEcho::CallbackService {
 public:
  void AddTo(rpc::ServerBuilder& builder) override {
    builder.RegisterService(this);
  }

 private:
  rpc::ServerUnaryReactor* Say(rpc::CallbackServerContext* context,
                               const ApiPayload* request,
                               ApiPayload* response) override {
    response->set_data(request->data());
    rpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(rpc::Status::OK);
    return reactor;
  }
  rpc::ServerWriteReactor<ApiPayload>* List(rpc::CallbackServerContext*,
                                            const ApiOrder* order) override {
    return new ListReactor(*order);
  }
};

// ---- Coroutine.

class CoroutineServer final : public ApiServer,
                              private ApiEcho::CoroutineService {
 public:
  void AddTo(rpc::ServerBuilder& builder) override {
    builder.RegisterService(this);
  }

 private:
  rpc::Task<rpc::Status> Say(rpc::CallbackServerContext*,
                             const ApiPayload* request,
                             ApiPayload* response) override {
    response->set_data(request->data());
    co_return rpc::Status::OK;
  }
  rpc::Task<rpc::Status> List(
      rpc::CallbackServerContext*, const ApiOrder* order,
      rpc::CoroServerWriter<ApiPayload>* writer) override {
    const ApiPayload payload = PayloadOf(*order);
    for (int64_t i = 0; i < order->count(); ++i) {
      if (!co_await writer->Write(payload)) break;
    }
    co_return rpc::Status::OK;
  }
};

// ---- Queue. Each call is an object, and its own tag.

struct QueuedService {
  ApiEcho::AsyncService service;
  std::unique_ptr<rpc::ServerCompletionQueue> queue;
};

class QueuedCall {
 public:
  virtual ~QueuedCall() = default;
  // An event of this call came. May delete it.
  virtual void Proceed(bool ok) = 0;
};

class SayCall final : public QueuedCall {
 public:
  explicit SayCall(QueuedService* from) : from_(*from) {
    from->service.RequestSay(&context_, &request_, &responder_,
                             from->queue.get(), from->queue.get(), this);
  }
  void Proceed(bool ok) override {
    if (!ok || done_) return delete this;
    done_ = true;
    new SayCall(&from_);
    response_.set_data(request_.data());
    responder_.Finish(response_, rpc::Status::OK, this);
  }

 private:
  QueuedService& from_;
  rpc::ServerContext context_;
  rpc::ServerAsyncResponseWriter<ApiPayload> responder_{&context_};
  ApiPayload request_;
  ApiPayload response_;
  bool done_ = false;
};

class ListCall final : public QueuedCall {
 public:
  explicit ListCall(QueuedService* from) : from_(*from) {
    from->service.RequestList(&context_, &order_, &writer_, from->queue.get(),
                              from->queue.get(), this);
  }
  void Proceed(bool ok) override {
    if (done_ || (!ok && !begun_)) return delete this;
    if (!begun_) Begin();
    if (ok && left_-- > 0) return writer_.Write(payload_, this);
    done_ = true;
    writer_.Finish(rpc::Status::OK, this);
  }

 private:
  void Begin() {
    begun_ = true;
    new ListCall(&from_);
    payload_ = PayloadOf(order_);
    left_ = order_.count();
  }

  QueuedService& from_;
  rpc::ServerContext context_;
  rpc::ServerAsyncWriter<ApiPayload> writer_{&context_};
  ApiOrder order_;
  ApiPayload payload_;
  int64_t left_ = 0;
  bool begun_ = false;
  bool done_ = false;
};

class QueueServer final : public ApiServer {
 public:
  void AddTo(rpc::ServerBuilder& builder) override {
    builder.RegisterService(&served_.service);
    served_.queue = builder.AddCompletionQueue();
  }
  void Serve() override {
    new SayCall(&served_);
    new ListCall(&served_);
    thread_ = std::thread([this] {
      void* tag;
      bool ok;
      while (served_.queue->Next(&tag, &ok)) {
        static_cast<QueuedCall*>(tag)->Proceed(ok);
      }
    });
  }
  void Stop() override {
    served_.queue->Shutdown();
    thread_.join();
  }

 private:
  QueuedService served_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<ApiServer> MakeApiServer(const std::string& api) {
  if (api == "blocking") return std::make_unique<BlockingServer>();
  if (api == "callback") return std::make_unique<CallbackServer>();
  if (api == "queue") return std::make_unique<QueueServer>();
  if (api == "coroutine") return std::make_unique<CoroutineServer>();
  return nullptr;
}

}  // namespace benchmarks
