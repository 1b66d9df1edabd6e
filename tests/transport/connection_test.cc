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
#include "absl/synchronization/notification.h"
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

// ---- Streams.

// What 64 KiB of window let through after an open of 1 byte: it may be
// exceeded by one frame.
constexpr int kFramesOf10000 = 7;

class StreamTest : public ::testing::Test {
 protected:
  StreamTest() {
    server_.Listen();
    server_.AnswerAtOnce(false);
    connection_ = ConnectMany(client_, server_, 1).front();
    stream_ = client_.Open(connection_, 1, "/test.Test/Method", 0,
                           /*end=*/false);
    EXPECT_TRUE(Eventually([&] { return server_.opened() == 1; }));
  }

  void SendMany(int count, size_t bytes) {
    for (int i = 0; i < count; ++i) client_.SendMore(stream_, bytes);
  }
  size_t received() const { return server_.message_sizes().size(); }
  bool EventuallyReceived(size_t count) {
    return Eventually([&] { return received() >= count; });
  }
  // Nothing is on its way any more: what came later has been answered.
  void ExpectAnotherCallAnswered() {
    server_.AnswerAtOnce(true);
    const int before = client_.answered();
    client_.Open(connection_);
    EXPECT_TRUE(Eventually([&] { return client_.answered() == before + 1; }));
    server_.AnswerAtOnce(false);
  }

  Side server_;
  Side client_;
  Connection* connection_ = nullptr;
  rpc::CallHandle stream_;
};

TEST_F(StreamTest, OneThatIsNotReadHoldsBackItsSenderAlone) {
  SendMany(100, 10'000);
  EXPECT_TRUE(EventuallyReceived(1 + kFramesOf10000));
  EXPECT_TRUE(Eventually([&] { return client_.sent() >= 1 + kFramesOf10000; }));
  ExpectAnotherCallAnswered();
  EXPECT_EQ(received(), 1 + kFramesOf10000 + 1u);
  EXPECT_EQ(client_.sent(), 1 + kFramesOf10000);

  server_.TakeFrames(true);
  EXPECT_TRUE(EventuallyReceived(1 + 100 + 1));
  EXPECT_TRUE(Eventually([&] { return client_.sent() == 1 + 100; }));
  EXPECT_EQ(client_.failed() + client_.down(), 0);
}

TEST_F(StreamTest, OneWhoseHandlerBlocksPilesUpNoMoreThanItsWindow) {
  absl::Notification go_on;
  server_.BlockHandlers(&go_on);
  const rpc::CallHandle blocked =
      client_.Open(connection_, 1, "/test.Test/Method", 0, /*end=*/false);
  EXPECT_TRUE(Eventually([&] { return server_.opened() == 2; }));
  server_.BlockHandlers(nullptr);
  for (int i = 0; i < 100; ++i) client_.SendMore(blocked, 10'000);
  constexpr int kSent = 1 + 1 + kFramesOf10000;
  EXPECT_TRUE(Eventually([&] { return client_.sent() >= kSent; }));
  ExpectAnotherCallAnswered();
  EXPECT_EQ(client_.sent(), kSent);
  go_on.Notify();
  server_.TakeFrames(true);
  EXPECT_TRUE(Eventually([&] { return client_.sent() == 1 + 1 + 100; }));
}

// What is due to a call whose callback blocks is given to it in order.
TEST_F(StreamTest, WhatWasSentIsToldBeforeTheEnd) {
  EXPECT_TRUE(Eventually([&] { return client_.sent() == 1; }));
  absl::Notification go_on;
  client_.BlockHandlers(&go_on);
  const rpc::CallHandle blocked =
      client_.Open(connection_, 1, "/test.Test/Method", 0, /*end=*/false);
  client_.SendMore(blocked, 1);
  EXPECT_TRUE(EventuallyReceived(3));
  client_.BlockHandlers(nullptr);
  server_.Answer();
  EXPECT_TRUE(Eventually([&] { return client_.answered() == 1; }));
  ExpectAnotherCallAnswered();
  EXPECT_EQ(client_.sent(), 1);
  go_on.Notify();
  EXPECT_TRUE(Eventually([&] { return client_.answered() == 3; }));
  EXPECT_EQ(client_.sent(), 3);
}

TEST_F(StreamTest, LargeMessagesCountAsWell) {
  SendMany(5, 1 << 20);
  EXPECT_TRUE(EventuallyReceived(2));
  ExpectAnotherCallAnswered();
  EXPECT_EQ(received(), 3u);
  server_.TakeFrames(true);
  EXPECT_TRUE(EventuallyReceived(1 + 5 + 1));
}

TEST_F(StreamTest, WhatWasHeldBackGoesInOrderAndTheEndLast) {
  std::vector<size_t> sizes = {1};
  for (size_t i = 0; i < 40; ++i) {
    sizes.push_back(i % 8 == 7 ? 100'000 + i : 5'000 + i);
    client_.SendMore(stream_, sizes.back());
  }
  sizes.push_back(3);
  client_.SendMore(stream_, 3, /*end=*/true);
  client_.SendMore(stream_, 4);  // after the end: nothing
  server_.TakeFrames(true);
  EXPECT_TRUE(EventuallyReceived(sizes.size()));
  EXPECT_EQ(server_.message_sizes(), sizes);
  EXPECT_TRUE(Eventually([&] { return client_.sent() == 41; }));
  server_.Answer();
  EXPECT_TRUE(Eventually([&] { return client_.answered() == 1; }));
}

TEST_F(StreamTest, TheWindowOfAFastReaderGrowsAsFarAsItMay) {
  server_.TakeFrames(true);
  const auto grown = [&] {
    client_.Do([&] { SendMany(1'000, 10'000); });
    return server_.window_size() == 4 << 20;
  };
  EXPECT_TRUE(Eventually(grown)) << server_.window_size();
  EXPECT_EQ(client_.failed() + client_.down(), 0);
}

TEST_F(StreamTest, APeerThatGoesBeyondTheWindowLosesTheCallAlone) {
  client_.Do([&] {
    client_.poller().calls().Find(stream_)->send_window = int64_t{1} << 40;
  });
  SendMany(100, 10'000);
  EXPECT_TRUE(Eventually([&] { return client_.failed() == 1; }));
  EXPECT_EQ(client_.last_failure().code(), absl::StatusCode::kInternal)
      << client_.last_failure();
  ExpectAnotherCallAnswered();
  EXPECT_EQ(client_.down(), 0);
}

TEST_F(StreamTest, AConnectionThatClosesFreesWhatWasHeldBack) {
  SendMany(100, 10'000);
  client_.CloseAll(absl::UnavailableError("closed by the test"));
  EXPECT_TRUE(Eventually([&] { return client_.failed() == 1; }));
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

ibv_async_event EventOf(ibv_event_type type) {
  ibv_async_event event = {};
  event.event_type = type;
  return event;
}

// Two connections, with calls that nobody answers.
class DeviceEventTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server_.Listen();
    server_.AnswerAtOnce(false);
    connections_ = ConnectMany(client_, server_, 2);
    for (Connection* const connection : connections_) {
      client_.Open(connection, 100'000);
    }
    ASSERT_TRUE(Eventually([&] { return server_.opened() == 2; }));
  }
  void ExpectDown(int count, const std::string& reason) {
    EXPECT_TRUE(Eventually([&] {
      return client_.down() == count && client_.failed() == count;
    })) << client_.down()
        << " down, " << client_.failed() << " calls failed";
    EXPECT_THAT(client_.last_down().ToString(), HasSubstr(reason));
    EXPECT_EQ(client_.last_failure().code(), absl::StatusCode::kUnavailable);
    EXPECT_TRUE(Eventually([&] { return server_.down() == count; }));
    // And nothing is left of them.
    EXPECT_TRUE(Eventually([&] {
      uint32_t left = 0;
      client_.Do([&] { left = client_.poller().connection_count(); });
      return left == static_cast<uint32_t>(2 - count);
    }));
  }

  Side server_;
  Side client_;
  std::vector<Connection*> connections_;
};

TEST_F(DeviceEventTest, ABrokenQpClosesItsConnection) {
  ibv_async_event event = EventOf(IBV_EVENT_QP_FATAL);
  event.element.qp = client_.device().qps().front();
  client_.device().Raise(event);
  ExpectDown(1, "work queue");
  server_.AnswerAtOnce(true);
  client_.Open(connections_.back());
  EXPECT_TRUE(Eventually([&] { return client_.answered() == 1; }));
}

TEST_F(DeviceEventTest, ABrokenCompletionQueueClosesAllItsConnections) {
  ibv_async_event event = EventOf(IBV_EVENT_CQ_ERR);
  event.element.cq = client_.device().cq();
  client_.device().Raise(event);
  ExpectDown(2, "CQ");
  EXPECT_EQ(client_.Connect(server_.address()).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(DeviceEventTest, AnotherCompletionQueueIsNobodysBusiness) {
  ibv_async_event event = EventOf(IBV_EVENT_CQ_ERR);
  event.element.cq = server_.device().cq();
  client_.device().Raise(event);
  client_.device().Raise(EventOf(IBV_EVENT_SRQ_LIMIT_REACHED));
  client_.device().Raise(EventOf(IBV_EVENT_PORT_ACTIVE));
  EXPECT_TRUE(Eventually([&] { return client_.device().raised() == 0; }));
  server_.Answer();
  EXPECT_TRUE(Eventually([&] { return client_.answered() == 2; }));
}

TEST_F(DeviceEventTest, ADeviceThatIsGoneClosesEverything) {
  client_.device().Raise(EventOf(IBV_EVENT_DEVICE_FATAL));
  ExpectDown(2, "device");
}

TEST_F(DeviceEventTest, APortThatIsDownClosesItsConnections) {
  ibv_async_event event = EventOf(IBV_EVENT_PORT_ERR);
  event.element.port_num = 1;
  client_.device().Raise(event);
  ExpectDown(2, "port 1");
  // It may come up again.
  ConnectMany(client_, server_, 1);
}

TEST_F(DeviceEventTest, AQueueThatCannotBePolledClosesEverything) {
  client_.Do([&] { client_.device().FailPolls(); });
  client_.device().Raise(EventOf(IBV_EVENT_PORT_ACTIVE));  // wakes it
  ExpectDown(2, "ibv_poll_cq");
}

TEST(ConnectionTest, ManyConnectionEventsAreTakenAFewAtATime) {
  constexpr int kEvents = 1'000'000;
  Side side({}, [](testing::MeddledDevice& device) {
    device.FloodConnectionEvents(kEvents);
  });
  EXPECT_TRUE(Eventually([&] { return side.device().flood_left() < kEvents; }));
  // What else there is to do comes in between.
  side.Do([] {});
  EXPECT_GT(side.device().flood_left(), 0);
}

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
