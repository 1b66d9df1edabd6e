// Goal: a client takes the answer to a call as it arrives, where its sink says
// so; other calls go on meanwhile, and where the rest does not come, or is not
// wanted, the call ends once, with what says so, and both sides have their
// memory back. Method: a client that says how much of an answer it has, and a
// server that writes it when the test says so.
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rdma_transport/arriving_message.h"
#include "rdma_transport/connection.h"
#include "tests/transport/connection_side.h"

namespace rdma {
namespace {

using testing::Eventually;
using testing::Side;
using testing::TestBytes;

constexpr size_t kBytes = 7 << 20;

class ArrivingAnswerTest : public ::testing::Test {
 protected:
  ArrivingAnswerTest() {
    server_.Listen();
    server_.AnswerAtOnce(false);
    client_.TakeWhatArrives();
    connection_ = client_.ConnectTo(server_);
  }

  // The answer to a call has begun, and `written` of its bytes are there.
  void Answer(size_t written, uint32_t status_code = 0) {
    const int before = server_.opened();
    client_.Open(connection_);
    ASSERT_TRUE(Eventually([&] { return server_.opened() == before + 1; }));
    answer_ = server_.AnswerGrowing(TestBytes(kBytes), status_code);
    answer_.message->SetWritten(written);
  }

  // The client has begun to take it in, and has nothing else to do.
  void AnswerAndHalfArrive() {
    Answer(kBytes / 2);
    ASSERT_TRUE(
        Eventually([&] { return client_.arrived_bytes() == kBytes / 2; }));
    EXPECT_EQ(client_.arrived(), 0);
  }

  void WriteRest() {
    answer_.message->SetWritten(kBytes);
    answer_.memory.reset();
  }

  bool IsAnswered(int count) {
    return Eventually([&] { return client_.answered() == count; });
  }
  bool HasFailed() {
    return Eventually([&] { return client_.failed() == 1; });
  }

  // Neither side holds any of its memory.
  bool HaveAllMemory() {
    answer_.memory.reset();
    return Eventually([&] {
      for (Side* const side : {&client_, &server_}) {
        if (!side->poller().context().memory().Allocate(kBudget).ok()) {
          return false;
        }
      }
      return true;
    });
  }

  static constexpr uint64_t kBudget = 16 << 20;
  Side server_{{}, nullptr, kBudget};
  Side client_{{}, nullptr, kBudget};
  Connection* connection_ = nullptr;
  Side::Growing answer_;
};

TEST_F(ArrivingAnswerTest, WhatIsThereIsTakenBeforeTheRestIsWritten) {
  for (int i = 1; i <= 3; ++i) {
    Answer(kBytes / 2);
    ASSERT_TRUE(
        Eventually([&] { return client_.arrived_bytes() == kBytes / 2; }));
    EXPECT_EQ(client_.answered(), i - 1);
    WriteRest();
    EXPECT_TRUE(IsAnswered(i));
    EXPECT_EQ(client_.arrived(), i);
    EXPECT_TRUE(client_.last_message() == TestBytes(kBytes));
    EXPECT_TRUE(HaveAllMemory());
  }
}

TEST_F(ArrivingAnswerTest, OfWhichNothingIsThereAtFirst) {
  Answer(0);
  answer_.message->SetWritten(kBytes - 1);
  EXPECT_TRUE(
      Eventually([&] { return client_.arrived_bytes() == kBytes - 1; }));
  WriteRest();
  EXPECT_TRUE(IsAnswered(1));
  EXPECT_TRUE(client_.last_message() == TestBytes(kBytes));
}

TEST_F(ArrivingAnswerTest, OtherCallsGoOnMeanwhile) {
  AnswerAndHalfArrive();
  server_.AnswerAtOnce(true);
  for (int i = 1; i <= 100; ++i) {
    client_.Open(connection_, i % 2 == 0 ? 100 : 100'000);
    ASSERT_TRUE(IsAnswered(i)) << i;
  }
  EXPECT_EQ(client_.arrived(), 0);
  WriteRest();
  EXPECT_TRUE(IsAnswered(101));
  EXPECT_EQ(client_.arrived(), 1);
}

TEST_F(ArrivingAnswerTest, WithAnErrorComesWhole) {
  Answer(kBytes, /*status_code=*/13);
  EXPECT_TRUE(IsAnswered(1));
  EXPECT_EQ(client_.arrived(), 0);
  EXPECT_TRUE(client_.last_message() == TestBytes(kBytes));
  EXPECT_TRUE(HaveAllMemory());
}

TEST_F(ArrivingAnswerTest, AParserThatStopsEndsTheCall) {
  client_.TakeWhatArrives(/*at_most=*/1 << 20);
  Answer(kBytes / 2);
  EXPECT_TRUE(HasFailed());
  EXPECT_EQ(client_.last_failure().code(), absl::StatusCode::kCancelled);
  WriteRest();
  EXPECT_TRUE(HaveAllMemory());
  client_.TakeWhatArrives();
  Answer(kBytes);
  EXPECT_TRUE(IsAnswered(1));
  EXPECT_EQ(client_.failed(), 1);
}

TEST_F(ArrivingAnswerTest, AParserThatStopsWhereAllIsWritten) {
  client_.TakeWhatArrives(/*at_most=*/1 << 20);
  Answer(kBytes);
  EXPECT_TRUE(HasFailed());
  EXPECT_TRUE(HaveAllMemory());
}

TEST_F(ArrivingAnswerTest, AWriterThatFailsEndsIt) {
  AnswerAndHalfArrive();
  answer_.message->Fail(absl::DataLossError("by the test"));
  EXPECT_TRUE(HasFailed());
  EXPECT_EQ(client_.last_failure().message(), "by the test");
  EXPECT_EQ(client_.arrived(), 1);
  EXPECT_TRUE(HaveAllMemory());
}

TEST_F(ArrivingAnswerTest, ACancelledCallEndsIt) {
  AnswerAndHalfArrive();
  client_.ResetAll();
  EXPECT_TRUE(HasFailed());
  EXPECT_EQ(client_.arrived(), 1);
  EXPECT_TRUE(HaveAllMemory());
  server_.AnswerAtOnce(true);
  client_.Open(connection_);
  EXPECT_TRUE(IsAnswered(1));
}

TEST_F(ArrivingAnswerTest, AConnectionThatClosesEndsIt) {
  AnswerAndHalfArrive();
  client_.CloseAll(absl::UnavailableError("by the test"));
  EXPECT_TRUE(HasFailed());
  EXPECT_EQ(client_.arrived(), 1);
  EXPECT_TRUE(Eventually([&] { return server_.down() == 1; }));
  EXPECT_TRUE(HaveAllMemory());
}

TEST_F(ArrivingAnswerTest, AServerThatClosesEndsIt) {
  AnswerAndHalfArrive();
  server_.CloseAll(absl::CancelledError("by the test"));
  EXPECT_TRUE(HasFailed());
  EXPECT_EQ(client_.arrived(), 1);
  EXPECT_TRUE(HaveAllMemory());
}

// Its chunk counts as none, whichever it is.
TEST_F(ArrivingAnswerTest, AReadThatFailsEndsIt) {
  constexpr int kChunks = kBytes / ArrivingMessage::kChunkBytes;
  for (const int failing : {1, kChunks / 2, kChunks - 1, kChunks}) {
    Side client({}, nullptr, kBudget);
    client.TakeWhatArrives();
    connection_ = client.ConnectTo(server_);
    client.Do([&] { client.device().FailReads(failing); });
    const int before = server_.opened();
    client.Open(connection_);
    ASSERT_TRUE(Eventually([&] { return server_.opened() == before + 1; }));
    answer_ = server_.AnswerGrowing(TestBytes(kBytes));
    WriteRest();
    EXPECT_TRUE(Eventually([&] { return client.failed() == 1; })) << failing;
    EXPECT_EQ(client.answered(), 0);
    EXPECT_EQ(client.arrived(), 1);
    EXPECT_LE(client.arrived_bytes(),
              static_cast<size_t>(failing - 1) * ArrivingMessage::kChunkBytes);
  }
}

TEST_F(ArrivingAnswerTest, AWriterThatIsSilentIsCutOff) {
  client_.SetOfferGrace(absl::Milliseconds(1));
  connection_ = client_.ConnectTo(server_);
  AnswerAndHalfArrive();
  EXPECT_TRUE(HasFailed());
  EXPECT_EQ(client_.last_failure().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(client_.arrived(), 1);
  EXPECT_TRUE(HaveAllMemory());
}

}  // namespace
}  // namespace rdma
