#include "rpc/internal/client_reactor_stream.h"

#include <atomic>
#include <memory>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rpc/internal/alarm_clock.h"
#include "rpc/internal/callback_scope.h"
#include "rpc/internal/cancel_listener.h"

namespace rpc::internal {

// ---- The reactor's side.

ClientStreamReactor::~ClientStreamReactor() {
  if (stream_ != nullptr) stream_->NeverStart();
}

void ClientStreamReactor::StartCall() { stream_->StartCall(); }

void ClientStreamReactor::AddMultipleHolds(int holds) {
  stream_->AddHolds(holds);
}

void ClientStreamReactor::RemoveHold() { stream_->RemoveHold(); }

// ---- A call that waits for what is written first.

// It begins, to end at once, also when it is cancelled or its deadline passes.
// Until then nothing else can end it, so that the stream is there.
class ClientReactorStream::Cork final
    : public CancelListener,
      public std::enable_shared_from_this<Cork>,
      private AlarmClock::Alarm,
      private Executor::Task {
 public:
  explicit Cork(ClientReactorStream* stream) : stream_(stream) {}

  // What is written meanwhile may have begun the call already.
  void Watch(ClientContext& context, absl::Time deadline) {
    if (deadline != absl::InfiniteFuture()) {
      waiting_ = shared_from_this();
      AlarmClock::Get().Set(this, deadline);
      if (stream_.load() == nullptr) StopWaiting();
    }
    context.AddCancelListener(shared_from_this());
  }

  // Lets the call begin, unless it has.
  void Pull() {
    ClientReactorStream* const stream = stream_.exchange(nullptr);
    if (stream == nullptr) return;
    StopWaiting();
    stream->LaunchCorked();
  }

 private:
  void StopWaiting() {
    if (AlarmClock::Get().Cancel(this)) waiting_.reset();
  }

  void OnTryCancel() override { Pull(); }
  // Interceptors of the call may block.
  void OnTime() override {
    if (!Executor::ForCallbacks().Post(this)) RunTask();
  }
  void RunTask() override {
    const std::shared_ptr<Cork> self = std::move(waiting_);
    Pull();
  }

  std::atomic<ClientReactorStream*> stream_;  // null: it was let go
  std::shared_ptr<Cork> waiting_;             // itself, while the alarm is set
};

// ---- The stream.

ClientReactorStream::ClientReactorStream(std::shared_ptr<ClientStream> stream,
                                         ClientContext* context,
                                         ConstMessageRef request,
                                         MessageRef response,
                                         ClientStreamReactor* reactor)
    : stream_(std::move(stream)),
      context_(*context),
      reactor_(*reactor),
      request_(request),
      response_(response) {}

void ClientReactorStream::Create(ChannelInterface* channel,
                                 const RpcMethod& method,
                                 ClientContext* context,
                                 ConstMessageRef request, MessageRef response,
                                 ClientStreamReactor* reactor) {
  reactor->stream_ = new ClientReactorStream(
      ClientStream::Create(channel, method, context,
                           ClientStream::Completions::kMayTakeLong),
      context, request, response, reactor);
}

// The hold that is there from the start is that of the call's end. The others
// are of the initial metadata, and of this function.
void ClientReactorStream::StartCall() {
  UserScope scope;
  Pause();
  Hold(2);
  stream_->WaitForInitialMetadata(&metadata_);
  stream_->WaitForEnd(&closed_);
  const absl::Time deadline = context_.EarlierDeadline();
  std::shared_ptr<Cork> cork;
  if (IsCorked()) {
    absl::MutexLock lock(&early_mutex_);
    if (!early_.message.has_message() && !early_.writes_done) {
      cork = cork_ = std::make_shared<Cork>(this);
    }
  }
  if (cork != nullptr) {
    cork->Watch(context_, deadline);
    return Release();
  }
  Launch();
  Release();
  Continue();
}

// One that cannot begin says so at once.
bool ClientReactorStream::IsCorked() const {
  return !request_.has_message() && context_.sent_ != nullptr &&
         context_.sent_->corked && !context_.used_ &&
         stream_->driven_channel() != nullptr;
}

// Reactions are paused meanwhile: the server may answer before the stream knows
// its call well enough for what they begin.
void ClientReactorStream::Launch() {
  stream_->StartCall(request_);
  StartWhatWasEarly();
}

void ClientReactorStream::LaunchCorked() {
  UserScope scope;
  Launch();
  Continue();
}

void ClientReactorStream::StartWhatWasEarly() {
  absl::MutexLock lock(&early_mutex_);
  if (early_.message.has_message()) {
    stream_->Write(early_.message, std::move(early_.options), &write_);
  }
  if (early_.writes_done) stream_->WritesDone(&writes_done_);
  started_.store(true, std::memory_order_release);
}

template <typename Keep>
bool ClientReactorStream::KeepEarly(Keep keep) {
  if (started_.load(std::memory_order_acquire)) return false;
  std::shared_ptr<Cork> cork;
  {
    absl::MutexLock lock(&early_mutex_);
    if (started_.load(std::memory_order_relaxed)) return false;
    keep(early_);
    cork = cork_;
  }
  if (cork != nullptr) cork->Pull();
  return true;
}

void ClientReactorStream::Read(MessageRef message, BufferChain* attachment) {
  UserScope scope;
  Hold();
  read_message_ = message;
  read_attachment_ = attachment;
  stream_->Read(&received_, message, attachment, &read_);
}

void ClientReactorStream::Write(ConstMessageRef message, WriteOptions options) {
  UserScope scope;
  Hold();
  const auto keep = [&](Early& early) {
    early.message = message;
    early.options = std::move(options);
  };
  if (!KeepEarly(keep)) stream_->Write(message, std::move(options), &write_);
}

void ClientReactorStream::WritesDone() {
  UserScope scope;
  Hold();
  const auto keep = [](Early& early) { early.writes_done = true; };
  if (!KeepEarly(keep)) stream_->WritesDone(&writes_done_);
}

void ClientReactorStream::RemoveHold() {
  UserScope scope;
  Release();
}

void ClientReactorStream::React(Event event) {
  CallbackScope scope(this);
  switch (event) {
    case kInitialMetadata:
      reactor_.OnReadInitialMetadataDone(metadata_.ok());
      break;
    case kRead: {
      const bool decoded =
          read_.ok() &&
          stream_->Decode(received_, read_message_, read_attachment_);
      reactor_.OnReadDone(decoded);
      break;
    }
    case kWrite:
      reactor_.OnWriteDone(write_.ok());
      break;
    case kWritesDone:
      reactor_.OnWritesDoneDone(writes_done_.ok());
      break;
    case kOver:
    case kCancel:
      break;
  }
  Release();
}

// Without interceptors it is finished at once.
void ClientReactorStream::OnEnd() {
  CallbackScope scope(this);
  stream_->Finish(/*discard=*/false, response_, &finish_);
}

void ClientReactorStream::Finished() {
  CallbackScope scope(this);
  const Status status = stream_->TakeStatus(response_);
  ClientStreamReactor& reactor = reactor_;
  // The context may go with the reactor, and the channel with the stream.
  stream_->Abandon();
  reactor.stream_ = nullptr;
  reactor.OnDone(status);
  delete this;
}

void ClientReactorStream::PostReactions() {
  if (!Executor::ForCallbacks().Post(this)) Run();
}

}  // namespace rpc::internal
