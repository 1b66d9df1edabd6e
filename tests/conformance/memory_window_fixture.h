// The fixture of the tests of memory windows: a region that only windows open,
// and one window of the server's, not bound yet.
//
//   Bind(DefaultRange());
//   ExpectReadable(kStart, 8);
//
// Thread rule: one thread.
#ifndef VERBENA_TESTS_CONFORMANCE_MEMORY_WINDOW_FIXTURE_H_
#define VERBENA_TESTS_CONFORMANCE_MEMORY_WINDOW_FIXTURE_H_

#include <cerrno>
#include <cstring>
#include <string>

#include "tests/conformance/fixture.h"

namespace rdma::conformance {

class MemoryWindowFixture : public ConnectedTest {
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

}  // namespace rdma::conformance

#endif  // VERBENA_TESTS_CONFORMANCE_MEMORY_WINDOW_FIXTURE_H_
