#include "rpc/internal/server_call.h"

#include <memory>
#include <string_view>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "rpc/internal/any_message_codec.h"

namespace rpc::internal {
namespace {

ABSL_ATTRIBUTE_NOINLINE Status NoMessage() {
  return Status(
      StatusCode::UNIMPLEMENTED,
      "the client of this method sends a message, and there was none");
}

// Where there is no small one to take, or a large one is due.
ABSL_ATTRIBUTE_NOINLINE ServerCall* LargeOrNewCall(const ServerCore& core,
                                                   ServerMethod& method) {
  if (FreeListNode* const large = method.large_calls.Take()) {
    return static_cast<ServerCall*>(large);
  }
  return core.context_allocator == nullptr
             ? method.handler.NewCall()
             : method.handler.NewCallWith(*core.context_allocator);
}

inline ServerCall* SpareOrNewCall(const ServerCore& core, ServerMethod& method,
                                  const IncomingFrame& frame) {
  // What is still arriving is large.
  if (ABSL_PREDICT_TRUE(frame.arriving == nullptr &&
                        frame.message.size() <=
                            ServerCall::kMaxRetainedBytes)) {
    FreeListNode* const spare = method.spare_calls.Take();
    if (ABSL_PREDICT_TRUE(spare != nullptr)) {
      return static_cast<ServerCall*>(spare);
    }
  }
  return LargeOrNewCall(core, method);
}

}  // namespace

CallSink* ServerCall::Serve(ServerCore* core, ServerMethod* method,
                            const ServerSink::Call& call,
                            IncomingFrame& frame) {
  ServerCall* const self = SpareOrNewCall(*core, *method, frame);
  self->Begin(core, method, call);
  const bool accepted = ABSL_PREDICT_TRUE(self->HasUsualRequest(frame))
                            ? self->TakeUsualRequest(frame)
                            : self->TakeUnusualRequest(frame);
  if (ABSL_PREDICT_TRUE(accepted)) {
    CallbackScope scope(self);
    self->Run();
  }
  if (ABSL_PREDICT_TRUE(self->IsOver())) {
    if (ABSL_PREDICT_FALSE(self->context_->has_attachments())) {
      // What of the user's goes with them may end a channel.
      CallbackScope scope(self);
      self->context_->ClearAttachments();
    }
    method->spare_calls.Give(self);
    return Nobody();
  }
  // OnClosed, and so completion, comes after this returns.
  if (!self->finished()) self->Detach();
  return self;
}

// A child is cancelled when the call closes.
inline bool ServerCall::IsOver() const {
  return ABSL_PREDICT_TRUE(finished_here_.load(std::memory_order_relaxed)) &&
         ABSL_PREDICT_TRUE(!has_on_complete_) &&
         ABSL_PREDICT_TRUE(!detached_) &&
         ABSL_PREDICT_TRUE(pending_.load(std::memory_order_seq_cst) == 0) &&
         ABSL_PREDICT_TRUE(IsSmall()) &&
         ABSL_PREDICT_TRUE(!context_->has_metadata());
}

CallSink* ServerCall::ServeIntercepted(ServerCore* core, ServerMethod* method,
                                       const ServerSink::Call& call,
                                       IncomingFrame& frame) {
  ServerCall* const self = SpareOrNewCall(*core, *method, frame);
  self->Begin(core, method, call);
  self->interception_ = std::make_shared<ServerInterception>(
      static_cast<InterceptedCall*>(self), core->interceptor_factories,
      PathOfMethodName(call.path), method->type);
  ServerInterception* const sink = self->interception();
  // The handler may begin, and end, on any thread.
  self->Detach();
  self->KeepPeer();
  CallbackScope scope(sink);
  Status error;
  if (self->Accept(frame, &error) || !self->gathering()) self->Arrive(error);
  return sink;
}

inline void ServerCall::Begin(ServerCore* core, ServerMethod* method,
                              const ServerSink::Call& call) {
  core_ = core;
  method_ = method;
  handle_ = call.handle;
  // Nobody else sees them yet. So plain stores will do, of which compilers make
  // one; of atomic ones they do not.
  std::construct_at(&phase_, 0u);
  std::construct_at(&cut_off_, false);
  std::construct_at(&pending_, uint8_t{0});
  std::construct_at(&finished_here_, false);
  detached_ = false;
  initial_metadata_sent_ = false;
  moved_bytes_ = ABSL_PREDICT_TRUE(IsSmall()) ? 0 : kLarge;
  arrival_ = &call;
  transport_cut_off_ = call.cut_off;
  context_->call_ = this;
  context_->deadline_ = call.deadline;
}

bool ServerCall::Accept(IncomingFrame& frame, Status* error) {
  if (!frame.header.empty() && !AcceptHeader(frame, error)) return false;
  return DecodeRequest(frame, error);
}

inline bool ServerCall::HasUsualRequest(const IncomingFrame& frame) const {
  return ABSL_PREDICT_TRUE(only_request_ != nullptr) &&
         ABSL_PREDICT_TRUE(frame.has_message) &&
         ABSL_PREDICT_TRUE(frame.message.contiguous()) &&
         ABSL_PREDICT_TRUE(frame.message.size() <= kMaxRetainedBytes) &&
         ABSL_PREDICT_TRUE(frame.header.empty()) &&
         ABSL_PREDICT_TRUE(frame.arriving == nullptr);
}

inline bool ServerCall::TakeUsualRequest(IncomingFrame& frame) {
  moved_bytes_ += frame.message.size();
  const std::string_view bytes = ABSL_PREDICT_TRUE(!frame.message.empty())
                                     ? frame.message.only().view()
                                     : std::string_view("");
  if (ABSL_PREDICT_FALSE(
          !method_->messages.request.parse(bytes, only_request_))) {
    RefuseMalformed(frame);
    return false;
  }
  // The receive buffer goes back now, where no attachment lies in it: a handler
  // may take its time.
  frame.message.clear();
  if (ABSL_PREDICT_FALSE(!frame.attachment.empty())) {
    context_->received_attachment_ = std::move(frame.attachment);
  }
  return true;
}

ABSL_ATTRIBUTE_NOINLINE void ServerCall::RefuseMalformed(
    const IncomingFrame& frame) {
  CallbackScope scope(this);
  Refuse(ParseFailure(frame.message.size(), *only_request_));
}

ABSL_ATTRIBUTE_NOINLINE bool ServerCall::TakeUnusualRequest(
    IncomingFrame& frame) {
  Status error;
  if (Accept(frame, &error)) return true;
  CallbackScope scope(this);
  if (!gathering()) Refuse(error);
  return false;
}

ABSL_ATTRIBUTE_NOINLINE bool ServerCall::IsOneMessage(IncomingFrame& frame,
                                                      Status* error) {
  if (frame.has_message) return true;
  if (frame.end) {
    *error = NoMessage();
  } else {
    KeepPeer();
    gathered_ = std::make_unique<IncomingFrame>();
    Gather(frame);
  }
  return false;
}

void ServerCall::Gather(IncomingFrame& frame) {
  gathered_->end = frame.end;
  if (frame.has_message || !frame.attachment.empty()) {
    gathered_->attachment = std::move(frame.attachment);
  }
  if (frame.has_message) {
    gathered_->has_message = true;
    gathered_->message = std::move(frame.message);
  }
}

void ServerCall::OnFrame(IncomingFrame& frame) {
  if (gathered_ == nullptr || CancelForLateHeader(frame)) return;
  Gather(frame);
  if (!frame.has_message && !frame.end) return;
  const std::unique_ptr<IncomingFrame> gathered = std::move(gathered_);
  CallbackScope scope(gathered.get());
  Status error;
  const bool accepted = DecodeRequest(*gathered, &error);
  if (interception_ != nullptr) return Arrive(error);
  if (accepted) return Run();
  Refuse(error);
}

bool ServerCall::CancelForLateHeader(const IncomingFrame& frame) {
  if (frame.header.empty()) return false;
  CancelWith(absl::InternalError(
      "malformed header block: it is not with the call's first frame"));
  return true;
}

void ServerCall::Refuse(const Status& error) {
  Respond(error, ConstMessageRef());
  Finished();
}

bool ServerCall::DecodeOnlyMessage(IncomingFrame& frame, MessageRef request,
                                   Status* error) {
  if (!frame.has_message && !IsOneMessage(frame, error)) return false;
  moved_bytes_ += frame.message_bytes();
  // Raw bytes are the transport's memory, which others may need.
  if (!IsSmall() && request.lite() == nullptr) KeepNoMore();
  if (!frame.attachment.empty()) {
    context_->received_attachment_ = std::move(frame.attachment);
  }
  const bool decoded = frame.arriving == nullptr
                           ? DecodeAnyMessage(frame.message, request, error)
                           : DecodeArriving(*frame.arriving, request.lite(),
                                            error) == Arrival::kParsed;
  // As in TakeUsualRequest.
  frame.message.clear();
  return decoded;
}

bool ServerCall::AcceptHeader(IncomingFrame& frame, Status* error) {
  *error = MakeReceived().Add(frame.header, ReceivedMetadata::From::kClient,
                              /*first=*/true, core_->max_metadata_bytes);
  return error->ok();
}

ReceivedMetadata& ServerCall::MakeReceived() {
  context_->received_ = std::make_unique<ReceivedMetadata>();
  if (method_->origin != nullptr) {
    context_->received_->AddOrigin(method_->origin);
  }
  return *context_->received_;
}

void ServerCall::OnSent() {
  if (TakePending(kPendingMetadata)) {
    CallbackScope scope(this);
    OnInitialMetadataSent(true);
  } else {
    OnMessageSent();
  }
}

bool ServerCall::TakePending(Pending pending) {
  return (pending_.load(std::memory_order_relaxed) & pending) != 0 &&
         (pending_.fetch_and(~pending, std::memory_order_acq_rel) & pending) !=
             0;
}

ABSL_ATTRIBUTE_NOINLINE void ServerCall::DoPending(bool ok) {
  if (TakePending(kPendingMetadata)) OnInitialMetadataSent(ok);
  if (TakePending(kPendingChildren)) {
    ChildCalls::Get().Cancel({core_->transport.get(), handle_});
  }
}

void ServerCall::OnClosed(const CallOutcome& outcome) {
  CallbackScope scope(this);
  transport_cut_off_ = nullptr;
  if (ABSL_PREDICT_FALSE(!outcome.status.ok())) NoteCutOff();
  if (ABSL_PREDICT_FALSE(pending_.load(std::memory_order_seq_cst) != 0)) {
    DoPending(outcome.status.ok());
  }
  uint32_t phase = phase_.load(std::memory_order_acquire);
  if (ABSL_PREDICT_TRUE(finished_here_.load(std::memory_order_relaxed))) {
    if (ABSL_PREDICT_TRUE(phase == 0)) return Complete();
    phase_.fetch_add(kFinished, std::memory_order_acq_rel);
  } else if (phase == kFinished) {
    return Complete();
  }
  phase = phase_.fetch_add(kClosed, std::memory_order_acq_rel) + kClosed;
  if (phase & kOwing) return ReportUnsentMetadata();
  if (phase == kEnded) Complete();
}

ABSL_ATTRIBUTE_NOINLINE void ServerCall::NoteCutOff() {
  // Before pending_ is looked at: TrySendInitialMetadata does it the other way
  // round, and one of the two sees the other.
  cut_off_.store(true, std::memory_order_seq_cst);
  ChildCalls::Get().Cancel({core_->transport.get(), handle_});
  OnCutOff();
  // Started by OnCutOff: the handler may have finished since.
  if (owes_unsent_metadata()) {
    OnInitialMetadataSent(false);
    phase_.fetch_sub(kOwing, std::memory_order_acq_rel);
  }
  // Nobody serves it yet.
  if (std::exchange(gathered_, nullptr) != nullptr) Finished();
}

void ServerCall::Finished() {
  if (ABSL_PREDICT_TRUE(CallbackScope::current() == this)) {
    finished_here_.store(true, std::memory_order_relaxed);
    return;
  }
  if (interception_ != nullptr) return interception_->Finished();
  FinishedNow();
}

void ServerCall::ReportUnsentMetadata() {
  {
    // OnClosed has looked whether the call finished here.
    CallbackScope scope(&phase_);
    OnInitialMetadataSent(false);
  }
  const uint32_t before = phase_.fetch_sub(kOwing, std::memory_order_acq_rel);
  if (before == (kEnded | kOwing)) Complete();
}

void ServerCall::Complete() {
  OnComplete();
  context_->Clear();
  if (ABSL_PREDICT_FALSE(detached_)) return CompleteDetached();
  if (ABSL_PREDICT_FALSE(!IsSmall())) return KeepOrDelete();
  method_->spare_calls.Give(this);
}

ABSL_ATTRIBUTE_NOINLINE void ServerCall::KeepOrDelete() {
  const bool was_needed = (moved_bytes_ & ~kLarge) > kMaxRetainedBytes;
  if (was_needed && (moved_bytes_ & kNeverKept) == 0) {
    method_->large_calls.Give(this);
  } else {
    delete this;
  }
}

ABSL_ATTRIBUTE_NOINLINE void ServerCall::CompleteDetached() {
  ServerCore* const core = core_;
  const bool asynchronous = IsAsynchronous();
  interception_.reset();
  if (IsSmall()) {
    // This thread may be none that calls come to.
    method_->spare_calls.GiveShared(this);
  } else {
    KeepOrDelete();
  }
  if (asynchronous) {
    core->RemoveReference();
  } else {
    core->detached.Remove();
  }
}

void ServerCall::Detach() {
  if (detached_) return;
  detached_ = true;
  if (IsAsynchronous()) {
    core_->AddReference();
  } else {
    core_->detached.Add();
  }
}

void ServerCall::RunOnExecutor() {
  // First, for the handler may be through before Post returns.
  Detach();
  KeepPeer();
  if (core_->executor->Post(this)) return;
  Respond(Status(StatusCode::RESOURCE_EXHAUSTED,
                 "the server's handlers are all busy and the queue of calls is "
                 "full (verbena.handler_threads, verbena.handler_queue)"),
          ConstMessageRef());
  Finished();
}

bool ServerCall::IsStillWanted() {
  if (closed()) {
    Finished();
    return false;
  }
  if (deadline() != absl::InfiniteFuture() && deadline() < absl::Now()) {
    CancelWith(absl::DeadlineExceededError(
        "the deadline passed before a thread was free for the handler"));
    Finished();
    return false;
  }
  return true;
}

void ServerCall::GiveContext(ServerContextBase& context) {
  if (context.is_bound_) context.call_->OnContextGone();  // of another call
  context.TakeFrom(*context_);
  context.call_ = this;
  context.is_bound_ = true;
  context_ = &context;
}

void ServerCall::CancelWith(absl::Status reason) {
  if (closed()) return;
  core_->transport->Cancel(handle_, std::move(reason));
}

bool ServerCall::IsCancelled() const {
  if (cut_off_.load(std::memory_order_relaxed)) return true;
  if (finished() || closed()) return false;
  // A handler that runs within OnCall hears of OnClosed too late.
  const bool within_callback =
      CallbackScope::current() == (interception_ == nullptr
                                       ? static_cast<const void*>(this)
                                       : interception_.get());
  return within_callback && transport_cut_off_ != nullptr &&
         transport_cut_off_->load(std::memory_order_relaxed);
}

void ServerCall::Cancel() {
  if (interception_ != nullptr) interception_->OnTryCancel();
  CancelWith(absl::CancelledError("Cancelled by the server"));
}

absl::StatusOr<Buffer> ServerCall::AllocateBuffer(size_t bytes) {
  return core_->transport->AllocateBuffer(handle_, bytes);
}

// Added first: what cuts the call off after the look finds the child, and what
// did before is seen by the look.
ParentCall ServerCall::AddChild(const std::shared_ptr<ChildCall>& child) {
  const ParentCall parent = {core_->transport.get(), handle_};
  ChildCalls::Get().Add(parent, child);
  pending_.fetch_or(kPendingChildren, std::memory_order_acq_rel);
  if (closed() || IsCancelled()) ChildCalls::Get().Cancel(parent);
  return parent;
}

void ServerCall::KeepPeer() {
  if (arrival_ == nullptr) return;
  kept_peer_ = arrival_->peer;
  arrival_ = nullptr;
}

std::string ServerCall::peer() const {
  return arrival_ == nullptr ? kept_peer_ : std::string(arrival_->peer);
}

}  // namespace rpc::internal
