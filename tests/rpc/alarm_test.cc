// Goal: alarms go off at their time and not before, say whether they were
// cancelled, and may be destroyed, moved and set again at any time.
// Method: alarms of a few milliseconds, and of hours where they are cancelled.
#include "rpc/alarm.h"

#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rpc/completion_queue.h"

namespace rpc {
namespace {

constexpr absl::Duration kSoon = absl::Milliseconds(20);
constexpr absl::Duration kNever = absl::Hours(10);

struct Event {
  void* tag = nullptr;
  bool ok = false;
};

Event Next(CompletionQueue& queue) {
  Event event;
  EXPECT_TRUE(queue.Next(&event.tag, &event.ok));
  return event;
}

TEST(AlarmTest, MayBeSetAsItIsMade) {
  CompletionQueue queue;
  int tag = 0;
  const absl::Time time = absl::Now() + kSoon;
  const Alarm alarm(&queue, time, &tag);
  const Event event = Next(queue);
  EXPECT_TRUE(event.ok);
  EXPECT_EQ(event.tag, &tag);
  EXPECT_GE(absl::Now(), time);
}

TEST(AlarmTest, GivesAnEventAtItsTime) {
  CompletionQueue queue;
  Alarm alarm;
  int tag = 0;
  const absl::Time time = absl::Now() + kSoon;
  alarm.Set(&queue, time, &tag);
  const Event event = Next(queue);
  EXPECT_GE(absl::Now(), time);
  EXPECT_EQ(event.tag, &tag);
  EXPECT_TRUE(event.ok);
}

TEST(AlarmTest, ThePastIsNow) {
  CompletionQueue queue;
  Alarm alarm;
  alarm.Set(&queue, std::chrono::system_clock::now() - std::chrono::hours(1),
            nullptr);
  EXPECT_TRUE(Next(queue).ok);
}

TEST(AlarmTest, TheEarlierOneComesFirstWhicheverWasSetFirst) {
  CompletionQueue queue;
  int early_tag = 0;
  int late_tag = 0;
  Alarm late;
  Alarm early;
  const absl::Time now = absl::Now();
  late.Set(&queue, now + 2 * kSoon, &late_tag);
  early.Set(&queue, now + kSoon, &early_tag);
  EXPECT_EQ(Next(queue).tag, &early_tag);
  EXPECT_EQ(Next(queue).tag, &late_tag);
}

TEST(AlarmTest, CancelledItSaysSoAtOnce) {
  CompletionQueue queue;
  Alarm alarm;
  alarm.Set(&queue, absl::Now() + kNever, nullptr);
  alarm.Cancel();
  EXPECT_FALSE(Next(queue).ok);
  alarm.Cancel();
  queue.Shutdown();
  Event event;
  EXPECT_FALSE(queue.Next(&event.tag, &event.ok)) << "one event only";
}

TEST(AlarmTest, DestroyedItIsCancelled) {
  CompletionQueue queue;
  std::make_unique<Alarm>()->Set(&queue, absl::Now() + kNever, nullptr);
  EXPECT_FALSE(Next(queue).ok);
}

TEST(AlarmTest, MayBeSetAgain) {
  CompletionQueue queue;
  Alarm alarm;
  int first = 0;
  int second = 0;
  alarm.Set(&queue, absl::Now(), &first);
  EXPECT_EQ(Next(queue).tag, &first);
  alarm.Set(&queue, absl::Now() + kNever, &first);
  alarm.Set(&queue, absl::Now(), &second);
  for (int i = 0; i < 2; ++i) {
    const Event event = Next(queue);
    EXPECT_EQ(event.ok, event.tag == &second);
  }
}

TEST(AlarmTest, CallsAFunction) {
  absl::Notification done;
  bool result = false;
  const absl::Time time = absl::Now() + kSoon;
  Alarm alarm;
  alarm.Set(time, [&](bool ok) {
    result = ok;
    done.Notify();
  });
  done.WaitForNotification();
  EXPECT_TRUE(result);
  EXPECT_GE(absl::Now(), time);
}

TEST(AlarmTest, AFunctionMayDestroyItsAlarmOrSetIt) {
  absl::Notification done;
  auto alarm = std::make_shared<std::unique_ptr<Alarm>>(new Alarm());
  (*alarm)->Set(absl::Now() + kSoon, [&done, alarm](bool) {
    (*alarm)->Set(absl::Now(), [&done, alarm](bool ok) {
      alarm->reset();
      EXPECT_TRUE(ok);
      done.Notify();
    });
  });
  done.WaitForNotification();
}

TEST(AlarmTest, CancelledFunctionsHearOfIt) {
  absl::Notification done;
  Alarm alarm;
  alarm.Set(absl::Now() + kNever, [&](bool ok) {
    EXPECT_FALSE(ok);
    done.Notify();
  });
  Alarm moved = std::move(alarm);
  moved.Cancel();
  done.WaitForNotification();
}

TEST(AlarmTest, CancelAndTimeMayMeet) {
  CompletionQueue queue;
  constexpr int kAlarms = 2'000;
  std::vector<Alarm> alarms(kAlarms);
  std::thread canceller;
  const absl::Time now = absl::Now();
  for (int i = 0; i < kAlarms; ++i) {
    alarms[static_cast<size_t>(i)].Set(&queue, now + absl::Microseconds(10 * i),
                                       nullptr);
  }
  canceller = std::thread([&] {
    for (Alarm& alarm : alarms) alarm.Cancel();
  });
  for (int i = 0; i < kAlarms; ++i) Next(queue);
  canceller.join();
  queue.Shutdown();
  Event event;
  EXPECT_FALSE(queue.Next(&event.tag, &event.ok)) << "one event each";
}

}  // namespace
}  // namespace rpc
