// Goal: a message is parsed while it arrives, in a memory that is much smaller
// than it; other calls go on meanwhile, and where the rest does not come, or is
// not wanted, both sides hear of it and have their memory back. Method: a
// server that says how much of a message it has, and a client that writes its
// messages when the test says so; on a device that READs to registered memory
// only, and on one that READs anywhere.
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

class ArrivingMessageTest : public ::testing::TestWithParam<bool> {
 protected:
  ArrivingMessageTest() { Prepare(server_); }

  bool in_place() const { return GetParam(); }
  void Prepare(Side& server) const {
    if (in_place()) server.device().ReadAnywhere();
    server.Listen();
    server.TakeWhatArrives();
  }
  // The shortest message that is taken as it arrives.
  size_t least() const { return in_place() ? 512 << 10 : 4 << 20; }

  void Connect() { connection_ = client_.ConnectTo(server_); }

  // `written` of its bytes are there.
  Side::Growing Open(size_t written = 0, size_t bytes = kBytes) {
    if (connection_ == nullptr) Connect();
    return client_.OpenGrowing(connection_, bytes, written);
  }

  // The server has begun to take it in, and has nothing else to do.
  void OpenAndHalfArrive() {
    request_ = Open(kBytes / 2);
    // In place there may be more that has not been said to be there.
    const size_t unsaid = in_place() ? 1 << 20 : 0;
    ASSERT_TRUE(Eventually(
        [&] { return server_.arrived_bytes() >= kBytes / 2 - unsaid; }));
    EXPECT_LE(server_.arrived_bytes(), kBytes / 2);
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

TEST_P(ArrivingMessageTest, OneThatIsOfferedAsAWhole) {
  Open(kBytes).memory.reset();
  EXPECT_TRUE(Received(kBytes));
  EXPECT_EQ(server_.arrived(), 1);
  EXPECT_TRUE(IsAnswered(1));
  EXPECT_TRUE(HasAllMemory());
}

TEST_P(ArrivingMessageTest, WhatIsThereIsTakenBeforeTheRestIsWritten) {
  OpenAndHalfArrive();
  request_.message->SetWritten(kBytes - 1);
  EXPECT_TRUE(
      Eventually([&] { return server_.arrived_bytes() == kBytes - 1; }));
  EXPECT_EQ(server_.arrived(), 0);
  WriteRest();
  EXPECT_TRUE(Received(kBytes));
  EXPECT_TRUE(IsAnswered(1));
}

TEST_P(ArrivingMessageTest, ItTakesAFewChunksOfMemory) {
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

TEST_P(ArrivingMessageTest, OtherCallsGoOnMeanwhile) {
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
TEST_P(ArrivingMessageTest, ManyOtherCallsDoNotHoldItUp) {
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

TEST_P(ArrivingMessageTest, OneAtATime) {
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
    Open(least(), least()).memory.reset();
    EXPECT_TRUE(IsAnswered(++calls));
  }
  EXPECT_GT(calls, 5);
}

TEST_P(ArrivingMessageTest, SmallerOnesComeWhole) {
  Open(least() - 1, least() - 1).memory.reset();
  EXPECT_TRUE(IsAnswered(1));
  EXPECT_EQ(server_.arrived(), 0);
  Open(least(), least()).memory.reset();
  EXPECT_TRUE(IsAnswered(2));
  EXPECT_EQ(server_.arrived(), 1);
}

TEST_P(ArrivingMessageTest, StringsBeyondWhatProtobufReserves) {
  Side server;
  Prepare(server);
  Connection* const connection = client_.ConnectTo(server);
  client_.OpenGrowing(connection, 50'000'000, 50'000'000).memory.reset();
  EXPECT_TRUE(IsAnswered(1));
  EXPECT_EQ(server.arrived(), 1);
  client_.OpenGrowing(connection, 50'000'001, 50'000'001).memory.reset();
  EXPECT_TRUE(IsAnswered(2));
  EXPECT_EQ(server.arrived(), in_place() ? 2 : 1);
}

TEST_P(ArrivingMessageTest, AParserThatStopsHasItsAnswerSent) {
  server_.TakeWhatArrives(/*at_most=*/1 << 20);
  for (int i = 1; i <= 5; ++i) {
    Open(kBytes).memory.reset();
    ASSERT_TRUE(IsAnswered(i)) << i;
    EXPECT_EQ(server_.arrived(), i);
  }
  EXPECT_TRUE(HasAllMemory());
}

TEST_P(ArrivingMessageTest, AParserThatStopsBeforeTheRestIsWritten) {
  server_.TakeWhatArrives(/*at_most=*/1 << 20);
  request_ = Open(kBytes / 2);
  EXPECT_TRUE(IsAnswered(1));
  WriteRest();
  EXPECT_TRUE(HasAllMemory());
  client_.Open(connection_);
  EXPECT_TRUE(IsAnswered(2));
}

TEST_P(ArrivingMessageTest, AParserThatStopsAndDoesNotAnswer) {
  server_.AnswerAtOnce(false);
  server_.TakeWhatArrives(/*at_most=*/1 << 20);
  request_ = Open(kBytes / 2);
  ASSERT_TRUE(Eventually([&] { return server_.arrived() == 1; }));
  EXPECT_TRUE(HasAllMemory());
  WriteRest();
  server_.Answer();
  EXPECT_TRUE(IsAnswered(1));
}

TEST_P(ArrivingMessageTest, AWriterThatFailsEndsIt) {
  OpenAndHalfArrive();
  request_.message->Fail(absl::InternalError("by the test"));
  request_.memory.reset();
  EXPECT_TRUE(Eventually([&] { return server_.arrived() == 1; }));
  EXPECT_TRUE(Eventually([&] { return client_.failed() == 1; }));
  EXPECT_TRUE(Eventually([&] { return server_.failed() == 1; }));
  EXPECT_EQ(client_.last_failure().message(), "by the test");
  EXPECT_TRUE(HasAllMemory());
}

TEST_P(ArrivingMessageTest, ACancelledCallEndsIt) {
  OpenAndHalfArrive();
  client_.ResetAll();
  EXPECT_TRUE(Eventually([&] { return server_.arrived() == 1; }));
  EXPECT_TRUE(Eventually([&] { return server_.failed() == 1; }));
  EXPECT_TRUE(HasAllMemory());
  client_.Open(connection_);
  EXPECT_TRUE(IsAnswered(1));
}

TEST_P(ArrivingMessageTest, AServerThatEndsTheCallEndsIt) {
  OpenAndHalfArrive();
  server_.ResetAll();
  EXPECT_TRUE(Eventually([&] { return server_.arrived() == 1; }));
  EXPECT_TRUE(Eventually([&] { return client_.failed() == 1; }));
  EXPECT_TRUE(HasAllMemory());
}

TEST_P(ArrivingMessageTest, AConnectionThatClosesEndsIt) {
  OpenAndHalfArrive();
  client_.CloseAll(absl::CancelledError("by the test"));
  EXPECT_TRUE(Eventually([&] { return server_.arrived() == 1; }));
  EXPECT_TRUE(Eventually([&] { return server_.down() == 1; }));
  EXPECT_TRUE(HasAllMemory());
}

// Its chunk counts as none, whichever it is.
TEST_P(ArrivingMessageTest, AReadThatFailsEndsIt) {
  constexpr int kChunks = kBytes / ArrivingMessage::kChunkBytes;
  const std::vector<int> which =
      in_place() ? std::vector<int>{1, 2, 3, 6, 9}
                 : std::vector<int>{1, kChunks / 2, kChunks - 1, kChunks};
  for (const int failing : which) {
    Side server({}, nullptr, kServerBudget);
    Prepare(server);
    Side client;
    Connection* const connection = client.ConnectTo(server);
    server.Do([&] { server.device().FailReads(failing); });
    client.OpenGrowing(connection, kBytes, kBytes).memory.reset();
    EXPECT_TRUE(Eventually([&] { return client.failed() == 1; })) << failing;
    EXPECT_TRUE(Eventually([&] { return server.down() == 1; }));
    // With the first one it does not even begin.
    EXPECT_TRUE(
        Eventually([&] { return server.arrived() == (failing > 1 ? 1 : 0); }));
    const size_t longest = in_place() ? 1 << 20 : ArrivingMessage::kChunkBytes;
    EXPECT_LE(server.arrived_bytes(),
              static_cast<size_t>(failing - 1) * longest);
  }
}

// Nothing tells any more how what was posted ended.
TEST_P(ArrivingMessageTest, ADeviceThatFailsEndsIt) {
  Side server({}, nullptr, kServerBudget);
  Prepare(server);
  Side client;
  Side::Growing request =
      client.OpenGrowing(client.ConnectTo(server), kBytes, kBytes / 2);
  ASSERT_TRUE(Eventually([&] { return server.arrived_bytes() > 0; }));
  server.Do([&] { server.device().FailPolls(); });
  EXPECT_TRUE(Eventually([&] { return server.arrived() == 1; }));
  EXPECT_TRUE(Eventually([&] { return server.down() == 1; }));
}

TEST_P(ArrivingMessageTest, AReadThatIsRefusedEndsIt) {
  for (const int refused : {1, 2, 3, 5, 7}) {
    Side server({}, nullptr, kServerBudget);
    Prepare(server);
    Side client;
    Connection* const connection = client.ConnectTo(server);
    server.Do([&] { server.device().RefuseReads(refused); });
    client.OpenGrowing(connection, kBytes, kBytes).memory.reset();
    EXPECT_TRUE(Eventually([&] { return client.failed() == 1; })) << refused;
    EXPECT_TRUE(Eventually([&] { return server.down() == 1; }));
    EXPECT_TRUE(Eventually([&] { return server.arrived() <= 1; }));
  }
}

TEST_P(ArrivingMessageTest, ACallThatIsCutOffHasNotRun) {
  OpenAndHalfArrive();
  server_.ResetAll();
  EXPECT_TRUE(Eventually([&] { return client_.failed() == 1; }));
  EXPECT_EQ(client_.not_run(), 1);
}

TEST_P(ArrivingMessageTest, FramesOfOthersKeepTheirOrder) {
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
TEST_P(ArrivingMessageTest, WhatDoesNotOpenItsCallComesWhole) {
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

TEST_P(ArrivingMessageTest, AServerThatClosesEndsIt) {
  OpenAndHalfArrive();
  server_.CloseAll(absl::CancelledError("by the test"));
  EXPECT_TRUE(Eventually([&] { return server_.arrived() == 1; }));
  EXPECT_TRUE(Eventually([&] { return client_.failed() == 1; }));
  EXPECT_TRUE(HasAllMemory());
}

TEST_P(ArrivingMessageTest, AWriterThatIsSilentIsCutOff) {
  server_.SetOfferGrace(absl::Milliseconds(1));
  OpenAndHalfArrive();
  EXPECT_TRUE(Eventually([&] { return server_.arrived() == 1; }));
  EXPECT_TRUE(Eventually([&] { return client_.failed() == 1; }));
  EXPECT_TRUE(HasAllMemory());
}

// The parser waits asleep: so long a silence takes it no CPU.
TEST_P(ArrivingMessageTest, WaitingTakesNoCpu) {
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

// The rest is in the ring by then, and nobody reads on.
TEST_P(ArrivingMessageTest, WhatHasComeIsReadIntoPlaceToo) {
  if (!in_place()) GTEST_SKIP() << "it cannot";
  constexpr size_t kFewBytes = 600'000;
  server_.ReadInPlaceFrom(100'000);
  for (int i = 1; i <= 5; ++i) {
    Open(kFewBytes, kFewBytes).memory.reset();
    EXPECT_TRUE(IsAnswered(i));
    EXPECT_TRUE(server_.last_message() == TestBytes(kFewBytes));
  }
  EXPECT_EQ(server_.arrived(), 5);
}

INSTANTIATE_TEST_SUITE_P(Devices, ArrivingMessageTest, ::testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "Anywhere" : "Registered";
                         });

// ---- Where the CPU that parses reads, too, one comes after the other.

class TurnsTest : public ArrivingMessageTest {};

TEST_P(TurnsTest, AllThatComeAtOnceArriveInTurn) {
  Connect();
  Connection* const other = client_.ConnectTo(server_);
  for (int i = 0; i < 10; ++i) {
    client_.OpenGrowing(i % 2 == 0 ? connection_ : other, 2 << 20, 2 << 20)
        .memory.reset();
  }
  EXPECT_TRUE(IsAnswered(10));
  EXPECT_EQ(server_.arrived(), 10);
  EXPECT_TRUE(HasAllMemory());
}

TEST_P(TurnsTest, OneThatWaitsIsNotHeldUpForLong) {
  OpenAndHalfArrive();
  Connection* const other = client_.ConnectTo(server_);
  for (Connection* const each : {connection_, other, connection_, other}) {
    client_.OpenGrowing(each, kBytes / 7, kBytes / 7).memory.reset();
  }
  EXPECT_TRUE(IsAnswered(4));
  EXPECT_EQ(server_.arrived(), 0);
  WriteRest();
  EXPECT_TRUE(IsAnswered(5));
  EXPECT_EQ(server_.arrived(), 1);
}

TEST_P(TurnsTest, OneThatIsCancelledGivesItsTurnUp) {
  OpenAndHalfArrive();
  Connection* const other = client_.ConnectTo(server_);
  Side::Growing cancelled = client_.OpenGrowing(other, kBytes, kBytes);
  cancelled.memory.reset();
  client_.Reset(cancelled.call);
  // On a slow machine it has come as a whole before.
  const int answered = client_.answered();
  client_.OpenGrowing(connection_, kBytes, kBytes).memory.reset();
  WriteRest();
  EXPECT_TRUE(IsAnswered(answered + 2));
  EXPECT_TRUE(HasAllMemory());
}

TEST_P(TurnsTest, AConnectionThatClosesGivesItsTurnsUp) {
  OpenAndHalfArrive();
  Connection* const other = client_.ConnectTo(server_);
  for (int i = 0; i < 3; ++i) {
    client_.OpenGrowing(other, kBytes, kBytes).memory.reset();
  }
  client_.Do([&] { other->Close(absl::UnavailableError("by the test")); });
  EXPECT_TRUE(Eventually([&] { return server_.down() == 1; }));
  // Some may have come as a whole before.
  const int answered = client_.answered();
  WriteRest();
  EXPECT_TRUE(IsAnswered(answered + 1));
  client_.OpenGrowing(connection_, kBytes, kBytes).memory.reset();
  EXPECT_TRUE(IsAnswered(answered + 2));
  EXPECT_TRUE(HasAllMemory());
}

INSTANTIATE_TEST_SUITE_P(Devices, TurnsTest, ::testing::Values(true),
                         [](const auto&) { return "Anywhere"; });

}  // namespace
}  // namespace rdma
