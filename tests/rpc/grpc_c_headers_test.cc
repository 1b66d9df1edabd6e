// Goal: a program that includes gRPC's C headers, before Verbena's or after,
// says what it said with gRPC about states and compression. Method: compiled
// both ways, with headers that stand in for gRPC's (grpc_c_headers/).
#ifndef C_HEADERS_LATE
#include <grpc/grpc.h>
#endif

#include "rpc/rpc.h"

#ifdef C_HEADERS_LATE
#include <grpc/grpc.h>
#endif

#include <memory>
#include <type_traits>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace {

static_assert(std::is_same_v<grpc_connectivity_state, rpc::ConnectivityState>);
static_assert(
    std::is_same_v<grpc_compression_algorithm, rpc::CompressionAlgorithm>);
static_assert(std::is_same_v<grpc_compression_level, rpc::CompressionLevel>);

TEST(GrpcCHeadersTest, StatesAreThoseOfChannels) {
  // No transport is linked.
  const std::shared_ptr<rpc::Channel> channel = rpc::CreateChannel(
      "rdma://127.0.0.1:1", rpc::InsecureChannelCredentials());
  const grpc_connectivity_state state = channel->GetState(false);
  EXPECT_EQ(state, ::GRPC_CHANNEL_TRANSIENT_FAILURE);
  EXPECT_FALSE(
      channel->WaitForStateChange(GRPC_CHANNEL_TRANSIENT_FAILURE, absl::Now()));
  EXPECT_TRUE(channel->WaitForStateChange(GRPC_CHANNEL_IDLE, absl::Now()));
}

TEST(GrpcCHeadersTest, CompressionIsTaken) {
  rpc::ChannelArguments arguments;
  arguments.SetCompressionAlgorithm(GRPC_COMPRESS_NONE);
  rpc::ClientContext context;
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  EXPECT_EQ(context.compression_algorithm(), GRPC_COMPRESS_GZIP);
  rpc::ServerBuilder builder;
  builder.SetDefaultCompressionLevel(GRPC_COMPRESS_LEVEL_HIGH);
}

}  // namespace
