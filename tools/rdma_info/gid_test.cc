// Goal: GIDs are read, and told from IP addresses, as IBTA annex A17 has it.
// Method: the forms that there are.
#include "tools/rdma_info/gid.h"

#include "gtest/gtest.h"
#include "tools/rdma_info/made_up_machine.h"

namespace rdma_info {
namespace {

TEST(GidTest, TheKernelsLongFormIsRead) {
  const auto gid = ParseGid("0000:0000:0000:0000:0000:ffff:0a4d:0001");
  ASSERT_TRUE(gid.has_value());
  EXPECT_EQ(TextOf({.gid = *gid}), "::ffff:10.77.0.1");
}

TEST(GidTest, EmptyEntriesAreNone) {
  EXPECT_FALSE(ParseGid("0000:0000:0000:0000:0000:0000:0000:0000").has_value());
  EXPECT_FALSE(ParseGid("").has_value());
  EXPECT_FALSE(ParseGid("fe80").has_value());
}

TEST(GidTest, OnRoceAGidIsAnIpAddress) {
  EXPECT_EQ(IpAddressOf(RoceGid(1, "10.0.0.1", "eth2")), "10.0.0.1");
  EXPECT_TRUE(IsIpv4(RoceGid(1, "10.0.0.1", "eth2")));
  EXPECT_EQ(IpAddressOf(RoceGid(1, "2001:db8::1", "eth2")), "2001:db8::1");
  EXPECT_FALSE(IsIpv4(RoceGid(1, "2001:db8::1", "eth2")));
}

TEST(GidTest, LinkLocalOnesAreNone) {
  EXPECT_EQ(IpAddressOf(RoceGid(0, "fe80::1", "eth2")), "");
}

TEST(GidTest, OnOtherFabricsItIsNone) {
  for (const GidType type : {GidType::kInfiniband, GidType::kIwarp}) {
    Gid gid = RoceGid(0, "2001:db8::1", "");
    gid.type = type;
    EXPECT_EQ(IpAddressOf(gid), "") << NameOf(type);
  }
}

}  // namespace
}  // namespace rdma_info
