// The Echo service, by both server APIs, and a server and a channel for it.
#ifndef VERBENA_TESTS_RPC_ECHO_SERVICE_H_
#define VERBENA_TESTS_RPC_ECHO_SERVICE_H_

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "rpc/rpc.h"
#include "tests/rpc/echo.rpc.pb.h"
#include "tests/rpc/loopback_transport.h"

namespace rpc::testing {

// Does what a request asks for; `context` is either kind.
Status HandleEcho(ServerContextBase& context, const SayRequest& request,
                  SayResponse& response);

class SyncEcho final : public Echo::Service {
 public:
  // Runs first, where set.
  std::function<void(ServerContext*)> before;
  std::atomic<int> calls{0};

 private:
  Status Say(ServerContext* context, const SayRequest* request,
             SayResponse* response) override;
};

// Finishes inline, except that a call which sleeps or waits finishes on a
// thread of its own.
class CallbackEcho final : public Echo::CallbackService {
 public:
  ~CallbackEcho() override;

  std::atomic<int> calls{0};
  std::atomic<int> cancels{0};
  std::atomic<int> dones{0};

 private:
  class Reactor;

  ServerUnaryReactor* Say(CallbackServerContext* context,
                          const SayRequest* request,
                          SayResponse* response) override;

  std::mutex mutex_;
  std::vector<std::thread> threads_;
};

// A server with one service, on a network of its own, and a channel to it.
class EchoServer {
 public:
  explicit EchoServer(
      const LoopbackOptions& options, Service* service,
      const ChannelArguments& client_arguments = {},
      const std::function<void(ServerBuilder&)>& configure = {});

  LoopbackNetwork& network() { return network_; }
  Server& server() { return *server_; }
  const std::shared_ptr<Channel>& channel() const { return channel_; }
  Echo::Stub& stub() { return *stub_; }

 private:
  LoopbackNetwork network_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<Channel> channel_;
  std::unique_ptr<Echo::Stub> stub_;
};

}  // namespace rpc::testing

#endif  // VERBENA_TESTS_RPC_ECHO_SERVICE_H_
