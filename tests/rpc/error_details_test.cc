// Goal: details of errors get into statuses and out of them as with gRPC C++,
// also through a call.
// Method: statuses, and the echo service over the loopback transport.
#include "rpc/error_details.h"

#include <string>

#include "google/protobuf/duration.pb.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/rpc/echo_service.h"

namespace rpc::testing {
namespace {

google::rpc::Status Exhausted() {
  google::rpc::Status details;
  details.set_code(StatusCode::RESOURCE_EXHAUSTED);
  details.set_message("too many keys");
  google::protobuf::Duration retry_after;
  retry_after.set_seconds(7);
  details.add_details()->PackFrom(retry_after);
  return details;
}

TEST(ErrorDetailsTest, WhatIsSetCanBeExtracted) {
  Status status;
  ASSERT_TRUE(SetErrorDetails(Exhausted(), &status).ok());
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(), "too many keys");

  google::rpc::Status details;
  details.add_details();  // is cleared
  ASSERT_TRUE(ExtractErrorDetails(status, &details).ok());
  EXPECT_EQ(details.SerializeAsString(), Exhausted().SerializeAsString());
}

TEST(ErrorDetailsTest, TheyComeThroughACall) {
  SyncEcho service;
  EchoServer server({}, &service);
  ClientContext context;
  SayRequest request;
  request.set_status_code(StatusCode::RESOURCE_EXHAUSTED);
  request.set_status_message("too many keys");
  request.set_status_details(Exhausted().SerializeAsString());
  SayResponse response;
  const Status status = server.stub().Say(&context, request, &response);
  google::rpc::Status details;
  ASSERT_TRUE(ExtractErrorDetails(status, &details).ok());
  EXPECT_EQ(details.message(), status.error_message());
  google::protobuf::Duration retry_after;
  ASSERT_EQ(details.details_size(), 1);
  ASSERT_TRUE(details.details(0).UnpackTo(&retry_after));
  EXPECT_EQ(retry_after.seconds(), 7);
}

TEST(ErrorDetailsTest, AStatusWithoutDetailsHasEmptyOnes) {
  google::rpc::Status details = Exhausted();
  const Status plain(StatusCode::NOT_FOUND, "no such key");
  ASSERT_TRUE(ExtractErrorDetails(plain, &details).ok());
  EXPECT_EQ(details.ByteSizeLong(), 0u);
}

TEST(ErrorDetailsTest, WhatIsSomethingElseIsRefused) {
  google::rpc::Status details;
  const Status status(StatusCode::NOT_FOUND, "no such key", "\xff");
  EXPECT_EQ(ExtractErrorDetails(status, &details).error_code(),
            StatusCode::INVALID_ARGUMENT);
}

TEST(ErrorDetailsTest, NullIsRefused) {
  google::rpc::Status* const none = nullptr;
  for (const Status& status : {ExtractErrorDetails(Status::CANCELLED, none),
                               ExtractErrorDetails(Status::CANCELLED, nullptr),
                               SetErrorDetails(Exhausted(), nullptr)}) {
    EXPECT_EQ(status.error_code(), StatusCode::FAILED_PRECONDITION) << status;
  }
}

TEST(ErrorDetailsTest, WhatIsNoCodeIsUnknown) {
  for (const int code : {-1, 17, 1'000'000}) {
    google::rpc::Status details = Exhausted();
    details.set_code(code);
    Status status;
    ASSERT_TRUE(SetErrorDetails(details, &status).ok());
    EXPECT_EQ(status.error_code(), StatusCode::UNKNOWN);
    google::rpc::Status extracted;
    ASSERT_TRUE(ExtractErrorDetails(status, &extracted).ok());
    EXPECT_EQ(extracted.code(), code);
  }
}

TEST(ErrorDetailsTest, AnOkStatusMayHaveThem) {
  google::rpc::Status details = Exhausted();
  details.set_code(StatusCode::OK);
  Status status = Status::CANCELLED;
  ASSERT_TRUE(SetErrorDetails(details, &status).ok());
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.error_details(), details.SerializeAsString());
}

TEST(ErrorDetailsTest, TheProtoHasGooglesNamesAndNumbers) {
  const auto* const type = google::rpc::Status::descriptor();
  EXPECT_EQ(type->full_name(), "google.rpc.Status");
  EXPECT_EQ(type->file()->name(), "google/rpc/status.proto");
  EXPECT_EQ(type->FindFieldByName("code")->number(), 1);
  EXPECT_EQ(type->FindFieldByName("message")->number(), 2);
  EXPECT_EQ(type->FindFieldByName("details")->number(), 3);
}

}  // namespace
}  // namespace rpc::testing
