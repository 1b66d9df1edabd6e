// Goal: every event of rdma_cm becomes what provider.h says, those included
// that no test can bring about on a device (a removed device, a failed route, a
// changed address). Method: real connections, whose events are rewritten on the
// way from librdmacm (failing_calls.h). Needs a device.
#include <rdma/rdma_cma.h>

#include <cerrno>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/conformance/connection_fixture.h"
#include "tests/hardware/failing_calls.h"

namespace rdma::conformance {
namespace {

using ::testing::HasSubstr;

class CmEventTest : public ConnectionFixture {
 protected:
  void TearDown() override {
    SetCmEventFilter(nullptr);
    ConnectionFixture::TearDown();
  }

  // From now on events of type `from` come as `to`, with `status`.
  static void Rewrite(rdma_cm_event_type from, rdma_cm_event_type to,
                      int status = 0) {
    SetCmEventFilter([from, to, status](rdma_cm_event* event) {
      if (event->event != from) return;
      event->event = to;
      event->status = status;
    });
  }

  // Connects to a listener that accepts, and returns the client's last event.
  CmEvent ConnectAndFail() {
    CmId* const listener = Listen();
    CmId* const id = StartConnecting(listener->local_address());
    if (id == nullptr) return {};
    address_ = listener->local_address().ToString();
    CmEvent last;
    pump().Unwatch(&server().manager());
    pump().Unwatch(&client().manager());
    pump().Until(
        [&] {
          std::optional<CmEvent> event = server().manager().GetEvent();
          if (event && event->type == Type::kConnectRequest) {
            EXPECT_TRUE(server()
                            .manager()
                            .Accept(event->id, server().CreateQp({}), {})
                            .ok());
          }
          event = client().manager().GetEvent();
          if (event) last = *event;
          return event.has_value();
        },
        "the end of the attempt");
    pump().Watch(&server().manager());
    pump().Watch(&client().manager());
    EXPECT_EQ(last.id, id);
    return last;
  }

  std::string address_;
};
CONFORMANCE_SUITE_ONCE(CmEventTest);

TEST_P(CmEventTest, WhateverFailsEndsTheAttemptWithItsReason) {
  const struct {
    rdma_cm_event_type from;
    rdma_cm_event_type to;
    int status;
    absl::StatusCode code;
    const char* words;
  } rows[] = {
      {RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT,
       absl::StatusCode::kUnavailable, "ARP"},
      {RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV,
       absl::StatusCode::kNotFound, "no RDMA device"},
      {RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_DEVICE_REMOVAL, 0,
       absl::StatusCode::kUnavailable, "removed"},
      {RDMA_CM_EVENT_ROUTE_RESOLVED, RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT,
       absl::StatusCode::kUnavailable, "route"},
      {RDMA_CM_EVENT_CONNECT_RESPONSE, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT,
       absl::StatusCode::kUnavailable, "4791"},
      {RDMA_CM_EVENT_CONNECT_RESPONSE, RDMA_CM_EVENT_CONNECT_ERROR, -EIO,
       absl::StatusCode::kUnavailable, "CONNECT_ERROR"},
      {RDMA_CM_EVENT_CONNECT_RESPONSE, RDMA_CM_EVENT_REJECTED, 10,
       absl::StatusCode::kUnavailable, "old connection"},
      {RDMA_CM_EVENT_CONNECT_RESPONSE, RDMA_CM_EVENT_REJECTED, 3,
       absl::StatusCode::kUnavailable, "reason 3"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.words);
    Rewrite(row.from, row.to, row.status);
    const CmEvent event = ConnectAndFail();
    EXPECT_EQ(event.type, Type::kConnectFailed);
    EXPECT_FALSE(event.rejected);
    EXPECT_EQ(event.status.code(), row.code) << event.status;
    EXPECT_THAT(std::string(event.status.message()),
                testing::AllOf(HasSubstr(row.words), HasSubstr(address_)));
  }
}

TEST_P(CmEventTest, ARemovedDeviceDisconnects) {
  Link link;
  ASSERT_TRUE(Connect({}, &link));
  Rewrite(RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_DEVICE_REMOVAL);
  client().manager().Disconnect(link.client_id);
  EXPECT_EQ(Expect(server(), Type::kDisconnected).id, link.server_id);
  server().manager().Disconnect(link.server_id);
  EXPECT_EQ(StateOf(server().device(), link.server), IBV_QPS_ERR);
  // Said once.
  pump().ExpectSilence(&server().manager());
}

TEST_P(CmEventTest, AChangedAddressIsNoEvent) {
  Link link;
  ASSERT_TRUE(Connect({}, &link));
  Rewrite(RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_ADDR_CHANGE);
  client().manager().Disconnect(link.client_id);
  pump().ExpectSilence(&server().manager());
  EXPECT_EQ(StateOf(server().device(), link.server), IBV_QPS_RTS);
}

TEST_P(CmEventTest, AnAcceptedClientMayNeverGetReady) {
  for (const rdma_cm_event_type type :
       {RDMA_CM_EVENT_CONNECT_ERROR, RDMA_CM_EVENT_UNREACHABLE}) {
    CmId* const listener = Listen();
    ASSERT_NE(StartConnecting(listener->local_address()), nullptr);
    CmEvent request = Expect(server(), Type::kConnectRequest);
    ASSERT_NE(request.id, nullptr);
    Rewrite(RDMA_CM_EVENT_ESTABLISHED, type, -ETIMEDOUT);
    ASSERT_TRUE(
        server().manager().Accept(request.id, server().CreateQp({}), {}).ok());
    const CmEvent event = Next(server());
    EXPECT_EQ(event.type, Type::kConnectFailed);
    EXPECT_EQ(event.id, request.id);
    EXPECT_FALSE(event.status.ok());
    Expect(client(), Type::kEstablished);
  }
}

}  // namespace
}  // namespace rdma::conformance
