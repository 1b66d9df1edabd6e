#include "tests/e2e/parcels_by_api.h"

#include <thread>
#include <utility>

#include "tests/e2e/parcels.h"
#include "tests/rpc/queue_events.h"

namespace e2e {
namespace {

using rpc::testing::Tag;

bool WantsEarlyMetadata(const rpc::ServerContextBase& context) {
  return context.client_metadata().count("early") > 0;
}

Parcel Coded(int code) {
  Parcel parcel;
  parcel.set_code(code);
  return parcel;
}

// ---- Blocking.

class Blocking final : public ServedParcels, private Parcels::Service {
  void Register(rpc::ServerBuilder& builder) override {
    builder.RegisterService(this);
  }

  rpc::Status Unary(rpc::ServerContext*, const Parcel* request,
                    Parcel* response) override {
    *response = Coded(request->code() + 1);
    return rpc::Status::OK;
  }
  rpc::Status Upload(rpc::ServerContext* context,
                     rpc::ServerReader<Parcel>* reader,
                     Parcel* response) override {
    if (WantsEarlyMetadata(*context)) reader->SendInitialMetadata();
    Parcel request;
    while (reader->Read(&request)) response->set_code(response->code() + 1);
    return rpc::Status::OK;
  }
  rpc::Status Download(rpc::ServerContext* context, const Parcel*,
                       rpc::ServerWriter<Parcel>* writer) override {
    if (WantsEarlyMetadata(*context)) writer->SendInitialMetadata();
    for (int i = 0; i < 2; ++i) writer->Write(Coded(i));
    return rpc::Status::OK;
  }
  rpc::Status Chat(rpc::ServerContext* context,
                   rpc::ServerReaderWriter<Parcel, Parcel>* stream) override {
    if (WantsEarlyMetadata(*context)) stream->SendInitialMetadata();
    Parcel request;
    while (stream->Read(&request)) stream->Write(request);
    return rpc::Status::OK;
  }
};

// ---- Reactors.

class UploadReactor final : public rpc::ServerReadReactor<Parcel> {
 public:
  UploadReactor(rpc::ServerContextBase* context, Parcel* response)
      : response_(*response) {
    if (WantsEarlyMetadata(*context)) StartSendInitialMetadata();
    StartRead(&request_);
  }
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(rpc::Status::OK);
    response_.set_code(response_.code() + 1);
    StartRead(&request_);
  }
  void OnDone() override { delete this; }

 private:
  Parcel& response_;
  Parcel request_;
};

class DownloadReactor final : public rpc::ServerWriteReactor<Parcel> {
 public:
  explicit DownloadReactor(rpc::ServerContextBase* context) {
    if (WantsEarlyMetadata(*context)) StartSendInitialMetadata();
    StartWrite(&response_);
  }
  void OnWriteDone(bool ok) override {
    if (!ok || response_.code() == 1) return Finish(rpc::Status::OK);
    response_.set_code(1);
    StartWrite(&response_);
  }
  void OnDone() override { delete this; }

 private:
  Parcel response_;
};

// Gives back what it reads; as bytes, for the generic service.
template <class Message>
class ChatReactor final : public rpc::ServerBidiReactor<Message, Message> {
 public:
  explicit ChatReactor(rpc::ServerContextBase* context) {
    if (WantsEarlyMetadata(*context)) this->StartSendInitialMetadata();
    this->StartRead(&message_);
  }
  void OnReadDone(bool ok) override {
    if (!ok) return this->Finish(rpc::Status::OK);
    this->StartWrite(&message_);
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return this->Finish(rpc::Status::OK);
    this->StartRead(&message_);
  }
  void OnDone() override { delete this; }

 private:
  Message message_;
};

class Callback final : public ServedParcels, private Parcels::CallbackService {
  void Register(rpc::ServerBuilder& builder) override {
    builder.RegisterService(this);
  }

  rpc::ServerUnaryReactor* Unary(rpc::CallbackServerContext* context,
                                 const Parcel* request,
                                 Parcel* response) override {
    *response = Coded(request->code() + 1);
    rpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    if (WantsEarlyMetadata(*context)) reactor->StartSendInitialMetadata();
    reactor->Finish(rpc::Status::OK);
    return reactor;
  }
  rpc::ServerReadReactor<Parcel>* Upload(rpc::CallbackServerContext* context,
                                         Parcel* response) override {
    return new UploadReactor(context, response);
  }
  rpc::ServerWriteReactor<Parcel>* Download(rpc::CallbackServerContext* context,
                                            const Parcel*) override {
    return new DownloadReactor(context);
  }
  rpc::ServerBidiReactor<Parcel, Parcel>* Chat(
      rpc::CallbackServerContext* context) override {
    return new ChatReactor<Parcel>(context);
  }
};

class Generic final : public ServedParcels,
                      private rpc::CallbackGenericService {
  void Register(rpc::ServerBuilder& builder) override {
    builder.RegisterCallbackGenericService(this);
  }
  rpc::ServerGenericBidiReactor* CreateReactor(
      rpc::GenericCallbackServerContext* context) override {
    return new ChatReactor<rpc::ByteBuffer>(context);
  }
};

// ---- Coroutines.

class Coroutine final : public ServedParcels,
                        private Parcels::CoroutineService {
  void Register(rpc::ServerBuilder& builder) override {
    builder.RegisterService(this);
  }

  rpc::Task<rpc::Status> Unary(rpc::CallbackServerContext*,
                               const Parcel* request,
                               Parcel* response) override {
    *response = Coded(request->code() + 1);
    co_return rpc::Status::OK;
  }
  rpc::Task<rpc::Status> Upload(rpc::CallbackServerContext* context,
                                rpc::CoroServerReader<Parcel>* reader,
                                Parcel* response) override {
    if (WantsEarlyMetadata(*context)) co_await reader->SendInitialMetadata();
    Parcel request;
    while (co_await reader->Read(&request)) {
      response->set_code(response->code() + 1);
    }
    co_return rpc::Status::OK;
  }
  rpc::Task<rpc::Status> Download(
      rpc::CallbackServerContext* context, const Parcel*,
      rpc::CoroServerWriter<Parcel>* writer) override {
    if (WantsEarlyMetadata(*context)) co_await writer->SendInitialMetadata();
    for (int i = 0; i < 2; ++i) co_await writer->Write(Coded(i));
    co_return rpc::Status::OK;
  }
  rpc::Task<rpc::Status> Chat(
      rpc::CallbackServerContext* context,
      rpc::CoroServerReaderWriter<Parcel, Parcel>* stream) override {
    if (WantsEarlyMetadata(*context)) co_await stream->SendInitialMetadata();
    Parcel request;
    while (co_await stream->Read(&request)) co_await stream->Write(request);
    co_return rpc::Status::OK;
  }
};

// ---- Queues: a thread for each kind, with a queue of its own.

class Queue final : public ServedParcels {
 public:
  ~Queue() override { JoinAll(); }
  void Register(rpc::ServerBuilder& builder) override {
    builder.RegisterService(&service_);
    for (auto& queue : queues_) queue = builder.AddCompletionQueue();
  }
  void Begin() override {
    threads_[0] = std::thread([this] { Serve(0, &Queue::Unary); });
    threads_[1] = std::thread([this] { Serve(1, &Queue::Upload); });
    threads_[2] = std::thread([this] { Serve(2, &Queue::Download); });
    threads_[3] = std::thread([this] { Serve(3, &Queue::Chat); });
  }
  void End() override { JoinAll(); }

 private:
  struct Asked {
    rpc::ServerCompletionQueue* queue;
    rpc::ServerContext context;

    // Whether the event comes, and is ok.
    bool Await() {
      void* tag;
      bool ok;
      return queue->Next(&tag, &ok) && ok;
    }
    template <class Responder>
    void SendMetadata(Responder& responder) {
      if (!WantsEarlyMetadata(context)) return;
      responder.SendInitialMetadata(Tag(1));
      Await();
    }
  };

  void JoinAll() {
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }

  // Serves one call, if it comes before the server goes.
  void Serve(int index, void (Queue::*serve)(Asked&)) {
    Asked asked{.queue = queues_[index].get()};
    (this->*serve)(asked);
    queues_[index]->Shutdown();
    void* tag;
    bool ok;
    while (asked.queue->Next(&tag, &ok)) {
    }
  }
  void Unary(Asked& asked) {
    rpc::ServerAsyncResponseWriter<Parcel> responder(&asked.context);
    Parcel request;
    service_.RequestUnary(&asked.context, &request, &responder, asked.queue,
                          asked.queue, Tag(1));
    if (!asked.Await()) return;
    asked.SendMetadata(responder);
    responder.Finish(Coded(request.code() + 1), rpc::Status::OK, Tag(1));
    asked.Await();
  }
  void Upload(Asked& asked) {
    rpc::ServerAsyncReader<Parcel, Parcel> responder(&asked.context);
    service_.RequestUpload(&asked.context, &responder, asked.queue, asked.queue,
                           Tag(1));
    if (!asked.Await()) return;
    asked.SendMetadata(responder);
    Parcel message;
    int count = -1;
    do {
      ++count;
      responder.Read(&message, Tag(1));
    } while (asked.Await());
    responder.Finish(Coded(count), rpc::Status::OK, Tag(1));
    asked.Await();
  }
  void Download(Asked& asked) {
    rpc::ServerAsyncWriter<Parcel> responder(&asked.context);
    Parcel request;
    service_.RequestDownload(&asked.context, &request, &responder, asked.queue,
                             asked.queue, Tag(1));
    if (!asked.Await()) return;
    asked.SendMetadata(responder);
    for (int i = 0; i < 2; ++i) {
      responder.Write(Coded(i), Tag(1));
      asked.Await();
    }
    responder.Finish(rpc::Status::OK, Tag(1));
    asked.Await();
  }
  void Chat(Asked& asked) {
    rpc::ServerAsyncReaderWriter<Parcel, Parcel> responder(&asked.context);
    service_.RequestChat(&asked.context, &responder, asked.queue, asked.queue,
                         Tag(1));
    if (!asked.Await()) return;
    asked.SendMetadata(responder);
    Parcel message;
    responder.Read(&message, Tag(1));
    while (asked.Await()) {
      responder.Write(message, Tag(1));
      asked.Await();
      responder.Read(&message, Tag(1));
    }
    responder.Finish(rpc::Status::OK, Tag(1));
    asked.Await();
  }

  Parcels::AsyncService service_;
  std::unique_ptr<rpc::ServerCompletionQueue> queues_[4];
  std::thread threads_[4];
};

}  // namespace

std::string NameOf(ServerApi api) {
  switch (api) {
    case ServerApi::kBlocking:
      return "Blocking";
    case ServerApi::kCallback:
      return "Callback";
    case ServerApi::kQueue:
      return "Queue";
    case ServerApi::kCoroutine:
      return "Coroutine";
    case ServerApi::kGeneric:
      return "Generic";
  }
  return "";
}

std::unique_ptr<ServedParcels> ServeParcels(ServerApi api) {
  switch (api) {
    case ServerApi::kBlocking:
      return std::make_unique<Blocking>();
    case ServerApi::kCallback:
      return std::make_unique<Callback>();
    case ServerApi::kQueue:
      return std::make_unique<Queue>();
    case ServerApi::kCoroutine:
      return std::make_unique<Coroutine>();
    case ServerApi::kGeneric:
      return std::make_unique<Generic>();
  }
  return nullptr;
}

}  // namespace e2e
