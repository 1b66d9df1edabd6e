#include "rpc/internal/server_interception.h"

#include <utility>

#include "rpc/internal/intercepted_message.h"
#include "rpc/internal/intercepted_operation.h"
#include "rpc/internal/interception_batch.h"

namespace rpc::internal {

// ---- Operations. Each owns itself, and holds the call.

class ServerInterception::Operation : public InterceptedOperation {
 public:
  Operation(ServerInterception* interception, StreamOperation* operation)
      : InterceptedOperation(&interception->interceptors_),
        interception_(*interception),
        operation_(operation) {
    interception->Hold();
  }

 protected:
  ServerInterception& interception() { return interception_; }
  InterceptedCall& call() { return interception_.call_; }

 private:
  virtual void AfterDone() {}

  void End(bool ok) final {
    AfterDone();
    ServerInterception& interception = interception_;
    StreamOperation* const operation = operation_;
    delete this;
    // As long as there is an operation, the handler's side holds the call, too.
    interception.Release();
    if (operation != nullptr) operation->Complete(ok);
  }

  ServerInterception& interception_;
  StreamOperation* const operation_;
};

// One that sends, in its turn.
class ServerInterception::SendOperation : public Operation,
                                          private SendOrder::Step {
 public:
  SendOperation(ServerInterception* interception, StreamOperation* operation)
      : Operation(interception, operation),
        with_metadata_(interception->TakeMetadataTurn()) {}

  void BeginInTurn() {
    const std::shared_ptr<ServerInterception> kept =
        interception().shared_from_this();
    kept->send_order_.Enter(this);
  }

 protected:
  void ShowBefore() override {
    if (!with_metadata_) return;
    Show(Hook::PRE_SEND_INITIAL_METADATA);
    fields().send_initial_metadata = call().sent_initial_metadata();
  }

 private:
  void Act() final { Begin(); }
  // The order is needed for longer than the call.
  void Await() final {
    const std::shared_ptr<ServerInterception> kept =
        interception().shared_from_this();
    Go();
    kept->send_order_.Leave();
  }

  const bool with_metadata_;
};

class ServerInterception::ArrivalOperation final : public Operation {
 public:
  ArrivalOperation(ServerInterception* interception, MessageRef request,
                   std::function<void()> run)
      : Operation(interception, nullptr),
        request_(request),
        run_(std::move(run)) {}

 private:
  void Perform() override { Complete(true); }
  void ShowAfter(bool* /*ok*/) override {
    Show(Hook::POST_RECV_INITIAL_METADATA);
    fields().recv_initial_metadata = call().received_metadata();
    if (!request_.has_message()) return;
    Show(Hook::POST_RECV_MESSAGE);
    fields().recv_message = request_.object();
  }
  void AfterDone() override { run_(); }

  const MessageRef request_;
  const std::function<void()> run_;
};

class ServerInterception::MetadataOperation final : public SendOperation {
  using SendOperation::SendOperation;

  void Perform() override {
    call().SendInitialMetadataNow();
    Complete(true);
  }
};

class ServerInterception::ReadOperation final : public Operation {
 public:
  ReadOperation(ServerInterception* interception, StreamOperation* operation,
                StreamMessage* received, MessageRef message,
                BufferChain* attachment)
      : Operation(interception, operation),
        received_(*received),
        message_(message),
        attachment_(attachment) {}

 private:
  void Perform() override { call().ReadNow(&received_, this); }
  void ShowAfter(bool* ok) override {
    *ok = *ok && call().DecodeNow(received_, message_, attachment_);
    Show(Hook::POST_RECV_MESSAGE);
    fields().recv_message = *ok ? message_.object() : nullptr;
  }

  StreamMessage& received_;
  const MessageRef message_;
  BufferChain* const attachment_;
};

class ServerInterception::WriteOperation final : public SendOperation {
 public:
  WriteOperation(ServerInterception* interception, StreamOperation* operation,
                 ConstMessageRef message, WriteOptions options)
      : SendOperation(interception, operation),
        message_(message),
        options_(std::move(options)) {
    if (!interception->messages_stay_) message_.Serialize();
  }

 private:
  void ShowBefore() override {
    SendOperation::ShowBefore();
    Show(Hook::PRE_SEND_MESSAGE);
    fields().send_message = &message_;
  }
  void Perform() override {
    if (message_.error().ok()) {
      return call().WriteNow(message_.ref(), std::move(options_), this);
    }
    call().FailWrite(message_.error());
    Complete(false);
  }
  void ShowAfter(bool* ok) override {
    Show(Hook::POST_SEND_MESSAGE);
    fields().message_sent = *ok;
  }

  InterceptedMessage message_;
  WriteOptions options_;
};

class ServerInterception::RespondOperation final : public SendOperation {
 public:
  RespondOperation(ServerInterception* interception, StreamOperation* operation,
                   const Status& status, ConstMessageRef response)
      : SendOperation(interception, operation),
        status_(status),
        message_(status.ok() ? response : ConstMessageRef()) {
    if (!interception->messages_stay_) message_.Serialize();
  }

 private:
  void ShowBefore() override {
    SendOperation::ShowBefore();
    Show(Hook::PRE_SEND_STATUS);
    fields().send_status = &status_;
    fields().send_trailing_metadata = call().sent_trailing_metadata();
    if (!message_.has_message()) return;
    Show(Hook::PRE_SEND_MESSAGE);
    fields().send_message = &message_;
  }
  void Perform() override {
    if (status_.ok() && !message_.error().ok()) status_ = message_.error();
    if (status_.ok()) {
      call().RespondNow(status_, message_.ref());
    } else {
      call().RespondNow(status_, ConstMessageRef());
    }
    Complete(status_.ok());
  }
  void ShowAfter(bool* ok) override {
    if (!message_.has_message()) return;
    Show(Hook::POST_SEND_MESSAGE);
    fields().message_sent = *ok;
  }

  Status status_;
  InterceptedMessage message_;
};

class ServerInterception::CloseOperation final : public Operation {
  using Operation::Operation;

  void Perform() override { Complete(true); }
  void ShowAfter(bool* /*ok*/) override { Show(Hook::POST_RECV_CLOSE); }
};

// ---- The interception.

void ServerInterception::Arrive(MessageRef request, std::function<void()> run) {
  info_.context_ = call_.intercepted_context();
  for (size_t i = 0; i < factories_->size(); ++i) {
    interceptors_.Add((*factories_)[i]->CreateServerInterceptor(&info_), i);
  }
  interceptors_.AllAdded();
  (new ArrivalOperation(this, request, std::move(run)))->Begin();
}

void ServerInterception::SendInitialMetadata() {
  (new MetadataOperation(this, nullptr))->BeginInTurn();
}

void ServerInterception::Read(StreamMessage* received, MessageRef message,
                              BufferChain* attachment,
                              StreamOperation* operation) {
  (new ReadOperation(this, operation, received, message, attachment))->Begin();
}

void ServerInterception::Write(ConstMessageRef message, WriteOptions options,
                               StreamOperation* operation) {
  (new WriteOperation(this, operation, message, std::move(options)))
      ->BeginInTurn();
}

void ServerInterception::Respond(const Status& status, ConstMessageRef response,
                                 StreamOperation* operation) {
  (new RespondOperation(this, operation, status, response))->BeginInTurn();
}

void ServerInterception::Finished() {
  finished_.store(true, std::memory_order_release);
  Release();
}

void ServerInterception::OnTryCancel() { ShowCancel(interceptors_); }

// The call hears of it at once; it stays until the interceptors are through.
void ServerInterception::OnClosed(const CallOutcome& outcome) {
  auto* const close = new CloseOperation(this, nullptr);
  call_.ClosedNow(outcome);
  close->Begin();
  Release();
}

void ServerInterception::Release() {
  if (holds_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const std::shared_ptr<ServerInterception> kept = shared_from_this();
  call_.FinishedNow();
}

}  // namespace rpc::internal
