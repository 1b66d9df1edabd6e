// Goal: a server's reactor hears of its call's end as gRPC's does, however the
// call ends: OnCancel where nobody waits any more, an answer to everything that
// was started, OnDone once and last, and not before Finish; a second Finish is
// left out. Method: as server_reactor_test.
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/e2e/device_under_test.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/one_connection.h"
#include "tests/e2e/parcels.h"
#include "tests/e2e/resources.h"
#include "tests/e2e/server_reactors.h"

namespace e2e {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;
using testing::UnorderedElementsAre;

// A stream's window holds one of them.
constexpr size_t kLarge = 200'000;

using Context = rpc::CallbackServerContext;

const rpc::Status& First() {
  static const rpc::Status* const status =
      new rpc::Status(rpc::StatusCode::ABORTED, "the first");
  return *status;
}
const rpc::Status& Second() {
  static const rpc::Status* const status =
      new rpc::Status(rpc::StatusCode::DATA_LOSS, "the second");
  return *status;
}

class ServerReactorEndsTest : public testing::Test {
 protected:
  ServerReactorEndsTest() : ends_(&service_) {}

  void SetUp() override {
    ASSERT_TRUE(ends_.ok());
    stub_ = Parcels::NewStub(ends_.channel());
  }

  // The next Chat's handler does `first` and returns `reactor`.
  template <class First>
  void Serve(ServerBidi& reactor, First first) {
    begun_.emplace();
    service_.chat = [this, &reactor, first](Context*) {
      first();
      begun_->Notify();
      return &reactor;
    };
  }

  ReactorService service_;
  OneConnection ends_;
  std::unique_ptr<Parcels::Stub> stub_;
  std::optional<absl::Notification> begun_;
  Parcel request_;
  Parcel response_;
};

// ---- Finish, twice.

TEST_F(ServerReactorEndsTest, TheFirstFinishCountsBeforeTheHandlerReturns) {
  for (const bool with_message : {false, true}) {
    ServerBidi reactor;
    Serve(reactor, [&] {
      reactor.End(First());
      with_message ? reactor.WriteAndFinish(&response_, Second())
                   : reactor.End(Second());
    });
    TimedContext context;
    const auto stream = stub_->Chat(&context);
    EXPECT_FALSE(stream->Read(&response_));
    EXPECT_EQ(stream->Finish().error_message(), "the first");
    reactor.Wait();
    EXPECT_THAT(reactor.log(), ElementsAre("done"));
  }
}

TEST_F(ServerReactorEndsTest, TheFirstFinishCountsAfterTheHandlerReturned) {
  for (const bool with_message : {false, true}) {
    ServerBidi reactor;
    reactor.on_read = [&](bool ok) {
      EXPECT_TRUE(ok);
      reactor.End(First());
      with_message ? reactor.WriteAndFinish(&response_, Second())
                   : reactor.End(Second());
    };
    Serve(reactor, [&] { reactor.Read(&request_); });
    TimedContext context;
    const auto stream = stub_->Chat(&context);
    EXPECT_TRUE(stream->Write(Parcel()));
    EXPECT_FALSE(stream->Read(&response_));
    EXPECT_EQ(stream->Finish().error_message(), "the first");
    reactor.Wait();
    EXPECT_THAT(reactor.log(), ElementsAre("read", "done"));
  }
  EXPECT_TRUE(ends_.IsAlive());
}

TEST_F(ServerReactorEndsTest, TheFirstFinishOfAUnaryCallCounts) {
  for (const bool later : {false, true}) {
    ServerUnary reactor;
    const auto finish = [&] {
      reactor.End(First());
      reactor.End(Second());
    };
    reactor.on_metadata = [&](bool) { finish(); };
    service_.unary = [&](Context*, const Parcel*, Parcel*) {
      later ? reactor.SendMetadata() : finish();
      return &reactor;
    };
    TimedContext context;
    EXPECT_EQ(stub_->Unary(&context, request_, &response_).error_message(),
              "the first");
    reactor.Wait();
    EXPECT_EQ(reactor.log().back(), "done");
  }
}

// ---- Finish, with something under way.

TEST_F(ServerReactorEndsTest, FinishAnswersARead) {
  for (const bool before : {false, true}) {
    ServerBidi reactor;
    Serve(reactor, [&] {
      reactor.Read(&request_);
      if (before) reactor.End(First());
    });
    TimedContext context;
    const auto stream = stub_->Chat(&context);
    begun_->WaitForNotification();
    if (!before) reactor.End(First());
    EXPECT_FALSE(stream->Read(&response_));
    EXPECT_EQ(stream->Finish().error_message(), "the first");
    reactor.Wait();
    EXPECT_THAT(reactor.log(), ElementsAre("no read", "done"));
  }
}

// What was written comes, and then the status.
TEST_F(ServerReactorEndsTest, FinishLeavesWritesTheirTime) {
  ServerBidi reactor;
  const Parcel sent = ParcelOf(kLarge);
  reactor.on_write = [&](bool ok) {
    EXPECT_TRUE(ok);
    reactor.on_write = [](bool) {};
    reactor.Write(&sent);
    reactor.End(First());
  };
  Serve(reactor, [&] { reactor.Write(&sent); });
  TimedContext context;
  const auto stream = stub_->Chat(&context);
  Parcel response;
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(stream->Read(&response));
    EXPECT_EQ(response.content().data().size(), kLarge);
  }
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_message(), "the first");
  reactor.Wait();
  EXPECT_THAT(reactor.log(), ElementsAre("write", "write", "done"));
}

// ---- OnCancel.

// Nothing, a read, a write that waits for the reader.
TEST_F(ServerReactorEndsTest, CancellingAnswersWhatIsUnderWay) {
  const Parcel sent = ParcelOf(kLarge);
  for (const bool read : {false, true}) {
    for (const bool write : {false, true}) {
      ServerBidi reactor;
      std::atomic<int> writes{0};
      std::atomic<int> left{1 + (read ? 1 : 0) + (write ? 1 : 0)};
      // From the last reaction but OnDone.
      const auto finish = [&] {
        if (--left == 0) reactor.End(First());
      };
      reactor.on_read = [&](bool ok) {
        EXPECT_FALSE(ok);
        finish();
      };
      reactor.on_write = [&](bool ok) {
        if (!ok) return finish();
        ++writes;
        reactor.Write(&sent);
      };
      reactor.on_cancel = finish;
      Serve(reactor, [&] {
        if (read) reactor.Read(&request_);
        if (write) reactor.Write(&sent);
      });
      TimedContext context;
      const auto stream = stub_->Chat(&context);
      begun_->WaitForNotification();
      EXPECT_TRUE(Eventually([&] { return !write || writes > 0; }));
      context.TryCancel();
      EXPECT_TRUE(HasCode(stream->Finish(), rpc::StatusCode::CANCELLED));
      reactor.Wait();
      EXPECT_THAT(reactor.log(), Contains("cancel").Times(1));
      EXPECT_THAT(reactor.log(), Contains("no read").Times(read ? 1 : 0));
      EXPECT_THAT(reactor.log(), Contains("no write").Times(write ? 1 : 0));
      EXPECT_EQ(reactor.log().back(), "done");
    }
  }
  EXPECT_TRUE(ends_.IsAlive());
}

// From OnCancel, or by another thread once it came.
TEST_F(ServerReactorEndsTest, OnDoneWaitsForFinish) {
  for (const bool inside : {false, true}) {
    ServerBidi reactor;
    absl::Notification cancelled;
    reactor.on_cancel = [&] {
      if (inside) reactor.End(First());
      cancelled.Notify();
    };
    Serve(reactor, [] {});
    TimedContext context;
    const auto stream = stub_->Chat(&context);
    begun_->WaitForNotification();
    context.TryCancel();
    EXPECT_TRUE(HasCode(stream->Finish(), rpc::StatusCode::CANCELLED));
    cancelled.WaitForNotification();
    if (!inside) {
      EXPECT_FALSE(reactor.is_done());
      reactor.End(First());
    }
    reactor.Wait();
    EXPECT_THAT(reactor.log(), ElementsAre("cancel", "done"));
  }
}

TEST_F(ServerReactorEndsTest, WhatIsStartedAfterOnCancelIsAnswered) {
  ServerBidi reactor;
  std::atomic<int> left{3};
  const auto answer = [&](bool ok) {
    EXPECT_FALSE(ok);
    if (--left == 0) reactor.End(First());
  };
  reactor.on_metadata = reactor.on_read = reactor.on_write = answer;
  absl::Notification cancelled;
  reactor.on_cancel = [&] { cancelled.Notify(); };
  Serve(reactor, [] {});
  TimedContext context;
  const auto stream = stub_->Chat(&context);
  begun_->WaitForNotification();
  context.TryCancel();
  EXPECT_TRUE(HasCode(stream->Finish(), rpc::StatusCode::CANCELLED));
  cancelled.WaitForNotification();
  reactor.SendMetadata();
  reactor.Read(&request_);
  reactor.Write(&response_);
  reactor.Wait();
  EXPECT_THAT(reactor.log(),
              UnorderedElementsAre("cancel", "no metadata", "no read",
                                   "no write", "done"));
  EXPECT_EQ(reactor.log().back(), "done");
}

TEST_F(ServerReactorEndsTest, ADeadlineIsACancellation) {
  ServerBidi reactor;
  reactor.on_read = [&](bool ok) {
    EXPECT_FALSE(ok);
    reactor.End(rpc::Status::OK);
  };
  Serve(reactor, [&] { reactor.Read(&request_); });
  TimedContext context(absl::Seconds(1));
  const auto stream = stub_->Chat(&context);
  EXPECT_TRUE(HasCode(stream->Finish(), rpc::StatusCode::DEADLINE_EXCEEDED));
  reactor.Wait();
  EXPECT_THAT(reactor.log(), Contains("cancel").Times(1));
}

TEST_F(ServerReactorEndsTest, ACallThatEndsWellIsNotCancelled) {
  for (int i = 0; i < 50; ++i) {
    ServerBidi reactor;
    Serve(reactor, [&] { reactor.End(rpc::Status::OK); });
    TimedContext context;
    const auto stream = stub_->Chat(&context);
    EXPECT_OK(stream->Finish());
    context.TryCancel();
    reactor.Wait();
    EXPECT_THAT(reactor.log(), ElementsAre("done"));
  }
}

TEST_F(ServerReactorEndsTest, TheServerMayCancel) {
  ServerBidi reactor;
  reactor.on_cancel = [&] { reactor.End(rpc::Status::OK); };
  service_.chat = [&](Context* context) {
    context->TryCancel();
    return &reactor;
  };
  TimedContext context;
  const auto stream = stub_->Chat(&context);
  EXPECT_TRUE(HasCode(stream->Finish(), rpc::StatusCode::CANCELLED));
  reactor.Wait();
  EXPECT_THAT(reactor.log(), ElementsAre("cancel", "done"));
}

TEST_F(ServerReactorEndsTest, AServerThatShutsDownCancelsAndWaits) {
  ServerBidi reactor;
  std::thread finisher;
  reactor.on_cancel = [&] {
    finisher = std::thread([&] {
      absl::SleepFor(absl::Milliseconds(20));
      reactor.End(rpc::Status::OK);
    });
  };
  Serve(reactor, [&] { reactor.Read(&request_); });
  TimedContext context;
  const auto stream = stub_->Chat(&context);
  begun_->WaitForNotification();
  ends_.server().server().Shutdown(std::chrono::system_clock::now());
  EXPECT_TRUE(reactor.is_done());
  EXPECT_FALSE(stream->Finish().ok());
  finisher.join();
}

// ---- Unary calls.

// Within OnCancel, or by another thread after it; each with a Finish that waits
// for the answer, or one at once.
TEST_F(ServerReactorEndsTest, MetadataOfACancelledUnaryCallIsAnswered) {
  for (const bool inside : {false, true}) {
    for (const bool finish_at_once : {false, true}) {
      ServerUnary reactor;
      absl::Notification begun;
      absl::Notification cancelled;
      const auto send = [&] {
        reactor.SendMetadata();
        if (finish_at_once) reactor.End(First());
      };
      reactor.on_metadata = [&](bool ok) {
        EXPECT_FALSE(ok);
        if (!finish_at_once) reactor.End(First());
      };
      reactor.on_cancel = [&] {
        if (inside) send();
        cancelled.Notify();
      };
      service_.unary = [&](Context*, const Parcel*, Parcel*) {
        begun.Notify();
        return &reactor;
      };
      TimedContext context;
      std::thread canceller([&] {
        begun.WaitForNotification();
        context.TryCancel();
      });
      EXPECT_TRUE(HasCode(stub_->Unary(&context, request_, &response_),
                          rpc::StatusCode::CANCELLED));
      canceller.join();
      cancelled.WaitForNotification();
      if (!inside) send();
      reactor.Wait();
      EXPECT_THAT(reactor.log(), ElementsAre("cancel", "no metadata", "done"));
    }
  }
}

TEST_F(ServerReactorEndsTest, MetadataThatAreTooLargeEndTheCall) {
  ServerUnary reactor;
  reactor.on_metadata = [&](bool ok) {
    EXPECT_FALSE(ok);
    reactor.End(rpc::Status::OK);
  };
  service_.unary = [&](Context* context, const Parcel*, Parcel*) {
    context->AddInitialMetadata("large", std::string(1'000'000, 'x'));
    reactor.SendMetadata();
    return &reactor;
  };
  TimedContext context;
  EXPECT_FALSE(stub_->Unary(&context, request_, &response_).ok());
  reactor.Wait();
  EXPECT_THAT(reactor.log(), ElementsAre("cancel", "no metadata", "done"));
}

// ---- At any moment.

// A client that cancels while the server starts and finishes: each reactor
// hears an answer to each Start, OnCancel at most once, and OnDone once.
TEST_F(ServerReactorEndsTest, CancellingRacesWithEverything) {
  const int calls = TheDeviceUnderTest().Rounds(300);
  for (int i = 0; i < calls; ++i) {
    ServerBidi reactor;
    reactor.on_read = [&](bool ok) {
      ok ? reactor.Write(&response_) : reactor.End(rpc::Status::OK);
    };
    reactor.on_write = [&](bool) { reactor.Read(&request_); };
    Serve(reactor, [&] {
      reactor.SendMetadata();
      reactor.Read(&request_);
    });
    TimedContext context;
    std::thread canceller([&] {
      begun_->WaitForNotification();
      const absl::Time until = absl::Now() + absl::Microseconds(i % 100);
      while (absl::Now() < until) std::this_thread::yield();
      context.TryCancel();
    });
    {
      const auto stream = stub_->Chat(&context);
      // Else a handler may never be called.
      begun_->WaitForNotification();
      Parcel response;
      while (stream->Write(Parcel()) && stream->Read(&response)) {
      }
      EXPECT_TRUE(HasCode(stream->Finish(), rpc::StatusCode::CANCELLED));
    }
    canceller.join();
    reactor.Wait();
    EXPECT_THAT(reactor.log(), Contains("cancel").Times(1));
    EXPECT_EQ(reactor.log().back(), "done");
  }
  EXPECT_TRUE(ends_.IsAlive());
}

TEST_F(ServerReactorEndsTest, CancellingRacesWithUnaryMetadata) {
  const int calls = TheDeviceUnderTest().Rounds(300);
  for (int i = 0; i < calls; ++i) {
    ServerUnary reactor;
    absl::Notification begun;
    std::thread server_thread;
    reactor.on_metadata = [&](bool) { reactor.End(rpc::Status::OK); };
    service_.unary = [&](Context*, const Parcel*, Parcel*) {
      server_thread = std::thread([&] {
        begun.Notify();
        reactor.SendMetadata();
      });
      return &reactor;
    };
    TimedContext context;
    std::thread canceller([&] {
      begun.WaitForNotification();
      const absl::Time until = absl::Now() + absl::Microseconds(i % 100);
      while (absl::Now() < until) std::this_thread::yield();
      context.TryCancel();
    });
    const rpc::Status status = stub_->Unary(&context, request_, &response_);
    if (!status.ok()) {
      EXPECT_TRUE(HasCode(status, rpc::StatusCode::CANCELLED));
    }
    canceller.join();
    reactor.Wait();
    server_thread.join();
    EXPECT_EQ(reactor.log().back(), "done");
  }
}

}  // namespace
}  // namespace e2e
