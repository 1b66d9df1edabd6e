// Servers that do with each call what a test says, and a channel to several of
// them: for tests of balancing and of repeated calls.
//
//   RoutedServer first, second;
//   first.script().Add({.code = rpc::StatusCode::UNAVAILABLE});
//   RoutedClient client(AddressOf({&first, &second}), {.policy =
//   "round_robin"}); EXPECT_OK(client.Say());
#ifndef VERBENA_TESTS_E2E_ROUTED_SERVERS_H_
#define VERBENA_TESTS_E2E_ROUTED_SERVERS_H_

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rpc/rpc.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/streams.rpc.pb.h"
#include "tests/rpc/echo.rpc.pb.h"

namespace e2e {

// What a handler does, in this order.
struct Answer {
  bool initial_metadata = false;  // sends it before anything else
  bool at_once = false;           // does not read the client's messages
  absl::Duration nap = absl::ZeroDuration();
  std::string pushback = "";  // grpc-retry-pushback-ms; empty: none
  rpc::StatusCode code = rpc::StatusCode::OK;
};

// Any thread.
class Script {
 public:
  // For the next `times` calls; those after the last are answered with OK.
  void Add(const Answer& answer, int times = 1);
  // A handler begins.
  Answer Begin(rpc::ServerContext* context);

  int calls() const;
  // Of each call, its grpc-previous-rpc-attempts; empty: it had none.
  std::vector<std::string> previous_attempts() const;

 private:
  mutable absl::Mutex mutex_;
  std::deque<Answer> answers_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> previous_attempts_ ABSL_GUARDED_BY(mutex_);
};

class RoutedServer {
 public:
  explicit RoutedServer(int port = 0);
  ~RoutedServer();

  int port() const { return port_; }
  Script& script() { return script_; }
  // Lets running calls finish, for 10 ms.
  void Stop();

 private:
  class EchoService;
  class StreamsService;

  Script script_;
  const std::unique_ptr<EchoService> echo_;
  const std::unique_ptr<StreamsService> streams_;
  int port_ = 0;
  std::unique_ptr<rpc::Server> server_;
};

struct RoutedOptions {
  std::string policy = "";
  std::string service_config = "";
  Arguments arguments = QuickReconnect();
};

class RoutedClient {
 public:
  explicit RoutedClient(const std::string& address,
                        const RoutedOptions& options = {});

  rpc::Status Say(absl::Duration timeout = absl::Seconds(30),
                  bool wait_for_ready = false) const;
  // The same by other APIs.
  rpc::Status SayByCallback() const;
  rpc::Status SayByQueue() const;
  rpc::Channel& channel() const { return *channel_; }
  std::shared_ptr<rpc::Channel> shared_channel() const { return channel_; }
  rpc::testing::Echo::Stub& echo() const { return *echo_; }
  Streams::Stub& streams() const { return *streams_; }

 private:
  std::shared_ptr<rpc::Channel> channel_;
  std::unique_ptr<rpc::testing::Echo::Stub> echo_;
  std::unique_ptr<Streams::Stub> streams_;
};

// "rdma://127.0.0.1:1000,127.0.0.1:1001"
std::string AddressOfPorts(const std::vector<int>& ports);
std::string AddressOf(const std::vector<const RoutedServer*>& servers);

}  // namespace e2e

#endif  // VERBENA_TESTS_E2E_ROUTED_SERVERS_H_
