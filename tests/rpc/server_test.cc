// Servers: building them, where handlers run, and shutting down.
#include "rpc/server.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/rpc/echo_service.h"
#include "tests/rpc/loopback_transport.h"

namespace {

using SteadyClock = std::chrono::steady_clock;

// Where the clock stands still; zero: it goes.
std::atomic<SteadyClock::duration> stopped_at{SteadyClock::duration::zero()};

// The clock that handlers are timed by stands still as long as this lives:
// however busy the machine is, they take no time.
class StoppedClock {
 public:
  StoppedClock() { stopped_at = SteadyClock::now().time_since_epoch(); }
  ~StoppedClock() { stopped_at = SteadyClock::duration::zero(); }
};

}  // namespace

// The names that --wrap makes of SteadyClock::now, mangled. The linker puts the
// one below in its place.
#define NOW(prefix) prefix##_ZNSt6chrono3_V212steady_clock3nowEv

// A result that is no C type is meant here.
#pragma GCC diagnostic ignored "-Wpedantic"
extern "C" {
SteadyClock::time_point NOW(__real_)();
SteadyClock::time_point NOW(__wrap_)() {
  const SteadyClock::duration stopped = stopped_at;
  return stopped == SteadyClock::duration::zero()
             ? NOW(__real_)()
             : SteadyClock::time_point(stopped);
}
}

namespace rpc::testing {
namespace {

const LoopbackOptions kThreads = {.threads = 4};

Status Say(EchoServer& echo, const SayRequest& request = SayRequest()) {
  ClientContext context;
  SayResponse response;
  return echo.stub().Say(&context, request, &response);
}

SayRequest Sleeping(absl::Duration duration) {
  SayRequest request;
  request.set_sleep_us(absl::ToInt64Microseconds(duration));
  return request;
}

// ---- Building ----

TEST(ServerBuilderTest, SelectedPort) {
  LoopbackNetwork network;
  int port = -1;
  ServerBuilder builder;
  builder.AddListeningPort(network.address(), InsecureServerCredentials(),
                           &port);
  EXPECT_EQ(port, 0);
  const auto server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  EXPECT_EQ(port, 1);
  EXPECT_EQ(server->device(), "loopback");
}

TEST(ServerBuilderTest, SaysWhatIsWrong) {
  LoopbackNetwork network;
  SyncEcho service;
  const auto code = [](ServerBuilder& builder) {
    return builder.BuildAndStartOrStatus().status().code();
  };
  {
    ServerBuilder scheme;
    scheme.AddListeningPort("carrier-pigeon://loft:1",
                            InsecureServerCredentials());
    EXPECT_EQ(code(scheme), absl::StatusCode::kInvalidArgument);
  }
  {
    ServerBuilder credentials;
    credentials.AddListeningPort(network.address(), nullptr);
    EXPECT_EQ(code(credentials), absl::StatusCode::kInvalidArgument);
  }
  {
    ServerBuilder argument;
    argument.AddListeningPort(network.address(), InsecureServerCredentials());
    argument.AddChannelArgument("verbena.handler_threads", 0);
    EXPECT_EQ(code(argument), absl::StatusCode::kInvalidArgument);
  }
  {
    Echo::WithGenericMethod_Say<Echo::Service> left_to_nobody;
    ServerBuilder generic;
    generic.AddListeningPort(network.address(), InsecureServerCredentials());
    generic.RegisterService(&left_to_nobody);
    EXPECT_EQ(code(generic), absl::StatusCode::kFailedPrecondition);
  }
  {
    ServerBuilder twice;
    twice.AddListeningPort(network.address(), InsecureServerCredentials());
    twice.RegisterService(&service).RegisterService(&service);
    EXPECT_EQ(code(twice), absl::StatusCode::kAlreadyExists);
  }
}

// A service for a host is for all, where no other one has its methods.
TEST(ServerBuilderTest, APortThatIsGivenTwiceIsListenedOnOnce) {
  LoopbackNetwork network;
  int ports[] = {-1, -1};
  ServerBuilder builder;
  for (int& port : ports) {
    builder.AddListeningPort(network.address(), InsecureServerCredentials(),
                             &port);
  }
  const auto server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  EXPECT_EQ(ports[0], 1);
  EXPECT_EQ(ports[1], 1);
  ServerInterface& as_users_name_it = *server;
  as_users_name_it.Shutdown(absl::Now());
  as_users_name_it.Wait();
}

TEST(ServerBuilderTest, ServicesForHostsComeLast) {
  SyncEcho general;
  SyncEcho special;
  EchoServer echo({.threads = 2}, &general, {}, [&](ServerBuilder& builder) {
    builder.RegisterService("special.example", &special);
    builder.RegisterService("general.example", &general);
  });
  EXPECT_TRUE(Say(echo).ok());
  EXPECT_EQ(general.calls, 1);
  EXPECT_EQ(special.calls, 0);

  LoopbackNetwork network;
  ServerBuilder builder;
  builder.AddListeningPort(network.address(), InsecureServerCredentials());
  builder.RegisterService("special.example", &special);
  const auto server = builder.BuildAndStart();
  ClientContext context;
  SayResponse response;
  EXPECT_TRUE(Echo::NewStub(CreateChannel(network.address(),
                                          InsecureChannelCredentials()))
                  ->Say(&context, SayRequest(), &response)
                  .ok());
  EXPECT_EQ(special.calls, 1);
}

TEST(ServerBuilderTest, GrpcsOptionsAreTaken) {
  SyncEcho service;
  ResourceQuota quota;
  quota.Resize(64 << 20).SetMaxThreads(2);
  EchoServer echo({.threads = 2}, &service, {}, [&](ServerBuilder& builder) {
    builder.SetResourceQuota(quota)
        .SetMaxMessageSize(1 << 20)
        .SetSyncServerOption(ServerBuilder::NUM_CQS, 2)
        .SetSyncServerOption(ServerBuilder::MIN_POLLERS, 1)
        .SetSyncServerOption(ServerBuilder::MAX_POLLERS, 2)
        .SetSyncServerOption(ServerBuilder::CQ_TIMEOUT_MSEC, 1000);
  });
  EXPECT_TRUE(Say(echo).ok());
}

TEST(ServerBuilderTest, PortInUseClearsSelectedPort) {
  LoopbackNetwork network;
  ServerBuilder first;
  first.AddListeningPort(network.address(), InsecureServerCredentials());
  const auto server = first.BuildAndStart();
  ASSERT_NE(server, nullptr);
  int port = -1;
  ServerBuilder second;
  second.AddListeningPort(network.address(), InsecureServerCredentials(),
                          &port);
  EXPECT_EQ(second.BuildAndStart(), nullptr);
  EXPECT_EQ(port, 0);
}

// ---- Ending ----

// As a service that is declared after its server does.
TEST(ServiceTest, SaysHowItsMethodsAreHandled) {
  Echo::Service blocking;
  EXPECT_TRUE(blocking.has_synchronous_methods());
  EXPECT_FALSE(blocking.has_async_methods());
  EXPECT_FALSE(blocking.has_callback_methods());
  EXPECT_FALSE(blocking.has_generic_methods());
  Echo::AsyncService queued;
  EXPECT_TRUE(queued.has_async_methods());
  EXPECT_FALSE(queued.has_synchronous_methods());
  Echo::CallbackService reacting;
  EXPECT_TRUE(reacting.has_callback_methods());
  EXPECT_FALSE(reacting.has_synchronous_methods());
  Echo::WithGenericMethod_Say<Echo::Service> mixed;
  EXPECT_TRUE(mixed.has_generic_methods());
  EXPECT_TRUE(mixed.has_synchronous_methods());
}

TEST(ServerTest, AServiceMayGoBeforeItsServer) {
  LoopbackNetwork network;
  auto service = std::make_unique<Echo::AsyncService>();
  ServerBuilder builder;
  builder.AddListeningPort(network.address(), InsecureServerCredentials());
  builder.RegisterService(service.get());
  const auto queue = builder.AddCompletionQueue();
  const auto server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  ServerContext context;
  SayRequest request;
  ServerAsyncResponseWriter<SayResponse> responder(&context);
  service->RequestSay(&context, &request, &responder, queue.get(), queue.get(),
                      &context);
  service.reset();

  server->Shutdown();
  queue->Shutdown();
  void* tag = nullptr;
  bool ok = true;
  EXPECT_TRUE(queue->Next(&tag, &ok));
  EXPECT_EQ(tag, &context);
  EXPECT_FALSE(ok);
  EXPECT_FALSE(queue->Next(&tag, &ok));
}

// ---- Where handlers run ----

TEST(HandlerThreadsTest, SlowHandlersGoToTheExecutorAndComeBack) {
  SyncEcho service;
  EchoServer echo({}, &service);  // inline means: on this very thread
  const std::thread::id me = std::this_thread::get_id();
  std::atomic<bool> inline_run{false};
  service.before = [&](ServerContext*) {
    inline_run.store(std::this_thread::get_id() == me);
  };
  ASSERT_TRUE(Say(echo).ok());
  EXPECT_TRUE(inline_run.load());

  // Two slow ones that are timed, and the next runs elsewhere.
  const SayRequest slow = Sleeping(absl::Milliseconds(1));
  int calls = 0;
  do {
    ASSERT_TRUE(Say(echo, slow).ok());
    ASSERT_LT(++calls, 100);
  } while (inline_run.load());
  EXPECT_LE(calls, 20);

  const StoppedClock stopped;
  calls = 0;
  do {
    ASSERT_TRUE(Say(echo).ok());
    ASSERT_LT(++calls, 1000);
  } while (!inline_run.load());
  EXPECT_GE(calls, 64);
}

// One of the same lane was polled by a thread that took over.
TEST(HandlerThreadsTest, WhatComesMeanwhileRunsElsewhereUnlessOfAnotherLane) {
  const std::thread::id me = std::this_thread::get_id();
  for (const uint32_t lane : {0, 1}) {
    SyncEcho service;
    EchoServer echo({}, &service);
    std::vector<std::thread::id> threads;
    service.before = [&](ServerContext*) {
      threads.push_back(std::this_thread::get_id());
      if (threads.size() > 1) return;
      echo.network().SetLane(lane);
      EXPECT_TRUE(Say(echo).ok());
    };
    ASSERT_TRUE(Say(echo).ok());
    ASSERT_EQ(threads.size(), 2);
    EXPECT_EQ(threads[0], me);
    EXPECT_EQ(threads[1] == me, lane == 1);
  }
}

TEST(HandlerThreadsTest, BlockedHandlersDoNotHoldUpOthers) {
  SyncEcho service;
  EchoServer echo(kThreads, &service);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(Say(echo, Sleeping(absl::Milliseconds(1))).ok());
  }
  // All of these run at the same time, or they would wait for ever.
  constexpr int kCalls = 32;
  absl::Barrier* const barrier = new absl::Barrier(kCalls);
  service.before = [&](ServerContext*) {
    if (barrier->Block()) delete barrier;
  };
  std::atomic<int> done{0};
  absl::Notification all_done;
  std::vector<ClientContext> contexts(kCalls);
  std::vector<SayResponse> responses(kCalls);
  const SayRequest request;
  for (int i = 0; i < kCalls; ++i) {
    echo.stub().async()->Say(&contexts[i], &request, &responses[i],
                             [&](const Status& status) {
                               EXPECT_TRUE(status.ok()) << status;
                               if (done.fetch_add(1) + 1 == kCalls) {
                                 all_done.Notify();
                               }
                             });
  }
  all_done.WaitForNotification();
}

TEST(HandlerThreadsTest, FullQueueIsResourceExhausted) {
  SyncEcho service;
  EchoServer echo(kThreads, &service, {}, [](ServerBuilder& builder) {
    builder.AddChannelArgument("verbena.handler_threads", 1);
    builder.AddChannelArgument("verbena.handler_queue", 1);
  });
  while (service.calls.load() < 30) {
    ASSERT_TRUE(Say(echo, Sleeping(absl::Milliseconds(1))).ok());
  }
  absl::Notification release;
  std::atomic<int> running{0};
  service.before = [&](ServerContext*) {
    running.fetch_add(1);
    release.WaitForNotification();
  };
  constexpr int kCalls = 3;  // one runs, one waits, one is too many
  std::atomic<int> ok{0};
  std::atomic<int> exhausted{0};
  std::vector<ClientContext> contexts(kCalls);
  std::vector<SayResponse> responses(kCalls);
  const SayRequest request;
  for (int i = 0; i < kCalls; ++i) {
    echo.stub().async()->Say(
        &contexts[i], &request, &responses[i], [&](const Status& status) {
          if (status.ok()) ok.fetch_add(1);
          if (status.error_code() == StatusCode::RESOURCE_EXHAUSTED) {
            exhausted.fetch_add(1);
          }
        });
    if (i == 0) {
      while (running.load() == 0) std::this_thread::yield();
    }
  }
  while (exhausted.load() == 0) std::this_thread::yield();
  release.Notify();
  while (ok.load() < kCalls - 1) std::this_thread::yield();
  EXPECT_EQ(exhausted.load(), 1);
}

TEST(HandlerThreadsTest, DeadlinePassesInTheQueueAndTheHandlerDoesNotRun) {
  SyncEcho service;
  EchoServer echo(kThreads, &service, {}, [](ServerBuilder& builder) {
    builder.AddChannelArgument("verbena.handler_threads", 1);
  });
  while (service.calls.load() < 30) {
    ASSERT_TRUE(Say(echo, Sleeping(absl::Milliseconds(1))).ok());
  }
  absl::Notification release;
  std::atomic<int> running{0};
  service.before = [&](ServerContext*) {
    running.fetch_add(1);
    release.WaitForNotification();
  };
  ClientContext blocker;
  SayResponse blocker_response;
  const SayRequest request;
  absl::Notification blocker_done;
  echo.stub().async()->Say(&blocker, &request, &blocker_response,
                           [&](const Status&) { blocker_done.Notify(); });
  while (running.load() == 0) std::this_thread::yield();
  ClientContext context;
  SayResponse response;
  context.set_deadline(absl::Now() + absl::Milliseconds(20));
  EXPECT_EQ(echo.stub().Say(&context, request, &response).error_code(),
            StatusCode::DEADLINE_EXCEEDED);
  release.Notify();
  blocker_done.WaitForNotification();
  echo.server().Shutdown();
  EXPECT_EQ(running.load(), 1);
}

// ---- Shutting down ----

TEST(ShutdownTest, WaitsForRunningCalls) {
  SyncEcho service;
  EchoServer echo(kThreads, &service);
  absl::Notification begun;
  service.before = [&](ServerContext*) { begun.Notify(); };
  ClientContext context;
  SayResponse response;
  const SayRequest request = Sleeping(absl::Milliseconds(30));
  std::atomic<bool> finished{false};
  absl::Notification done;
  echo.stub().async()->Say(&context, &request, &response,
                           [&](const Status& status) {
                             EXPECT_TRUE(status.ok()) << status;
                             finished.store(true);
                             done.Notify();
                           });
  begun.WaitForNotification();
  std::thread waiter([&] { echo.server().Wait(); });
  echo.server().Shutdown();
  echo.server().Shutdown();  // has no effect
  waiter.join();
  done.WaitForNotification();
  EXPECT_EQ(Say(echo).error_code(), StatusCode::UNAVAILABLE);
}

TEST(ShutdownTest, DeadlineCancelsWhatStillRuns) {
  CallbackEcho callback;
  SyncEcho sync;
  for (Service* const service :
       {static_cast<Service*>(&sync), static_cast<Service*>(&callback)}) {
    EchoServer echo(kThreads, service);
    ClientContext context;
    SayRequest request;
    SayResponse response;
    request.set_wait_until_cancelled(true);
    absl::Notification done;
    const int calls = sync.calls.load() + callback.calls.load();
    echo.stub().async()->Say(
        &context, &request, &response, [&](const Status& status) {
          EXPECT_EQ(status.error_code(), StatusCode::CANCELLED) << status;
          done.Notify();
        });
    while (sync.calls.load() + callback.calls.load() == calls) {
      std::this_thread::yield();
    }
    echo.server().Shutdown(std::chrono::system_clock::now() +
                           std::chrono::milliseconds(20));
    done.WaitForNotification();
  }
  EXPECT_EQ(callback.dones.load(), 1);
}

TEST(ShutdownTest, ReactorsAreWaitedFor) {
  class Late final : public Echo::CallbackService {
   public:
    ServerUnaryReactor* Say(CallbackServerContext* context, const SayRequest*,
                            SayResponse*) override {
      reactor.store(context->DefaultReactor());
      return context->DefaultReactor();
    }
    std::atomic<ServerUnaryReactor*> reactor{nullptr};
  };
  Late service;
  EchoServer echo(kThreads, &service);
  ClientContext context;
  SayRequest request;
  SayResponse response;
  absl::Notification done;
  echo.stub().async()->Say(&context, &request, &response,
                           [&](const Status&) { done.Notify(); });
  while (service.reactor.load() == nullptr) std::this_thread::yield();
  std::atomic<bool> shut_down{false};
  std::thread shutdown([&] {
    echo.server().Shutdown(absl::Now());
    shut_down.store(true);
  });
  done.WaitForNotification();  // cancelled
  absl::SleepFor(absl::Milliseconds(10));
  EXPECT_FALSE(shut_down.load());
  service.reactor.load()->Finish(Status::OK);
  shutdown.join();
}

TEST(ShutdownTest, UnderLoad) {
  for (int round = 0; round < 10; ++round) {
    SyncEcho service;
    auto echo = std::make_unique<EchoServer>(kThreads, &service);
    std::atomic<bool> stop{false};
    std::vector<std::thread> clients;
    for (int i = 0; i < 4; ++i) {
      clients.emplace_back([&, i] {
        while (!stop.load()) {
          const Status status =
              Say(*echo, Sleeping(absl::Microseconds(i * 100)));
          EXPECT_TRUE(status.ok() ||
                      status.error_code() == StatusCode::UNAVAILABLE ||
                      status.error_code() == StatusCode::CANCELLED)
              << status;
        }
      });
    }
    while (service.calls.load() < 50) std::this_thread::yield();
    echo->server().Shutdown(absl::Now() + absl::Milliseconds(1));
    stop.store(true);
    for (std::thread& client : clients) client.join();
  }
}

TEST(ShutdownTest, ManyServersOneAfterTheOther) {
  SyncEcho service;
  for (int i = 0; i < 50; ++i) {
    EchoServer echo({}, &service);
    EXPECT_TRUE(Say(echo).ok());
  }
}

}  // namespace
}  // namespace rpc::testing
