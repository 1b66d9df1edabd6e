// Goal: the GID of a connection is the one of its own network. Method: tables
// as hosts have them, with several networks, RoCE versions and ports.
#include "rdma_transport/hardware/local_port.h"

#include <vector>

#include "gtest/gtest.h"

namespace rdma {
namespace {

ibv_gid Gid(const char* host) {
  return GidOf(*SocketAddress::FromNumeric(host, 50051));
}

ibv_gid_entry Entry(uint32_t index, uint32_t port, const char* host,
                    uint32_t type) {
  ibv_gid_entry entry = {};
  entry.gid = Gid(host);
  entry.gid_index = index;
  entry.port_num = port;
  entry.gid_type = type;
  return entry;
}

// A dual-port NIC whose first port has two networks.
std::vector<ibv_gid_entry> Table() {
  return {Entry(0, 1, "fe80::1", IBV_GID_TYPE_ROCE_V1),
          Entry(1, 1, "fe80::1", IBV_GID_TYPE_ROCE_V2),
          Entry(2, 1, "10.0.0.1", IBV_GID_TYPE_ROCE_V1),
          Entry(3, 1, "10.0.0.1", IBV_GID_TYPE_ROCE_V2),
          Entry(4, 1, "172.17.0.1", IBV_GID_TYPE_ROCE_V2),
          Entry(0, 2, "10.0.0.1", IBV_GID_TYPE_ROCE_V2),
          Entry(1, 2, "10.1.0.1", IBV_GID_TYPE_ROCE_V2)};
}

TEST(LocalPortTest, GidsAreAddresses) {
  EXPECT_EQ(GidToString(Gid("10.0.0.1")), "::ffff:10.0.0.1");
  EXPECT_EQ(GidToString(Gid("2001:db8::7")), "2001:db8::7");
}

TEST(LocalPortTest, TakesTheVersion2EntryOfTheAddress) {
  const std::vector<ibv_gid_entry> table = Table();
  EXPECT_EQ(FindRoceGid(table, Gid("10.0.0.1"), {}), &table[3]);
  EXPECT_EQ(FindRoceGid(table, Gid("172.17.0.1"), {}), &table[4]);
  EXPECT_EQ(FindRoceGid(table, Gid("fe80::1"), {}), &table[1]);
  EXPECT_EQ(FindRoceGid(table, Gid("10.1.0.1"), {}), &table[6]);
}

TEST(LocalPortTest, KeepsToThePortThatWasAskedFor) {
  const std::vector<ibv_gid_entry> table = Table();
  EXPECT_EQ(FindRoceGid(table, Gid("10.0.0.1"), 2), &table[5]);
  EXPECT_EQ(FindRoceGid(table, Gid("172.17.0.1"), 2), nullptr);
}

TEST(LocalPortTest, DoesNotGuess) {
  EXPECT_EQ(FindRoceGid(Table(), Gid("10.0.0.2"), {}), nullptr);
  EXPECT_EQ(FindRoceGid({}, Gid("10.0.0.1"), {}), nullptr);
}

}  // namespace
}  // namespace rdma
