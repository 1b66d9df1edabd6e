// Type 1 memory windows: bound by ibv_bind_mw, which chooses the key, and good
// for every QP of the PD. Method: bind, use, bind elsewhere, bind to nothing.
// ibv_bind_mw(3), ibv_alloc_mw(3).
#include <cerrno>
#include <cstring>

#include "tests/conformance/fixture.h"

namespace rdma::conformance {
namespace {

class TypeOneWindowTest : public ConnectedTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ConnectedTest::SetUp());
    region_ =
        server().Allocate(8192, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    ASSERT_FALSE(region_.empty());
    region_.Fill(3);
    errno = 0;
    window_ = ibv_alloc_mw(server().pd(), IBV_MW_TYPE_1);
    if (window_ == nullptr) {
      EXPECT_THAT(errno, testing::AnyOf(EOPNOTSUPP, EINVAL, ENOSYS));
      GTEST_SKIP() << "this device has no type 1 memory windows";
    }
  }
  void TearDown() override {
    if (window_ != nullptr) {
      EXPECT_EQ(0, ibv_dealloc_mw(window_));
    }
    region_ = Region();
    ConnectedTest::TearDown();
  }

  // Binds to `length` bytes at `start`; to nothing with a length of 0.
  void Bind(size_t start, size_t length) {
    ibv_mw_bind bind = {};
    bind.wr_id = 70;
    bind.send_flags = IBV_SEND_SIGNALED;
    bind.bind_info = {.mr = region_.mr(),
                      .addr = region_.addr(start),
                      .length = length,
                      .mw_access_flags = IBV_ACCESS_REMOTE_READ};
    ASSERT_EQ(0, ibv_bind_mw(server_qp_, window_, &bind));
    ASSERT_THAT(Await(server().send_cq()), Succeeded(70, IBV_WC_BIND_MW));
  }

  WorkRequest Read(uint32_t key, size_t start) {
    return ReadWr(1, region_.addr(start), key).Sge(client_buffer_.sge(0, 50));
  }

  Region region_;
  ibv_mw* window_ = nullptr;
};
CONFORMANCE_SUITE(TypeOneWindowTest);

TEST_P(TypeOneWindowTest, OpensItsRangeToEveryQp) {
  Link other;
  ASSERT_TRUE(Connect({}, &other));
  Bind(1000, 100);
  for (ibv_qp* qp : {client_qp_, other.client}) {
    ASSERT_EQ(0, Post(qp, Read(window_->rkey, 1020)));
    EXPECT_THAT(Await(client().send_cq()), Succeeded(1, IBV_WC_RDMA_READ));
    EXPECT_EQ(client_buffer_.bytes(0, 50), region_.bytes(1020, 50));
  }
}

TEST_P(TypeOneWindowTest, BoundElsewhereTheOldKeyIsDead) {
  Bind(1000, 100);
  const uint32_t old_key = window_->rkey;
  Bind(2000, 100);
  EXPECT_NE(window_->rkey, old_key);
  ASSERT_EQ(0, Post(client_qp_, Read(window_->rkey, 2000)));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(1));
  ASSERT_EQ(0, Post(client_qp_, Read(old_key, 1000)));
  EXPECT_THAT(Await(client().send_cq()), Failed(1, IBV_WC_REM_ACCESS_ERR));
}

// "... invalidated by: ibv_bind_mw verb with zero length for type 1".
TEST_P(TypeOneWindowTest, BoundToNothingItIsClosed) {
  Bind(1000, 100);
  const uint32_t old_key = window_->rkey;
  Bind(0, 0);
  ASSERT_EQ(0, Post(client_qp_, Read(old_key, 1000)));
  EXPECT_THAT(Await(client().send_cq()), Failed(1, IBV_WC_REM_ACCESS_ERR));
}

}  // namespace
}  // namespace rdma::conformance
