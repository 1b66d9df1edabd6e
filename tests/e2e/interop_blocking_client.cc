// The cases of interop_cases.h by the blocking API.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/interop_cases.h"

namespace interop {
namespace {

using e2e::HasCode;
using e2e::TimedContext;

void RunEmptyUnary(Stubs& stubs) {
  TimedContext context;
  Empty response;
  EXPECT_OK(stubs.test->EmptyCall(&context, Empty(), &response));
  EXPECT_EQ(response.ByteSizeLong(), 0u);
}

void RunLargeUnary(Stubs& stubs) {
  TimedContext context;
  SimpleResponse response;
  EXPECT_OK(stubs.test->UnaryCall(&context, LargeRequest(), &response));
  ExpectZeros(response.payload(), kLargeResponseBytes);
}

void RunClientStreaming(Stubs& stubs) {
  TimedContext context;
  StreamingInputCallResponse response;
  const auto writer = stubs.test->StreamingInputCall(&context, &response);
  for (const int32_t bytes : kRequestBytes) {
    EXPECT_TRUE(writer->Write(InputRequest(bytes))) << bytes;
  }
  EXPECT_TRUE(writer->WritesDone());
  EXPECT_OK(writer->Finish());
  EXPECT_EQ(response.aggregated_payload_size(), kAggregatedRequestBytes);
}

void RunServerStreaming(Stubs& stubs) {
  TimedContext context;
  const auto reader =
      stubs.test->StreamingOutputCall(&context, OutputRequest());
  StreamingOutputCallResponse response;
  for (const int32_t bytes : kResponseBytes) {
    EXPECT_TRUE(reader->Read(&response)) << bytes;
    ExpectZeros(response.payload(), bytes);
  }
  EXPECT_FALSE(reader->Read(&response)) << "a fifth response";
  EXPECT_OK(reader->Finish());
}

void RunPingPong(Stubs& stubs) {
  TimedContext context;
  const auto stream = stubs.test->FullDuplexCall(&context);
  StreamingOutputCallResponse response;
  for (size_t i = 0; i < kStreamMessages; ++i) {
    EXPECT_TRUE(
        stream->Write(DuplexRequest(kRequestBytes[i], kResponseBytes[i])));
    EXPECT_TRUE(stream->Read(&response)) << "response " << i;
    ExpectZeros(response.payload(), kResponseBytes[i]);
  }
  EXPECT_TRUE(stream->WritesDone());
  EXPECT_FALSE(stream->Read(&response)) << "a fifth response";
  EXPECT_OK(stream->Finish());
}

void RunEmptyStream(Stubs& stubs) {
  TimedContext context;
  const auto stream = stubs.test->FullDuplexCall(&context);
  EXPECT_TRUE(stream->WritesDone());
  StreamingOutputCallResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_OK(stream->Finish());
}

void RunCancelAfterBegin(Stubs& stubs) {
  TimedContext context;
  StreamingInputCallResponse response;
  const auto writer = stubs.test->StreamingInputCall(&context, &response);
  context.TryCancel();
  EXPECT_TRUE(HasCode(writer->Finish(), rpc::StatusCode::CANCELLED));
}

void RunCancelAfterFirstResponse(Stubs& stubs) {
  TimedContext context;
  const auto stream = stubs.test->FullDuplexCall(&context);
  EXPECT_TRUE(
      stream->Write(DuplexRequest(kRequestBytes[0], kResponseBytes[0])));
  StreamingOutputCallResponse response;
  EXPECT_TRUE(stream->Read(&response));
  ExpectZeros(response.payload(), kResponseBytes[0]);
  context.TryCancel();
  EXPECT_TRUE(HasCode(stream->Finish(), rpc::StatusCode::CANCELLED));
}

void RunTimeoutOnSleepingServer(Stubs& stubs) {
  TimedContext context(kShortTimeout);
  const auto stream = stubs.test->FullDuplexCall(&context);
  // It may be over by now.
  stream->Write(SleepyRequest());
  StreamingOutputCallResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(HasCode(stream->Finish(), rpc::StatusCode::DEADLINE_EXCEEDED));
}

void ExpectUnaryStatus(Stubs& stubs, const char* message) {
  TimedContext context;
  SimpleResponse response;
  ExpectStatus(
      stubs.test->UnaryCall(&context, StatusRequest(message), &response),
      message);
}

void RunStatusCodeAndMessage(Stubs& stubs) {
  ExpectUnaryStatus(stubs, kStatusMessage);
  TimedContext context;
  const auto stream = stubs.test->FullDuplexCall(&context);
  // The server may have ended the call before either returns.
  stream->Write(DuplexStatusRequest(kStatusMessage));
  stream->WritesDone();
  StreamingOutputCallResponse response;
  EXPECT_FALSE(stream->Read(&response));
  ExpectStatus(stream->Finish(), kStatusMessage);
}

void RunSpecialStatusMessage(Stubs& stubs) {
  ExpectUnaryStatus(stubs, kSpecialStatusMessage);
}

void RunUnimplementedMethod(Stubs& stubs) {
  TimedContext context;
  Empty response;
  EXPECT_TRUE(
      HasCode(stubs.test->UnimplementedCall(&context, Empty(), &response),
              rpc::StatusCode::UNIMPLEMENTED));
}

void RunUnimplementedService(Stubs& stubs) {
  TimedContext context;
  Empty response;
  EXPECT_TRUE(HasCode(
      stubs.unimplemented->UnimplementedCall(&context, Empty(), &response),
      rpc::StatusCode::UNIMPLEMENTED));
}

void RunCustomMetadata(Stubs& stubs) {
  TimedContext unary_context;
  AddEchoedMetadata(unary_context);
  SimpleResponse unary_response;
  EXPECT_OK(
      stubs.test->UnaryCall(&unary_context, LargeRequest(), &unary_response));
  ExpectZeros(unary_response.payload(), kLargeResponseBytes);
  ExpectEchoedMetadata(unary_context);

  TimedContext context;
  AddEchoedMetadata(context);
  const auto stream = stubs.test->FullDuplexCall(&context);
  EXPECT_TRUE(
      stream->Write(DuplexRequest(kLargeRequestBytes, kLargeResponseBytes)));
  EXPECT_TRUE(stream->WritesDone());
  StreamingOutputCallResponse response;
  EXPECT_TRUE(stream->Read(&response));
  ExpectZeros(response.payload(), kLargeResponseBytes);
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_OK(stream->Finish());
  ExpectEchoedMetadata(context);
}

}  // namespace

std::vector<Case> BlockingCases() {
  constexpr char kApi[] = "Blocking";
  return {
      {kApi, "empty_unary", RunEmptyUnary},
      {kApi, "large_unary", RunLargeUnary},
      {kApi, "client_streaming", RunClientStreaming},
      {kApi, "server_streaming", RunServerStreaming},
      {kApi, "ping_pong", RunPingPong},
      {kApi, "empty_stream", RunEmptyStream},
      {kApi, "cancel_after_begin", RunCancelAfterBegin},
      {kApi, "cancel_after_first_response", RunCancelAfterFirstResponse},
      {kApi, "timeout_on_sleeping_server", RunTimeoutOnSleepingServer},
      {kApi, "status_code_and_message", RunStatusCodeAndMessage},
      {kApi, "special_status_message", RunSpecialStatusMessage},
      {kApi, "unimplemented_method", RunUnimplementedMethod},
      {kApi, "unimplemented_service", RunUnimplementedService},
      {kApi, "custom_metadata", RunCustomMetadata},
  };
}

}  // namespace interop
