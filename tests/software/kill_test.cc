// Goal: a peer may die at any instruction, and the survivor loses nothing but
// the connection: every posted work request completes, no descriptor and no
// mapping stays, the next peer is served. Method: a child process that sends,
// reads and writes without end is killed after a random time, many times over;
// the seed is printed with a failure, and KILL_TEST_SEED replays it.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <set>

#include "gtest/gtest.h"
#include "tests/software/endpoint.h"

namespace rdma::soft {
namespace {

constexpr uint32_t kMessageBytes = 3000;  // described, not inline
constexpr uint32_t kBulkBytes = 400 << 10;

struct Offer {
  uint64_t address;
  uint32_t rkey;
};

// Keeps SENDs, READs and WRITEs under way until it is killed.
[[noreturn]] void RunChild(const SocketAddress& address, const Offer& target) {
  alarm(60);
  Endpoint self;
  ibv_qp* const qp = self.Connect(address);
  if (!self.Await(CmEvent::Type::kEstablished)) _exit(1);
  // The survivor copies a part of what is read into this.
  auto* const joint = static_cast<char*>(
      self.device().AllocateMemory(kBulkBytes, MemoryUse::kJointReads));
  ibv_mr* const joint_mr =
      self.device().RegMr(self.pd(), joint, kBulkBytes, IBV_ACCESS_LOCAL_WRITE);
  if (joint_mr == nullptr) _exit(1);
  const ibv_sge joint_sge = {reinterpret_cast<uint64_t>(joint), kBulkBytes,
                             joint_mr->lkey};
  int outstanding = 0;
  for (uint64_t id = 0;; ++id) {
    while (outstanding > 20) {
      if (!self.AwaitCompletion()) _exit(1);
      --outstanding;
    }
    int error;
    switch (id % 5) {
      case 0:
        error = self.PostRead(qp, id, self.Sge(0, kBulkBytes), target.address,
                              target.rkey);
        break;
      case 4:
        error = self.PostRead(qp, id, joint_sge, target.address, target.rkey);
        break;
      case 1:
        error = self.PostWrite(qp, id, self.Sge(0, kBulkBytes), target.address,
                               target.rkey);
        break;
      case 2:
        error = self.PostSend(qp, id, self.Sge(0, kMessageBytes));
        break;
      default:
        error = self.PostSend(qp, id, self.Sge(0, 64),
                              IBV_SEND_SIGNALED | IBV_SEND_INLINE);
        break;
    }
    if (error != 0) _exit(1);
    ++outstanding;
  }
}

uint64_t Seed() {
  const char* const given = std::getenv("KILL_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10)
                          : std::random_device()();
}

TEST(KillTest, SurvivesAPeersDeathAtAnyMoment) {
  const uint64_t seed = Seed();
  SCOPED_TRACE(testing::Message() << "replay with KILL_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  Endpoint survivor;
  const SocketAddress address = survivor.Listen();
  const Offer offer = {reinterpret_cast<uint64_t>(survivor.buffer()),
                       survivor.mr()->rkey};
  int descriptors = 0;
  int mappings = 0;
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round);
    const pid_t child = fork();
    if (child == 0) RunChild(address, offer);
    ibv_qp* const qp = survivor.Accept();
    ASSERT_NE(qp, nullptr);
    std::set<uint64_t> receives;
    uint64_t next_receive = 0;
    const auto post_receive = [&] {
      receives.insert(next_receive);
      return survivor.PostReceive(qp, next_receive++,
                                  survivor.Sge(512 << 10, 4096));
    };
    for (uint32_t i = 0; i < Endpoint::kDepth; ++i) {
      ASSERT_EQ(post_receive(), 0);
    }
    const auto kill_at = std::chrono::steady_clock::now() +
                         std::chrono::microseconds(random() % 20'000);
    bool killed = false;
    bool failed = false;
    std::optional<CmEvent> gone;
    ASSERT_TRUE(Until(
        [&] { return gone.has_value() && receives.empty(); },
        [&] {
          if (!killed && std::chrono::steady_clock::now() > kill_at) {
            killed = true;
            kill(child, SIGKILL);
          }
          ibv_wc completions[16];
          const int count = ibv_poll_cq(survivor.cq(), 16, completions);
          for (int i = 0; i < count; ++i) {
            EXPECT_EQ(receives.erase(completions[i].wr_id), 1u);
            // In order: what arrived, then flushes.
            EXPECT_FALSE(failed && completions[i].status == IBV_WC_SUCCESS);
            failed = failed || completions[i].status != IBV_WC_SUCCESS;
            if (!failed) {
              EXPECT_EQ(post_receive(), 0);
            }
          }
          const auto event = survivor.manager().GetEvent();
          if (event && event->type == CmEvent::Type::kDisconnected) {
            gone = event;
          }
        }));
    EXPECT_EQ(qp->state, IBV_QPS_ERR);
    survivor.DestroyQp(qp);
    survivor.manager().Destroy(gone->id);
    waitpid(child, nullptr, 0);
    if (round == 0) {
      descriptors = CountDescriptors();
      mappings = CountMappings();
    }
    EXPECT_EQ(CountDescriptors(), descriptors);
    EXPECT_EQ(CountMappings(), mappings);
  }
}

}  // namespace
}  // namespace rdma::soft
