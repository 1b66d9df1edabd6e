// Bytes beside the message: the same memory on both sides, in any size.
#include <cstring>
#include <string>
#include <utility>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "rpc/internal/callback_scope.h"
#include "rpc/rpc.h"
#include "tests/rpc/echo_service.h"
#include "tests/rpc/loopback_transport.h"

namespace rpc::testing {
namespace {

class AttachmentTest : public ::testing::TestWithParam<int> {
 protected:
  AttachmentTest() : echo_({.threads = GetParam()}, &service_) {}

  BufferChain Registered(const std::string& bytes) {
    absl::StatusOr<Buffer> buffer =
        echo_.channel()->AllocateBuffer(bytes.size());
    EXPECT_TRUE(buffer.ok()) << buffer.status();
    std::memcpy(buffer->mutable_data(), bytes.data(), bytes.size());
    return BufferChain(*std::move(buffer));
  }

  Status Echo(ClientContext* context, SayResponse* response) {
    SayRequest request;
    request.set_echo_attachment(true);
    return echo_.stub().Say(context, request, response);
  }

  SyncEcho service_;
  EchoServer echo_;
};

TEST_P(AttachmentTest, SameMemoryThereAndBack) {
  ClientContext context;
  SayResponse response;
  BufferChain sent = Registered(std::string(1 << 20, 'a'));
  const std::byte* const address = sent.buffers().front().data();
  context.set_attachment(std::move(sent));
  ASSERT_TRUE(Echo(&context, &response).ok());
  EXPECT_EQ(response.attachment_bytes(), 1 << 20);
  ASSERT_EQ(context.attachment().size(), 1u << 20);
  ASSERT_TRUE(context.attachment().contiguous());
  EXPECT_EQ(context.attachment().buffers().front().data(), address);
}

TEST_P(AttachmentTest, SeveralBuffersKeepTheirOrder) {
  ClientContext context;
  SayResponse response;
  BufferChain sent = Registered("first ");
  sent.Append(Registered("second "));
  sent.Append(Registered("third"));
  context.set_attachment(std::move(sent));
  ASSERT_TRUE(Echo(&context, &response).ok());
  EXPECT_EQ(context.attachment().ToString(), "first second third");
}

TEST_P(AttachmentTest, HeapMemoryIsCopied) {
  ClientContext context;
  SayResponse response;
  context.set_attachment(BufferChain(Buffer::CopyOf("from the heap")));
  ASSERT_TRUE(Echo(&context, &response).ok());
  EXPECT_EQ(context.attachment().ToString(), "from the heap");
}

TEST_P(AttachmentTest, MemoryOfOthersIsCopied) {
  static const char kText[] = "static";
  int destroyed = 0;
  {
    ClientContext context;
    SayResponse response;
    BufferChain sent(Buffer::Unowned(kText));
    sent.Append(Buffer::Adopt(
        const_cast<char*>(kText), 6,
        [](void* count) { ++*static_cast<int*>(count); }, &destroyed));
    context.set_attachment(std::move(sent));
    ASSERT_TRUE(Echo(&context, &response).ok());
    EXPECT_EQ(context.attachment().ToString(), "staticstatic");
  }
  EXPECT_EQ(destroyed, 1);
}

TEST_P(AttachmentTest, NoneAndEmpty) {
  ClientContext context;
  SayResponse response;
  context.set_attachment(BufferChain());
  ASSERT_TRUE(Echo(&context, &response).ok());
  EXPECT_EQ(response.attachment_bytes(), 0);
  EXPECT_TRUE(context.attachment().empty());
}

TEST_P(AttachmentTest, NotSentWithAnErrorNorWithTheNextCall) {
  for (int i = 0; i < 3; ++i) {
    ClientContext context;
    SayRequest request;
    SayResponse response;
    request.set_echo_attachment(true);
    request.set_status_code(StatusCode::ABORTED);
    context.set_attachment(Registered("lost"));
    EXPECT_EQ(echo_.stub().Say(&context, request, &response).error_code(),
              StatusCode::ABORTED);
    EXPECT_TRUE(context.attachment().empty());

    ClientContext next;
    ASSERT_TRUE(echo_.stub().Say(&next, SayRequest(), &response).ok());
    EXPECT_EQ(response.attachment_bytes(), 0);
    EXPECT_TRUE(next.attachment().empty());
  }
}

// A channel that goes with it must find that out: its transport may be below.
TEST_P(AttachmentTest, WhatAFailedHandlerAttachedGoesWithinACallback) {
  struct Destroyed {
    bool in_callback = false;
    absl::Notification notification;
  };
  Destroyed destroyed;
  service_.before = [&](ServerContext* context) {
    static char bytes[] = "lost";
    context->set_attachment(BufferChain(Buffer::Adopt(
        bytes, sizeof(bytes),
        [](void* user_data) {
          auto* const destroyed = static_cast<Destroyed*>(user_data);
          destroyed->in_callback =
              internal::CallbackScope::current() != nullptr;
          destroyed->notification.Notify();
        },
        &destroyed)));
  };
  ClientContext context;
  SayRequest request;
  SayResponse response;
  request.set_status_code(StatusCode::ABORTED);
  EXPECT_EQ(echo_.stub().Say(&context, request, &response).error_code(),
            StatusCode::ABORTED);
  destroyed.notification.WaitForNotification();
  EXPECT_TRUE(destroyed.in_callback);
}

TEST_P(AttachmentTest, MemoryReturnsWithTheContext) {
  {
    ClientContext context;
    SayResponse response;
    context.set_attachment(Registered(std::string(100000, 'a')));
    ASSERT_TRUE(Echo(&context, &response).ok());
    EXPECT_GE(echo_.network().bytes_in_use(), 100000u);
  }
  echo_.network().WaitUntilIdle();
  EXPECT_EQ(echo_.network().bytes_in_use(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Threads, AttachmentTest, ::testing::Values(0, 4));

TEST(AttachmentLimitTest, TooLargeToSend) {
  SyncEcho service;
  EchoServer echo({.limits = {.max_header_bytes = 1024,
                              .copy_message_bytes = 256,
                              .max_message_bytes = 1 << 20,
                              .max_attachment_bytes = 1000}},
                  &service);
  ClientContext context;
  SayResponse response;
  context.set_attachment(BufferChain(Buffer::FromHeap(1001)));
  const Status status = echo.stub().Say(&context, SayRequest(), &response);
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(status.error_message().find("1001 vs. 1000"), std::string::npos);
  EXPECT_EQ(service.calls.load(), 0);
}

TEST(AllocateBufferTest, BudgetIsAStatus) {
  SyncEcho service;
  service.before = [](ServerContext* context) {
    EXPECT_TRUE(context->AllocateBuffer(1000).ok());
    EXPECT_EQ(context->AllocateBuffer(1 << 20).status().code(),
              absl::StatusCode::kResourceExhausted);
  };
  EchoServer echo({.memory_budget_bytes = 100000}, &service);
  EXPECT_EQ(echo.channel()->AllocateBuffer(1 << 20).status().code(),
            absl::StatusCode::kResourceExhausted);
  ClientContext context;
  SayRequest request;
  SayResponse response;
  request.set_payload(std::string(200000, 'p'));
  Status status = echo.stub().Say(&context, request, &response);
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED) << status;

  // A response for which the server has no memory.
  ClientContext next;
  request.clear_payload();
  request.set_response_payload_bytes(200000);
  status = echo.stub().Say(&next, request, &response);
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED) << status;
  EXPECT_EQ(service.calls.load(), 1);
}

}  // namespace
}  // namespace rpc::testing
