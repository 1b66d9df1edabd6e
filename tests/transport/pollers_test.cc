// Goal: a server's clients are shared out evenly among its pollers, and a
// process's endpoints among those of its clients; limits and shutdown hold for
// all of them together.
// Method: transports as rpc/ has them, on the software device; the handle of a
// call tells which of the server's pollers it came by.
#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rdma_transport/call.h"
#include "rdma_transport/client_poller.h"
#include "rdma_transport/statistics.h"
#include "rpc/transport.h"

namespace rdma {
namespace {

using ::testing::ElementsAre;

constexpr absl::Duration kPatience = absl::Seconds(30);

rpc::TransportOptions OptionsWith(uint32_t pollers) {
  rpc::TransportOptions options;
  options.device = "soft";
  options.pollers = pollers;
  options.share_connection = false;
  return options;
}

rpc::TransportFactory& Factory() {
  return **rpc::TransportFactory::ForAddress("rdma://127.0.0.1:0");
}

// Counts the calls of each poller, and refuses them: none is implemented.
class Server final : public rpc::ServerSink {
 public:
  explicit Server(const rpc::TransportOptions& options)
      : transport_(*Factory().CreateServer(options)),
        address_(absl::StrCat("rdma://127.0.0.1:",
                              *transport_->AddListeningPort("127.0.0.1:0"))) {
    EXPECT_TRUE(transport_->Start(this).ok());
  }
  ~Server() { Shutdown(); }

  void Shutdown() { transport_->Shutdown(absl::Now()); }
  const std::string& address() const { return address_; }
  std::string device() const { return transport_->device(); }
  // The first `pollers`' calls since the last time.
  std::vector<int> TakeCounts(size_t pollers) {
    std::vector<int> counts;
    for (size_t i = 0; i < pollers; ++i) {
      counts.push_back(calls_[i].exchange(0));
    }
    return counts;
  }

 private:
  const void* OnMethod(std::string_view, uint32_t) override { return this; }
  rpc::CallSink* OnCall(const Call& call, rpc::IncomingFrame&) override {
    ++calls_[CallTable::PollerNumberOf(call.handle)];
    return nullptr;
  }

  std::array<std::atomic<int>, CallTable::kMaxPollers> calls_{};
  const std::unique_ptr<rpc::ServerTransport> transport_;
  const std::string address_;
};

// One connection.
class Client {
 public:
  explicit Client(const Server& server,
                  const rpc::TransportOptions& options = OptionsWith(1))
      : transport_(*Factory().CreateClient(server.address(), options)),
        method_(transport_->RegisterMethod("/test.Service/Method")) {}

  // UNIMPLEMENTED is what the server says.
  absl::StatusCode Call() {
    struct Sink final : rpc::CallSink {
      void OnFrame(rpc::IncomingFrame&) override {}
      void OnClosed(const rpc::CallOutcome& outcome) override {
        code = outcome.status.code();
        closed.Set();
      }
      absl::StatusCode code = absl::StatusCode::kOk;
      rpc::Event closed;
    } sink;
    rpc::OutgoingFrame frame;
    frame.has_message = true;
    frame.end = true;
    transport_->StartCall(
        {.method = method_, .deadline = absl::Now() + kPatience},
        std::move(frame), &sink);
    transport_->Wait(sink.closed);
    return sink.code;
  }

 private:
  const std::unique_ptr<rpc::ClientTransport> transport_;
  const uint32_t method_;
};

std::vector<std::unique_ptr<Client>> Connect(const Server& server, int count) {
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < count; ++i) {
    clients.push_back(std::make_unique<Client>(server));
    EXPECT_EQ(clients.back()->Call(), absl::StatusCode::kUnimplemented) << i;
  }
  return clients;
}

// Both ends of a connection are in this process.
bool AwaitConnections(uint64_t count) {
  const absl::Time deadline = absl::Now() + kPatience;
  while (GetTransportStatistics().open_connections != 2 * count) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(1));
  }
  return true;
}

TEST(PollersTest, ClientsAreSharedOutEvenly) {
  Server server(OptionsWith(3));
  EXPECT_EQ(server.device(), "soft0") << "one device, however many pollers";
  const auto clients = Connect(server, 9);
  EXPECT_THAT(server.TakeCounts(3), ElementsAre(3, 3, 3));
  for (const auto& client : clients) client->Call();
  EXPECT_THAT(server.TakeCounts(3), ElementsAre(3, 3, 3))
      << "a connection stays where it is";
}

TEST(PollersTest, WhereConnectionsEndedThereIsRoom) {
  Server server(OptionsWith(3));
  auto clients = Connect(server, 9);
  // Those of the second poller.
  for (const size_t i : {1, 4, 7}) clients[i].reset();
  ASSERT_TRUE(AwaitConnections(6));
  server.TakeCounts(3);
  const auto further = Connect(server, 3);
  EXPECT_THAT(server.TakeCounts(3), ElementsAre(0, 3, 0));
}

TEST(PollersTest, OnePollerTakesAll) {
  Server server(OptionsWith(1));
  const auto clients = Connect(server, 4);
  EXPECT_THAT(server.TakeCounts(2), ElementsAre(4, 0));
}

TEST(PollersTest, TheLimitOfConnectionsIsThatOfAll) {
  rpc::TransportOptions options = OptionsWith(2);
  options.max_connections = 3;
  Server server(options);
  auto clients = Connect(server, 3);
  EXPECT_EQ(Client(server).Call(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Client(server).Call(), absl::StatusCode::kUnavailable);
  clients.pop_back();
  ASSERT_TRUE(AwaitConnections(2));
  EXPECT_EQ(Client(server).Call(), absl::StatusCode::kUnimplemented);
}

// What it refuses does not count as what it has.
TEST(PollersTest, RefusedClientsDoNotWeigh) {
  rpc::TransportOptions options = OptionsWith(3);
  options.max_connections = 6;
  Server server(options);
  auto clients = Connect(server, 6);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(Client(server).Call(), absl::StatusCode::kUnavailable);
  }
  clients.clear();
  ASSERT_TRUE(AwaitConnections(0));
  server.TakeCounts(3);
  clients = Connect(server, 6);
  EXPECT_THAT(server.TakeCounts(3), ElementsAre(2, 2, 2));
}

TEST(PollersTest, AProcesssEndpointsTakeTurns) {
  const rpc::TransportOptions options = OptionsWith(2);
  std::vector<std::shared_ptr<ClientPoller>> pollers;
  for (int i = 0; i < 4; ++i) pollers.push_back(*ClientPoller::Get(options));
  EXPECT_NE(pollers[0], pollers[1]);
  EXPECT_EQ(pollers[0], pollers[2]);
  EXPECT_EQ(pollers[1], pollers[3]);
  EXPECT_NE(*ClientPoller::Get(OptionsWith(1)), pollers[0]);
}

// Clients come and call all the time, on several threads, while the server
// shuts down: each call ends, and with one of two statuses.
TEST(PollersTest, ShutdownEndsAllOfThem) {
  for (int round = 0; round < 5; ++round) {
    auto server = std::make_unique<Server>(OptionsWith(3));
    std::atomic<int> answered{0};
    std::atomic<bool> shutting_down{false};
    std::atomic<bool> refused{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (bool stop = false; !stop;) {
          stop = refused;  // once more after that
          const absl::StatusCode code = Client(*server, OptionsWith(2)).Call();
          if (code == absl::StatusCode::kUnimplemented) {
            ++answered;
          } else {
            EXPECT_TRUE(shutting_down);
            EXPECT_EQ(code, absl::StatusCode::kUnavailable);
            refused = true;
          }
        }
      });
    }
    while (answered < 20 && !refused) std::this_thread::yield();
    EXPECT_GE(answered, 20);
    shutting_down = true;
    server->Shutdown();
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(refused);
    ASSERT_TRUE(AwaitConnections(0));
  }
}

}  // namespace
}  // namespace rdma
