// Lets a test call a handler of the callback API that answers by the context's
// DefaultReactor, without a call.
//
//   rpc::CallbackServerContext context;
//   rpc::testing::DefaultReactorTestPeer peer(&context);
//   service.Get(&context, &request, &response);
//   EXPECT_TRUE(peer.test_status_set());
//   EXPECT_TRUE(peer.test_status().ok());
//
// It must live as long as the context is used.
//
// Thread rule: test_status_set from any thread.
#ifndef VERBENA_RPC_TEST_DEFAULT_REACTOR_TEST_PEER_H_
#define VERBENA_RPC_TEST_DEFAULT_REACTOR_TEST_PEER_H_

#include <atomic>
#include <functional>
#include <utility>

#include "rpc/server_callback.h"
#include "rpc/server_context.h"
#include "rpc/status.h"

namespace rpc::testing {

class DefaultReactorTestPeer final : private internal::ServerCallbackUnary {
 public:
  explicit DefaultReactorTestPeer(CallbackServerContext* context)
      : DefaultReactorTestPeer(context, [](Status) {}) {}
  // `on_finish` is called by Finish.
  DefaultReactorTestPeer(CallbackServerContext* context,
                         std::function<void(Status)> on_finish)
      : reactor_(context->DefaultReactor()), on_finish_(std::move(on_finish)) {
    reactor_->BindEarly(this);
  }
  ~DefaultReactorTestPeer() { reactor_->Unbind(); }
  DefaultReactorTestPeer(const DefaultReactorTestPeer&) = delete;
  DefaultReactorTestPeer& operator=(const DefaultReactorTestPeer&) = delete;

  ServerUnaryReactor* reactor() const { return reactor_; }
  // Whether Finish was called, and with what.
  bool test_status_set() const {
    return finished_.load(std::memory_order_acquire);
  }
  Status test_status() const { return status_; }

 private:
  void Finish(Status status) override {
    status_ = status;
    on_finish_(std::move(status));
    finished_.store(true, std::memory_order_release);
  }
  void SendInitialMetadata() override {}

  ServerUnaryReactor* const reactor_;
  const std::function<void(Status)> on_finish_;
  Status status_;
  std::atomic<bool> finished_{false};
};

}  // namespace rpc::testing

#endif  // VERBENA_RPC_TEST_DEFAULT_REACTOR_TEST_PEER_H_
