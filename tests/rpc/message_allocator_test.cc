// Goal: with a MessageAllocator a unary handler of the callback API works on
// the user's messages, each call's are given back once, after OnDone, and
// however the call ends.
#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "absl/synchronization/notification.h"
#include "google/protobuf/arena.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/rpc/echo_service.h"
#include "tests/rpc/loopback_transport.h"

namespace rpc::testing {
namespace {

using Messages = MessageHolder<SayRequest, SayResponse>;

// Counts.
class CountingAllocator final
    : public MessageAllocator<SayRequest, SayResponse> {
 public:
  std::atomic<int> allocated{0};
  std::atomic<int> requests_freed{0};
  std::atomic<int> released{0};
  std::atomic<bool> empty{false};

 private:
  class Holder final : public Messages {
   public:
    explicit Holder(CountingAllocator* allocator) : allocator_(*allocator) {
      set_request(new SayRequest);
      set_response(new SayResponse);
    }
    void Release() override {
      delete request();
      delete response();
      ++allocator_.released;
      delete this;
    }
    void FreeRequest() override {
      delete request();
      set_request(nullptr);
      ++allocator_.requests_freed;
    }

   private:
    CountingAllocator& allocator_;
  };

  Messages* AllocateMessages() override {
    if (empty) return nullptr;
    ++allocated;
    return new Holder(this);
  }
};

class Echoer final : public Echo::CallbackService {
 public:
  std::function<void(CallbackServerContext*)> before;
  std::atomic<bool> finish_later{false};
  std::atomic<ServerUnaryReactor*> waiting{nullptr};

 private:
  ServerUnaryReactor* Say(CallbackServerContext* context,
                          const SayRequest* request,
                          SayResponse* response) override {
    response->set_text(request->text());
    if (before) before(context);
    ServerUnaryReactor* const reactor = context->DefaultReactor();
    if (finish_later) {
      waiting = reactor;
    } else {
      reactor->Finish(Status::OK);
    }
    return reactor;
  }
};

class MessageAllocatorTest : public ::testing::TestWithParam<int> {
 protected:
  MessageAllocatorTest() { service_.SetMessageAllocatorFor_Say(&allocator_); }

  Status Say(const std::string& text, ClientContext* context) {
    SayRequest request;
    request.set_text(text);
    return echo_.stub().Say(context, request, &response_);
  }
  Status Say(const std::string& text) {
    ClientContext context;
    return Say(text, &context);
  }
  void ExpectReleased(int count) {
    echo_.network().WaitUntilIdle();
    while (allocator_.released < count) absl::SleepFor(absl::Milliseconds(1));
    EXPECT_EQ(allocator_.allocated, count);
    EXPECT_EQ(allocator_.released, count);
  }

  CountingAllocator allocator_;
  Echoer service_;
  SayResponse response_;
  EchoServer echo_{{.threads = GetParam()}, &service_};
};
INSTANTIATE_TEST_SUITE_P(Threads, MessageAllocatorTest,
                         ::testing::Values(0, 2));

TEST_P(MessageAllocatorTest, EachCallHasMessagesOfItsOwn) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(Say(std::to_string(i)).ok());
    EXPECT_EQ(response_.text(), std::to_string(i));
  }
  ExpectReleased(10);
  EXPECT_EQ(allocator_.requests_freed, 0);
}

TEST_P(MessageAllocatorTest, AHandlerMayFreeItsRequestEarly) {
  service_.before = [](CallbackServerContext* context) {
    ASSERT_NE(context->GetRpcAllocatorState(), nullptr);
    context->GetRpcAllocatorState()->FreeRequest();
  };
  EXPECT_TRUE(Say("early").ok());
  EXPECT_EQ(response_.text(), "early");
  ExpectReleased(1);
  EXPECT_EQ(allocator_.requests_freed, 1);
}

TEST_P(MessageAllocatorTest, ARequestThatDoesNotParseIsGivenBack) {
  echo_.network().ReplaceNextRequest(
      {.has_message = true, .message = "\x0a\xff", .end = true});
  EXPECT_EQ(Say("spoiled").error_code(), StatusCode::INTERNAL);
  ExpectReleased(1);
  EXPECT_TRUE(Say("next").ok());
}

TEST_P(MessageAllocatorTest, WithoutMessagesACallIsRefused) {
  allocator_.empty = true;
  EXPECT_EQ(Say("none").error_code(), StatusCode::RESOURCE_EXHAUSTED);
  allocator_.empty = false;
  EXPECT_TRUE(Say("some").ok());
  ExpectReleased(1);
}

TEST(MessageAllocatorReleaseTest, MessagesLiveUntilTheHandlerHasFinished) {
  CountingAllocator allocator;
  Echoer service;
  service.SetMessageAllocatorFor_Say(&allocator);
  service.finish_later = true;
  EchoServer echo({.threads = 2}, &service);
  ClientContext context;
  const SayRequest request;
  SayResponse response;
  absl::Notification ended;
  echo.stub().async()->Say(&context, &request, &response, [&](Status status) {
    EXPECT_EQ(status.error_code(), StatusCode::CANCELLED);
    ended.Notify();
  });
  while (service.waiting == nullptr) absl::SleepFor(absl::Milliseconds(1));
  context.TryCancel();
  ended.WaitForNotification();
  EXPECT_EQ(allocator.released, 0);
  service.waiting.load()->Finish(Status::OK);
  while (allocator.released == 0) absl::SleepFor(absl::Milliseconds(1));
}

// Messages on an arena, which goes as one.
class ArenaAllocator final : public MessageAllocator<SayRequest, SayResponse> {
  class Holder final : public Messages {
   public:
    Holder() {
      set_request(google::protobuf::Arena::CreateMessage<SayRequest>(&arena_));
      set_response(
          google::protobuf::Arena::CreateMessage<SayResponse>(&arena_));
    }
    void Release() override { delete this; }

   private:
    google::protobuf::Arena arena_;
  };
  Messages* AllocateMessages() override { return new Holder; }
};

TEST(MessageAllocatorArenaTest, MessagesMayBeOnAnArena) {
  ArenaAllocator allocator;
  Echoer service;
  service.SetMessageAllocatorFor_Say(&allocator);
  EchoServer echo({.threads = 2}, &service);
  for (int i = 0; i < 10; ++i) {
    ClientContext context;
    SayRequest request;
    request.set_text(std::string(1000, 'a'));
    SayResponse response;
    EXPECT_TRUE(echo.stub().Say(&context, request, &response).ok());
    EXPECT_EQ(response.text(), request.text());
  }
}

TEST(MessageAllocatorStateTest, WithoutAnAllocatorThereIsNoState) {
  Echoer service;
  service.before = [](CallbackServerContext* context) {
    EXPECT_EQ(context->GetRpcAllocatorState(), nullptr);
  };
  EchoServer echo({.threads = 2}, &service);
  ClientContext context;
  SayResponse response;
  EXPECT_TRUE(echo.stub().Say(&context, SayRequest(), &response).ok());
}

}  // namespace
}  // namespace rpc::testing
