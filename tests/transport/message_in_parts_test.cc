// Goal: a message that is sent while it is written arrives when all of it is
// there, and not before; and where it never will be, both sides hear of it, and
// have their memory back. Method: two sides over the software device, whose
// budgets are too small for what is not given back.
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rdma_transport/connection.h"
#include "tests/transport/connection_side.h"

namespace rdma {
namespace {

using testing::Eventually;
using testing::Side;

constexpr size_t kBytes = 6 << 20;
constexpr uint64_t kBudget = 10 << 20;  // for one of them

class MessageInPartsTest : public ::testing::Test {
 protected:
  MessageInPartsTest() {
    server_.Listen();
    server_.AnswerAtOnce(false);
  }

  void Connect() { connection_ = client_.ConnectTo(server_); }

  Side::Growing Open() {
    if (connection_ == nullptr) Connect();
    return client_.OpenGrowing(connection_, kBytes);
  }

  // A call that waits for an answer.
  void OpenSmall() {
    Connect();
    client_.Open(connection_);
    ASSERT_TRUE(Eventually([&] { return server_.opened() == 1; }));
  }

  // Whether the budget has room for a message; waits for it.
  static bool HasMemoryBack(Side& side) {
    return Eventually(
        [&] { return side.poller().context().memory().Allocate(kBytes).ok(); });
  }

  static void Write(Side::Growing& growing, size_t part) {
    for (size_t bytes = part; bytes < kBytes; bytes += part) {
      growing.message->SetWritten(bytes);
    }
    growing.message->SetWritten(kBytes);
    growing.memory.reset();
  }

  Side server_{{}, nullptr, kBudget};
  Side client_{{}, nullptr, kBudget};
  Connection* connection_ = nullptr;
};

TEST_F(MessageInPartsTest, ARequestArrivesWhenAllOfItIsThere) {
  Side::Growing request = Open();
  request.message->SetWritten(kBytes / 3);
  absl::SleepFor(absl::Milliseconds(20));
  request.message->SetWritten(kBytes - 1);
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(server_.opened(), 0);
  request.message->SetWritten(kBytes);
  request.memory.reset();
  ASSERT_TRUE(Eventually([&] { return server_.opened() == 1; }));
  EXPECT_EQ(server_.message_sizes(), std::vector<size_t>{kBytes});
  server_.Answer();
  EXPECT_TRUE(Eventually([&] { return client_.answered() == 1; }));
  EXPECT_TRUE(HasMemoryBack(client_));
}

TEST_F(MessageInPartsTest, AnAnswerArrivesWhenAllOfItIsThere) {
  OpenSmall();
  Side::Growing answer = server_.AnswerGrowing(kBytes);
  answer.message->SetWritten(kBytes / 2);
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(client_.answered(), 0);
  answer.message->SetWritten(kBytes);
  answer.memory.reset();
  ASSERT_TRUE(Eventually([&] { return client_.answered() == 1; }));
  EXPECT_EQ(client_.message_sizes(), std::vector<size_t>{kBytes});
  EXPECT_TRUE(HasMemoryBack(server_));
}

// A frame for each would take more credits than there are: parts that wait
// become one.
TEST_F(MessageInPartsTest, ManyPartsNeedFewCredits) {
  Side::Growing request = Open();
  Write(request, 64);
  ASSERT_TRUE(Eventually([&] { return server_.opened() == 1; }));
  EXPECT_EQ(server_.message_sizes(), std::vector<size_t>{kBytes});
}

TEST_F(MessageInPartsTest, SeveralAtATimeDoNotMixUp) {
  Connect();
  std::vector<Side::Growing> requests;
  std::vector<size_t> sizes;
  for (size_t i = 1; i <= 6; ++i) {
    sizes.push_back(i * 100'000);
    requests.push_back(client_.OpenGrowing(connection_, sizes.back()));
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].message->SetWritten(sizes[i] / 2);
  }
  for (size_t i = requests.size(); i-- > 0;) {
    requests[i].message->SetWritten(sizes[i]);
    ASSERT_TRUE(Eventually(
        [&] { return server_.message_sizes().size() == requests.size() - i; }));
    EXPECT_EQ(server_.message_sizes().back(), sizes[i]);
  }
}

TEST_F(MessageInPartsTest, WhatIsCompleteBeforeItIsSentGoesWhole) {
  Connect();
  // Before the connection has anything of it.
  std::optional<Side::Growing> request;
  client_.Do([&] {
    request = client_.OpenGrowing(connection_, kBytes);
    request->message->SetWritten(kBytes);
  });
  ASSERT_TRUE(Eventually([&] { return server_.opened() == 1; }));
  EXPECT_EQ(server_.message_sizes(), std::vector<size_t>{kBytes});
}

TEST_F(MessageInPartsTest, ARequestThatFailsEndsItsCall) {
  Side::Growing request = Open();
  request.message->SetWritten(kBytes / 2);
  request.message->Fail(absl::InternalError("changed meanwhile"));
  request.memory.reset();
  ASSERT_TRUE(Eventually([&] { return client_.failed() == 1; }));
  EXPECT_EQ(client_.last_failure(), absl::InternalError("changed meanwhile"));
  EXPECT_TRUE(HasMemoryBack(server_));
  EXPECT_TRUE(HasMemoryBack(client_));
  EXPECT_EQ(server_.opened(), 0);
  client_.Open(connection_);
  EXPECT_TRUE(Eventually([&] { return server_.opened() == 1; }))
      << "the connection goes on";
}

TEST_F(MessageInPartsTest, AnAnswerThatFailsEndsItsCall) {
  OpenSmall();
  Side::Growing answer = server_.AnswerGrowing(kBytes);
  answer.message->SetWritten(kBytes / 2);
  answer.message->Fail(absl::InternalError("changed meanwhile"));
  answer.memory.reset();
  ASSERT_TRUE(Eventually([&] { return client_.failed() == 1; }));
  EXPECT_EQ(client_.last_failure(), absl::InternalError("changed meanwhile"));
  EXPECT_TRUE(HasMemoryBack(server_));
  EXPECT_TRUE(HasMemoryBack(client_));
}

TEST_F(MessageInPartsTest, ACallThatIsCancelledTakesNoMoreOfIt) {
  Side::Growing request = Open();
  request.message->SetWritten(kBytes / 2);
  client_.ResetAll();
  request.message->SetWritten(kBytes);
  request.memory.reset();
  EXPECT_TRUE(Eventually([&] { return client_.failed() == 1; }));
  EXPECT_TRUE(HasMemoryBack(server_));
  EXPECT_TRUE(HasMemoryBack(client_));
  EXPECT_EQ(server_.opened(), 0);
}

TEST_F(MessageInPartsTest, AClientThatCancelsTakesNoMoreOfTheAnswer) {
  OpenSmall();
  Side::Growing answer = server_.AnswerGrowing(kBytes);
  answer.message->SetWritten(kBytes / 2);
  client_.ResetAll();
  EXPECT_TRUE(HasMemoryBack(client_));
  answer.message->SetWritten(kBytes);
  answer.memory.reset();
  EXPECT_TRUE(HasMemoryBack(server_));
}

TEST_F(MessageInPartsTest, AConnectionThatBreaksEndsIt) {
  Side::Growing request = Open();
  request.message->SetWritten(kBytes / 2);
  server_.CloseAll(absl::UnavailableError("by the test"));
  ASSERT_TRUE(Eventually([&] { return client_.failed() == 1; }));
  request.message->SetWritten(kBytes);
  request.message->Fail(absl::InternalError("too late to matter"));
  request.memory.reset();
  EXPECT_TRUE(HasMemoryBack(server_));
  EXPECT_TRUE(HasMemoryBack(client_));
}

TEST_F(MessageInPartsTest, AWriterThatStopsKeepsThePeersMemoryForAWhileOnly) {
  server_.SetOfferGrace(absl::Milliseconds(300));
  const absl::Time start = absl::Now();
  Side::Growing request = Open();
  request.message->SetWritten(kBytes / 2);
  ASSERT_TRUE(Eventually([&] { return client_.failed() == 1; }));
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(300));
  EXPECT_EQ(client_.last_failure().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(HasMemoryBack(server_));
  request.memory.reset();
  EXPECT_TRUE(HasMemoryBack(client_));
}

TEST_F(MessageInPartsTest, AWriterThatIsSlowIsWaitedFor) {
  server_.SetOfferGrace(absl::Milliseconds(500));
  Side::Growing request = Open();
  for (size_t i = 1; i <= 8; ++i) {
    absl::SleepFor(absl::Milliseconds(100));
    request.message->SetWritten(kBytes / 8 * i);
  }
  ASSERT_TRUE(Eventually([&] { return server_.opened() == 1; }));
  EXPECT_EQ(client_.failed(), 0);
}

TEST_F(MessageInPartsTest, WhoClosesWhenEverythingIsSentWaitsForTheRest) {
  OpenSmall();
  Side::Growing answer = server_.AnswerGrowing(kBytes);
  server_.Do([&] { server_.CloseAllWhenFlushed(); });
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(server_.down(), 0);
  Write(answer, kBytes / 7);
  EXPECT_TRUE(Eventually([&] { return client_.answered() == 1; }));
  EXPECT_TRUE(Eventually([&] { return server_.down() == 1; }));
}

}  // namespace
}  // namespace rdma
