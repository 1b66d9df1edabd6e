// Goal: what breaks takes the connections along that depend on it, and no
// others.
// Method: as connection_test; the device tells of events that never happened.
#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rdma_transport/connection.h"
#include "tests/transport/connection_side.h"

namespace rdma {
namespace {

using testing::Eventually;
using ::testing::HasSubstr;
using testing::Side;

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
    for (int i = 0; i < 2; ++i) {
      connections_.push_back(client_.ConnectTo(server_));
    }
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
  client_.ConnectTo(server_);
}

TEST_F(DeviceEventTest, AQueueThatCannotBePolledClosesEverything) {
  client_.Do([&] { client_.device().FailPolls(); });
  client_.device().Raise(EventOf(IBV_EVENT_PORT_ACTIVE));  // wakes it
  ExpectDown(2, "ibv_poll_cq");
}

TEST(ConnectionEventTest, ManyEventsAreTakenAFewAtATime) {
  constexpr int kEvents = 1'000'000;
  Side side({}, [](testing::MeddledDevice& device) {
    device.FloodConnectionEvents(kEvents);
  });
  EXPECT_TRUE(Eventually([&] { return side.device().flood_left() < kEvents; }));
  // What else there is to do comes in between.
  side.Do([] {});
  EXPECT_GT(side.device().flood_left(), 0);
}

}  // namespace
}  // namespace rdma
