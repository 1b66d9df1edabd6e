// Threads. Queues that may be shared are posted to and polled by several
// threads at once and lose nothing; queues of a thread each, as a program with
// one poller a thread has them, work side by side; and two ends that sleep on
// their channels never miss each other. Method: counts and sequence numbers.
// ibv_alloc_td(3) for the rule of single-threaded queues.
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "tests/conformance/fixture.h"

namespace rdma::conformance {
namespace {

// A time limit that several threads share; each of their loops asks it.
class Limit {
 public:
  explicit Limit(absl::Duration time)
      : end_(std::chrono::steady_clock::now() +
             absl::ToChronoNanoseconds(time)) {}
  bool passed() const { return std::chrono::steady_clock::now() >= end_; }

 private:
  const std::chrono::steady_clock::time_point end_;
};

// Both ends in one process, each driven by a thread of its own.
class TwoThreadsTest : public ConnectedTest {
 protected:
  // The pump stops; each end's thread polls for itself. On one device too, each
  // queue is used by one thread only, which is what the rule asks for.
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ConnectedTest::SetUp());
    for (Side* side : {&client(), &server()}) {
      pump().Unwatch(side->send_cq());
      pump().Unwatch(side->recv_cq());
    }
  }

  // One completion of `cq`, or nothing when the limit passes.
  static std::optional<ibv_wc> Next(ibv_cq* cq, const Limit& limit) {
    ibv_wc wc;
    while (ibv_poll_cq(cq, 1, &wc) == 0) {
      if (limit.passed()) return std::nullopt;
      std::this_thread::yield();
    }
    return wc;
  }

  // The same for an owner that arms, polls once more, and sleeps.
  static std::optional<ibv_wc> NextAsleep(Side& side, ibv_cq* cq,
                                          const Limit& limit) {
    while (!limit.passed()) {
      ibv_wc wc;
      if (ibv_poll_cq(cq, 1, &wc) == 1) return wc;
      if (ibv_req_notify_cq(cq, 0) != 0) return std::nullopt;
      if (ibv_poll_cq(cq, 1, &wc) == 1) return wc;
      // The channel tells of this CQ or of the other one of the side.
      ibv_cq* found = nullptr;
      void* context = nullptr;
      pollfd descriptor = {.fd = side.channel()->fd, .events = POLLIN};
      poll(&descriptor, 1, 1000);
      while (side.device().GetCqEvent(side.channel(), &found, &context) == 0) {
        side.device().AckCqEvents(found, 1);
      }
    }
    return std::nullopt;
  }
};
CONFORMANCE_SUITE(TwoThreadsTest);

// A message there, a message back, each with its round, between two threads.
// `next` waits for a completion of a CQ, awake or asleep. Two receives are
// always posted, so that no message finds its receiver not ready.
class PingPong {
 public:
  using Next = std::function<std::optional<ibv_wc>(Side&, ibv_cq*)>;
  PingPong(uint32_t rounds, Next next) : rounds_(rounds), next_(next) {}

  // Plays one end and returns the rounds that went well.
  uint32_t Play(ibv_qp* qp, Side& side, bool serves) {
    if (PostReceive(qp, {}) != 0 || PostReceive(qp, {}) != 0) return 0;
    for (uint32_t round = 0; round < rounds_; ++round) {
      if (serves && !Send(qp, side, round)) return round;
      const std::optional<ibv_wc> wc = next_(side, side.recv_cq());
      if (!wc.has_value() || wc->status != IBV_WC_SUCCESS ||
          wc->imm_data != htonl(round) || PostReceive(qp, {}) != 0) {
        return round;
      }
      if (!serves && !Send(qp, side, round)) return round;
    }
    return rounds_;
  }

 private:
  // Signaled once in a while, and then waited for.
  bool Send(ibv_qp* qp, Side& side, uint32_t round) {
    const bool signaled = round % 32 == 31;
    WorkRequest request = SendWr(round).Imm(htonl(round)).Inline();
    if (!signaled) request.Unsignaled();
    return Post(qp, request) == 0 &&
           (!signaled || next_(side, side.send_cq()).has_value());
  }

  const uint32_t rounds_;
  const Next next_;
};

TEST_P(TwoThreadsTest, PlayPingPongAwake) {
  const uint32_t rounds = TheProviderUnderTest().many_rounds;
  const Limit limit(pump().patience());
  PingPong game(rounds, [&](Side&, ibv_cq* cq) { return Next(cq, limit); });
  uint32_t answered = 0;
  std::thread other(
      [&] { answered = game.Play(server_qp_, server(), /*serves=*/false); });
  EXPECT_EQ(game.Play(client_qp_, client(), /*serves=*/true), rounds);
  other.join();
  EXPECT_EQ(answered, rounds);
}

TEST_P(TwoThreadsTest, PlayPingPongAsleep) {
  const uint32_t rounds = TheProviderUnderTest().many_rounds / 10;
  const Limit limit(pump().patience());
  PingPong game(rounds, [&](Side& side, ibv_cq* cq) {
    return NextAsleep(side, cq, limit);
  });
  uint32_t answered = 0;
  std::thread other(
      [&] { answered = game.Play(server_qp_, server(), /*serves=*/false); });
  EXPECT_EQ(game.Play(client_qp_, client(), /*serves=*/true), rounds);
  other.join();
  EXPECT_EQ(answered, rounds);
}

// One end reads and writes the other's memory while that one is busy with
// messages to itself.
TEST_P(TwoThreadsTest, OneSidedWorkBesideMessages) {
  const auto rounds =
      static_cast<uint32_t>(std::min(2000, TheProviderUnderTest().many_rounds));
  server_buffer_.Fill(5);
  const Limit limit(pump().patience());
  std::atomic<bool> done{false};
  std::atomic<uint64_t> polls{0};
  std::thread other([&] {
    ibv_wc wc;
    while (!done.load() && !limit.passed()) {
      polls += 1 + ibv_poll_cq(server().recv_cq(), 1, &wc) +
               ibv_poll_cq(server().send_cq(), 1, &wc);
      std::this_thread::yield();
    }
  });
  for (uint32_t round = 0; round < rounds && !HasFailure(); ++round) {
    const size_t offset = (round * 37) % 30000;
    EXPECT_EQ(0, Post(client_qp_, ReadWr(round, server_buffer_.addr(offset),
                                         server_buffer_.rkey())
                                      .Sge(client_buffer_.sge(0, 3000))));
    const std::optional<ibv_wc> wc = Next(client().send_cq(), limit);
    EXPECT_TRUE(wc.has_value());
    if (!wc.has_value()) break;
    EXPECT_THAT(*wc, Succeeded(round, IBV_WC_RDMA_READ));
    EXPECT_TRUE(client_buffer_.bytes(0, 3000) ==
                server_buffer_.bytes(offset, 3000));
  }
  done = true;
  other.join();
  EXPECT_GT(polls.load(), 0u);
}

// Objects that several threads use at once: only where the device was opened
// for that.
class SharedQueuesTest : public ConnectedTest {
 protected:
  static constexpr uint32_t kThreads = 3;
  // Of each thread.
  const uint32_t messages_ = TheProviderUnderTest().many_rounds / 6;

  LinkOptions Options() override {
    return {.client = {.max_send_wr = 256}, .server = {.max_recv_wr = 256}};
  }
};
INSTANTIATE_TEST_SUITE_P(
    Verbs, SharedQueuesTest,
    testing::Values(Variant{.name = "SharedQueues",
                            .single_threaded_queues = false},
                    Variant{.name = "SharedQueuesOneDevice",
                            .one_device = true,
                            .single_threaded_queues = false}),
    [](const testing::TestParamInfo<Variant>& info) {
      return info.param.name;
    });

// Several threads post to one QP while another polls its CQ and yet another
// receives. Each thread's messages arrive once and in its order.
TEST_P(SharedQueuesTest, ManyThreadsPostToOneQp) {
  pump().Unwatch(client().send_cq());
  pump().Unwatch(server().recv_cq());
  const Limit limit(pump().patience());
  std::atomic<uint32_t> completed{0};
  std::atomic<bool> failed{false};
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 256; ++i) {
    ASSERT_EQ(0, PostReceive(server_qp_, {.wr_id = i}));
  }
  for (uint32_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint32_t i = 0; i < messages_ && !failed; ++i) {
        WorkRequest request = SendWr(i).Imm(htonl(thread << 24 | i)).Inline();
        int error;
        while ((error = Post(client_qp_, request)) == ENOMEM &&
               !limit.passed()) {
          std::this_thread::yield();
        }
        if (error != 0) failed = true;
      }
    });
  }
  threads.emplace_back([&] {
    while (completed < kThreads * messages_ && !failed) {
      ibv_wc wc[8];
      const int count = ibv_poll_cq(client().send_cq(), 8, wc);
      if (count < 0 || limit.passed()) failed = true;
      for (int i = 0; i < count; ++i) {
        if (wc[i].status != IBV_WC_SUCCESS) failed = true;
      }
      completed += std::max(count, 0);
      if (count == 0) std::this_thread::yield();
    }
  });
  std::map<uint32_t, uint32_t> next;
  for (uint32_t received = 0; received < kThreads * messages_ && !failed;) {
    ibv_wc wc;
    if (ibv_poll_cq(server().recv_cq(), 1, &wc) == 0) {
      if (limit.passed()) failed = true;
      std::this_thread::yield();
      continue;
    }
    const uint32_t imm = ntohl(wc.imm_data);
    if (wc.status != IBV_WC_SUCCESS || (imm & 0xffffff) != next[imm >> 24]++ ||
        PostReceive(server_qp_, {.wr_id = 0}) != 0) {
      failed = true;
    }
    ++received;
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(failed);
  EXPECT_EQ(completed, kThreads * messages_);
  for (uint32_t thread = 0; thread < kThreads; ++thread) {
    EXPECT_EQ(next[thread], messages_);
  }
}

// PDs, MRs and windows are anybody's, whatever the queues are.
class SharedObjectsTest : public ConformanceTest {};
CONFORMANCE_SUITE(SharedObjectsTest);

TEST_P(SharedObjectsTest, ManyThreadsRegisterMemory) {
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&] {
      Device& device = client().device();
      for (int i = 0; i < 100; ++i) {
        void* memory = device.AllocateMemory(8192, MemoryUse::kLocal);
        if (memory == nullptr) {
          ++failures;
          return;
        }
        ibv_pd* pd = device.AllocPd();
        ibv_mr* mr = device.RegMr(pd, memory, 8192, IBV_ACCESS_LOCAL_WRITE);
        if (mr == nullptr || device.DeregMr(mr) != 0) ++failures;
        if (pd == nullptr || device.DeallocPd(pd) != 0) ++failures;
        device.FreeMemory(memory, 8192);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
}

}  // namespace
}  // namespace rdma::conformance
