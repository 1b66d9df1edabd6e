// Goal: the spin is longer where that spares sleeping, and only there.
// Method: what drivers would say of their sleeps, with times of the test's own.
#include "rdma_transport/idle_spin.h"

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace rdma {
namespace {

constexpr int64_t kShortestNs = 50'000;
constexpr int64_t kLongestNs = 400'000;

class IdleSpinTest : public ::testing::Test {
 protected:
  void Wake(int times, int64_t idle_ns) {
    for (int i = 0; i < times; ++i) spin_.OnWoken(idle_ns);
  }

  IdleSpin spin_{absl::Nanoseconds(kShortestNs), absl::Nanoseconds(kLongestNs)};
};

TEST_F(IdleSpinTest, BeginsShort) { EXPECT_EQ(spin_.limit_ns(), kShortestNs); }

TEST_F(IdleSpinTest, OutlastsWorkThatComesSoonAfterSleepBegan) {
  constexpr int64_t kIdleNs = 190'000;
  Wake(2, kIdleNs);
  EXPECT_GT(spin_.limit_ns(), kIdleNs);
}

TEST_F(IdleSpinTest, NeverExceedsTheLongest) {
  Wake(100, kLongestNs);
  EXPECT_EQ(spin_.limit_ns(), kLongestNs);
}

TEST_F(IdleSpinTest, IsShortAgainOnceWorkComesLate) {
  Wake(100, kLongestNs);
  Wake(3, kLongestNs + 1);
  EXPECT_EQ(spin_.limit_ns(), kLongestNs) << "not for a while";
  Wake(3, kLongestNs + 1);
  EXPECT_EQ(spin_.limit_ns(), kShortestNs);
}

TEST_F(IdleSpinTest, StaysShortWhereWorkIsRare) {
  Wake(100, 10 * kLongestNs);
  EXPECT_EQ(spin_.limit_ns(), kShortestNs);
}

TEST_F(IdleSpinTest, IsFixedWhereBothEndsAreTheSame) {
  IdleSpin fixed(absl::ZeroDuration(), absl::ZeroDuration());
  fixed.OnWoken(0);
  fixed.OnWoken(kLongestNs);
  EXPECT_EQ(fixed.limit_ns(), 0);
}

// Two sides of calls that come one after the other. Each is idle from when it
// has sent until what the other one answers is there.
struct Machine {
  int64_t way_ns;        // of a message, with what its receiver does
  int64_t wake_ns;       // after sleep
  int64_t think_ns = 0;  // of the client, between calls
  int hiccup_every = 0;  // calls; one then takes kHiccupNs longer
};
constexpr int64_t kHiccupNs = 2'000'000;

class IdlePeers {
 public:
  explicit IdlePeers(const Machine& machine) : machine_(machine) {}

  // How long each takes, on average.
  int64_t Call(int times) {
    const int64_t begin_ns = now_ns_;
    for (int i = 0; i < times; ++i) {
      now_ns_ += machine_.think_ns;
      client_.idle_since_ns = now_ns_;
      Hear(server_);
      if (machine_.hiccup_every != 0 && ++calls_ % machine_.hiccup_every == 0) {
        now_ns_ += kHiccupNs;
      }
      server_.idle_since_ns = now_ns_;
      Hear(client_);
    }
    return (now_ns_ - begin_ns) / times;
  }

  // Of all time so far, how much the server was idle and did not sleep.
  double server_spun() const {
    return static_cast<double>(server_.spun_ns) / static_cast<double>(now_ns_);
  }

 private:
  struct Peer {
    IdleSpin spin{absl::Nanoseconds(kShortestNs),
                  absl::Nanoseconds(kLongestNs)};
    int64_t idle_since_ns = 0;
    int64_t spun_ns = 0;
  };

  void Hear(Peer& peer) {
    now_ns_ += machine_.way_ns;
    const int64_t idle_ns = now_ns_ - peer.idle_since_ns;
    peer.spun_ns += std::min(idle_ns, peer.spin.limit_ns());
    if (idle_ns >= peer.spin.limit_ns()) {
      now_ns_ += machine_.wake_ns;
      peer.spin.OnWoken(idle_ns + machine_.wake_ns);
    } else if (peer.spin.is_trying()) {
      peer.spin.OnFound(idle_ns);
    }
  }

  const Machine machine_;
  int64_t now_ns_ = 1;
  int calls_ = 0;
  Peer client_;
  Peer server_;
};

// Asleep both, they take a millisecond, which no spin would outlast.
constexpr Machine kSlowToWake = {.way_ns = 150'000, .wake_ns = 350'000};

TEST(IdlePeersTest, GetOutOfKeepingEachOtherAsleep) {
  IdlePeers peers(kSlowToWake);
  peers.Call(100);
  EXPECT_EQ(peers.Call(100), 2 * kSlowToWake.way_ns);
}

TEST(IdlePeersTest, ThatAreInterruptedStayAwake) {
  Machine machine = kSlowToWake;
  machine.hiccup_every = 20;
  IdlePeers peers(machine);
  peers.Call(100);
  EXPECT_LT(peers.Call(1000), 2 * machine.way_ns +
                                  kHiccupNs / machine.hiccup_every +
                                  2 * machine.wake_ns / 5);
}

TEST(IdlePeersTest, WhoseMessagesTakeLongerThanASpinStayAwakeToo) {
  constexpr Machine kFar = {.way_ns = 250'000, .wake_ns = 700'000};
  IdlePeers peers(kFar);
  peers.Call(100);
  EXPECT_EQ(peers.Call(100), 2 * kFar.way_ns);
}

// It is not for sleeping that the next call is not there yet.
TEST(IdlePeersTest, DoNotSpinForCallsThatComeLate) {
  for (const int64_t think_ns : {500'000, 1'000'000, 3'000'000}) {
    for (const int64_t wake_ns : {5'000, 50'000}) {
      IdlePeers peers(
          {.way_ns = 2'000, .wake_ns = wake_ns, .think_ns = think_ns});
      peers.Call(100'000);
      const double shortest =
          static_cast<double>(kShortestNs) / static_cast<double>(think_ns);
      EXPECT_LT(peers.server_spun(), shortest + 0.01) << think_ns;
    }
  }
}

}  // namespace
}  // namespace rdma
