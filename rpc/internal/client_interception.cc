#include "rpc/internal/client_interception.h"

#include <cstddef>
#include <utility>

#include "rpc/internal/call_errors.h"
#include "rpc/internal/channel_interceptors.h"
#include "rpc/internal/intercepted_channel.h"
#include "rpc/internal/intercepted_operation.h"
#include "rpc/internal/interception_batch.h"

namespace rpc::internal {

// ---- Operations. Each owns itself, and goes when the application's is
// completed.

class ClientInterception::Operation : public InterceptedOperation {
 public:
  Operation(ClientInterception* interception, Stream stream,
            StreamOperation* operation)
      : InterceptedOperation(&interception->interceptors_),
        interception_(*interception),
        stream_(std::move(stream)),
        operation_(operation) {}

  std::unique_ptr<ChannelInterface> GetInterceptedChannel() final {
    return std::make_unique<InterceptedChannel>(
        interception_.info_.channel()->shared_from_this(), current_place() + 1);
  }

 protected:
  ClientInterception& interception() { return interception_; }
  InterceptedStream& stream() { return *stream_; }

 private:
  virtual void AfterDone() {}

  void End(bool ok) final {
    AfterDone();
    const Stream stream = std::move(stream_);
    StreamOperation* const operation = operation_;
    delete this;
    if (operation == nullptr) return;
    operation->Complete(ok);
    stream->WakeWaiters();
  }

  ClientInterception& interception_;
  Stream stream_;  // which keeps the interception
  StreamOperation* const operation_;
};

// One that sends, in its turn.
class ClientInterception::SendOperation : public Operation,
                                          private SendOrder::Step {
 public:
  SendOperation(ClientInterception* interception, const Stream& stream,
                StreamOperation* operation)
      : Operation(interception, stream, operation), kept_(stream) {}

  void BeginInTurn() {
    const Stream kept = kept_;
    interception().send_order_.Enter(this);
  }

 private:
  void Act() final { Begin(); }
  // The order is needed for longer than this.
  void Await() final {
    const Stream kept = std::move(kept_);
    SendOrder& order = interception().send_order_;
    Go();
    order.Leave();
  }

  Stream kept_;
};

// One that receives, once it is known from whom.
class ClientInterception::ReceiveOperation : public Operation {
 public:
  ReceiveOperation(ClientInterception* interception, Stream stream,
                   StreamOperation* operation)
      : Operation(interception, std::move(stream), operation),
        with_metadata_(interception->TakeMetadataTurn()) {}

 protected:
  void ShowHijacker() override {
    if (with_metadata_) ShowMetadata(Hook::PRE_RECV_INITIAL_METADATA);
  }
  void ShowAfter(bool* /*ok*/) override {
    if (with_metadata_) ShowMetadata(Hook::POST_RECV_INITIAL_METADATA);
  }

 private:
  void Await() final { interception().GoWhenStarted(this); }
  void ShowMetadata(Hook hook) {
    Show(hook);
    fields().recv_initial_metadata =
        interception().received().mutable_initial();
  }

  const bool with_metadata_;
};

class ClientInterception::StartOperation final : public SendOperation {
 public:
  StartOperation(ClientInterception* interception, const Stream& stream,
                 StreamOperation* operation, InterceptedMessage request)
      : SendOperation(interception, stream, operation),
        request_(std::move(request)) {}

 private:
  bool MayBeHijacked() const override { return true; }
  void ShowBefore() override {
    Show(Hook::PRE_SEND_INITIAL_METADATA);
    fields().send_initial_metadata = interception().sent_metadata();
    if (!request_.has_message()) return;
    Show(Hook::PRE_SEND_MESSAGE);
    Show(Hook::PRE_SEND_CLOSE);
    fields().send_message = &request_;
  }
  void Perform() override {
    if (request_.error().ok()) {
      stream().StartNow(request_.ref());
    } else {
      stream().NeverBegan(request_.error());
    }
    Complete(stream().MayRun());
  }
  bool HijackerDone() override {
    stream().BeginHijacked();
    return !send_failed();
  }
  void ShowAfter(bool* ok) override {
    if (!request_.has_message()) return;
    Show(Hook::POST_SEND_MESSAGE);
    fields().message_sent = *ok;
  }
  void AfterDone() override { interception().Started(); }

  InterceptedMessage request_;
};

class ClientInterception::WriteOperation final : public SendOperation {
 public:
  WriteOperation(ClientInterception* interception, const Stream& stream,
                 StreamOperation* operation, ConstMessageRef message,
                 WriteOptions options)
      : SendOperation(interception, stream, operation),
        message_(message),
        options_(std::move(options)) {
    if (!interception->messages_stay_) message_.Serialize();
  }

 private:
  void ShowBefore() override {
    Show(Hook::PRE_SEND_MESSAGE);
    fields().send_message = &message_;
    if (options_.is_last_message()) Show(Hook::PRE_SEND_CLOSE);
  }
  void Perform() override {
    if (message_.error().ok()) {
      return stream().WriteNow(message_.ref(), std::move(options_), this);
    }
    stream().Fail(message_.error());
    Complete(false);
  }
  bool HijackerDone() override { return !send_failed(); }
  void ShowAfter(bool* ok) override {
    Show(Hook::POST_SEND_MESSAGE);
    fields().message_sent = *ok;
  }

  InterceptedMessage message_;
  WriteOptions options_;
};

class ClientInterception::WritesDoneOperation final : public SendOperation {
  using SendOperation::SendOperation;

  void ShowBefore() override { Show(Hook::PRE_SEND_CLOSE); }
  void Perform() override { stream().WritesDoneNow(this); }
};

class ClientInterception::MetadataOperation final : public ReceiveOperation {
  using ReceiveOperation::ReceiveOperation;

  void Perform() override { stream().WaitForInitialMetadataNow(this); }
};

class ClientInterception::ReadOperation final : public ReceiveOperation {
 public:
  ReadOperation(ClientInterception* interception, Stream stream,
                StreamOperation* operation, StreamMessage* received,
                MessageRef message, BufferChain* attachment)
      : ReceiveOperation(interception, std::move(stream), operation),
        received_(*received),
        message_(message),
        attachment_(attachment) {}

 private:
  void Perform() override { stream().ReadNow(&received_, this); }
  void ShowHijacker() override {
    ReceiveOperation::ShowHijacker();
    Show(Hook::PRE_RECV_MESSAGE);
    fields().recv_message = message_.object();
  }
  bool HijackerDone() override { return !receive_failed(); }
  void ShowAfter(bool* ok) override {
    if (!is_hijacked()) {
      *ok = *ok && stream().DecodeNow(received_, message_, attachment_);
    }
    ReceiveOperation::ShowAfter(ok);
    Show(Hook::POST_RECV_MESSAGE);
    fields().recv_message = *ok ? message_.object() : nullptr;
  }

  StreamMessage& received_;
  const MessageRef message_;
  BufferChain* const attachment_;
};

class ClientInterception::FinishOperation final : public ReceiveOperation {
 public:
  FinishOperation(ClientInterception* interception, Stream stream,
                  StreamOperation* operation, bool discard, MessageRef response)
      : ReceiveOperation(interception, std::move(stream), operation),
        discard_(discard),
        response_(response) {}

 private:
  void Perform() override { stream().FinishNow(discard_, this); }
  void ShowHijacker() override {
    ReceiveOperation::ShowHijacker();
    ShowStatus(Hook::PRE_RECV_STATUS);
    if (!response_.has_message()) return;
    Show(Hook::PRE_RECV_MESSAGE);
    fields().recv_message = response_.object();
  }
  bool HijackerDone() override {
    if (receive_failed() && status_.ok()) status_ = NoResponse();
    return true;
  }
  void ShowAfter(bool* ok) override {
    if (!is_hijacked()) status_ = stream().TakeStatusNow(response_);
    ReceiveOperation::ShowAfter(ok);
    ShowStatus(Hook::POST_RECV_STATUS);
    if (!response_.has_message()) return;
    Show(Hook::POST_RECV_MESSAGE);
    const bool came = status_.ok() && !receive_failed();
    fields().recv_message = came ? response_.object() : nullptr;
  }
  void AfterDone() override { interception().status_ = std::move(status_); }

  void ShowStatus(Hook hook) {
    Show(hook);
    fields().recv_status = &status_;
    fields().recv_trailing_metadata =
        interception().received().mutable_trailing();
  }

  const bool discard_;
  const MessageRef response_;
  Status status_;
};

// ---- The interception.

std::shared_ptr<ClientInterception> ClientInterception::Create(
    const CallTarget& target, const RpcMethod& method, ClientContext* context) {
  if (target.interceptors == nullptr || context->used_) return nullptr;
  std::shared_ptr<ClientInterception> interception(
      new ClientInterception(target, method, context));
  context->AddCancelListener(interception);
  return interception;
}

ClientInterception::ClientInterception(const CallTarget& target,
                                       const RpcMethod& method,
                                       ClientContext* context)
    : context_(*context), info_(method, context, target.interceptors->channel) {
  if (context->sent_ == nullptr) {
    context->sent_ = std::make_unique<ClientContext::SentMetadata>();
  }
  context->received_ = std::make_unique<ReceivedMetadata>();
  const ClientInterceptorFactories& factories = *target.interceptors->factories;
  const size_t first = target.interceptors->first;
  for (size_t i = first; i < factories.size(); ++i) {
    interceptors_.Add(factories[i]->CreateClientInterceptor(&info_), i);
  }
  auto* const global = GlobalClientInterceptorFactory();
  if (global != nullptr && first <= factories.size()) {
    interceptors_.Add(global->CreateClientInterceptor(&info_),
                      factories.size());
  }
  interceptors_.AllAdded();
}

void ClientInterception::OnTryCancel() { ShowCancel(interceptors_); }

void ClientInterception::Start(Stream stream, InterceptedMessage request,
                               StreamOperation* operation) {
  (new StartOperation(this, stream, operation, std::move(request)))
      ->BeginInTurn();
}

void ClientInterception::Prepare(ConstMessageRef request) {
  messages_stay_ = false;
  prepared_.emplace(request);
  prepared_->Serialize();
}

void ClientInterception::StartPrepared(Stream stream,
                                       StreamOperation* operation) {
  Start(std::move(stream), *std::move(prepared_), operation);
}

void ClientInterception::Read(Stream stream, StreamMessage* received,
                              MessageRef message, BufferChain* attachment,
                              StreamOperation* operation) {
  (new ReadOperation(this, std::move(stream), operation, received, message,
                     attachment))
      ->Begin();
}

void ClientInterception::Write(Stream stream, ConstMessageRef message,
                               WriteOptions options,
                               StreamOperation* operation) {
  (new WriteOperation(this, stream, operation, message, std::move(options)))
      ->BeginInTurn();
}

void ClientInterception::WritesDone(Stream stream, StreamOperation* operation) {
  (new WritesDoneOperation(this, stream, operation))->BeginInTurn();
}

void ClientInterception::WaitForInitialMetadata(Stream stream,
                                                StreamOperation* operation) {
  (new MetadataOperation(this, std::move(stream), operation))->Begin();
}

void ClientInterception::Finish(Stream stream, bool discard,
                                MessageRef response,
                                StreamOperation* operation) {
  (new FinishOperation(this, std::move(stream), operation, discard, response))
      ->Begin();
}

void ClientInterception::GoWhenStarted(Operation* operation) {
  {
    absl::MutexLock lock(&mutex_);
    if (!started_) {
      waiting_.push_back(operation);
      return;
    }
  }
  operation->Go();
}

void ClientInterception::Started() {
  std::vector<Operation*> waiting;
  {
    absl::MutexLock lock(&mutex_);
    started_ = true;
    waiting.swap(waiting_);
  }
  for (Operation* operation : waiting) operation->Go();
}

}  // namespace rpc::internal
