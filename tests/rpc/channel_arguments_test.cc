#include "rpc/channel_arguments.h"

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace rpc {
namespace {

EndpointOptions Parse(const ChannelArguments& arguments) {
  absl::StatusOr<EndpointOptions> options = ParseArguments(arguments);
  EXPECT_TRUE(options.ok()) << options.status();
  return options.ok() ? *options : EndpointOptions();
}

TEST(ChannelArgumentsTest, Defaults) {
  const EndpointOptions options = Parse({});
  EXPECT_EQ(options.transport.device, "auto");
  EXPECT_EQ(options.transport.max_receive_message_bytes, 2147483647u);
  EXPECT_EQ(options.transport.max_receive_attachment_bytes, UINT64_MAX);
  EXPECT_EQ(options.max_send_message_bytes, UINT64_MAX);
  EXPECT_EQ(options.max_metadata_bytes, 8192u);
  EXPECT_EQ(options.handler_threads, 256u);
  EXPECT_EQ(options.handler_queue, 65536u);
  EXPECT_LT(options.transport.spin, absl::ZeroDuration());
  EXPECT_TRUE(options.routing.retries);
  EXPECT_FALSE(options.routing.retries_asked_for);
  EXPECT_EQ(options.routing.retry_buffer_bytes, 262144u);
}

TEST(ChannelArgumentsTest, AConnectionHasNoAgeUnlessItIsGivenOne) {
  const auto unlimited = [](const ChannelArguments& arguments) {
    const TransportOptions transport = Parse(arguments).transport;
    return transport.max_connection_age == absl::InfiniteDuration() &&
           transport.max_connection_age_grace == absl::InfiniteDuration() &&
           transport.max_connection_idle == absl::InfiniteDuration();
  };
  EXPECT_TRUE(unlimited({}));
  ChannelArguments arguments;
  for (const char* const name :
       {"grpc.max_connection_age_ms", "grpc.max_connection_age_grace_ms",
        "grpc.max_connection_idle_ms"}) {
    arguments.SetInt(name, INT32_MAX);
  }
  EXPECT_TRUE(unlimited(arguments));
  arguments.SetInt("grpc.max_connection_age_ms", 0);
  EXPECT_FALSE(ParseArguments(arguments).ok());
}

TEST(ChannelArgumentsTest, AResourceQuotaIsABudgetAndThreads) {
  ResourceQuota quota("name");
  quota.Resize(100 << 20).SetMaxThreads(7);
  ChannelArguments arguments;
  arguments.SetResourceQuota(quota);
  const EndpointOptions options = Parse(arguments);
  EXPECT_EQ(options.transport.memory_budget_bytes, 100u << 20);
  EXPECT_EQ(options.handler_threads, 7u);
}

TEST(ChannelArgumentsTest, AQuotaThatSaysNothingChangesNothing) {
  ChannelArguments arguments;
  arguments.SetResourceQuota(ResourceQuota());
  EXPECT_EQ(Parse(arguments).handler_threads, 256u);
  EXPECT_EQ(Parse(arguments).transport.memory_budget_bytes, 0u);
}

TEST(ChannelArgumentsTest, SwapExchangesAll) {
  ChannelArguments one;
  one.SetMaxSendMessageSize(5);
  ChannelArguments other;
  one.Swap(other);
  EXPECT_EQ(Parse(other).max_send_message_bytes, 5u);
  EXPECT_EQ(Parse(one).max_send_message_bytes, UINT64_MAX);
}

TEST(ChannelArgumentsTest, WhatIsWithoutEffectIsNoError) {
  ChannelArguments arguments;
  arguments.SetGrpclbFallbackTimeout(10);
  arguments.SetSslTargetNameOverride("name");
  Parse(arguments);
}

TEST(ChannelArgumentsTest, WhatAChannelSaysOfItself) {
  ChannelArguments arguments;
  arguments.SetString("grpc.default_authority", "db.example");
  arguments.SetUserAgentPrefix("inner");
  arguments.SetUserAgentPrefix("outer");
  arguments.SetString("grpc.secondary_user_agent", "last");
  const EndpointOptions options = Parse(arguments);
  EXPECT_EQ(options.authority, "db.example");
  EXPECT_EQ(options.user_agent_prefix, "outer inner");
  EXPECT_EQ(options.user_agent_suffix, "last");
}

TEST(ChannelArgumentsTest, EveryNameHasItsEffect) {
  ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(1001);
  arguments.SetMaxSendMessageSize(1002);
  arguments.SetInt("grpc.max_metadata_size", 1003);
  arguments.SetInt("grpc.initial_reconnect_backoff_ms", 1004);
  arguments.SetInt("grpc.min_reconnect_backoff_ms", 1005);
  arguments.SetInt("grpc.max_reconnect_backoff_ms", 1006);
  arguments.SetInt("grpc.client_idle_timeout_ms", 1007);
  arguments.SetInt("grpc.keepalive_time_ms", 1010);
  arguments.SetInt("grpc.keepalive_timeout_ms", 1011);
  arguments.SetInt("grpc.keepalive_permit_without_calls", 1);
  arguments.SetInt("grpc.max_connection_age_ms", 1012);
  arguments.SetInt("grpc.max_connection_age_grace_ms", 1013);
  arguments.SetInt("grpc.max_connection_idle_ms", 1014);
  arguments.SetInt("verbena.offer_grace_ms", 1009);
  arguments.SetInt("verbena.connect_timeout_ms", 1008);
  arguments.SetString("verbena.device", "mlx5_7");
  arguments.SetInt64("verbena.memory_budget_bytes", int64_t{1} << 40);
  arguments.SetInt("verbena.receive_budget_bytes", 1009);
  arguments.SetInt("verbena.max_receive_attachment_bytes", 1010);
  arguments.SetInt("verbena.eager_limit_bytes", 1011);
  arguments.SetInt("verbena.spin_us", 1012);
  arguments.SetInt("verbena.pollers", 16);
  arguments.SetInt("verbena.allow_other_users", 1);
  arguments.SetInt("verbena.max_connections", 1013);
  arguments.SetInt("verbena.handler_threads", 1014);
  arguments.SetInt("verbena.handler_queue", 1015);
  arguments.SetInt("grpc.use_local_subchannel_pool", 1);
  arguments.SetInt("grpc.enable_retries", 1);
  arguments.SetInt("grpc.per_rpc_retry_buffer_size", 1016);
  arguments.SetLoadBalancingPolicyName("round_robin");
  arguments.SetServiceConfigJSON("{}");
  arguments.SetString("verbena.connection_setup", "tcp");
  arguments.SetInt("verbena.ack_timeout", 17);
  arguments.SetInt("verbena.retry_count", 3);
  arguments.SetInt("verbena.rnr_retry_count", 7);
  arguments.SetInt("verbena.min_rnr_timer", 5);
  arguments.SetInt("verbena.traffic_class", 96);
  arguments.SetInt("verbena.mtu", 2048);
  const EndpointOptions options = Parse(arguments);
  const TransportOptions& transport = options.transport;
  EXPECT_FALSE(transport.share_connection);
  EXPECT_TRUE(transport.fabric.set_up_by_tcp);
  EXPECT_EQ(transport.fabric.timeout, 17);
  EXPECT_EQ(transport.fabric.retry_count, 3);
  EXPECT_EQ(transport.fabric.rnr_retry_count, 7);
  EXPECT_EQ(transport.fabric.min_rnr_timer, 5);
  EXPECT_EQ(transport.fabric.traffic_class, 96);
  EXPECT_EQ(transport.fabric.mtu_bytes, 2048u);
  EXPECT_EQ(transport.max_receive_message_bytes, 1001u);
  EXPECT_EQ(options.max_send_message_bytes, 1002u);
  EXPECT_EQ(options.max_metadata_bytes, 1003u);
  EXPECT_EQ(transport.initial_backoff, absl::Milliseconds(1004));
  EXPECT_EQ(transport.min_backoff, absl::Milliseconds(1005));
  EXPECT_EQ(transport.max_backoff, absl::Milliseconds(1006));
  EXPECT_EQ(transport.idle_timeout, absl::Milliseconds(1007));
  EXPECT_EQ(transport.keepalive_time, absl::Milliseconds(1010));
  EXPECT_EQ(transport.keepalive_timeout, absl::Milliseconds(1011));
  EXPECT_TRUE(transport.keepalive_without_calls);
  EXPECT_EQ(transport.max_connection_age, absl::Milliseconds(1012));
  EXPECT_EQ(transport.max_connection_age_grace, absl::Milliseconds(1013));
  EXPECT_EQ(transport.max_connection_idle, absl::Milliseconds(1014));
  EXPECT_EQ(transport.offer_grace, absl::Milliseconds(1009));
  EXPECT_EQ(transport.connect_timeout, absl::Milliseconds(1008));
  EXPECT_EQ(transport.device, "mlx5_7");
  EXPECT_EQ(transport.memory_budget_bytes, uint64_t{1} << 40);
  EXPECT_EQ(transport.receive_budget_bytes, 1009u);
  EXPECT_EQ(transport.max_receive_attachment_bytes, 1010u);
  EXPECT_EQ(transport.eager_limit_bytes, 1011u);
  EXPECT_EQ(transport.spin, absl::Microseconds(1012));
  EXPECT_EQ(transport.pollers, 16u);
  EXPECT_TRUE(transport.allow_other_users);
  EXPECT_EQ(transport.max_connections, 1013u);
  EXPECT_EQ(options.handler_threads, 1014u);
  EXPECT_EQ(options.handler_queue, 1015u);
  EXPECT_TRUE(options.routing.retries_asked_for);
  EXPECT_EQ(options.routing.retry_buffer_bytes, 1016u);
  EXPECT_EQ(options.routing.policy, "round_robin");
  EXPECT_EQ(options.routing.service_config, "{}");
}

TEST(ChannelArgumentsTest, NoLimit) {
  ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt("verbena.max_receive_attachment_bytes", -1);
  const EndpointOptions options = Parse(arguments);
  EXPECT_EQ(options.transport.max_receive_message_bytes, 2147483647u);
  EXPECT_EQ(options.max_send_message_bytes, UINT64_MAX);
  EXPECT_EQ(options.transport.max_receive_attachment_bytes, UINT64_MAX);
}

TEST(ChannelArgumentsTest, UnknownNamesHaveNoEffect) {
  ChannelArguments arguments;
  arguments.SetString("grpc.tsi.max_frame_size", "me");
  arguments.SetInt("grpc.http2.max_frame_size", 0);
  Parse(arguments);
}

TEST(ChannelArgumentsTest, ErrorsNameArgumentAndValue) {
  const auto error = [](const std::string& key, auto value) {
    ChannelArguments arguments;
    if constexpr (std::is_same_v<decltype(value), int>) {
      arguments.SetInt(key, value);
    } else {
      arguments.SetString(key, value);
    }
    const absl::Status status = ParseArguments(arguments).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << key;
    EXPECT_NE(std::string(status.message()).find(key), std::string::npos);
    return std::string(status.message());
  };
  EXPECT_NE(error("verbena.handler_threads", 0).find("[1, "),
            std::string::npos);
  error("grpc.max_receive_message_length", -2);
  error("verbena.allow_other_users", 2);
  error("verbena.pollers", 0);
  error("verbena.pollers", 17);
  EXPECT_NE(error("verbena.spin_us", "long").find("'long'"), std::string::npos);
  error("verbena.device", 3);
  error("verbena.connection_setup", "infiniband");
  error("verbena.mtu", 1500);
  error("verbena.mtu", "4096");
  error("verbena.ack_timeout", 0);  // for ever
  error("verbena.retry_count", 7);  // on some devices, too
  error("verbena.min_rnr_timer", 0);
}

}  // namespace
}  // namespace rpc
