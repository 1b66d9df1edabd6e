// Binding type 2 memory windows: what may be bound to what, again, and how a
// bind ends. Method: as memory_window_test.cc; each rule of binding is broken
// once. ibv_alloc_mw(3), ibv_post_send(3), ibv_bind_mw(3), ibv_dereg_mr(3);
// IBTA 10.6.7.
#include <cerrno>
#include <cstring>
#include <vector>

#include "tests/conformance/memory_window_fixture.h"

namespace rdma::conformance {
namespace {

class MemoryWindowBindTest : public MemoryWindowFixture {};
CONFORMANCE_SUITE(MemoryWindowBindTest);

// "Type 2: a bound window must be invalidated before it is bound again" (IBTA
// 10.6.7.2.2).
TEST_P(MemoryWindowBindTest, RefusesASecondBind) {
  Bind(DefaultRange());
  key_ = ibv_inc_rkey(key_);
  ExpectBindFails(DefaultRange());
}

TEST_P(MemoryWindowBindTest, MayBeBoundAgainOnceInvalidated) {
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

TEST_P(MemoryWindowBindTest, TheKeyOfAnEarlierBindStaysDead) {
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

TEST_P(MemoryWindowBindTest, RefusesABindBeyondTheRegion) {
  ExpectBindFails(Range(kRegionBytes - 99, 100, IBV_ACCESS_REMOTE_READ));
}

TEST_P(MemoryWindowBindTest, RefusesABindBeforeTheRegion) {
  ibv_mw_bind_info info = Range(0, 100, IBV_ACCESS_REMOTE_READ);
  info.addr -= 1;
  ExpectBindFails(info);
}

TEST_P(MemoryWindowBindTest, RefusesABindToARegionThatAllowsNone) {
  ibv_mw_bind_info info = {.mr = server_buffer_.mr(),
                           .addr = server_buffer_.addr(),
                           .length = 100,
                           .mw_access_flags = IBV_ACCESS_REMOTE_READ};
  ExpectBindFails(info);
}

// "IBV_ACCESS_REMOTE_WRITE ... Requires local write access to the MR."
TEST_P(MemoryWindowBindTest, RefusesAWritableBindToAReadOnlyRegion) {
  Region read_only = server().Allocate(4096, IBV_ACCESS_MW_BIND);
  ASSERT_FALSE(read_only.empty());
  ExpectBindFails({.mr = read_only.mr(),
                   .addr = read_only.addr(),
                   .length = 100,
                   .mw_access_flags = IBV_ACCESS_REMOTE_WRITE});
}

TEST_P(MemoryWindowBindTest, RefusesABindToARegionOfAnotherDomain) {
  if (!deviations().checks_window_domain) {
    GTEST_SKIP() << "this device binds windows to regions of any PD";
  }
  ibv_pd* other = server().device().AllocPd();
  ASSERT_NE(other, nullptr);
  {
    Region foreign(&server().device(), other, 4096,
                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND,
                   MemoryUse::kRemoteWritable);
    ASSERT_FALSE(foreign.empty());
    ExpectBindFails({.mr = foreign.mr(),
                     .addr = foreign.addr(),
                     .length = 100,
                     .mw_access_flags = IBV_ACCESS_REMOTE_READ});
  }
  EXPECT_EQ(0, server().device().DeallocPd(other));
}

// What a failed bind leaves is a window that opens nothing.
TEST_P(MemoryWindowBindTest, AFailedBindOpensNothing) {
  Link other;
  ASSERT_TRUE(Connect({}, &other));
  ExpectBindFails(Range(kRegionBytes - 99, 100, IBV_ACCESS_REMOTE_READ));
  ASSERT_EQ(0,
            Post(other.client, ReadWr(1, region_.addr(kRegionBytes - 99), key_)
                                   .Sge(client_buffer_.sge(0, 8))));
  EXPECT_THAT(Await(client().send_cq()), Failed(1, IBV_WC_REM_ACCESS_ERR));
}

// A bind in a list fails where it stands: what is before it is done, what is
// behind it is flushed, and the message that names the key never arrives.
TEST_P(MemoryWindowBindTest, AFailedBindStopsTheMessageBehindIt) {
  for (uint64_t id = 0; id < 2; ++id) {
    ASSERT_EQ(0, PostReceive(client_qp_, {.wr_id = id}));
  }
  std::vector<WorkRequest> list = {
      SendWr(1),
      BindWr(2, window_, key_, Range(kRegionBytes, 8, 0)).Unsignaled(),
      SendWr(3)};
  size_t posted = 0;
  ASSERT_EQ(0, PostList(server_qp_, absl::MakeSpan(list), &posted));
  EXPECT_THAT(Await(server().send_cq()), Succeeded(1));
  EXPECT_THAT(Await(server().send_cq()), Failed(2, IBV_WC_MW_BIND_ERR));
  EXPECT_THAT(Await(server().send_cq()), Flushed(3));
  EXPECT_THAT(Await(client().recv_cq()), Received(0, 0));
  ExpectSilence(client().recv_cq());
}

// The key of a window is its index and a byte of the user's choice.
TEST_P(MemoryWindowBindTest, RefusesAKeyOfAnotherIndex) {
  if (!deviations().checks_window_key_index) {
    GTEST_SKIP() << "this device looks at the last byte of the new key only";
  }
  key_ += 0x100;
  if (Post(server_qp_, BindWr(71, window_, key_, DefaultRange())) != 0) return;
  EXPECT_THAT(Await(server().send_cq()), Failed(71, IBV_WC_MW_BIND_ERR));
}

// "ibv_dereg_mr() fails if any memory window is still bound to this MR."
TEST_P(MemoryWindowBindTest, ARegionWithAWindowCannotGo) {
  Bind(DefaultRange());
  EXPECT_THAT(region_.Deregister(), testing::AnyOf(EBUSY, EINVAL));
  ExpectReadable(kStart, 8);
  ASSERT_EQ(0, Post(server_qp_, LocalInvalidateWr(1, key_)));
  EXPECT_THAT(Await(server().send_cq()), Succeeded(1));
  EXPECT_EQ(0, region_.Deregister());
}

// "ibv_dealloc_mw() Unbinds in case was previously bound".
TEST_P(MemoryWindowBindTest, DeallocationUnbinds) {
  Bind(DefaultRange());
  ExpectReadable(kStart, 8);
  ASSERT_EQ(0, ibv_dealloc_mw(window_));
  window_ = nullptr;
  ExpectRefused(Read(0, kStart, 8));
  EXPECT_EQ(0, region_.Deregister());
}

// A window's QP may die first; the window is still there to be deallocated.
// Nor does its last key open whatever is made next in its place.
TEST_P(MemoryWindowBindTest, TheKeyOfAFreedWindowStaysDead) {
  for (int binds = 1; binds <= 3; ++binds) {
    ASSERT_NO_FATAL_FAILURE(Bind(DefaultRange()));
    if (binds == 3) break;
    ASSERT_EQ(0, Post(server_qp_, LocalInvalidateWr(60, key_)));
    ASSERT_THAT(Await(server().send_cq()), Succeeded(60, IBV_WC_LOCAL_INV));
    key_ = ibv_inc_rkey(key_);
  }
  ASSERT_EQ(0, ibv_dealloc_mw(window_));
  window_ = nullptr;
  ibv_mr* next = server().device().RegMr(server().pd(), region_.data(),
                                         kRegionBytes, kAllAccess);
  ASSERT_NE(next, nullptr);
  EXPECT_NE(next->rkey, key_);
  ExpectRefused(Write(0, kStart, 8));
  EXPECT_EQ(0, server().device().DeregMr(next));
}

TEST_P(MemoryWindowBindTest, OutlivesItsQp) {
  if (!deviations().destroys_qps_with_windows) {
    GTEST_SKIP() << "the device waits for the windows of a dying QP";
  }
  Bind(DefaultRange());
  Disconnect(&link_);
  client_qp_ = server_qp_ = nullptr;
  ASSERT_EQ(0, ibv_dealloc_mw(window_));
  window_ = nullptr;
  EXPECT_EQ(0, region_.Deregister());
}

// As many windows at once as a busy server has, each with bounds of its own.
TEST_P(MemoryWindowBindTest, ManyAtOnceKeepApart) {
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

}  // namespace
}  // namespace rdma::conformance
