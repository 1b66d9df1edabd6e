// Goal: a message is parsed while it arrives, in a memory that is much smaller
// than it; other calls go on meanwhile, and where the rest does not come, or is
// not wanted, both sides hear of it and have their memory back. Method: a
// server that says how much of a message it has, and a client that writes its
// messages when the test says so.
#include "rdma_transport/arriving_message.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
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

constexpr size_t kBytes = 7 << 20;
constexpr size_t kLeast = 4 << 20;

class ArrivingMessageTest : public ::testing::Test {
 protected:
  ArrivingMessageTest() {
    server_.Listen();
    server_.TakeWhatArrives();
  }

  void Connect() { connection_ = client_.ConnectTo(server_); }

  // `written` of its bytes are there.
  Side::Growing Open(size_t written = 0, size_t bytes = kBytes) {
    if (connection_ == nullptr) Connect();
    return client_.OpenGrowing(connection_, bytes, written);
  }

  // The server has begun to take it in, and has nothing else to do.
  void OpenAndHalfArrive() {
    request_ = Open(kBytes / 2);
    ASSERT_TRUE(
        Eventually([&] { return server_.arrived_bytes() == kBytes / 2; }));
    EXPECT_EQ(server_.arrived(), 0);
  }

  void WriteRest() {
    request_.message->SetWritten(kBytes);
    request_.memory.reset();
  }

  bool IsAnswered(int count) {
    return Eventually([&] { return client_.answered() == count; });
  }

  bool Received(size_t bytes) {
    return Eventually(
        [&] { return server_.last_message() == TestBytes(bytes); });
  }

  // What the server has of its memory in use.
  bool HasAllMemory() {
    return Eventually([&] {
      return server_.poller().context().memory().Allocate(kServerBudget).ok();
    });
  }

  static constexpr uint64_t kServerBudget = 16 << 20;
  Side server_{{}, nullptr, kServerBudget};
  Side client_;
  Connection* connection_ = nullptr;
  Side::Growing request_;
};

TEST_F(ArrivingMessageTest, OneThatIsOfferedAsAWhole) {
  Open(kBytes).memory.reset();
  EXPECT_TRUE(Received(kBytes));
  EXPECT_EQ(server_.arrived(), 1);
  EXPECT_TRUE(IsAnswered(1));
  EXPECT_TRUE(HasAllMemory());
}

TEST_F(ArrivingMessageTest, WhatIsThereIsTakenBeforeTheRestIsWritten) {
  OpenAndHalfArrive();
  request_.message->SetWritten(kBytes - 1);
  EXPECT_TRUE(
      Eventually([&] { return server_.arrived_bytes() == kBytes - 1; }));
  EXPECT_EQ(server_.arrived(), 0);
  WriteRest();
  EXPECT_TRUE(Received(kBytes));
  EXPECT_TRUE(IsAnswered(1));
}

TEST_F(ArrivingMessageTest, ItTakesAFewChunksOfMemory) {
  Connect();
  // All but a ring and a half.
  rpc::Buffer used;
  ASSERT_TRUE(Eventually([&] {
    auto memory = server_.poller().context().memory().Allocate(
        kServerBudget - ArrivingMessage::kBytes * 3 / 2);
    if (memory.ok()) used = *std::move(memory);
    return memory.ok();
  }));
  Open(kBytes).memory.reset();
  EXPECT_TRUE(Received(kBytes));
  EXPECT_EQ(server_.arrived(), 1);
  EXPECT_TRUE(IsAnswered(1));
}

TEST_F(ArrivingMessageTest, OtherCallsGoOnMeanwhile) {
  OpenAndHalfArrive();
  for (int i = 1; i <= 100; ++i) {
    client_.Open(connection_, i % 2 == 0 ? 100 : 100'000);
    ASSERT_TRUE(IsAnswered(i)) << i;
  }
  EXPECT_EQ(server_.arrived(), 0);
  WriteRest();
  EXPECT_TRUE(IsAnswered(101));
}

// And while they do, so does the message, whoever drives.
TEST_F(ArrivingMessageTest, ManyOtherCallsDoNotHoldItUp) {
  OpenAndHalfArrive();
  constexpr int kCalls = 300;
  for (int i = 0; i < kCalls; ++i) {
    client_.Open(connection_, 1000);
    request_.message->SetWritten(kBytes / 2 + kBytes / 2 * i / kCalls);
  }
  WriteRest();
  EXPECT_TRUE(IsAnswered(kCalls + 1));
  EXPECT_EQ(server_.arrived(), 1);
}

TEST_F(ArrivingMessageTest, OneAtATime) {
  OpenAndHalfArrive();
  Side::Growing other = Open(kBytes / 2);
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(server_.opened(), 1) << "the other comes as a whole";
  other.message->SetWritten(kBytes);
  other.memory.reset();
  EXPECT_TRUE(IsAnswered(1));
  EXPECT_EQ(server_.arrived(), 0);
  WriteRest();
  EXPECT_TRUE(IsAnswered(2));
  EXPECT_EQ(server_.arrived(), 1);
  EXPECT_TRUE(HasAllMemory());
  // Where there were several, there will be more; not for ever.
  int calls = 2;
  while (server_.arrived() == 1) {
    ASSERT_LT(calls, 50);
    Open(kLeast, kLeast).memory.reset();
    EXPECT_TRUE(IsAnswered(++calls));
  }
  EXPECT_GT(calls, 5);
}

TEST_F(ArrivingMessageTest, SmallerOnesComeWhole) {
  Open(kLeast - 1, kLeast - 1).memory.reset();
  EXPECT_TRUE(IsAnswered(1));
  EXPECT_EQ(server_.arrived(), 0);
  Open(kLeast, kLeast).memory.reset();
  EXPECT_TRUE(IsAnswered(2));
  EXPECT_EQ(server_.arrived(), 1);
}

TEST_F(ArrivingMessageTest, StringsBeyondWhatProtobufReservesComeWhole) {
  Side server;
  server.Listen();
  server.TakeWhatArrives();
  Connection* const connection = client_.ConnectTo(server);
  client_.OpenGrowing(connection, 50'000'000, 50'000'000).memory.reset();
  EXPECT_TRUE(IsAnswered(1));
  EXPECT_EQ(server.arrived(), 1);
  client_.OpenGrowing(connection, 50'000'001, 50'000'001).memory.reset();
  EXPECT_TRUE(IsAnswered(2));
  EXPECT_EQ(server.arrived(), 1);
}

TEST_F(ArrivingMessageTest, AParserThatStopsHasItsAnswerSent) {
  server_.TakeWhatArrives(/*at_most=*/1 << 20);
  for (int i = 1; i <= 5; ++i) {
    Open(kBytes).memory.reset();
    ASSERT_TRUE(IsAnswered(i)) << i;
    EXPECT_EQ(server_.arrived(), i);
  }
  EXPECT_TRUE(HasAllMemory());
}

TEST_F(ArrivingMessageTest, AParserThatStopsBeforeTheRestIsWritten) {
  server_.TakeWhatArrives(/*at_most=*/1 << 20);
  request_ = Open(kBytes / 2);
  EXPECT_TRUE(IsAnswered(1));
  WriteRest();
  EXPECT_TRUE(HasAllMemory());
  client_.Open(connection_);
  EXPECT_TRUE(IsAnswered(2));
}

TEST_F(ArrivingMessageTest, AParserThatStopsAndDoesNotAnswer) {
  server_.AnswerAtOnce(false);
  server_.TakeWhatArrives(/*at_most=*/1 << 20);
  request_ = Open(kBytes / 2);
  ASSERT_TRUE(Eventually([&] { return server_.arrived() == 1; }));
  EXPECT_TRUE(HasAllMemory());
  WriteRest();
  server_.Answer();
  EXPECT_TRUE(IsAnswered(1));
}

TEST_F(ArrivingMessageTest, AWriterThatFailsEndsIt) {
  OpenAndHalfArrive();
  request_.message->Fail(absl::InternalError("by the test"));
  request_.memory.reset();
  EXPECT_TRUE(Eventually([&] { return server_.arrived() == 1; }));
  EXPECT_TRUE(Eventually([&] { return client_.failed() == 1; }));
  EXPECT_TRUE(Eventually([&] { return server_.failed() == 1; }));
  EXPECT_EQ(client_.last_failure().message(), "by the test");
  EXPECT_TRUE(HasAllMemory());
}

TEST_F(ArrivingMessageTest, ACancelledCallEndsIt) {
  OpenAndHalfArrive();
  client_.ResetAll();
  EXPECT_TRUE(Eventually([&] { return server_.arrived() == 1; }));
  EXPECT_TRUE(Eventually([&] { return server_.failed() == 1; }));
  EXPECT_TRUE(HasAllMemory());
  client_.Open(connection_);
  EXPECT_TRUE(IsAnswered(1));
}

TEST_F(ArrivingMessageTest, AServerThatEndsTheCallEndsIt) {
  OpenAndHalfArrive();
  server_.ResetAll();
  EXPECT_TRUE(Eventually([&] { return server_.arrived() == 1; }));
  EXPECT_TRUE(Eventually([&] { return client_.failed() == 1; }));
  EXPECT_TRUE(HasAllMemory());
}

TEST_F(ArrivingMessageTest, AConnectionThatClosesEndsIt) {
  OpenAndHalfArrive();
  client_.CloseAll(absl::CancelledError("by the test"));
  EXPECT_TRUE(Eventually([&] { return server_.arrived() == 1; }));
  EXPECT_TRUE(Eventually([&] { return server_.down() == 1; }));
  EXPECT_TRUE(HasAllMemory());
}

// Its chunk counts as none, whichever it is.
TEST_F(ArrivingMessageTest, AReadThatFailsEndsIt) {
  constexpr int kChunks = kBytes / ArrivingMessage::kChunkBytes;
  for (const int failing : {1, kChunks / 2, kChunks - 1, kChunks}) {
    Side server({}, nullptr, kServerBudget);
    server.Listen();
    server.TakeWhatArrives();
    Side client;
    Connection* const connection = client.ConnectTo(server);
    server.Do([&] { server.device().FailReads(failing); });
    client.OpenGrowing(connection, kBytes, kBytes).memory.reset();
    EXPECT_TRUE(Eventually([&] { return client.failed() == 1; })) << failing;
    EXPECT_TRUE(Eventually([&] { return server.down() == 1; }));
    // With the first one it does not even begin.
    EXPECT_TRUE(
        Eventually([&] { return server.arrived() == (failing > 1 ? 1 : 0); }));
    EXPECT_LE(server.arrived_bytes(),
              static_cast<size_t>(failing - 1) * ArrivingMessage::kChunkBytes);
  }
}

TEST_F(ArrivingMessageTest, ACallThatIsCutOffHasNotRun) {
  OpenAndHalfArrive();
  server_.ResetAll();
  EXPECT_TRUE(Eventually([&] { return client_.failed() == 1; }));
  EXPECT_EQ(client_.not_run(), 1);
}

TEST_F(ArrivingMessageTest, FramesOfOthersKeepTheirOrder) {
  OpenAndHalfArrive();
  server_.AnswerAtOnce(false);
  server_.TakeFrames(true);
  const rpc::CallHandle stream =
      client_.Open(connection_, 1, "/test.Test/Stream", 1, /*end=*/false);
  for (size_t bytes = 2; bytes <= 20; ++bytes) {
    client_.SendMore(stream, bytes % 5 == 0 ? bytes * 10'000 : bytes,
                     /*end=*/bytes == 20);
  }
  EXPECT_TRUE(Eventually([&] { return server_.message_sizes().size() == 20; }));
  const std::vector<size_t> sizes = server_.message_sizes();
  for (size_t i = 0; i < sizes.size(); ++i) {
    const size_t bytes = i + 1;
    EXPECT_EQ(sizes[i], bytes % 5 == 0 ? bytes * 10'000 : bytes);
  }
  WriteRest();
  EXPECT_TRUE(Received(kBytes));
}

// Who opens a call for a message of any size sends it later, if need be.
TEST_F(ArrivingMessageTest, WhatDoesNotOpenItsCallComesWhole) {
  Connect();
  server_.AnswerAtOnce(false);
  const rpc::CallHandle call =
      client_.Open(connection_, 1, "/test.Test/Method", 0, /*end=*/false);
  client_.SendMore(call, kBytes, /*end=*/true);
  EXPECT_TRUE(Eventually([&] { return server_.message_sizes().size() == 2; }));
  EXPECT_EQ(server_.message_sizes().back(), kBytes);
  EXPECT_EQ(server_.arrived(), 0);
  server_.Answer();
  EXPECT_TRUE(IsAnswered(1));
}

TEST_F(ArrivingMessageTest, AServerThatClosesEndsIt) {
  OpenAndHalfArrive();
  server_.CloseAll(absl::CancelledError("by the test"));
  EXPECT_TRUE(Eventually([&] { return server_.arrived() == 1; }));
  EXPECT_TRUE(Eventually([&] { return client_.failed() == 1; }));
  EXPECT_TRUE(HasAllMemory());
}

TEST_F(ArrivingMessageTest, AWriterThatIsSilentIsCutOff) {
  server_.SetOfferGrace(absl::Milliseconds(1));
  OpenAndHalfArrive();
  EXPECT_TRUE(Eventually([&] { return server_.arrived() == 1; }));
  EXPECT_TRUE(Eventually([&] { return client_.failed() == 1; }));
  EXPECT_TRUE(HasAllMemory());
}

// The parser waits asleep: so long a silence takes it no CPU.
TEST_F(ArrivingMessageTest, WaitingTakesNoCpu) {
  OpenAndHalfArrive();
  const auto cpu = [] {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return absl::DurationFromTimespec(time);
  };
  const absl::Duration before = cpu();
  absl::SleepFor(absl::Milliseconds(500));
  EXPECT_LT(cpu() - before, absl::Milliseconds(100));
  WriteRest();
  EXPECT_TRUE(IsAnswered(1));
}

}  // namespace
}  // namespace rdma
