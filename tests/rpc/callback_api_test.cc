// The finer points of reactors and callbacks, on both sides.
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/rpc/echo_service.h"
#include "tests/rpc/loopback_transport.h"

namespace rpc::testing {
namespace {

class CallbackApiTest : public ::testing::TestWithParam<int> {
 protected:
  LoopbackOptions options() const { return {.threads = GetParam()}; }
};

// A callback service whose method is a function.
class FunctionEcho final : public Echo::CallbackService {
 public:
  using Function = std::function<ServerUnaryReactor*(
      CallbackServerContext*, const SayRequest*, SayResponse*)>;

  explicit FunctionEcho(Function function) : function_(std::move(function)) {}

 private:
  ServerUnaryReactor* Say(CallbackServerContext* context,
                          const SayRequest* request,
                          SayResponse* response) override {
    return function_(context, request, response);
  }

  const Function function_;
};

TEST_P(CallbackApiTest, CallbackMayDestroyEverything) {
  SyncEcho service;
  EchoServer echo(options(), &service);
  struct Everything {
    std::shared_ptr<Channel> channel;
    std::unique_ptr<Echo::Stub> stub;
    ClientContext context;
    SayRequest request;
    SayResponse response;
  };
  for (int i = 0; i < 20; ++i) {
    auto* const everything = new Everything;
    everything->channel =
        CreateChannel(echo.network().address(), InsecureChannelCredentials());
    everything->stub = Echo::NewStub(everything->channel);
    absl::Notification done;
    everything->stub->async()->Say(&everything->context, &everything->request,
                                   &everything->response,
                                   [everything, &done](const Status& status) {
                                     EXPECT_TRUE(status.ok()) << status;
                                     delete everything;
                                     done.Notify();
                                   });
    done.WaitForNotification();
  }
}

TEST_P(CallbackApiTest, CallKeepsItsChannelAlive) {
  SyncEcho service;
  EchoServer echo({.threads = 2, .delay = absl::Milliseconds(5)}, &service);
  ClientContext context;
  SayRequest request;
  SayResponse response;
  absl::Notification done;
  {
    const auto channel =
        CreateChannel(echo.network().address(), InsecureChannelCredentials());
    Echo::NewStub(channel)->async()->Say(&context, &request, &response,
                                         [&](const Status& status) {
                                           EXPECT_TRUE(status.ok()) << status;
                                           done.Notify();
                                         });
  }
  done.WaitForNotification();
}

// The first of those that begin here goes on with what the call that is over
// held; the others hold the channel themselves, and each does so to its end.
TEST_P(CallbackApiTest, CallsBegunInACallbackKeepTheChannelAlive) {
  constexpr int kCalls = 3;
  SyncEcho service;
  EchoServer echo({.threads = 2, .delay = absl::Milliseconds(2)}, &service);
  struct Call {
    ClientContext context;
    SayRequest request;
    SayResponse response;
  };
  for (const bool on_others_stack : {false, true}) {
    Call first, further[kCalls];
    auto channel =
        CreateChannel(echo.network().address(), InsecureChannelCredentials());
    auto stub = Echo::NewStub(channel);
    const std::weak_ptr<Channel> weak = channel;
    absl::BlockingCounter over(kCalls + 1);
    const auto begin = [&] {
      for (Call& call : further) {
        stub->async()->Say(&call.context, &call.request, &call.response,
                           [&](const Status& status) {
                             EXPECT_TRUE(status.ok()) << status;
                             EXPECT_FALSE(weak.expired());
                             over.DecrementCount();
                           });
      }
      stub.reset();
      channel.reset();
      over.DecrementCount();
    };
    stub->async()->Say(&first.context, &first.request, &first.response,
                       [&](const Status& status) {
                         EXPECT_TRUE(status.ok()) << status;
                         if (!on_others_stack) return begin();
                         std::thread(begin).join();
                       });
    over.Wait();
    // The last callback may be returning still.
    while (!weak.expired()) std::this_thread::yield();
  }
}

TEST_P(CallbackApiTest, CallbackNeverRunsOnTheCallersStack) {
  SyncEcho service;
  EchoServer echo(options(), &service);
  std::mutex mutex;
  for (const bool good : {true, false}) {
    ClientContext context;
    SayRequest request;
    SayResponse response;
    if (!good) context.AddMetadata("Illegal", "key");
    absl::Notification done;
    {
      // A callback that takes the same lock would not come through.
      std::lock_guard lock(mutex);
      echo.stub().async()->Say(&context, &request, &response,
                               [&](const Status& status) {
                                 {
                                   std::lock_guard inner(mutex);
                                   EXPECT_EQ(status.ok(), good);
                                 }
                                 // From here on the mutex may be gone.
                                 done.Notify();
                               });
    }
    done.WaitForNotification();
  }
}

TEST_P(CallbackApiTest, ChainOfCallsFromCallbacks) {
  SyncEcho service;
  EchoServer echo(options(), &service);
  class Chain {
   public:
    explicit Chain(Echo::Stub& stub) : stub_(stub) { Next(); }
    void Wait() { done_.WaitForNotification(); }

   private:
    void Next() {
      context_ = std::make_unique<ClientContext>();
      stub_.async()->Say(context_.get(), &request_, &response_,
                         [this](const Status& status) {
                           EXPECT_TRUE(status.ok()) << status;
                           if (++calls_ == 1000) return done_.Notify();
                           Next();
                         });
    }
    Echo::Stub& stub_;
    std::unique_ptr<ClientContext> context_;
    SayRequest request_;
    SayResponse response_;
    int calls_ = 0;
    absl::Notification done_;
  };
  Chain chain(echo.stub());
  chain.Wait();
}

TEST_P(CallbackApiTest, ReactorServesOneCallAfterTheOther) {
  SyncEcho service;
  EchoServer echo(options(), &service);
  class Again final : public ClientUnaryReactor {
   public:
    explicit Again(Echo::Stub& stub) : stub_(stub) { Next(); }
    void Wait() { done_.WaitForNotification(); }

   private:
    void Next() {
      context_ = std::make_unique<ClientContext>();
      stub_.async()->Say(context_.get(), &request_, &response_, this);
      StartCall();
    }
    void OnDone(const Status& status) override {
      EXPECT_TRUE(status.ok()) << status;
      if (++calls_ == 100) return done_.Notify();
      Next();
    }
    Echo::Stub& stub_;
    std::unique_ptr<ClientContext> context_;
    SayRequest request_;
    SayResponse response_;
    int calls_ = 0;
    absl::Notification done_;
  };
  Again again(echo.stub());
  again.Wait();
}

TEST_P(CallbackApiTest, ReactorThatIsNeverStartedLeavesNothing) {
  SyncEcho service;
  EchoServer echo(options(), &service);
  ClientContext context;
  SayRequest request;
  SayResponse response;
  ClientUnaryReactor reactor;
  echo.stub().async()->Say(&context, &request, &response, &reactor);
}

TEST_P(CallbackApiTest, BlockingCallFromACallback) {
  SyncEcho service;
  EchoServer echo(options(), &service);
  ClientContext context;
  SayRequest request;
  SayResponse response;
  absl::Notification done;
  echo.stub().async()->Say(&context, &request, &response, [&](const Status&) {
    ClientContext inner_context;
    SayResponse inner_response;
    EXPECT_TRUE(echo.stub().Say(&inner_context, request, &inner_response).ok());
    done.Notify();
  });
  done.WaitForNotification();
}

// ---- Server reactors ----

TEST_P(CallbackApiTest, FinishBeforeTheHandlerReturns) {
  class Eager final : public ServerUnaryReactor {
   public:
    explicit Eager(std::atomic<int>* dones) : dones_(*dones) {
      StartSendInitialMetadata();
      Finish(Status(StatusCode::ABORTED, "at once"));
    }
    void OnDone() override {
      dones_.fetch_add(1);
      delete this;
    }

   private:
    std::atomic<int>& dones_;
  };
  std::atomic<int> dones{0};
  FunctionEcho service(
      [&](CallbackServerContext* context, const SayRequest*, SayResponse*) {
        context->AddInitialMetadata("early", "yes");
        return new Eager(&dones);
      });
  EchoServer echo(options(), &service);
  ClientContext context;
  SayResponse response;
  const Status status = echo.stub().Say(&context, SayRequest(), &response);
  EXPECT_EQ(status.error_message(), "at once");
  EXPECT_EQ(context.GetServerInitialMetadata().count("early"), 1u);
  echo.server().Shutdown();
  EXPECT_EQ(dones.load(), 1);
}

TEST_P(CallbackApiTest, NoReactorIsUnimplemented) {
  FunctionEcho service([](CallbackServerContext*, const SayRequest*,
                          SayResponse*) { return nullptr; });
  EchoServer echo(options(), &service);
  ClientContext context;
  SayResponse response;
  EXPECT_EQ(echo.stub().Say(&context, SayRequest(), &response).error_code(),
            StatusCode::UNIMPLEMENTED);
}

TEST_P(CallbackApiTest, FinishFromAnotherThreadAtAnyMoment) {
  class Plain final : public ServerUnaryReactor {
   public:
    void OnDone() override { delete this; }
  };
  std::vector<std::thread> threads;
  FunctionEcho service(
      [&](CallbackServerContext*, const SayRequest*, SayResponse* response) {
        auto* const reactor = new Plain;
        threads.emplace_back([=] {
          response->set_text("from elsewhere");
          reactor->Finish(Status::OK);
        });
        return reactor;
      });
  EchoServer echo(options(), &service);
  for (int i = 0; i < 200; ++i) {
    ClientContext context;
    SayResponse response;
    const Status status = echo.stub().Say(&context, SayRequest(), &response);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(response.text(), "from elsewhere");
  }
  echo.server().Shutdown();
  for (std::thread& thread : threads) thread.join();
}

// Initial metadata that go alone arrive before the response does.
TEST(InitialMetadataTest, ArriveBeforeTheResponse) {
  class Slow final : public ServerUnaryReactor {
   public:
    Slow() { StartSendInitialMetadata(); }
    void OnSendInitialMetadataDone(bool ok) override {
      EXPECT_TRUE(ok);
      sent.Notify();
    }
    void OnDone() override { done.Notify(); }
    absl::Notification sent;
    absl::Notification done;
  };
  Slow server_reactor;
  FunctionEcho service(
      [&](CallbackServerContext* context, const SayRequest*, SayResponse*) {
        context->AddInitialMetadata("early", "yes");
        context->AddTrailingMetadata("late", "yes");
        return &server_reactor;
      });
  EchoServer echo({.threads = 4}, &service);

  class Client final : public ClientUnaryReactor {
   public:
    void OnReadInitialMetadataDone(bool ok) override {
      EXPECT_TRUE(ok);
      EXPECT_EQ(context.GetServerInitialMetadata().count("early"), 1u);
      EXPECT_FALSE(done.HasBeenNotified());
      initial.Notify();
    }
    void OnDone(const Status& status) override {
      EXPECT_TRUE(status.ok()) << status;
      done.Notify();
    }
    ClientContext context;
    SayRequest request;
    SayResponse response;
    absl::Notification initial;
    absl::Notification done;
  };
  Client client;
  echo.stub().async()->Say(&client.context, &client.request, &client.response,
                           &client);
  client.StartCall();
  client.initial.WaitForNotification();
  server_reactor.sent.WaitForNotification();
  server_reactor.Finish(Status::OK);
  client.done.WaitForNotification();
  server_reactor.done.WaitForNotification();
  EXPECT_EQ(client.context.GetServerTrailingMetadata().count("late"), 1u);
}

// OnCancel may finish the call itself.
TEST(OnCancelTest, FinishFromOnCancel) {
  class Canceller final : public ServerUnaryReactor {
   public:
    void OnCancel() override {
      cancelled = true;
      Finish(Status::CANCELLED);
    }
    void OnDone() override {
      EXPECT_TRUE(cancelled);
      done.Notify();
    }
    bool cancelled = false;
    absl::Notification done;
  };
  Canceller reactor;
  std::atomic<bool> called{false};
  FunctionEcho service(
      [&](CallbackServerContext*, const SayRequest*, SayResponse*) {
        called.store(true);
        return &reactor;
      });
  EchoServer echo({.threads = 4}, &service);
  ClientContext context;
  SayRequest request;
  SayResponse response;
  absl::Notification done;
  echo.stub().async()->Say(
      &context, &request, &response, [&](const Status& status) {
        EXPECT_EQ(status.error_code(), StatusCode::CANCELLED);
        done.Notify();
      });
  while (!called.load()) std::this_thread::yield();
  context.TryCancel();
  done.WaitForNotification();
  reactor.done.WaitForNotification();
}

INSTANTIATE_TEST_SUITE_P(Threads, CallbackApiTest, ::testing::Values(0, 4));

}  // namespace
}  // namespace rpc::testing
