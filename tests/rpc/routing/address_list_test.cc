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

}  // namespace
}  // namespace rpc::routing
