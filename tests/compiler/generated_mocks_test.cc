// Goal: a program that takes a StubInterface can be tested with the generated
// mock, whichever form of calls it makes. Method: each public function of a
// service with a method of each kind; the private one behind it is expected,
// with the same arguments, and what that returns must come out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "rpc/rpc.h"
#include "tests/compiler/protos/kinds.rpc.pb.h"
#include "tests/compiler/protos/kinds_mock.rpc.pb.h"

namespace verbena::testing::kinds {
namespace {

using ::testing::Ref;
using ::testing::Return;

class GeneratedMocksTest : public ::testing::Test {
 protected:
  ::testing::StrictMock<MockKindsStub> mock_;
  Kinds::StubInterface& stub_ = mock_;
  ::rpc::ClientContext context_;
  ::rpc::CompletionQueue queue_;
  Request request_;
  Response response_;
  int event_ = 0;  // its address is a tag
};

// Tells when it goes.
class Writer final : public ::rpc::ClientWriterInterface<Request> {
 public:
  explicit Writer(bool* is_gone) : is_gone_(*is_gone) {}
  ~Writer() override { is_gone_ = true; }

  ::rpc::Status Finish() override { return ::rpc::Status::OK; }
  bool Write(const Request&, ::rpc::WriteOptions) override { return false; }
  bool WritesDone() override { return false; }

 private:
  bool& is_gone_;
};

TEST_F(GeneratedMocksTest, BlockingCallsAreMocked) {
  EXPECT_CALL(mock_, Unary(&context_, Ref(request_), &response_))
      .WillOnce(Return(::rpc::Status(::rpc::StatusCode::ABORTED, "mocked")));
  EXPECT_EQ(stub_.Unary(&context_, request_, &response_).error_message(),
            "mocked");
  EXPECT_CALL(mock_, UpRaw(&context_, &response_)).WillOnce(Return(nullptr));
  EXPECT_EQ(stub_.Up(&context_, &response_), nullptr);
  EXPECT_CALL(mock_, DownRaw(&context_, Ref(request_)))
      .WillOnce(Return(nullptr));
  EXPECT_EQ(stub_.Down(&context_, request_), nullptr);
  EXPECT_CALL(mock_, BothRaw(&context_)).WillOnce(Return(nullptr));
  EXPECT_EQ(stub_.Both(&context_), nullptr);
}

TEST_F(GeneratedMocksTest, CallsWithCompletionQueuesAreMocked) {
  EXPECT_CALL(mock_, AsyncUnaryRaw(&context_, Ref(request_), &queue_))
      .WillOnce(Return(nullptr));
  EXPECT_EQ(stub_.AsyncUnary(&context_, request_, &queue_), nullptr);
  EXPECT_CALL(mock_, AsyncUpRaw(&context_, &response_, &queue_, &event_))
      .WillOnce(Return(nullptr));
  EXPECT_EQ(stub_.AsyncUp(&context_, &response_, &queue_, &event_), nullptr);
  EXPECT_CALL(mock_, AsyncDownRaw(&context_, Ref(request_), &queue_, &event_))
      .WillOnce(Return(nullptr));
  EXPECT_EQ(stub_.AsyncDown(&context_, request_, &queue_, &event_), nullptr);
  EXPECT_CALL(mock_, AsyncBothRaw(&context_, &queue_, &event_))
      .WillOnce(Return(nullptr));
  EXPECT_EQ(stub_.AsyncBoth(&context_, &queue_, &event_), nullptr);
}

TEST_F(GeneratedMocksTest, PreparedCallsAreMocked) {
  EXPECT_CALL(mock_, PrepareAsyncUnaryRaw(&context_, Ref(request_), &queue_))
      .WillOnce(Return(nullptr));
  EXPECT_EQ(stub_.PrepareAsyncUnary(&context_, request_, &queue_), nullptr);
  EXPECT_CALL(mock_, PrepareAsyncUpRaw(&context_, &response_, &queue_))
      .WillOnce(Return(nullptr));
  EXPECT_EQ(stub_.PrepareAsyncUp(&context_, &response_, &queue_), nullptr);
  EXPECT_CALL(mock_, PrepareAsyncDownRaw(&context_, Ref(request_), &queue_))
      .WillOnce(Return(nullptr));
  EXPECT_EQ(stub_.PrepareAsyncDown(&context_, request_, &queue_), nullptr);
  EXPECT_CALL(mock_, PrepareAsyncBothRaw(&context_, &queue_))
      .WillOnce(Return(nullptr));
  EXPECT_EQ(stub_.PrepareAsyncBoth(&context_, &queue_), nullptr);
}

TEST_F(GeneratedMocksTest, WhatAMockReturnsBelongsToTheCaller) {
  bool is_gone = false;
  auto* const writer = new Writer(&is_gone);
  EXPECT_CALL(mock_, UpRaw).WillOnce(Return(writer));
  std::unique_ptr<::rpc::ClientWriterInterface<Request>> stream =
      stub_.Up(&context_, &response_);
  EXPECT_EQ(stream.get(), writer);
  EXPECT_FALSE(is_gone);
  stream.reset();
  EXPECT_TRUE(is_gone);
}

}  // namespace
}  // namespace verbena::testing::kinds
