// Type 2 memory windows: a key for a part of a region, for one QP, until it is
// invalidated. Method: the server binds windows on its QP, the client uses
// their keys on the other end; each restriction is broken once.
// ibv_alloc_mw(3), ibv_post_send(3), ibv_bind_mw(3); IBTA 10.6.7.
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "tests/conformance/fixture.h"

namespace rdma::conformance {
namespace {

class MemoryWindowTest : public ConnectedTest {
 protected:
  static constexpr size_t kRegionBytes = 4 * 4096;
  static constexpr size_t kStart = 1000;
  static constexpr size_t kLength = 3000;

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ConnectedTest::SetUp());
    const unsigned int flags = server().device().attributes().device_cap_flags;
    if ((flags & (IBV_DEVICE_MEM_WINDOW_TYPE_2A |
                  IBV_DEVICE_MEM_WINDOW_TYPE_2B)) == 0) {
      GTEST_SKIP() << "this device has no type 2 memory windows";
    }
    // Peers reach this region by its windows alone.
    region_ = server().Allocate(kRegionBytes,
                                IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    ASSERT_FALSE(region_.empty());
    region_.Fill(9);
    window_ = ibv_alloc_mw(server().pd(), IBV_MW_TYPE_2);
    ASSERT_NE(window_, nullptr) << std::strerror(errno);
    key_ = ibv_inc_rkey(window_->rkey);
  }

  void TearDown() override {
    if (window_ != nullptr) {
      EXPECT_EQ(0, ibv_dealloc_mw(window_));
    }
    region_ = Region();
    ConnectedTest::TearDown();
  }

  ibv_mw_bind_info Range(size_t start, size_t length, unsigned int access) {
    return {.mr = region_.mr(),
            .addr = region_.addr(start),
            .length = length,
            .mw_access_flags = access};
  }
  ibv_mw_bind_info DefaultRange() {
    return Range(kStart, kLength,
                 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
  }

  // Binds the window to `info` with `key_` and waits until that is done.
  void Bind(const ibv_mw_bind_info& info) {
    ASSERT_EQ(0, Post(server_qp_, BindWr(70, window_, key_, info)));
    ASSERT_THAT(Await(server().send_cq()), Succeeded(70, IBV_WC_BIND_MW));
    NoteKey();
  }
  // Some drivers find the window of the next bind by the key in its ibv_mw,
  // which posting a type 2 bind leaves alone: that is for the user to do, as
  // ibv_bind_mw does it for type 1.
  void NoteKey() { window_->rkey = key_; }

  // The client's access to `length` bytes at `start` of the region.
  WorkRequest Read(uint64_t wr_id, size_t start, size_t length) {
    return ReadWr(wr_id, region_.addr(start), key_)
        .Sge(client_buffer_.sge(0, length));
  }
  WorkRequest Write(uint64_t wr_id, size_t start, size_t length) {
    return WriteWr(wr_id, region_.addr(start), key_)
        .Sge(client_buffer_.sge(0, length));
  }
  void ExpectReadable(size_t start, size_t length) {
    ASSERT_EQ(0, Post(client_qp_, Read(80, start, length)));
    ASSERT_THAT(Await(client().send_cq()), Succeeded(80, IBV_WC_RDMA_READ));
    EXPECT_EQ(client_buffer_.bytes(0, length), region_.bytes(start, length));
  }
  void ExpectRefused(WorkRequest request) {
    const std::string before(region_.bytes(0, kRegionBytes));
    request.wr()->wr_id = 81;
    ASSERT_EQ(0, Post(client_qp_, request));
    EXPECT_THAT(Await(client().send_cq()), Failed(81, IBV_WC_REM_ACCESS_ERR));
    EXPECT_TRUE(region_.bytes(0, kRegionBytes) == before);
    EXPECT_EQ(StateOf(server().device(), server_qp_), IBV_QPS_ERR);
  }
  void ExpectBindFails(const ibv_mw_bind_info& info) {
    ASSERT_EQ(0, Post(server_qp_, BindWr(71, window_, key_, info)));
    EXPECT_THAT(Await(server().send_cq()), Failed(71, IBV_WC_MW_BIND_ERR));
    EXPECT_EQ(StateOf(server().device(), server_qp_), IBV_QPS_ERR);
  }

  Region region_;
  ibv_mw* window_ = nullptr;
  uint32_t key_ = 0;
};
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

// "Type 2: a bound window must be invalidated before it is bound again" (IBTA
// 10.6.7.2.2).
TEST_P(MemoryWindowTest, RefusesASecondBind) {
  Bind(DefaultRange());
  key_ = ibv_inc_rkey(key_);
  ExpectBindFails(DefaultRange());
}

TEST_P(MemoryWindowTest, MayBeBoundAgainOnceInvalidated) {
  for (size_t round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const size_t start = 10 * round;
    Bind(Range(start, 100, IBV_ACCESS_REMOTE_READ));
    ExpectReadable(start, 100);
    ASSERT_EQ(0, Post(server_qp_, LocalInvalidateWr(1, key_)));
    ASSERT_THAT(Await(server().send_cq()), Succeeded(1, IBV_WC_LOCAL_INV));
    key_ = ibv_inc_rkey(key_);
  }
}

TEST_P(MemoryWindowTest, TheKeyOfAnEarlierBindStaysDead) {
  Bind(DefaultRange());
  const uint32_t old_key = key_;
  ASSERT_EQ(0, Post(server_qp_, LocalInvalidateWr(1, key_)));
  EXPECT_THAT(Await(server().send_cq()), Succeeded(1));
  key_ = ibv_inc_rkey(key_);
  Bind(DefaultRange());
  ExpectReadable(kStart, 8);
  ExpectRefused(
      ReadWr(0, region_.addr(kStart), old_key).Sge(client_buffer_.sge(0, 8)));
}

TEST_P(MemoryWindowTest, RefusesABindBeyondTheRegion) {
  ExpectBindFails(Range(kRegionBytes - 99, 100, IBV_ACCESS_REMOTE_READ));
}

TEST_P(MemoryWindowTest, RefusesABindBeforeTheRegion) {
  ibv_mw_bind_info info = Range(0, 100, IBV_ACCESS_REMOTE_READ);
  info.addr -= 1;
  ExpectBindFails(info);
}

TEST_P(MemoryWindowTest, RefusesABindToARegionThatAllowsNone) {
  ibv_mw_bind_info info = {.mr = server_buffer_.mr(),
                           .addr = server_buffer_.addr(),
                           .length = 100,
                           .mw_access_flags = IBV_ACCESS_REMOTE_READ};
  ExpectBindFails(info);
}

// "IBV_ACCESS_REMOTE_WRITE ... Requires local write access to the MR."
TEST_P(MemoryWindowTest, RefusesAWritableBindToAReadOnlyRegion) {
  Region read_only = server().Allocate(4096, IBV_ACCESS_MW_BIND);
  ASSERT_FALSE(read_only.empty());
  ExpectBindFails({.mr = read_only.mr(),
                   .addr = read_only.addr(),
                   .length = 100,
                   .mw_access_flags = IBV_ACCESS_REMOTE_WRITE});
}

// The key of a window is its index and a byte of the user's choice.
TEST_P(MemoryWindowTest, RefusesAKeyOfAnotherIndex) {
  if (!deviations().checks_window_key_index) {
    GTEST_SKIP() << "this device looks at the last byte of the new key only";
  }
  key_ += 0x100;
  if (Post(server_qp_, BindWr(71, window_, key_, DefaultRange())) != 0) return;
  EXPECT_THAT(Await(server().send_cq()), Failed(71, IBV_WC_MW_BIND_ERR));
}

// "ibv_dereg_mr() fails if any memory window is still bound to this MR."
TEST_P(MemoryWindowTest, ARegionWithAWindowCannotGo) {
  Bind(DefaultRange());
  EXPECT_THAT(region_.Deregister(), testing::AnyOf(EBUSY, EINVAL));
  ExpectReadable(kStart, 8);
  ASSERT_EQ(0, Post(server_qp_, LocalInvalidateWr(1, key_)));
  EXPECT_THAT(Await(server().send_cq()), Succeeded(1));
  EXPECT_EQ(0, region_.Deregister());
}

// "ibv_dealloc_mw() Unbinds in case was previously bound".
TEST_P(MemoryWindowTest, DeallocationUnbinds) {
  Bind(DefaultRange());
  ExpectReadable(kStart, 8);
  ASSERT_EQ(0, ibv_dealloc_mw(window_));
  window_ = nullptr;
  ExpectRefused(Read(0, kStart, 8));
  EXPECT_EQ(0, region_.Deregister());
}

// A window's QP may die first; the window is still there to be deallocated.
TEST_P(MemoryWindowTest, OutlivesItsQp) {
  Bind(DefaultRange());
  Disconnect(&link_);
  client_qp_ = server_qp_ = nullptr;
  ASSERT_EQ(0, ibv_dealloc_mw(window_));
  window_ = nullptr;
  EXPECT_EQ(0, region_.Deregister());
}

// As many windows at once as a busy server has, each with bounds of its own.
TEST_P(MemoryWindowTest, ManyAtOnceKeepApart) {
  constexpr size_t kCount = 50;
  std::vector<ibv_mw*> windows;
  std::vector<uint32_t> keys;
  for (size_t i = 0; i < kCount; ++i) {
    windows.push_back(ibv_alloc_mw(server().pd(), IBV_MW_TYPE_2));
    ASSERT_NE(windows.back(), nullptr) << std::strerror(errno);
    keys.push_back(ibv_inc_rkey(windows.back()->rkey));
    ASSERT_EQ(0, Post(server_qp_,
                      BindWr(i, windows[i], keys[i],
                             Range(100 * i, 100, IBV_ACCESS_REMOTE_READ))));
  }
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_THAT(Await(server().send_cq()), Succeeded(i, IBV_WC_BIND_MW));
    ASSERT_EQ(0, Post(client_qp_, ReadWr(i, region_.addr(100 * i), keys[i])
                                      .Sge(client_buffer_.sge(100 * i, 100))));
  }
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_THAT(Await(client().send_cq()), Succeeded(i));
    EXPECT_EQ(client_buffer_.bytes(100 * i, 100), region_.bytes(100 * i, 100));
  }
  for (ibv_mw* window : windows) EXPECT_EQ(0, ibv_dealloc_mw(window));
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
