// Goal: addresses as users write them, and an answer that helps where they are
// wrong.
// Method: tables of good and bad ones; names that every machine has.
#include "rdma_transport/address.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rdma {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(AddressTest, GoodOnesAreTakenApart) {
  const struct {
    const char* address;
    HostPort expected;
  } rows[] = {
      {"rdma://127.0.0.1:50051", {"127.0.0.1", 50051}},
      {"127.0.0.1:50051", {"127.0.0.1", 50051}},
      {"rdma://[::1]:1", {"::1", 1}},
      {"[fe80::1%eth0]:65535", {"fe80::1%eth0", 65535}},
      {"rdma://storage1:0", {"storage1", 0}},
      {"storage1.example.com:0080", {"storage1.example.com", 80}},
  };
  for (const auto& row : rows) {
    const auto parsed = ParseAddress(row.address);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, row.expected) << row.address;
  }
}

TEST(AddressTest, BadOnesAreQuotedWithWhatIsWrongAndWhatIsRight) {
  const struct {
    const char* address;
    const char* what;
  } rows[] = {
      {"", "no port"},
      {"rdma://", "no port"},
      {"storage1", "no port"},
      {"rdma://storage1", "no port"},
      {":50051", "no host"},
      {"rdma://:50051", "no host"},
      {"[]:50051", "no host"},
      {"tcp://storage1:50051", "scheme"},
      {"://storage1:50051", "scheme"},
      {"::1:50051", "brackets"},
      {"1:2:3", "brackets"},
      {"[::1:50051", "bracket"},
      {"[:1", "bracket"},
      {"storage1:", "port"},
      {"storage1:http", "port"},
      {"storage1:65536", "port"},
      {"storage1:-1", "port"},
      {"storage1:+1", "port"},
      {"storage1: 1", "port"},
      {"storage1:1 ", "port"},
      {"storage1:99999999999999999999", "port"},
  };
  for (const auto& row : rows) {
    const auto parsed = ParseAddress(row.address);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument)
        << row.address;
    EXPECT_THAT(std::string(parsed.status().message()),
                AllOf(HasSubstr("'" + std::string(row.address) + "'"),
                      HasSubstr(row.what), HasSubstr("rdma://HOST:PORT")));
  }
}

TEST(AddressTest, NumericHostsNeedNoResolver) {
  const auto v4 = ResolveAddress({"127.0.0.1", 80});
  ASSERT_TRUE(v4.ok()) << v4.status();
  ASSERT_EQ(v4->size(), 1u);
  EXPECT_EQ(v4->front().ToString(), "127.0.0.1:80");
  const auto v6 = ResolveAddress({"::1", 81});
  ASSERT_TRUE(v6.ok()) << v6.status();
  ASSERT_EQ(v6->size(), 1u);
  EXPECT_EQ(v6->front().ToString(), "[::1]:81");
}

TEST(AddressTest, NamesResolveWithTheirPortAndIpv4First) {
  const auto resolved = ResolveAddress({"localhost", 4711});
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  ASSERT_FALSE(resolved->empty());
  bool ipv6_seen = false;
  for (const SocketAddress& address : *resolved) {
    EXPECT_EQ(address.port(), 4711);
    EXPECT_FALSE(ipv6_seen && address.family() == AF_INET);
    ipv6_seen |= address.family() == AF_INET6;
  }
}

TEST(AddressTest, ANameThatDoesNotResolveIsUnavailable) {
  // ".invalid" never resolves (RFC 2606).
  const auto resolved = ResolveAddress({"nobody.invalid", 1});
  EXPECT_EQ(resolved.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(resolved.status().message()),
              HasSubstr("cannot resolve 'nobody.invalid'"));
}

}  // namespace
}  // namespace rdma
