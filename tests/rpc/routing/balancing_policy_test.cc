// Goal: policies say what gRPC's do, for every way in which addresses fare.
// Method: states by hand; no transports.
#include "rpc/routing/balancing_policy.h"

#include <memory>
#include <optional>
#include <vector>

#include "gtest/gtest.h"

namespace rpc::routing {
namespace {

using Address = BalancingPolicy::Address;
using Decision = BalancingPolicy::Decision;
using State = ConnectivityState;
using Indices = std::vector<size_t>;

constexpr State kIdle = State::kIdle;
constexpr State kConnecting = State::kConnecting;
constexpr State kReady = State::kReady;
constexpr State kFailing = State::kTransientFailure;

class PolicyTest : public ::testing::Test {
 protected:
  explicit PolicyTest(const char* name) : policy_(MakePolicy(name, 0)) {}

  Decision Look(const std::vector<Address>& addresses, bool wanted = false) {
    addresses_ = addresses;
    return policy_->Look(addresses, wanted);
  }
  std::optional<size_t> Pick() {
    return policy_->Pick(
        [this](size_t index) { return addresses_[index].state == kReady; });
  }
  void Become(const std::vector<std::optional<size_t>>& old_places) {
    policy_->OnNewAddresses(old_places);
  }
  void MakeUnready(size_t index) { addresses_[index].state = kIdle; }

 private:
  const std::unique_ptr<BalancingPolicy> policy_;
  std::vector<Address> addresses_;
};

class PickFirstTest : public PolicyTest {
 protected:
  PickFirstTest() : PolicyTest("pick_first") {}
};

class RoundRobinTest : public PolicyTest {
 protected:
  RoundRobinTest() : PolicyTest("round_robin") {}
};

TEST(MakePolicyTest, KnowsTwo) {
  EXPECT_NE(MakePolicy("pick_first", 0), nullptr);
  EXPECT_NE(MakePolicy("round_robin", 0), nullptr);
  EXPECT_EQ(MakePolicy("grpclb", 0), nullptr);
  EXPECT_EQ(MakePolicy("", 0), nullptr);
}

TEST_F(PickFirstTest, IsIdleUntilItIsWanted) {
  EXPECT_EQ(Look({{kIdle}, {kReady}}).state, kIdle);
  EXPECT_EQ(Pick(), std::nullopt);
}

TEST_F(PickFirstTest, TriesOneAfterTheOther) {
  Decision decision = Look({{kIdle}, {kIdle}}, /*wanted=*/true);
  EXPECT_EQ(decision.state, kConnecting);
  EXPECT_EQ(decision.connect, Indices{0});
  EXPECT_EQ(Look({{kConnecting}, {kIdle}}).connect, Indices{});
  decision = Look({{kFailing, true}, {kIdle}});
  EXPECT_EQ(decision.state, kConnecting);
  EXPECT_EQ(decision.connect, Indices{1});
  EXPECT_EQ(Look({{kFailing}, {kReady}}).state, kReady);
  EXPECT_EQ(Pick(), 1u);
}

TEST_F(PickFirstTest, AFailureThatIsOverAlreadyCountsToo) {
  Look({{kIdle}, {kIdle}}, true);
  EXPECT_EQ(Look({{kIdle, true}, {kIdle}}).connect, Indices{1});
}

TEST_F(PickFirstTest, AFailureFromBeforeItsTurnDoesNotCount) {
  EXPECT_EQ(Look({{kIdle, true}, {kIdle, true}}, true).connect, Indices{0});
  EXPECT_EQ(Look({{kFailing, true}, {kIdle, true}}).connect, Indices{1});
}

TEST_F(PickFirstTest, OneThatIsReadyAnywayIsTaken) {
  Look({{kIdle}, {kIdle}, {kReady}}, true);
  EXPECT_EQ(Pick(), 2u);
}

TEST_F(PickFirstTest, WithAllFailingEachIsTriedAgainAfterItsBackoff) {
  Look({{kIdle}, {kIdle}}, true);
  Decision decision = Look({{kFailing, true}, {kFailing}});
  EXPECT_EQ(decision.state, kFailing);
  EXPECT_EQ(decision.connect, Indices{});
  decision = Look({{kIdle}, {kFailing}});
  EXPECT_EQ(decision.state, kFailing);
  EXPECT_EQ(decision.connect, Indices{0});
  EXPECT_EQ(Look({{kConnecting}, {kConnecting}}).state, kFailing);
  EXPECT_EQ(Look({{kConnecting}, {kReady}}).state, kReady);
  EXPECT_EQ(Pick(), 1u);
}

TEST_F(PickFirstTest, WhenItsAddressIsLostItIsIdleAndBeginsWithTheFirst) {
  Look({{kFailing}, {kReady}}, true);
  EXPECT_EQ(Look({{kIdle}, {kIdle}}).state, kIdle);
  EXPECT_EQ(Pick(), std::nullopt);
  EXPECT_EQ(Look({{kIdle}, {kIdle}}, true).connect, Indices{0});
}

TEST_F(PickFirstTest, ACallThatWaitsBeginsAgainAtOnce) {
  Look({{kReady}, {kIdle}}, true);
  const Decision decision = Look({{kIdle}, {kIdle}}, true);
  EXPECT_EQ(decision.state, kConnecting);
  EXPECT_EQ(decision.connect, Indices{0});
}

TEST_F(PickFirstTest, WhatJustWasLostIsNotPicked) {
  Look({{kReady}, {kReady}}, true);
  MakeUnready(0);
  EXPECT_EQ(Pick(), std::nullopt);
}

TEST_F(RoundRobinTest, IsIdleUntilItIsWantedAndNeverAgain) {
  EXPECT_EQ(Look({{kIdle}}).state, kIdle);
  const Decision decision = Look({{kIdle}, {kIdle}}, true);
  EXPECT_EQ(decision.state, kConnecting);
  EXPECT_EQ(decision.connect, (Indices{0, 1}));
  EXPECT_EQ(Look({{kIdle}, {kConnecting}}).connect, Indices{0});
}

TEST_F(RoundRobinTest, GoesAroundThoseThatAreReady) {
  EXPECT_EQ(Look({{kReady}, {kConnecting}, {kReady}}, true).state, kReady);
  for (const size_t index : {0, 2, 0, 2}) EXPECT_EQ(Pick(), index);
  MakeUnready(0);
  EXPECT_EQ(Pick(), 2u);
  MakeUnready(2);
  EXPECT_EQ(Pick(), std::nullopt);
}

TEST_F(RoundRobinTest, OneThatFailedIsFailingUntilItIsReady) {
  Look({{kIdle}, {kIdle}}, true);
  EXPECT_EQ(Look({{kFailing, true}, {kConnecting}}).state, kConnecting);
  EXPECT_EQ(Look({{kConnecting}, {kFailing, true}}).state, kFailing);
  // Trying again is no news.
  const Decision decision = Look({{kIdle}, {kConnecting}});
  EXPECT_EQ(decision.state, kFailing);
  EXPECT_EQ(decision.connect, Indices{0});
  EXPECT_EQ(Look({{kReady}, {kConnecting}}).state, kReady);
  EXPECT_EQ(Look({{kIdle}, {kConnecting}}).state, kConnecting);
}

TEST_F(RoundRobinTest, AddressesThatStayAreWhatTheyWere) {
  Look({{kFailing, true}, {kReady}, {kReady}}, true);
  Become({2, 0, std::nullopt});
  EXPECT_EQ(Look({{kReady}, {kConnecting}, {kIdle}}).connect, Indices{2});
  EXPECT_EQ(Pick(), 0u);
  // The one that failed is still failing, the new one may yet be fine.
  EXPECT_EQ(Look({{kConnecting}, {kConnecting}, {kConnecting}}).state,
            kConnecting);
  Become({1});
  EXPECT_EQ(Look({{kConnecting}}).state, kFailing);
}

TEST_F(PickFirstTest, GoesOnWithItsAddressWhereThatStays) {
  Look({{kIdle}, {kIdle}}, true);
  Look({{kFailing, true}, {kReady}});
  Become({std::nullopt, std::nullopt, 1});
  EXPECT_EQ(Look({{kIdle}, {kIdle}, {kReady}}).state, kReady);
  EXPECT_EQ(Pick(), 2u);
  Become({0});
  EXPECT_EQ(Look({{kIdle}}).state, kIdle);
  EXPECT_EQ(Pick(), std::nullopt);
}

TEST_F(PickFirstTest, ForgetsHowTheOthersFared) {
  Look({{kIdle}, {kIdle}, {kIdle}}, true);
  Look({{kFailing, true}, {kIdle}, {kIdle}});
  EXPECT_EQ(Look({{kFailing}, {kReady}, {kIdle}}).forget, (Indices{0, 2}));
  EXPECT_EQ(Look({{kIdle}, {kReady}, {kIdle}}).forget, Indices{});
}

TEST_F(RoundRobinTest, AFailureThatIsOverAlreadyCountsToo) {
  Look({{kIdle}}, true);
  EXPECT_EQ(Look({{kIdle, true}}).state, kFailing);
}

}  // namespace
}  // namespace rpc::routing
