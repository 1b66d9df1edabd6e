// Goal: an SRQ gives out every receive once, a short one in the order posted, a
// long one the newest first. Method: one of its own, without a device.
#include "rdma_transport/software/engine/receive_queue.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "rdma_transport/software/engine/async_events.h"
#include "rdma_transport/software/engine/memory_registry.h"

namespace rdma::soft {
namespace {

class SharedReceiveQueueTest : public testing::Test {
 protected:
  static constexpr uint64_t kInOrder = 256;

  void SetUp() override {
    events_ = *AsyncEvents::Create();
    ibv_srq_init_attr init = {};
    init.attr.max_wr = 1024;
    init.attr.max_sge = 1;
    queue_ = std::make_unique<SharedReceiveQueue>(&context_, &pd_, init,
                                                  events_.get());
  }

  void Post(uint64_t first, uint64_t count) {
    for (uint64_t wr_id = first; wr_id < first + count; ++wr_id) {
      ibv_recv_wr wr = {};
      wr.wr_id = wr_id;
      ibv_recv_wr* bad;
      ASSERT_EQ(queue_->Post(&wr, &bad), 0);
    }
  }
  std::vector<uint64_t> Take(size_t count) {
    std::vector<uint64_t> taken;
    ReceiveQueue& queue = *queue_->queue();
    while (taken.size() < count && queue.Front() != nullptr) {
      taken.push_back(queue.Front()->wr_id);
      queue.Pop();
    }
    return taken;
  }

  ibv_context context_ = {};
  ProtectionDomain pd_;
  std::unique_ptr<AsyncEvents> events_;
  std::unique_ptr<SharedReceiveQueue> queue_;
};

TEST_F(SharedReceiveQueueTest, AShortOneIsTakenInTheOrderPosted) {
  Post(0, kInOrder);
  const std::vector<uint64_t> taken = Take(kInOrder + 1);
  ASSERT_EQ(taken.size(), kInOrder);
  for (uint64_t i = 0; i < kInOrder; ++i) EXPECT_EQ(taken[i], i);
}

TEST_F(SharedReceiveQueueTest, ALongOneIsTakenFromItsNewestEnd) {
  Post(0, kInOrder + 3);
  EXPECT_EQ(Take(1), (std::vector<uint64_t>{kInOrder + 2}));
  Post(1000, 1);
  EXPECT_EQ(Take(3), (std::vector<uint64_t>{1000, kInOrder + 1, kInOrder}));
  // It is a short one now, and all others are still there.
  const std::vector<uint64_t> taken = Take(kInOrder + 1);
  ASSERT_EQ(taken.size(), kInOrder);
  for (uint64_t i = 0; i < kInOrder; ++i) EXPECT_EQ(taken[i], i);
}

// Of a full queue, too, whose ends meet.
TEST(ReceiveQueueTest, WhatIsPutBackIsTheNextOneAgain) {
  constexpr uint32_t kDepth = 8;
  for (const uint32_t in_order : {UINT32_MAX, kDepth, kDepth - 1, 2u}) {
    for (uint32_t count = 1; count <= kDepth; ++count) {
      ReceiveQueue queue(kDepth, 1, in_order);
      for (uint64_t wr_id = 0; wr_id < count; ++wr_id) {
        ibv_recv_wr wr = {};
        wr.wr_id = wr_id;
        ibv_recv_wr* bad;
        ASSERT_EQ(queue.Post(&wr, &bad), 0);
      }
      for (uint32_t left = count; left != 0; --left) {
        const uint64_t next = queue.Next()->wr_id;
        EXPECT_EQ(queue.Take()->wr_id, next);
        queue.PutBack();
        ASSERT_EQ(queue.size(), left);
        ASSERT_EQ(queue.Next()->wr_id, next);
        // The newest ones while there are too many, then from the oldest on.
        EXPECT_EQ(next, left > in_order ? left - 1
                                        : std::min(count, in_order) - left);
        queue.Pop();
      }
      EXPECT_TRUE(queue.empty());
    }
  }
}

TEST(ReceiveQueueTest, TakesAListUpToTheFirstThatItCannotTake) {
  ReceiveQueue queue(4, 2);
  ibv_sge sges[3] = {{.addr = 1, .length = 2, .lkey = 3},
                     {.addr = 4, .length = 5, .lkey = 6}};
  ibv_recv_wr wrs[6] = {};
  for (int i = 0; i < 6; ++i) {
    wrs[i] = {.wr_id = static_cast<uint64_t>(i),
              .next = i == 5 ? nullptr : &wrs[i + 1],
              .sg_list = sges,
              .num_sge = i % 3};
  }
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(queue.Post(wrs, &bad), ENOMEM);
  EXPECT_EQ(bad, &wrs[4]);
  for (uint32_t i = 0; i < 4; ++i) {
    const ReceiveWqe* const wqe = queue.Take();
    EXPECT_EQ(wqe->wr_id, i);
    ASSERT_EQ(wqe->sge_count, i % 3);
    if (wqe->sge_count != 0) {
      EXPECT_EQ(wqe->sges()[0].addr, 1u);
    }
    if (wqe->sge_count == 2) {
      EXPECT_EQ(wqe->sges()[1].lkey, 6u);
    }
  }
  for (const int wrong : {3, -1}) {
    wrs[1].num_sge = wrong;
    EXPECT_EQ(queue.Post(wrs, &bad), EINVAL);
    EXPECT_EQ(bad, &wrs[1]);
    EXPECT_EQ(queue.size(), 1u);
    queue.Pop();
  }
}

}  // namespace
}  // namespace rdma::soft
