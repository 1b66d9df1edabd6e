// Goal: work is found, soon where it is expected, and nobody starves. Method: a
// schedule of targets that this test makes ready.
#include "rdma_transport/software/engine/poll_schedule.h"

#include <memory>
#include <vector>

#include "gtest/gtest.h"

namespace rdma::soft {
namespace {

using Verdict = PollSchedule::Verdict;

class FakeTarget final : public PollTarget {
 public:
  void SetReady(bool ready) { needs_service_ = ready; }
  Taken TakeSmall(ibv_wc* next, ibv_wc*) override { return {next, false}; }
  void Progress() override {}
  void ServiceLink() override {}
  void Retire(uint32_t) override {}
};

class PollScheduleTest : public testing::Test {
 protected:
  void AddTargets(int count) {
    for (int i = 0; i < count; ++i) {
      targets_.push_back(std::make_unique<FakeTarget>());
      schedule_.Add(targets_.back().get());
    }
  }

  // One turn, as the CQ takes it, in which each visited target's work is done;
  // returns the visited.
  std::vector<PollTarget*> Turn(Verdict verdict = Verdict::kGoOn) {
    PollTarget* ready = nullptr;
    was_simple_ = schedule_.SimpleTurn(&ready);
    if (was_simple_) {
      if (ready == nullptr) return {};
      static_cast<FakeTarget*>(ready)->SetReady(false);
      return {ready};
    }
    std::vector<PollTarget*> visited;
    schedule_.Turn([&](PollTarget* target) {
      visited.push_back(target);
      static_cast<FakeTarget*>(target)->SetReady(false);
      return verdict;
    });
    return visited;
  }

  // Turns until the target is visited, of which there must be few.
  int TurnsToFind(FakeTarget* target) {
    target->SetReady(true);
    for (int turns = 1;; ++turns) {
      for (PollTarget* visited : Turn()) {
        if (visited == target) return turns;
      }
      if (turns > 10'000) return turns;
    }
  }

  void LetAllCool() {
    for (int i = 0; i < 10'000; ++i) EXPECT_TRUE(Turn().empty());
  }

  std::vector<std::unique_ptr<FakeTarget>> targets_;
  PollSchedule schedule_;
  bool was_simple_ = false;  // the last Turn
};

TEST_F(PollScheduleTest, TheOnlyTargetIsFoundInASimpleTurnAndStaysHot) {
  AddTargets(1);
  EXPECT_EQ(TurnsToFind(targets_[0].get()), 1);
  for (int i = 0; i < 10'000; ++i) {
    targets_[0]->SetReady(true);
    EXPECT_EQ(Turn().size(), 1u);
    EXPECT_TRUE(was_simple_);
  }
  EXPECT_TRUE(Turn().empty());
  EXPECT_TRUE(was_simple_);
  AddTargets(1);
  targets_[0]->SetReady(true);
  targets_[1]->SetReady(true);
  EXPECT_EQ(TurnsToFind(targets_[1].get()), 1);
  EXPECT_FALSE(was_simple_);
}

TEST_F(PollScheduleTest, FindsAnIdleTargetInTwiceAsManyTurnsAsThereAre) {
  AddTargets(1000);
  LetAllCool();
  for (int i : {0, 1, 500, 999}) {
    EXPECT_LE(TurnsToFind(targets_[i].get()), 2002) << i;
    // It is hot then.
    EXPECT_EQ(TurnsToFind(targets_[i].get()), 1) << i;
  }
}

TEST_F(PollScheduleTest, FewTargetsAreFoundSoonEvenWhenCold) {
  AddTargets(3);
  LetAllCool();
  for (auto& target : targets_) EXPECT_LE(TurnsToFind(target.get()), 8);
}

TEST_F(PollScheduleTest, TouchedTargetsAreHot) {
  AddTargets(1000);
  LetAllCool();
  for (int i : {999, 3, 3, 400}) {
    schedule_.Touch(targets_[i].get());
    EXPECT_EQ(TurnsToFind(targets_[i].get()), 1) << i;
  }
}

TEST_F(PollScheduleTest, ATouchHoldsAfterTheTargetWasEvicted) {
  AddTargets(100);
  LetAllCool();
  schedule_.Touch(targets_[50].get());
  for (int i = 0; i < 20; ++i) TurnsToFind(targets_[i].get());
  schedule_.Touch(targets_[50].get());
  EXPECT_EQ(TurnsToFind(targets_[50].get()), 1);
}

TEST_F(PollScheduleTest, LooksEverywhereInOneTurn) {
  AddTargets(1000);
  LetAllCool();
  for (auto& target : targets_) target->SetReady(true);
  schedule_.LookEverywhere();
  EXPECT_EQ(Turn().size(), 1000u);
}

TEST_F(PollScheduleTest, LooksEverywhereInSeveralTurnsWhereTheyAreCutShort) {
  AddTargets(100);
  LetAllCool();
  for (auto& target : targets_) target->SetReady(true);
  schedule_.LookEverywhere();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Turn(Verdict::kStop).size(), 1u) << i;
  EXPECT_TRUE(Turn().empty());
}

// A target that fills the turn may have more: it is seen again before a turn
// finds nothing.
TEST_F(PollScheduleTest, ALookThatWasCutShortForgetsNobody) {
  for (int count : {2, 30, 100}) {
    AddTargets(count - static_cast<int>(targets_.size()));
    LetAllCool();
    for (auto& target : targets_) target->SetReady(true);
    schedule_.LookEverywhere();
    // The first one has something left whenever it is seen, for a while.
    PollTarget* first = nullptr;
    int seen = 0;
    for (bool found = true; found;) {
      found = false;
      schedule_.Turn([&](PollTarget* target) {
        found = true;
        if (first == nullptr) first = target;
        const bool done = target != first || ++seen == 3;
        static_cast<FakeTarget*>(target)->SetReady(!done);
        return Verdict::kStop;
      });
    }
    EXPECT_EQ(seen, 3) << count;
    for (auto& target : targets_) EXPECT_FALSE(target->Ready()) << count;
  }
}

// As connections do that wait for a receive to be posted.
TEST_F(PollScheduleTest, ALookEndsAmongTargetsThatAreAlwaysReady) {
  AddTargets(100);
  LetAllCool();
  for (auto& target : targets_) target->SetReady(true);
  schedule_.LookEverywhere();
  int visits = 0;
  for (int i = 0; i < 10; ++i) {
    schedule_.Turn([&](PollTarget*) {
      ++visits;
      return i < 5 ? Verdict::kStop : Verdict::kGoOn;
    });
  }
  EXPECT_GE(visits, 100);
  EXPECT_LT(visits, 1000);
}

TEST_F(PollScheduleTest, ALookMissesNobodyWhenOneIsRemoved) {
  AddTargets(100);
  LetAllCool();
  for (auto& target : targets_) target->SetReady(true);
  schedule_.LookEverywhere();
  std::vector<PollTarget*> seen;
  for (int i = 0; i < 10; ++i) {
    seen.push_back(Turn(Verdict::kStop).front());
  }
  // Some of those that were seen already.
  for (int i = 0; i < 5; ++i) schedule_.Remove(seen[i]);
  EXPECT_EQ(Turn().size(), 90u);
}

// Not even where others fill every turn.
TEST_F(PollScheduleTest, NobodyIsForgottenBesideATargetThatAlwaysHasMore) {
  AddTargets(100);
  LetAllCool();
  schedule_.Touch(targets_[0].get());
  targets_[0]->SetReady(true);
  targets_[50]->SetReady(true);
  int turns = 0;
  for (bool found = false; !found; ++turns) {
    ASSERT_LT(turns, 1000);
    schedule_.Turn([&](PollTarget* target) {
      found |= target == targets_[50].get();
      return Verdict::kStop;
    });
  }
}

TEST_F(PollScheduleTest, WhoUsesTheTurnUpIsLastInTheNext) {
  AddTargets(3);
  std::vector<PollTarget*> order;
  for (int i = 0; i < 6; ++i) {
    for (auto& target : targets_) target->SetReady(true);
    order.push_back(Turn(Verdict::kStop).front());
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(order[i], order[i + 3]);
    EXPECT_NE(order[i], order[(i + 1) % 3]);
  }
}

TEST_F(PollScheduleTest, MoreBusyTargetsThanCanBeHotAllGetTheirTurns) {
  AddTargets(100);
  std::vector<int> visits(100);
  for (int turn = 0; turn < 2000; ++turn) {
    for (auto& target : targets_) target->SetReady(true);
    schedule_.Turn([&](PollTarget* target) {
      for (int i = 0; i < 100; ++i) visits[i] += targets_[i].get() == target;
      return Verdict::kGoOn;
    });
  }
  for (int i = 0; i < 100; ++i) EXPECT_GT(visits[i], 50) << i;
}

TEST_F(PollScheduleTest, RemovedTargetsAreNotVisited) {
  AddTargets(20);
  schedule_.Add(targets_[4].get());
  EXPECT_FALSE(schedule_.Remove(targets_[4].get())) << "it was added twice";
  EXPECT_TRUE(schedule_.Remove(targets_[4].get()));
  schedule_.LookEverywhere();
  for (auto& target : targets_) target->SetReady(true);
  EXPECT_EQ(Turn().size(), 19u);
  for (int i = 0; i < 20; ++i) {
    if (i != 4) {
      EXPECT_TRUE(schedule_.Remove(targets_[i].get()));
    }
  }
  EXPECT_TRUE(schedule_.all().empty());
  EXPECT_TRUE(Turn().empty());
}

}  // namespace
}  // namespace rdma::soft
