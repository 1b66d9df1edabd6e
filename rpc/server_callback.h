// The reactor of a unary call on the server: a handler of the callback API
// returns one, and the call ends when somebody calls its Finish.
//
//   class Echo final : public Echoer::CallbackService {
//     rpc::ServerUnaryReactor* Say(rpc::CallbackServerContext* context,
//                                  const SayRequest* request,
//                                  SayResponse* response) override {
//       response->set_text(request->text());
//       rpc::ServerUnaryReactor* reactor = context->DefaultReactor();
//       reactor->Finish(rpc::Status::OK);
//       return reactor;
//     }
//   };
//
// Request, response and context are valid until OnDone.
//
// Thread rule: Finish and StartSendInitialMetadata from any thread, one at a
// time, also before the handler returned. Reactions run one at a time (OnCancel
// beside a Finish of another thread), on whichever thread drives the transport,
// and must not block.
#ifndef VERBENA_RPC_SERVER_CALLBACK_H_
#define VERBENA_RPC_SERVER_CALLBACK_H_

#include <atomic>
#include <cstdint>

#include "rpc/status.h"

namespace rpc {
namespace testing {
class DefaultReactorTestPeer;
}  // namespace testing
namespace internal {
class CallbackServerCall;

// What a reactor asks of its call.
class ServerCallbackUnary {
 public:
  virtual void Finish(Status status) = 0;
  virtual void SendInitialMetadata() = 0;

 protected:
  ~ServerCallbackUnary() = default;
};
}  // namespace internal

class ServerUnaryReactor {
 public:
  ServerUnaryReactor() = default;
  virtual ~ServerUnaryReactor() = default;
  ServerUnaryReactor(const ServerUnaryReactor&) = delete;
  ServerUnaryReactor& operator=(const ServerUnaryReactor&) = delete;

  // Ends the call: sends the response where `status` is OK, else the status
  // alone. Once, also after OnCancel; OnDone follows. A second one is logged
  // and left out.
  void Finish(Status status);

  // Sends what AddInitialMetadata collected now, not with the response. At most
  // once, before Finish.
  void StartSendInitialMetadata();

  // `ok` is false where the call ended first.
  virtual void OnSendInitialMetadataDone(bool ok) {}

  // The call is over; the last reaction, always, and never on the stack of
  // Finish. May destroy the reactor.
  virtual void OnDone() = 0;

  // Nobody waits for the response any more. Finish is still due, where it was
  // not called yet.
  virtual void OnCancel() {}

 private:
  friend class internal::CallbackServerCall;
  friend class testing::DefaultReactorTestPeer;

  // Flags of state_ before there is a call: what is to be done once there is.
  enum : uintptr_t { kSendInitialMetadata = 1, kFinish = 2, kFlags = 3 };

  static bool IsCall(uintptr_t state) { return state > kFlags; }
  static internal::ServerCallbackUnary* ToCall(uintptr_t state) {
    return reinterpret_cast<internal::ServerCallbackUnary*>(state);
  }

  // The call, or null where it comes later: then `flag` is remembered.
  internal::ServerCallbackUnary* CallOrFlag(uintptr_t flag);
  // Gives it its call, and does what was asked for before.
  void Bind(internal::ServerCallbackUnary* call);
  // The same before a handler has the reactor.
  void BindEarly(internal::ServerCallbackUnary* call) {
    state_.store(reinterpret_cast<uintptr_t>(call), std::memory_order_relaxed);
  }
  void Unbind() { state_.store(0, std::memory_order_relaxed); }

  std::atomic<uintptr_t> state_{0};  // flags, or the call
  Status early_status_;              // of a Finish before the call
};

}  // namespace rpc

#endif  // VERBENA_RPC_SERVER_CALLBACK_H_
