// Takes the events of a completion queue as a test asks for them: by their
// tags, which are numbers, and not in the order in which they come.
//
//   QueueEvents events;
//   call->Finish(&response, &status, Tag(1));
//   EXPECT_TRUE(events.Comes(1));
//
// A queue of its own is for calls that end: it waits for their events without
// a deadline, as programs do, and so drives their transport.
//
// Thread rule: one thread at a time.
#ifndef VERBENA_TESTS_RPC_QUEUE_EVENTS_H_
#define VERBENA_TESTS_RPC_QUEUE_EVENTS_H_

#include <cstdint>
#include <map>
#include <memory>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"

namespace rpc::testing {

inline void* Tag(int number) {
  return reinterpret_cast<void*>(static_cast<intptr_t>(number));
}

class QueueEvents {
 public:
  // Of a queue of its own.
  QueueEvents();
  // Of somebody's, which must live longer.
  explicit QueueEvents(CompletionQueue* queue) : queue_(*queue) {}
  // Ends the queue of its own. Fails the test where events are left that it did
  // not ask for; one that failed already may leave any, and the queue stays.
  ~QueueEvents();

  CompletionQueue* queue() { return &queue_; }

  // Whether the event of this tag comes, and with this `ok`.
  ::testing::AssertionResult Comes(int number, bool ok = true);
  // The same, whatever its `ok`, which is put into `*ok`.
  ::testing::AssertionResult Get(int number, bool* ok);
  // Whether this event has come, or does so within a while: for what may well
  // not happen.
  bool HasCome(int number, absl::Duration wait);
  // Whether no event is there that was not asked for.
  ::testing::AssertionResult NothingCame();
  // Whether the queue, which was shut down, gives no further event.
  ::testing::AssertionResult IsOver();

 private:
  // Takes one event. False: there is none by then.
  bool TakeOne(absl::Time deadline);

  std::unique_ptr<CompletionQueue> own_;  // null: somebody's
  CompletionQueue& queue_;
  std::map<int, bool> kept_;  // events that came and were not asked for
  bool over_ = false;
};

}  // namespace rpc::testing

#endif  // VERBENA_TESTS_RPC_QUEUE_EVENTS_H_
