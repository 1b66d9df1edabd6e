#include "rpc/internal/callback_server_stream.h"

#include <exception>

#include "rpc/internal/callback_scope.h"
#include "rpc/internal/executor.h"
#include "rpc/internal/thrown.h"

namespace rpc::internal {

void CallbackServerStream::Run() {
  generic_context_->method_ = path();
  KeepPeer();
  Reactions::Reset();
  finish_begun_.store(false, std::memory_order_relaxed);
  Hold();
  try {
    reactor_ = CallHandler();
  } catch (...) {
    reactor_ = nullptr;
    return Refuse(StatusOfThrown(std::current_exception()));
  }
  if (reactor_ == nullptr) {
    return Refuse(Status(StatusCode::UNIMPLEMENTED, ""));
  }
  if (interception() != nullptr && interception()->ComesSecond()) {
    Note(kCancel);
  }
  reactor_->Bind(this);
}

// ---- What the reactor starts. Each has a hold until its reaction; the two
// that are there from the start are Finish's and OnEnded's, so that OnCancel is
// not lost to a Finish.

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
  Read(&received_, message, attachment, &read_);
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
  if (!BeginFinish()) return;
  UserScope scope;
  WriteAtEnd(message, std::move(options), std::move(status));
  Reactions::Release();
}

void CallbackServerStream::Finish(Status status) {
  if (!BeginFinish()) return;
  UserScope scope;
  RespondAtEnd(std::move(status), response());
  Reactions::Release();
}

bool CallbackServerStream::BeginFinish() {
  if (!finish_begun_.exchange(true, std::memory_order_relaxed)) return true;
  ServerStreamReactor::LogSecondFinish();
  return false;
}

// ---- What it hears.

// In order only after Run. Cut off, perhaps before it, or on another thread.
void CallbackServerStream::OnEnded(bool cancelled) {
  if (interception() != nullptr && !interception()->ComesSecond()) return;
  if (reactor_ == nullptr) return;
  if (cancelled) {
    Note(kCancel);
  } else {
    Reactions::Release();
  }
}

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
      reactor_->OnCancel();
      break;
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
  if (reactor == nullptr) return;
  reactor->Unbind();
  reactor->OnDone();
}

}  // namespace rpc::internal
