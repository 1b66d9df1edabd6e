// Goal: addresses print as users write them, and only numeric ones parse.
#include "rdma_transport/provider/provider.h"

#include "gtest/gtest.h"

namespace rdma {
namespace {

TEST(SocketAddressTest, PrintsBothFamilies) {
  EXPECT_EQ(SocketAddress::FromNumeric("127.0.0.1", 50051)->ToString(),
            "127.0.0.1:50051");
  EXPECT_EQ(SocketAddress::FromNumeric("0:0:0:0:0:0:0:1", 1)->ToString(),
            "[::1]:1");
  EXPECT_EQ(SocketAddress().ToString(), "(no address)");
}

TEST(SocketAddressTest, PortCanBeReplaced) {
  for (const char* host : {"127.0.0.1", "::1"}) {
    SocketAddress address = *SocketAddress::FromNumeric(host, 0);
    address.set_port(65535);
    EXPECT_EQ(address.port(), 65535) << host;
  }
}

TEST(SocketAddressTest, KnowsTheWildcards) {
  EXPECT_TRUE(SocketAddress::FromNumeric("0.0.0.0", 1)->is_any());
  EXPECT_TRUE(SocketAddress::FromNumeric("::", 1)->is_any());
  EXPECT_FALSE(SocketAddress::FromNumeric("127.0.0.1", 1)->is_any());
  EXPECT_FALSE(SocketAddress::FromNumeric("::1", 1)->is_any());
}

TEST(SocketAddressTest, RefusesNamesAndBrackets) {
  for (const char* host : {"localhost", "[::1]", "", "1.2.3", "1.2.3.4:5"}) {
    const auto address = SocketAddress::FromNumeric(host, 1);
    EXPECT_EQ(address.status().code(), absl::StatusCode::kInvalidArgument)
        << host;
  }
}

}  // namespace
}  // namespace rdma
