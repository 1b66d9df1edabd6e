// RDMA READ and WRITE: bytes move between the requester's pieces and one range
// of the peer's memory, with no help of the peer's program. Method: the client
// reads and writes the server's buffer, every byte at and around both ranges is
// looked at. ibv_post_send(3); IBTA 9.4.3, 9.4.4.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "tests/conformance/fixture.h"

namespace rdma::conformance {
namespace {

class OneSidedTest : public ConnectedTest {
 protected:
  WorkRequest Read(uint64_t wr_id, size_t remote_offset) {
    return ReadWr(wr_id, server_buffer_.addr(remote_offset),
                  server_buffer_.rkey());
  }
  WorkRequest Write(uint64_t wr_id, size_t remote_offset) {
    return WriteWr(wr_id, server_buffer_.addr(remote_offset),
                   server_buffer_.rkey());
  }
  void ReadEverySizeAndAlignment(unsigned int flag);
};
CONFORMANCE_SUITE(OneSidedTest);

TEST_P(OneSidedTest, WritesEverySizeAndAlignment) {
  constexpr size_t kOffset = 64;
  for (size_t bytes : {0, 1, 2, 7, 8, 9, 63, 64, 65, 4095, 4096, 4097, 50000}) {
    for (size_t skew : {0, 1, 3, 7}) {
      SCOPED_TRACE(testing::Message() << bytes << " bytes, skew " << skew);
      server_buffer_.Clear();
      const size_t to = kOffset + skew;
      ASSERT_EQ(0, Post(client_qp_,
                        Write(1, to).Sge(client_buffer_.sge(2 * skew, bytes))));
      ASSERT_THAT(Await(client().send_cq()), Succeeded(1, IBV_WC_RDMA_WRITE));
      ASSERT_EQ(server_buffer_.bytes(to, bytes),
                client_buffer_.bytes(2 * skew, bytes));
      ASSERT_EQ(server_buffer_.data()[to - 1], 0);
      ASSERT_EQ(server_buffer_.data()[to + bytes], 0);
    }
  }
}

void OneSidedTest::ReadEverySizeAndAlignment(unsigned int flag) {
  constexpr size_t kOffset = 64;
  server_buffer_.Fill(2);
  for (size_t bytes : {0, 1, 2, 7, 8, 9, 63, 64, 65, 4095, 4096, 4097, 50000}) {
    for (size_t skew : {0, 1, 3, 7}) {
      SCOPED_TRACE(testing::Message() << bytes << " bytes, skew " << skew);
      client_buffer_.Clear();
      const size_t to = kOffset + skew;
      ASSERT_EQ(
          0,
          Post(
              client_qp_,
              Read(1, 5 * skew).Flag(flag).Sge(client_buffer_.sge(to, bytes))));
      ASSERT_THAT(Await(client().send_cq()), Succeeded(1, IBV_WC_RDMA_READ));
      ASSERT_EQ(client_buffer_.bytes(to, bytes),
                server_buffer_.bytes(5 * skew, bytes));
      ASSERT_EQ(client_buffer_.data()[to - 1], 0);
      ASSERT_EQ(client_buffer_.data()[to + bytes], 0);
    }
  }
}

TEST_P(OneSidedTest, ReadsEverySizeAndAlignment) {
  ReadEverySizeAndAlignment(0);
}

TEST_P(OneSidedTest, ReadsPastCachesEverySizeAndAlignment) {
  ReadEverySizeAndAlignment(client().device().past_caches_flag());
}

// A request of no bytes checks nothing but its form: with no length the rkey is
// not looked at (IBTA C9-88).
TEST_P(OneSidedTest, MovesNothingWithNoPieces) {
  ASSERT_EQ(0, Post(client_qp_, Write(1, 0)));
  ASSERT_EQ(0, Post(client_qp_, Read(2, 0)));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(1, IBV_WC_RDMA_WRITE));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(2, IBV_WC_RDMA_READ));
}

TEST_P(OneSidedTest, ReadScattersInOrder) {
  server_buffer_.Fill(3);
  client_buffer_.Clear();
  ASSERT_EQ(0, Post(client_qp_, Read(1, 100)
                                    .Sge(client_buffer_.sge(9000, 11))
                                    .Sge(client_buffer_.sge(50, 0))
                                    .Sge(client_buffer_.sge(100, 4000))
                                    .Sge(client_buffer_.sge(20001, 777))));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(1, IBV_WC_RDMA_READ));
  EXPECT_EQ(client_buffer_.bytes(9000, 11), server_buffer_.bytes(100, 11));
  EXPECT_EQ(client_buffer_.bytes(100, 4000), server_buffer_.bytes(111, 4000));
  EXPECT_EQ(client_buffer_.bytes(20001, 777), server_buffer_.bytes(4111, 777));
  EXPECT_EQ(client_buffer_.data()[50], 0);
  EXPECT_EQ(client_buffer_.data()[20778], 0);
}

TEST_P(OneSidedTest, WriteGathersInOrder) {
  ASSERT_EQ(0, Post(client_qp_, Write(1, 100)
                                    .Sge(client_buffer_.sge(9000, 11))
                                    .Sge(client_buffer_.sge(50, 0))
                                    .Sge(client_buffer_.sge(100, 4000))
                                    .Sge(client_buffer_.sge(20001, 777))));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(1, IBV_WC_RDMA_WRITE));
  EXPECT_EQ(server_buffer_.bytes(100, 11), client_buffer_.bytes(9000, 11));
  EXPECT_EQ(server_buffer_.bytes(111, 4000), client_buffer_.bytes(100, 4000));
  EXPECT_EQ(server_buffer_.bytes(4111, 777), client_buffer_.bytes(20001, 777));
}

// The piece need not lie in registered memory, and may change after the post.
TEST_P(OneSidedTest, WritesInlineData) {
  char stack[] = "inline";
  ASSERT_EQ(
      0, Post(client_qp_, Write(1, 33)
                              .Sge({.addr = reinterpret_cast<uintptr_t>(stack),
                                    .length = 6,
                                    .lkey = 0})
                              .Inline()));
  std::memset(stack, '!', 6);
  EXPECT_THAT(Await(client().send_cq()), Succeeded(1, IBV_WC_RDMA_WRITE));
  EXPECT_EQ(server_buffer_.bytes(33, 6), "inline");
  EXPECT_EQ(server_buffer_.data()[39], 0);
}

// "Valid only for Send and RDMA Write": refused, failed, or the flag ignored,
// but never a READ that says it was done and brought nothing.
TEST_P(OneSidedTest, AnInlineReadDoesNotPretend) {
  server_buffer_.Fill(8);
  WorkRequest read = Read(1, 0).Sge(client_buffer_.sge(0, 8)).Inline();
  if (Post(client_qp_, read) != 0) return;
  const ibv_wc wc = Await(client().send_cq());
  EXPECT_EQ(wc.wr_id, 1u);
  EXPECT_EQ(wc.status == IBV_WC_SUCCESS,
            client_buffer_.bytes(0, 8) == server_buffer_.bytes(0, 8));
}

// The peer's program need not do anything: its queues are not polled here.
TEST_P(OneSidedTest, NeedsNoHelpOfThePeer) {
  pump().Unwatch(server().send_cq());
  pump().Unwatch(server().recv_cq());
  pump().Unwatch(&server().manager());
  ASSERT_EQ(0, Post(client_qp_, Write(1, 10).Sge(client_buffer_.sge(0, 5000))));
  ASSERT_EQ(0,
            Post(client_qp_, Read(2, 10).Sge(client_buffer_.sge(30000, 5000))));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(1));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(2));
  EXPECT_EQ(client_buffer_.bytes(30000, 5000), client_buffer_.bytes(0, 5000));
  pump().Watch(server().send_cq());
  pump().Watch(server().recv_cq());
  pump().Watch(&server().manager());
}

// The receive's own buffers stay as they are: the immediate is all it gets. The
// length is that of the write.
TEST_P(OneSidedTest, WriteWithImmediateUsesUpAReceive) {
  PostServerReceives(1, 64);
  ASSERT_EQ(
      0, Post(client_qp_,
              Write(1, 1000).Sge(client_buffer_.sge(0, 3000)).Imm(htonl(77))));
  const ibv_wc wc = Await(server().recv_cq());
  EXPECT_THAT(wc, Succeeded(1000, IBV_WC_RECV_RDMA_WITH_IMM));
  EXPECT_EQ(wc.byte_len, 3000u);
  EXPECT_NE(wc.wc_flags & IBV_WC_WITH_IMM, 0u);
  EXPECT_EQ(wc.imm_data, htonl(77));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(1, IBV_WC_RDMA_WRITE));
  EXPECT_EQ(server_buffer_.bytes(1000, 3000), client_buffer_.bytes(0, 3000));
  EXPECT_EQ(server_buffer_.data()[0], 0);
}

TEST_P(OneSidedTest, WriteWithImmediateMayCarryNothingElse) {
  ASSERT_EQ(0, PostReceive(server_qp_, {.wr_id = 9}));
  ASSERT_EQ(0, Post(client_qp_, Write(1, 0).Imm(htonl(5))));
  const ibv_wc wc = Await(server().recv_cq());
  EXPECT_THAT(wc, Succeeded(9, IBV_WC_RECV_RDMA_WITH_IMM));
  EXPECT_EQ(wc.byte_len, 0u);
  EXPECT_EQ(wc.imm_data, htonl(5));
}

// Memory that peers may only read is readable, and a device may place it apart.
TEST_P(OneSidedTest, ReadsMemoryThatIsNotForWriting) {
  Region published =
      server().Allocate(10000, IBV_ACCESS_REMOTE_READ, MemoryUse::kLocal);
  ASSERT_FALSE(published.empty());
  published.Fill(15);
  ASSERT_EQ(0, Post(client_qp_, ReadWr(1, published.addr(), published.rkey())
                                    .Sge(client_buffer_.sge(0, 10000))));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(1));
  EXPECT_EQ(client_buffer_.bytes(0, 10000), published.bytes(0, 10000));
  // What the owner writes later is what a later READ brings.
  published.Fill(16);
  ASSERT_EQ(0, Post(client_qp_, ReadWr(2, published.addr(5), published.rkey())
                                    .Sge(client_buffer_.sge(0, 9000))));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(2));
  EXPECT_EQ(client_buffer_.bytes(0, 9000), published.bytes(5, 9000));
}

// Both keys of one piece of memory, each seen by the peer at once: memory that
// is registered after the connection was made is as good as memory from before.
TEST_P(OneSidedTest, ReachesMemoryRegisteredAfterConnecting) {
  std::vector<Region> later;
  for (size_t i = 0; i < 20; ++i) {
    later.push_back(server().Allocate(5000 + 4096 * i));
    ASSERT_FALSE(later.back().empty());
    later.back().Fill(100 + i);
    const Region& region = later.back();
    ASSERT_EQ(0, Post(client_qp_, ReadWr(1, region.addr(17), region.rkey())
                                      .Sge(client_buffer_.sge(0, 4000))));
    ASSERT_THAT(Await(client().send_cq()), Succeeded(1));
    ASSERT_EQ(client_buffer_.bytes(0, 4000), region.bytes(17, 4000));
  }
}

class LargeOneSidedTest : public ConnectedTest {};
CONFORMANCE_SUITE(LargeOneSidedTest);

// Beyond every quantum that a device may copy in, at odd places, in pieces.
TEST_P(LargeOneSidedTest, MovesMegabytesBothWays) {
  const size_t largest = TheProviderUnderTest().largest_message_bytes;
  Region near = client().Allocate(largest);
  Region far = server().Allocate(largest);
  ASSERT_FALSE(near.empty() || far.empty());
  near.Fill(21);
  for (size_t bytes : {(size_t{1} << 20) + 13, largest - 5}) {
    SCOPED_TRACE(bytes);
    const size_t part = bytes / 3;
    ASSERT_EQ(0, Post(client_qp_, WriteWr(1, far.addr(5), far.rkey())
                                      .Sge(near.sge(1, part))
                                      .Sge(near.sge(1 + part, bytes - part))));
    EXPECT_THAT(Await(client().send_cq()), Succeeded(1, IBV_WC_RDMA_WRITE));
    ASSERT_TRUE(far.bytes(5, bytes) == near.bytes(1, bytes));
    near.Clear();
    ASSERT_EQ(0, Post(client_qp_, ReadWr(2, far.addr(5), far.rkey())
                                      .Sge(near.sge(1, part))
                                      .Sge(near.sge(1 + part, bytes - part))));
    EXPECT_THAT(Await(client().send_cq()), Succeeded(2, IBV_WC_RDMA_READ));
    ASSERT_TRUE(near.bytes(1, bytes) == far.bytes(5, bytes));
    EXPECT_EQ(near.data()[0], 0);
  }
}

}  // namespace
}  // namespace rdma::conformance
