// Calls that end before their time: cancelled by either side, past the
// deadline, or with their connection.
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/rpc/echo_service.h"
#include "tests/rpc/loopback_transport.h"

namespace rpc::testing {
namespace {

const LoopbackOptions kThreads = {.threads = 4};

SayRequest Waiting() {
  SayRequest request;
  request.set_wait_until_cancelled(true);
  return request;
}

class CancellationTest : public ::testing::TestWithParam<bool> {
 protected:
  CancellationTest()
      : echo_(kThreads, GetParam() ? static_cast<Service*>(&sync_)
                                   : static_cast<Service*>(&callback_)) {}

  void WaitForHandler() {
    while (sync_.calls.load() + callback_.calls.load() == 0) {
      std::this_thread::yield();
    }
  }

  SyncEcho sync_;
  CallbackEcho callback_;
  EchoServer echo_;
};

TEST_P(CancellationTest, TryCancelBeforeTheCall) {
  ClientContext context;
  SayResponse response;
  context.TryCancel();
  const Status status = echo_.stub().Say(&context, SayRequest(), &response);
  EXPECT_EQ(status.error_code(), StatusCode::CANCELLED);
  EXPECT_FALSE(context.may_have_run());
  EXPECT_EQ(sync_.calls.load() + callback_.calls.load(), 0);
}

TEST_P(CancellationTest, TryCancelWhileTheHandlerRuns) {
  ClientContext context;
  SayResponse response;
  std::thread canceller([&] {
    WaitForHandler();
    context.TryCancel();
    context.TryCancel();
  });
  const Status status = echo_.stub().Say(&context, Waiting(), &response);
  EXPECT_EQ(status.error_code(), StatusCode::CANCELLED) << status;
  EXPECT_EQ(status.error_message(), "CANCELLED");  // gRPC's words
  EXPECT_TRUE(context.may_have_run());
  canceller.join();
  // The handler heard of it, or this would not return.
  echo_.server().Shutdown();
  if (!GetParam()) {
    EXPECT_EQ(callback_.cancels.load(), 1);
    EXPECT_EQ(callback_.dones.load(), 1);
  }
}

TEST_P(CancellationTest, TryCancelAfterTheCall) {
  ClientContext context;
  SayResponse response;
  ASSERT_TRUE(echo_.stub().Say(&context, SayRequest(), &response).ok());
  context.TryCancel();
}

TEST_P(CancellationTest, DeadlinePassesWhileTheHandlerRuns) {
  ClientContext context;
  SayResponse response;
  const absl::Time start = absl::Now();
  context.set_deadline(start + absl::Milliseconds(50));
  const Status status = echo_.stub().Say(&context, Waiting(), &response);
  EXPECT_EQ(status.error_code(), StatusCode::DEADLINE_EXCEEDED) << status;
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(50));
  echo_.server().Shutdown();
}

TEST_P(CancellationTest, DeadlineInThePast) {
  ClientContext context;
  SayResponse response;
  context.set_deadline(std::chrono::system_clock::now() -
                       std::chrono::hours(1));
  const Status status = echo_.stub().Say(&context, Waiting(), &response);
  EXPECT_EQ(status.error_code(), StatusCode::DEADLINE_EXCEEDED) << status;
}

TEST_P(CancellationTest, ConnectionBreaksWhileTheHandlerRuns) {
  ClientContext context;
  SayResponse response;
  std::thread breaker([&] {
    WaitForHandler();
    echo_.network().DropConnections();
  });
  const Status status = echo_.stub().Say(&context, Waiting(), &response);
  EXPECT_EQ(status.error_code(), StatusCode::UNAVAILABLE) << status;
  EXPECT_TRUE(context.may_have_run());
  breaker.join();
}

INSTANTIATE_TEST_SUITE_P(ServerApis, CancellationTest, ::testing::Bool(),
                         [](const ::testing::TestParamInfo<bool>& info) {
                           return info.param ? "Sync" : "Callback";
                         });

TEST(CancellationByServerTest, TryCancelOfTheHandler) {
  SyncEcho service;
  service.before = [](ServerContext* context) {
    EXPECT_FALSE(context->IsCancelled());
    context->TryCancel();
    EXPECT_TRUE(context->IsCancelled());
  };
  EchoServer echo(kThreads, &service);
  ClientContext context;
  SayResponse response;
  const Status status = echo.stub().Say(&context, SayRequest(), &response);
  EXPECT_EQ(status.error_code(), StatusCode::CANCELLED) << status;
}

TEST(UnavailableTest, NobodyListens) {
  LoopbackNetwork network(kThreads);
  const auto channel =
      CreateChannel(network.address(), InsecureChannelCredentials());
  const auto stub = Echo::NewStub(channel);
  ClientContext context;
  SayResponse response;
  const Status status = stub->Say(&context, SayRequest(), &response);
  EXPECT_EQ(status.error_code(), StatusCode::UNAVAILABLE) << status;
  EXPECT_FALSE(context.may_have_run());
}

TEST(UnavailableTest, WaitForReadyWaitsForTheServer) {
  LoopbackNetwork network(kThreads);
  const auto channel =
      CreateChannel(network.address(), InsecureChannelCredentials());
  const auto stub = Echo::NewStub(channel);
  SayRequest request;
  SayResponse response;
  ClientContext context;
  context.set_wait_for_ready(true);
  absl::Notification done;
  stub->async()->Say(&context, &request, &response, [&](Status status) {
    EXPECT_TRUE(status.ok()) << status;
    done.Notify();
  });
  EXPECT_FALSE(done.HasBeenNotified());
  SyncEcho service;
  ServerBuilder builder;
  builder.AddListeningPort(network.address(), InsecureServerCredentials());
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  done.WaitForNotification();
}

TEST(UnavailableTest, WaitForReadyKeepsToTheDeadline) {
  LoopbackNetwork network(kThreads);
  const auto channel =
      CreateChannel(network.address(), InsecureChannelCredentials());
  const auto stub = Echo::NewStub(channel);
  SayResponse response;
  ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(absl::Now() + absl::Milliseconds(30));
  const Status status = stub->Say(&context, SayRequest(), &response);
  EXPECT_EQ(status.error_code(), StatusCode::DEADLINE_EXCEEDED) << status;
  EXPECT_FALSE(context.may_have_run());
}

// Cancels at every point of a call's life; run by the sanitizers.
TEST(CancellationRaceTest, EveryCallEndsOnceWithAStatus) {
  SyncEcho sync;
  CallbackEcho callback;
  for (Service* const service :
       {static_cast<Service*>(&sync), static_cast<Service*>(&callback)}) {
    EchoServer echo(kThreads, service);
    for (int i = 0; i < 400; ++i) {
      ClientContext context;
      SayRequest request;
      SayResponse response;
      request.set_sleep_us(i % 3 == 0 ? 50 : 0);
      std::atomic<int> ends{0};
      std::atomic<bool> begun{false};
      absl::Notification done;
      std::thread canceller([&] {
        while (!begun.load()) std::this_thread::yield();
        absl::SleepFor(absl::Microseconds(i % 20 * 5));
        context.TryCancel();
      });
      begun.store(true);
      echo.stub().async()->Say(
          &context, &request, &response, [&](const Status& status) {
            EXPECT_TRUE(status.ok() ||
                        status.error_code() == StatusCode::CANCELLED)
                << status;
            EXPECT_EQ(ends.fetch_add(1), 0);
            done.Notify();
          });
      done.WaitForNotification();
      canceller.join();
    }
    echo.server().Shutdown();
    EXPECT_EQ(echo.network().open_calls(), 0u);
  }
}

}  // namespace
}  // namespace rpc::testing
