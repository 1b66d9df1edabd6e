// Goal: work is found, soon where it is expected, and nobody starves. Method: a
// schedule of targets that this test makes ready.
#include "rdma_transport/software/engine/poll_schedule.h"

#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "rdma_transport/software/engine/fake_link.h"

namespace rdma::soft {
namespace {

using Verdict = PollSchedule::Verdict;

class FakeTarget final : public PollTarget {
 public:
  void SetReady(bool ready) { needs_service_ = ready; }
  void ConnectTo(FakeLink* link) {
    live_link_ = link_ = link;
    has_one_cq_ = true;
  }
  void DoWork() {
    needs_service_ = false;
    if (link_ != nullptr && link_->HasIncoming()) link_->TakeIncoming();
  }
  Taken TakeSmall(ibv_wc* next, ibv_wc*, uint64_t*) override {
    return {next, false};
  }
  void Progress() override {}
  void ServiceLink() override {}
  void Retire(uint32_t) override {}

 private:
  FakeLink* link_ = nullptr;
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
    was_only_ = schedule_.only() != nullptr;
    was_simple_ = true;
    if (was_only_) {
      PollTarget* const only = schedule_.only();
      if (only->Ready()) {
        static_cast<FakeTarget*>(only)->DoWork();
        schedule_.OnlyHadWork();
        return {only};
      }
      if (!schedule_.OnlyWasIdle()) return {};
      was_only_ = false;
    }
    PollTarget* ready = nullptr;
    was_simple_ = schedule_.SimpleTurn(&ready);
    if (was_simple_) {
      if (ready == nullptr) return {};
      static_cast<FakeTarget*>(ready)->DoWork();
      return {ready};
    }
    std::vector<PollTarget*> visited;
    schedule_.Turn([&](PollTarget* target) {
      visited.push_back(target);
      static_cast<FakeTarget*>(target)->DoWork();
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

  // The target is what only() gives.
  void MakeOnlyHot(int i) {
    LetAllCool();
    TurnsToFind(targets_[i].get());
    while (schedule_.only() == nullptr) Turn();
  }

  std::vector<std::unique_ptr<FakeTarget>> targets_;
  PollSchedule schedule_;
  bool was_simple_ = false;  // the last Turn
  bool was_only_ = false;
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

TEST_F(PollScheduleTest, TheOnlyHotOfManyStaysSoWhileItHasWork) {
  AddTargets(1000);
  LetAllCool();
  TurnsToFind(targets_[7].get());
  int turns_of_others = 0;
  for (int i = 0; i < 20'000; ++i) {
    EXPECT_EQ(TurnsToFind(targets_[7].get()), 1) << i;
    turns_of_others += was_only_ ? 0 : 1;
  }
  EXPECT_GT(turns_of_others, 0);
  EXPECT_LT(turns_of_others, 20'000 / 8);
  LetAllCool();
  EXPECT_EQ(schedule_.only(), nullptr) << "it is as cold as all";
}

TEST_F(PollScheduleTest, OthersHaveTheFirstTurnWithoutWork) {
  AddTargets(1000);
  LetAllCool();
  TurnsToFind(targets_[7].get());
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(TurnsToFind(targets_[7].get()), 1);
    if (!was_only_) continue;  // they had theirs
    Turn();
    EXPECT_FALSE(was_only_);
    // One is enough until the answer may be there.
    for (int turn = 0; turn < 20; ++turn) {
      Turn();
      EXPECT_TRUE(was_only_) << turn;
    }
  }
}

TEST_F(PollScheduleTest, FindsAnotherWhileTheOnlyHotOneHasWorkEachTurn) {
  AddTargets(1000);
  LetAllCool();
  TurnsToFind(targets_[7].get());
  targets_[6]->SetReady(true);  // the last to be looked at
  int turns = 0;
  for (; targets_[6]->Ready() && turns < 10'000; ++turns) {
    targets_[7]->SetReady(true);
    Turn();
  }
  EXPECT_LE(turns, 2300);
  // Both are hot now.
  EXPECT_EQ(TurnsToFind(targets_[6].get()), 1);
  EXPECT_EQ(TurnsToFind(targets_[7].get()), 1);
}

TEST_F(PollScheduleTest, TheLastOfTwoIsTheOnlyOneThoughTheOthersTurnWasDue) {
  AddTargets(2);
  MakeOnlyHot(0);
  while (schedule_.only() != nullptr) TurnsToFind(targets_[0].get());
  schedule_.Remove(targets_[1].get());
  Turn();
  EXPECT_EQ(schedule_.only(), targets_[0].get());
}

TEST_F(PollScheduleTest, ATouchedTargetIsNotTheOnlyOneAnyMore) {
  AddTargets(1000);
  MakeOnlyHot(7);
  schedule_.Touch(targets_[500].get());
  EXPECT_EQ(schedule_.only(), nullptr);
  EXPECT_EQ(TurnsToFind(targets_[500].get()), 1);
}

TEST_F(PollScheduleTest, ARemovedTargetIsNotTheOnlyOneAnyMore) {
  AddTargets(1000);
  MakeOnlyHot(7);
  targets_[7]->SetReady(true);
  Turn();
  EXPECT_TRUE(schedule_.Remove(targets_[7].get()));
  EXPECT_EQ(schedule_.only(), nullptr);
  EXPECT_LE(TurnsToFind(targets_[8].get()), 2002);
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

// Targets with links: what is idle is only looked at where its next packet will
// be.
class IdleTargetsTest : public PollScheduleTest {
 protected:
  static constexpr int kTargets = 100;

  void SetUp() override {
    for (int i = 0; i < kTargets; ++i) {
      links_.push_back(std::make_unique<FakeLink>());
      targets_.push_back(std::make_unique<FakeTarget>());
      targets_.back()->ConnectTo(links_.back().get());
      schedule_.Add(targets_.back().get());
    }
    LetAllCool();
    ASSERT_EQ(CountIdle(), kTargets);
  }

  int CountIdle() const {
    int idle = 0;
    for (const auto& target : targets_) idle += target->is_idle();
    return idle;
  }
  // Whether its packet is found soon, and nothing else.
  bool FindsPacketOf(int i) {
    links_[i]->PutIncoming();
    for (int turns = 0; turns < 3 * kTargets; ++turns) {
      const std::vector<PollTarget*> visited = Turn();
      if (visited.empty()) continue;
      return visited == std::vector<PollTarget*>{targets_[i].get()};
    }
    return false;
  }

  std::vector<std::unique_ptr<FakeLink>> links_;
};

TEST_F(IdleTargetsTest, APacketIsFoundWhereAnyOfThemHadSome) {
  for (int lap = 0; lap < 300; ++lap) {
    const int i = lap % 20;
    ASSERT_TRUE(FindsPacketOf(i)) << lap;
    EXPECT_FALSE(targets_[i]->is_idle()) << "it is hot";
  }
  LetAllCool();
  EXPECT_EQ(CountIdle(), kTargets);
  EXPECT_TRUE(FindsPacketOf(3));
}

TEST_F(IdleTargetsTest, ATouchedOneIsNotIdle) {
  schedule_.Touch(targets_[5].get());
  EXPECT_FALSE(targets_[5]->is_idle());
  // Its packets are taken while it is hot, a whole ring of them.
  for (uint32_t i = 0; i < FakeLink::kIncomingLines; ++i) {
    links_[5]->PutIncoming();
    EXPECT_EQ(Turn().size(), 1u);
  }
  LetAllCool();
  EXPECT_TRUE(FindsPacketOf(5));
}

TEST_F(IdleTargetsTest, OneWhosePacketsAreTakenOtherwiseSaysSo) {
  schedule_.EndIdleness(targets_[5].get());
  for (uint32_t i = 0; i < FakeLink::kIncomingLines; ++i) {
    links_[5]->PutIncoming();
    links_[5]->TakeIncoming();
  }
  EXPECT_TRUE(FindsPacketOf(5));
}

TEST_F(IdleTargetsTest, TheOnlyOneLeftIsNotIdle) {
  for (int i = 1; i < kTargets; ++i) schedule_.Remove(targets_[i].get());
  EXPECT_FALSE(targets_[0]->is_idle());
  EXPECT_EQ(schedule_.only(), targets_[0].get());
  EXPECT_TRUE(FindsPacketOf(0));
}

TEST_F(IdleTargetsTest, OthersAreLookedAtWhereTheyAreAfterOneIsRemoved) {
  schedule_.Remove(targets_[0].get());
  for (int i : {1, 2, kTargets - 1}) EXPECT_TRUE(FindsPacketOf(i)) << i;
}

}  // namespace
}  // namespace rdma::soft
