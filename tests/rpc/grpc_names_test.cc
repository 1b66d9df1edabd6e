// Goal: names that gRPC programs use without a namespace mean here what they
// mean there. gRPC's <grpc/support/log.h> comes first, as programs have it:
// played by its macro, which needs a function of gRPC's library.
#define GPR_ASSERT(condition) gpr_function_that_nobody_links(#condition)

#include "rpc/grpc_names.h"

#include <memory>
#include <string>

#include "google/protobuf/duration.pb.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"

namespace {

TEST(GrpcNamesTest, AnAssertionThatHoldsDoesNothing) {
  int evaluated = 0;
  GPR_ASSERT(++evaluated == 1);
  EXPECT_EQ(evaluated, 1);
}

TEST(GrpcNamesDeathTest, AnAssertionThatFailsNamesItself) {
  EXPECT_DEATH(GPR_ASSERT(1 + 1 == 3),
               "grpc_names_test.cc:.*assertion failed: 1 \\+ 1 == 3");
}

TEST(GrpcNamesTest, StatesAreThoseOfChannels) {
  rpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, -5);
  const std::shared_ptr<rpc::Channel> broken = rpc::CreateCustomChannel(
      "localhost:1", rpc::InsecureChannelCredentials(), arguments);
  const grpc_connectivity_state state = broken->GetState(true);
  EXPECT_EQ(state, GRPC_CHANNEL_TRANSIENT_FAILURE);
}

TEST(GrpcNamesTest, ArgumentsAreKnown) {
  for (const std::string name :
       {GRPC_ARG_CLIENT_IDLE_TIMEOUT_MS, GRPC_ARG_ENABLE_RETRIES,
        GRPC_ARG_PER_RPC_RETRY_BUFFER_SIZE,
        GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS,
        GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, GRPC_ARG_KEEPALIVE_TIME_MS,
        GRPC_ARG_KEEPALIVE_TIMEOUT_MS, GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS,
        GRPC_ARG_MAX_CONNECTION_AGE_MS, GRPC_ARG_MAX_CONNECTION_IDLE_MS,
        GRPC_ARG_MAX_MESSAGE_LENGTH, GRPC_ARG_MAX_METADATA_SIZE,
        GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, GRPC_ARG_MAX_RECONNECT_BACKOFF_MS,
        GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
        GRPC_ARG_ALLOW_REUSEPORT, GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL}) {
    // A string is no number: an argument that is known says so.
    rpc::ChannelArguments arguments;
    arguments.SetString(name, "many");
    EXPECT_FALSE(rpc::ParseArguments(arguments).ok()) << name;
  }
}

TEST(GrpcNamesTest, ArgumentsWithoutAnEffectAreTaken) {
  for (const std::string name :
       {GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
        GRPC_ARG_HTTP2_MIN_SENT_PING_INTERVAL_WITHOUT_DATA_MS,
        GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, GRPC_ARG_HTTP2_MAX_PING_STRIKES,
        GRPC_ARG_MAX_CONCURRENT_STREAMS, GRPC_ARG_PRIMARY_USER_AGENT_STRING,
        GRPC_COMPRESSION_CHANNEL_DEFAULT_LEVEL}) {
    EXPECT_EQ(name.substr(0, 5), "grpc.");
    rpc::ChannelArguments arguments;
    arguments.SetString(name, "many");
    EXPECT_TRUE(rpc::ParseArguments(arguments).ok()) << name;
  }
}

TEST(GrpcNamesTest, BitsOfWhatIsPropagated) {
  rpc::PropagationOptions options;
  EXPECT_EQ(options.c_bitmask(), GRPC_PROPAGATE_DEFAULTS);
  options.disable_deadline_propagation().disable_cancellation_propagation();
  EXPECT_EQ(options.c_bitmask(),
            GRPC_PROPAGATE_DEFAULTS &
                ~(GRPC_PROPAGATE_DEADLINE | GRPC_PROPAGATE_CANCELLATION));
}

TEST(GrpcNamesTest, StringsAndLimitsAreThoseOfGrpc) {
  const rpc::string text(3, 'a');
  EXPECT_EQ(text, "aaa");
  EXPECT_EQ(GRPC_DEFAULT_MAX_RECV_MESSAGE_LENGTH, 4194304);
  EXPECT_EQ(GRPC_DEFAULT_MAX_SEND_MESSAGE_LENGTH, -1);
}

// What a call of a raw method is answered with.
TEST(GrpcNamesTest, GenericServersHaveStreamsOfEachKind) {
  rpc::ServerContext context;
  rpc::GenericServerAsyncResponseWriter response(&context);
  rpc::GenericServerAsyncReader reader(&context);
  rpc::GenericServerAsyncWriter writer(&context);
  rpc::GenericServerAsyncReaderWriter stream(&context);
}

TEST(GrpcNamesTest, ProtobufIsNamedInRpc) {
  google::protobuf::Duration duration;
  rpc::protobuf::Message& message = duration;
  ASSERT_TRUE(
      rpc::protobuf::json::JsonStringToMessage("\"3s\"", &message).ok());
  EXPECT_EQ(duration.seconds(), 3);
  const rpc::protobuf::Descriptor* descriptor = message.GetDescriptor();
  EXPECT_EQ(descriptor->full_name(), "google.protobuf.Duration");
  rpc::protobuf::FileDescriptorProto file;
  descriptor->file()->CopyTo(&file);
  EXPECT_EQ(file.package(), "google.protobuf");
}

}  // namespace
