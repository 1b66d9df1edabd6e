// Goal: streams of all kinds over the device under test: order, half-close,
// status and metadata, cancelling, deadlines, back-pressure, large messages.
// Method: a server in this process whose handlers do as they are told, once by
// each of the server's APIs, and blocking clients.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "benchmarks/test_pattern.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/e2e/device_under_test.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/resources.h"
#include "tests/e2e/streams.rpc.pb.h"
#include "tests/e2e/streams_services.h"

namespace e2e {
namespace {

using benchmarks::TestPattern;

class StreamsTest : public testing::TestWithParam<Api> {
 protected:
  StreamsTest() { Start(); }
  ~StreamsTest() override {
    if (!progress_.go_on.HasBeenNotified()) progress_.go_on.Notify();
  }

  void Start(const Arguments& arguments = {}) {
    server_.reset();
    streams_ = ServeStreams(GetParam(), &progress_);
    server_.emplace(arguments, ServerUri(), &streams_->service(),
                    streams_->queue());
    ASSERT_TRUE(server_->ok()) << server_->status();
    streams_->Begin();
    channel_ = Client(server_->address()).shared_channel();
    stub_ = Streams::NewStub(channel_);
  }

  // A stream of its own that works: the connection lives.
  void ExpectChatWorks() {
    TimedContext context;
    const auto stream = stub_->Chat(&context);
    Item item;
    item.set_number(42);
    EXPECT_TRUE(stream->Write(item));
    Item answer;
    EXPECT_TRUE(stream->Read(&answer));
    EXPECT_EQ(answer.number(), 42);
    EXPECT_TRUE(stream->WritesDone());
    EXPECT_FALSE(stream->Read(&answer));
    EXPECT_OK(stream->Finish());
  }

  StreamsProgress progress_;
  std::unique_ptr<ServedStreams> streams_;
  std::optional<Server> server_;
  std::shared_ptr<rpc::Channel> channel_;
  std::unique_ptr<Streams::Stub> stub_;
};

INSTANTIATE_TEST_SUITE_P(Apis, StreamsTest,
                         testing::Values(Api::kBlocking, Api::kCallback,
                                         Api::kQueue, Api::kCoroutine),
                         [](const auto& info) { return NameOf(info.param); });

// ---- Each kind.

TEST_P(StreamsTest, AServersMessagesComeInOrderAndThenTheStatus) {
  for (const int64_t bytes : {0, 100, 5'000, 200'000}) {
    TimedContext context;
    Order order;
    order.set_count(300);
    order.set_bytes(bytes);
    const auto reader = stub_->Count(&context, order);
    Item item;
    int64_t count = 0;
    while (reader->Read(&item)) {
      ASSERT_EQ(item.number(), count);
      ASSERT_EQ(item.data(), TestPattern(static_cast<size_t>(bytes),
                                         static_cast<uint64_t>(count)));
      ++count;
    }
    EXPECT_EQ(count, 300);
    EXPECT_OK(reader->Finish());
    EXPECT_EQ(context.GetServerInitialMetadata().count("kind"), 1u);
    EXPECT_EQ(context.GetServerTrailingMetadata().count("count"), 1u);
  }
}

TEST_P(StreamsTest, AClientsMessagesAreAllThereWhenItHasDone) {
  for (const size_t bytes : {size_t{0}, size_t{100}, size_t{200'000}}) {
    TimedContext context;
    Total total;
    const auto writer = stub_->Sum(&context, &total);
    Item item;
    for (int64_t i = 1; i <= 200; ++i) {
      item.set_number(i);
      item.set_data(TestPattern(bytes, 1));
      ASSERT_TRUE(writer->Write(item));
    }
    EXPECT_TRUE(writer->WritesDone());
    EXPECT_FALSE(writer->Write(item)) << "after WritesDone";
    EXPECT_OK(writer->Finish());
    EXPECT_EQ(total.numbers(), 200 * 201 / 2);
    EXPECT_EQ(total.bytes(), static_cast<int64_t>(200 * bytes));
    EXPECT_EQ(context.GetServerTrailingMetadata().count("sum"), 1u);
  }
}

TEST_P(StreamsTest, BothSidesTakeTurns) {
  TimedContext context;
  const auto stream = stub_->Chat(&context);
  Item item;
  Item answer;
  for (int64_t i = 0; i < 500; ++i) {
    item.set_number(i);
    ASSERT_TRUE(stream->Write(item));
    ASSERT_TRUE(stream->Read(&answer));
    ASSERT_EQ(answer.number(), i);
  }
  EXPECT_TRUE(stream->WritesDone());
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_OK(stream->Finish());
}

TEST_P(StreamsTest, OneThreadReadsWhileAnotherWrites) {
  constexpr int64_t kMessages = 2'000;
  TimedContext context;
  const auto stream = stub_->Chat(&context);
  std::thread writer([&] {
    Item item;
    item.set_data(TestPattern(3'000, 1));
    for (int64_t i = 0; i < kMessages; ++i) {
      item.set_number(i);
      if (!stream->Write(item)) ADD_FAILURE() << "message " << i;
    }
    stream->WritesDone();
  });
  Item answer;
  int64_t count = 0;
  for (; stream->Read(&answer); ++count) ASSERT_EQ(answer.number(), count);
  writer.join();
  EXPECT_EQ(count, kMessages);
  EXPECT_OK(stream->Finish());
}

TEST_P(StreamsTest, EmptyStreamsEndInOrder) {
  Item item;
  {
    TimedContext context;
    const auto reader = stub_->Count(&context, Order());
    EXPECT_FALSE(reader->Read(&item));
    EXPECT_OK(reader->Finish());
  }
  {
    TimedContext context;
    Total total;
    total.set_bytes(7);
    const auto writer = stub_->Sum(&context, &total);
    EXPECT_TRUE(writer->WritesDone());
    EXPECT_OK(writer->Finish());
    EXPECT_EQ(total.bytes(), 0);
  }
  TimedContext context;
  const auto stream = stub_->Chat(&context);
  EXPECT_TRUE(stream->WritesDone());
  EXPECT_FALSE(stream->Read(&item));
  EXPECT_OK(stream->Finish());
}

TEST_P(StreamsTest, TheLastMessageCanEndTheStream) {
  TimedContext context;
  Total total;
  const auto writer = stub_->Sum(&context, &total);
  Item item;
  item.set_number(1);
  EXPECT_TRUE(writer->Write(item));
  item.set_number(2);
  writer->WriteLast(item, rpc::WriteOptions());
  EXPECT_OK(writer->Finish());
  EXPECT_EQ(total.numbers(), 3);
}

TEST_P(StreamsTest, AttachmentsGoBesideMessagesOfAllSizes) {
  TimedContext context;
  const auto stream = stub_->Chat(&context);
  for (const size_t bytes : {10u, 5'000u, 100'000u, 3'000'000u}) {
    absl::StatusOr<rpc::Buffer> buffer = channel_->AllocateBuffer(bytes);
    ASSERT_TRUE(buffer.ok()) << buffer.status();
    benchmarks::FillTestPattern(reinterpret_cast<char*>(buffer->mutable_data()),
                                bytes, 5);
    Item item;
    item.set_number(static_cast<int64_t>(bytes));
    item.set_data(TestPattern(bytes / 2, 6));
    ASSERT_TRUE(stream->Write(item, rpc::WriteOptions().set_attachment(
                                        rpc::BufferChain(*std::move(buffer)))));
    Item answer;
    rpc::BufferChain attachment;
    ASSERT_TRUE(stream->Read(&answer, &attachment));
    EXPECT_EQ(answer.data(), item.data());
    ASSERT_EQ(attachment.size(), bytes);
    EXPECT_EQ(benchmarks::Checksum(attachment),
              benchmarks::Checksum(TestPattern(bytes, 5)));
  }
  EXPECT_TRUE(stream->WritesDone());
  EXPECT_OK(stream->Finish());
}

// ---- How they end.

TEST_P(StreamsTest, AnErrorComesWithItsTextDetailsAndMetadata) {
  TimedContext context;
  Order order;
  order.set_count(3);
  order.set_code(rpc::StatusCode::ABORTED);
  const auto reader = stub_->Count(&context, order);
  Item item;
  int count = 0;
  while (reader->Read(&item)) ++count;
  EXPECT_EQ(count, 3);
  const rpc::Status status = reader->Finish();
  EXPECT_TRUE(HasCode(status, rpc::StatusCode::ABORTED));
  EXPECT_EQ(status.error_message(), "asked for 10");
  EXPECT_EQ(status.error_details(), "details");
  EXPECT_EQ(context.GetServerTrailingMetadata().count("count"), 1u);
}

TEST_P(StreamsTest, AServerThatEndsEarlyEndsTheClientsWrites) {
  TimedContext context;
  Total total;
  const auto writer = stub_->Sum(&context, &total);
  Item item;
  item.set_data(TestPattern(10'000, 1));
  ASSERT_TRUE(writer->Write(item));
  item.set_code(rpc::StatusCode::OUT_OF_RANGE);
  // The first of them may be answered before its Write returns.
  while (writer->Write(item)) {
  }
  EXPECT_TRUE(HasCode(writer->Finish(), rpc::StatusCode::OUT_OF_RANGE));
  ExpectChatWorks();
}

// What was offered by then is answered by the end, and not once more.
TEST_P(StreamsTest, AServerThatEndsAmongLargeMessagesKeepsTheConnection) {
  TimedContext chat_context;
  const auto chat = stub_->Chat(&chat_context);
  for (int round = 0; round < 20; ++round) {
    TimedContext context;
    Total total;
    const auto writer = stub_->Sum(&context, &total);
    Item item;
    item.set_data(TestPattern(100'000 + size_t{50'000} * (round % 5), 1));
    for (int i = 0; i < round % 3; ++i) ASSERT_TRUE(writer->Write(item));
    std::thread small([&] {
      TimedContext another;
      stub_->Chat(&another)->Write(Item());
    });
    item.set_code(rpc::StatusCode::OUT_OF_RANGE);
    while (writer->Write(item)) {
    }
    EXPECT_TRUE(HasCode(writer->Finish(), rpc::StatusCode::OUT_OF_RANGE));
    small.join();
    // The same connection: a broken one would have ended the stream.
    ASSERT_TRUE(chat->Write(item.code() != 0 ? Item() : item));
    ASSERT_TRUE(chat->Read(&item));
  }
  EXPECT_TRUE(chat->WritesDone());
  EXPECT_OK(chat->Finish());
}

TEST_P(StreamsTest, AnAttachmentMayComeWithTheOpening) {
  TimedContext context;
  context.set_attachment(
      rpc::BufferChain(rpc::Buffer::CopyOf(TestPattern(100'000, 1))));
  Total total;
  const auto writer = stub_->Sum(&context, &total);
  Item item;
  item.set_data(TestPattern(2'000, 1));
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(writer->Write(item));
  EXPECT_TRUE(writer->WritesDone());
  EXPECT_OK(writer->Finish());
  EXPECT_EQ(total.bytes(), 200 * 2'000);
}

TEST_P(StreamsTest, InitialMetadataComesBeforeTheFirstMessage) {
  TimedContext context;
  Order order;
  order.set_count(1);
  order.set_hold(true);
  const auto reader = stub_->Count(&context, order);
  reader->WaitForInitialMetadata();
  EXPECT_EQ(context.GetServerInitialMetadata().count("kind"), 1u);
  EXPECT_EQ(progress_.written, 0);
  progress_.go_on.Notify();
  Item item;
  EXPECT_TRUE(reader->Read(&item));
  EXPECT_FALSE(reader->Read(&item));
  EXPECT_OK(reader->Finish());
}

TEST_P(StreamsTest, FinishThrowsAwayWhatWasNotRead) {
  TimedContext context;
  Order order;
  order.set_count(1'000);
  order.set_bytes(5'000);
  const auto reader = stub_->Count(&context, order);
  Item item;
  EXPECT_TRUE(reader->Read(&item));
  EXPECT_OK(reader->Finish());
  EXPECT_EQ(progress_.written, 1'000);
}

TEST_P(StreamsTest, CancellingEndsBothSides) {
  TimedContext context;
  Order order;
  order.set_count(1'000'000);
  order.set_bytes(1'000);
  const auto reader = stub_->Count(&context, order);
  Item item;
  EXPECT_TRUE(reader->Read(&item));
  context.TryCancel();
  while (reader->Read(&item)) {
  }
  EXPECT_TRUE(HasCode(reader->Finish(), rpc::StatusCode::CANCELLED));
  EXPECT_TRUE(Eventually([&] { return progress_.cancelled == 1; }));
  ExpectChatWorks();
}

TEST_P(StreamsTest, CancellingWakesAHandlerThatReads) {
  TimedContext context;
  const auto stream = stub_->Chat(&context);
  Item item;
  EXPECT_TRUE(stream->Write(item));
  EXPECT_TRUE(stream->Read(&item));
  context.TryCancel();
  EXPECT_FALSE(stream->Read(&item));
  EXPECT_TRUE(HasCode(stream->Finish(), rpc::StatusCode::CANCELLED));
  EXPECT_TRUE(Eventually([&] { return progress_.cancelled == 1; }));
}

TEST_P(StreamsTest, ADeadlineEndsAStreamThatWaits) {
  TimedContext context(absl::Milliseconds(200));
  const auto stream = stub_->Chat(&context);
  Item item;
  EXPECT_FALSE(stream->Read(&item));
  EXPECT_TRUE(HasCode(stream->Finish(), rpc::StatusCode::DEADLINE_EXCEEDED));
  EXPECT_TRUE(Eventually([&] { return progress_.chats == 0; }));
}

TEST_P(StreamsTest, AStreamThatIsDestroyedIsCancelled) {
  {
    TimedContext context;
    Order order;
    order.set_count(1'000'000);
    order.set_bytes(1'000);
    const auto reader = stub_->Count(&context, order);
    Item item;
    EXPECT_TRUE(reader->Read(&item));
  }
  EXPECT_TRUE(Eventually([&] { return progress_.cancelled == 1; }));
  ExpectChatWorks();
}

TEST_P(StreamsTest, AStreamKeepsItsChannel) {
  TimedContext context;
  const auto stream = stub_->Chat(&context);
  stub_.reset();
  channel_.reset();
  Item item;
  item.set_number(1);
  EXPECT_TRUE(stream->Write(item));
  EXPECT_TRUE(stream->Read(&item));
  EXPECT_TRUE(stream->WritesDone());
  EXPECT_OK(stream->Finish());
}

TEST_P(StreamsTest, AServerThatShutsDownEndsItsStreams) {
  TimedContext context;
  const auto stream = stub_->Chat(&context);
  Item item;
  EXPECT_TRUE(stream->Write(item));
  EXPECT_TRUE(stream->Read(&item));
  server_->server().Shutdown(std::chrono::system_clock::now());
  EXPECT_FALSE(stream->Read(&item));
  EXPECT_TRUE(HasCode(stream->Finish(), rpc::StatusCode::UNAVAILABLE));
  // A shutdown waits for handlers, though not for who takes a queue's events.
  if (GetParam() == Api::kQueue) {
    EXPECT_TRUE(Eventually([&] { return progress_.cancelled == 1; }));
  } else {
    EXPECT_EQ(progress_.cancelled, 1);
  }
}

TEST_P(StreamsTest, WhatNobodyImplementsIsUnimplemented) {
  TimedContext context;
  const auto stream = stub_->Missing(&context);
  Item item;
  EXPECT_FALSE(stream->Read(&item));
  EXPECT_TRUE(HasCode(stream->Finish(), rpc::StatusCode::UNIMPLEMENTED));
  ExpectChatWorks();
}

TEST_P(StreamsTest, AContextServesOneStream) {
  TimedContext context;
  const auto first = stub_->Chat(&context);
  const auto second = stub_->Chat(&context);
  Item item;
  EXPECT_FALSE(second->Write(item));
  EXPECT_FALSE(second->Read(&item));
  EXPECT_TRUE(HasCode(second->Finish(), rpc::StatusCode::FAILED_PRECONDITION));
  EXPECT_TRUE(first->WritesDone());
  EXPECT_OK(first->Finish());
}

TEST_P(StreamsTest, CancelledBeforeItBeganItNeverRuns) {
  rpc::ClientContext context;
  context.TryCancel();
  const auto stream = stub_->Chat(&context);
  EXPECT_TRUE(HasCode(stream->Finish(), rpc::StatusCode::CANCELLED));
  EXPECT_EQ(progress_.chats, 0);
}

TEST_P(StreamsTest, AnOversizedMessageEndsItsStreamAlone) {
  Start({{"grpc.max_receive_message_length", 50'000}});
  TimedContext context;
  Total total;
  const auto writer = stub_->Sum(&context, &total);
  Item item;
  item.set_data(TestPattern(60'000, 1));
  writer->Write(item);
  EXPECT_TRUE(HasCode(writer->Finish(), rpc::StatusCode::RESOURCE_EXHAUSTED));
  ExpectChatWorks();
}

// ---- Back-pressure.

TEST_P(StreamsTest, AReaderThatIsSlowHoldsBackItsStreamAlone) {
  TimedContext context;
  Order order;
  order.set_count(1'000);
  order.set_bytes(5'000);
  const auto slow = stub_->Count(&context, order);
  slow->WaitForInitialMetadata();
  for (int i = 0; i < 20; ++i) ExpectChatWorks();
  absl::SleepFor(absl::Milliseconds(100));
  // 64 KiB of window, and the one that waits.
  EXPECT_LE(progress_.written, 65'536 / 5'000 + 2);
  Item item;
  int64_t count = 0;
  while (slow->Read(&item)) ++count;
  EXPECT_EQ(count, 1'000);
  EXPECT_OK(slow->Finish());
}

TEST_P(StreamsTest, ManyStreamsAtATime) {
  constexpr int kStreams = 100;
  struct Open {
    TimedContext context;
    std::unique_ptr<rpc::ClientReaderWriter<Item, Item>> stream;
  };
  std::vector<std::unique_ptr<Open>> streams;
  for (int i = 0; i < kStreams; ++i) {
    streams.push_back(std::make_unique<Open>());
    streams.back()->stream = stub_->Chat(&streams.back()->context);
  }
  Item item;
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < kStreams; ++i) {
      item.set_number(round * kStreams + i);
      ASSERT_TRUE(streams[static_cast<size_t>(i)]->stream->Write(item));
    }
    for (int i = 0; i < kStreams; ++i) {
      ASSERT_TRUE(streams[static_cast<size_t>(i)]->stream->Read(&item));
      ASSERT_EQ(item.number(), round * kStreams + i);
    }
  }
  for (const auto& open : streams) {
    EXPECT_TRUE(open->stream->WritesDone());
    EXPECT_OK(open->stream->Finish());
  }
}

TEST_P(StreamsTest, AChannelThatCannotConnectSaysSo) {
  server_.reset();
  TimedContext context;
  const auto stream = stub_->Chat(&context);
  Item item;
  while (stream->Write(item)) {
  }
  EXPECT_FALSE(stream->Read(&item));
  EXPECT_TRUE(HasCode(stream->Finish(), rpc::StatusCode::UNAVAILABLE));
}

}  // namespace
}  // namespace e2e
