// Goal: addresses of this host are told from those of others. Method: addresses
// that are one or the other on every host (RFC 5737, RFC 3849 set some aside
// for documentation).
#include "rdma_transport/provider/local_address.h"

#include "gtest/gtest.h"

namespace rdma {
namespace {

TEST(IsLocalAddressTest, KnowsThisHost) {
  for (const char* host : {"127.0.0.1", "127.1.2.3", "0.0.0.0"}) {
    EXPECT_TRUE(IsLocalAddress(*SocketAddress::FromNumeric(host, 50051)))
        << host;
  }
}

TEST(IsLocalAddressTest, KnowsOthers) {
  for (const char* host : {"192.0.2.1", "203.0.113.9", "2001:db8::1"}) {
    EXPECT_FALSE(IsLocalAddress(*SocketAddress::FromNumeric(host, 50051)))
        << host;
  }
  EXPECT_FALSE(IsLocalAddress(SocketAddress()));
}

// A privileged or a busy port says nothing about the address.
TEST(IsLocalAddressTest, ThePortDoesNotMatter) {
  EXPECT_TRUE(IsLocalAddress(*SocketAddress::FromNumeric("127.0.0.1", 1)));
}

}  // namespace
}  // namespace rdma
