// Goal: a server that is killed under load, again and again, costs each call in
// flight a status within its deadline and nothing else: the client reaches the
// next server, and holds no more of the system at the end than at the start.
// Method: client threads with small and large calls of both kinds against a
// server process that gets SIGKILL at moments spread over a few milliseconds,
// and is started anew on the same port.
#include <atomic>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/config.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/peer_process.h"
#include "tests/e2e/resources.h"

namespace e2e {
namespace {

#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
constexpr int kKills = 25;  // each start of a server costs a second here
#else
const int kKills = TheDeviceUnderTest().Rounds(100);
#endif
constexpr absl::Duration kDeadline = absl::Seconds(2);
// Of two busy CPUs, on which attachments are made and compared, too. A call
// that nobody ends lasts until keepalive's 30 s.
constexpr absl::Duration kSlack = absl::Seconds(8);
constexpr uint64_t kBudgetBytes = uint64_t{128} << 20;

Arguments ClientArguments() {
  Arguments arguments = QuickReconnect();
  arguments["verbena.memory_budget_bytes"] = kBudgetBytes;
  return arguments;
}

// What the calls of all threads came to. Thread-safe.
class Tally {
 public:
  void Note(const rpc::Status& status, absl::Duration taken) {
    absl::MutexLock lock(&mutex_);
    longest_ = std::max(longest_, taken);
    if (status.ok()) {
      ++succeeded_;
    } else if (status.error_code() == rpc::StatusCode::UNAVAILABLE ||
               status.error_code() == rpc::StatusCode::DEADLINE_EXCEEDED) {
      ++failed_;
    } else {
      unexpected_ = status.ToString();
    }
  }

  uint64_t succeeded() const {
    absl::MutexLock lock(&mutex_);
    return succeeded_;
  }

  void Check() const {
    absl::MutexLock lock(&mutex_);
    EXPECT_EQ(unexpected_, "");
    EXPECT_LT(longest_, kDeadline + kSlack);
    // Otherwise the servers did not die under load.
    EXPECT_GT(failed_, static_cast<uint64_t>(kKills) / 2);
    testing::Test::RecordProperty("calls", absl::StrCat(succeeded_));
    testing::Test::RecordProperty("failed_calls", absl::StrCat(failed_));
    testing::Test::RecordProperty("longest_call",
                                  absl::FormatDuration(longest_));
  }

 private:
  mutable absl::Mutex mutex_;
  uint64_t succeeded_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t failed_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Duration longest_ ABSL_GUARDED_BY(mutex_);
  std::string unexpected_ ABSL_GUARDED_BY(mutex_);
};

// Calls of one kind until `stop`.
void MakeLoad(const Client& client, int kind, const std::atomic<bool>& stop,
              Tally& tally) {
  while (!stop.load()) {
    const absl::Time start = absl::Now();
    rpc::Status status;
    switch (kind) {
      case 0:
        status = client.Echo(64, 0, kDeadline);
        break;
      case 1:
        status = client.Echo(100'000, 10, kDeadline);
        break;
      case 2:
        status = client.Consume(10, 4 << 20, kDeadline);
        break;
      default:
        status = client.Produce(200'000, 4 << 20, kDeadline);
        break;
    }
    tally.Note(status, absl::Now() - start);
  }
}

// Kills `server` a moment after it answered, and starts it again, kKills times.
void KillAgainAndAgain(PeerProcess& server, const Tally& tally) {
  constexpr uint64_t kSeed = 100;
  std::mt19937_64 random(kSeed);
  const std::string address = server.address();
  for (int i = 0; i < kKills; ++i) {
    const uint64_t before = tally.succeeded();
    ASSERT_TRUE(Eventually([&] { return tally.succeeded() > before + 4; }))
        << "no call got through to server " << i;
    absl::SleepFor(absl::Microseconds(random() % 5000));
    server.Kill();
    server = PeerProcess::Serve({}, address);
    ASSERT_TRUE(server.ok()) << server.address();
  }
}

void KillServersUnderLoad() {
  PeerProcess server = PeerProcess::Serve({}, ServerUri(PortToComeBackTo()));
  ASSERT_TRUE(server.ok()) << server.address();
  const Client client(server.address(), ClientArguments());
  Tally tally;
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int kind = 0; kind < 4; ++kind) {
    threads.emplace_back([&, kind] { MakeLoad(client, kind, stop, tally); });
  }
  KillAgainAndAgain(server, tally);
  stop = true;
  for (std::thread& thread : threads) thread.join();
  tally.Check();

  // All memory that was registered for calls is free again: the whole budget
  // can be had in pieces.
  std::vector<rpc::Buffer> pieces;
  constexpr uint64_t kPieceBytes = 8 << 20;
  while (pieces.size() < kBudgetBytes / kPieceBytes - 4) {
    absl::StatusOr<rpc::Buffer> piece =
        client.channel().AllocateBuffer(kPieceBytes);
    ASSERT_TRUE(piece.ok()) << piece.status() << " after " << pieces.size();
    pieces.push_back(*std::move(piece));
  }
  pieces.clear();
  // It may still be backing off from the last server's end.
  EXPECT_TRUE(
      client.channel().WaitForConnected(absl::Now() + absl::Seconds(20)));
  EXPECT_OK(client.Echo(100'000, 1 << 20));
}

TEST(KillTest, EveryCallEndsInTimeAndNothingIsLeft) {
  // A client that came and went: what the process keeps for good is there.
  {
    const PeerProcess server = PeerProcess::Serve();
    ASSERT_TRUE(server.ok()) << server.address();
    EXPECT_OK(Client(server.address(), ClientArguments()).Echo(64, 4 << 20));
  }
  Resources before = Resources::Now();
  ASSERT_TRUE(Eventually([&] {
    const Resources now = Resources::Now();
    return std::exchange(before, now) == now;
  }));
  KillServersUnderLoad();
  EXPECT_TRUE(Eventually([&] { return Resources::Now() == before; }))
      << Resources::Now() << "\nbefore: " << before;
}

}  // namespace
}  // namespace e2e
