// Goal: each way in which a connection fails has a code that says what to do
// next, and a text that names the address and a remedy of its own. Method: the
// events and reasons that devices give, row by row.
#include "rdma_transport/hardware/cm_status.h"

#include <cerrno>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rdma {
namespace {

using ::testing::HasSubstr;

const SocketAddress& Peer() {
  static const auto* peer =
      new SocketAddress(*SocketAddress::FromNumeric("192.0.2.7", 50051));
  return *peer;
}

std::string TextOf(const absl::Status& status) {
  return std::string(status.message());
}

TEST(CmStatusTest, EveryFailureNamesTheAddressAndIsAnError) {
  for (int event = RDMA_CM_EVENT_ADDR_RESOLVED;
       event <= RDMA_CM_EVENT_TIMEWAIT_EXIT; ++event) {
    for (const int status : {0, 1, 3, 4, 8, 10, 28, 99, -ETIMEDOUT, -ENODEV,
                             -EHOSTUNREACH, -ECONNREFUSED, -EINVAL}) {
      const absl::Status failure = ConnectFailure(
          static_cast<rdma_cm_event_type>(event), status, Peer());
      EXPECT_FALSE(failure.ok()) << event << " " << status;
      EXPECT_THAT(TextOf(failure), HasSubstr("192.0.2.7:50051"));
    }
  }
}

TEST(CmStatusTest, TellsTheReasonsOfARejectionApart) {
  std::set<std::string> texts;
  for (const int reason : {kRejectByConsumer, kRejectInvalidServiceId,
                           kRejectStaleConnection, kRejectTimeout, 1}) {
    const absl::Status failure =
        ConnectFailure(RDMA_CM_EVENT_REJECTED, reason, Peer());
    EXPECT_EQ(failure.code(), absl::StatusCode::kUnavailable);
    texts.insert(TextOf(failure));
  }
  EXPECT_EQ(texts.size(), 5u);
  EXPECT_THAT(TextOf(ConnectFailure(RDMA_CM_EVENT_REJECTED,
                                    kRejectInvalidServiceId, Peer())),
              HasSubstr("nothing listens"));
  EXPECT_THAT(
      TextOf(ConnectFailure(RDMA_CM_EVENT_REJECTED, -ECONNREFUSED, Peer())),
      HasSubstr("nothing listens"));
}

TEST(CmStatusTest, OnlyTheUsersRejectionHasWords) {
  EXPECT_TRUE(IsRejectedByUser(kRejectByConsumer));
  EXPECT_FALSE(IsRejectedByUser(kRejectInvalidServiceId));
  EXPECT_FALSE(IsRejectedByUser(-ECONNREFUSED));
}

TEST(CmStatusTest, AnAbsentHostIsNotAMissingDevice) {
  const absl::Status absent =
      ConnectFailure(RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT, Peer());
  EXPECT_EQ(absent.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(TextOf(absent), HasSubstr("ARP"));
  const absl::Status missing =
      ConnectFailure(RDMA_CM_EVENT_ADDR_ERROR, -ENODEV, Peer());
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(TextOf(missing), HasSubstr("rdma link"));
}

TEST(CmStatusTest, LoopbackGetsItsOwnRemedy) {
  for (const char* host : {"127.0.0.1", "::1"}) {
    const absl::Status status = ResolveError(
        "rdma_resolve_addr", ENODEV, *SocketAddress::FromNumeric(host, 1));
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(TextOf(status), HasSubstr("soft"));
  }
}

TEST(CmStatusTest, ATimeoutSaysHowFarItGot) {
  std::set<std::string> texts;
  for (const ConnectStage stage :
       {ConnectStage::kResolvingAddress, ConnectStage::kResolvingRoute,
        ConnectStage::kAwaitingAnswer}) {
    const absl::Status status = ConnectTimedOut(stage, Peer());
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(TextOf(status), HasSubstr("192.0.2.7:50051"));
    texts.insert(TextOf(status));
  }
  EXPECT_EQ(texts.size(), 3u);
}

TEST(CmStatusTest, AnAddressInUseIsToldFromAForeignOne) {
  const auto code = [](int error, bool is_local) {
    return ListenError("rdma_bind_addr", error, Peer(), is_local).code();
  };
  EXPECT_EQ(code(EADDRINUSE, true), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(code(EADDRNOTAVAIL, true), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(code(EADDRNOTAVAIL, false), absl::StatusCode::kNotFound);
  EXPECT_EQ(code(ENODEV, false), absl::StatusCode::kNotFound);
  EXPECT_EQ(code(ENODEV, true), absl::StatusCode::kNotFound);
  EXPECT_EQ(code(EACCES, true), absl::StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace rdma
