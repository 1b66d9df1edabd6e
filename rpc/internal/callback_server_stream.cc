#include "rpc/internal/callback_server_stream.h"

#include "rpc/internal/callback_scope.h"
#include "rpc/internal/executor.h"

namespace rpc::internal {

void CallbackServerStream::Run() {
  context_.method_ = path();
  KeepPeer();
  Reactions::Reset();
  reactor_ = CallHandler();
  if (reactor_ == nullptr) {
    Respond(Status(StatusCode::UNIMPLEMENTED, ""), ConstMessageRef());
    return Finished();
  }
  reactor_->Bind(this);
}

// ---- What the reactor starts. Each has a hold until its reaction; the one
// that is there from the start is Finish's.

void CallbackServerStream::StartSendInitialMetadata() {
  UserScope scope;
  Hold();
  SendInitialMetadata(&metadata_);
}

void CallbackServerStream::StartRead(MessageRef message,
                                     BufferChain* attachment) {
  UserScope scope;
  Hold();
  read_message_ = message;
  read_attachment_ = attachment;
  Read(&received_, &read_);
}

void CallbackServerStream::StartWrite(ConstMessageRef message,
                                      WriteOptions options) {
  UserScope scope;
  Hold();
  Write(message, std::move(options), &write_);
}

void CallbackServerStream::StartWriteAndFinish(ConstMessageRef message,
                                               WriteOptions options,
                                               Status status) {
  UserScope scope;
  WriteAtEnd(message, std::move(options), std::move(status));
  Reactions::Release();
}

void CallbackServerStream::Finish(Status status) {
  UserScope scope;
  RespondAtEnd(std::move(status), response());
  Reactions::Release();
}

// ---- What it hears.

void CallbackServerStream::React(Event event) {
  CallbackScope scope(reactor_);
  switch (event) {
    case kInitialMetadata:
      reactor_->OnSendInitialMetadataDone(metadata_.ok());
      break;
    case kRead: {
      const bool decoded =
          read_.ok() && Decode(received_, read_message_, read_attachment_);
      reactor_->OnReadDone(decoded);
      break;
    }
    case kWrite:
      reactor_->OnWriteDone(write_.ok());
      break;
    case kCancel:
      return reactor_->OnCancel();
    case kWritesDone:
    case kOver:
      return;
  }
  Reactions::Release();
}

void CallbackServerStream::PostReactions() {
  if (!Executor::ForCallbacks().Post(this)) Reactions::Run();
}

void CallbackServerStream::OnComplete() {
  ServerStream::OnComplete();
  ServerStreamReactor* const reactor = std::exchange(reactor_, nullptr);
  if (reactor != nullptr) reactor->OnDone();
}

}  // namespace rpc::internal
