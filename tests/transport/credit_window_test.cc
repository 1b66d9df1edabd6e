// Goal: credits are neither lost nor made, a frame is sent only into a receive
// that was granted, and no order of events stops both sides for good.
// Method: each half by itself; then two sides over a wire with random delivery,
// whose books are checked after every step.
#include "rdma_transport/credit_window.h"

#include <cstdint>
#include <deque>
#include <random>

#include "gtest/gtest.h"

namespace rdma {
namespace {

constexpr uint32_t kInitial = 8;
constexpr uint32_t kMostWindow = 512;

TEST(SendCreditsTest, KeepsTheLastCreditForAFrameOfCredits) {
  SendCredits credits;
  credits.Reset(2);
  EXPECT_TRUE(credits.CanSend());
  credits.Spend();
  EXPECT_FALSE(credits.CanSend());
  EXPECT_TRUE(credits.CanSendCredits());
  credits.Spend();
  EXPECT_FALSE(credits.CanSendCredits());
  EXPECT_TRUE(credits.Add(1));
  EXPECT_FALSE(credits.CanSend());
  EXPECT_TRUE(credits.CanSendCredits());
}

TEST(SendCreditsTest, MoreThanAnybodyCanGrantIsRefused) {
  SendCredits credits;
  credits.Reset(1);
  EXPECT_TRUE(credits.Add(0xffff));
  EXPECT_FALSE(credits.Add(1));
}

TEST(SendCreditsTest, GivesBackAllButWhatItKeeps) {
  SendCredits credits;
  credits.Reset(20);
  EXPECT_EQ(credits.GiveBack(8), 12u);
  EXPECT_EQ(credits.held(), 8u);
  EXPECT_EQ(credits.GiveBack(8), 0u);
  EXPECT_EQ(credits.GiveBack(10), 0u);
  EXPECT_EQ(credits.held(), 8u);
}

// So many frames at once, each answered with a credit.
void UseAtOnce(SendCredits& credits, uint32_t frames) {
  for (uint32_t i = 0; i < frames; ++i) credits.Spend();
  ASSERT_TRUE(credits.Add(frames));
}

TEST(SendCreditsTest, AnOccasionalFrameDoesNotKeepTheWindow) {
  SendCredits credits;
  credits.Reset(256);
  int periods = 0;
  for (; credits.held() > 8; ++periods) {
    ASSERT_LT(periods, 10);
    UseAtOnce(credits, 1);
    credits.GiveBackUnused(8);
  }
  EXPECT_EQ(credits.held(), 8u);
  EXPECT_GT(periods, 1) << "half at a time";
}

TEST(SendCreditsTest, WhatIsInUseIsKept) {
  SendCredits credits;
  credits.Reset(256);
  for (int period = 0; period < 20; ++period) {
    UseAtOnce(credits, 65);
    EXPECT_EQ(credits.GiveBackUnused(8), 0u);
  }
  for (int period = 0; period < 20; ++period) {
    UseAtOnce(credits, 40);
    credits.GiveBackUnused(8);
    ASSERT_GE(credits.held(), 2 * 40u);
  }
  EXPECT_LT(credits.held(), 256u);
}

// Frames that are out all the time are in use as well.
TEST(SendCreditsTest, NothingIsGivenBackWhereAllIsOut) {
  SendCredits credits;
  credits.Reset(20);
  for (int i = 0; i < 12; ++i) credits.Spend();
  credits.GiveBackUnused(8);
  EXPECT_EQ(credits.held(), 8u);
  EXPECT_EQ(credits.GiveBackUnused(8), 0u);
}

TEST(ReceiveCreditsTest, AFrameWithoutACreditIsRefused) {
  ReceiveCredits credits;
  credits.Reset(2);
  EXPECT_TRUE(credits.Consume());
  EXPECT_TRUE(credits.Consume());
  EXPECT_FALSE(credits.Consume());
  EXPECT_EQ(credits.Grant(), 2);
  EXPECT_TRUE(credits.Consume());
}

TEST(ReceiveCreditsTest, HalfTheWindowIsWorthAFrame) {
  ReceiveCredits credits;
  credits.Reset(8);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(credits.Consume());
  EXPECT_FALSE(credits.ShouldGrantNow());
  ASSERT_TRUE(credits.Consume());
  EXPECT_TRUE(credits.ShouldGrantNow());
  EXPECT_EQ(credits.Grant(), 4);
  EXPECT_FALSE(credits.ShouldGrantNow());
}

TEST(ReceiveCreditsTest, OneGrantFitsTheFramesField) {
  ReceiveCredits credits;
  credits.Reset(0);
  credits.SetWindow(100'000);
  EXPECT_EQ(credits.Grant(), 0xffff);
  EXPECT_EQ(credits.Grant(), 100'000 - 0xffff);
  EXPECT_EQ(credits.Grant(), 0);
}

TEST(ReceiveCreditsTest, ASmallerWindowTakesHoldAsFramesCome) {
  ReceiveCredits credits;
  credits.Reset(10);
  credits.SetWindow(8);
  EXPECT_EQ(credits.Owed(), 0);
  ASSERT_TRUE(credits.Consume());
  ASSERT_TRUE(credits.Consume());
  EXPECT_EQ(credits.Owed(), 0);
  ASSERT_TRUE(credits.Consume());
  EXPECT_EQ(credits.Owed(), 1);
}

TEST(ReceiveCreditsTest, TakesBackOnlyWhatThePeerCanHave) {
  ReceiveCredits credits;
  credits.Reset(8);
  EXPECT_FALSE(credits.TakeBack(9, 0));
  EXPECT_EQ(credits.outstanding(), 8u) << "a refusal changes nothing";
  EXPECT_EQ(credits.window(), 8u);
  EXPECT_TRUE(credits.TakeBack(8, 2));
  EXPECT_EQ(credits.outstanding(), 0u);
  EXPECT_EQ(credits.window(), 2u);
}

TEST(ReceiveCreditsTest, WhatIsOwedStaysInTheWindowThatShrinks) {
  ReceiveCredits credits;
  credits.Reset(100);
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(credits.Consume());
  EXPECT_TRUE(credits.TakeBack(20, 8));
  EXPECT_EQ(credits.window(), 80u);
  EXPECT_EQ(credits.Owed(), 30);
}

// ---- Two sides.

struct WireFrame {
  uint16_t credits = 0;
  uint32_t given_back = 0;
};

// What a connection does about credits, and no more.
struct Side {
  SendCredits send;
  ReceiveCredits receive;
  std::deque<WireFrame> out;  // on the wire, to the other side

  Side() {
    send.Reset(kInitial);
    receive.Reset(kInitial);
  }

  void SendFrame(uint32_t given_back = 0) {
    out.push_back({receive.Grant(), given_back});
    send.Spend();
  }
  bool TrySend() {
    if (!send.CanSend()) return false;
    SendFrame();
    return true;
  }
  void SendCreditsIfDue() {
    if (receive.ShouldGrantNow() && send.CanSendCredits()) SendFrame();
  }
  void GiveBackAll() {
    if (send.held() <= kInitial) return;
    SendFrame(send.GiveBack(kInitial));
  }
  void GiveBackUnused() {
    if (send.held() <= kInitial) return;
    const uint32_t given = send.GiveBackUnused(kInitial);
    if (given > 0) SendFrame(given);
  }
  void Grow() {
    const uint32_t wanted = std::min(receive.window() * 2, kMostWindow);
    receive.SetWindow(wanted);
  }
  void Receive(const WireFrame& frame) {
    ASSERT_TRUE(receive.Consume());
    ASSERT_TRUE(send.Add(frame.credits));
    if (frame.given_back == 0) return;
    ASSERT_TRUE(receive.TakeBack(frame.given_back, kInitial));
  }
};

void DeliverOne(Side& from, Side& to) {
  if (from.out.empty()) return;
  const WireFrame frame = from.out.front();
  from.out.pop_front();
  to.Receive(frame);
}

// held + in flight + grants on their way + returns on their way = outstanding,
// and outstanding + owed = window.
void CheckLaw(const Side& sender, const Side& receiver) {
  uint64_t sum = sender.send.held() + sender.out.size();
  for (const WireFrame& frame : sender.out) sum += frame.given_back;
  for (const WireFrame& frame : receiver.out) sum += frame.credits;
  ASSERT_EQ(sum, receiver.receive.outstanding());
  ASSERT_LE(receiver.receive.outstanding(), receiver.receive.window());
  ASSERT_EQ(receiver.receive.outstanding() + receiver.receive.Owed(),
            receiver.receive.window());
}

class TwoSidesTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  void RandomStep() {
    Side& me = sides_[random_() % 2];
    Side& other = &me == &sides_[0] ? sides_[1] : sides_[0];
    switch (random_() % 16) {
      case 0:
        me.Grow();
        break;
      case 1:
        if (random_() % 4 == 0) {
          me.GiveBackAll();
        } else {
          me.GiveBackUnused();
        }
        break;
      case 2:
      case 3:
        me.SendCreditsIfDue();
        break;
      case 4:
      case 5:
      case 6:
      case 7:
      case 8:
        me.TrySend();
        break;
      default:
        DeliverOne(me, other);
    }
  }
  void CheckBoth() {
    CheckLaw(sides_[0], sides_[1]);
    CheckLaw(sides_[1], sides_[0]);
  }

  Side sides_[2];
  std::mt19937 random_{GetParam()};
};

TEST_P(TwoSidesTest, BooksBalanceAfterEveryStep) {
  for (int i = 0; i < 20'000; ++i) {
    RandomStep();
    ASSERT_NO_FATAL_FAILURE(CheckBoth()) << "step " << i;
  }
}

TEST_P(TwoSidesTest, WhereverTheyStandBothCanGoOn) {
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 200; ++i) RandomStep();
    // From here each side sends what it can, and the wire delivers.
    int sent[2] = {0, 0};
    for (int turn = 0; turn < 200; ++turn) {
      for (int me = 0; me < 2; ++me) {
        DeliverOne(sides_[1 - me], sides_[me]);
        sides_[me].SendCreditsIfDue();
        sent[me] += sides_[me].TrySend();
      }
    }
    EXPECT_GT(sent[0], 10) << "round " << round;
    EXPECT_GT(sent[1], 10) << "round " << round;
  }
}

// Both run out at once, with nothing on the way: the reserved credit is what
// there is.
TEST_P(TwoSidesTest, TwoSidesThatRanOutTellEachOther) {
  for (Side& side : sides_) {
    while (side.TrySend()) {
    }
  }
  while (!sides_[0].out.empty()) DeliverOne(sides_[0], sides_[1]);
  while (!sides_[1].out.empty()) DeliverOne(sides_[1], sides_[0]);
  for (Side& side : sides_) side.SendCreditsIfDue();
  for (int me = 0; me < 2; ++me) DeliverOne(sides_[1 - me], sides_[me]);
  EXPECT_TRUE(sides_[0].send.CanSend());
  EXPECT_TRUE(sides_[1].send.CanSend());
}

// Frames of credits must not answer each other for ever.
TEST_P(TwoSidesTest, WithNothingToSaySilenceComes) {
  for (int i = 0; i < 1000; ++i) RandomStep();
  int frames = 0;
  for (;;) {
    const size_t before = sides_[0].out.size() + sides_[1].out.size();
    for (int me = 0; me < 2; ++me) {
      DeliverOne(sides_[1 - me], sides_[me]);
      sides_[me].SendCreditsIfDue();
    }
    if (before == 0 && sides_[0].out.empty() && sides_[1].out.empty()) break;
    ASSERT_LT(++frames, 10'000);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, TwoSidesTest, ::testing::Range(1u, 9u));

}  // namespace
}  // namespace rdma
