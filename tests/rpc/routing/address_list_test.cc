// Goal: addresses of channels are taken apart, in each way to write them.
#include "rpc/routing/address_list.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace rpc::routing {
namespace {

using Addresses = std::vector<std::string>;

TEST(SplitAddressesTest, OneIsWhatItWas) {
  EXPECT_EQ(SplitAddresses("rdma://a:1"), Addresses{"rdma://a:1"});
  EXPECT_EQ(SplitAddresses("a:1"), Addresses{"a:1"});
  EXPECT_EQ(SplitAddresses("[::1]:1"), Addresses{"[::1]:1"});
  EXPECT_EQ(SplitAddresses(""), Addresses{""});
}

TEST(SplitAddressesTest, SeveralShareTheScheme) {
  EXPECT_EQ(SplitAddresses("rdma://a:1,b:2,[::1]:3"),
            (Addresses{"rdma://a:1", "rdma://b:2", "rdma://[::1]:3"}));
  EXPECT_EQ(SplitAddresses("a:1,b:2"), (Addresses{"a:1", "b:2"}));
  EXPECT_EQ(SplitAddresses("rdma://a:1,rdma://b:2"),
            (Addresses{"rdma://a:1", "rdma://b:2"}));
}

TEST(SplitAddressesTest, AnAuthorityThatIsEmptyMayBeWritten) {
  EXPECT_EQ(SplitAddresses("rdma:///a:1,b:2"),
            (Addresses{"rdma://a:1", "rdma://b:2"}));
}

TEST(SplitAddressesTest, WhatIsMissingIsForTheTransportToSay) {
  EXPECT_EQ(SplitAddresses("rdma://a:1,"),
            (Addresses{"rdma://a:1", "rdma://"}));
}

TEST(ResolveAddressTest, ANumberIsWhatItWas) {
  for (const char* address : {"rdma://127.0.0.1:1", "127.0.0.1:1", "[::1]:1",
                              "rdma://[::1]:1", "no port", ":1", ""}) {
    EXPECT_FALSE(IsByName(address)) << address;
    EXPECT_EQ(ResolveAddress(address).value(), Addresses{address});
  }
}

TEST(ResolveAddressTest, ANameIsAllItsAddressesIpv4First) {
  EXPECT_TRUE(IsByName("rdma://localhost:1"));
  const Addresses addresses = ResolveAddress("rdma://localhost:1").value();
  ASSERT_FALSE(addresses.empty());
  EXPECT_EQ(addresses.front(), "rdma://127.0.0.1:1");
  EXPECT_EQ(ResolveAddress("localhost:1").value().front(), "127.0.0.1:1");
}

TEST(ResolveAddressTest, ANameThatIsNoneSaysSo) {
  const absl::Status status = ResolveAddress("no.such.host.invalid:1").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("no.such.host.invalid"),
            std::string_view::npos);
}

}  // namespace
}  // namespace rpc::routing
