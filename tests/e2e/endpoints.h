// The two ends of the tests' calls, on the device of device_under_test.h.
//
//   Server server;                        // in this process
//   Client client(server.address());
//   EXPECT_OK(client.Echo(100, /*attachment_bytes=*/0));
//
// A server in a process of its own: peer_process.h.
#ifndef VERBENA_TESTS_E2E_ENDPOINTS_H_
#define VERBENA_TESTS_E2E_ENDPOINTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/e2e/device_under_test.h"
#include "tests/e2e/probe.rpc.pb.h"
#include "tests/e2e/probe_service.h"

namespace e2e {

// Of channel_arguments.h, beside the device.
using Arguments = std::map<std::string, int64_t>;

// Backoff short enough for tests that restart servers.
Arguments QuickReconnect();

class Server {
 public:
  // `another`: a service to serve besides the probe, or null. `queue` gets one
  // of the builder's, where it is not null; to be shut down and emptied when
  // the server is gone, and by another thread while calls run.
  explicit Server(const Arguments& arguments = {},
                  const std::string& address = ServerUri(),
                  rpc::Service* another = nullptr,
                  std::unique_ptr<rpc::ServerCompletionQueue>* queue = nullptr);

  bool ok() const { return status_.ok(); }
  const absl::Status& status() const { return status_; }
  int port() const { return port_; }
  // For clients: of one address, also where it listens on more.
  std::string address() const;
  ProbeService& service() { return service_; }
  rpc::Server& server() { return *server_; }

 private:
  ProbeService service_;
  int port_ = 0;
  absl::Status status_;
  std::unique_ptr<rpc::Server> server_;
};

// A channel with a stub. Its calls have deadlines, so that a test that fails
// ends; OK means that everything arrived as it was sent, else DATA_LOSS. May be
// used by any number of threads.
class Client {
 public:
  explicit Client(const std::string& address, const Arguments& arguments = {});

  rpc::Status Echo(size_t message_bytes, size_t attachment_bytes = 0,
                   absl::Duration timeout = kTimeout) const;
  rpc::Status Consume(size_t message_bytes, size_t attachment_bytes = 0,
                      absl::Duration timeout = kTimeout) const;
  rpc::Status Produce(size_t message_bytes, size_t attachment_bytes = 0,
                      absl::Duration timeout = kTimeout) const;
  rpc::Status Block(absl::Duration timeout) const;
  rpc::Status ReleaseBlocked() const;
  // Its handler sleeps so long.
  rpc::Status Sleep(absl::Duration time) const;
  // All zero where the call fails, which fails the test.
  Observation Observe() const;

  rpc::Channel& channel() const { return *channel_; }
  std::shared_ptr<rpc::Channel> shared_channel() const { return channel_; }
  Probe::Stub& stub() const { return *stub_; }

  static constexpr absl::Duration kTimeout = absl::Seconds(30);

 private:
  // A chain of one buffer with a test pattern.
  absl::StatusOr<rpc::BufferChain> Attachment(size_t bytes) const;

  std::shared_ptr<rpc::Channel> channel_;
  std::unique_ptr<Probe::Stub> stub_;
};

// So that a test that fails ends.
struct TimedContext : rpc::ClientContext {
  explicit TimedContext(absl::Duration timeout = absl::Seconds(60));
};

// For EXPECT_TRUE, with the status as the message.
testing::AssertionResult IsOk(const rpc::Status& status);
testing::AssertionResult HasCode(const rpc::Status& status,
                                 rpc::StatusCode code);
#define EXPECT_OK(expression) EXPECT_TRUE(::e2e::IsOk(expression))
#define ASSERT_OK(expression) ASSERT_TRUE(::e2e::IsOk(expression))

}  // namespace e2e

#endif  // VERBENA_TESTS_E2E_ENDPOINTS_H_
