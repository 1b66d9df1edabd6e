// Goal: interceptors of a server see every operation of its calls, in order,
// and what they change counts, for each kind of call and each of the server's
// APIs. Method: a server by each API with interceptors that note what they see,
// or that change one thing each, and blocking calls of all kinds.
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/e2e/calls_by_api.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/interceptors.h"
#include "tests/e2e/parcels.h"
#include "tests/e2e/parcels_by_api.h"
#include "tests/e2e/server_reactors.h"

namespace e2e {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using Names = std::vector<std::string>;

void Append(Names& names, const Names& more) {
  names.insert(names.end(), more.begin(), more.end());
}

// A server with interceptors, and a plain channel to it.
class ServerInterceptorsTest : public testing::Test {
 protected:
  // The server runs until the result goes, or Stop: interceptors refer to what
  // the test has on its stack. `served` may be null: it has no service.
  using Running = std::unique_ptr<ServerInterceptorsTest,
                                  void (*)(ServerInterceptorsTest*)>;
  [[nodiscard]] Running Start(ServedParcels* served,
                              const std::vector<Act>& acts) {
    return StartBy(served, ServerFactories(acts));
  }
  [[nodiscard]] Running StartBy(
      ServedParcels* served,
      std::vector<
          std::unique_ptr<rpc::experimental::ServerInterceptorFactoryInterface>>
          factories) {
    rpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(ServerUri(), rpc::InsecureServerCredentials(),
                             &port);
    builder.AddChannelArgument("verbena.device",
                               TheDeviceUnderTest().server_device);
    if (served != nullptr) served->Register(builder);
    builder.experimental().SetInterceptorCreators(std::move(factories));
    server_ = builder.BuildAndStart();
    EXPECT_NE(server_, nullptr);
    served_by_ = served;
    if (served != nullptr) served->Begin();
    channel_ = InterceptedChannel(ServerUri(port), {});
    return Running(this, [](ServerInterceptorsTest* test) { test->Stop(); });
  }
  // All that interceptors will see is seen.
  void Stop() {
    server_.reset();
    ServedParcels* const served = std::exchange(served_by_, nullptr);
    if (served != nullptr) served->End();
  }

  Exchanged<Parcel> CallOf(RpcType type) {
    return Call(ClientApi::kBlocking, type, channel_, &context_);
  }
  static std::string ValueOf(const rpc::ReceivedMetadataMap& metadata,
                             const std::string& key) {
    const auto found = metadata.find(key);
    return found == metadata.end() ? "none" : std::string(found->second);
  }

  std::unique_ptr<rpc::Server> server_;
  ServedParcels* served_by_ = nullptr;  // until it has ended; may be null
  std::shared_ptr<rpc::Channel> channel_;
  TimedContext context_;
};

class EachServedCallTest
    : public ServerInterceptorsTest,
      public testing::WithParamInterface<std::tuple<ServerApi, RpcType>> {
 protected:
  EachServedCallTest() : served_(ServeParcels(api())) {}

  ServerApi api() const { return std::get<0>(GetParam()); }
  RpcType type() const { return std::get<1>(GetParam()); }
  bool generic() const { return api() == ServerApi::kGeneric; }
  [[nodiscard]] Running StartWith(const std::vector<Act>& acts) {
    return Start(served_.get(), acts);
  }
  Exchanged<Parcel> MakeCall() { return CallOf(type()); }

  // A generic service gives back each request, so that a client that takes one
  // response and sends several gets too many.
  bool fits() const {
    return !generic() || type() != RpcType::CLIENT_STREAMING;
  }
  void ExpectWentWell(const Exchanged<Parcel>& result) {
    if (!fits()) return;
    EXPECT_OK(result.status);
    const bool one = !ServerStreams(type()) ||
                     (generic() && type() == RpcType::SERVER_STREAMING);
    EXPECT_EQ(result.responses.size(), one ? 1 : 2);
  }
  Names ExpectedReceived() const;
  Names ExpectedSent() const;

  const std::unique_ptr<ServedParcels> served_;
};

Names EachServedCallTest::ExpectedReceived() const {
  Names names = {"post_recv_initial_metadata", "post_recv_message"};
  if (ClientStreams(type())) names.push_back("post_recv_message");
  // Streams are read until there is nothing more.
  if (generic() || ClientStreams(type())) names.push_back("post_recv_message");
  names.push_back("post_recv_close");
  return names;
}

Names EachServedCallTest::ExpectedSent() const {
  if (!generic() && !ServerStreams(type())) {
    return {"pre_send_initial_metadata", "pre_send_message", "pre_send_status",
            "post_send_message"};
  }
  Names names = {"pre_send_initial_metadata"};
  const bool two = generic() ? ClientStreams(type()) : true;
  for (int i = 0; i < (two ? 2 : 1); ++i) {
    Append(names, {"pre_send_message", "post_send_message"});
  }
  names.push_back("pre_send_status");
  return names;
}

TEST_P(EachServedCallTest, ShowsItsHookPointsInOrder) {
  if (!fits()) GTEST_SKIP() << "the client cancels";
  HookLog log;
  const Running running = StartWith({Noting(&log)});
  ExpectWentWell(MakeCall());
  Stop();
  EXPECT_THAT(log.Received(), ElementsAreArray(ExpectedReceived()));
  EXPECT_THAT(log.Sent(), ElementsAreArray(ExpectedSent()));
}

TEST_P(EachServedCallTest, GoesOnWhenInterceptorsProceedOnAnotherThread) {
  if (!fits()) GTEST_SKIP() << "the client cancels";
  HookLog first;
  HookLog second;
  {
    OtherThread thread;
    const Running running = StartWith(
        {thread.Doing(Noting(&first)), thread.Doing(Noting(&second))});
    ExpectWentWell(MakeCall());
    Stop();
  }
  EXPECT_THAT(first.Received(), ElementsAreArray(ExpectedReceived()));
  EXPECT_THAT(first.Sent(), ElementsAreArray(ExpectedSent()));
  EXPECT_THAT(second.Received(), ElementsAreArray(ExpectedReceived()));
  EXPECT_THAT(second.Sent(), ElementsAreArray(ExpectedSent()));
}

TEST_P(EachServedCallTest, AsksFromFirstToLastAndBack) {
  absl::Mutex mutex;
  std::string sent;
  std::string received;
  const auto named = [&](char name) -> Act {
    return [&, name](Batch* batch) {
      {
        absl::MutexLock lock(&mutex);
        if (batch->QueryInterceptionHookPoint(Hook::PRE_SEND_STATUS)) {
          sent += name;
        }
        if (batch->QueryInterceptionHookPoint(
                Hook::POST_RECV_INITIAL_METADATA)) {
          received += name;
        }
      }
      batch->Proceed();
    };
  };
  const Running running =
      StartWith({named('a'), nullptr, named('b'), named('c')});
  ExpectWentWell(MakeCall());
  Stop();
  EXPECT_EQ(received, "cba");
  EXPECT_EQ(sent, "abc");
}

TEST_P(EachServedCallTest,
       SendsInitialMetadataOnceWhereTheHandlerSendsItFirst) {
  HookLog log;
  const Running running = StartWith({Noting(&log)});
  context_.AddMetadata("early", "yes");
  ExpectWentWell(MakeCall());
  Stop();
  EXPECT_EQ(log.CountOf(Hook::PRE_SEND_INITIAL_METADATA), 1);
}

TEST_P(EachServedCallTest, SendsMetadataThatAnInterceptorAdds) {
  const Running running = StartWith({[](Batch* batch) {
    if (auto* const metadata = batch->GetSendInitialMetadata()) {
      metadata->emplace("initial", "yes");
    }
    if (auto* const metadata = batch->GetSendTrailingMetadata()) {
      metadata->emplace("trailing", "yes");
    }
    batch->Proceed();
  }});
  ExpectWentWell(MakeCall());
  EXPECT_EQ(ValueOf(context_.GetServerInitialMetadata(), "initial"), "yes");
  if (fits()) {
    EXPECT_EQ(ValueOf(context_.GetServerTrailingMetadata(), "trailing"), "yes");
  }
}

TEST_P(EachServedCallTest, GivesTheHandlerMetadataThatAnInterceptorAdds) {
  HookLog log;
  const Running running = StartWith({[&](Batch* batch) {
    if (auto* const metadata = batch->GetRecvInitialMetadata()) {
      metadata->emplace("early", "yes");
    }
    // Alone, where the handler has seen it.
    if (batch->QueryInterceptionHookPoint(Hook::PRE_SEND_INITIAL_METADATA) &&
        !batch->QueryInterceptionHookPoint(Hook::PRE_SEND_MESSAGE)) {
      log.Note(batch);
    }
    batch->Proceed();
  }});
  ExpectWentWell(MakeCall());
  Stop();
  // Blocking handlers and coroutines of unary calls cannot.
  const bool can =
      type() != RpcType::NORMAL_RPC ||
      (api() != ServerApi::kBlocking && api() != ServerApi::kCoroutine);
  EXPECT_EQ(log.CountOf(Hook::PRE_SEND_INITIAL_METADATA), can ? 1 : 0);
}

TEST_P(EachServedCallTest, SendsWhatAnInterceptorPutsInPlace) {
  if (generic()) GTEST_SKIP() << "its messages are bytes";
  Parcel replacement;
  replacement.set_code(77);
  const Running running = StartWith({[&](Batch* batch) {
    if (batch->QueryInterceptionHookPoint(Hook::PRE_SEND_MESSAGE)) {
      batch->ModifySendMessage(&replacement);
    }
    batch->Proceed();
  }});
  const Exchanged<Parcel> result = MakeCall();
  ExpectWentWell(result);
  for (const Parcel& response : result.responses) {
    EXPECT_EQ(response.code(), 77);
  }
}

TEST_P(EachServedCallTest, GivesTheHandlerWhatAnInterceptorMakesOfARequest) {
  const bool echoes =
      type() == RpcType::NORMAL_RPC || type() == RpcType::BIDI_STREAMING;
  if (generic() || !echoes) GTEST_SKIP() << "no request comes back";
  const Running running = StartWith({[&](Batch* batch) {
    if (auto* const message = static_cast<Parcel*>(batch->GetRecvMessage())) {
      message->set_code(50);
    }
    batch->Proceed();
  }});
  const Exchanged<Parcel> result = MakeCall();
  ExpectWentWell(result);
  for (const Parcel& response : result.responses) {
    EXPECT_EQ(response.code(), type() == RpcType::NORMAL_RPC ? 51 : 50);
  }
}

TEST_P(EachServedCallTest, EndsWithTheStatusThatAnInterceptorSets) {
  if (!fits()) GTEST_SKIP() << "the client cancels";
  const Running running = StartWith({[](Batch* batch) {
    if (batch->QueryInterceptionHookPoint(Hook::PRE_SEND_STATUS)) {
      EXPECT_OK(batch->GetSendStatus());
      batch->ModifySendStatus(
          rpc::Status(rpc::StatusCode::DATA_LOSS, "by interceptor", "details"));
    }
    batch->Proceed();
  }});
  const rpc::Status status = MakeCall().status;
  EXPECT_TRUE(HasCode(status, rpc::StatusCode::DATA_LOSS));
  EXPECT_EQ(status.error_message(), "by interceptor");
  EXPECT_EQ(status.error_details(), "details");
}

TEST_P(EachServedCallTest, IsShownItsEndWhereTheClientCancels) {
  HookLog log;
  absl::Notification came;
  absl::Notification go_on;
  const Running running = StartWith({[&](Batch* batch) {
    log.Note(batch);
    if (batch->QueryInterceptionHookPoint(Hook::POST_RECV_INITIAL_METADATA)) {
      came.Notify();
      go_on.WaitForNotification();
    }
    batch->Proceed();
  }});
  std::thread canceller([&] {
    came.WaitForNotification();
    context_.TryCancel();
  });
  EXPECT_TRUE(HasCode(MakeCall().status, rpc::StatusCode::CANCELLED));
  canceller.join();
  go_on.Notify();
  Stop();
  EXPECT_EQ(log.CountOf(Hook::POST_RECV_CLOSE), 1);
}

INSTANTIATE_TEST_SUITE_P(All, EachServedCallTest,
                         testing::Combine(testing::ValuesIn(kAllServerApis),
                                          testing::ValuesIn(kAllTypes)),
                         [](const auto& info) {
                           return NameOf(std::get<0>(info.param)) +
                                  MethodOf(std::get<1>(info.param));
                         });

// ---- Of no API in particular.

// A blocking service whose handler the test says.
class UnaryService final : public ServedParcels, public Parcels::Service {
 public:
  std::function<rpc::Status(rpc::ServerContext*)> handler;

 private:
  void Register(rpc::ServerBuilder& builder) override {
    builder.RegisterService(this);
  }
  rpc::Status Unary(rpc::ServerContext* context, const Parcel*,
                    Parcel*) override {
    return handler(context);
  }
};

TEST_F(ServerInterceptorsTest, SeeCallsOfUnknownMethods) {
  HookLog log;
  const Running running = Start(nullptr, {Noting(&log)});
  const rpc::Status status = CallOf(RpcType::NORMAL_RPC).status;
  EXPECT_TRUE(HasCode(status, rpc::StatusCode::UNIMPLEMENTED));
  EXPECT_EQ(status.error_message(), "");
  Stop();
  EXPECT_EQ(log.CountOf(Hook::POST_RECV_INITIAL_METADATA), 1);
  EXPECT_EQ(log.CountOf(Hook::PRE_SEND_INITIAL_METADATA), 1);
  EXPECT_EQ(log.CountOf(Hook::POST_RECV_CLOSE), 1);
}

TEST_F(ServerInterceptorsTest, SeeCallsWhoseRequestDoesNotParse) {
  HookLog log;
  UnaryService service;
  const Running running = Start(&service, {Noting(&log)});
  const auto result = Exchange<Forgery, Parcel>(channel_, RpcType::NORMAL_RPC,
                                                "/e2e.Parcels/Unary", &context_,
                                                {ForgeryOf(100)});
  EXPECT_TRUE(HasCode(result.status, rpc::StatusCode::INTERNAL));
  Stop();
  EXPECT_EQ(log.CountOf(Hook::POST_RECV_MESSAGE), 0);
  EXPECT_EQ(log.CountOf(Hook::PRE_SEND_STATUS), 1);
}

TEST_F(ServerInterceptorsTest, HearOfTheHandlersTryCancel) {
  HookLog log;
  UnaryService service;
  service.handler = [](rpc::ServerContext* context) {
    context->TryCancel();
    return rpc::Status::OK;
  };
  const Running running = Start(&service, {Noting(&log), Noting(&log)});
  EXPECT_TRUE(
      HasCode(CallOf(RpcType::NORMAL_RPC).status, rpc::StatusCode::CANCELLED));
  Stop();
  EXPECT_EQ(log.CountOf(Hook::PRE_SEND_CANCEL), 2);
}

TEST_F(ServerInterceptorsTest, AHandlerLearnsOfCancelling) {
  absl::Notification began;
  UnaryService service;
  service.handler = [&](rpc::ServerContext* context) {
    began.Notify();
    while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    return rpc::Status::OK;
  };
  const Running running =
      Start(&service, {[](Batch* batch) { batch->Proceed(); }});
  std::thread canceller([&] {
    began.WaitForNotification();
    context_.TryCancel();
  });
  EXPECT_TRUE(
      HasCode(CallOf(RpcType::NORMAL_RPC).status, rpc::StatusCode::CANCELLED));
  canceller.join();
}

TEST_F(ServerInterceptorsTest, CannotHijack) {
  UnaryService service;
  service.handler = [](rpc::ServerContext*) { return rpc::Status::OK; };
  const Running running = Start(&service, {[](Batch* batch) {
    EXPECT_EQ(batch->GetInterceptedChannel(), nullptr);
    batch->Hijack();
  }});
  EXPECT_OK(CallOf(RpcType::NORMAL_RPC).status);
}

// Keeps what its factory was told.
class KnowingFactory final
    : public rpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit KnowingFactory(Names* log) : log_(*log) {}
  rpc::experimental::Interceptor* CreateServerInterceptor(
      rpc::experimental::ServerRpcInfo* info) override {
    log_.push_back(std::string(info->method()) + " " +
                   std::to_string(static_cast<int>(info->type())));
    const auto& metadata = info->server_context()->client_metadata();
    log_.push_back(metadata.count("early") > 0 ? "early" : "not early");
    return nullptr;
  }

 private:
  Names& log_;
};

TEST_F(ServerInterceptorsTest, FactoriesKnowTheCall) {
  Names log;
  const std::unique_ptr<ServedParcels> served =
      ServeParcels(ServerApi::kBlocking);
  std::vector<
      std::unique_ptr<rpc::experimental::ServerInterceptorFactoryInterface>>
      factories;
  factories.push_back(std::make_unique<KnowingFactory>(&log));
  const Running running = StartBy(served.get(), std::move(factories));
  context_.AddMetadata("early", "yes");
  EXPECT_OK(CallOf(RpcType::BIDI_STREAMING).status);
  Stop();
  EXPECT_THAT(log, ElementsAre("/e2e.Parcels/Chat 3", "early"));
}

// ---- Calls that are cut off while interceptors hold up their handlers.

class HeldUpReactorTest : public ServerInterceptorsTest {
 protected:
  // Handlers begin once their call is cut off, and the interceptors know.
  [[nodiscard]] Running StartHolding() {
    return Start(&served_, {other_.Doing([this](Batch* batch) {
      if (batch->QueryInterceptionHookPoint(Hook::POST_RECV_INITIAL_METADATA)) {
        came_.Notify();
        closed_.WaitForNotification();
      }
      if (batch->QueryInterceptionHookPoint(Hook::POST_RECV_CLOSE)) {
        closed_.Notify();
      }
      batch->Proceed();
    })});
  }
  // A call whose handler's reactor is `reactor`.
  template <class Reactor>
  void ExpectToldOfCancelling(RpcType type, Reactor& reactor) {
    reactor.on_cancel = [&] { reactor.End(rpc::Status::CANCELLED); };
    const Running running = StartHolding();
    std::thread canceller([&] {
      came_.WaitForNotification();
      context_.TryCancel();
    });
    EXPECT_TRUE(HasCode(CallOf(type).status, rpc::StatusCode::CANCELLED));
    canceller.join();
    // It waits for the reactor.
    Stop();
    EXPECT_THAT(reactor.log(), ElementsAre("cancel", "done"));
  }

  // A service with no more than the server needs of it.
  class Served final : public ServedParcels {
   public:
    ReactorService service;

   private:
    void Register(rpc::ServerBuilder& builder) override {
      builder.RegisterService(&service);
    }
  };

  Served served_;
  absl::Notification came_;
  absl::Notification closed_;
  OtherThread other_;
};

TEST_F(HeldUpReactorTest, OfAUnaryCallHearsOfIt) {
  ServerUnary reactor;
  served_.service.unary = [&](auto*, const Parcel*, Parcel*) {
    return &reactor;
  };
  ExpectToldOfCancelling(RpcType::NORMAL_RPC, reactor);
}

TEST_F(HeldUpReactorTest, OfAClientsStreamHearsOfIt) {
  ServerRead reactor;
  served_.service.upload = [&](auto*, Parcel*) { return &reactor; };
  ExpectToldOfCancelling(RpcType::CLIENT_STREAMING, reactor);
}

TEST_F(HeldUpReactorTest, OfAServersStreamHearsOfIt) {
  ServerWrite reactor;
  served_.service.download = [&](auto*, const Parcel*) { return &reactor; };
  ExpectToldOfCancelling(RpcType::SERVER_STREAMING, reactor);
}

TEST_F(HeldUpReactorTest, OfBothStreamsHearsOfIt) {
  ServerBidi reactor;
  served_.service.chat = [&](auto*) { return &reactor; };
  ExpectToldOfCancelling(RpcType::BIDI_STREAMING, reactor);
}

// One that has begun something by then, and ends by that.
TEST_F(HeldUpReactorTest, ThatReadsHearsOfIt) {
  Parcel request;
  ServerBidi reactor;
  reactor.on_read = [&](bool ok) {
    ok ? reactor.Read(&request) : reactor.End(rpc::Status::CANCELLED);
  };
  served_.service.chat = [&](auto*) {
    reactor.Read(&request);
    return &reactor;
  };
  const Running running = StartHolding();
  std::thread canceller([&] {
    came_.WaitForNotification();
    context_.TryCancel();
  });
  EXPECT_TRUE(HasCode(CallOf(RpcType::BIDI_STREAMING).status,
                      rpc::StatusCode::CANCELLED));
  canceller.join();
  Stop();
  EXPECT_THAT(reactor.log(), testing::Contains("cancel"));
  EXPECT_EQ(reactor.log().back(), "done");
}

// Both at about the same time: no order of the two loses the call.
TEST_F(ServerInterceptorsTest, ReactorsComeWhileTheirCallsAreCutOff) {
  const std::unique_ptr<ServedParcels> served =
      ServeParcels(ServerApi::kCallback);
  OtherThread other;
  const Running running = Start(
      served.get(), {other.Doing([](Batch* batch) { batch->Proceed(); })});
  for (int i = 0; i < 100; ++i) {
    const RpcType type = kAllTypes[i % 4];
    TimedContext context;
    std::thread canceller([&] {
      absl::SleepFor(absl::Microseconds(10 * i));
      context.TryCancel();
    });
    Call(ClientApi::kBlocking, type, channel_, &context);
    canceller.join();
  }
  Stop();
}

}  // namespace
}  // namespace e2e
