// Goal: a server's reactors are gRPC's: each Start is answered by one reaction,
// in the order in which things happen, wherever it comes from, and OnDone is
// the last. Method: reactors that do as a test says, each of which holds the
// rules of reaction_rules.h; blocking clients in this process. How calls end
// otherwise than well is server_reactor_ends_test's.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
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

using testing::ElementsAre;
using testing::UnorderedElementsAre;

constexpr size_t kSmall = 100;
constexpr size_t kLarge = 200'000;

using Context = rpc::CallbackServerContext;

class ServerReactorTest : public testing::Test {
 protected:
  ServerReactorTest() : ends_(&service_) {}

  void SetUp() override {
    ASSERT_TRUE(ends_.ok());
    stub_ = Parcels::NewStub(ends_.channel());
  }

  // The size of what comes next; -1: nothing.
  template <class Stream>
  static int64_t NextSize(Stream& stream) {
    Parcel response;
    if (!stream->Read(&response)) return -1;
    return static_cast<int64_t>(response.content().data().size());
  }

  ReactorService service_;
  OneConnection ends_;
  std::unique_ptr<Parcels::Stub> stub_;
  Parcel request_;
  Parcel response_;
};

// ---- Each kind.

TEST_F(ServerReactorTest, AUnaryCallIsAnswered) {
  for (const size_t bytes : {size_t{0}, kSmall, kLarge}) {
    ServerUnary reactor;
    reactor.on_metadata = [&](bool ok) {
      EXPECT_TRUE(ok);
      reactor.End(rpc::Status::OK);
    };
    service_.unary = [&](Context* context, const Parcel* request,
                         Parcel* response) {
      context->AddInitialMetadata("first", "1");
      context->AddTrailingMetadata("last", "2");
      *response = *request;
      reactor.SendMetadata();
      return &reactor;
    };
    TimedContext context;
    request_ = ParcelOf(bytes);
    EXPECT_OK(stub_->Unary(&context, request_, &response_));
    EXPECT_EQ(response_.content().data().size(), bytes);
    EXPECT_EQ(context.GetServerInitialMetadata().count("first"), 1u);
    EXPECT_EQ(context.GetServerTrailingMetadata().count("last"), 1u);
    reactor.Wait();
    EXPECT_THAT(reactor.log(), ElementsAre("metadata", "done"));
  }
}

TEST_F(ServerReactorTest, AServerStreamIsWritten) {
  for (const size_t bytes : {kSmall, kLarge}) {
    ServerWrite reactor;
    int left = 3;
    reactor.on_write = [&](bool ok) {
      EXPECT_TRUE(ok);
      --left > 0 ? reactor.Write(&response_) : reactor.End(rpc::Status::OK);
    };
    service_.download = [&](Context*, const Parcel* request) {
      response_ = ParcelOf(static_cast<size_t>(request->response_bytes()));
      reactor.Write(&response_);
      return &reactor;
    };
    TimedContext context;
    const auto reader = stub_->Download(&context, ParcelFor(3, bytes));
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(NextSize(reader), static_cast<int64_t>(bytes));
    }
    EXPECT_EQ(NextSize(reader), -1);
    EXPECT_OK(reader->Finish());
    reactor.Wait();
    EXPECT_THAT(reactor.log(), ElementsAre("write", "write", "write", "done"));
  }
}

TEST_F(ServerReactorTest, AClientStreamIsRead) {
  for (const size_t bytes : {kSmall, kLarge}) {
    ServerRead reactor;
    service_.upload = [&](Context*, Parcel* response) {
      reactor.on_read = [&, response](bool ok) {
        if (ok) {
          *response = request_;
          reactor.Read(&request_);
        } else {
          reactor.End(rpc::Status::OK);
        }
      };
      reactor.Read(&request_);
      return &reactor;
    };
    TimedContext context;
    const auto writer = stub_->Upload(&context, &response_);
    EXPECT_TRUE(writer->Write(ParcelOf(bytes)));
    EXPECT_TRUE(writer->Write(ParcelOf(bytes)));
    EXPECT_TRUE(writer->WritesDone());
    EXPECT_OK(writer->Finish());
    EXPECT_EQ(response_.content().data().size(), bytes);
    reactor.Wait();
    EXPECT_THAT(reactor.log(), ElementsAre("read", "read", "no read", "done"));
  }
}

TEST_F(ServerReactorTest, BothSidesTakeTurns) {
  ServerBidi reactor;
  reactor.on_read = [&](bool ok) {
    ok ? reactor.Write(&request_) : reactor.End(rpc::Status::OK);
  };
  reactor.on_write = [&](bool ok) {
    EXPECT_TRUE(ok);
    reactor.Read(&request_);
  };
  service_.chat = [&](Context*) {
    reactor.Read(&request_);
    return &reactor;
  };
  TimedContext context;
  const auto stream = stub_->Chat(&context);
  for (const size_t bytes : {kSmall, kLarge, size_t{0}, kSmall}) {
    EXPECT_TRUE(stream->Write(ParcelOf(bytes)));
    EXPECT_EQ(NextSize(stream), static_cast<int64_t>(bytes));
  }
  EXPECT_TRUE(stream->WritesDone());
  EXPECT_EQ(NextSize(stream), -1);
  EXPECT_OK(stream->Finish());
  reactor.Wait();
}

// ---- Where Starts come from.

TEST_F(ServerReactorTest, EverythingCanBeAskedForBeforeTheHandlerReturns) {
  ServerBidi reactor;
  const Parcel sent = ParcelOf(kLarge);
  std::atomic<int> answered{0};
  const auto answer = [&](bool ok) {
    EXPECT_TRUE(ok);
    if (++answered == 3) reactor.End(rpc::Status::OK);
  };
  reactor.on_metadata = reactor.on_read = reactor.on_write = answer;
  service_.chat = [&](Context* context) {
    context->AddInitialMetadata("first", "1");
    reactor.Write(&sent);
    reactor.Read(&request_);
    reactor.SendMetadata();
    return &reactor;
  };
  TimedContext context;
  const auto stream = stub_->Chat(&context);
  EXPECT_TRUE(stream->Write(ParcelOf(kSmall)));
  EXPECT_EQ(NextSize(stream), static_cast<int64_t>(kLarge));
  EXPECT_EQ(context.GetServerInitialMetadata().count("first"), 1u);
  EXPECT_EQ(NextSize(stream), -1);
  EXPECT_OK(stream->Finish());
  reactor.Wait();
  EXPECT_EQ(request_.content().data().size(), kSmall);
  EXPECT_THAT(reactor.log(),
              UnorderedElementsAre("metadata", "write", "read", "done"));
  EXPECT_EQ(reactor.log().back(), "done");
}

TEST_F(ServerReactorTest, AnotherThreadMayStartBeforeTheHandlerReturns) {
  for (int i = 0; i < 100; ++i) {
    ServerBidi reactor;
    std::thread other;
    service_.chat = [&](Context*) {
      other = std::thread([&] {
        reactor.Read(&request_);
        reactor.WriteAndFinish(&response_, rpc::Status::OK);
      });
      if (i % 2 == 1) other.join();
      return &reactor;
    };
    TimedContext context;
    const auto stream = stub_->Chat(&context);
    EXPECT_EQ(NextSize(stream), 0);
    EXPECT_OK(stream->Finish());
    reactor.Wait();
    EXPECT_THAT(reactor.log(), ElementsAre("no read", "done"));
    if (other.joinable()) other.join();
  }
}

TEST_F(ServerReactorTest, TwoThreadsMayStart) {
  const int messages = TheDeviceUnderTest().Rounds(500);
  ServerBidi reactor;
  std::atomic<int> reads{0};
  std::atomic<int> writes{0};
  absl::Notification begun;
  reactor.on_read = [&](bool ok) { reads += ok ? 1 : 1'000'000; };
  reactor.on_write = [&](bool ok) { writes += ok ? 1 : 1'000'000; };
  service_.chat = [&](Context*) {
    begun.Notify();
    return &reactor;
  };
  std::thread writing([&] {
    begun.WaitForNotification();
    for (int i = 0; i < messages; ++i) {
      reactor.Write(&response_);
      while (writes == i) std::this_thread::yield();
    }
  });
  std::thread reading([&] {
    begun.WaitForNotification();
    for (int i = 0; i < messages; ++i) {
      reactor.Read(&request_);
      while (reads == i) std::this_thread::yield();
    }
    writing.join();
    reactor.End(rpc::Status::OK);
  });
  TimedContext context;
  const auto stream = stub_->Chat(&context);
  for (int i = 0; i < messages; ++i) {
    EXPECT_TRUE(stream->Write(ParcelOf(kSmall)));
    EXPECT_EQ(NextSize(stream), 0);
  }
  EXPECT_OK(stream->Finish());
  reactor.Wait();
  reading.join();
  EXPECT_EQ(reads, messages);
  EXPECT_EQ(writes, messages);
}

TEST_F(ServerReactorTest, ItMayFinishInItsConstructor) {
  class AtOnce final : public rpc::ServerBidiReactor<Parcel, Parcel> {
   public:
    explicit AtOnce(std::atomic<int>* dones) : dones_(*dones) {
      Finish(rpc::Status(rpc::StatusCode::ABORTED, "at once"));
    }
    void OnDone() override {
      ++dones_;
      delete this;
    }

   private:
    std::atomic<int>& dones_;
  };
  constexpr int kCalls = 100;
  std::atomic<int> dones{0};
  service_.chat = [&](Context*) { return new AtOnce(&dones); };
  for (int i = 0; i < kCalls; ++i) {
    TimedContext context;
    const auto stream = stub_->Chat(&context);
    const rpc::Status status = stream->Finish();
    EXPECT_TRUE(HasCode(status, rpc::StatusCode::ABORTED));
    EXPECT_EQ(status.error_message(), "at once");
  }
  EXPECT_TRUE(Eventually([&] { return dones == kCalls; }));
}

// ---- The last message.

TEST_F(ServerReactorTest, TheLastMessageIsOne) {
  ServerWrite reactor;
  reactor.on_write = [&](bool ok) {
    EXPECT_TRUE(ok);
    reactor.End(rpc::Status(rpc::StatusCode::ABORTED, "after it"));
  };
  service_.download = [&](Context*, const Parcel*) {
    reactor.WriteLast(&response_);
    return &reactor;
  };
  TimedContext context;
  const auto reader = stub_->Download(&context, Parcel());
  EXPECT_EQ(NextSize(reader), 0);
  EXPECT_EQ(NextSize(reader), -1);
  EXPECT_TRUE(HasCode(reader->Finish(), rpc::StatusCode::ABORTED));
  reactor.Wait();
  EXPECT_THAT(reactor.log(), ElementsAre("write", "done"));
}

// In the handler or later, with either status.
TEST_F(ServerReactorTest, AMessageGoesWithTheStatus) {
  for (const bool later : {false, true}) {
    for (const auto code : {rpc::StatusCode::OK, rpc::StatusCode::ABORTED}) {
      for (const size_t bytes : {kSmall, kLarge}) {
        ServerWrite reactor;
        response_ = ParcelOf(bytes);
        const rpc::Status status(code, "");
        reactor.on_metadata = [&](bool ok) {
          EXPECT_TRUE(ok);
          reactor.WriteAndFinish(&response_, status);
        };
        service_.download = [&](Context* context, const Parcel*) {
          context->AddTrailingMetadata("last", "2");
          later ? reactor.SendMetadata()
                : reactor.WriteAndFinish(&response_, status);
          return &reactor;
        };
        TimedContext context;
        const auto reader = stub_->Download(&context, Parcel());
        EXPECT_EQ(NextSize(reader), static_cast<int64_t>(bytes));
        EXPECT_EQ(NextSize(reader), -1);
        EXPECT_TRUE(HasCode(reader->Finish(), code));
        EXPECT_EQ(context.GetServerTrailingMetadata().count("last"), 1u);
        reactor.Wait();
        EXPECT_EQ(reactor.log().back(), "done");
        EXPECT_EQ(reactor.log().size(), later ? 2u : 1u) << "OnWriteDone, too";
      }
    }
  }
}

// ---- Initial metadata.

TEST_F(ServerReactorTest, MetadataComeBeforeTheFirstMessage) {
  ServerBidi reactor;
  reactor.on_read = [&](bool ok) {
    EXPECT_TRUE(ok);
    reactor.WriteAndFinish(&response_, rpc::Status::OK);
  };
  service_.chat = [&](Context* context) {
    context->AddInitialMetadata("first", "1");
    reactor.SendMetadata();
    reactor.Read(&request_);
    return &reactor;
  };
  TimedContext context;
  const auto stream = stub_->Chat(&context);
  stream->WaitForInitialMetadata();
  EXPECT_EQ(context.GetServerInitialMetadata().count("first"), 1u);
  EXPECT_TRUE(stream->Write(Parcel()));
  EXPECT_EQ(NextSize(stream), 0);
  EXPECT_OK(stream->Finish());
  reactor.Wait();
  EXPECT_THAT(reactor.log(), ElementsAre("metadata", "read", "done"));
}

TEST_F(ServerReactorTest, MetadataCannotGoAfterTheFirstMessage) {
  ServerWrite reactor;
  reactor.on_write = [&](bool) { reactor.SendMetadata(); };
  reactor.on_metadata = [&](bool ok) {
    EXPECT_FALSE(ok);
    reactor.End(rpc::Status::OK);
  };
  service_.download = [&](Context*, const Parcel*) {
    reactor.Write(&response_);
    return &reactor;
  };
  TimedContext context;
  const auto reader = stub_->Download(&context, Parcel());
  EXPECT_EQ(NextSize(reader), 0);
  EXPECT_OK(reader->Finish());
  reactor.Wait();
  EXPECT_THAT(reactor.log(), ElementsAre("write", "no metadata", "done"));
}

// ---- The object.

TEST_F(ServerReactorTest, ItMayServeOneCallAfterAnother) {
  class Reused final : public rpc::ServerBidiReactor<Parcel, Parcel> {
   public:
    rpc::ServerBidiReactor<Parcel, Parcel>* Serve() {
      StartRead(&parcel_);
      return this;
    }
    void OnReadDone(bool ok) override {
      ok ? StartWrite(&parcel_) : Finish(rpc::Status::OK);
    }
    void OnWriteDone(bool) override { StartRead(&parcel_); }
    void OnDone() override { ++dones; }
    std::atomic<int> dones{0};

   private:
    Parcel parcel_;
  };
  Reused reactor;
  service_.chat = [&](Context*) { return reactor.Serve(); };
  for (int i = 1; i <= 50; ++i) {
    TimedContext context;
    const auto stream = stub_->Chat(&context);
    EXPECT_TRUE(stream->Write(ParcelOf(kSmall)));
    EXPECT_EQ(NextSize(stream), static_cast<int64_t>(kSmall));
    EXPECT_TRUE(stream->WritesDone());
    EXPECT_OK(stream->Finish());
    ASSERT_TRUE(Eventually([&] { return reactor.dones == i; }));
  }
}

TEST_F(ServerReactorTest, ManyAreDeletedByTheirOnDone) {
  const int calls = TheDeviceUnderTest().Rounds(300);
  std::atomic<int> dones{0};
  service_.download = [&](Context*, const Parcel*) {
    auto* const reactor = new ServerWrite;
    reactor->on_write = [&, reactor](bool) { reactor->End(rpc::Status::OK); };
    reactor->on_done = [&, reactor] {
      delete reactor;
      ++dones;
    };
    reactor->Write(&response_);
    return reactor;
  };
  for (int i = 0; i < calls; ++i) {
    TimedContext context;
    const auto reader = stub_->Download(&context, Parcel());
    EXPECT_EQ(NextSize(reader), 0);
    EXPECT_OK(reader->Finish());
  }
  EXPECT_TRUE(Eventually([&] { return dones == calls; }));
}

}  // namespace
}  // namespace e2e
