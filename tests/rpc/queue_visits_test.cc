// Goal: threads in Next are guests of the transport whose calls were begun
// last, calls say so where it holds, and a transport hears when they go
// elsewhere. Method: transports that note what is asked of them, and answer
// within StartCall, or by the test's thread.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/rpc/echo.rpc.pb.h"
#include "tests/rpc/transport_channel.h"

namespace rpc::testing {
namespace {

// Thread rule: one thread.
class VisitedTransport final : public BareTransport {
 public:
  // What it drives: itself, or what another one does.
  explicit VisitedTransport(const VisitedTransport* other = nullptr)
      : driven_(other == nullptr ? this : other->driven_) {}

  // To this transport.
  const std::shared_ptr<TransportChannel>& channel() {
    if (channel_ == nullptr) {
      channel_ = std::make_shared<TransportChannel>(this);
    }
    return channel_;
  }

  // Of each call.
  std::vector<NextWait> next_waits;
  int visits = 0;
  int visits_ended = 0;

  void Answer() {
    IncomingFrame frame;
    frame.has_message = true;
    frame.end = true;
    CallSink* const sink = std::exchange(sink_, nullptr);
    sink->OnFrame(frame);
    sink->OnClosed({});
  }

  CallHandle StartCall(const CallOptions& options, OutgoingFrame&&,
                       CallSink* sink) override {
    next_waits.push_back(options.next_wait);
    sink_ = sink;
    return CallHandle{next_waits.size()};
  }
  bool Send(CallHandle, OutgoingFrame&&) override { return true; }
  void Release(CallHandle, uint64_t, bool) override {}
  void Cancel(CallHandle, absl::Status) override {}
  void Wait(Event& event) override { Answer(); }
  // What the thread that came drives.
  void WaitAsGuest(Event& event) override {
    ++visits;
    Answer();
  }
  void EndVisits() override { ++visits_ended; }
  const void* driven() const override { return driven_; }

 private:
  const void* const driven_;
  CallSink* sink_ = nullptr;
  std::shared_ptr<TransportChannel> channel_;
};

class QueueVisitsTest : public ::testing::Test {
 protected:
  ~QueueVisitsTest() override {
    queue_.Shutdown();
    EXPECT_FALSE(Next());
  }

  bool Next() {
    void* tag;
    bool ok = false;
    return queue_.Next(&tag, &ok);
  }
  bool Poll() {
    void* tag;
    bool ok = false;
    return queue_.AsyncNext(&tag, &ok, absl::InfinitePast()) ==
           CompletionQueue::GOT_EVENT;
  }

  CompletionQueue queue_;
};

// A call of the queue's that is begun, and ends when it is answered.
struct BegunCall {
  BegunCall(VisitedTransport& transport, CompletionQueue& queue)
      : BegunCall(transport.channel(), queue) {}
  BegunCall(const std::shared_ptr<TransportChannel>& channel,
            CompletionQueue& queue)
      : call(Echo::NewStub(channel)->AsyncSay(&context, SayRequest(), &queue)) {
    call->Finish(&response, &status, nullptr);
  }

  ClientContext context;
  SayResponse response;
  Status status;
  const std::unique_ptr<ClientAsyncResponseReader<SayResponse>> call;
};

// Channels that come one after the other, all in the same place.
class ChannelPlace {
 public:
  std::shared_ptr<TransportChannel> Make(VisitedTransport& transport) {
    return {new (place_) TransportChannel(&transport),
            [](TransportChannel* channel) { channel->~TransportChannel(); }};
  }

 private:
  alignas(TransportChannel) std::byte place_[sizeof(TransportChannel)];
};

using Waits = std::vector<NextWait>;

TEST_F(QueueVisitsTest, CallsAreForGuestsOnceAThreadHasComeToDrive) {
  VisitedTransport transport;
  for (int i = 0; i < 3; ++i) {
    const BegunCall call(transport, queue_);
    EXPECT_TRUE(Next());
  }
  EXPECT_EQ(transport.visits, 3);
  EXPECT_EQ(transport.visits_ended, 0);
  EXPECT_EQ(transport.next_waits, (Waits{NextWait::kUnknown, NextWait::kAsGuest,
                                         NextWait::kAsGuest}));
}

TEST_F(QueueVisitsTest, AChannelIsAnotherOneThoughItIsWhereOneWas) {
  VisitedTransport first;
  VisitedTransport second;
  ChannelPlace place;
  for (VisitedTransport* const each : {&first, &second}) {
    const BegunCall call(place.Make(*each), queue_);
    EXPECT_TRUE(Next());
    EXPECT_EQ(each->visits, 1);
  }
}

TEST_F(QueueVisitsTest, AThreadWithADeadlineIsNone) {
  VisitedTransport transport;
  for (int i = 0; i < 2; ++i) {
    const BegunCall call(transport, queue_);
    EXPECT_FALSE(Poll());
    transport.Answer();
    EXPECT_TRUE(Poll());
  }
  EXPECT_EQ(transport.visits, 0);
  EXPECT_EQ(transport.next_waits,
            (Waits{NextWait::kUnknown, NextWait::kUnknown}));
}

TEST_F(QueueVisitsTest, ADeadlineEndsThem) {
  VisitedTransport transport;
  {
    const BegunCall call(transport, queue_);
    EXPECT_TRUE(Next());
  }
  const BegunCall call(transport, queue_);
  EXPECT_FALSE(Poll());
  EXPECT_EQ(transport.visits_ended, 1);
  transport.Answer();
  EXPECT_TRUE(Poll());
  const BegunCall later(transport, queue_);
  EXPECT_TRUE(Next());
  EXPECT_EQ(transport.next_waits, (Waits{NextWait::kUnknown, NextWait::kAsGuest,
                                         NextWait::kUnknown}));
}

TEST_F(QueueVisitsTest, AnotherTransportEndsThemAtTheFirst) {
  VisitedTransport first;
  VisitedTransport second;
  {
    const BegunCall call(first, queue_);
    EXPECT_TRUE(Next());
  }
  const BegunCall left(first, queue_);
  const BegunCall call(second, queue_);
  EXPECT_EQ(second.next_waits, Waits{NextWait::kUnknown});
  EXPECT_EQ(first.visits_ended, 0);
  EXPECT_TRUE(Next());
  EXPECT_EQ(first.visits_ended, 1);
  EXPECT_EQ(second.visits, 1);
  first.Answer();
  EXPECT_TRUE(Next());
  EXPECT_EQ(second.visits_ended, 0);
}

TEST_F(QueueVisitsTest, TransportsThatAreDrivenTogetherAreAsOne) {
  VisitedTransport first;
  VisitedTransport second(&first);
  for (int i = 0; i < 2; ++i) {
    for (VisitedTransport* const each : {&first, &second}) {
      const BegunCall call(*each, queue_);
      EXPECT_TRUE(Next());
    }
  }
  EXPECT_EQ(first.visits_ended + second.visits_ended, 0);
  EXPECT_EQ(first.next_waits, (Waits{NextWait::kUnknown, NextWait::kAsGuest}));
  EXPECT_EQ(second.next_waits, (Waits{NextWait::kAsGuest, NextWait::kAsGuest}));
}

TEST_F(QueueVisitsTest, OtherQueuesCallsAreNotForThem) {
  VisitedTransport transport;
  {
    const BegunCall call(transport, queue_);
    EXPECT_TRUE(Next());
  }
  CompletionQueue other;
  const BegunCall call(transport, other);
  EXPECT_EQ(transport.next_waits.back(), NextWait::kUnknown);
  transport.Answer();
  void* tag;
  bool ok = false;
  EXPECT_TRUE(other.Next(&tag, &ok));
  other.Shutdown();
  EXPECT_FALSE(other.Next(&tag, &ok));
}

}  // namespace
}  // namespace rpc::testing
