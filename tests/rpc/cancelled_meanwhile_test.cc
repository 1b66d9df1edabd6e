// Goal: a call on the server stays, and is whole, while one of its threads is
// at it, whatever its client does meanwhile. Method: the client cancels where a
// thread is in the middle of something, and the call gets time to end.
#include <atomic>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/rpc/echo_service.h"
#include "tests/rpc/loopback_transport.h"
#include "tests/rpc/queue_events.h"

namespace rpc::testing {
namespace {

constexpr absl::Duration kTimeToEnd = absl::Milliseconds(100);

class CancelledMeanwhileTest : public ::testing::Test {
 protected:
  // Begins the client's one call.
  void Call(EchoServer& echo) {
    echo.stub().async()->Say(
        &context_, &request_, &response_, [this](const Status& status) {
          EXPECT_EQ(status.error_code(), StatusCode::CANCELLED);
          over_.Notify();
        });
  }
  void Cancel() { context_.TryCancel(); }
  void ExpectOver() { over_.WaitForNotification(); }

  // Runs before the server's first frame is sent, on the thread that sends it.
  std::function<void()> before_first_frame_;
  LoopbackOptions Options() {
    return {.threads = 4, .before_server_sends = [this] {
              if (before_first_frame_ == nullptr) return;
              std::exchange(before_first_frame_, nullptr)();
            }};
  }

 private:
  ClientContext context_;
  SayRequest request_;
  SayResponse response_;
  absl::Notification over_;
};

// ---- While initial metadata are sent.

TEST_F(CancelledMeanwhileTest, AReactorsCallStays) {
  class Reactor final : public ServerUnaryReactor {
   public:
    void OnSendInitialMetadataDone(bool ok) override {
      EXPECT_FALSE(ok);
      Finish(Status::CANCELLED);
    }
    void OnDone() override { done.Notify(); }

    absl::Notification done;
  };
  class Service final : public Echo::CallbackService {
   public:
    Reactor reactor;
    absl::Notification called;

   private:
    ServerUnaryReactor* Say(CallbackServerContext*, const SayRequest*,
                            SayResponse*) override {
      called.Notify();
      return &reactor;
    }
  };
  Service service;
  EchoServer echo(Options(), &service);
  before_first_frame_ = [&] {
    Cancel();
    EXPECT_FALSE(
        service.reactor.done.WaitForNotificationWithTimeout(kTimeToEnd));
  };
  Call(echo);
  service.called.WaitForNotification();
  absl::SleepFor(absl::Milliseconds(20));  // it has returned, too
  service.reactor.StartSendInitialMetadata();
  service.reactor.done.WaitForNotification();
  ExpectOver();
}

class CancelledQueueTest : public CancelledMeanwhileTest {
 protected:
  enum : int { kCalled, kMetadata, kFinish };

  ~CancelledQueueTest() override {
    echo_->server().Shutdown();
    queue_->Shutdown();
    EXPECT_TRUE(events_->IsOver());
  }

  void Start(
      std::vector<
          std::unique_ptr<experimental::ServerInterceptorFactoryInterface>>
          interceptors = {}) {
    echo_ = std::make_unique<EchoServer>(
        Options(), &service_, ChannelArguments(), [&](ServerBuilder& builder) {
          queue_ = builder.AddCompletionQueue();
          builder.experimental().SetInterceptorCreators(
              std::move(interceptors));
        });
    events_ = std::make_unique<QueueEvents>(queue_.get());
    service_.RequestSay(&context_, &request_, &responder_, queue_.get(),
                        queue_.get(), Tag(kCalled));
    Call(*echo_);
  }
  void ExpectFinishedInVain() {
    responder_.FinishWithError(Status::CANCELLED, Tag(kFinish));
    EXPECT_TRUE(events_->Comes(kFinish, /*ok=*/false));
    ExpectOver();
  }

  Echo::AsyncService service_;
  std::unique_ptr<ServerCompletionQueue> queue_;
  std::unique_ptr<EchoServer> echo_;
  std::unique_ptr<QueueEvents> events_;
  ServerContext context_;
  SayRequest request_;
  ServerAsyncResponseWriter<SayResponse> responder_{&context_};
};

TEST_F(CancelledQueueTest, ACallOfAQueueStays) {
  before_first_frame_ = [&] {
    Cancel();
    EXPECT_FALSE(events_->HasCome(kMetadata, kTimeToEnd));
  };
  Start();
  EXPECT_TRUE(events_->Comes(kCalled));
  responder_.SendInitialMetadata(Tag(kMetadata));
  EXPECT_TRUE(events_->Comes(kMetadata, /*ok=*/false));
  ExpectFinishedInVain();
}

// ---- While its interceptors are made.

class Factory final : public experimental::ServerInterceptorFactoryInterface {
 public:
  // `before`: what happens before one is made; `seen`: by those of all.
  Factory(std::function<void()> before, absl::Notification* seen)
      : before_(std::move(before)), seen_(*seen) {}

  experimental::Interceptor* CreateServerInterceptor(
      experimental::ServerRpcInfo*) override {
    before_();
    return new Interceptor(&seen_);
  }

 private:
  class Interceptor final : public experimental::Interceptor {
   public:
    explicit Interceptor(absl::Notification* seen) : seen_(*seen) {}

   private:
    void Intercept(experimental::InterceptorBatchMethods* methods) override {
      if (!seen_.HasBeenNotified()) seen_.Notify();
      methods->Proceed();
    }

    absl::Notification& seen_;
  };

  const std::function<void()> before_;
  absl::Notification& seen_;
};

TEST_F(CancelledQueueTest, NoInterceptorSeesItBeforeAllAreMade) {
  absl::Notification seen;
  std::vector<std::unique_ptr<experimental::ServerInterceptorFactoryInterface>>
      factories;
  factories.push_back(std::make_unique<Factory>([] {}, &seen));
  factories.push_back(std::make_unique<Factory>(
      [&] {
        Cancel();
        EXPECT_FALSE(seen.WaitForNotificationWithTimeout(kTimeToEnd));
      },
      &seen));
  Start(std::move(factories));
  EXPECT_TRUE(events_->Comes(kCalled));
  EXPECT_TRUE(seen.HasBeenNotified());
  ExpectFinishedInVain();
}

}  // namespace
}  // namespace rpc::testing
