// Goal: a peer that says it writes, and never ends, delays nothing but its own
// end, and that not for long; one that does write is waited for before its
// memory changes hands. Method: a peer that speaks the protocol by hand and
// leaves a key in the word that says what it writes under.
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include "gtest/gtest.h"
#include "tests/software/endpoint.h"
#include "tests/software/hostile_client.h"

namespace rdma::soft {
namespace {

// How long the device waits for a writer (MemoryRegistry::kRevokeLimitNs).
constexpr auto kLimit = std::chrono::milliseconds(200);

class HostileWriterTest : public testing::Test {
 protected:
  void SetUp() override {
    address_ = victim_.Listen();
    ASSERT_NO_FATAL_FAILURE(ConnectHostile());
  }

  void ConnectHostile() {
    hostile_ = std::make_unique<HostileClient>(address_);
    ASSERT_EQ(hostile_->SendHello(hostile_->GoodSetup()), SendResult::kSent);
    qp_ = victim_.Accept();
    ASSERT_NE(qp_, nullptr);
    const auto answer = hostile_->AwaitAnswer([] {});
    ASSERT_NE(answer, nullptr);
  }

  // Says that it writes under this key, as a writer does.
  void ClaimToWrite(uint32_t key) {
    hostile_->control().writing_key.store(key, std::memory_order_seq_cst);
  }

  int MoveToError() {
    ibv_qp_attr attributes = {};
    attributes.qp_state = IBV_QPS_ERR;
    return victim_.device().ModifyQp(qp_, &attributes, IBV_QP_STATE);
  }

  // Binds a window to the whole buffer, and returns its key.
  uint32_t Bind(unsigned int access) {
    region_ =
        victim_.device().RegMr(victim_.pd(), victim_.buffer(), 4096,
                               IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    EXPECT_NE(region_, nullptr);
    window_ = ibv_alloc_mw(victim_.pd(), IBV_MW_TYPE_2);
    EXPECT_NE(window_, nullptr);
    ibv_send_wr wr = {};
    wr.opcode = IBV_WR_BIND_MW;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.bind_mw.mw = window_;
    wr.bind_mw.rkey = ibv_inc_rkey(window_->rkey);
    wr.bind_mw.bind_info = {.mr = region_,
                            .addr = reinterpret_cast<uint64_t>(region_->addr),
                            .length = 4096,
                            .mw_access_flags = access};
    ibv_send_wr* bad;
    EXPECT_EQ(ibv_post_send(qp_, &wr, &bad), 0);
    EXPECT_EQ(victim_.AwaitCompletion()->status, IBV_WC_SUCCESS);
    return wr.bind_mw.rkey;
  }

  void Invalidate(uint32_t key) {
    ibv_send_wr wr = {};
    wr.opcode = IBV_WR_LOCAL_INV;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.invalidate_rkey = key;
    ibv_send_wr* bad;
    ASSERT_EQ(ibv_post_send(qp_, &wr, &bad), 0);
  }

  void FreeWindow() {
    EXPECT_EQ(ibv_dealloc_mw(window_), 0);
    EXPECT_EQ(victim_.device().DeregMr(region_), 0);
  }

  Endpoint victim_;
  SocketAddress address_;
  std::unique_ptr<HostileClient> hostile_;
  ibv_qp* qp_ = nullptr;
  ibv_mr* region_ = nullptr;
  ibv_mw* window_ = nullptr;
};

TEST_F(HostileWriterTest, AKeyThatOnlyReadsIsInvalidatedAtOnce) {
  const uint32_t key = Bind(IBV_ACCESS_REMOTE_READ);
  ClaimToWrite(key);
  Invalidate(key);
  EXPECT_EQ(victim_.AwaitCompletion()->status, IBV_WC_SUCCESS);
  FreeWindow();
}

TEST_F(HostileWriterTest, AWriterThatNeverEndsLosesItsConnection) {
  const uint32_t key = Bind(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
  ClaimToWrite(key);
  Invalidate(key);
  EXPECT_EQ(victim_.AwaitCompletion()->status, IBV_WC_MW_BIND_ERR);
  EXPECT_EQ(qp_->state, IBV_QPS_ERR);
  hostile_->HangUp();
  FreeWindow();
}

TEST_F(HostileWriterTest, AWriterThatEndsIsWaitedFor) {
  const uint32_t key = Bind(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
  ClaimToWrite(key);
  const auto start = std::chrono::steady_clock::now();
  Invalidate(key);
  ibv_wc completion;
  const int polled = ibv_poll_cq(victim_.cq(), 1, &completion);
  // Who is kept from running for longer than the limit is not waited for.
  if (std::chrono::steady_clock::now() - start >= kLimit) {
    hostile_->HangUp();
    if (polled == 0) {
      EXPECT_TRUE(victim_.AwaitCompletion().has_value());
    }
    FreeWindow();
    GTEST_SKIP() << "the device was not polled in time";
  }
  EXPECT_EQ(polled, 0);
  ClaimToWrite(0);
  EXPECT_EQ(victim_.AwaitCompletion()->status, IBV_WC_SUCCESS);
  FreeWindow();
}

// The QP ends once the write is over: what it was let in to is the owner's
// again.
TEST_F(HostileWriterTest, TheEndOfAQpWaitsForItsPeersWrite) {
  ClaimToWrite(victim_.mr()->rkey);
  std::atomic<bool> ended_writing = false;
  std::atomic<bool> begun = false;
  bool waited = false;
  const auto start = std::chrono::steady_clock::now();
  std::thread owner([&] {
    begun = true;
    EXPECT_EQ(MoveToError(), 0);
    // Who is kept from running for longer than the limit is not waited for.
    waited =
        ended_writing || std::chrono::steady_clock::now() - start >= kLimit;
  });
  while (!begun || std::chrono::steady_clock::now() - start < kLimit / 20) {
    std::this_thread::yield();
  }
  ended_writing = true;
  ClaimToWrite(0);
  owner.join();
  EXPECT_TRUE(waited);
}

TEST_F(HostileWriterTest, TheEndOfAQpWaitsForNoWriterForEver) {
  ClaimToWrite(victim_.mr()->rkey);
  const auto start = std::chrono::steady_clock::now();
  victim_.DestroyQp(qp_);
  EXPECT_GE(std::chrono::steady_clock::now() - start, kLimit);
}

// A claim that cannot be true costs nobody anything.
TEST_F(HostileWriterTest, TheEndOfAQpWaitsForNoWriterThatCannotBe) {
  ibv_mr* const region = victim_.device().RegMr(victim_.pd(), victim_.buffer(),
                                                4096, IBV_ACCESS_REMOTE_READ);
  ASSERT_NE(region, nullptr);
  const auto start = std::chrono::steady_clock::now();
  for (const uint32_t key : {region->rkey, 0xffu, ~0u, 1u << 30}) {
    for (int i = 0; i < 10; ++i) {
      ClaimToWrite(key);
      victim_.DestroyQp(qp_);
      ASSERT_NO_FATAL_FAILURE(ConnectHostile());
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 40 * kLimit);
  EXPECT_EQ(victim_.device().DeregMr(region), 0);
}

}  // namespace
}  // namespace rdma::soft
