// What a peer may send wrongly, and limits: each ends its call with a status,
// and the next call goes well.
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "rpc/internal/header_block.h"
#include "rpc/rpc.h"
#include "tests/rpc/echo_service.h"
#include "tests/rpc/loopback_transport.h"

namespace rpc::testing {
namespace {

using internal::HeaderBlockWriter;
using internal::HeaderKind;

std::string Header(HeaderKind kind, const std::string& key,
                   const std::string& value) {
  std::string block;
  HeaderBlockWriter(&block).Add(kind, key, value);
  return block;
}

// 0xff starts no field of a message.
constexpr char kNoMessage[] = "\xff\xff\xff";

class BadInputTest : public ::testing::TestWithParam<int> {
 protected:
  BadInputTest() : echo_({.threads = GetParam()}, &service_) {}

  Status Say() {
    ClientContext context;
    SayRequest request;
    SayResponse response;
    request.set_text("hello");
    const Status status = echo_.stub().Say(&context, request, &response);
    EXPECT_EQ(context.debug_error_string().empty(), status.ok());
    return status;
  }

  Status SayWithResponse(const RawFrame& frame) {
    echo_.network().ReplaceNextResponse(frame);
    const Status status = Say();
    EXPECT_TRUE(Say().ok());
    return status;
  }

  Status SayWithRequest(const RawFrame& frame) {
    echo_.network().ReplaceNextRequest(frame);
    const Status status = Say();
    EXPECT_TRUE(Say().ok());
    return status;
  }

  SyncEcho service_;
  EchoServer echo_;
};

TEST_P(BadInputTest, RequestThatDoesNotParse) {
  const Status status =
      SayWithRequest({.has_message = true, .message = kNoMessage, .end = true});
  EXPECT_EQ(status.error_code(), StatusCode::INTERNAL);
  EXPECT_NE(status.error_message().find("Failed to parse"), std::string::npos);
  EXPECT_EQ(service_.calls.load(), 1);  // the good one
}

TEST_P(BadInputTest, RequestWithoutMessage) {
  EXPECT_EQ(SayWithRequest({.end = true}).error_code(),
            StatusCode::UNIMPLEMENTED);
}

TEST_P(BadInputTest, RequestWithBadHeader) {
  for (const std::string& header :
       {std::string("\x7f"), std::string("\x01"), std::string("\x01\x05"),
        std::string("\x01\xff\xff\xff\xff\xff"),
        Header(HeaderKind::kTrailingMetadata, "key", "value"),
        Header(HeaderKind::kStatusMessage, "", "text"),
        Header(HeaderKind::kInitialMetadata, "BAD", "value"),
        Header(HeaderKind::kInitialMetadata, "key", "\n")}) {
    const Status status =
        SayWithRequest({.header = header, .has_message = true, .end = true});
    EXPECT_EQ(status.error_code(), StatusCode::INTERNAL) << header;
  }
}

TEST_P(BadInputTest, RequestWithTooMuchMetadata) {
  const Status status =
      SayWithRequest({.header = Header(HeaderKind::kInitialMetadata, "key",
                                       std::string(9000, 'v')),
                      .has_message = true,
                      .end = true});
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(status.error_message().find("8192"), std::string::npos) << status;
}

TEST_P(BadInputTest, ResponseThatDoesNotParse) {
  const Status status = SayWithResponse(
      {.has_message = true, .message = kNoMessage, .end = true});
  EXPECT_EQ(status.error_code(), StatusCode::INTERNAL);
  EXPECT_NE(status.error_message().find("Failed to parse"), std::string::npos);
}

TEST_P(BadInputTest, LargeResponseThatDoesNotParse) {
  const Status status = SayWithResponse({.has_message = true,
                                         .message = std::string(100000, '\xff'),
                                         .end = true});
  EXPECT_EQ(status.error_code(), StatusCode::INTERNAL);
  EXPECT_NE(status.error_message().find("Failed to parse"), std::string::npos);
}

TEST_P(BadInputTest, ResponseThatDoesNotParseAndIsNotTheLastFrame) {
  const Status status =
      SayWithResponse({.has_message = true, .message = kNoMessage});
  EXPECT_EQ(status.error_code(), StatusCode::INTERNAL);
}

TEST_P(BadInputTest, OkWithoutMessage) {
  const Status status = SayWithResponse({.end = true});
  EXPECT_EQ(status.error_code(), StatusCode::UNIMPLEMENTED) << status;
}

TEST_P(BadInputTest, ErrorWithMessage) {
  const Status status = SayWithResponse({.has_message = true,
                                         .message = kNoMessage,
                                         .end = true,
                                         .status_code = StatusCode::NOT_FOUND});
  EXPECT_EQ(status.error_code(), StatusCode::NOT_FOUND) << status;
}

TEST_P(BadInputTest, ResponseWithBadHeader) {
  for (const std::string& header :
       {std::string("\x7f"),
        Header(HeaderKind::kInitialMetadata, "k\xc3\xa9y", "value"),
        Header(HeaderKind::kTrailingMetadata, "", "value"),
        Header(HeaderKind::kStatusMessage, "", "one") +
            Header(HeaderKind::kStatusMessage, "", "two")}) {
    const Status status =
        SayWithResponse({.header = header, .has_message = true, .end = true});
    EXPECT_EQ(status.error_code(), StatusCode::INTERNAL) << header;
  }
}

TEST_P(BadInputTest, ResponseWithTooMuchMetadata) {
  const Status status =
      SayWithResponse({.header = Header(HeaderKind::kTrailingMetadata, "key",
                                        std::string(9000, 'v')),
                       .has_message = true,
                       .end = true});
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED) << status;
}

TEST_P(BadInputTest, EntriesThatMayBeSkipped) {
  const Status status = SayWithResponse(
      {.header = std::string("\x80\x03xyz") +
                 Header(HeaderKind::kStatusMessage, "", "known"),
       .end = true,
       .status_code = StatusCode::ABORTED});
  EXPECT_EQ(status.error_code(), StatusCode::ABORTED);
  EXPECT_EQ(status.error_message(), "known");
}

INSTANTIATE_TEST_SUITE_P(Threads, BadInputTest, ::testing::Values(0, 4));

TEST(SendLimitTest, RequestOverTheLimitIsNotSent) {
  SyncEcho service;
  ChannelArguments arguments;
  arguments.SetMaxSendMessageSize(100);
  EchoServer echo({}, &service, arguments);
  ClientContext context;
  SayRequest request;
  SayResponse response;
  request.set_payload(std::string(98, 'p'));  // and two bytes before it
  EXPECT_TRUE(echo.stub().Say(&context, request, &response).ok());
  request.set_payload(std::string(99, 'p'));
  ClientContext next;
  const Status status = echo.stub().Say(&next, request, &response);
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(status.error_message().find("101 vs. 100"), std::string::npos)
      << status;
  EXPECT_EQ(service.calls.load(), 1);
}

TEST(SendLimitTest, ResponseOverTheLimit) {
  SyncEcho service;
  EchoServer echo({}, &service, {}, [](ServerBuilder& builder) {
    builder.SetMaxSendMessageSize(100);
  });
  ClientContext context;
  SayRequest request;
  SayResponse response;
  request.set_response_payload_bytes(1000);
  const Status status = echo.stub().Say(&context, request, &response);
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED) << status;
}

TEST(SendLimitTest, MetadataThatDoesNotFitIntoAFrame) {
  SyncEcho service;
  EchoServer echo({}, &service);
  ClientContext context;
  SayResponse response;
  context.AddMetadata("key", std::string(20000, 'v'));
  const Status status = echo.stub().Say(&context, SayRequest(), &response);
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED) << status;
  EXPECT_FALSE(context.may_have_run());
}

TEST(SendLimitTest, StatusTextThatDoesNotFitIntoAFrame) {
  SyncEcho service;
  EchoServer echo({}, &service);
  ClientContext context;
  SayRequest request;
  SayResponse response;
  request.set_status_code(StatusCode::NOT_FOUND);
  request.set_status_message(std::string(20000, 't'));
  const Status status = echo.stub().Say(&context, request, &response);
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(status.error_message().find("NOT_FOUND"), std::string::npos)
      << status;
}

TEST(IllegalServerMetadataTest, IsInternal) {
  SyncEcho service;
  service.before = [](ServerContext* context) {
    context->AddTrailingMetadata("No Key", "value");
  };
  EchoServer echo({}, &service);
  ClientContext context;
  SayResponse response;
  const Status status = echo.stub().Say(&context, SayRequest(), &response);
  EXPECT_EQ(status.error_code(), StatusCode::INTERNAL) << status;
}

TEST(MetadataLimitTest, IsAnOption) {
  SyncEcho service;
  ChannelArguments arguments;
  arguments.SetInt("grpc.max_metadata_size", 100);
  EchoServer echo({}, &service, arguments, [](ServerBuilder& builder) {
    builder.AddChannelArgument("grpc.max_metadata_size", 16000);
  });
  ClientContext context;
  SayRequest request;
  SayResponse response;
  context.AddMetadata("key", std::string(10000, 'v'));  // the server takes it
  EXPECT_TRUE(echo.stub().Say(&context, request, &response).ok());
  ClientContext next;
  next.AddMetadata("key", std::string(200, 'v'));
  request.set_echo_metadata(true);  // the client does not
  EXPECT_EQ(echo.stub().Say(&next, request, &response).error_code(),
            StatusCode::RESOURCE_EXHAUSTED);
}

}  // namespace
}  // namespace rpc::testing
