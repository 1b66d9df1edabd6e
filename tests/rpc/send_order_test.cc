// Goal: what a call sends goes through interceptors one after the other, in its
// order, whichever thread lets go of it. Method: steps that note that they
// acted, on one thread and on several.
#include "rpc/internal/send_order.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rpc::internal {
namespace {

using ::testing::ElementsAre;

class FunctionStep final : public SendOrder::Step {
 public:
  explicit FunctionStep(std::function<void()> act) : act_(std::move(act)) {}
  void Act() override { act_(); }

 private:
  const std::function<void()> act_;
};

TEST(SendOrderTest, TheFirstActsAtOnceAndTheNextWhenItLeft) {
  SendOrder order;
  std::vector<int> acted;
  FunctionStep first([&] { acted.push_back(1); });
  FunctionStep second([&] { acted.push_back(2); });
  FunctionStep third([&] { acted.push_back(3); });
  order.Enter(&first);
  order.Enter(&second);
  order.Enter(&third);
  EXPECT_THAT(acted, ElementsAre(1));
  order.Leave();
  EXPECT_THAT(acted, ElementsAre(1, 2));
  order.Leave();
  EXPECT_THAT(acted, ElementsAre(1, 2, 3));
  order.Leave();
  FunctionStep fourth([&] { acted.push_back(4); });
  order.Enter(&fourth);
  EXPECT_THAT(acted, ElementsAre(1, 2, 3, 4));
}

// Each begins the next, as a reactor does that writes on and on.
TEST(SendOrderTest, ALongRowDoesNotNest) {
  constexpr int kSteps = 100'000;
  SendOrder order;
  std::vector<std::unique_ptr<FunctionStep>> steps;
  int depth = 0;
  int deepest = 0;
  std::function<void()> act = [&] {
    deepest = std::max(deepest, ++depth);
    if (steps.size() < kSteps) {
      steps.push_back(std::make_unique<FunctionStep>(act));
      order.Enter(steps.back().get());
    }
    order.Leave();
    --depth;
  };
  steps.push_back(std::make_unique<FunctionStep>(act));
  order.Enter(steps.back().get());
  EXPECT_EQ(steps.size(), kSteps);
  EXPECT_EQ(deepest, 1);
}

TEST(SendOrderTest, NoneIsLeftBehindWhereAnotherThreadLeaves) {
  constexpr int kSteps = 10'000;
  SendOrder order;
  std::atomic<int> to_leave{0};
  std::atomic<int> acting{0};
  int acted = 0;
  std::vector<std::unique_ptr<FunctionStep>> steps;
  for (int i = 0; i < kSteps; ++i) {
    steps.push_back(std::make_unique<FunctionStep>([&] {
      EXPECT_EQ(++acting, 1);
      ++acted;
      ++to_leave;
    }));
  }
  std::thread leaving([&] {
    for (int left = 0; left < kSteps; ++left) {
      while (to_leave.load() == 0) std::this_thread::yield();
      --to_leave;
      --acting;
      order.Leave();
    }
  });
  for (const auto& step : steps) order.Enter(step.get());
  leaving.join();
  EXPECT_EQ(acted, kSteps);
}

}  // namespace
}  // namespace rpc::internal
