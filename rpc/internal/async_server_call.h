// A call on the server whose operations are events of completion queues: what
// is behind AsyncService and the classes of async_unary_call.h and
// async_stream.h. All four kinds of call are streams here.
//
// A call that comes waits for a request for one (AsyncMethodHandler), with its
// first message in the inbox. The event of the request binds it: to the user's
// context, responder and queue. The handler's side ends when Finish was called
// and every event was taken, or when the user's context is destroyed.
//
// Thread rule: as ServerStream.
#ifndef VERBENA_RPC_INTERNAL_ASYNC_SERVER_CALL_H_
#define VERBENA_RPC_INTERNAL_ASYNC_SERVER_CALL_H_

#include <atomic>
#include <cstdint>
#include <list>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "rpc/buffer.h"
#include "rpc/completion_queue.h"
#include "rpc/internal/message_ref.h"
#include "rpc/internal/method_handler.h"
#include "rpc/internal/queued_operation.h"
#include "rpc/internal/server_stream.h"
#include "rpc/internal/stream_operation.h"
#include "rpc/server_context.h"
#include "rpc/status.h"
#include "rpc/write_options.h"

namespace rpc::internal {

class AsyncMethodHandler;
class AsyncServerCall;

// What answers an asynchronous call; made by the user, and bound to a call when
// there is one.
class ServerAsyncStreamingInterface {
 public:
  virtual ~ServerAsyncStreamingInterface() = default;

  // Sends what AddInitialMetadata collected now, not with the first message. At
  // most once, before the first message.
  virtual void SendInitialMetadata(void* tag) = 0;

 private:
  friend class AsyncServerCall;
  // A user's own, for a test of a handler, is never bound.
  virtual void BindCall(AsyncServerCall* /*call*/) {}
};

// One that is for real calls: Interface is the above, or derived from it.
template <class Interface>
class ServerAsyncResponder : public Interface {
 public:
  ServerAsyncResponder(const ServerAsyncResponder&) = delete;
  ServerAsyncResponder& operator=(const ServerAsyncResponder&) = delete;

  void SendInitialMetadata(void* tag) override;

 protected:
  // The context is what RequestX says, too.
  explicit ServerAsyncResponder(ServerContext*) {}
  AsyncServerCall& call() { return *call_; }

 private:
  void BindCall(AsyncServerCall* call) override { call_ = call; }

  AsyncServerCall* call_ = nullptr;
};

// A user's request for a call of a method.
class AsyncRequest final : public CompletionQueueTag {
 public:
  struct Target {
    ServerContext* context;
    ServerAsyncStreamingInterface* responder;
    MessageRef request = {};  // none: the client streams
    CompletionQueue* call_queue;
    ServerCompletionQueue* notification_queue;
    void* tag;
    std::string* path = nullptr;  // gets the method's, of a generic service
  };

  AsyncRequest(AsyncMethodHandler* handler, const Target& target)
      : handler_(*handler), target_(target) {}

  // False: the queue is shut down.
  bool Begin() { return target_.notification_queue->Begin(); }
  // There is a call; none: there will be none.
  void Answer(AsyncServerCall* call);

  bool FinalizeResult(void** tag, bool* ok) override;

 private:
  // False: the user hears of the call when its interceptors have seen it.
  bool ShowInterceptors();

  AsyncMethodHandler& handler_;
  const Target target_;
  AsyncServerCall* call_ = nullptr;
  bool is_bound_ = false;
};

class AsyncServerCall final : public ServerStream {
 public:
  explicit AsyncServerCall(AsyncMethodHandler* handler)
      : ServerStream(&arrived_), handler_(*handler) {}

  // Gives the call to the user. False where its message does not parse: the
  // call is over then.
  bool Bind(const AsyncRequest::Target& target);

  void SendInitialMetadata(void* tag);
  void Read(MessageRef message, BufferChain* attachment, void* tag);
  void Write(ConstMessageRef message, WriteOptions options, void* tag);
  void WriteAndFinish(ConstMessageRef message, WriteOptions options,
                      const Status& status, void* tag);
  // `response`: none where the server streams, or the call fails.
  void Finish(ConstMessageRef response, const Status& status, void* tag);

 private:
  friend class AsyncMethodHandler;
  friend class AsyncRequest;
  friend class QueuedOperation<AsyncServerCall>;
  using Operation = QueuedOperation<AsyncServerCall>;

  bool DecodeRequest(IncomingFrame& frame, Status* error) override;
  void Run() override;
  void RunTask() override {}
  bool IsAsynchronous() const override { return true; }
  void OnEnded(bool cancelled) override;
  void OnComplete() override;
  void OnContextGone() override;
  // Events are put into queues.
  bool IsQuick() const override { return true; }

  bool Begin(Operation& operation, void* tag);
  // Whether what is sent now goes anywhere.
  bool IsWanted() const { return !closed() && !IsCancelled(); }
  // False where it was called before, which is logged.
  bool BeginFinish(void* tag);
  // The status was sent: its event.
  void Ended();
  void Finalize(Operation* operation, bool* ok);
  void ArmDone(ServerContext& context);
  // One operation less. After the last one nothing is read any more.
  void Drop();
  // One of the two that the handler's side is: the call's operations, and the
  // user's context, which any thread may ask until it goes.
  void LeaveSide();

  AsyncMethodHandler& handler_;
  ServerContext arrived_;  // until there is the user's
  std::string path_;
  CompletionQueue* queue_ = nullptr;
  std::atomic<int64_t> holds_{1};  // Finish, and operations
  std::atomic<int> sides_{2};
  bool finish_begun_ = false;
  bool finish_has_event_ = false;
  bool was_wanted_ = false;  // when it was finished
  // Of the handler, under its lock: whether it waits, and where.
  bool waits_ = false;
  std::list<AsyncServerCall*>::iterator place_;

  class Ending final : public StreamOperation {
   public:
    explicit Ending(AsyncServerCall* call) : call_(*call) {}
    void Complete(bool /*ok*/) override { call_.Ended(); }

   private:
    AsyncServerCall& call_;
  };

  StreamMessage received_;
  MessageRef read_message_;
  BufferChain* read_attachment_ = nullptr;
  Ending ending_{this};
  Operation metadata_{this};
  Operation read_{this};
  Operation write_{this};
  Operation finish_{this};
  Operation done_{this};

  absl::Mutex done_mutex_;
  bool over_ ABSL_GUARDED_BY(done_mutex_) = false;
  bool done_armed_ ABSL_GUARDED_BY(done_mutex_) = false;
};

template <class Interface>
void ServerAsyncResponder<Interface>::SendInitialMetadata(void* tag) {
  call_->SendInitialMetadata(tag);
}

// Brings calls and requests for them together, each first come, first served.
class AsyncMethodHandler final : public MethodHandler {
 public:
  // `one_message`: the client does not stream.
  explicit AsyncMethodHandler(bool one_message) : one_message_(one_message) {}

  bool one_message() const { return one_message_; }

  // The user asks for a call.
  void Request(const AsyncRequest::Target& target);
  // `request` has begun.
  void Add(AsyncRequest* request);

  ServerCall* NewCall() override { return new AsyncServerCall(this); }
  bool IsQuick() const override { return true; }  // they meet requests
  // Answers all requests that there are or will be with none, and refuses the
  // calls.
  void Shutdown() override;

 private:
  friend class AsyncServerCall;

  // A call came; it is matched, waits, or is refused.
  void OnArrival(AsyncServerCall* call);
  // True where the call waited; it does no more.
  bool Withdraw(AsyncServerCall* call);

  const bool one_message_;
  absl::Mutex mutex_;
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
  std::list<AsyncRequest*> requests_ ABSL_GUARDED_BY(mutex_);
  std::list<AsyncServerCall*> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_ASYNC_SERVER_CALL_H_
