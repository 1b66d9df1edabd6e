// Goal: a program that asks for compression by any of gRPC's names gets its
// answer, and reads back what it asked for.
#include "rpc/compression.h"

#include <optional>
#include <string>

#include "gtest/gtest.h"
#include "rpc/grpc_names.h"
#include "rpc/rpc.h"
#include "tests/rpc/echo_service.h"
#include "tests/rpc/loopback_transport.h"

namespace rpc::testing {
namespace {

// What a handler's context says of compression.
struct Asked {
  explicit Asked(const ServerContext& context)
      : algorithm(context.compression_algorithm()),
        level(context.compression_level()),
        level_set(context.compression_level_set()) {}

  grpc_compression_algorithm algorithm;
  grpc_compression_level level;
  bool level_set;
};

TEST(CompressionTest, AMessageThatWasToBeCompressedArrives) {
  SyncEcho service;
  service.before = [](ServerContext* context) {
    context->set_compression_algorithm(GRPC_COMPRESS_DEFLATE);
  };
  ChannelArguments arguments;
  arguments.SetCompressionAlgorithm(GRPC_COMPRESS_GZIP);
  EchoServer echo({}, &service, arguments, [](ServerBuilder& builder) {
    builder.SetDefaultCompressionAlgorithm(GRPC_COMPRESS_GZIP)
        .SetDefaultCompressionLevel(GRPC_COMPRESS_LEVEL_LOW)
        .SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  });

  ClientContext context;
  EXPECT_EQ(context.compression_algorithm(), GRPC_COMPRESS_NONE);
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  EXPECT_EQ(context.compression_algorithm(), GRPC_COMPRESS_GZIP);
  SayRequest request;
  request.set_text(std::string(1000, 'a'));
  SayResponse response;
  const Status status = echo.stub().Say(&context, request, &response);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(response.text(), request.text());
}

TEST(CompressionTest, WhatAHandlerSetLastsForItsCall) {
  SyncEcho service;
  std::optional<Asked> before;
  std::optional<Asked> after;
  service.before = [&](ServerContext* context) {
    before.emplace(*context);
    context->set_compression_algorithm(GRPC_COMPRESS_GZIP);
    context->set_compression_level(GRPC_COMPRESS_LEVEL_HIGH);
    after.emplace(*context);
  };
  EchoServer echo({}, &service);
  for (int i = 0; i < 2; ++i) {
    ClientContext context;
    SayResponse response;
    ASSERT_TRUE(echo.stub().Say(&context, SayRequest(), &response).ok());
    EXPECT_EQ(before->algorithm, GRPC_COMPRESS_NONE);
    EXPECT_EQ(before->level, GRPC_COMPRESS_LEVEL_NONE);
    EXPECT_FALSE(before->level_set);
    EXPECT_EQ(after->algorithm, GRPC_COMPRESS_GZIP);
    EXPECT_EQ(after->level, GRPC_COMPRESS_LEVEL_HIGH);
    EXPECT_TRUE(after->level_set);
  }
}

}  // namespace
}  // namespace rpc::testing
