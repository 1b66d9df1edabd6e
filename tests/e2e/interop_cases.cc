#include "tests/e2e/interop_cases.h"

#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/interop_service.h"

namespace interop {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr std::string_view kInitialValue = "test_initial_metadata_value";
constexpr std::string_view kTrailingValue = "\xab\xab\xab";

void Fill(int32_t bytes, Payload* payload) {
  payload->set_body(std::string(static_cast<size_t>(bytes), '\0'));
}

void Fill(const char* message, EchoStatus* status) {
  status->set_code(kStatusCode);
  status->set_message(message);
}

}  // namespace

std::string NameOf(const Case& c) { return absl::StrCat(c.api, "_", c.name); }

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << NameOf(c);
}

std::vector<Case> AllCases() {
  std::vector<Case> all;
  for (const auto& cases :
       {BlockingCases(), ReactorCases(), QueueCases(), CoroutineCases()}) {
    all.insert(all.end(), cases.begin(), cases.end());
  }
  return all;
}

SimpleRequest LargeRequest() {
  SimpleRequest request;
  request.set_response_size(kLargeResponseBytes);
  Fill(kLargeRequestBytes, request.mutable_payload());
  return request;
}

SimpleRequest StatusRequest(const char* message) {
  SimpleRequest request;
  Fill(message, request.mutable_response_status());
  return request;
}

StreamingInputCallRequest InputRequest(int32_t payload_bytes) {
  StreamingInputCallRequest request;
  Fill(payload_bytes, request.mutable_payload());
  return request;
}

StreamingOutputCallRequest OutputRequest() {
  StreamingOutputCallRequest request;
  for (const int32_t bytes : kResponseBytes) {
    request.add_response_parameters()->set_size(bytes);
  }
  return request;
}

StreamingOutputCallRequest DuplexRequest(int32_t payload_bytes,
                                         int32_t response_bytes) {
  StreamingOutputCallRequest request;
  request.add_response_parameters()->set_size(response_bytes);
  Fill(payload_bytes, request.mutable_payload());
  return request;
}

StreamingOutputCallRequest SleepyRequest() {
  StreamingOutputCallRequest request;
  Fill(kRequestBytes[0], request.mutable_payload());
  return request;
}

StreamingOutputCallRequest DuplexStatusRequest(const char* message) {
  StreamingOutputCallRequest request;
  Fill(message, request.mutable_response_status());
  return request;
}

void AddEchoedMetadata(rpc::ClientContext& context) {
  context.AddMetadata(kEchoInitialKey, std::string(kInitialValue));
  context.AddMetadata(kEchoTrailingKey, std::string(kTrailingValue));
}

void ExpectZeros(const Payload& payload, int32_t bytes) {
  // Not one assertion: gtest would print all of them.
  EXPECT_EQ(payload.body().size(), static_cast<size_t>(bytes));
  EXPECT_EQ(payload.body().find_first_not_of('\0'), std::string::npos);
}

void ExpectStatus(const rpc::Status& status, const char* message) {
  EXPECT_TRUE(e2e::HasCode(status, kStatusCode));
  EXPECT_EQ(status.error_message(), message);
}

void ExpectEchoedMetadata(const rpc::ClientContext& context) {
  EXPECT_THAT(context.GetServerInitialMetadata(),
              ElementsAre(Pair(kEchoInitialKey, kInitialValue)));
  EXPECT_THAT(context.GetServerTrailingMetadata(),
              ElementsAre(Pair(kEchoTrailingKey, kTrailingValue)));
}

}  // namespace interop
