// Goal: an SRQ gives out every receive once, a short one in the order posted, a
// long one the newest first. Method: one of its own, without a device.
#include "rdma_transport/software/engine/receive_queue.h"

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
    while (taken.size() < count && queue_->Front() != nullptr) {
      taken.push_back(queue_->Front()->wr_id);
      queue_->Pop();
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

}  // namespace
}  // namespace rdma::soft
