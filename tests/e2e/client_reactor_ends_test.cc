// Goal: a client's reactor hears of its call's end as gRPC's does, however the
// call ends: an answer to everything that was started, and OnDone once and
// last, after the last hold; what it belongs to may go there. Method: as
// client_reactor_test.
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
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

using ReadReactor = Reactor<rpc::ClientReadReactor<Parcel>>;
using WriteReactor = Reactor<rpc::ClientWriteReactor<Parcel>>;
using BidiReactor = Reactor<rpc::ClientBidiReactor<Parcel, Parcel>>;

// A stream's window holds one of them.
constexpr size_t kLarge = 200'000;

class ClientReactorEndsTest : public testing::Test {
 protected:
  ClientReactorEndsTest()
      : service_([this](rpc::ServerContext*) {
          if (held_) go_on_.WaitForNotification();
        }),
        ends_(&service_) {}
  // The server waits for its handlers.
  ~ClientReactorEndsTest() override {
    if (!go_on_.HasBeenNotified()) go_on_.Notify();
  }

  void SetUp() override {
    ASSERT_TRUE(ends_.ok());
    stub_ = Parcels::NewStub(ends_.channel());
  }

  std::atomic<bool> held_{false};  // handlers do nothing until go_on_
  absl::Notification go_on_;
  ParcelService service_;
  OneConnection ends_;
  std::unique_ptr<Parcels::Stub> stub_;
  Parcel request_;
  Parcel response_;
};

// ---- Cancelling, with something under way.

// Nothing, a read, a write that waits for the reader; by the reaction to
// something else, or by another thread.
TEST_F(ClientReactorEndsTest, CancellingAnswersWhatIsUnderWay) {
  held_ = true;
  request_ = ParcelOf(kLarge);
  for (const bool read : {false, true}) {
    for (const bool write : {false, true}) {
      TimedContext context;
      BidiReactor reactor;
      std::atomic<int> writes{0};
      reactor.on_read = [](bool ok) { EXPECT_FALSE(ok); };
      reactor.on_write = [&](bool ok) {
        if (!ok) return;
        ++writes;
        reactor.Write(&request_);
      };
      stub_->async()->Chat(&context, &reactor);
      if (read) reactor.Read(&response_);
      if (write) reactor.Write(&request_);
      reactor.Start();
      EXPECT_TRUE(Eventually([&] { return !write || writes > 0; }));
      reactor.Cancel(context);
      EXPECT_TRUE(HasCode(reactor.Wait(), rpc::StatusCode::CANCELLED));
      EXPECT_THAT(reactor.log(), Contains("no metadata").Times(1));
      EXPECT_THAT(reactor.log(), Contains("no read").Times(read ? 1 : 0));
      EXPECT_THAT(reactor.log(), Contains("no write").Times(write ? 1 : 0));
      EXPECT_EQ(reactor.log().back(), "done");
    }
  }
  EXPECT_TRUE(ends_.IsAlive());
}

TEST_F(ClientReactorEndsTest, AReactionMayCancel) {
  TimedContext context;
  ReadReactor reactor;
  reactor.on_read = [&](bool ok) {
    if (!ok) return;
    reactor.Cancel(context);
    reactor.Read(&response_);
  };
  request_ = ParcelFor(1'000'000, 1'000);
  stub_->async()->Download(&context, &request_, &reactor);
  reactor.Read(&response_);
  reactor.Start();
  EXPECT_TRUE(HasCode(reactor.Wait(), rpc::StatusCode::CANCELLED));
  EXPECT_THAT(reactor.log(), Contains("no read").Times(1));
}

TEST_F(ClientReactorEndsTest, CancelledBeforeItBeganEverythingIsAnswered) {
  TimedContext context;
  BidiReactor reactor;
  stub_->async()->Chat(&context, &reactor);
  reactor.Read(&response_);
  reactor.Write(&request_);
  reactor.WritesDone();
  reactor.Cancel(context);
  reactor.Start();
  EXPECT_TRUE(HasCode(reactor.Wait(), rpc::StatusCode::CANCELLED));
  const auto log = reactor.log();
  EXPECT_EQ(log.size(), 5u);
  EXPECT_THAT(log, Contains("no read"));
  EXPECT_THAT(log, Contains("no write"));
  EXPECT_THAT(log, Contains("no writes done"));
  EXPECT_EQ(log.back(), "done");
  EXPECT_EQ(service_.begun, 0);
}

// Half-close is not the end of reading.
TEST_F(ClientReactorEndsTest, CancellingAfterHalfClose) {
  held_ = true;
  TimedContext context;
  WriteReactor reactor;
  reactor.on_writes_done = [&](bool ok) {
    EXPECT_TRUE(ok);
    reactor.Cancel(context);
  };
  stub_->async()->Upload(&context, &response_, &reactor);
  reactor.WritesDone();
  reactor.Start();
  EXPECT_TRUE(HasCode(reactor.Wait(), rpc::StatusCode::CANCELLED));
  EXPECT_EQ(reactor.log().back(), "done");
}

// ---- Ends of other kinds.

TEST_F(ClientReactorEndsTest, ADeadlineAnswersWhatIsUnderWay) {
  held_ = true;
  TimedContext context(absl::Milliseconds(200));
  BidiReactor reactor;
  request_ = ParcelOf(kLarge);
  reactor.on_write = [&](bool ok) {
    if (ok) reactor.Write(&request_);
  };
  stub_->async()->Chat(&context, &reactor);
  reactor.Read(&response_);
  reactor.Write(&request_);
  reactor.Start();
  EXPECT_TRUE(HasCode(reactor.Wait(), rpc::StatusCode::DEADLINE_EXCEEDED));
  EXPECT_THAT(reactor.log(), Contains("no read").Times(1));
  EXPECT_THAT(reactor.log(), Contains("no write").Times(1));
}

TEST_F(ClientReactorEndsTest, AServerThatEndsEarlyEndsTheWrites) {
  TimedContext context;
  WriteReactor reactor;
  request_ = ParcelOf(kLarge);
  Parcel last;
  last.set_end(true);
  last.set_code(rpc::StatusCode::ABORTED);
  int writes = 0;
  reactor.on_write = [&](bool ok) {
    if (ok) reactor.Write(++writes == 3 ? &last : &request_);
  };
  stub_->async()->Upload(&context, &response_, &reactor);
  reactor.Write(&request_);
  reactor.Start();
  EXPECT_TRUE(HasCode(reactor.Wait(), rpc::StatusCode::ABORTED));
  EXPECT_THAT(reactor.log(), Contains("no write").Times(1));
  EXPECT_TRUE(ends_.IsAlive());
}

TEST_F(ClientReactorEndsTest, WhatDoesNotParseIsNoMessage) {
  ForgeryService service;
  OneConnection ends(&service);
  ASSERT_TRUE(ends.ok());
  const rpc::internal::RpcMethod method(
      "/e2e.Forgeries/Download", RpcType::SERVER_STREAMING, ends.channel());
  TimedContext context;
  ReadReactor reactor;
  reactor.on_read = [&](bool ok) {
    if (ok) reactor.Read(&response_);
  };
  request_ = ParcelFor(3, 100);
  request_.set_good_responses(1);
  rpc::internal::ClientCallbackReaderFactory<Parcel>::Create(
      ends.channel().get(), method, &context,
      static_cast<const Parcel*>(&request_), &reactor);
  reactor.Read(&response_);
  reactor.Start();
  EXPECT_TRUE(HasCode(reactor.Wait(), rpc::StatusCode::INTERNAL));
  EXPECT_THAT(reactor.log(),
              ElementsAre("metadata", "read", "no read", "done"));
  EXPECT_TRUE(ends.IsAlive());
}

TEST_F(ClientReactorEndsTest, AServerThatGoesIsUnavailable) {
  TimedContext context;
  BidiReactor reactor;
  absl::Notification began;
  reactor.on_write = [&](bool ok) {
    EXPECT_TRUE(ok);
    began.Notify();
  };
  stub_->async()->Chat(&context, &reactor);
  reactor.Read(&response_);
  reactor.Write(&request_);
  reactor.Start();
  began.WaitForNotification();
  ends_.server().server().Shutdown(std::chrono::system_clock::now());
  EXPECT_TRUE(HasCode(reactor.Wait(), rpc::StatusCode::UNAVAILABLE));
  EXPECT_THAT(reactor.log(), Contains("no read").Times(1));
}

TEST_F(ClientReactorEndsTest, WhatNobodyImplementsIsUnimplemented) {
  Parcels::Service none;
  OneConnection ends(&none);
  ASSERT_TRUE(ends.ok());
  TimedContext context;
  BidiReactor reactor;
  Parcels::NewStub(ends.channel())->async()->Chat(&context, &reactor);
  reactor.Read(&response_);
  reactor.Start();
  EXPECT_TRUE(HasCode(reactor.Wait(), rpc::StatusCode::UNIMPLEMENTED));
}

// ---- Holds.

TEST_F(ClientReactorEndsTest, AHoldOutlivesCancelling) {
  TimedContext context;
  BidiReactor reactor;
  absl::Notification refused;
  reactor.on_read = [&](bool ok) {
    EXPECT_FALSE(ok);
    refused.Notify();
  };
  stub_->async()->Chat(&context, &reactor);
  reactor.AddHold();
  reactor.Read(&response_);
  reactor.Start();
  reactor.Cancel(context);
  refused.WaitForNotification();
  EXPECT_FALSE(reactor.is_done());
  // The call is over; what is started is answered all the same.
  absl::Notification writes_refused;
  reactor.on_writes_done = [&](bool ok) {
    EXPECT_FALSE(ok);
    writes_refused.Notify();
  };
  reactor.on_write = [&](bool ok) {
    EXPECT_FALSE(ok);
    reactor.WritesDone();
  };
  reactor.Write(&request_);
  writes_refused.WaitForNotification();
  EXPECT_FALSE(reactor.is_done());
  reactor.Release();
  EXPECT_TRUE(HasCode(reactor.Wait(), rpc::StatusCode::CANCELLED));
}

// ---- What OnDone may do.

// All that a call needs; OnDone deletes it.
struct Everything final : rpc::ClientBidiReactor<Parcel, Parcel> {
  void OnReadDone(bool ok) override {
    if (ok) StartRead(&parcel);
  }
  void OnDone(const rpc::Status& status) override {
    EXPECT_OK(status);
    std::atomic<int>& counter = *dones;
    delete this;
    ++counter;
  }

  std::atomic<int>* dones = nullptr;
  std::shared_ptr<rpc::Channel> channel;
  std::unique_ptr<Parcels::Stub> stub;
  TimedContext context;
  Parcel parcel;
};

TEST_F(ClientReactorEndsTest, OnDoneMayDestroyEverything) {
  constexpr int kCalls = 20;
  std::atomic<int> dones{0};
  for (int i = 0; i < kCalls; ++i) {
    auto* const everything = new Everything;
    everything->dones = &dones;
    everything->channel = Client(ends_.server().address()).shared_channel();
    everything->stub = Parcels::NewStub(everything->channel);
    everything->stub->async()->Chat(&everything->context, everything);
    everything->StartRead(&everything->parcel);
    everything->StartWritesDone();
    everything->StartCall();
  }
  EXPECT_TRUE(Eventually([&] { return dones == kCalls; }));
}

TEST_F(ClientReactorEndsTest, OnDoneMayBeginTheNextCall) {
  class Chain final : public rpc::ClientReadReactor<Parcel> {
   public:
    explicit Chain(Parcels::Stub* stub) : stub_(*stub) { Next(); }
    void OnReadDone(bool ok) override { read_ += ok ? 1 : 0; }
    void OnDone(const rpc::Status& status) override {
      EXPECT_OK(status);
      ++calls_ < 50 ? Next() : done_.Notify();
    }
    int Wait() {
      done_.WaitForNotification();
      return read_;
    }

   private:
    void Next() {
      context_ = std::make_unique<TimedContext>();
      request_ = ParcelFor(1);
      stub_.async()->Download(context_.get(), &request_, this);
      StartRead(&response_);
      StartCall();
    }

    Parcels::Stub& stub_;
    std::unique_ptr<TimedContext> context_;
    Parcel request_;
    Parcel response_;
    int calls_ = 0;
    int read_ = 0;
    absl::Notification done_;
  };
  Chain chain(stub_.get());
  EXPECT_EQ(chain.Wait(), 50);
}

// ---- At any moment.

TEST_F(ClientReactorEndsTest, CancellingRacesWithEverything) {
  const int calls = TheDeviceUnderTest().Rounds(300);
  request_ = ParcelFor(1);
  for (int i = 0; i < calls; ++i) {
    TimedContext context;
    BidiReactor reactor;
    reactor.on_read = [&](bool ok) {
      if (ok) reactor.Write(&request_);
    };
    reactor.on_write = [&](bool ok) {
      if (ok) reactor.Read(&response_);
    };
    std::thread canceller([&] {
      const absl::Time until = absl::Now() + absl::Microseconds(i % 200);
      while (absl::Now() < until) std::this_thread::yield();
      context.TryCancel();
    });
    stub_->async()->Chat(&context, &reactor);
    reactor.Write(&request_);
    reactor.Start();
    EXPECT_TRUE(HasCode(reactor.Wait(), rpc::StatusCode::CANCELLED));
    EXPECT_EQ(reactor.log().back(), "done");
    canceller.join();
  }
  EXPECT_TRUE(ends_.IsAlive());
}

}  // namespace
}  // namespace e2e
