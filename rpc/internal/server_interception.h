// What the interceptors of a server's call do to it. It stands between the
// transport and the call as the call's sink, and between the handler and the
// call's operations:
//
//   a call came -> ServerCall -> Arrive -> interceptors, last to first
//     -> InterceptedCall::RunNow -> the handler
//   the handler -> ServerCall::Respond -> Respond -> interceptors, first to
//     last -> InterceptedCall::RespondNow
//
// The call is not over for the handler's side before every operation is through
// its interceptors, however late they proceed (Hold, Release).
//
// Thread rule: as ServerCall and ServerStream.
#ifndef VERBENA_RPC_INTERNAL_SERVER_INTERCEPTION_H_
#define VERBENA_RPC_INTERNAL_SERVER_INTERCEPTION_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "rpc/buffer.h"
#include "rpc/internal/interceptors.h"
#include "rpc/internal/message_ref.h"
#include "rpc/internal/rpc_method.h"
#include "rpc/internal/send_order.h"
#include "rpc/internal/stream_operation.h"
#include "rpc/metadata.h"
#include "rpc/server_interceptor.h"
#include "rpc/status.h"
#include "rpc/transport.h"
#include "rpc/write_options.h"

namespace rpc {
class ServerContextBase;
}  // namespace rpc

namespace rpc::internal {

using ServerInterceptorFactories = std::vector<
    std::unique_ptr<experimental::ServerInterceptorFactoryInterface>>;

// The call below: what it does without interceptors. See ServerCall and
// ServerStream for each.
class InterceptedCall {
 public:
  // What the transport brings.
  virtual void FrameNow(IncomingFrame& frame) = 0;
  virtual void SentNow() = 0;
  virtual void ClosedNow(const CallOutcome& outcome) = 0;
  // What the handler does.
  virtual void SendInitialMetadataNow() = 0;
  virtual void RespondNow(const Status& status, ConstMessageRef response) = 0;
  virtual void FinishedNow() = 0;
  // The same of streams.
  virtual void ReadNow(StreamMessage* /*message*/,
                       StreamOperation* /*operation*/) {}
  virtual bool DecodeNow(StreamMessage& /*received*/, MessageRef /*message*/,
                         BufferChain* /*attachment*/) {
    return false;
  }
  virtual void WriteNow(ConstMessageRef /*message*/, WriteOptions /*options*/,
                        StreamOperation* /*operation*/) {}
  virtual void FailWrite(Status /*error*/) {}
  // Of its context; never null.
  virtual ServerContextBase* intercepted_context() = 0;
  virtual MetadataMap* sent_initial_metadata() = 0;
  virtual MetadataMap* sent_trailing_metadata() = 0;
  virtual ReceivedMetadataMap* received_metadata() = 0;

 protected:
  ~InterceptedCall() = default;
};

class ServerInterception final
    : public CallSink,
      public std::enable_shared_from_this<ServerInterception> {
 public:
  // Without interceptors until Arrive.
  ServerInterception(
      InterceptedCall* call,
      std::shared_ptr<const ServerInterceptorFactories> factories,
      std::string_view method, RpcMethod::RpcType type)
      : call_(*call), factories_(std::move(factories)), info_(method, type) {}

  std::string_view method() const { return info_.method(); }
  // Messages are needed no longer than the function that gets them.
  void SerializeEarly() { messages_stay_ = false; }

  // The call is there, with its context: makes the interceptors, and shows them
  // what came; then runs `run`. `request`: none where it is not there yet, or
  // does not parse.
  void Arrive(MessageRef request, std::function<void()> run);
  // The operations. `operation` may be null where that is said.
  void SendInitialMetadata();
  void Read(StreamMessage* received, MessageRef message,
            BufferChain* attachment, StreamOperation* operation);
  void Write(ConstMessageRef message, WriteOptions options,
             StreamOperation* operation);  // may be null
  void Respond(const Status& status, ConstMessageRef response,
               StreamOperation* operation);  // may be null
  // The handler's side is through, but for what interceptors hold up.
  void Finished();
  bool finished() const { return finished_.load(std::memory_order_acquire); }
  void OnTryCancel();
  // For a handler that is a reactor: it is there, or its call is cut off. The
  // second of the two to come, which this says, has the reactor hear of it.
  // False for the first, after which the reactor is not to be looked at.
  bool ComesSecond() { return one_came_.exchange(true); }

  // CallSink
  void OnFrame(IncomingFrame& frame) override { call_.FrameNow(frame); }
  void OnSent() override { call_.SentNow(); }
  void OnClosed(const CallOutcome& outcome) override;

 private:
  class Operation;
  class SendOperation;
  class ArrivalOperation;
  class MetadataOperation;
  class ReadOperation;
  class WriteOperation;
  class RespondOperation;
  class CloseOperation;

  // Of what sends the initial metadata, the first.
  bool TakeMetadataTurn() { return !metadata_taken_.exchange(true); }
  void Hold() { holds_.fetch_add(1, std::memory_order_relaxed); }
  // The call, and this with it, may be gone afterwards.
  void Release();

  InterceptedCall& call_;
  // Interceptors may refer to them, and so may outlive the server's core.
  const std::shared_ptr<const ServerInterceptorFactories> factories_;
  experimental::ServerRpcInfo info_;
  Interceptors interceptors_;
  SendOrder send_order_;
  std::atomic<bool> metadata_taken_{false};
  std::atomic<bool> finished_{false};
  std::atomic<bool> one_came_{false};  // of ComesSecond
  // The handler's side, the transport's, and operations.
  std::atomic<int64_t> holds_{2};
  bool messages_stay_ = true;  // until their operation is completed
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_SERVER_INTERCEPTION_H_
