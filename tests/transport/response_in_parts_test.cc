// Goal: a stub's call has a large response when all of it has come, however
// late; and where that is no message, or does not come to its end, the call
// ends with what says so. Method: calls of real channels to a server that is a
// transport alone, and sends its answers as the test says.
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/rpc/echo.rpc.pb.h"
#include "tests/transport/connection_side.h"

namespace rdma {
namespace {

using rpc::StatusCode;
using rpc::testing::Echo;
using rpc::testing::SayRequest;
using rpc::testing::SayResponse;
using testing::Eventually;
using testing::Side;
using testing::TestBytes;

constexpr size_t kBytes = 7 << 20;

enum class Api { kBlocking, kCallback };

class ResponseInPartsTest : public ::testing::TestWithParam<Api> {
 protected:
  ResponseInPartsTest() {
    server_.AnswerAtOnce(false);
    server_.Listen();
    const uint16_t port = server_.address().port();
    stub_ = Echo::NewStub(
        rpc::CreateChannel(absl::StrCat("rdma://127.0.0.1:", port),
                           rpc::InsecureChannelCredentials()));
    SayResponse response;
    response.set_payload(TestBytes(kBytes));
    response.set_text("behind it");
    message_ = response.SerializeAsString();
  }
  ~ResponseInPartsTest() override { Join(); }

  void Join() {
    if (thread_.joinable()) thread_.join();
  }

  // Its call has come to the server, which has said to send `message`, and half
  // of it.
  void Call(const std::string& message, absl::Duration timeout) {
    Join();
    context_ = std::make_unique<rpc::ClientContext>();
    context_->set_deadline(absl::ToChronoTime(absl::Now() + timeout));
    done_ = std::make_unique<absl::Notification>();
    const int before = server_.opened();
    const auto done = [this](rpc::Status status) {
      status_ = std::move(status);
      done_->Notify();
    };
    if (GetParam() == Api::kBlocking) {
      thread_ = std::thread([this, done] {
        done(stub_->Say(context_.get(), request_, &response_));
      });
    } else {
      stub_->async()->Say(context_.get(), &request_, &response_, done);
    }
    ASSERT_TRUE(Eventually([&] { return server_.opened() > before; }));
    answer_ = server_.AnswerGrowing(message);
    answer_.message->SetWritten(message.size() / 2);
    answer_.memory.reset();
  }

  // The call that came first gets its answer in halves, the others theirs in
  // between, as the notification tells.
  void AnswerInParts(absl::Notification& others_have_theirs) {
    answer_ = server_.AnswerGrowing(message_);
    answer_.message->SetWritten(message_.size() / 2);
    absl::SleepFor(absl::Milliseconds(5));
    server_.Answer();
    EXPECT_TRUE(
        others_have_theirs.WaitForNotificationWithTimeout(absl::Seconds(20)));
    EXPECT_FALSE(done_->HasBeenNotified());
    answer_.message->SetWritten(message_.size());
    answer_.memory.reset();
    ASSERT_TRUE(IsOver());
    EXPECT_TRUE(status_.ok()) << status_.error_message();
    EXPECT_TRUE(response_.SerializeAsString() == message_);
  }

  bool IsOver() {
    return done_->WaitForNotificationWithTimeout(absl::Seconds(20));
  }

  // Nothing is offered any more.
  bool HasAllMemory() {
    return Eventually([&] {
      return server_.poller().context().memory().Allocate(kServerBudget).ok();
    });
  }

  static constexpr uint64_t kServerBudget = 16 << 20;
  Side server_{{}, nullptr, kServerBudget};
  std::unique_ptr<Echo::Stub> stub_;
  std::string message_;
  std::unique_ptr<rpc::ClientContext> context_;
  SayRequest request_;
  SayResponse response_;
  rpc::Status status_;
  std::unique_ptr<absl::Notification> done_;
  std::thread thread_;
  Side::Growing answer_;
};

INSTANTIATE_TEST_SUITE_P(Apis, ResponseInPartsTest,
                         ::testing::Values(Api::kBlocking, Api::kCallback),
                         [](const auto& api) {
                           return api.param == Api::kBlocking ? "Blocking"
                                                              : "Callback";
                         });

TEST_P(ResponseInPartsTest, IsWhatWasSent) {
  for (int i = 0; i < 3; ++i) {
    Call(message_, absl::Seconds(30));
    EXPECT_FALSE(done_->WaitForNotificationWithTimeout(absl::Milliseconds(10)));
    answer_.message->SetWritten(message_.size());
    ASSERT_TRUE(IsOver());
    EXPECT_TRUE(status_.ok()) << status_.error_message();
    EXPECT_TRUE(response_.SerializeAsString() == message_);
    EXPECT_TRUE(HasAllMemory());
  }
}

TEST_P(ResponseInPartsTest, ThatIsNoMessageEndsTheCall) {
  const std::string bytes(kBytes, '\xff');
  Call(bytes, absl::Seconds(30));
  answer_.message->SetWritten(bytes.size());
  ASSERT_TRUE(IsOver());
  EXPECT_EQ(status_.error_code(), StatusCode::INTERNAL);
  EXPECT_NE(status_.error_message().find("Failed to parse"), std::string::npos)
      << status_.error_message();
  EXPECT_TRUE(HasAllMemory());
  Call(message_, absl::Seconds(30));
  answer_.message->SetWritten(message_.size());
  ASSERT_TRUE(IsOver());
  EXPECT_TRUE(status_.ok()) << status_.error_message();
}

// A thread that waits for its response parses what is there of it; as a rule,
// for another one may drive just then.
TEST_P(ResponseInPartsTest, ThatIsNoMessageIsSeenBeforeTheRestComes) {
  if (GetParam() != Api::kBlocking) GTEST_SKIP() << "callbacks do not wait";
  const std::string bytes(kBytes, '\xff');
  bool was_early = false;
  for (int i = 0; i < 20 && !was_early; ++i) {
    Call(bytes, absl::Seconds(30));
    was_early = done_->WaitForNotificationWithTimeout(absl::Milliseconds(200));
    answer_.message->SetWritten(bytes.size());
    ASSERT_TRUE(IsOver());
    EXPECT_EQ(status_.error_code(), StatusCode::INTERNAL);
  }
  EXPECT_TRUE(was_early);
  EXPECT_TRUE(HasAllMemory());
}

TEST_P(ResponseInPartsTest, ThatIsNoMessageAtItsVeryEnd) {
  std::string bytes = message_;
  bytes += '\xff';
  Call(bytes, absl::Seconds(30));
  answer_.message->SetWritten(bytes.size());
  ASSERT_TRUE(IsOver());
  EXPECT_EQ(status_.error_code(), StatusCode::INTERNAL);
  EXPECT_TRUE(HasAllMemory());
}

TEST_P(ResponseInPartsTest, WhoseServerGivesUp) {
  Call(message_, absl::Seconds(30));
  answer_.message->Fail(absl::DataLossError("by the test"));
  ASSERT_TRUE(IsOver());
  EXPECT_EQ(status_.error_code(), StatusCode::DATA_LOSS);
  EXPECT_EQ(status_.error_message(), "by the test");
  EXPECT_TRUE(HasAllMemory());
}

TEST_P(ResponseInPartsTest, WhoseConnectionCloses) {
  Call(message_, absl::Seconds(30));
  server_.CloseAll(absl::CancelledError("by the test"));
  ASSERT_TRUE(IsOver());
  EXPECT_EQ(status_.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_TRUE(HasAllMemory());
}

TEST_P(ResponseInPartsTest, WhoseDeadlinePasses) {
  // What comes with the first call does not count.
  Call(message_, absl::Seconds(30));
  answer_.message->SetWritten(message_.size());
  ASSERT_TRUE(IsOver());
  EXPECT_TRUE(HasAllMemory());
  Call(message_, absl::Seconds(2));
  ASSERT_TRUE(IsOver());
  EXPECT_EQ(status_.error_code(), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(HasAllMemory());
}

TEST_P(ResponseInPartsTest, WhoseCallIsCancelled) {
  Call(message_, absl::Seconds(30));
  absl::SleepFor(absl::Milliseconds(10));
  context_->TryCancel();
  ASSERT_TRUE(IsOver());
  EXPECT_EQ(status_.error_code(), StatusCode::CANCELLED);
  EXPECT_TRUE(HasAllMemory());
}

// Of other threads, over the same connection.
TEST_P(ResponseInPartsTest, OtherCallsGoOnMeanwhile) {
  Call(message_, absl::Seconds(30));
  server_.AnswerAtOnce(true);
  for (int i = 0; i < 100; ++i) {
    rpc::ClientContext context;
    SayResponse response;
    const rpc::Status status = stub_->Say(&context, request_, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  EXPECT_FALSE(done_->HasBeenNotified());
  answer_.message->SetWritten(message_.size());
  ASSERT_TRUE(IsOver());
  EXPECT_TRUE(status_.ok()) << status_.error_message();
}

// Not even one that its thread makes in a callback meanwhile: it drives there,
// too, and waits for that call, not for the response.
TEST_P(ResponseInPartsTest, ACallInACallbackGoesOnMeanwhile) {
  if (GetParam() != Api::kBlocking) GTEST_SKIP() << "nobody waits";
  for (int i = 0; i < 5; ++i) {
    Join();
    context_ = std::make_unique<rpc::ClientContext>();
    done_ = std::make_unique<absl::Notification>();
    const int before = server_.opened();
    thread_ = std::thread([this] {
      status_ = stub_->Say(context_.get(), request_, &response_);
      done_->Notify();
    });
    ASSERT_TRUE(Eventually([&] { return server_.opened() == before + 1; }));
    // As a rule on that thread, which drives.
    absl::Notification called_back;
    rpc::ClientContext outer_context;
    SayResponse outer;
    server_.AnswerAtOnce(true);
    stub_->async()->Say(
        &outer_context, &request_, &outer, [&](const rpc::Status& status) {
          EXPECT_TRUE(status.ok()) << status.error_message();
          server_.AnswerAtOnce(false);
          rpc::ClientContext context;
          SayResponse inner;
          EXPECT_TRUE(stub_->Say(&context, request_, &inner).ok());
          called_back.Notify();
        });
    ASSERT_TRUE(Eventually([&] { return server_.opened() == before + 3; }));
    AnswerInParts(called_back);
  }
}

// The state of the call whose callback it is, is another one's by then.
TEST_P(ResponseInPartsTest, ACallInACallbackInACallbackGoesOnMeanwhile) {
  if (GetParam() != Api::kBlocking) GTEST_SKIP() << "nobody waits";
  for (int i = 0; i < 5; ++i) {
    const int before = server_.opened();
    done_ = std::make_unique<absl::Notification>();
    absl::Notification called_back;
    rpc::ClientContext contexts[3];
    SayResponse responses[3];
    const auto second = [&](const rpc::Status& status) {
      EXPECT_TRUE(status.ok()) << status.error_message();
      EXPECT_TRUE(stub_->Say(&contexts[2], request_, &responses[2]).ok());
      called_back.Notify();
    };
    const auto first = [&](const rpc::Status& status) {
      EXPECT_TRUE(status.ok()) << status.error_message();
      stub_->async()->Say(&contexts[1], &request_, &responses[1], second);
      // The server answers them in the order in which it has them.
      EXPECT_TRUE(Eventually([&] { return server_.opened() == before + 2; }));
      rpc::ClientContext context;
      status_ = stub_->Say(&context, request_, &response_);
      done_->Notify();
    };
    stub_->async()->Say(&contexts[0], &request_, &responses[0], first);
    ASSERT_TRUE(Eventually([&] { return server_.opened() == before + 1; }));
    server_.AnswerOldest();
    ASSERT_TRUE(Eventually([&] { return server_.opened() == before + 3; }));
    server_.AnswerOldest();
    ASSERT_TRUE(Eventually([&] { return server_.opened() == before + 4; }));
    AnswerInParts(called_back);
  }
}

}  // namespace
}  // namespace rdma
