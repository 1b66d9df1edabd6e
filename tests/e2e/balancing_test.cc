// Goal: a channel with several addresses spreads its calls as its policy says,
// and goes on when servers come and go.
// Method: servers in this process that count their calls, stopped and started
// again around one channel.
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/peer_process.h"
#include "tests/e2e/resources.h"
#include "tests/e2e/routed_servers.h"

namespace e2e {
namespace {

using State = rpc::ConnectivityState;

int UnusedPort() { return PortToComeBackTo(); }

absl::Time Soon() { return absl::Now() + absl::Seconds(20); }

TEST(PickFirstTest, AllCallsGoToTheFirstAddress) {
  RoutedServer first, second;
  const RoutedClient client(AddressOf({&first, &second}));
  EXPECT_EQ(client.channel().GetState(false), State::kIdle);
  for (int i = 0; i < 10; ++i) EXPECT_OK(client.Say());
  EXPECT_EQ(first.script().calls(), 10);
  EXPECT_EQ(second.script().calls(), 0);
  EXPECT_EQ(client.channel().GetState(false), State::kReady);
}

TEST(PickFirstTest, AnAddressThatFailsIsSkipped) {
  RoutedServer second;
  const RoutedClient client(AddressOfPorts({UnusedPort(), second.port()}),
                            {.policy = "pick_first"});
  EXPECT_OK(client.Say());
  EXPECT_EQ(second.script().calls(), 1);
}

TEST(PickFirstTest, GrpcsWayToWriteAddressesIsUnderstood) {
  RoutedServer server;
  std::string address = AddressOfPorts({UnusedPort(), server.port()});
  address.insert(sizeof("rdma://") - 1, "/");
  EXPECT_OK(RoutedClient(address, {}).Say());
  std::string only = ServerUri(server.port());
  only.insert(sizeof("rdma://") - 1, "/");
  EXPECT_OK(RoutedClient(only, {}).Say());
}

TEST(PickFirstTest, WhenItsServerStopsTheNextIsFound) {
  auto first = std::make_unique<RoutedServer>();
  RoutedServer second;
  const RoutedClient client(AddressOf({first.get(), &second}));
  EXPECT_OK(client.Say());
  first.reset();
  EXPECT_TRUE(Eventually([&] { return client.Say().ok(); }));
  EXPECT_GE(second.script().calls(), 1);
}

// However long the first one's pause would be by now.
TEST(PickFirstTest, WhenItsServerStopsItBeginsWithTheFirstAgain) {
  const int port = UnusedPort();
  auto second = std::make_unique<RoutedServer>();
  const RoutedClient client(
      AddressOfPorts({port, second->port()}),
      {.arguments = {{"grpc.initial_reconnect_backoff_ms", 60'000}}});
  EXPECT_OK(client.Say());
  RoutedServer first(port);
  const int second_port = second->port();
  second.reset();
  const RoutedServer second_again(second_port);
  EXPECT_TRUE(Eventually([&] { return client.Say().ok(); }));
  EXPECT_GE(first.script().calls(), 1);
}

TEST(PickFirstTest, WithAllAddressesFailingCallsFailAndSayWhy) {
  const std::string address = AddressOfPorts({UnusedPort(), UnusedPort()});
  const RoutedClient client(
      address, {.arguments = {{"grpc.initial_reconnect_backoff_ms", 60'000}}});
  for (int i = 0; i < 3; ++i) {
    const rpc::Status status = client.Say();
    EXPECT_TRUE(HasCode(status, rpc::StatusCode::UNAVAILABLE));
    EXPECT_NE(status.error_message().find("failed to connect to all addresses"),
              std::string::npos)
        << status;
    EXPECT_NE(status.error_message().find("nothing listens"), std::string::npos)
        << status;
    EXPECT_EQ(client.channel().GetState(false), State::kTransientFailure);
  }
}

TEST(PickFirstTest, ACallThatWaitsFindsAServerThatStartsLater) {
  const int port = UnusedPort();
  const RoutedClient client(AddressOfPorts({UnusedPort(), port}), {});
  rpc::Status status;
  std::thread caller(
      [&] { status = client.Say(absl::Seconds(30), /*wait_for_ready=*/true); });
  EXPECT_TRUE(Eventually([&] {
    return client.channel().GetState(false) == State::kTransientFailure;
  }));
  RoutedServer server(port);
  caller.join();
  EXPECT_OK(status);
}

TEST(PickFirstTest, ACallThatWaitsEndsAtItsDeadline) {
  const RoutedClient client(AddressOfPorts({UnusedPort(), UnusedPort()}), {});
  const absl::Time start = absl::Now();
  EXPECT_TRUE(HasCode(client.Say(absl::Milliseconds(300), true),
                      rpc::StatusCode::DEADLINE_EXCEEDED));
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(300));
}

TEST(PickFirstTest, ACallThatWaitsCanBeCancelled) {
  const RoutedClient client(AddressOfPorts({UnusedPort(), UnusedPort()}), {});
  TimedContext context;
  context.set_wait_for_ready(true);
  std::thread canceller([&] {
    absl::SleepFor(absl::Milliseconds(100));
    context.TryCancel();
  });
  rpc::testing::SayResponse response;
  EXPECT_TRUE(HasCode(client.echo().Say(&context, {}, &response),
                      rpc::StatusCode::CANCELLED));
  canceller.join();
  EXPECT_FALSE(context.may_have_run());
}

TEST(RoundRobinTest, CallsAreSharedOut) {
  RoutedServer servers[3];
  const RoutedClient client(AddressOf({&servers[0], &servers[1], &servers[2]}),
                            {.policy = "round_robin"});
  ASSERT_TRUE(client.channel().WaitForConnected(Soon()));
  // All three, that is.
  for (RoutedServer& server : servers) {
    EXPECT_TRUE(Eventually(
        [&] { return client.Say().ok() && server.script().calls() > 0; }));
  }
  int before[3];
  for (int i = 0; i < 3; ++i) before[i] = servers[i].script().calls();
  for (int i = 0; i < 30; ++i) EXPECT_OK(client.Say());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(servers[i].script().calls() - before[i], 10) << i;
  }
}

TEST(RoundRobinTest, AServerThatStopsIsLeftOutAndTakenInAgain) {
  RoutedServer stays;
  auto goes = std::make_unique<RoutedServer>();
  const int port = goes->port();
  const RoutedClient client(AddressOf({&stays, goes.get()}),
                            {.policy = "round_robin"});
  EXPECT_TRUE(Eventually(
      [&] { return client.Say().ok() && goes->script().calls() > 0; }));
  goes.reset();
  // Certainly not run: such a call goes to the other one.
  for (int i = 0; i < 50; ++i) EXPECT_OK(client.Say());
  EXPECT_EQ(client.channel().GetState(false), State::kReady);
  goes = std::make_unique<RoutedServer>(port);
  EXPECT_TRUE(Eventually(
      [&] { return client.Say().ok() && goes->script().calls() > 0; }));
}

TEST(RoundRobinTest, WithAllServersGoneCallsFailAndComeBack) {
  auto server = std::make_unique<RoutedServer>();
  const int port = server->port();
  const RoutedClient client(AddressOfPorts({port, UnusedPort()}),
                            {.policy = "round_robin"});
  EXPECT_OK(client.Say());
  server.reset();
  rpc::Status status;
  EXPECT_TRUE(Eventually([&] {
    status = client.Say();
    return status.error_code() == rpc::StatusCode::UNAVAILABLE &&
           client.channel().GetState(false) == State::kTransientFailure;
  })) << status;
  EXPECT_NE(status.error_message().find("connections to all backends failing"),
            std::string::npos)
      << status;
  server = std::make_unique<RoutedServer>(port);
  EXPECT_TRUE(client.channel().WaitForConnected(Soon()));
  EXPECT_OK(client.Say());
}

TEST(RoundRobinTest, AKilledServerCostsOnlyTheCallsItWasRunning) {
  PeerProcess killed = PeerProcess::Serve();
  const Server stays;
  ASSERT_TRUE(killed.ok()) << killed.address();
  rpc::ChannelArguments arguments;
  arguments.SetLoadBalancingPolicyName("round_robin");
  arguments.SetString("verbena.device", TheDeviceUnderTest().client_device);
  const auto channel =
      rpc::CreateCustomChannel(killed.address() + "," + stays.address(),
                               rpc::InsecureChannelCredentials(), arguments);
  const auto stub = Probe::NewStub(channel);
  std::atomic<bool> stop = false;
  std::atomic<int> went_well = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      while (!stop) {
        TimedContext context;
        Blob response;
        const rpc::Status status = stub->Echo(&context, Blob(), &response);
        if (status.ok()) ++went_well;
        // The others may have run, and so are not repeated.
        EXPECT_TRUE(status.ok() || context.may_have_run()) << status;
      }
    });
  }
  const auto go_on = [&] {
    const int before = went_well;
    EXPECT_TRUE(Eventually([&] { return went_well > before + 100; }));
  };
  go_on();
  killed.Kill();
  go_on();
  stop = true;
  for (std::thread& caller : callers) caller.join();
}

TEST(RoundRobinTest, EveryKindOfCallIsSharedOut) {
  RoutedServer first, second;
  const RoutedClient client(AddressOf({&first, &second}),
                            {.policy = "round_robin"});
  for (RoutedServer* server : {&first, &second}) {
    EXPECT_TRUE(Eventually(
        [&] { return client.Say().ok() && server->script().calls() > 0; }));
  }
  const auto chat = [&] {
    TimedContext context;
    auto stream = client.streams().Chat(&context);
    for (int i = 0; i < 100; ++i) {
      Item item;
      item.set_number(i);
      ASSERT_TRUE(stream->Write(item));
      ASSERT_TRUE(stream->Read(&item));
      EXPECT_EQ(item.number(), i);
    }
    EXPECT_TRUE(stream->WritesDone());
    EXPECT_OK(stream->Finish());
  };
  for (const std::function<void()>& call :
       {std::function<void()>(chat),
        std::function<void()>([&] { EXPECT_OK(client.SayByCallback()); }),
        std::function<void()>([&] { EXPECT_OK(client.SayByQueue()); })}) {
    const int before[] = {first.script().calls(), second.script().calls()};
    for (int i = 0; i < 4; ++i) call();
    EXPECT_EQ(first.script().calls() - before[0], 2);
    EXPECT_EQ(second.script().calls() - before[1], 2);
  }
}

TEST(RoundRobinTest, ANameIsAllItsAddresses) {
  const std::string& name = TheDeviceUnderTest().server_name;
  if (name.empty()) GTEST_SKIP() << "there is no name for the device";
  RoutedServer first, second;
  const RoutedClient client(absl::StrCat("rdma://", name, ":", first.port(),
                                         ",", name, ":", second.port()),
                            {.policy = "round_robin"});
  EXPECT_EQ(client.channel().GetState(true), State::kIdle);
  for (RoutedServer* server : {&first, &second}) {
    EXPECT_TRUE(Eventually(
        [&] { return client.Say().ok() && server->script().calls() > 0; }));
  }
  EXPECT_TRUE(client.channel().AllocateBuffer(100).ok());
}

TEST(RoundRobinTest, ANameThatIsNoneFailsCallsAndSaysWhy) {
  const RoutedClient client("rdma://no.such.host.invalid:1",
                            {.policy = "round_robin"});
  const rpc::Status status = client.Say();
  EXPECT_TRUE(HasCode(status, rpc::StatusCode::UNAVAILABLE));
  EXPECT_NE(status.error_message().find("cannot resolve"), std::string::npos)
      << status;
}

TEST(RoundRobinTest, ManyThreadsAndPollersCallAtOnce) {
  RoutedServer first, second, third;
  RoutedOptions options = {.policy = "round_robin"};
  options.arguments["verbena.pollers"] = 2;
  const RoutedClient client(AddressOf({&first, &second, &third}), options);
  std::vector<std::thread> callers;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&] {
      for (int j = 0; j < 200; ++j) EXPECT_OK(client.Say());
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST(BalancingTest, ACallKnowsWhichServerItWentTo) {
  RoutedServer servers[2];
  const RoutedClient client(AddressOf({&servers[0], &servers[1]}),
                            {.policy = "round_robin"});
  for (RoutedServer& server : servers) {
    EXPECT_TRUE(Eventually(
        [&] { return client.Say().ok() && server.script().calls() > 0; }));
  }
  const auto went_to = [&](const rpc::ClientContext& context, int before) {
    const int which = servers[0].script().calls() > before ? 0 : 1;
    const std::string end = absl::StrCat(":", servers[which].port());
    return context.peer().size() > end.size() &&
           context.peer().substr(context.peer().size() - end.size()) == end;
  };
  for (int i = 0; i < 4; ++i) {
    const int before = servers[0].script().calls();
    TimedContext context;
    EXPECT_EQ(context.peer(), "");
    rpc::testing::SayResponse response;
    EXPECT_OK(client.echo().Say(&context, {}, &response));
    EXPECT_TRUE(went_to(context, before)) << context.peer();
  }
  for (int i = 0; i < 4; ++i) {
    const int before = servers[0].script().calls();
    servers[0].script().Add({.code = rpc::StatusCode::ABORTED});
    TimedContext context;
    auto stream = client.streams().Chat(&context);
    stream->WritesDone();
    (void)stream->Finish();
    EXPECT_TRUE(went_to(context, before)) << context.peer();
  }
}

TEST(BalancingTest, AttachmentsGoToWhicheverServer) {
  RoutedServer first, second;
  const RoutedClient client(AddressOf({&first, &second}),
                            {.policy = "round_robin"});
  for (int i = 0; i < 6; ++i) {
    absl::StatusOr<rpc::Buffer> buffer =
        client.channel().AllocateBuffer(1'000'000);
    ASSERT_TRUE(buffer.ok());
    TimedContext context;
    context.set_attachment(rpc::BufferChain(*std::move(buffer)));
    rpc::testing::SayResponse response;
    EXPECT_OK(client.echo().Say(&context, {}, &response));
    EXPECT_EQ(response.attachment_bytes(), 1'000'000);
  }
}

TEST(BalancingTest, ABadAddressOrPolicyFailsEveryCall) {
  EXPECT_TRUE(HasCode(RoutedClient("rdma://127.0.0.1:1,127.0.0.1", {}).Say(),
                      rpc::StatusCode::INVALID_ARGUMENT));
  EXPECT_TRUE(
      HasCode(RoutedClient("rdma://127.0.0.1:1", {.policy = "best"}).Say(),
              rpc::StatusCode::INVALID_ARGUMENT));
}

// ~Channel waits for no call, and there is none.
TEST(BalancingTest, AChannelMayGoInItsOwnCallback) {
  RoutedServer first, second;
  for (int i = 0; i < 20; ++i) {
    auto client = std::make_unique<RoutedClient>(
        AddressOf({&first, &second}), RoutedOptions{.policy = "round_robin"});
    rpc::ClientContext context;
    rpc::testing::SayRequest request;
    rpc::testing::SayResponse response;
    absl::Notification done;
    client->echo().async()->Say(&context, &request, &response,
                                [&](const rpc::Status& status) {
                                  EXPECT_OK(status);
                                  client.reset();
                                  done.Notify();
                                });
    done.WaitForNotification();
  }
}

}  // namespace
}  // namespace e2e
