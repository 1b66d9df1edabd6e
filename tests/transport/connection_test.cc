// Goal: what a connection takes of its poller is bounded, so that others find
// room, and what it does not need comes back.
// Method: two sides over the software device, without rpc/, whose accounts the
// test reads.
#include "rdma_transport/connection.h"

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/transport/connection_side.h"

namespace rdma {
namespace {

using ::testing::ElementsAre;
using testing::Eventually;
using ::testing::HasSubstr;
using testing::Side;
using ::testing::UnorderedElementsAre;

constexpr uint32_t kInitialWindow = 3;
// Of a poller with the default options.
constexpr int kReceives = 6464;
constexpr int kOneOffer = 80;  // beyond those

std::vector<Connection*> ConnectMany(Side& client, const Side& server,
                                     int count) {
  std::vector<Connection*> connections;
  const int before = client.up();
  for (int i = 0; i < count; ++i) {
    const absl::StatusOr<Connection*> connection =
        client.Connect(server.address());
    EXPECT_TRUE(connection.ok()) << connection.status() << " of " << i;
    if (connection.ok()) connections.push_back(*connection);
  }
  EXPECT_TRUE(Eventually([&] { return client.up() == before + count; }))
      << client.up() - before << " of " << count << ", the server says "
      << server.last_refusal() << ", the client " << client.last_down();
  return connections;
}

// A peer may use a credit as soon as it has it; without a receive for it, the
// device would have to try again, and in the end give the connection up.
TEST(ConnectionTest, EveryCreditIsBackedByAReceive) {
  constexpr int kConnections = 60;
  Side server;
  Side client;
  server.Listen();
  const std::vector<Connection*> connections =
      ConnectMany(client, server, kConnections);
  for (int round = 1; round <= 20; ++round) {
    // So that the server finds them all at once.
    server.Do([&] {
      for (Connection* const connection : connections) client.Open(connection);
    });
    ASSERT_TRUE(
        Eventually([&] { return client.answered() == round * kConnections; }));
  }
  EXPECT_GE(server.least_spare_receives(), 0);
}

TEST(ConnectionTest, BusyConnectionsLeaveRoomForNewOnes) {
  constexpr int kBusy = 60;
  constexpr int kCalls = 200;
  constexpr int kMore = 100;
  Side server;
  Side client;
  server.Listen();
  server.AnswerAtOnce(false);
  const std::vector<Connection*> busy = ConnectMany(client, server, kBusy);
  // As one task of the driver, which takes in no credits meanwhile: each
  // connection runs out of them, however fast the server is.
  client.Do([&] {
    for (int i = 0; i < kCalls; ++i) {
      for (Connection* const connection : busy) client.Open(connection);
    }
  });
  EXPECT_TRUE(Eventually([&] { return server.opened() == kBusy * kCalls; }));
  EXPECT_GT(server.reserved(), kBusy * 2 * kInitialWindow) << "windows grew";

  server.AnswerAtOnce(true);
  for (Connection* const connection : ConnectMany(client, server, kMore)) {
    client.Open(connection);
  }
  EXPECT_TRUE(Eventually([&] { return client.answered() == kMore; }))
      << client.answered();

  server.Answer();
  int calls = kBusy * kCalls + kMore;
  const auto all_are_answered = [&] { return client.answered() == calls; };
  EXPECT_TRUE(Eventually(all_are_answered));
  // From now on each has a call now and then.
  const auto window_of_each = [&] {
    return server.reserved() / (kBusy + kMore);
  };
  EXPECT_TRUE(Eventually(
      [&] {
        for (Connection* const connection : busy) client.Open(connection);
        calls += kBusy;
        return Eventually(all_are_answered) && window_of_each() <= 8;
      },
      absl::Seconds(30)))
      << window_of_each();
  EXPECT_EQ(client.down(), 0);
}

// Small ones that overtake a large one could keep it from its memory for ever.
TEST(ConnectionTest, AMessageThatWaitsForMemoryIsNotOvertaken) {
  constexpr size_t kMiB = 1 << 20;
  Side server({}, nullptr, 64 * kMiB);
  Side client;
  server.Listen();
  Connection* const connection = ConnectMany(client, server, 1).front();
  // All but too little for the large one.
  RegisteredMemory& memory = server.poller().context().memory();
  std::vector<rpc::Buffer> used;
  for (;;) {
    absl::StatusOr<rpc::Buffer> buffer = memory.Allocate(4 * kMiB);
    if (!buffer.ok()) break;
    used.push_back(*std::move(buffer));
  }
  used.pop_back();
  client.Open(connection, 16 * kMiB);
  client.Open(connection, kMiB / 2);
  client.Open(connection, 1);
  EXPECT_TRUE(Eventually([&] { return server.opened() == 1; }));
  // Time to overtake, for one that would.
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_THAT(server.message_sizes(), ElementsAre(1));
  used.clear();
  EXPECT_TRUE(Eventually([&] { return client.answered() == 3; }))
      << client.last_failure();
  // Handlers of different calls may begin in any order.
  EXPECT_THAT(server.message_sizes(),
              UnorderedElementsAre(1, 16 * kMiB, kMiB / 2));
}

TEST(ConnectionTest, ACallWhoseRequestIsStillReadHasNotRun) {
  Side server({}, nullptr, uint64_t{64} << 20);
  Side client;
  server.Listen();
  Connection* const connection = ConnectMany(client, server, 1).front();
  RegisteredMemory& memory = server.poller().context().memory();
  std::vector<rpc::Buffer> used;
  for (;;) {
    absl::StatusOr<rpc::Buffer> buffer = memory.Allocate(size_t{4} << 20);
    if (!buffer.ok()) break;
    used.push_back(*std::move(buffer));
  }
  client.Open(connection, size_t{16} << 20);
  const auto arrived = [&] {
    size_t live = 0;
    server.Do([&] { live = server.poller().calls().live(); });
    return live == 1;
  };
  EXPECT_TRUE(Eventually(arrived));
  server.ResetAll();
  EXPECT_TRUE(Eventually([&] { return client.failed() == 1; }));
  EXPECT_EQ(client.not_run(), 1);
  EXPECT_EQ(server.opened(), 0);
}

TEST(ConnectionTest, AConnectionKeepsSoManyMethodsAndNotMore) {
  std::deque<std::string> paths;  // as long as a call may wait with one
  Side server;
  Side client;
  server.Listen();
  Connection* const connection = ConnectMany(client, server, 1).front();
  constexpr int kFit = MethodLimit::kMaxBytes / kMaxPathBytes;
  for (int i = 0; i < kFit + 10; ++i) {
    std::string& path = paths.emplace_back(absl::StrCat("/test.Test/", i, "/"));
    path.resize(kMaxPathBytes, 'x');
    client.Open(connection, 1, path, static_cast<uint32_t>(i));
  }
  EXPECT_TRUE(Eventually(
      [&] { return client.answered() + client.failed() == kFit + 10; }));
  EXPECT_EQ(client.answered(), kFit);
  EXPECT_EQ(client.last_failure().code(), absl::StatusCode::kResourceExhausted)
      << client.last_failure();
  // Those that it knows can be called as before.
  client.Open(connection, 1, "", 0);
  EXPECT_TRUE(Eventually([&] { return client.answered() == kFit + 1; }));
  EXPECT_EQ(client.down(), 0);
}

TEST(ConnectionTest, ConnectionsBeyondTheCompletionQueueAreRefused) {
  constexpr int kFit = 3;
  Side server;
  server.Listen();
  Side client({}, [](testing::MeddledDevice& device) {
    device.limits().max_cqe = kReceives + kFit * kIdleSendSlots + kOneOffer;
  });
  const std::vector<Connection*> connections =
      ConnectMany(client, server, kFit);
  const absl::Status refused = client.Connect(server.address()).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("completion queue"));
  // One that goes makes room.
  client.Do([&] { connections.front()->Close(absl::CancelledError("")); });
  EXPECT_TRUE(
      Eventually([&] { return client.Connect(server.address()).ok(); }));
}

// Those that are there leave room for what any of them may have to send.
TEST(ConnectionTest, AFullCompletionQueueStillTakesLargeMessages) {
  constexpr int kFit = 5;
  Side server;
  server.Listen();
  Side client({}, [](testing::MeddledDevice& device) {
    // What is left over would do for one more that is idle.
    device.limits().max_cqe =
        kReceives + (kFit + 1) * kIdleSendSlots + kOneOffer - 1;
  });
  const std::vector<Connection*> connections =
      ConnectMany(client, server, kFit);
  EXPECT_FALSE(client.Connect(server.address()).ok());
  for (Connection* const connection : connections) {
    client.Open(connection, 100'000);
  }
  EXPECT_TRUE(Eventually([&] { return client.answered() == kFit; }))
      << client.answered();
}

// However many sends nobody was told the end of when the queue became shorter.
TEST(ConnectionTest, AnIdleConnectionThatGrewOnceCanBeClosed) {
  constexpr int kConnections = 2 * SendQueue::kSignalEvery;
  Side server;
  Side client;
  server.Listen();
  const std::vector<Connection*> connections =
      ConnectMany(client, server, kConnections);
  int calls = 0;
  for (int i = 0; i < kConnections; ++i) {
    client.Open(connections[static_cast<size_t>(i)], 100'000);
    ++calls;
    EXPECT_TRUE(Eventually([&] { return client.answered() == calls; }));
    for (int j = 0; j < i; ++j) {
      client.Open(connections[static_cast<size_t>(i)]);
      ++calls;
      EXPECT_TRUE(Eventually([&] { return client.answered() == calls; }));
    }
  }
  // They shrink after one second, or two.
  absl::SleepFor(absl::Milliseconds(2500));
  client.CloseAll(absl::CancelledError(""));
  const auto left = [](Side& side) {
    uint32_t count = 0;
    side.Do([&] { count = side.poller().connection_count(); });
    return count;
  };
  EXPECT_TRUE(Eventually([&] { return left(client) + left(server) == 0; }))
      << left(client) << " of the client's, " << left(server)
      << " of the server's";
}

TEST(ConnectionTest, TheCompletionQueueGrowsWithWhatIsUnderWay) {
  constexpr int kConnections = 130;
  Side server;
  server.Listen();
  server.AnswerAtOnce(false);
  Side client;
  const int at_first = client.device().cq()->cqe;
  const std::vector<Connection*> connections =
      ConnectMany(client, server, kConnections);
  EXPECT_EQ(client.device().cq()->cqe, at_first) << "idle ones take little";
  // All of them before the first ones are idle for long.
  client.Do([&] {
    for (Connection* const connection : connections) {
      client.Open(connection, 100'000);
    }
    EXPECT_GE(client.device().cq()->cqe, kReceives + kConnections * 256);
  });
  EXPECT_TRUE(Eventually([&] { return server.opened() == kConnections; }));
  server.Answer();
  EXPECT_TRUE(Eventually([&] { return client.answered() == kConnections; }));
}

// A completion takes a third of a small call.
TEST(ConnectionTest, ABusyConnectionAsksForFewCompletions) {
  constexpr int kCalls = 1280;
  Side server;
  server.Listen();
  Side client;
  Connection* const connection = ConnectMany(client, server, 1).front();
  client.Do([&] { client.device().CountSendCompletions(); });
  const auto call_one_by_one = [&] {
    for (int i = 0; i < kCalls; ++i) {
      const int answered = client.answered();
      client.Open(connection);
      ASSERT_TRUE(Eventually([&] { return client.answered() > answered; }));
    }
  };
  call_one_by_one();
  // Idle ones ask four times as often, and a busy one is idle for a moment now
  // and then where the host has other work.
  constexpr int kFew = 2 * kCalls / static_cast<int>(SendQueue::kSignalEvery);
  EXPECT_LE(testing::MeddledDevice::send_completions(), kFew);
  // It was idle for a while, and had given back what it does not use.
  absl::SleepFor(absl::Milliseconds(2500));
  const int before = testing::MeddledDevice::send_completions();
  call_one_by_one();
  EXPECT_LE(testing::MeddledDevice::send_completions() - before, kFew);
  EXPECT_GE(testing::MeddledDevice::send_completions() - before, 2)
      << "nothing was counted";
}

TEST(ConnectionTest, LargeMessagesTakeTurnsInASmallCompletionQueue) {
  constexpr int kConnections = 4;
  Side server;
  server.Listen();
  Side client({}, [](testing::MeddledDevice& device) {
    device.limits().max_cqe =
        kReceives + kConnections * kIdleSendSlots + kOneOffer;
  });
  const std::vector<Connection*> connections =
      ConnectMany(client, server, kConnections);
  for (Connection* const connection : connections) {
    client.Open(connection, 100'000);
    client.Open(connection, 1);
  }
  EXPECT_TRUE(Eventually([&] { return client.answered() == 2 * kConnections; },
                         absl::Seconds(30)))
      << client.answered();
  EXPECT_EQ(client.down(), 0);
}

// What it gave back then would be promised twice, and a CQ that runs over is
// the end of all connections.
class AskingForCompletionsTest : public ::testing::TestWithParam<int> {};

TEST_P(AskingForCompletionsTest, KeepsThoseThatItHas) {
  constexpr uint32_t kFree = 20;  // fewer than an offer needs
  constexpr uint32_t kAll = 2 * kBusySendSlots + kReceives;
  Side server;
  server.Listen();
  Side client({}, [](testing::MeddledDevice& device) {
    device.limits().max_cqe = kReceives + kAll;
  });
  Connection* const connection = ConnectMany(client, server, 1).front();
  const auto try_reserve = [&](uint32_t count) {
    bool reserved = false;
    client.Do([&] {
      reserved = client.poller().ReserveCompletions(nullptr, count, 0).ok();
    });
    return reserved;
  };
  const auto unreserve = [&](uint32_t count) {
    client.Do([&] { client.poller().UnreserveCompletions(count); });
  };
  // It becomes busy, and some of its sends are not complete yet.
  const int calls = 4 * static_cast<int>(kBusySendSlots) + GetParam();
  for (int i = 0; i < calls; ++i) {
    client.Open(connection);
    ASSERT_TRUE(Eventually([&] { return client.answered() == i + 1; }));
  }
  const uint32_t taken = kAll - kBusySendSlots - kFree;
  ASSERT_TRUE(try_reserve(taken));

  client.Open(connection, 100'000);
  EXPECT_FALSE(try_reserve(kFree + 1));

  unreserve(taken);
  EXPECT_TRUE(Eventually([&] { return client.answered() == calls + 1; }));
  client.CloseAll(absl::CancelledError("the test is over"));
  EXPECT_TRUE(Eventually([&] { return try_reserve(kAll); }));
  EXPECT_FALSE(try_reserve(1));
  unreserve(kAll);
}

INSTANTIATE_TEST_SUITE_P(Sends, AskingForCompletionsTest,
                         ::testing::Values(0, 8, 16, 24));

TEST(ConnectionTest, ADeviceWithShortSendQueuesIsRefused) {
  Side server;
  server.Listen();
  Side narrow({}, [](testing::MeddledDevice& device) {
    device.limits().max_qp_wr = 95;
  });
  const absl::Status refused = narrow.Connect(server.address()).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("95"));

  // One that just does sends what takes the most room.
  Side enough({}, [](testing::MeddledDevice& device) {
    device.limits().max_qp_wr = 96;
  });
  Connection* const connection = ConnectMany(enough, server, 1).front();
  for (int i = 0; i < 200; ++i) {
    enough.Open(connection, i % 2 == 0 ? 1 : 100'000);
  }
  EXPECT_TRUE(Eventually([&] { return enough.answered() == 200; }))
      << enough.answered();
}

}  // namespace
}  // namespace rdma
