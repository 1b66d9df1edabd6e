// Goal: 10,000 streams at a time on one connection, one of which is never read:
// the others run at the speed that they have without it.
// Method: a server of reactors in this process, and as many reactors; rounds in
// which each stream sends a message and gets it back, timed in turn without and
// with a stream whose reader does nothing while its writer always has more.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/e2e/device_under_test.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/resources.h"
#include "tests/e2e/streams.rpc.pb.h"
#include "tests/e2e/streams_services.h"

namespace e2e {
namespace {

constexpr int kStreams = 10'000;

// A chat that waits to be told to take its turn.
class Chatter final : public rpc::ClientBidiReactor<Item, Item> {
 public:
  Chatter(Streams::Stub* stub, int64_t number, absl::BlockingCounter* done)
      : done_(*done) {
    context_.set_deadline(absl::Now() + absl::Minutes(5));
    item_.set_number(number);
    stub->async()->Chat(&context_, this);
    AddHold();
    StartCall();
  }

  // Counts `turn` down when the message is back.
  void TakeTurn(absl::BlockingCounter* turn) {
    turn_ = turn;
    StartRead(&answer_);
    StartWrite(&item_);
  }
  void End() {
    StartWritesDone();
    RemoveHold();
  }

  void OnReadDone(bool ok) override {
    if (!ok || answer_.number() != item_.number()) right_ = false;
    turn_->DecrementCount();
  }
  void OnDone(const rpc::Status& status) override {
    if (!status.ok()) right_ = false;
    done_.DecrementCount();
  }

  // Every answer was the message, and the status OK.
  bool right() const { return right_; }

 private:
  rpc::ClientContext context_;
  Item item_;
  Item answer_;
  absl::BlockingCounter& done_;
  absl::BlockingCounter* turn_ = nullptr;
  std::atomic<bool> right_{true};
};

class Crowd {
 public:
  explicit Crowd(Streams::Stub* stub) : done_(kStreams) {
    for (int64_t i = 0; i < kStreams; ++i) {
      chatters_.push_back(std::make_unique<Chatter>(stub, i, &done_));
    }
  }
  ~Crowd() {
    for (const auto& chatter : chatters_) chatter->End();
    done_.Wait();
    for (const auto& chatter : chatters_) EXPECT_TRUE(chatter->right());
  }

  // All of them at once.
  absl::Duration TakeTurns() {
    const absl::Time start = absl::Now();
    absl::BlockingCounter turn(kStreams);
    for (const auto& chatter : chatters_) chatter->TakeTurn(&turn);
    turn.Wait();
    return absl::Now() - start;
  }

 private:
  absl::BlockingCounter done_;
  std::vector<std::unique_ptr<Chatter>> chatters_;
};

absl::Duration Median(std::vector<absl::Duration> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

TEST(ManyStreamsTest, OneThatIsNeverReadDoesNotSlowTheOthers) {
  StreamsProgress progress;
  const auto streams = ServeStreams(Api::kCallback, &progress);
  Server server({}, ServerUri(), &streams->service());
  ASSERT_TRUE(server.ok()) << server.status();
  const auto stub = Streams::NewStub(Client(server.address()).shared_channel());
  {
    Crowd crowd(stub.get());
    crowd.TakeTurns();
    EXPECT_EQ(progress.chats, kStreams);
    std::vector<absl::Duration> without;
    std::vector<absl::Duration> with;
    for (int round = 0; round < 5; ++round) {
      without.push_back(crowd.TakeTurns());
      rpc::ClientContext context;
      Order order;
      order.set_count(1'000'000'000);
      order.set_bytes(1'000);
      const auto unread = stub->Count(&context, order);
      unread->WaitForInitialMetadata();
      with.push_back(crowd.TakeTurns());
      context.TryCancel();
      EXPECT_FALSE(unread->Finish().ok());
    }
    // 64 KiB of window for each unread stream.
    EXPECT_LE(progress.written, 5 * 70);
    const double slower = absl::FDivDuration(Median(with), Median(without));
    RecordProperty(
        "messages_a_second",
        static_cast<int>(kStreams / absl::ToDoubleSeconds(Median(with))));
    RecordProperty("percent_of_the_time_without",
                   static_cast<int>(100 * slower));
    EXPECT_LT(slower, 2) << absl::FormatDuration(Median(with)) << " and "
                         << absl::FormatDuration(Median(without));
  }
  EXPECT_TRUE(Eventually([&] { return progress.chats == 0; }));
}

}  // namespace
}  // namespace e2e
