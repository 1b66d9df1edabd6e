// Channels: those that cannot work, and the state of those that can.
#include "rpc/channel.h"

#include <memory>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/rpc/echo_service.h"
#include "tests/rpc/loopback_transport.h"
#include "tests/rpc/queue_events.h"

namespace rpc::testing {
namespace {

StatusCode CodeOfCall(const std::shared_ptr<Channel>& channel) {
  ClientContext context;
  SayResponse response;
  const Status status =
      Echo::NewStub(channel)->Say(&context, SayRequest(), &response);
  EXPECT_FALSE(status.error_message().empty());
  EXPECT_FALSE(context.may_have_run());
  return status.error_code();
}

TEST(BrokenChannelTest, CallsSayWhy) {
  const LoopbackNetwork network;  // the loopback scheme exists
  ChannelArguments wrong;
  wrong.SetInt("verbena.device", 7);
  for (const auto& channel :
       {CreateChannel("loopback://nowhere:1", InsecureChannelCredentials()),
        CreateChannel("carrier-pigeon://loft:1", InsecureChannelCredentials()),
        CreateChannel(network.address(), nullptr),
        CreateCustomChannel(network.address(), InsecureChannelCredentials(),
                            wrong)}) {
    ASSERT_NE(channel, nullptr);
    EXPECT_EQ(CodeOfCall(channel), StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(channel->GetState(true), ConnectivityState::kTransientFailure);
    EXPECT_FALSE(channel->AllocateBuffer(1).ok());
    EXPECT_FALSE(channel->WaitForConnected(absl::InfiniteFuture()));
    EXPECT_EQ(channel->device(), "");
  }
}

TEST(BrokenChannelTest, CallbackApiToo) {
  const LoopbackNetwork network;
  const auto channel =
      CreateChannel("loopback://nowhere:1", InsecureChannelCredentials());
  ClientContext context;
  SayRequest request;
  SayResponse response;
  absl::Notification done;
  Echo::NewStub(channel)->async()->Say(
      &context, &request, &response, [&](const Status& status) {
        EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
        done.Notify();
      });
  done.WaitForNotification();
}

TEST(ChannelStateTest, GoesFromIdleToReadyAndBack) {
  SyncEcho service;
  EchoServer echo({.threads = 2}, &service);
  Channel& channel = *echo.channel();
  EXPECT_EQ(channel.GetState(false), ConnectivityState::kIdle);
  EXPECT_FALSE(channel.WaitForStateChange(
      ConnectivityState::kIdle,
      std::chrono::system_clock::now() + std::chrono::milliseconds(10)));
  EXPECT_TRUE(channel.WaitForConnected(absl::Now() + absl::Seconds(10)));
  EXPECT_EQ(channel.GetState(false), ConnectivityState::kReady);
  EXPECT_EQ(channel.device(), "loopback");

  echo.network().set_unreachable(true);
  EXPECT_TRUE(channel.WaitForStateChange(
      ConnectivityState::kReady,
      std::chrono::steady_clock::now() + std::chrono::seconds(10)));
  EXPECT_FALSE(channel.WaitForConnected(absl::Now() + absl::Milliseconds(10)));
  EXPECT_EQ(CodeOfCall(echo.channel()), StatusCode::UNAVAILABLE);

  std::thread later([&] { echo.network().set_unreachable(false); });
  EXPECT_TRUE(
      channel.WaitForConnected(std::chrono::system_clock::time_point::max()));
  later.join();
}

TEST(ChannelStateTest, AQueueTellsOfAChange) {
  SyncEcho service;
  EchoServer echo({.threads = 2}, &service);
  Channel& channel = *echo.channel();
  QueueEvents events;
  channel.NotifyOnStateChange(ConnectivityState::kIdle,
                              absl::Now() + absl::Milliseconds(10),
                              events.queue(), Tag(1));
  EXPECT_TRUE(events.Comes(1, false));
  channel.NotifyOnStateChange(ConnectivityState::kIdle,
                              absl::Now() + absl::Seconds(30), events.queue(),
                              Tag(2));
  EXPECT_FALSE(events.HasCome(2, absl::Milliseconds(10)));
  EXPECT_TRUE(channel.WaitForConnected(absl::Now() + absl::Seconds(10)));
  EXPECT_TRUE(events.Comes(2, true));
  // It is another already.
  channel.NotifyOnStateChange(ConnectivityState::kIdle, absl::InfiniteFuture(),
                              events.queue(), Tag(3));
  EXPECT_TRUE(events.Comes(3, true));
}

TEST(ChannelStateTest, AnEventMayComeWhenTheChannelIsGone) {
  SyncEcho service;
  EchoServer echo({.threads = 2}, &service);
  QueueEvents events;
  CreateChannel(echo.network().address(), InsecureChannelCredentials())
      ->NotifyOnStateChange(ConnectivityState::kIdle,
                            absl::Now() + absl::Milliseconds(20),
                            events.queue(), Tag(1));
  EXPECT_TRUE(events.Comes(1, false));
}

// One that is always ready, as it says.
class ReadyChannel final : public experimental::DelegatingChannel {
 public:
  using DelegatingChannel::DelegatingChannel;
  ConnectivityState GetState(bool /*try_to_connect*/) override {
    return ConnectivityState::kReady;
  }
};

TEST(DelegatingChannelTest, CallsOfAllApisGoToTheOtherChannel) {
  SyncEcho service;
  EchoServer echo({.threads = 2}, &service);
  const auto channel = std::make_shared<ReadyChannel>(echo.channel());
  EXPECT_EQ(channel->delegate_channel(), echo.channel());
  EXPECT_TRUE(channel->WaitForConnected(absl::InfinitePast()));
  EXPECT_EQ(echo.channel()->GetState(false), ConnectivityState::kIdle);
  const auto stub = Echo::NewStub(channel);
  SayRequest request;
  SayResponse response;
  {
    ClientContext context;
    EXPECT_TRUE(stub->Say(&context, request, &response).ok());
  }
  {
    ClientContext context;
    absl::Notification done;
    stub->async()->Say(&context, &request, &response, [&](Status status) {
      EXPECT_TRUE(status.ok());
      done.Notify();
    });
    done.WaitForNotification();
  }
  ClientContext context;
  CompletionQueue queue;
  Status status;
  stub->AsyncSay(&context, request, &queue)->Finish(&response, &status, &queue);
  void* tag;
  bool ok;
  EXPECT_TRUE(queue.Next(&tag, &ok) && ok);
  EXPECT_TRUE(status.ok());
}

TEST(DelegatingChannelTest, WhatItDoesNotChangeIsTheOthers) {
  const LoopbackNetwork network;
  const auto channel = std::make_shared<experimental::DelegatingChannel>(
      CreateChannel("carrier-pigeon://loft:1", InsecureChannelCredentials()));
  EXPECT_EQ(channel->GetState(false), ConnectivityState::kTransientFailure);
  EXPECT_TRUE(channel->WaitForStateChange(ConnectivityState::kIdle,
                                          absl::InfinitePast()));
  EXPECT_FALSE(channel->AllocateBuffer(1).ok());
}

TEST(ServiceConfigTest, IsValidatedWithoutAChannel) {
  EXPECT_EQ(experimental::ValidateServiceConfigJSON("{}"), "");
  EXPECT_NE(experimental::ValidateServiceConfigJSON("{").find("parse"),
            std::string::npos)
      << experimental::ValidateServiceConfigJSON("{");
}

TEST(ChannelTest, SaysHowItBalancesLoad) {
  const LoopbackNetwork network;
  const auto channel =
      CreateChannel(network.address(), InsecureChannelCredentials());
  EXPECT_EQ(channel->GetLoadBalancingPolicyName(), "pick_first");
  EXPECT_EQ(channel->GetServiceConfigJSON(), "{}");

  ChannelArguments arguments;
  arguments.SetLoadBalancingPolicyName("round_robin");
  EXPECT_EQ(CreateCustomChannel(network.address(), InsecureChannelCredentials(),
                                arguments)
                ->GetLoadBalancingPolicyName(),
            "round_robin");
  const std::string config = R"({"loadBalancingPolicy": "pick_first"})";
  arguments.SetServiceConfigJSON(config);
  const auto configured = CreateCustomChannel(
      network.address(), InsecureChannelCredentials(), arguments);
  EXPECT_EQ(configured->GetLoadBalancingPolicyName(), "pick_first");
  EXPECT_EQ(configured->GetServiceConfigJSON(), config);
}

TEST(HandlerWithoutServerTest, ContextsStandAlone) {
  // Unit tests of services call their methods like this.
  ServerContext context;
  EXPECT_FALSE(context.IsCancelled());
  context.TryCancel();
  EXPECT_EQ(context.peer(), "");
  EXPECT_TRUE(context.client_metadata().empty());
  absl::StatusOr<Buffer> buffer = context.AllocateBuffer(10);
  ASSERT_TRUE(buffer.ok());
  EXPECT_EQ(buffer->size(), 10u);
  EXPECT_EQ(context.deadline(), std::chrono::system_clock::time_point::max());
}

}  // namespace
}  // namespace rpc::testing
