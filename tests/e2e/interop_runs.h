// The cases of interop_cases.h, for any API of the client: what they say of the
// API is a class of it, Client, that has each call end before its function
// returns.
//
//   class BlockingClient {
//    public:
//     explicit BlockingClient(Stubs& stubs);
//     rpc::Status EmptyCall(rpc::ClientContext* context, const Empty& request,
//                           Empty* response);
//     ... UnaryCall, UnimplementedCall, UnimplementedService ...
//     // Each gives a pointer to an object with the functions of sync_stream.h.
//     auto StreamingInputCall(rpc::ClientContext* context,
//                             StreamingInputCallResponse* response);
//     auto StreamingOutputCall(rpc::ClientContext* context,
//                              const StreamingOutputCallRequest& request);
//     auto FullDuplexCall(rpc::ClientContext* context);
//   };
//
//   std::vector<Case> BlockingCases() {
//     return CasesOf<BlockingClient>("Blocking");
//   }
//
// Thread rule: as interop_cases.h.
#ifndef VERBENA_TESTS_E2E_INTEROP_RUNS_H_
#define VERBENA_TESTS_E2E_INTEROP_RUNS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/interop_cases.h"

namespace interop {

using e2e::HasCode;
using e2e::TimedContext;

template <class Client>
void RunEmptyUnary(Stubs& stubs) {
  Client client(stubs);
  TimedContext context;
  Empty response;
  EXPECT_OK(client.EmptyCall(&context, Empty(), &response));
  EXPECT_EQ(response.ByteSizeLong(), 0u);
}

template <class Client>
void RunLargeUnary(Stubs& stubs) {
  Client client(stubs);
  TimedContext context;
  SimpleResponse response;
  EXPECT_OK(client.UnaryCall(&context, LargeRequest(), &response));
  ExpectZeros(response.payload(), kLargeResponseBytes);
}

template <class Client>
void RunClientStreaming(Stubs& stubs) {
  Client client(stubs);
  TimedContext context;
  StreamingInputCallResponse response;
  const auto writer = client.StreamingInputCall(&context, &response);
  for (const int32_t bytes : kRequestBytes) {
    EXPECT_TRUE(writer->Write(InputRequest(bytes))) << bytes;
  }
  EXPECT_TRUE(writer->WritesDone());
  EXPECT_OK(writer->Finish());
  EXPECT_EQ(response.aggregated_payload_size(), kAggregatedRequestBytes);
}

template <class Client>
void RunServerStreaming(Stubs& stubs) {
  Client client(stubs);
  TimedContext context;
  const auto reader = client.StreamingOutputCall(&context, OutputRequest());
  StreamingOutputCallResponse response;
  for (const int32_t bytes : kResponseBytes) {
    EXPECT_TRUE(reader->Read(&response)) << bytes;
    ExpectZeros(response.payload(), bytes);
  }
  EXPECT_FALSE(reader->Read(&response)) << "a fifth response";
  EXPECT_OK(reader->Finish());
}

template <class Client>
void RunPingPong(Stubs& stubs) {
  Client client(stubs);
  TimedContext context;
  const auto stream = client.FullDuplexCall(&context);
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

template <class Client>
void RunEmptyStream(Stubs& stubs) {
  Client client(stubs);
  TimedContext context;
  const auto stream = client.FullDuplexCall(&context);
  EXPECT_TRUE(stream->WritesDone());
  StreamingOutputCallResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_OK(stream->Finish());
}

template <class Client>
void RunCancelAfterBegin(Stubs& stubs) {
  Client client(stubs);
  TimedContext context;
  StreamingInputCallResponse response;
  const auto writer = client.StreamingInputCall(&context, &response);
  context.TryCancel();
  EXPECT_TRUE(HasCode(writer->Finish(), rpc::StatusCode::CANCELLED));
}

template <class Client>
void RunCancelAfterFirstResponse(Stubs& stubs) {
  Client client(stubs);
  TimedContext context;
  const auto stream = client.FullDuplexCall(&context);
  EXPECT_TRUE(
      stream->Write(DuplexRequest(kRequestBytes[0], kResponseBytes[0])));
  StreamingOutputCallResponse response;
  EXPECT_TRUE(stream->Read(&response));
  ExpectZeros(response.payload(), kResponseBytes[0]);
  context.TryCancel();
  EXPECT_TRUE(HasCode(stream->Finish(), rpc::StatusCode::CANCELLED));
}

template <class Client>
void RunTimeoutOnSleepingServer(Stubs& stubs) {
  Client client(stubs);
  TimedContext context(kShortTimeout);
  const auto stream = client.FullDuplexCall(&context);
  // It may be over by now.
  stream->Write(SleepyRequest());
  StreamingOutputCallResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(HasCode(stream->Finish(), rpc::StatusCode::DEADLINE_EXCEEDED));
}

template <class Client>
void ExpectUnaryStatus(Stubs& stubs, const char* message) {
  Client client(stubs);
  TimedContext context;
  SimpleResponse response;
  ExpectStatus(client.UnaryCall(&context, StatusRequest(message), &response),
               message);
}

template <class Client>
void RunStatusCodeAndMessage(Stubs& stubs) {
  Client client(stubs);
  ExpectUnaryStatus<Client>(stubs, kStatusMessage);
  TimedContext context;
  const auto stream = client.FullDuplexCall(&context);
  // The server may have ended the call before either returns.
  stream->Write(DuplexStatusRequest(kStatusMessage));
  stream->WritesDone();
  StreamingOutputCallResponse response;
  EXPECT_FALSE(stream->Read(&response));
  ExpectStatus(stream->Finish(), kStatusMessage);
}

template <class Client>
void RunSpecialStatusMessage(Stubs& stubs) {
  Client client(stubs);
  ExpectUnaryStatus<Client>(stubs, kSpecialStatusMessage);
}

template <class Client>
void RunUnimplementedMethod(Stubs& stubs) {
  Client client(stubs);
  TimedContext context;
  Empty response;
  EXPECT_TRUE(HasCode(client.UnimplementedCall(&context, Empty(), &response),
                      rpc::StatusCode::UNIMPLEMENTED));
}

template <class Client>
void RunUnimplementedService(Stubs& stubs) {
  Client client(stubs);
  TimedContext context;
  Empty response;
  EXPECT_TRUE(HasCode(client.UnimplementedService(&context, Empty(), &response),
                      rpc::StatusCode::UNIMPLEMENTED));
}

template <class Client>
void RunCustomMetadata(Stubs& stubs) {
  Client client(stubs);
  TimedContext unary_context;
  AddEchoedMetadata(unary_context);
  SimpleResponse unary_response;
  EXPECT_OK(client.UnaryCall(&unary_context, LargeRequest(), &unary_response));
  ExpectZeros(unary_response.payload(), kLargeResponseBytes);
  ExpectEchoedMetadata(unary_context);

  TimedContext context;
  AddEchoedMetadata(context);
  const auto stream = client.FullDuplexCall(&context);
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

template <class Client>
std::vector<Case> CasesOf(const std::string& api) {
  return {
      {api, "empty_unary", RunEmptyUnary<Client>},
      {api, "large_unary", RunLargeUnary<Client>},
      {api, "client_streaming", RunClientStreaming<Client>},
      {api, "server_streaming", RunServerStreaming<Client>},
      {api, "ping_pong", RunPingPong<Client>},
      {api, "empty_stream", RunEmptyStream<Client>},
      {api, "cancel_after_begin", RunCancelAfterBegin<Client>},
      {api, "cancel_after_first_response", RunCancelAfterFirstResponse<Client>},
      {api, "timeout_on_sleeping_server", RunTimeoutOnSleepingServer<Client>},
      {api, "status_code_and_message", RunStatusCodeAndMessage<Client>},
      {api, "special_status_message", RunSpecialStatusMessage<Client>},
      {api, "unimplemented_method", RunUnimplementedMethod<Client>},
      {api, "unimplemented_service", RunUnimplementedService<Client>},
      {api, "custom_metadata", RunCustomMetadata<Client>},
  };
}

}  // namespace interop

#endif  // VERBENA_TESTS_E2E_INTEROP_RUNS_H_
