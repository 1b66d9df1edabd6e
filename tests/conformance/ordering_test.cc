// In what order requests take effect and complete, on one QP and between QPs.
// Method: mixes of requests whose results show the order. ibv_post_send(3);
// IBTA 10.8.3.3 and table 79 for what waits for what.
#include <vector>

#include "tests/conformance/fixture.h"

namespace rdma::conformance {
namespace {

using testing::ElementsAre;

class OrderingTest : public ConnectedTest {
 protected:
  WorkRequest Read(uint64_t wr_id, size_t remote_offset) {
    return ReadWr(wr_id, server_buffer_.addr(remote_offset),
                  server_buffer_.rkey());
  }
  WorkRequest Write(uint64_t wr_id, size_t remote_offset) {
    return WriteWr(wr_id, server_buffer_.addr(remote_offset),
                   server_buffer_.rkey());
  }
};
CONFORMANCE_SUITE(OrderingTest);

// Requests of one QP take effect in the order they were posted: a WRITE's bytes
// are there when the SEND behind it is received, and a READ sees the WRITE
// before it (IBTA 10.8.3.3, table 79).
TEST_P(OrderingTest, ASendReportsTheWritesBeforeIt) {
  PostServerReceives(1, 8);
  for (uint64_t id = 0; id < 10; ++id) {
    ASSERT_EQ(0, Post(client_qp_, Write(id, 6000 * id + 100)
                                      .Sge(client_buffer_.sge(1000 * id, 5000))
                                      .Unsignaled()));
  }
  ASSERT_EQ(0, Post(client_qp_, SendWr(10).Sge(client_buffer_.sge(0, 8))));
  EXPECT_THAT(Await(server().recv_cq()), Received(1000, 8));
  for (size_t id = 0; id < 10; ++id) {
    EXPECT_EQ(server_buffer_.bytes(6000 * id + 100, 5000),
              client_buffer_.bytes(1000 * id, 5000));
  }
  EXPECT_THAT(Await(client().send_cq()), Succeeded(10));
}

TEST_P(OrderingTest, AReadSeesTheWriteBeforeIt) {
  for (size_t round = 0; round < 20; ++round) {
    const size_t from = 100 * round;
    ASSERT_EQ(
        0, Post(client_qp_,
                Write(1, 500).Sge(client_buffer_.sge(from, 300)).Unsignaled()));
    ASSERT_EQ(
        0, Post(client_qp_, Read(2, 500).Sge(client_buffer_.sge(60000, 300))));
    ASSERT_THAT(Await(client().send_cq()), Succeeded(2));
    ASSERT_EQ(client_buffer_.bytes(60000, 300),
              client_buffer_.bytes(from, 300));
  }
}

// A request may use what an earlier READ or atomic brought only behind a fence:
// without it the SEND may leave while the READ is under way (IBTA 10.8.3.3).
TEST_P(OrderingTest, AFencedSendCarriesWhatTheReadBroughtBefore) {
  server_buffer_.Fill(12);
  client_buffer_.Clear();
  for (size_t round = 0; round < 20; ++round) {
    const size_t offset = 1000 * round;
    ASSERT_EQ(0, PostReceive(server_qp_,
                             {.wr_id = round,
                              .sges = {server_buffer_.sge(60000, 1000)}}));
    ASSERT_EQ(0, Post(client_qp_, Read(1, offset)
                                      .Sge(client_buffer_.sge(offset, 1000))
                                      .Unsignaled()));
    ASSERT_EQ(0, Post(client_qp_,
                      SendWr(2).Sge(client_buffer_.sge(offset, 1000)).Fence()));
    ASSERT_THAT(Await(server().recv_cq()), Received(round, 1000));
    ASSERT_THAT(Await(client().send_cq()), Succeeded(2));
    ASSERT_EQ(server_buffer_.bytes(60000, 1000),
              server_buffer_.bytes(offset, 1000));
  }
}

TEST_P(OrderingTest, AFencedWriteCopiesWhatTheReadBroughtBefore) {
  server_buffer_.Fill(13);
  ASSERT_EQ(0, Post(client_qp_, Read(1, 0).Sge(client_buffer_.sge(0, 20000))));
  ASSERT_EQ(0, Post(client_qp_,
                    Write(2, 30000).Sge(client_buffer_.sge(0, 20000)).Fence()));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(1, IBV_WC_RDMA_READ));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(2, IBV_WC_RDMA_WRITE));
  EXPECT_EQ(server_buffer_.bytes(30000, 20000), server_buffer_.bytes(0, 20000));
}

// More READs than may be outstanding at once wait their turn.
TEST_P(OrderingTest, QueuesMoreReadsThanTheDeviceRunsAtOnce) {
  server_buffer_.Fill(14);
  const size_t count = 60;
  for (size_t id = 0; id < count; ++id) {
    ASSERT_EQ(
        0, Post(client_qp_,
                Read(id, 1000 * id).Sge(client_buffer_.sge(1000 * id, 900))));
  }
  for (size_t id = 0; id < count; ++id) {
    ASSERT_THAT(Await(client().send_cq()), Succeeded(id, IBV_WC_RDMA_READ));
    ASSERT_EQ(client_buffer_.bytes(1000 * id, 900),
              server_buffer_.bytes(1000 * id, 900));
  }
}

// A long copy on one QP must not hold up another QP's small message for as long
// as it lasts: the small one posted last is not the last to be done.
TEST_P(OrderingTest, LongReadsDoNotStarveOtherConnections) {
  if (!deviations().interleaves_connections) {
    GTEST_SKIP() << "this device finishes one QP's copy before the next QP's";
  }
  const size_t largest = TheProviderUnderTest().largest_message_bytes;
  Region near = client().Allocate(largest);
  Region far = server().Allocate(largest);
  ASSERT_FALSE(near.empty() || far.empty());
  Link other;
  ASSERT_TRUE(Connect({}, &other));
  for (uint64_t id = 0; id < 4; ++id) {
    ASSERT_EQ(0, Post(client_qp_,
                      ReadWr(id, far.addr(), far.rkey()).Sge(near.sge())));
  }
  ASSERT_EQ(0, PostReceive(other.server,
                           {.wr_id = 8, .sges = {server_buffer_.sge(0, 8)}}));
  ASSERT_EQ(0, Post(other.client, SendWr(9).Sge(client_buffer_.sge(0, 8))));
  std::vector<uint64_t> order;
  for (const ibv_wc& wc : Await(client().send_cq(), 5)) {
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    order.push_back(wc.wr_id);
  }
  EXPECT_NE(order.back(), 9u);
  EXPECT_THAT(Await(server().recv_cq()), Received(8, 8));
}

TEST_P(OrderingTest, CompletesEverySortOfRequestInOrder) {
  PostServerReceives(3, 8);
  const uint64_t remote = server_buffer_.addr(4096);
  const uint32_t rkey = server_buffer_.rkey();
  const ibv_sge large = client_buffer_.sge(0, 32768);
  const ibv_sge small = client_buffer_.sge(40000, 8);
  std::vector<WorkRequest> list = {
      WriteWr(1, remote, rkey).Sge(large),
      SendWr(2).Sge(small),
      ReadWr(3, remote, rkey).Sge(large),
      SendWr(4).Sge(small).Inline(),
      FetchAndAddWr(5, remote, rkey, 1).Sge(small),
      WriteWr(6, remote, rkey).Sge(small).Imm(htonl(6)),
      ReadWr(7, remote, rkey).Sge(small),
  };
  size_t posted = 0;
  ASSERT_EQ(0, PostList(client_qp_, absl::MakeSpan(list), &posted));
  EXPECT_EQ(posted, list.size());
  EXPECT_THAT(
      Await(client().send_cq(), 7),
      ElementsAre(Succeeded(1, IBV_WC_RDMA_WRITE), Succeeded(2, IBV_WC_SEND),
                  Succeeded(3, IBV_WC_RDMA_READ), Succeeded(4, IBV_WC_SEND),
                  Succeeded(5, IBV_WC_FETCH_ADD),
                  Succeeded(6, IBV_WC_RDMA_WRITE),
                  Succeeded(7, IBV_WC_RDMA_READ)));
}

}  // namespace
}  // namespace rdma::conformance
