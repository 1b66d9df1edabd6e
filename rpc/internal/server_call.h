// A call on the server, from its arrival until nothing refers to it any more.
//
// Two parties use a call: the transport, until OnClosed, and the handler's
// side, until Finished. Whoever ends second completes it, and gives the object
// back for the next call. A call whose handler finishes within OnCall, which is
// the common case, needs no atomic operation for that: OnClosed comes after
// OnCall and on the transport's callbacks alone. Where nothing is left to be
// done in OnClosed, the object is given back before OnCall returns, and the
// transport gets CallSink::Nobody(). Any other call is "detached":
// counted, so that the server waits for it (or for an asynchronous one its
// core), and ended by exchanges on phase_.
//
// On a server with interceptors a call is always detached, its sink is its
// interception (server_interception.h), and what its handler sends goes through
// that. Calls of other servers look at a null pointer, where they take a long
// way anyway.
//
// SyncServerCall, CallbackServerCall and ServerStream (their files) are its
// kinds; below them templates add the messages.
#ifndef VERBENA_RPC_INTERNAL_SERVER_CALL_H_
#define VERBENA_RPC_INTERNAL_SERVER_CALL_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "google/protobuf/message_lite.h"
#include "rpc/internal/callback_scope.h"
#include "rpc/internal/child_calls.h"
#include "rpc/internal/executor.h"
#include "rpc/internal/free_list.h"
#include "rpc/internal/message_codec.h"
#include "rpc/internal/message_ref.h"
#include "rpc/internal/method_name.h"
#include "rpc/internal/received_metadata.h"
#include "rpc/internal/server_core.h"
#include "rpc/internal/server_interception.h"
#include "rpc/server_context.h"
#include "rpc/status.h"
#include "rpc/transport.h"

namespace rpc::internal {

class ServerCall : public CallSink,
                   public FreeListNode,
                   protected InterceptedCall,
                   protected ServerCallControl,
                   protected Executor::Task {
 public:
  // One whose object moved more than this in a call is large from then on: its
  // messages may hold as much, so that few are kept.
  static constexpr uint64_t kMaxRetainedBytes = 64 << 10;

  ~ServerCall() override = default;

  // Serves a call that just came, for ServerSink::OnCall, which returns the
  // result. The handler may run within.
  static CallSink* Serve(ServerCore* core, ServerMethod* method,
                         const ServerSink::Call& call, IncomingFrame& frame);
  // The same on a server with interceptors.
  static CallSink* ServeIntercepted(ServerCore* core, ServerMethod* method,
                                    const ServerSink::Call& call,
                                    IncomingFrame& frame);

  // The message may come after the first frame: a generic client streams
  // always.
  void OnFrame(IncomingFrame& frame) override;
  void OnClosed(const CallOutcome& outcome) override;

  ServerCore& core() const { return *core_; }

 protected:
  // `context` is a member of the subclass, not constructed yet.
  // `has_on_complete`: whether the subclass has an OnComplete.
  explicit ServerCall(ServerContextBase* context, bool has_on_complete = true)
      : context_(context), has_on_complete_(has_on_complete) {}

  // In the subclass's constructor: the client's only message is always parsed
  // into this one, and DecodeRequest does no more than DecodeOnlyMessage. A
  // small one that comes in order, as most do, need not ask it then.
  void SetOnlyRequest(MessageRef request) { only_request_ = request.lite(); }

  // Runs the handler, here or elsewhere; it ends in Finished.
  virtual void Run() = 0;
  // Takes in the first frame, but for its header. False where it is refused,
  // with the reason.
  virtual bool DecodeRequest(IncomingFrame& frame, Status* error) = 0;
  // The client's only message, once DecodeRequest took it in; none: it streams.
  virtual MessageRef request() { return MessageRef(); }
  // Whether the user has the events of its end: the server does not wait for
  // them. Interceptors see such a call when it is bound to the user's context,
  // and not before Run.
  virtual bool IsAsynchronous() const { return false; }
  // The call was cut off; once, before it is completed.
  virtual void OnCutOff() {}
  // It ended in order; of calls with interceptors.
  virtual void OnOrderlyEnd() {}
  // Initial metadata that was sent alone left, or did not before the call
  // ended.
  virtual void OnInitialMetadataSent(bool ok) {}
  // They were not sent, as the call is cut off, and nothing else tells.
  virtual void OnInitialMetadataUnsent() {}
  // What SendMessage said false of is sent.
  virtual void OnMessageSent() {}
  // The handler's side finished after the transport's, on this thread, which
  // may be any. Ends in Complete.
  virtual void CompleteLate() { Complete(); }
  // Both sides are done with it.
  virtual void OnComplete() {}

  // For a thread that does what the handler may hear of, and finish upon,
  // before it is done: the call is not completed in between.
  void HoldOpen() { phase_.fetch_add(kHeld, std::memory_order_acq_rel); }
  void LetGo() {
    if (phase_.fetch_sub(kHeld, std::memory_order_acq_rel) ==
        (kEnded | kHeld)) {
      CompleteLate();
    }
  }

  // For a handler that has to hear that the call was cut off before its initial
  // metadata left: has the call wait for ReportUnsentMetadata. True: the
  // caller has another thread run that; false: OnClosed will.
  bool OweUnsentMetadata() {
    return (phase_.fetch_add(kOwing, std::memory_order_acq_rel) & kClosed) != 0;
  }
  bool owes_unsent_metadata() const {
    return (phase_.load(std::memory_order_acquire) & kOwing) != 0;
  }
  // Calls OnInitialMetadataSent; completes the call where its handler has
  // finished by then.
  void ReportUnsentMetadata();

  // The handler's side has sent all it will and touches the call no more.
  void Finished();
  // Null: the server has no interceptors.
  ServerInterception* interception() const { return interception_.get(); }
  // Gives the object back; the last thing that happens to it.
  void Complete();

  // The call's context is `context` from now on, a user's own, and gets what
  // came so far.
  void GiveContext(ServerContextBase& context);
  // For a user's context that outlives the call: it is without one.
  void LeaveContext() {
    context_->cancelled_ = IsCancelled();
    context_->call_ = nullptr;
  }
  // It is `own` again: the user's is about to go.
  void TakeContextBack(ServerContextBase& own) {
    context_->call_ = nullptr;
    context_->is_bound_ = false;
    context_ = &own;
  }

  // Whether the frame has the message that the client sends; what follows is
  // nobody's, as in gRPC. Else it is waited for (`*error` stays OK), and
  // DecodeRequest comes again with it; or `*error` says what is wrong.
  bool IsOneMessage(IncomingFrame& frame, Status* error);
  bool gathering() const { return gathered_ != nullptr; }
  // DecodeRequest of a call whose client sends one message.
  bool DecodeOnlyMessage(IncomingFrame& frame, MessageRef request,
                         Status* error);

  // Sends one of several responses, with the initial metadata if it is the
  // first. False: `*error` says why not. `*sent`: the next may be sent; else
  // OnMessageSent tells.
  bool SendMessage(ConstMessageRef message, BufferChain&& attachment,
                   bool* sent, Status* error);
  // What came beside the opening of a stream and not beside a message, or
  // beside the request.
  void SetReceivedAttachment(BufferChain&& attachment) {
    context_->received_attachment_ = std::move(attachment);
  }
  // For a handler that is through: what came beside the request is free before
  // the client hears of the answer, and may send as much again.
  void DropReceivedAttachment() { context_->received_attachment_.clear(); }
  // What goes beside the response.
  void SetAttachment(BufferChain&& attachment) {
    context_->sent_attachment_ = std::move(attachment);
  }
  // Gives back of the stream's window.
  void Release(uint64_t window_bytes, bool drained) {
    if (window_bytes != 0 && !closed()) {
      core_->transport->Release(handle_, window_bytes, drained);
    }
  }

  // Sends the response, or an error, or of a stream (no `response`) nothing
  // but the status. Once. `last_act`: nothing follows that takes long, so
  // within OnCall the transport need not be let go.
  void Respond(const Status& status, ConstMessageRef response,
               bool last_act = false);
  // Respond and then Finished.
  void RespondAndFinish(const Status& status, ConstMessageRef response,
                        bool last_act = false);
  // At most once. False: the call is cut off, and OnInitialMetadataSent will
  // not tell.
  bool SendInitialMetadataAlone();
  bool initial_metadata_sent() const { return initial_metadata_sent_; }
  // Ends the call for both sides without a response.
  void CancelWith(absl::Status reason);

  // Has RunTask called on a thread of the server's executor, or ends the call
  // where there is none to be had.
  void RunOnExecutor();
  // Whether a handler that begins now, late, has somebody to work for; if not,
  // the call is ended.
  bool IsStillWanted();

  // A client's header block comes with the first frame, or breaks the protocol.
  bool CancelForLateHeader(const IncomingFrame& frame);
  // Ends a call that nobody serves.
  void Refuse(const Status& error);

  // To be called before the call leaves OnCall unfinished.
  void Detach();
  // Makes peer() valid beyond OnCall.
  void KeepPeer();
  // The method as the client named it, within OnCall; else empty.
  std::string_view path() const {
    if (interception_ != nullptr) return interception_->method();
    return arrival_ == nullptr ? std::string_view()
                               : PathOfMethodName(arrival_->path);
  }

  bool closed() const {
    return (phase_.load(std::memory_order_acquire) & kClosed) != 0;
  }
  bool finished() const {
    return finished_here_.load(std::memory_order_relaxed) ||
           (phase_.load(std::memory_order_acquire) & kFinished) != 0 ||
           (interception_ != nullptr && interception_->finished());
  }
  // It is not kept for another call. REQUIRES: finished().
  void KeepNoMore() { moved_bytes_ |= kNeverKept; }
  // REQUIRES: finished().
  bool IsSmall() const { return moved_bytes_ <= kMaxRetainedBytes; }
  ServerMethod& method() const { return *method_; }
  absl::Time deadline() const { return context_->deadline_; }

  void OnSent() final;
  // ServerCallControl
  bool IsCancelled() const final;
  void Cancel() final;
  absl::StatusOr<Buffer> AllocateBuffer(size_t bytes) final;
  std::string peer() const final;
  const ReceivedMetadata* origin() const final { return method_->origin.get(); }
  ParentCall AddChild(const std::shared_ptr<ChildCall>& child) final;

  // InterceptedCall
  void FrameNow(IncomingFrame& frame) final { OnFrame(frame); }
  void SentNow() final;
  void ClosedNow(const CallOutcome& outcome) final;
  void SendInitialMetadataNow() final;
  void RespondNow(const Status& status, ConstMessageRef response) final;
  void FinishedNow() final;
  ServerContextBase* intercepted_context() final;
  MetadataMap* sent_initial_metadata() final;
  MetadataMap* sent_trailing_metadata() final;
  ReceivedMetadataMap* received_metadata() final;

 private:
  // kOwing, kHeld: whoever ends second leaves completing to
  // ReportUnsentMetadata, or to LetGo.
  enum Phase : uint32_t { kFinished = 1, kClosed = 2, kOwing = 4, kHeld = 8 };
  static constexpr uint32_t kEnded = kFinished | kClosed;
  // What is to be done when the call closes, at the latest.
  enum Pending : uint8_t { kPendingMetadata = 1, kPendingChildren = 2 };

  void Begin(ServerCore* core, ServerMethod* method,
             const ServerSink::Call& call);
  // Takes the request in; false where it is refused, with the reason, or is
  // not complete.
  bool Accept(IncomingFrame& frame, Status* error);
  // Whether TakeUsualRequest does what Accept would. That is false where the
  // request was refused.
  bool HasUsualRequest(const IncomingFrame& frame) const;
  bool TakeUsualRequest(IncomingFrame& frame);
  void RefuseMalformed(const IncomingFrame& frame);
  // Accept for others. False: there is nothing to be run, or not yet.
  bool TakeUnusualRequest(IncomingFrame& frame);
  void Gather(IncomingFrame& frame);
  // Shows interceptors what came, and goes on: `error` is of DecodeRequest.
  void Arrive(const Status& error);
  // Whether nothing is left to be done when the call closes, in OnCall, but to
  // let go of attachments.
  bool IsOver() const;
  // Tells the handler's side that the call was cut off.
  void NoteCutOff();
  bool AcceptHeader(IncomingFrame& frame, Status* error);
  // The call has metadata, if only what its client's channel says.
  ReceivedMetadata& MakeReceived();
  // `Memory`: EncodeMessage's allocator. `response`: MessageLite or
  // ConstMessageRef.
  template <class Memory, class Response>
  bool EncodeResponse(const Response& response, MessageScratch& scratch,
                      OutgoingFrame& frame, Status* error);
  void RespondInParts(OutgoingFrame& frame,
                      const google::protobuf::MessageLite& response);
  Status EncodeInitialHeader(std::string& header);
  // As SendInitialMetadataAlone, without interceptors.
  bool TrySendInitialMetadata();
  // Respond, off the common way: with interceptors, or RespondWithHeader.
  void RespondUnusually(const Status& status, ConstMessageRef response,
                        bool last_act);
  void RespondUnusuallyAndFinish(const Status& status, ConstMessageRef response,
                                 bool last_act);
  void RespondLargeAndFinish(const google::protobuf::MessageLite& response,
                             size_t size, bool last_act);
  // Respond for an error, where there is metadata, and for messages that are
  // not protobuf's.
  void RespondWithHeader(const Status& status, ConstMessageRef response,
                         bool last_act);
  Status EncodeHeader(const Status& status, std::string& header);
  Status CheckHeaderSize(const Status& status, size_t bytes) const;
  bool TakePending(Pending pending);
  void DoPending(bool ok);
  void CompleteDetached();
  // Complete of one that is not small.
  void KeepOrDelete();

  // Written by the transport's callbacks, but for phase_ and the flags.
  ServerContextBase* context_;
  const bool has_on_complete_;
  google::protobuf::MessageLite* only_request_ = nullptr;  // see its setter
  ServerCore* core_ = nullptr;
  ServerMethod* method_ = nullptr;
  CallHandle handle_;
  // These five next to each other: Begin sets them in one go.
  std::atomic<uint32_t> phase_{0};
  std::atomic<bool> cut_off_{false};
  std::atomic<uint8_t> pending_{0};  // of Pending
  // Finished within a callback of the transport.
  std::atomic<bool> finished_here_{false};
  bool detached_ = false;
  // Of ServerSink::Call; used within the transport's callbacks only.
  const std::atomic<bool>* transport_cut_off_ = nullptr;
  bool initial_metadata_sent_ = false;
  // Beside the bytes that were moved in this call: it was large before.
  static constexpr uint64_t kLarge = uint64_t{1} << 63;
  static constexpr uint64_t kNeverKept = uint64_t{1} << 62;
  uint64_t moved_bytes_ = 0;
  // What came before the message; null: it is here.
  std::unique_ptr<IncomingFrame> gathered_;
  const ServerSink::Call* arrival_ = nullptr;  // valid within OnCall
  std::string kept_peer_;
  std::shared_ptr<ServerInterception> interception_;
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_SERVER_CALL_H_
