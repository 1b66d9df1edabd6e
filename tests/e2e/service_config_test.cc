// Goal: what a channel's service config says holds for its calls, by every API.
// Method: servers in this process that nap, count and echo as told.
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/resources.h"
#include "tests/e2e/routed_servers.h"

namespace e2e {
namespace {

// For all methods.
std::string Config(const std::string& fields) {
  return absl::StrCat(R"({"methodConfig": [{"name": [{}], )", fields, "}]}");
}

TEST(ServiceConfigTest, TheTimeoutIsADeadlineAndTheEarlierOneCounts) {
  RoutedServer server;
  server.script().Add({.nap = absl::Milliseconds(500)}, 2);
  const RoutedClient client(
      AddressOf({&server}),
      {.service_config = Config(R"("timeout": "0.100s")")});
  EXPECT_TRUE(HasCode(client.Say(), rpc::StatusCode::DEADLINE_EXCEEDED));
  EXPECT_TRUE(HasCode(client.Say(absl::Milliseconds(10)),
                      rpc::StatusCode::DEADLINE_EXCEEDED));
}

TEST(ServiceConfigTest, MethodsDiffer) {
  RoutedServer server;
  server.script().Add({.nap = absl::Milliseconds(300)}, 2);
  const RoutedClient client(AddressOf({&server}), {.service_config = R"({
      "methodConfig": [{
        "name": [{"service": "rpc.testing.Echo", "method": "Say"}],
        "timeout": "0.1s"}]})"});
  EXPECT_TRUE(HasCode(client.Say(), rpc::StatusCode::DEADLINE_EXCEEDED));
  TimedContext context;
  Total total;
  auto writer = client.streams().Sum(&context, &total);
  writer->WritesDone();
  EXPECT_OK(writer->Finish());
}

TEST(ServiceConfigTest, CallsWaitForAServerUnlessTheySayNo) {
  const int port = PortToComeBackTo();
  const RoutedClient client(
      ServerUri(port), {.service_config = Config(R"("waitForReady": true)")});
  TimedContext impatient;
  impatient.set_wait_for_ready(false);
  rpc::testing::SayResponse response;
  EXPECT_TRUE(HasCode(client.echo().Say(&impatient, {}, &response),
                      rpc::StatusCode::UNAVAILABLE));
  rpc::Status status;
  std::thread caller([&] { status = client.Say(); });
  absl::SleepFor(absl::Milliseconds(50));
  RoutedServer server(port);
  caller.join();
  EXPECT_OK(status);
}

TEST(ServiceConfigTest, MessagesAreLimitedBothWays) {
  RoutedServer server;
  const RoutedClient client(AddressOf({&server}),
                            {.service_config = Config(
                                 R"("maxRequestMessageBytes": 100,
                                    "maxResponseMessageBytes": 50)")});
  const auto say = [&](size_t bytes) {
    TimedContext context;
    rpc::testing::SayRequest request;
    request.set_payload(std::string(bytes, 'x'));
    rpc::testing::SayResponse response;
    return client.echo().Say(&context, request, &response);
  };
  EXPECT_OK(say(10));
  const rpc::Status sent = say(100);
  EXPECT_TRUE(HasCode(sent, rpc::StatusCode::RESOURCE_EXHAUSTED));
  EXPECT_NE(sent.error_message().find("Sent message larger than max"),
            std::string::npos)
      << sent;
  const rpc::Status received = say(70);
  EXPECT_TRUE(HasCode(received, rpc::StatusCode::RESOURCE_EXHAUSTED));
  EXPECT_NE(received.error_message().find("Received message larger than max"),
            std::string::npos)
      << received;
  EXPECT_OK(say(10));
}

TEST(ServiceConfigTest, StreamsMessagesAreLimitedToo) {
  RoutedServer server;
  const RoutedClient client(
      AddressOf({&server}),
      {.service_config = Config(R"("maxRequestMessageBytes": 100)")});
  TimedContext context;
  Total total;
  auto writer = client.streams().Sum(&context, &total);
  Item item;
  EXPECT_TRUE(writer->Write(item));
  item.set_data(std::string(200, 'x'));
  writer->Write(item);
  writer->WritesDone();
  EXPECT_TRUE(HasCode(writer->Finish(), rpc::StatusCode::RESOURCE_EXHAUSTED));
}

TEST(ServiceConfigTest, ItsPolicyCountsBeforeTheArgument) {
  RoutedServer first, second;
  const RoutedClient client(
      AddressOf({&first, &second}),
      {.policy = "pick_first",
       .service_config = R"({"loadBalancingConfig": [{"round_robin": {}}]})"});
  for (RoutedServer* server : {&first, &second}) {
    EXPECT_TRUE(Eventually(
        [&] { return client.Say().ok() && server->script().calls() > 0; }));
  }
}

TEST(ServiceConfigTest, ABadOneFailsEveryCallAndSaysWhy) {
  RoutedServer server;
  const RoutedClient client(AddressOf({&server}),
                            {.service_config = Config(R"("timeout": "1")")});
  for (int i = 0; i < 2; ++i) {
    const rpc::Status status = client.Say();
    EXPECT_TRUE(HasCode(status, rpc::StatusCode::INVALID_ARGUMENT));
    EXPECT_NE(status.error_message().find("methodConfig[0].timeout"),
              std::string::npos)
        << status;
  }
}

}  // namespace
}  // namespace e2e
