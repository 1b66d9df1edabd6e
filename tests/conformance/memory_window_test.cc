// Type 2 memory windows: a key for a part of a region, for one QP, until it is
// invalidated. Method: the server binds windows on its QP, the client uses
// their keys on the other end; each restriction is broken once.
// ibv_alloc_mw(3), ibv_post_send(3), ibv_bind_mw(3); IBTA 10.6.7.
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "tests/conformance/memory_window_fixture.h"

namespace rdma::conformance {
namespace {

class MemoryWindowTest : public MemoryWindowFixture {};
CONFORMANCE_SUITE(MemoryWindowTest);

TEST_P(MemoryWindowTest, OpensTheRangeItIsBoundTo) {
  Bind(DefaultRange());
  ExpectReadable(kStart, kLength);
  ExpectReadable(kStart + 1, 1);
  ExpectReadable(kStart + kLength - 1, 1);
  client_buffer_.Fill(44);
  ASSERT_EQ(0, Post(client_qp_, Write(1, kStart + 7, 100)));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(1, IBV_WC_RDMA_WRITE));
  EXPECT_EQ(region_.bytes(kStart + 7, 100), client_buffer_.bytes(0, 100));
}

// The use it is made for: the bind goes in the same list as the message that
// names the key, and is in force when the message arrives: "a send after a bind
// request on the same QP are always ordered".
TEST_P(MemoryWindowTest, IsBoundBeforeTheMessageBehindItArrives) {
  for (uint64_t round = 0; round < 50; ++round) {
    SCOPED_TRACE(round);
    ASSERT_EQ(0,
              PostReceive(client_qp_, {.wr_id = round,
                                       .sges = {client_buffer_.sge(8000, 4)}}));
    std::vector<WorkRequest> list = {
        BindWr(1, window_, key_, DefaultRange()).Unsignaled(),
        SendWr(2)
            .Sge({.addr = reinterpret_cast<uintptr_t>(&key_),
                  .length = sizeof(key_),
                  .lkey = 0})
            .Inline()};
    size_t posted = 0;
    ASSERT_EQ(0, PostList(server_qp_, absl::MakeSpan(list), &posted));
    NoteKey();
    ASSERT_THAT(Await(client().recv_cq()), Received(round, sizeof(key_)));
    ExpectReadable(kStart, 64);
    // And it dies by the peer's message that ends its use.
    ASSERT_EQ(0, PostReceive(server_qp_, {.wr_id = round}));
    ASSERT_EQ(0, Post(client_qp_, SendWithInvalidateWr(3, key_)));
    ASSERT_THAT(Await(server().recv_cq()), Received(round, 0));
    ASSERT_THAT(Await(server().send_cq()), Succeeded(2, IBV_WC_SEND));
    ASSERT_THAT(Await(client().send_cq()), Succeeded(3, IBV_WC_SEND));
    key_ = ibv_inc_rkey(key_);
  }
}

TEST_P(MemoryWindowTest, EndsWhereItWasBound) {
  if (!deviations().enforces_window_bounds) {
    GTEST_SKIP() << "this device holds windows to the bounds of their MR only";
  }
  Bind(DefaultRange());
  ExpectRefused(Read(0, kStart + kLength - 7, 8));
}

TEST_P(MemoryWindowTest, BeginsWhereItWasBound) {
  if (!deviations().enforces_window_bounds) {
    GTEST_SKIP() << "this device holds windows to the bounds of their MR only";
  }
  Bind(DefaultRange());
  ExpectRefused(Write(0, kStart - 1, 8));
}

TEST_P(MemoryWindowTest, ARangeThatWrapsAroundIsOutside) {
  Bind(DefaultRange());
  ExpectRefused(
      ReadWr(0, ~uint64_t{0} - 3, key_).Sge(client_buffer_.sge(0, 8)));
}

TEST_P(MemoryWindowTest, AReadOnlyWindowIsNotWritten) {
  Bind(Range(kStart, kLength, IBV_ACCESS_REMOTE_READ));
  ExpectReadable(kStart, 8);
  ExpectRefused(Write(0, kStart, 8));
}

TEST_P(MemoryWindowTest, AWriteOnlyWindowIsNotRead) {
  Bind(Range(kStart, kLength, IBV_ACCESS_REMOTE_WRITE));
  ASSERT_EQ(0, Post(client_qp_, Write(1, kStart, 8)));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(1));
  ExpectRefused(Read(0, kStart, 8));
}

TEST_P(MemoryWindowTest, AtomicsNeedTheirOwnRight) {
  if (server().device().attributes().atomic_cap == IBV_ATOMIC_NONE) {
    GTEST_SKIP() << "this device has no atomics";
  }
  Bind(DefaultRange());
  ExpectRefused(FetchAndAddWr(0, region_.addr(kStart), key_, 1)
                    .Sge(client_buffer_.sge(0, 8)));
}

TEST_P(MemoryWindowTest, GrantsAtomics) {
  if (server().device().attributes().atomic_cap == IBV_ATOMIC_NONE) {
    GTEST_SKIP() << "this device has no atomics";
  }
  region_.Clear();
  Bind(Range(kStart, kLength, IBV_ACCESS_REMOTE_ATOMIC));
  ASSERT_EQ(0, Post(client_qp_, FetchAndAddWr(1, region_.addr(kStart), key_, 5)
                                    .Sge(client_buffer_.sge(0, 8))));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(1));
  EXPECT_EQ(region_.data()[kStart], 5);
}

// A type 2B window belongs to the QP that bound it (IBTA 10.6.7.2.4).
TEST_P(MemoryWindowTest, IsOfNoUseOnAnotherQp) {
  Link other;
  ASSERT_TRUE(Connect({}, &other));
  Bind(DefaultRange());
  ASSERT_EQ(0, Post(other.client, Read(1, kStart, 8)));
  EXPECT_THAT(Await(client().send_cq()), Failed(1, IBV_WC_REM_ACCESS_ERR));
  EXPECT_EQ(StateOf(server().device(), other.server), IBV_QPS_ERR);
  // Its own QP is not concerned.
  ExpectReadable(kStart, 8);
}

TEST_P(MemoryWindowTest, AnUnboundWindowOpensNothing) {
  ExpectRefused(Read(0, kStart, 8));
}

TEST_P(MemoryWindowTest, TheKeyOfBeforeTheBindOpensNothing) {
  const uint32_t before = window_->rkey;
  Bind(DefaultRange());
  key_ = before;
  ExpectRefused(Read(0, kStart, 8));
}

TEST_P(MemoryWindowTest, LocalInvalidationEndsIt) {
  Bind(DefaultRange());
  ExpectReadable(kStart, 8);
  ASSERT_EQ(0, Post(server_qp_, LocalInvalidateWr(1, key_)));
  EXPECT_THAT(Await(server().send_cq()), Succeeded(1, IBV_WC_LOCAL_INV));
  ExpectRefused(Read(0, kStart, 8));
}

// "invalidated_rkey: Local RKey that was invalidated".
TEST_P(MemoryWindowTest, TheInvalidatingReceiveNamesTheKey) {
  Bind(DefaultRange());
  PostServerReceives(1, 64);
  ASSERT_EQ(0, Post(client_qp_, SendWithInvalidateWr(1, key_).Sge(
                                    client_buffer_.sge(0, 20))));
  const ibv_wc wc = Await(server().recv_cq());
  EXPECT_THAT(wc, Received(1000, 20));
  EXPECT_EQ(wc.invalidated_rkey, key_);
  if (deviations().flags_invalidation) {
    EXPECT_NE(wc.wc_flags & IBV_WC_WITH_INV, 0u);
    EXPECT_EQ(wc.wc_flags & IBV_WC_WITH_IMM, 0u);
  }
  EXPECT_THAT(Await(client().send_cq()), Succeeded(1, IBV_WC_SEND));
  EXPECT_EQ(server_buffer_.bytes(0, 20), client_buffer_.bytes(0, 20));
  ExpectRefused(Read(0, kStart, 8));
}

TEST_P(MemoryWindowTest, InvalidationOfAKeyThatIsNoneBreaksTheConnection) {
  PostServerReceives(1, 64);
  ASSERT_EQ(0, Post(client_qp_, SendWithInvalidateWr(1, key_ + 0x100)));
  EXPECT_THAT(Await(server().recv_cq()),
              Failed(1000, deviations().invalidate_wrong_key_responder));
  EXPECT_EQ(StateOf(server().device(), server_qp_), IBV_QPS_ERR);
}

TEST_P(MemoryWindowTest, LocalInvalidationOfAKeyThatIsNoneFails) {
  ASSERT_EQ(0, Post(server_qp_, LocalInvalidateWr(1, key_ + 0x100)));
  EXPECT_THAT(Await(server().send_cq()),
              Failed(1, deviations().local_invalidate_wrong_key));
}

// An invalidation is done only when nobody reads under the key any more: what
// the owner writes afterwards, no running READ may bring.
TEST_P(MemoryWindowTest, NoReadRunsOnPastTheInvalidation) {
  const size_t bytes =
      std::min<size_t>(TheProviderUnderTest().largest_message_bytes, 16 << 20);
  Region large =
      server().Allocate(bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
  Region copy = client().Allocate(bytes);
  ASSERT_FALSE(large.empty() || copy.empty());
  std::memset(large.data(), 1, bytes);
  Bind({.mr = large.mr(),
        .addr = large.addr(),
        .length = bytes,
        .mw_access_flags = IBV_ACCESS_REMOTE_READ});
  ASSERT_EQ(0, Post(client_qp_, ReadWr(1, large.addr(), key_).Sge(copy.sge())));
  pump().Turn();
  ASSERT_EQ(0, Post(server_qp_, LocalInvalidateWr(2, key_)));
  EXPECT_THAT(Await(server().send_cq()), Succeeded(2, IBV_WC_LOCAL_INV));
  std::memset(large.data(), 2, bytes);
  const ibv_wc wc = Await(client().send_cq());
  EXPECT_EQ(wc.wr_id, 1u);
  EXPECT_THAT(wc.status, testing::AnyOf(IBV_WC_SUCCESS, IBV_WC_REM_ACCESS_ERR));
  // Whether it came to its end or not, no byte of afterwards is among it.
  EXPECT_EQ(std::memchr(copy.data(), 2, bytes), nullptr);
}

}  // namespace
}  // namespace rdma::conformance
