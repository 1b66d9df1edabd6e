#include "rpc/internal/client_reactor_stream.h"

#include <utility>

#include "rpc/internal/callback_scope.h"

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

// ---- The stream.

ClientReactorStream::ClientReactorStream(std::shared_ptr<ClientStream> stream,
                                         ConstMessageRef request,
                                         MessageRef response,
                                         ClientStreamReactor* reactor)
    : stream_(std::move(stream)),
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
      request, response, reactor);
}

// The hold that is there from the start is that of the call's end. The others
// are of the initial metadata, and of this function. The server may answer
// before the stream knows its call well enough for what reactions begin.
void ClientReactorStream::StartCall() {
  UserScope scope;
  Pause();
  Hold(2);
  stream_->WaitForInitialMetadata(&metadata_);
  stream_->WaitForEnd(&closed_);
  stream_->StartCall(request_);
  StartWhatWasEarly();
  Release();
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
  if (!started_.load(std::memory_order_acquire)) {
    absl::MutexLock lock(&early_mutex_);
    if (!started_.load(std::memory_order_relaxed)) {
      early_.message = message;
      early_.options = std::move(options);
      return;
    }
  }
  stream_->Write(message, std::move(options), &write_);
}

void ClientReactorStream::WritesDone() {
  UserScope scope;
  Hold();
  if (!started_.load(std::memory_order_acquire)) {
    absl::MutexLock lock(&early_mutex_);
    if (!started_.load(std::memory_order_relaxed)) {
      early_.writes_done = true;
      return;
    }
  }
  stream_->WritesDone(&writes_done_);
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
