#include "tests/rpc/queue_events.h"

#include "absl/time/clock.h"

namespace rpc::testing {
namespace {

// So that a test that fails ends.
constexpr absl::Duration kTimeout = absl::Seconds(60);

}  // namespace

QueueEvents::QueueEvents()
    : own_(std::make_unique<CompletionQueue>()), queue_(*own_) {}

QueueEvents::~QueueEvents() {
  if (::testing::Test::HasFailure()) {
    // Operations refer to what was on the test's stack.
    static_cast<void>(own_.release());
    return;
  }
  if (own_ == nullptr) {
    EXPECT_TRUE(NothingCame());
    return;
  }
  own_->Shutdown();
  EXPECT_TRUE(IsOver());
}

::testing::AssertionResult QueueEvents::Comes(int number, bool ok) {
  bool came_ok = false;
  ::testing::AssertionResult result = Get(number, &came_ok);
  if (result && came_ok != ok) {
    return ::testing::AssertionFailure()
           << "event " << number << " came with ok " << came_ok;
  }
  return result;
}

::testing::AssertionResult QueueEvents::Get(int number, bool* ok) {
  const absl::Duration longest =
      own_ != nullptr ? absl::InfiniteDuration() : kTimeout;
  if (!HasCome(number, longest)) {
    return ::testing::AssertionFailure() << "event " << number << " never came";
  }
  const auto found = kept_.find(number);
  *ok = found->second;
  kept_.erase(found);
  return ::testing::AssertionSuccess() << "event " << number << " came";
}

bool QueueEvents::HasCome(int number, absl::Duration wait) {
  const absl::Time deadline = absl::Now() + wait;
  while (kept_.find(number) == kept_.end()) {
    if (!TakeOne(deadline)) return false;
  }
  return true;
}

::testing::AssertionResult QueueEvents::NothingCame() {
  while (TakeOne(absl::InfinitePast())) {
  }
  if (kept_.empty()) return ::testing::AssertionSuccess() << "nothing came";
  return ::testing::AssertionFailure()
         << "event " << kept_.begin()->first << " came with ok "
         << kept_.begin()->second;
}

::testing::AssertionResult QueueEvents::IsOver() {
  const absl::Time deadline = absl::Now() + kTimeout;
  while (TakeOne(deadline)) {
  }
  ::testing::AssertionResult nothing = NothingCame();
  if (!nothing || over_) return nothing;
  return ::testing::AssertionFailure() << "operations are under way";
}

bool QueueEvents::TakeOne(absl::Time deadline) {
  void* tag;
  bool ok;
  switch (queue_.AsyncNext(&tag, &ok, deadline)) {
    case CompletionQueue::GOT_EVENT:
      break;
    case CompletionQueue::SHUTDOWN:
      over_ = true;
      return false;
    case CompletionQueue::TIMEOUT:
      return false;
  }
  const int number = static_cast<int>(reinterpret_cast<intptr_t>(tag));
  EXPECT_TRUE(kept_.emplace(number, ok).second)
      << "event " << number << " came twice";
  return true;
}

}  // namespace rpc::testing
