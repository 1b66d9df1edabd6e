// Goal: a message that is sent while it is written arrives when all of it is
// there, and not before; and where it never will be, both sides hear of it, and
// have their memory back. Method: two sides over the software device, whose
// budgets are too small for what is not given back.
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <utility>
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
using testing::TestBytes;

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

  static bool Received(Side& side, size_t bytes) {
    return Eventually([&] { return side.last_message() == TestBytes(bytes); });
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
  EXPECT_TRUE(Received(server_, kBytes));
  server_.Answer();
  EXPECT_TRUE(Eventually([&] { return client_.answered() == 1; }));
  EXPECT_TRUE(HasMemoryBack(client_));
}

TEST_F(MessageInPartsTest, AnAnswerArrivesWhenAllOfItIsThere) {
  OpenSmall();
  Side::Growing answer = server_.AnswerGrowing(TestBytes(kBytes));
  answer.message->SetWritten(kBytes / 2);
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(client_.answered(), 0);
  answer.message->SetWritten(kBytes);
  answer.memory.reset();
  ASSERT_TRUE(Eventually([&] { return client_.answered() == 1; }));
  EXPECT_TRUE(Received(client_, kBytes));
  EXPECT_TRUE(HasMemoryBack(server_));
}

// A frame for each would take more credits than there are: parts that wait
// become one.
TEST_F(MessageInPartsTest, ManyPartsNeedFewCredits) {
  Side::Growing request = Open();
  Write(request, 64);
  ASSERT_TRUE(Eventually([&] { return server_.opened() == 1; }));
  EXPECT_TRUE(Received(server_, kBytes));
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
    EXPECT_TRUE(Received(server_, sizes[i])) << i;
  }
}

TEST_F(MessageInPartsTest, WhatIsCompleteBeforeItIsSentIsAnOrdinaryOffer) {
  Connect();
  client_.OpenGrowing(connection_, kBytes, kBytes);
  ASSERT_TRUE(Eventually([&] { return server_.opened() == 1; }));
  EXPECT_TRUE(Received(server_, kBytes));
  server_.Answer();
  EXPECT_TRUE(Eventually([&] { return client_.answered() == 1; }));
  EXPECT_TRUE(HasMemoryBack(client_));
}

TEST_F(MessageInPartsTest, OneThatFailsBeforeItIsSentEndsItsCall) {
  Connect();
  rpc::OutgoingFrame frame;
  client_.Do([&] {
    Side::Growing request = client_.Grow(TestBytes(kBytes), frame);
    request.message->Fail(absl::InternalError("changed meanwhile"));
    connection_->OpenCall(*client_.NewCall("/test.Test/Method"), frame);
  });
  ASSERT_TRUE(Eventually([&] { return client_.failed() == 1; }));
  EXPECT_EQ(client_.last_failure(), absl::InternalError("changed meanwhile"));
  EXPECT_TRUE(HasMemoryBack(client_));
}

// The device gives no more windows, of which each part takes one.
TEST_F(MessageInPartsTest, APartThatCannotBeOfferedEndsItsCall) {
  Side::Growing request = Open();
  request.message->SetWritten(kBytes / 3);
  ibv_mw* (*alloc_mw)(ibv_pd*, ibv_mw_type) = nullptr;
  client_.Do([&] {
    ibv_context_ops& ops = client_.device().context()->ops;
    alloc_mw = std::exchange(ops.alloc_mw, [](ibv_pd*, ibv_mw_type) -> ibv_mw* {
      errno = ENOMEM;
      return nullptr;
    });
  });
  request.message->SetWritten(kBytes / 3 * 2);
  ASSERT_TRUE(Eventually([&] { return client_.failed() == 1; }));
  request.message->SetWritten(kBytes);
  request.memory.reset();
  client_.Do([&] { client_.device().context()->ops.alloc_mw = alloc_mw; });
  EXPECT_TRUE(HasMemoryBack(server_));
  EXPECT_TRUE(HasMemoryBack(client_));
  EXPECT_EQ(server_.opened(), 0);
  client_.OpenGrowing(connection_, kBytes, kBytes);
  EXPECT_TRUE(Eventually([&] { return server_.opened() == 1; }))
      << "the connection goes on";
}

// Whoever could read the parts has something else to read then.
TEST_F(MessageInPartsTest, OnlyWhereNoOtherOfferIsUnanswered) {
  const auto may_grow = [this] {
    return GrowMessage(client_.poller(), Sender::kClient, nullptr, kBytes) !=
           nullptr;
  };
  EXPECT_TRUE(may_grow());
  Side::Growing request = Open();
  EXPECT_FALSE(may_grow());
  Write(request, kBytes / 2);
  server_.AnswerAtOnce(true);
  EXPECT_TRUE(Eventually(may_grow));
  EXPECT_EQ(server_.opened(), 1);
  EXPECT_TRUE(HasMemoryBack(client_));

  request = Open();
  EXPECT_FALSE(may_grow());
  client_.CloseAll(absl::UnavailableError("by the test"));
  EXPECT_TRUE(Eventually(may_grow));
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
  Side::Growing answer = server_.AnswerGrowing(TestBytes(kBytes));
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
  Side::Growing answer = server_.AnswerGrowing(TestBytes(kBytes));
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

// A grace that short is for answers that nobody fetches.
TEST_F(MessageInPartsTest, AWriterThatStopsKeepsThePeersMemoryForAWhileOnly) {
  server_.SetOfferGrace(absl::ZeroDuration());
  const absl::Time start = absl::Now();
  Side::Growing request = Open();
  request.message->SetWritten(kBytes / 2);
  ASSERT_TRUE(Eventually([&] { return client_.failed() == 1; }));
  EXPECT_GE(absl::Now() - start, absl::Seconds(2));
  EXPECT_EQ(client_.last_failure().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(HasMemoryBack(server_));
  request.memory.reset();
  EXPECT_TRUE(HasMemoryBack(client_));
}

TEST_F(MessageInPartsTest, WhoClosesWhenEverythingIsSentWaitsForTheRest) {
  OpenSmall();
  Side::Growing answer = server_.AnswerGrowing(TestBytes(kBytes));
  server_.Do([&] { server_.CloseAllWhenFlushed(); });
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(server_.down(), 0);
  Write(answer, kBytes / 7);
  EXPECT_TRUE(Eventually([&] { return client_.answered() == 1; }));
  EXPECT_TRUE(Eventually([&] { return server_.down() == 1; }));
}

}  // namespace
}  // namespace rdma
