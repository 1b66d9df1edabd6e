// Goal: a thousand connections between two devices cost little: one mapping of
// each arena, at most 32 KiB of shared memory a connection and side, one
// descriptor a side, and a busy one among them is served at once. Method: make
// them, count, use one.
#include <sys/resource.h>

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"
#include "tests/software/endpoint.h"

namespace rdma::soft {
namespace {

constexpr int kConnections = 1000;

TEST(ScaleTest, AThousandConnections) {
  rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < 2 * kConnections + 100) {
    GTEST_SKIP() << "RLIMIT_NOFILE is " << limit.rlim_cur;
  }
  Endpoint server, client;
  const SocketAddress address = server.Listen();
  const int descriptors = CountDescriptors();
  const int mappings = CountMappings();
  std::vector<ibv_qp*> near, far;
  for (int i = 0; i < kConnections; ++i) {
    near.push_back(client.Connect(address));
    far.push_back(server.Accept());
    ASSERT_NE(far.back(), nullptr);
    ASSERT_TRUE(client.Await(CmEvent::Type::kEstablished));
  }
  EXPECT_EQ(CountDescriptors(), descriptors + 2 * kConnections)
      << "a socket for each side of a connection";
  // Each side maps its own segment and the peer's; the devices' segments and
  // the arenas are mapped once each.
  EXPECT_LE(CountMappings(), mappings + 4 * kConnections + 4);

  for (int i : {0, 1, 17, 500, 999}) {
    ASSERT_EQ(server.PostReceive(far[i], i, server.Sge(0, 4096)), 0);
    ASSERT_EQ(client.PostSend(near[i], i, client.Sge(0, 2000)), 0);
    const auto received = server.AwaitCompletion();
    ASSERT_TRUE(received);
    EXPECT_EQ(received->qp_num, far[i]->qp_num);
    EXPECT_EQ(client.AwaitCompletion()->status, IBV_WC_SUCCESS);
    ASSERT_EQ(client.PostRead(near[i], i, client.Sge(0, 4096),
                              reinterpret_cast<uint64_t>(server.buffer()),
                              server.mr()->rkey),
              0);
    EXPECT_EQ(client.AwaitCompletion()->status, IBV_WC_SUCCESS);
  }
  EXPECT_LE(CountMappings(), mappings + 4 * kConnections + 4);
}

}  // namespace
}  // namespace rdma::soft
