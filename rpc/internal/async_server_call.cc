#include "rpc/internal/async_server_call.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "rpc/logging.h"

namespace rpc::internal {
namespace {

Status ShuttingDown() {
  return Status(StatusCode::UNAVAILABLE, "the server is shutting down");
}

}  // namespace

// ---- Requests.

void AsyncRequest::Answer(AsyncServerCall* call) {
  call_ = call;
  target_.notification_queue->Push(this, call != nullptr);
}

bool AsyncRequest::FinalizeResult(void** tag, bool* ok) {
  // The user hears nothing of a call whose message does not parse.
  if (*ok && !is_bound_) {
    // A call that ends here may be the last thing that holds the handler.
    ServerCore& core = call_->core();
    core.AddReference();
    is_bound_ = call_->Bind(target_);
    const bool asks_again = !is_bound_ && Begin();
    if (asks_again) handler_.Add(this);
    core.RemoveReference();
    if (asks_again) return false;
    *ok = is_bound_;
    if (*ok && !ShowInterceptors()) return false;
  }
  *tag = target_.tag;
  delete this;
  return true;
}

// There is another event when they are through. A queue that is shut down gives
// none: then nobody waits for them.
bool AsyncRequest::ShowInterceptors() {
  ServerInterception* const interception = call_->interception();
  if (interception == nullptr) return true;
  interception->SerializeEarly();
  const bool has_event = Begin();
  interception->Arrive(target_.request, [this, has_event] {
    if (has_event) target_.notification_queue->Push(this, true);
  });
  return !has_event;
}

void AsyncMethodHandler::Request(const AsyncRequest::Target& target) {
  auto* const request = new AsyncRequest(this, target);
  if (request->Begin()) return Add(request);
  Log(LogLevel::kError,
      "a call was requested with a CompletionQueue that is shut down");
  delete request;
}

void AsyncMethodHandler::Add(AsyncRequest* request) {
  AsyncServerCall* call = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    if (!shut_down_ && calls_.empty()) {
      requests_.push_back(request);
      return;
    }
    if (!calls_.empty()) {
      call = calls_.front();
      calls_.pop_front();
      call->waits_ = false;
    }
  }
  request->Answer(call);
}

void AsyncMethodHandler::OnArrival(AsyncServerCall* call) {
  AsyncRequest* request = nullptr;
  bool shut_down;
  {
    absl::MutexLock lock(&mutex_);
    shut_down = shut_down_;
    if (!requests_.empty()) {
      request = requests_.front();
      requests_.pop_front();
    } else if (!shut_down && calls_.size() < call->core().max_waiting_calls) {
      call->waits_ = true;
      call->place_ = calls_.insert(calls_.end(), call);
      return;
    }
  }
  if (request != nullptr) return request->Answer(call);
  call->Refuse(
      shut_down
          ? ShuttingDown()
          : Status(StatusCode::RESOURCE_EXHAUSTED,
                   absl::StrCat(call->core().max_waiting_calls,
                                " calls of this method wait to be requested "
                                "already (verbena.handler_queue)")));
}

bool AsyncMethodHandler::Withdraw(AsyncServerCall* call) {
  absl::MutexLock lock(&mutex_);
  if (!std::exchange(call->waits_, false)) return false;
  calls_.erase(call->place_);
  return true;
}

void AsyncMethodHandler::Shutdown() {
  std::list<AsyncRequest*> requests;
  std::list<AsyncServerCall*> calls;
  {
    absl::MutexLock lock(&mutex_);
    shut_down_ = true;
    requests.swap(requests_);
    calls.swap(calls_);
    for (AsyncServerCall* call : calls) call->waits_ = false;
  }
  for (AsyncRequest* request : requests) request->Answer(nullptr);
  for (AsyncServerCall* call : calls) call->Refuse(ShuttingDown());
}

// ---- Calls.

bool AsyncServerCall::DecodeRequest(IncomingFrame& frame, Status* error) {
  if (handler_.one_message() && !IsOneMessage(frame, error)) return false;
  return BeginReading(frame);
}

void AsyncServerCall::Run() {
  path_ = path();
  KeepPeer();
  holds_.store(1, std::memory_order_relaxed);
  sides_.store(2, std::memory_order_relaxed);
  handler_.OnArrival(this);
}

bool AsyncServerCall::Bind(const AsyncRequest::Target& target) {
  if (handler_.one_message()) {
    // It is there: the call came with it.
    StreamMessage received;
    BlockingOperation operation;
    ReadNow(&received, &operation);
    BufferChain attachment;
    if (!DecodeNow(received, target.request, &attachment)) {
      RespondAtEnd(Status(), ConstMessageRef());
      Finished();
      return false;
    }
    SetReceivedAttachment(std::move(attachment));
  }
  if (target.path != nullptr) *target.path = path_;
  queue_ = target.call_queue;
  target.responder->BindCall(this);
  GiveContext(*target.context);
  ArmDone(*target.context);
  return true;
}

// ---- Operations.

bool AsyncServerCall::Begin(Operation& operation, void* tag) {
  if (!operation.Begin(queue_, tag)) {
    Log(LogLevel::kError,
        "an operation was begun on a CompletionQueue that is shut down; there "
        "will be no event");
    return false;
  }
  holds_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void AsyncServerCall::SendInitialMetadata(void* tag) {
  if (Begin(metadata_, tag)) ServerStream::SendInitialMetadata(&metadata_);
}

void AsyncServerCall::Read(MessageRef message, BufferChain* attachment,
                           void* tag) {
  if (!Begin(read_, tag)) return;
  read_message_ = message;
  read_attachment_ = attachment;
  ServerStream::Read(&received_, message, attachment, &read_);
}

void AsyncServerCall::Write(ConstMessageRef message, WriteOptions options,
                            void* tag) {
  if (Begin(write_, tag)) {
    ServerStream::Write(message, std::move(options), &write_);
  }
}

void AsyncServerCall::WriteAndFinish(ConstMessageRef message,
                                     WriteOptions options, const Status& status,
                                     void* tag) {
  if (!BeginFinish(tag)) return;
  WriteAtEnd(message, std::move(options), status, &ending_);
}

void AsyncServerCall::Finish(ConstMessageRef response, const Status& status,
                             void* tag) {
  if (BeginFinish(tag)) RespondAtEnd(status, response, &ending_);
}

bool AsyncServerCall::BeginFinish(void* tag) {
  if (!std::exchange(finish_begun_, true)) {
    was_wanted_ = IsWanted();
    finish_has_event_ = Begin(finish_, tag);
    return true;
  }
  Log(LogLevel::kError,
      "an asynchronous call was finished twice; the second Finish is left out");
  return false;
}

// Once the event is in the queue, the user may be through with the context.
void AsyncServerCall::Ended() {
  const bool has_event = finish_has_event_;
  const bool was_wanted = was_wanted_;
  Drop();
  if (has_event) finish_.Complete(was_wanted);
}

void AsyncServerCall::Finalize(Operation* operation, bool* ok) {
  if (operation == &read_) {
    *ok = *ok && Decode(received_, read_message_, read_attachment_);
  }
  Drop();
}

void AsyncServerCall::Drop() {
  if (holds_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  DiscardUnread();
  LeaveSide();
}

void AsyncServerCall::LeaveSide() {
  if (sides_.fetch_sub(1, std::memory_order_acq_rel) == 1) Finished();
}

// ---- The end.

void AsyncServerCall::ArmDone(ServerContext& context) {
  void* tag = nullptr;
  if (!context.TakeDoneTag(&tag) || !Begin(done_, tag)) return;
  {
    absl::MutexLock lock(&done_mutex_);
    done_armed_ = !over_;
    if (done_armed_) return;
  }
  done_.Complete(true);
}

void AsyncServerCall::OnEnded(bool /*cancelled*/) {
  if (handler_.Withdraw(this)) return Finished();
  {
    absl::MutexLock lock(&done_mutex_);
    over_ = true;
    if (!std::exchange(done_armed_, false)) return;
  }
  done_.Complete(true);
}

void AsyncServerCall::OnContextGone() {
  TakeContextBack(arrived_);
  if (!finish_begun_) {
    // The user has nothing to do with the call any more, and did not end it.
    CancelWith(absl::CancelledError("the handler's context was destroyed"));
    Drop();
  }
  LeaveSide();
}

void AsyncServerCall::OnComplete() {
  ServerStream::OnComplete();
  queue_ = nullptr;
  finish_begun_ = false;
  absl::MutexLock lock(&done_mutex_);
  over_ = false;
}

}  // namespace rpc::internal
