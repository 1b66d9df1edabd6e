// Goal: calls are repeated by their channel's retry policy, every kind of them,
// and not once their answer has begun.
// Method: servers in this process that fail the first calls as told, and one in
// a process of its own that is killed.
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

using rpc::StatusCode;
using Attempts = std::vector<std::string>;

const Answer kFail = {.code = StatusCode::UNAVAILABLE};
constexpr char kBackoff[] = R"("0.010s")";
constexpr char kLongBackoff[] = R"("30s")";

std::string Config(const std::string& backoff = kBackoff,
                   const std::string& more = "") {
  return absl::StrCat(
      R"({"methodConfig": [{"name": [{}], "retryPolicy": {
          "maxAttempts": 3, "backoffMultiplier": 1,
          "initialBackoff": )",
      backoff, R"(, "maxBackoff": )", backoff,
      R"(, "retryableStatusCodes": ["UNAVAILABLE"]}}])", more, "}");
}

class RetryTest : public testing::Test {
 protected:
  Script& script() { return server_.script(); }
  RoutedClient MakeClient(const std::string& config = Config(),
                          const Arguments& arguments = {}) {
    return RoutedClient(AddressOf({&server_}),
                        {.service_config = config, .arguments = arguments});
  }

  RoutedServer server_;
};

TEST_F(RetryTest, ACallIsRepeatedUntilItGoesWell) {
  const RoutedClient client = MakeClient();
  script().Add(kFail, 2);
  EXPECT_OK(client.Say());
  EXPECT_EQ(script().previous_attempts(), (Attempts{"", "1", "2"}));
}

TEST_F(RetryTest, AttemptsHaveAnEndAndTheLastOnesStatusIsTheCalls) {
  const RoutedClient client = MakeClient();
  script().Add(kFail, 10);
  const rpc::Status status = client.Say();
  EXPECT_TRUE(HasCode(status, StatusCode::UNAVAILABLE));
  EXPECT_EQ(status.error_message(), "as the script says");
  EXPECT_EQ(script().calls(), 3);
}

TEST_F(RetryTest, OtherCodesAreFinal) {
  const RoutedClient client = MakeClient();
  script().Add({.code = StatusCode::ABORTED});
  EXPECT_TRUE(HasCode(client.Say(), StatusCode::ABORTED));
  EXPECT_EQ(script().calls(), 1);
}

TEST_F(RetryTest, NothingIsRepeatedWithoutAPolicyOrWithRetriesOff) {
  for (const bool off : {false, true}) {
    const RoutedClient client = MakeClient(
        off ? Config() : "{}", {{"grpc.enable_retries", off ? 0 : 1}});
    script().Add(kFail);
    const int before = script().calls();
    EXPECT_TRUE(HasCode(client.Say(), StatusCode::UNAVAILABLE));
    EXPECT_EQ(script().calls(), before + 1);
  }
}

TEST_F(RetryTest, MetadataAndTheAttachmentAreSentAgain) {
  const RoutedClient client = MakeClient();
  script().Add(kFail);
  TimedContext context;
  context.AddMetadata("key", "value");
  context.set_attachment(rpc::BufferChain(rpc::Buffer::CopyOf("attached")));
  rpc::testing::SayResponse response;
  EXPECT_OK(client.echo().Say(&context, {}, &response));
  EXPECT_EQ(response.attachment_bytes(), 8);
  EXPECT_EQ(script().calls(), 2);
}

TEST_F(RetryTest, TheServerSaysWhen) {
  const RoutedClient client = MakeClient(Config(kLongBackoff));
  script().Add({.pushback = "10", .code = StatusCode::UNAVAILABLE});
  const absl::Time start = absl::Now();
  EXPECT_OK(client.Say());
  EXPECT_LT(absl::Now() - start, absl::Seconds(20));
  EXPECT_EQ(script().calls(), 2);
}

TEST_F(RetryTest, TheServerSaysNever) {
  const RoutedClient client = MakeClient();
  for (const char* never : {"-1", "never"}) {
    script().Add({.pushback = never, .code = StatusCode::UNAVAILABLE});
    EXPECT_TRUE(HasCode(client.Say(), StatusCode::UNAVAILABLE));
  }
  EXPECT_EQ(script().calls(), 2);
}

TEST_F(RetryTest, TheDeadlineCoversThePauses) {
  const RoutedClient client = MakeClient(Config(kLongBackoff));
  script().Add(kFail);
  const absl::Time start = absl::Now();
  EXPECT_TRUE(HasCode(client.Say(absl::Milliseconds(200)),
                      StatusCode::DEADLINE_EXCEEDED));
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(200));
  EXPECT_LT(absl::Now() - start, absl::Seconds(20));
}

TEST_F(RetryTest, ACallIsCancelledInAPause) {
  const RoutedClient client = MakeClient(Config(kLongBackoff));
  script().Add(kFail);
  TimedContext context;
  std::thread canceller([&] {
    EXPECT_TRUE(Eventually([&] { return script().calls() == 1; }));
    absl::SleepFor(absl::Milliseconds(20));
    context.TryCancel();
  });
  rpc::testing::SayResponse response;
  EXPECT_TRUE(HasCode(client.echo().Say(&context, {}, &response),
                      StatusCode::CANCELLED));
  canceller.join();
  EXPECT_TRUE(context.may_have_run());
}

TEST_F(RetryTest, FailuresThrottleRetriesAndSuccessesBringThemBack) {
  const RoutedClient client = MakeClient(Config(
      kBackoff, R"(, "retryThrottling": {"maxTokens": 4, "tokenRatio": 1})"));
  script().Add(kFail, 3);
  // 4 tokens: after the second failure half of them are left.
  EXPECT_FALSE(client.Say().ok());
  EXPECT_EQ(script().calls(), 2);
  EXPECT_FALSE(client.Say().ok());
  EXPECT_EQ(script().calls(), 3);
  for (int i = 0; i < 3; ++i) EXPECT_OK(client.Say());
  script().Add(kFail);
  EXPECT_OK(client.Say());
}

TEST_F(RetryTest, EveryApiHasIt) {
  const RoutedClient client = MakeClient();
  for (const std::function<void()>& call :
       {std::function<void()>([&] { EXPECT_OK(client.SayByCallback()); }),
        std::function<void()>([&] { EXPECT_OK(client.SayByQueue()); })}) {
    const int before = script().calls();
    script().Add(kFail, 2);
    call();
    EXPECT_EQ(script().calls(), before + 3);
  }
}

// ---- Streams.

rpc::Status Sum(const RoutedClient& client, int count, size_t bytes,
                Total* total) {
  TimedContext context;
  auto writer = client.streams().Sum(&context, total);
  Item item;
  item.set_data(std::string(bytes, 'x'));
  for (int i = 0; i < count; ++i) {
    item.set_number(i);
    writer->Write(item);
  }
  writer->WritesDone();
  return writer->Finish();
}

TEST_F(RetryTest, WhatAStreamHasSentIsSentAgain) {
  const RoutedClient client = MakeClient();
  // One fails when all came, one before anything was read.
  script().Add(kFail);
  script().Add({.at_once = true, .code = StatusCode::UNAVAILABLE});
  Total total;
  EXPECT_OK(Sum(client, 100, 10, &total));
  EXPECT_EQ(total.numbers(), 4950);
  EXPECT_EQ(total.bytes(), 1000);
  EXPECT_EQ(script().previous_attempts(), (Attempts{"", "1", "2"}));
}

TEST_F(RetryTest, AStreamGoesOnAfterItWasRepeated) {
  const RoutedClient client = MakeClient();
  script().Add({.at_once = true, .code = StatusCode::UNAVAILABLE});
  TimedContext context;
  Total total;
  auto writer = client.streams().Sum(&context, &total);
  Item item;
  item.set_number(1);
  EXPECT_TRUE(writer->Write(item));
  EXPECT_TRUE(Eventually([&] { return script().calls() == 2; }));
  EXPECT_TRUE(writer->Write(item));
  EXPECT_TRUE(writer->WritesDone());
  EXPECT_OK(writer->Finish());
  EXPECT_EQ(total.numbers(), 2);
}

TEST_F(RetryTest, WhoeverSentMoreThanIsKeptIsNotRepeated) {
  Total total;
  script().Add(kFail);
  const RoutedClient client = MakeClient();
  EXPECT_FALSE(Sum(client, 20, 20'000, &total).ok());
  EXPECT_EQ(script().calls(), 1);
  script().Add(kFail);
  const RoutedClient keeps_more =
      MakeClient(Config(), {{"grpc.per_rpc_retry_buffer_size", 1 << 20}});
  EXPECT_OK(Sum(keeps_more, 20, 20'000, &total));
  EXPECT_EQ(total.bytes(), 400'000);
  EXPECT_EQ(script().calls(), 3);
}

TEST_F(RetryTest, LargeMessagesAreSentAgainWhole) {
  script().Add(kFail);
  const RoutedClient client =
      MakeClient(Config(), {{"grpc.per_rpc_retry_buffer_size", 8 << 20}});
  Total total;
  EXPECT_OK(Sum(client, 3, 1'000'000, &total));
  EXPECT_EQ(total.bytes(), 3'000'000);
  EXPECT_EQ(script().calls(), 2);
}

TEST_F(RetryTest, AnAnswerThatHasBegunIsNotRepeated) {
  const RoutedClient client = MakeClient();
  script().Add(kFail, 3);
  TimedContext context;
  Order order;
  order.set_count(2);
  auto reader = client.streams().Count(&context, order);
  Item item;
  EXPECT_TRUE(reader->Read(&item));
  EXPECT_TRUE(reader->Read(&item));
  EXPECT_FALSE(reader->Read(&item));
  EXPECT_TRUE(HasCode(reader->Finish(), StatusCode::UNAVAILABLE));
  EXPECT_EQ(script().calls(), 1);
}

// Whoever gives back a window, or cancels, does not know that the call is
// ending just then.
TEST_F(RetryTest, ACallThatEndsIsUsedToItsEnd) {
  const RoutedClient client = MakeClient();
  script().Add(kFail, 300);
  Order order;
  order.set_count(2);
  for (int i = 0; i < 300; ++i) {
    TimedContext context;
    auto reader = client.streams().Count(&context, order);
    Item item;
    EXPECT_TRUE(reader->Read(&item));
    const bool cancels = i % 2 == 0;
    if (cancels) context.TryCancel();
    const rpc::Status status = reader->Finish();
    EXPECT_TRUE(HasCode(status, StatusCode::UNAVAILABLE) ||
                (cancels && HasCode(status, StatusCode::CANCELLED)));
  }
}

TEST_F(RetryTest, InitialMetadataBeginsAnAnswer) {
  const RoutedClient client = MakeClient();
  script().Add({.initial_metadata = true, .code = StatusCode::UNAVAILABLE});
  Total total;
  EXPECT_TRUE(HasCode(Sum(client, 1, 1, &total), StatusCode::UNAVAILABLE));
  EXPECT_EQ(script().calls(), 1);
}

TEST_F(RetryTest, AStreamWithoutAnAnswerYetIsRepeated) {
  const RoutedClient client = MakeClient();
  script().Add(kFail, 2);
  TimedContext context;
  auto reader = client.streams().Count(&context, Order());
  Item item;
  EXPECT_FALSE(reader->Read(&item));
  EXPECT_OK(reader->Finish());
  EXPECT_EQ(script().calls(), 3);
}

TEST_F(RetryTest, BothWaysAtOnce) {
  const RoutedClient client = MakeClient();
  script().Add({.at_once = true, .code = StatusCode::UNAVAILABLE}, 2);
  TimedContext context;
  auto stream = client.streams().Chat(&context);
  Item item;
  for (int i = 0; i < 20; ++i) {
    item.set_number(i);
    EXPECT_TRUE(stream->Write(item));
    EXPECT_TRUE(stream->Read(&item));
    EXPECT_EQ(item.number(), i);
  }
  EXPECT_TRUE(stream->WritesDone());
  EXPECT_OK(stream->Finish());
  EXPECT_EQ(script().calls(), 3);
}

// ---- Connections.

TEST(RetryOnAnotherServerTest, ACallWhoseServerIsKilledIsRepeatedElsewhere) {
  PeerProcess killed = PeerProcess::Serve();
  ASSERT_TRUE(killed.ok()) << killed.address();
  const Server stays;
  const Client observer(killed.address());
  rpc::ChannelArguments arguments;
  arguments.SetServiceConfigJSON(Config());
  arguments.SetString("verbena.device", TheDeviceUnderTest().client_device);
  const auto channel =
      rpc::CreateCustomChannel(killed.address() + "," + stays.address(),
                               rpc::InsecureChannelCredentials(), arguments);
  const auto stub = Probe::NewStub(channel);
  rpc::Status status;
  std::thread caller([&] {
    TimedContext context;
    Nothing response;
    status = stub->Block(&context, Blob(), &response);
  });
  EXPECT_TRUE(Eventually([&] { return observer.Observe().blocked() == 1; }));
  killed.Kill();
  const Client releaser(stays.address());
  EXPECT_TRUE(Eventually([&] { return releaser.Observe().blocked() == 1; }));
  EXPECT_OK(releaser.ReleaseBlocked());
  caller.join();
  EXPECT_OK(status);
}

TEST(RetryOnAnotherServerTest, RoundRobinTriesTheNextServer) {
  RoutedServer bad, good;
  bad.script().Add(kFail, 1000);
  const RoutedClient client(
      AddressOf({&bad, &good}),
      {.policy = "round_robin", .service_config = Config()});
  EXPECT_TRUE(Eventually(
      [&] { return client.Say().ok() && bad.script().calls() > 0; }));
  for (int i = 0; i < 20; ++i) EXPECT_OK(client.Say());
}

}  // namespace
}  // namespace e2e
