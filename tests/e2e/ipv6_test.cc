// Goal: servers and clients meet at IPv6 addresses as they do at IPv4 ones, and
// either side is told the other's. Method: a server at ::1, on the software
// device, and a client of it.
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rdma_transport/provider/local_address.h"
#include "rdma_transport/provider/provider.h"
#include "rpc/rpc.h"
#include "tests/e2e/device_under_test.h"
#include "tests/e2e/endpoints.h"

namespace e2e {
namespace {

using testing::MatchesRegex;

class Ipv6Test : public testing::Test {
 protected:
  void SetUp() override {
    if (!TheDeviceUnderTest().software) {
      GTEST_SKIP() << "the device has an address of its own, not ::1";
    }
    if (!rdma::IsLocalAddress(*rdma::SocketAddress::FromNumeric("::1", 0))) {
      GTEST_SKIP() << "this host has no ::1";
    }
    server_.emplace(Arguments(), "rdma://[::1]:0");
    ASSERT_TRUE(server_->ok()) << server_->status();
  }

  std::string address() const {
    return absl::StrCat("[::1]:", server_->port());
  }

  std::optional<Server> server_;
};

TEST_F(Ipv6Test, CallsOfAllSizesGetThrough) {
  const Client client("rdma://" + address());
  for (const size_t bytes : {0u, 100u, 20'000u, 1'000'000u}) {
    EXPECT_OK(client.Echo(bytes, bytes));
  }
}

TEST_F(Ipv6Test, EitherSideIsToldTheOthersAddress) {
  const Client client("rdma://" + address());
  TimedContext context;
  Observation seen;
  EXPECT_OK(client.stub().Observe(&context, Nothing(), &seen));
  EXPECT_EQ(context.peer(), "ipv6:" + address());
  EXPECT_THAT(seen.peer(), MatchesRegex("ipv6:\\[::1\\]:[0-9]+"));
  EXPECT_NE(seen.peer(), context.peer()) << "the client's port is its own";
}

}  // namespace
}  // namespace e2e
