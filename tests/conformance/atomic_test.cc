// Atomics: COMPARE_AND_SWAP and FETCH_AND_ADD on 8 bytes of the peer's memory,
// the old value into the requester's. Method: known values, every outcome, and
// many at once whose sum is known. ibv_post_send(3); IBTA 9.4.5.
#include <cerrno>
#include <cstring>
#include <vector>

#include "tests/conformance/fixture.h"

namespace rdma::conformance {
namespace {

class AtomicTest : public ConnectedTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ConnectedTest::SetUp());
    if (client().device().attributes().atomic_cap == IBV_ATOMIC_NONE) {
      GTEST_SKIP() << "this device has no atomics";
    }
  }

  static uint64_t Load(const Region& region, size_t offset) {
    uint64_t value;
    std::memcpy(&value, region.data() + offset, sizeof(value));
    return value;
  }
  static void Store(Region& region, size_t offset, uint64_t value) {
    std::memcpy(region.data() + offset, &value, sizeof(value));
  }

  WorkRequest Add(uint64_t wr_id, size_t offset, uint64_t value) {
    return FetchAndAddWr(wr_id, server_buffer_.addr(offset),
                         server_buffer_.rkey(), value)
        .Sge(client_buffer_.sge(0, 8));
  }
  WorkRequest Swap(uint64_t wr_id, size_t offset, uint64_t compare,
                   uint64_t swap) {
    return CompareAndSwapWr(wr_id, server_buffer_.addr(offset),
                            server_buffer_.rkey(), compare, swap)
        .Sge(client_buffer_.sge(0, 8));
  }
};
CONFORMANCE_SUITE(AtomicTest);

TEST_P(AtomicTest, FetchAndAddReturnsTheOldValue) {
  Store(server_buffer_, 64, 40);
  ASSERT_EQ(0, Post(client_qp_, Add(1, 64, 2)));
  const ibv_wc wc = Await(client().send_cq());
  EXPECT_THAT(wc, Succeeded(1, IBV_WC_FETCH_ADD));
  EXPECT_EQ(wc.byte_len, 8u);
  EXPECT_EQ(Load(client_buffer_, 0), 40u);
  EXPECT_EQ(Load(server_buffer_, 64), 42u);
  EXPECT_EQ(Load(server_buffer_, 56), 0u);
  EXPECT_EQ(Load(server_buffer_, 72), 0u);
}

TEST_P(AtomicTest, FetchAndAddWraps) {
  Store(server_buffer_, 0, ~uint64_t{0});
  ASSERT_EQ(0, Post(client_qp_, Add(1, 0, 3)));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(1));
  EXPECT_EQ(Load(server_buffer_, 0), 2u);
}

TEST_P(AtomicTest, CompareAndSwapSwapsWhatIsEqual) {
  Store(server_buffer_, 8, 7);
  ASSERT_EQ(0, Post(client_qp_, Swap(1, 8, 7, 1234567890123)));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(1, IBV_WC_COMP_SWAP));
  EXPECT_EQ(Load(client_buffer_, 0), 7u);
  EXPECT_EQ(Load(server_buffer_, 8), 1234567890123u);
}

TEST_P(AtomicTest, CompareAndSwapLeavesWhatDiffers) {
  Store(server_buffer_, 8, 7);
  ASSERT_EQ(0, Post(client_qp_, Swap(1, 8, 6, 1)));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(1, IBV_WC_COMP_SWAP));
  EXPECT_EQ(Load(client_buffer_, 0), 7u);
  EXPECT_EQ(Load(server_buffer_, 8), 7u);
}

// The old value may go anywhere that is 8 bytes long, whatever its alignment.
TEST_P(AtomicTest, ScattersTheOldValue) {
  Store(server_buffer_, 16, 0x0807060504030201);
  ASSERT_EQ(0, Post(client_qp_, FetchAndAddWr(1, server_buffer_.addr(16),
                                              server_buffer_.rkey(), 1)
                                    .Sge(client_buffer_.sge(101, 8))));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(1));
  EXPECT_EQ(client_buffer_.bytes(101, 8), "\1\2\3\4\5\6\7\10");
}

// IBTA 9.4.5: the address must be a multiple of 8. Who finds out is free: the
// requester when it is posted, or the responder.
TEST_P(AtomicTest, RefusesAnUnalignedAddress) {
  const int error = Post(client_qp_, Add(1, 4, 1));
  if (error != 0) {
    EXPECT_EQ(error, EINVAL);
  } else {
    EXPECT_THAT(Await(client().send_cq()),
                Failed(1, deviations().atomic_unaligned));
  }
  EXPECT_EQ(Load(server_buffer_, 0), 0u);
  EXPECT_EQ(Load(server_buffer_, 4), 0u);
}

TEST_P(AtomicTest, NeedsTheRight) {
  Region plain =
      server().Allocate(4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                  IBV_ACCESS_REMOTE_READ);
  ASSERT_FALSE(plain.empty());
  ASSERT_EQ(0, Post(client_qp_, FetchAndAddWr(1, plain.addr(), plain.rkey(), 1)
                                    .Sge(client_buffer_.sge(0, 8))));
  EXPECT_THAT(Await(client().send_cq()), Failed(1, IBV_WC_REM_ACCESS_ERR));
  EXPECT_EQ(Load(plain, 0), 0u);
}

TEST_P(AtomicTest, KeepsOrderOnOneQueue) {
  for (uint64_t i = 0; i < 30; ++i) {
    ASSERT_EQ(0, Post(client_qp_, Swap(i, 0, i, i + 1)));
  }
  for (uint64_t i = 0; i < 30; ++i) {
    ASSERT_THAT(Await(client().send_cq()), Succeeded(i, IBV_WC_COMP_SWAP));
  }
  EXPECT_EQ(Load(server_buffer_, 0), 30u);
}

// Atomic with respect to each other across QPs of one device.
TEST_P(AtomicTest, SeveralQueuesLoseNoAddition) {
  constexpr int kQueues = 4;
  constexpr uint64_t kAdditions = 50;
  std::vector<Link> links(kQueues);
  for (Link& link : links) ASSERT_TRUE(Connect({}, &link));
  for (uint64_t i = 0; i < kAdditions; ++i) {
    for (Link& link : links) ASSERT_EQ(0, Post(link.client, Add(i, 0, 1)));
  }
  for (const ibv_wc& wc : Await(client().send_cq(), kQueues * kAdditions)) {
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
  }
  EXPECT_EQ(Load(server_buffer_, 0), kQueues * kAdditions);
}

}  // namespace
}  // namespace rdma::conformance
