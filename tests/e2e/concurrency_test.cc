// Goal: threads, channels and the two APIs mix freely: all answers are right,
// and nothing waits for ever.
// Method: many of each against one server in a process of its own; callbacks
// that start blocking calls, and that drop what they are called by.
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/config.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "benchmarks/test_pattern.h"
#include "gtest/gtest.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/peer_process.h"
#include "tests/e2e/resources.h"

namespace e2e {
namespace {

#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
const int kScale = 1;
#else
const int kScale = TheDeviceUnderTest().Rounds(4);
#endif

// One call of the callback API that checks its answer; deletes itself.
class AsyncEcho {
 public:
  static void Start(const Client& client, size_t bytes,
                    std::function<void(rpc::Status)> done) {
    auto* const call = new AsyncEcho(bytes, std::move(done));
    call->context_.set_deadline(absl::Now() + absl::Seconds(30));
    client.stub().async()->Echo(
        &call->context_, &call->request_, &call->response_,
        [call](rpc::Status status) { call->Finish(std::move(status)); });
  }

 private:
  AsyncEcho(size_t bytes, std::function<void(rpc::Status)> done)
      : done_(std::move(done)) {
    request_.set_data(benchmarks::TestPattern(bytes, bytes));
  }

  void Finish(rpc::Status status) {
    if (status.ok() && response_.data() != request_.data()) {
      status = rpc::Status(rpc::StatusCode::DATA_LOSS, "another answer");
    }
    const std::function<void(rpc::Status)> done = std::move(done_);
    delete this;
    done(std::move(status));
  }

  rpc::ClientContext context_;
  Blob request_;
  Blob response_;
  std::function<void(rpc::Status)> done_;
};

void RunThreads(int count, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

class ConcurrencyTest : public testing::Test {
 protected:
  ConcurrencyTest() : server_(PeerProcess::Serve({}, "rdma://0.0.0.0:0")) {}

  const std::string& address() const { return server_.address(); }

  PeerProcess server_;
};

TEST_F(ConcurrencyTest, ManyThreadsOnOneChannel) {
  const Client client(address());
  RunThreads(32, [&](int i) {
    for (int j = 0; j < 100 * kScale; ++j) {
      ASSERT_OK(client.Echo(static_cast<size_t>(i * j) % 4000));
    }
  });
}

TEST_F(ConcurrencyTest, ManyThreadsWithLargeCallsOnOneChannel) {
  const Client client(address());
  RunThreads(12, [&](int i) {
    for (int j = 0; j < 5 * kScale; ++j) {
      ASSERT_OK(client.Echo(static_cast<size_t>(i) * 20'000,
                            static_cast<size_t>(j) * 50'000));
    }
  });
}

TEST_F(ConcurrencyTest, ManyChannelsShareAConnectionAndComeAndGo) {
  RunThreads(8, [&](int i) {
    for (int j = 0; j < 10 * kScale; ++j) {
      const Client client(address());
      ASSERT_OK(client.Echo(100));
    }
  });
}

// Another option, another connection.
std::vector<std::unique_ptr<Client>> ManyClients(const std::string& address) {
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < TheDeviceUnderTest().many_connections; ++i) {
    clients.push_back(std::make_unique<Client>(
        address, Arguments{{"grpc.client_idle_timeout_ms", 1'000'000 + i}}));
  }
  return clients;
}

TEST_F(ConcurrencyTest, ManyConnectionsOpenAtOnceAndClose) {
  std::vector<std::unique_ptr<Client>> clients = ManyClients(address());
  RunThreads(8, [&](int i) {
    for (size_t j = static_cast<size_t>(i); j < clients.size(); j += 8) {
      ASSERT_OK(clients[j]->Echo(100)) << j;
    }
  });
  const int64_t all = clients[0]->Observe().connections();
  EXPECT_EQ(all, TheDeviceUnderTest().many_connections);
  clients.resize(1);
  EXPECT_TRUE(
      Eventually([&] { return clients[0]->Observe().connections() == 1; }));
}

// A wake-up that gets lost costs a call its deadline, or a second until some
// timer wakes somebody.
TEST_F(ConcurrencyTest, ManyConnectionsTakeTurnsWithoutStalling) {
  std::vector<std::unique_ptr<Client>> clients = ManyClients(address());
  int slow = 0;
  for (const size_t bytes : {100, 100'000}) {
    for (size_t i = 0; i < clients.size(); ++i) {
      const absl::Time start = absl::Now();
      ASSERT_OK(clients[i]->Echo(bytes, 0, absl::Seconds(10)))
          << bytes << " bytes on connection " << i;
      if (absl::Now() - start >= absl::Seconds(1)) ++slow;
    }
  }
  // A machine that stands still for a second makes one call slow, or two.
  EXPECT_LE(slow, 2);
}

// Connections are handed from the poller that listens to the others, and
// threads drive several at once.
TEST(PollersTest, SeveralOnBothSides) {
  const PeerProcess server = PeerProcess::Serve({{"verbena.pollers", 3}});
  ASSERT_TRUE(server.ok()) << server.address();
  RunThreads(6, [&](int) {
    for (int round = 0; round < kScale; ++round) {
      const Client client(
          server.address(),
          {{"verbena.pollers", 2}, {"grpc.use_local_subchannel_pool", 1}});
      for (int i = 0; i < 20; ++i) ASSERT_OK(client.Echo(100));
      ASSERT_OK(client.Echo(100'000, 1'000'000));
    }
  });
}

TEST_F(ConcurrencyTest, ManyCallsInFlightFromOneThread) {
  const Client client(address());
  const int kCalls = TheDeviceUnderTest().Rounds(3000);
  absl::BlockingCounter done(kCalls);
  for (int i = 0; i < kCalls; ++i) {
    AsyncEcho::Start(client, static_cast<size_t>(i) % 3000,
                     [&](rpc::Status status) {
                       EXPECT_OK(status);
                       done.DecrementCount();
                     });
  }
  done.Wait();
}

TEST_F(ConcurrencyTest, BlockingCallsBesideCallbacks) {
  const Client client(address());
  constexpr int kThreads = 8;
  const int calls = 100 * kScale;
  absl::BlockingCounter done(kThreads * calls);
  RunThreads(kThreads, [&](int i) {
    for (int j = 0; j < calls; ++j) {
      AsyncEcho::Start(client, 100, [&](rpc::Status status) {
        EXPECT_OK(status);
        done.DecrementCount();
      });
      ASSERT_OK(client.Echo(50));
    }
  });
  done.Wait();
}

TEST_F(ConcurrencyTest, CallbacksStartTheNextCall) {
  const Client client(address());
  constexpr int kChains = 8;
  absl::BlockingCounter done(kChains);
  struct Chain {
    int left = 0;
    std::function<void(rpc::Status)> next;
  };
  std::vector<Chain> chains(kChains);
  for (Chain& chain : chains) {
    chain.left = 200 * kScale;
    chain.next = [&](rpc::Status status) {
      EXPECT_OK(status);
      if (--chain.left == 0) {
        done.DecrementCount();
      } else {
        AsyncEcho::Start(client, 64, chain.next);
      }
    };
    AsyncEcho::Start(client, 64, chain.next);
  }
  done.Wait();
}

TEST_F(ConcurrencyTest, CallbacksMakeBlockingCalls) {
  const Client client(address());
  const Client other(address(), QuickReconnect());
  constexpr int kCalls = 100;
  absl::BlockingCounter done(kCalls);
  for (int i = 0; i < kCalls; ++i) {
    AsyncEcho::Start(client, 100, [&, i](rpc::Status status) {
      EXPECT_OK(status);
      // On its own connection and on another.
      EXPECT_OK((i % 2 == 0 ? client : other).Echo(200));
      EXPECT_OK(client.Echo(50'000));
      done.DecrementCount();
    });
  }
  done.Wait();
}

TEST_F(ConcurrencyTest, AChannelIsDroppedInACallbackOfItsOwn) {
  for (int i = 0; i < 20 * kScale; ++i) {
    auto client = std::make_unique<Client>(
        address(), Arguments{{"grpc.client_idle_timeout_ms", 1'000'000 + i}});
    absl::Notification done;
    const Client& called = *client;
    AsyncEcho::Start(called, 100, [&](rpc::Status status) {
      EXPECT_OK(status);
      client = nullptr;  // the last of its channel, connection and poller
      done.Notify();
    });
    done.WaitForNotification();
    EXPECT_EQ(client, nullptr);
  }
}

TEST_F(ConcurrencyTest, AChannelIsDroppedWithCallsInFlight) {
  for (int i = 0; i < 10 * kScale; ++i) {
    constexpr int kCalls = 20;
    absl::BlockingCounter done(kCalls);
    {
      const Client client(address(), QuickReconnect());
      for (int j = 0; j < kCalls; ++j) {
        // They keep the channel alive, and go well.
        AsyncEcho::Start(client, j % 2 == 0 ? 100 : 100'000,
                         [&](rpc::Status status) {
                           EXPECT_OK(status);
                           done.DecrementCount();
                         });
      }
    }
    done.Wait();
  }
}

TEST_F(ConcurrencyTest, ClientsAndServersOfOneProcess) {
  Server here;
  ASSERT_TRUE(here.ok()) << here.status();
  const Client near(here.address());
  const Client far(address());
  RunThreads(4, [&](int i) {
    for (int j = 0; j < 20 * kScale; ++j) {
      ASSERT_OK((i % 2 == 0 ? near : far).Echo(1000, 20'000));
    }
  });
}

}  // namespace
}  // namespace e2e
