// Goal: a client's reactors of streams are gRPC's: each Start is answered by
// one reaction, in the order in which things happen, and OnDone is the last,
// however the call goes. Method: reactors that do as a test says, each of which
// holds the rules of reaction_rules.h; blocking services in this process.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "benchmarks/test_pattern.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/generated_code.h"
#include "rpc/rpc.h"
#include "tests/e2e/client_reactors.h"
#include "tests/e2e/device_under_test.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/one_connection.h"
#include "tests/e2e/parcels.h"
#include "tests/e2e/resources.h"

namespace e2e {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

using ReadReactor = Reactor<rpc::ClientReadReactor<Parcel>>;
using WriteReactor = Reactor<rpc::ClientWriteReactor<Parcel>>;
using BidiReactor = Reactor<rpc::ClientBidiReactor<Parcel, Parcel>>;

constexpr size_t kSmall = 100;
constexpr size_t kLarge = 200'000;

class ClientReactorTest : public testing::Test {
 protected:
  ClientReactorTest()
      : service_([this](rpc::ServerContext* context) {
          if (with_metadata_) context->AddInitialMetadata("first", "1");
          context->AddTrailingMetadata("last", "2");
        }),
        ends_(&service_) {}

  void SetUp() override {
    ASSERT_TRUE(ends_.ok());
    stub_ = Parcels::NewStub(ends_.channel());
  }

  std::atomic<bool> with_metadata_{true};
  ParcelService service_;
  OneConnection ends_;
  std::unique_ptr<Parcels::Stub> stub_;
  Parcel request_;
  Parcel response_;
};

// ---- Each kind.

TEST_F(ClientReactorTest, AServerStreamIsRead) {
  for (const size_t bytes : {kSmall, kLarge}) {
    TimedContext context;
    ReadReactor reactor;
    reactor.on_read = [&](bool ok) {
      if (!ok) return;
      EXPECT_EQ(response_.content().data().size(), bytes);
      reactor.Read(&response_);
    };
    request_ = ParcelFor(3, bytes);
    stub_->async()->Download(&context, &request_, &reactor);
    reactor.Read(&response_);
    reactor.Start();
    EXPECT_OK(reactor.Wait());
    EXPECT_THAT(reactor.log(), ElementsAre("metadata", "read", "read", "read",
                                           "no read", "done"));
    EXPECT_EQ(context.GetServerInitialMetadata().count("first"), 1u);
    EXPECT_EQ(context.GetServerTrailingMetadata().count("last"), 1u);
  }
}

TEST_F(ClientReactorTest, AClientStreamIsWritten) {
  for (const size_t bytes : {kSmall, kLarge}) {
    service_.read = 0;
    TimedContext context;
    WriteReactor reactor;
    request_ = ParcelOf(bytes);
    request_.set_response_bytes(static_cast<int32_t>(bytes));
    int left = 2;
    reactor.on_write = [&](bool ok) {
      EXPECT_TRUE(ok);
      left-- > 0 ? reactor.Write(&request_) : reactor.WritesDone();
    };
    reactor.on_writes_done = [&](bool ok) { EXPECT_TRUE(ok); };
    stub_->async()->Upload(&context, &response_, &reactor);
    reactor.Write(&request_);
    reactor.Start();
    EXPECT_OK(reactor.Wait());
    EXPECT_EQ(response_.content().data().size(), bytes);
    EXPECT_EQ(service_.read, 3);
    EXPECT_THAT(reactor.log(), Contains("metadata"));
    EXPECT_THAT(reactor.log(), Contains("write").Times(3));
  }
}

TEST_F(ClientReactorTest, BothSidesTakeTurns) {
  TimedContext context;
  BidiReactor reactor;
  int left = 50;
  reactor.on_write = [&](bool ok) {
    EXPECT_TRUE(ok);
    reactor.Read(&response_);
  };
  reactor.on_read = [&](bool ok) {
    if (!ok) return;
    EXPECT_EQ(response_.content().data().size(), kSmall);
    left-- > 0 ? reactor.Write(&request_) : reactor.WritesDone();
  };
  reactor.on_writes_done = [&](bool ok) {
    EXPECT_TRUE(ok);
    reactor.Read(&response_);
  };
  request_ = ParcelFor(1, kSmall);
  stub_->async()->Chat(&context, &reactor);
  reactor.Write(&request_);
  reactor.Start();
  EXPECT_OK(reactor.Wait());
  EXPECT_EQ(service_.read, 51);
}

TEST_F(ClientReactorTest, AttachmentsGoBesideMessages) {
  // Of the probe's kin, whose stream gives them back.
  class Echo final : public Parcels::Service {
    rpc::Status Chat(rpc::ServerContext*,
                     rpc::ServerReaderWriter<Parcel, Parcel>* stream) override {
      Parcel parcel;
      rpc::BufferChain attachment;
      while (stream->Read(&parcel, &attachment)) {
        stream->Write(parcel, rpc::WriteOptions().set_attachment(
                                  std::exchange(attachment, {})));
      }
      return rpc::Status::OK;
    }
  };
  Echo echo;
  OneConnection ends(&echo);
  ASSERT_TRUE(ends.ok());
  for (const size_t bytes : {size_t{0}, kSmall, kLarge}) {
    const std::string data = benchmarks::TestPattern(bytes, 1);
    TimedContext context;
    BidiReactor reactor;
    rpc::BufferChain attachment;
    reactor.on_read = [&](bool ok) {
      EXPECT_TRUE(ok);
      EXPECT_TRUE(benchmarks::Equals(attachment, data));
      reactor.WritesDone();
    };
    Parcels::NewStub(ends.channel())->async()->Chat(&context, &reactor);
    reactor.Write(&request_, rpc::WriteOptions().set_attachment(
                                 rpc::BufferChain(rpc::Buffer::CopyOf(data))));
    reactor.Read(&response_, &attachment);
    reactor.Start();
    EXPECT_OK(reactor.Wait());
  }
}

// ---- What comes before StartCall.

TEST_F(ClientReactorTest, EverythingCanBeAskedForBefore) {
  TimedContext context;
  BidiReactor reactor;
  request_ = ParcelFor(1, kLarge);
  stub_->async()->Chat(&context, &reactor);
  reactor.WritesDone();
  reactor.Read(&response_);
  reactor.Write(&request_);
  EXPECT_THAT(reactor.log(), IsEmpty());
  EXPECT_EQ(service_.begun, 0);
  reactor.on_read = [&](bool ok) {
    if (ok) reactor.Read(&response_);
  };
  reactor.Start();
  EXPECT_OK(reactor.Wait());
  const std::vector<std::string> log = reactor.log();
  EXPECT_THAT(log, Contains("read").Times(1));
  EXPECT_THAT(log, Contains("no read").Times(1));
  EXPECT_THAT(log, Contains("write").Times(1));
  EXPECT_THAT(log, Contains("writes done").Times(1));
  EXPECT_EQ(log.size(), 6u);
}

TEST_F(ClientReactorTest, AReactorNeedNotStart) {
  for (int i = 0; i < 20; ++i) {
    TimedContext context;
    BidiReactor reactor;
    stub_->async()->Chat(&context, &reactor);
    if (i % 2 == 1) reactor.Write(&request_);
    if (i % 3 == 1) reactor.Read(&response_);
    if (i % 4 == 1) reactor.AddHold();
    if (i % 5 == 1) context.TryCancel();
  }
  BidiReactor unbound;
  EXPECT_THAT(unbound.log(), IsEmpty());
  EXPECT_TRUE(ends_.IsAlive());
  EXPECT_EQ(service_.begun, 0);
}

// ---- The last message.

// ---- Corked.

class CorkedReactorTest : public ClientReactorTest {
 protected:
  void Start() {
    context_.set_initial_metadata_corked(true);
    stub_->async()->Chat(&context_, &reactor_);
    reactor_.Read(&response_);
    reactor_.Start();
  }
  // What was sent before would have come before.
  void ExpectNothingCame() {
    TimedContext context;
    EXPECT_OK(stub_->Unary(&context, request_, &answer_));
    EXPECT_EQ(service_.begun, 1);
    EXPECT_THAT(reactor_.log(), IsEmpty());
  }

  TimedContext context_;
  BidiReactor reactor_;
  Parcel answer_;
};

TEST_F(CorkedReactorTest, BeginsWithTheFirstMessage) {
  Start();
  ExpectNothingCame();
  request_ = ParcelFor(1, kSmall);
  reactor_.on_write = [&](bool ok) {
    EXPECT_TRUE(ok);
    reactor_.WritesDone();
  };
  reactor_.on_read = [&](bool ok) {
    if (ok) reactor_.Read(&response_);
  };
  reactor_.Write(&request_);
  EXPECT_OK(reactor_.Wait());
  EXPECT_EQ(service_.begun, 2);
  EXPECT_EQ(service_.read, 1);
  EXPECT_THAT(reactor_.log(), Contains("read").Times(1));
}

TEST_F(CorkedReactorTest, BeginsWithTheLastMessage) {
  Start();
  ExpectNothingCame();
  reactor_.WriteLast(&request_);
  EXPECT_OK(reactor_.Wait());
  EXPECT_EQ(service_.read, 1);
}

TEST_F(CorkedReactorTest, BeginsWithTheEndOfItsMessages) {
  Start();
  ExpectNothingCame();
  reactor_.WritesDone();
  EXPECT_OK(reactor_.Wait());
  EXPECT_EQ(service_.begun, 2);
  EXPECT_THAT(reactor_.log(), Contains("writes done"));
}

TEST_F(CorkedReactorTest, BeginsAtOnceWithWhatWasWrittenBefore) {
  reactor_.on_write = [&](bool) { reactor_.WritesDone(); };
  context_.set_initial_metadata_corked(true);
  stub_->async()->Chat(&context_, &reactor_);
  reactor_.Write(&request_);
  reactor_.Start();
  EXPECT_OK(reactor_.Wait());
  EXPECT_EQ(service_.read, 1);
}

TEST_F(CorkedReactorTest, MayBeCancelledBeforeItBegins) {
  Start();
  ExpectNothingCame();
  reactor_.Cancel(context_);
  EXPECT_TRUE(HasCode(reactor_.Wait(), rpc::StatusCode::CANCELLED));
  EXPECT_THAT(reactor_.log(),
              UnorderedElementsAre("no metadata", "no read", "done"));
  EXPECT_EQ(service_.begun, 1);
}

TEST_F(CorkedReactorTest, MayBeCancelledBeforeItStarts) {
  context_.TryCancel();
  Start();
  EXPECT_TRUE(HasCode(reactor_.Wait(), rpc::StatusCode::CANCELLED));
  EXPECT_EQ(service_.begun, 0);
}

TEST_F(CorkedReactorTest, EndsAtItsDeadline) {
  context_.set_deadline(absl::Now() + absl::Milliseconds(50));
  Start();
  EXPECT_TRUE(HasCode(reactor_.Wait(), rpc::StatusCode::DEADLINE_EXCEEDED));
  EXPECT_THAT(reactor_.log(),
              UnorderedElementsAre("no metadata", "no read", "done"));
}

// Whichever comes first.
TEST_F(CorkedReactorTest, IsWrittenCancelledAndLateAtOnce) {
  for (int i = 0; i < 200; ++i) {
    TimedContext context;
    context.set_initial_metadata_corked(true);
    context.set_deadline(absl::Now() + absl::Milliseconds(1));
    BidiReactor reactor;
    stub_->async()->Chat(&context, &reactor);
    reactor.AddHold();
    std::thread writer([&] {
      reactor.Write(&request_);
      reactor.Release();
    });
    std::thread canceller([&] { reactor.Cancel(context); });
    reactor.Start();
    writer.join();
    canceller.join();
    EXPECT_FALSE(reactor.Wait().ok());
  }
}

// ---- The last message.

TEST_F(ClientReactorTest, TheLastMessageEndsTheStream) {
  for (const bool before : {false, true}) {
    service_.read = 0;
    TimedContext context;
    WriteReactor reactor;
    stub_->async()->Upload(&context, &response_, &reactor);
    if (before) {
      reactor.WriteLast(&request_);
    } else {
      reactor.Write(&request_);
      reactor.on_write = [&](bool ok) {
        EXPECT_TRUE(ok);
        reactor.on_write = [](bool last_ok) { EXPECT_TRUE(last_ok); };
        reactor.WriteLast(&request_);
      };
    }
    reactor.Start();
    EXPECT_OK(reactor.Wait());
    EXPECT_EQ(service_.read, before ? 1 : 2);
    EXPECT_THAT(reactor.log(), Not(Contains("writes done")));
  }
}

TEST_F(ClientReactorTest, NothingIsWrittenAfterTheLast) {
  for (const bool last : {false, true}) {
    service_.read = 0;
    TimedContext context;
    BidiReactor reactor;
    int refused = 0;
    const auto write_again = [&](bool ok) {
      EXPECT_EQ(ok, refused == 0);
      if (refused++ < 3) reactor.Write(&request_);
    };
    reactor.on_write = reactor.on_writes_done = write_again;
    stub_->async()->Chat(&context, &reactor);
    last ? reactor.WriteLast(&request_) : reactor.WritesDone();
    reactor.Start();
    EXPECT_OK(reactor.Wait());
    EXPECT_THAT(reactor.log(), Contains("no write").Times(3));
    EXPECT_EQ(service_.read, last ? 1 : 0);
  }
}

// ---- Initial metadata.

TEST_F(ClientReactorTest, MetadataComeAloneOrWithTheFirstMessage) {
  for (const bool alone : {true, false}) {
    service_.initial_metadata_alone = alone;
    TimedContext context;
    BidiReactor reactor;
    absl::Notification came;
    reactor.on_metadata = [&](bool ok) {
      EXPECT_TRUE(ok);
      EXPECT_EQ(context.GetServerInitialMetadata().count("first"), 1u);
      if (alone) came.Notify();
    };
    stub_->async()->Chat(&context, &reactor);
    reactor.AddHold();
    reactor.Start();
    if (alone) came.WaitForNotification();
    request_ = ParcelFor(1);
    reactor.WriteLast(&request_);
    reactor.Release();
    EXPECT_OK(reactor.Wait());
    EXPECT_THAT(reactor.log(), Contains("metadata").Times(1));
  }
}

TEST_F(ClientReactorTest, AnErrorThatComesAloneBringsNone) {
  Parcel abort;
  abort.set_end(true);
  abort.set_code(rpc::StatusCode::ABORTED);
  for (const bool with_metadata : {false, true}) {
    with_metadata_ = with_metadata;
    TimedContext context;
    WriteReactor reactor;
    stub_->async()->Upload(&context, &response_, &reactor);
    reactor.Write(&abort);
    reactor.Start();
    EXPECT_TRUE(HasCode(reactor.Wait(), rpc::StatusCode::ABORTED));
    EXPECT_THAT(reactor.log(),
                Contains(with_metadata ? "metadata" : "no metadata"));
    EXPECT_EQ(context.GetServerTrailingMetadata().count("last"), 1u);
  }
}

// ---- Holds.

TEST_F(ClientReactorTest, OnDoneWaitsForHolds) {
  TimedContext context;
  ReadReactor reactor;
  absl::Notification over;
  reactor.on_read = [&](bool ok) {
    ok ? reactor.Read(&response_) : over.Notify();
  };
  request_ = ParcelFor(2);
  stub_->async()->Download(&context, &request_, &reactor);
  reactor.AddHold();
  reactor.AddMultipleHolds(2);
  reactor.Read(&response_);
  reactor.Start();
  over.WaitForNotification();
  reactor.Release();
  // There is one that the call's end does not count.
  absl::Notification again;
  reactor.on_read = [&](bool ok) {
    EXPECT_FALSE(ok);
    again.Notify();
  };
  reactor.Read(&response_);
  again.WaitForNotification();
  EXPECT_FALSE(reactor.is_done());
  std::thread([&] { reactor.Release(); }).join();
  EXPECT_FALSE(reactor.is_done());
  reactor.Release();
  EXPECT_OK(reactor.Wait());
}

TEST_F(ClientReactorTest, AnotherThreadMayWriteWhileTheCallStarts) {
  for (int round = 0; round < 200; ++round) {
    TimedContext context;
    BidiReactor reactor;
    reactor.on_write = [&](bool ok) {
      EXPECT_TRUE(ok);
      reactor.WritesDone();
    };
    request_ = ParcelOf(kSmall);
    stub_->async()->Chat(&context, &reactor);
    reactor.AddHold();
    std::atomic<bool> go{false};
    std::thread writer([&] {
      while (!go) std::this_thread::yield();
      reactor.StartWrite(&request_);
      reactor.RemoveHold();
    });
    go = true;
    reactor.StartCall();
    EXPECT_OK(reactor.Wait());
    writer.join();
    EXPECT_THAT(reactor.log(), Contains("write").Times(1));
  }
}

TEST_F(ClientReactorTest, AHoldMayBeRemovedByAReaction) {
  for (int i = 0; i < 50; ++i) {
    TimedContext context;
    ReadReactor reactor;
    reactor.on_read = [&](bool ok) {
      ok ? reactor.Read(&response_) : reactor.Release();
    };
    request_ = ParcelFor(2);
    stub_->async()->Download(&context, &request_, &reactor);
    reactor.AddHold();
    reactor.Read(&response_);
    reactor.Start();
    EXPECT_OK(reactor.Wait());
    EXPECT_EQ(reactor.log().back(), "done");
  }
}

// Of one that reads, and of one that writes; reactions are one at a time all
// the same.
TEST_F(ClientReactorTest, TwoThreadsMayStart) {
  const int messages = TheDeviceUnderTest().Rounds(500);
  TimedContext context;
  BidiReactor reactor;
  std::atomic<int> reads{0};
  std::atomic<int> writes{0};
  reactor.on_read = [&](bool ok) { reads += ok ? 1 : 1'000'000; };
  reactor.on_write = [&](bool ok) { writes += ok ? 1 : 1'000'000; };
  request_ = ParcelFor(1, kSmall);
  stub_->async()->Chat(&context, &reactor);
  reactor.AddMultipleHolds(2);
  reactor.Start();
  std::thread writing([&] {
    for (int i = 0; i < messages; ++i) {
      reactor.Write(&request_);
      while (writes == i) std::this_thread::yield();
    }
    reactor.WritesDone();
    reactor.Release();
  });
  for (int i = 0; i < messages; ++i) {
    reactor.Read(&response_);
    while (reads == i) std::this_thread::yield();
  }
  reactor.Release();
  writing.join();
  EXPECT_OK(reactor.Wait());
  EXPECT_EQ(reads, messages);
  EXPECT_EQ(writes, messages);
}

}  // namespace
}  // namespace e2e
