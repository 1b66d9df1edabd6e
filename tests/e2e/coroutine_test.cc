// Goal: calls of coroutines, of all kinds, over the device under test: what
// they say is what the blocking API says, many run on one thread, and neither
// loops nor cancelling nor destroying early does harm.
// Method: coroutines against services of the other APIs and of coroutines, in
// this process, begun and waited for by the test's thread.
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "benchmarks/test_pattern.h"
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

using Chat = rpc::CoroClientReaderWriter<Item, Item>;

rpc::Task<rpc::Status> Echo(Probe::Stub* stub, std::string data,
                            std::string* answer) {
  TimedContext context;
  Blob request;
  request.set_data(std::move(data));
  Blob response;
  rpc::Status status =
      co_await stub->coro()->Echo(&context, request, &response);
  *answer = response.data();
  co_return status;
}

// A stream of its own that works: the connection lives.
rpc::Task<> ExpectChatWorks(Streams::Stub* stub) {
  TimedContext context;
  const auto stream = stub->coro()->Chat(&context);
  Item item;
  item.set_number(42);
  EXPECT_TRUE(co_await stream->Write(item));
  Item answer;
  EXPECT_TRUE(co_await stream->Read(&answer));
  EXPECT_EQ(answer.number(), 42);
  EXPECT_TRUE(co_await stream->WritesDone());
  EXPECT_FALSE(co_await stream->Read(&answer));
  EXPECT_OK(co_await stream->Finish());
}

class CoroutineTest : public testing::Test {
 protected:
  explicit CoroutineTest(Api api = Api::kCallback)
      : streams_(ServeStreams(api, &progress_)),
        server_({}, ServerUri(), &streams_->service()) {}

  void SetUp() override {
    ASSERT_TRUE(server_.ok()) << server_.status();
    channel_ = Client(server_.address()).shared_channel();
    stub_ = Streams::NewStub(channel_);
    probe_ = Probe::NewStub(channel_);
  }
  ~CoroutineTest() override {
    if (!progress_.go_on.HasBeenNotified()) progress_.go_on.Notify();
  }

  StreamsProgress progress_;
  std::unique_ptr<ServedStreams> streams_;
  Server server_;
  std::shared_ptr<rpc::Channel> channel_;
  std::unique_ptr<Streams::Stub> stub_;
  std::unique_ptr<Probe::Stub> probe_;
};

// ---- Each kind of call.

TEST_F(CoroutineTest, AUnaryCallIsAwaited) {
  for (const size_t bytes : {0u, 100u, 20'000u, 1'000'000u}) {
    std::string answer;
    EXPECT_OK(
        rpc::SyncWait(Echo(probe_.get(), TestPattern(bytes, 1), &answer)));
    EXPECT_EQ(answer, TestPattern(bytes, 1));
  }
}

TEST_F(CoroutineTest, AUnaryCallHasAttachments) {
  rpc::SyncWait([](Probe::Stub* stub) -> rpc::Task<> {
    TimedContext context;
    context.set_attachment(
        rpc::BufferChain(rpc::Buffer::CopyOf(TestPattern(100'000, 7))));
    Blob response;
    EXPECT_OK(co_await stub->coro()->Echo(&context, Blob(), &response));
    EXPECT_EQ(benchmarks::Checksum(context.attachment()),
              benchmarks::Checksum(TestPattern(100'000, 7)));
  }(probe_.get()));
}

TEST_F(CoroutineTest, AServersMessagesComeInOrderAndThenTheStatus) {
  rpc::SyncWait([](Streams::Stub* stub) -> rpc::Task<> {
    TimedContext context;
    Order order;
    order.set_count(300);
    order.set_bytes(5'000);
    const auto reader = stub->coro()->Count(&context, order);
    EXPECT_TRUE(co_await reader->WaitForInitialMetadata());
    EXPECT_EQ(context.GetServerInitialMetadata().count("kind"), 1u);
    Item item;
    int64_t count = 0;
    while (co_await reader->Read(&item)) {
      EXPECT_EQ(item.number(), count);
      EXPECT_EQ(item.data(), TestPattern(5'000, static_cast<uint64_t>(count)));
      ++count;
    }
    EXPECT_EQ(count, 300);
    EXPECT_OK(co_await reader->Finish());
    EXPECT_EQ(context.GetServerTrailingMetadata().count("count"), 1u);
  }(stub_.get()));
}

TEST_F(CoroutineTest, AClientsMessagesAreAllThereWhenItHasDone) {
  rpc::SyncWait([](Streams::Stub* stub) -> rpc::Task<> {
    TimedContext context;
    Total total;
    const auto writer = stub->coro()->Sum(&context, &total);
    Item item;
    item.set_data(TestPattern(10'000, 1));
    for (int64_t i = 1; i <= 200; ++i) {
      item.set_number(i);
      EXPECT_TRUE(co_await writer->Write(item));
    }
    EXPECT_TRUE(co_await writer->WritesDone());
    EXPECT_FALSE(co_await writer->Write(item)) << "after WritesDone";
    EXPECT_OK(co_await writer->Finish());
    EXPECT_EQ(total.numbers(), 200 * 201 / 2);
    EXPECT_EQ(total.bytes(), 200 * 10'000);
  }(stub_.get()));
}

TEST_F(CoroutineTest, TheLastMessageCanEndTheStream) {
  rpc::SyncWait([](Streams::Stub* stub) -> rpc::Task<> {
    TimedContext context;
    Total total;
    const auto writer = stub->coro()->Sum(&context, &total);
    Item item;
    item.set_number(3);
    EXPECT_TRUE(co_await writer->WriteLast(item, rpc::WriteOptions()));
    EXPECT_OK(co_await writer->Finish());
    EXPECT_EQ(total.numbers(), 3);
  }(stub_.get()));
}

TEST_F(CoroutineTest, AttachmentsGoBesideTheMessagesOfAStream) {
  rpc::SyncWait([](Streams::Stub* stub) -> rpc::Task<> {
    TimedContext context;
    const auto stream = stub->coro()->Chat(&context);
    for (const size_t bytes : {10u, 5'000u, 1'000'000u}) {
      Item item;
      item.set_data(TestPattern(bytes / 2, 6));
      rpc::BufferChain sent(rpc::Buffer::CopyOf(TestPattern(bytes, 5)));
      EXPECT_TRUE(co_await stream->Write(
          item, rpc::WriteOptions().set_attachment(std::move(sent))));
      Item answer;
      rpc::BufferChain attachment;
      EXPECT_TRUE(co_await stream->Read(&answer, &attachment));
      EXPECT_EQ(answer.data(), item.data());
      EXPECT_EQ(benchmarks::Checksum(attachment),
                benchmarks::Checksum(TestPattern(bytes, 5)));
    }
    EXPECT_TRUE(co_await stream->WritesDone());
    EXPECT_OK(co_await stream->Finish());
  }(stub_.get()));
}

TEST_F(CoroutineTest, OneCoroutineReadsWhileAnotherWrites) {
  static constexpr int64_t kMessages = 2'000;
  TimedContext context;
  const auto stream = stub_->coro()->Chat(&context);
  absl::Notification written;
  rpc::Detach(
      [](Chat* stream) -> rpc::Task<> {
        Item item;
        item.set_data(TestPattern(3'000, 1));
        for (int64_t i = 0; i < kMessages; ++i) {
          item.set_number(i);
          EXPECT_TRUE(co_await stream->Write(item));
        }
        EXPECT_TRUE(co_await stream->WritesDone());
      }(stream.get()),
      [&](const std::exception_ptr& error) {
        EXPECT_EQ(error, nullptr);
        written.Notify();
      });
  rpc::SyncWait([](Chat* stream) -> rpc::Task<> {
    Item answer;
    int64_t count = 0;
    for (; co_await stream->Read(&answer); ++count) {
      EXPECT_EQ(answer.number(), count);
    }
    EXPECT_EQ(count, kMessages);
  }(stream.get()));
  written.WaitForNotification();
  EXPECT_OK(rpc::SyncWait([](Chat* stream) -> rpc::Task<rpc::Status> {
    co_return co_await stream->Finish();
  }(stream.get())));
}

// ---- How calls end.

TEST_F(CoroutineTest, AnErrorComesWithItsTextAndDetails) {
  rpc::SyncWait([](Streams::Stub* stub) -> rpc::Task<> {
    TimedContext context;
    Order order;
    order.set_code(rpc::StatusCode::ABORTED);
    const auto reader = stub->coro()->Count(&context, order);
    Item item;
    EXPECT_FALSE(co_await reader->Read(&item));
    const rpc::Status status = co_await reader->Finish();
    EXPECT_TRUE(HasCode(status, rpc::StatusCode::ABORTED));
    EXPECT_EQ(status.error_message(), "asked for 10");
    EXPECT_EQ(status.error_details(), "details");
  }(stub_.get()));
}

TEST_F(CoroutineTest, CancellingEndsAUnaryCallThatWaits) {
  rpc::SyncWait([](Probe::Stub* stub) -> rpc::Task<> {
    TimedContext context(absl::Milliseconds(100));
    Nothing response;
    EXPECT_TRUE(
        HasCode(co_await stub->coro()->Block(&context, Blob(), &response),
                rpc::StatusCode::DEADLINE_EXCEEDED));
    TimedContext cancelled;
    cancelled.TryCancel();
    EXPECT_TRUE(
        HasCode(co_await stub->coro()->Block(&cancelled, Blob(), &response),
                rpc::StatusCode::CANCELLED));
    EXPECT_TRUE(
        HasCode(co_await stub->coro()->Block(&cancelled, Blob(), &response),
                rpc::StatusCode::FAILED_PRECONDITION))
        << "its context served another call";
  }(probe_.get()));
}

TEST_F(CoroutineTest, CancellingWakesACoroutineThatReads) {
  TimedContext context;
  const auto stream = stub_->coro()->Chat(&context);
  absl::Notification done;
  rpc::Detach(
      [](Chat* stream) -> rpc::Task<> {
        Item item;
        EXPECT_FALSE(co_await stream->Read(&item));
        EXPECT_TRUE(
            HasCode(co_await stream->Finish(), rpc::StatusCode::CANCELLED));
      }(stream.get()),
      [&](const std::exception_ptr&) { done.Notify(); });
  context.TryCancel();
  done.WaitForNotification();
  rpc::SyncWait(ExpectChatWorks(stub_.get()));
}

TEST_F(CoroutineTest, AStreamThatIsDestroyedIsCancelled) {
  rpc::SyncWait([](Streams::Stub* stub) -> rpc::Task<> {
    for (const int64_t reads : {0, 1, 50}) {
      TimedContext context;
      Order order;
      order.set_count(1'000'000);
      order.set_bytes(1'000);
      const auto reader = stub->coro()->Count(&context, order);
      Item item;
      for (int64_t i = 0; i < reads; ++i) {
        EXPECT_TRUE(co_await reader->Read(&item));
      }
    }
    TimedContext context;
    const auto writer = stub->coro()->Chat(&context);
    EXPECT_TRUE(co_await writer->Write(Item()));
  }(stub_.get()));
  rpc::SyncWait(ExpectChatWorks(stub_.get()));
  EXPECT_TRUE(Eventually([&] { return progress_.chats == 0; }));
}

// Which it must not be while a coroutine awaits it.
TEST_F(CoroutineTest, AStreamThatIsDestroyedWakesWhoAwaitsIt) {
  std::atomic<int> complaints{0};
  rpc::SetLogSink([&](rpc::LogLevel, std::string_view text) {
    if (text.find("coroutine") != text.npos) ++complaints;
  });
  for (const bool finishes : {false, true}) {
    TimedContext context;
    auto stream = stub_->coro()->Chat(&context);
    absl::Notification woken;
    rpc::Detach(
        [](Chat* stream, bool finishes) -> rpc::Task<> {
          Item item;
          if (finishes) {
            EXPECT_TRUE(
                HasCode(co_await stream->Finish(), rpc::StatusCode::CANCELLED));
          } else {
            EXPECT_FALSE(co_await stream->Read(&item));
          }
        }(stream.get(), finishes),
        [&](const std::exception_ptr&) { woken.Notify(); });
    stream.reset();
    woken.WaitForNotification();
  }
  rpc::SetLogSink({});
  EXPECT_EQ(complaints, 2);
  rpc::SyncWait(ExpectChatWorks(stub_.get()));
}

TEST_F(CoroutineTest, ACoroutineMayDropItsStubAndItsChannel) {
  probe_.reset();
  channel_.reset();
  rpc::SyncWait([](std::unique_ptr<Streams::Stub> stub) -> rpc::Task<> {
    TimedContext context;
    auto stream = stub->coro()->Chat(&context);
    stub.reset();
    Item item;
    EXPECT_TRUE(co_await stream->Write(item));
    EXPECT_TRUE(co_await stream->Read(&item));
    // Where the driver's own frames are below.
    stream.reset();
  }(std::move(stub_)));
}

TEST_F(CoroutineTest, AServerThatIsNotThereIsUnavailable) {
  server_.server().Shutdown(std::chrono::system_clock::now());
  std::string answer;
  EXPECT_TRUE(HasCode(rpc::SyncWait(Echo(probe_.get(), "", &answer)),
                      rpc::StatusCode::UNAVAILABLE));
  rpc::SyncWait([](Streams::Stub* stub) -> rpc::Task<> {
    TimedContext context;
    const auto stream = stub->coro()->Chat(&context);
    Item item;
    EXPECT_FALSE(co_await stream->Read(&item));
    EXPECT_FALSE(co_await stream->Write(item));
    EXPECT_TRUE(
        HasCode(co_await stream->Finish(), rpc::StatusCode::UNAVAILABLE));
  }(stub_.get()));
}

TEST_F(CoroutineTest, WhatAnAwaitedTaskThrowsIsThrownOn) {
  EXPECT_THROW(rpc::SyncWait([](Probe::Stub* stub) -> rpc::Task<int> {
                 std::string answer;
                 EXPECT_OK(co_await Echo(stub, "a", &answer));
                 throw std::runtime_error(answer);
               }(probe_.get())),
               std::runtime_error);
}

// ---- Many, and long.

TEST_F(CoroutineTest, ThousandsOfCallsBegunByOneThread) {
  const int kCalls = TheDeviceUnderTest().Rounds(5'000);
  absl::BlockingCounter done(kCalls);
  std::atomic<int> right{0};
  for (int i = 0; i < kCalls; ++i) {
    rpc::Detach(
        [](Probe::Stub* stub, std::string data,
           std::atomic<int>* right) -> rpc::Task<> {
          std::string answer;
          const rpc::Status status = co_await Echo(stub, data, &answer);
          if (status.ok() && answer == data) ++*right;
        }(probe_.get(), std::to_string(i), &right),
        [&](const std::exception_ptr&) { done.DecrementCount(); });
  }
  done.Wait();
  EXPECT_EQ(right, kCalls);
}

TEST_F(CoroutineTest, ThousandsOfStreamsAtATime) {
  const int kStreams = TheDeviceUnderTest().Rounds(2'000);
  absl::BlockingCounter done(kStreams);
  std::atomic<int> right{0};
  for (int i = 0; i < kStreams; ++i) {
    rpc::Detach(
        [](Streams::Stub* stub, std::atomic<int>* right) -> rpc::Task<> {
          TimedContext context;
          const auto stream = stub->coro()->Chat(&context);
          Item item;
          for (int64_t round = 0; round < 10; ++round) {
            item.set_number(round);
            if (!co_await stream->Write(item)) co_return;
            if (!co_await stream->Read(&item)) co_return;
            if (item.number() != round) co_return;
          }
          if (!co_await stream->WritesDone()) co_return;
          const rpc::Status status = co_await stream->Finish();
          if (status.ok()) ++*right;
        }(stub_.get(), &right),
        [&](const std::exception_ptr&) { done.DecrementCount(); });
  }
  done.Wait();
  EXPECT_EQ(right, kStreams);
}

constexpr int64_t kManyMessages = 10'000;
// The window has room for some dozens of them.
constexpr int64_t kBytesEach = 1'000;

rpc::Task<bool> ReadOne(rpc::CoroClientReader<Item>* reader, Item* item) {
  co_return co_await reader->Read(item);
}

// Both sides loop.
class CoroutinesOnlyTest : public CoroutineTest {
 protected:
  CoroutinesOnlyTest() : CoroutineTest(Api::kCoroutine) {}
};

// That loops do not grow the stack: coroutine_depth_test.
TEST_F(CoroutinesOnlyTest, LongStreamsAreReadAndWrittenInLoops) {
  rpc::SyncWait([](Streams::Stub* stub) -> rpc::Task<> {
    TimedContext context;
    Order order;
    order.set_count(kManyMessages);
    order.set_bytes(kBytesEach);
    const auto reader = stub->coro()->Count(&context, order);
    Item item;
    int64_t count = 0;
    // A task for each, of which most have ended before they would suspend.
    while (co_await ReadOne(reader.get(), &item)) ++count;
    EXPECT_EQ(count, kManyMessages);
    EXPECT_OK(co_await reader->Finish());
  }(stub_.get()));
  rpc::SyncWait([](Streams::Stub* stub) -> rpc::Task<> {
    TimedContext context;
    Total total;
    const auto writer = stub->coro()->Sum(&context, &total);
    Item item;
    item.set_number(1);
    item.set_data(TestPattern(kBytesEach, 1));
    for (int64_t i = 0; i < kManyMessages; ++i) {
      EXPECT_TRUE(co_await writer->Write(item));
    }
    EXPECT_TRUE(co_await writer->WritesDone());
    EXPECT_OK(co_await writer->Finish());
    EXPECT_EQ(total.numbers(), kManyMessages);
  }(stub_.get()));
}

// ---- Handlers. Streams: streams_test, whose handlers are coroutines, too.

// Passes calls on to another server, or does otherwise as it is told.
class Proxy final : public Probe::CoroutineService {
 public:
  explicit Proxy(const std::shared_ptr<rpc::Channel>& channel)
      : backend_(Probe::NewStub(channel)) {}

  rpc::Task<rpc::Status> Echo(rpc::CallbackServerContext* context,
                              const Blob* request, Blob* response) override {
    rpc::ClientContext backend;
    backend.set_deadline(context->deadline());
    backend.set_attachment(context->attachment());
    rpc::Status status =
        co_await backend_->coro()->Echo(&backend, *request, response);
    context->set_attachment(backend.attachment());
    co_return status;
  }
  rpc::Task<rpc::Status> Consume(rpc::CallbackServerContext*,
                                 const Blob* request, Summary*) override {
    if (request->data() == "later") {
      std::string answer;
      static_cast<void>(co_await e2e::Echo(backend_.get(), "", &answer));
    }
    throw std::runtime_error("not for clients");
  }
  rpc::Task<rpc::Status> Sleep(rpc::CallbackServerContext*, const Nap*,
                               Nothing*) override {
    throw 5;  // of a function that is no coroutine
  }
  rpc::Task<rpc::Status> ReleaseBlocked(rpc::CallbackServerContext*,
                                        const Nothing*, Nothing*) override {
    co_return rpc::Status::OK;
  }

 private:
  const std::unique_ptr<Probe::Stub> backend_;
};

// A server of coroutines in front of the other one.
class CoroutineHandlerTest : public CoroutineTest {
 protected:
  void SetUp() override {
    CoroutineTest::SetUp();
    proxy_ = std::make_unique<Proxy>(channel_);
    rpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(ServerUri(), rpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterService(proxy_.get());
    proxy_server_ = builder.BuildAndStart();
    ASSERT_NE(proxy_server_, nullptr);
    front_ = Probe::NewStub(Client(ServerUri(port)).shared_channel());
  }

  std::unique_ptr<Proxy> proxy_;
  std::unique_ptr<rpc::Server> proxy_server_;
  std::unique_ptr<Probe::Stub> front_;
};

TEST_F(CoroutineHandlerTest, AHandlerAwaitsCallsOfItsOwn) {
  for (const size_t bytes : {0u, 100u, 200'000u}) {
    TimedContext context;
    context.set_attachment(
        rpc::BufferChain(rpc::Buffer::CopyOf(TestPattern(bytes, 3))));
    Blob request;
    request.set_data(TestPattern(bytes, 2));
    Blob response;
    EXPECT_OK(front_->Echo(&context, request, &response));
    EXPECT_EQ(response.data(), request.data());
    EXPECT_EQ(benchmarks::Checksum(context.attachment()),
              benchmarks::Checksum(TestPattern(bytes, 3)));
  }
}

TEST_F(CoroutineHandlerTest, AHandlerMayEndAtOnce) {
  TimedContext context;
  Nothing response;
  EXPECT_OK(front_->ReleaseBlocked(&context, Nothing(), &response));
}

TEST_F(CoroutineHandlerTest, ThousandsOfHandlersWaitAtATime) {
  const int kCalls = TheDeviceUnderTest().Rounds(3'000);
  absl::BlockingCounter done(kCalls);
  std::atomic<int> right{0};
  for (int i = 0; i < kCalls; ++i) {
    rpc::Detach(
        [](Probe::Stub* stub, std::string data,
           std::atomic<int>* right) -> rpc::Task<> {
          std::string answer;
          const rpc::Status status = co_await Echo(stub, data, &answer);
          if (status.ok() && answer == data) ++*right;
        }(front_.get(), std::to_string(i), &right),
        [&](const std::exception_ptr&) { done.DecrementCount(); });
  }
  done.Wait();
  EXPECT_EQ(right, kCalls);
}

TEST_F(CoroutineHandlerTest, WhatAHandlerThrowsEndsItsCallAlone) {
  for (const char* when : {"now", "later"}) {
    TimedContext context;
    Blob request;
    request.set_data(when);
    Summary response;
    const rpc::Status status = front_->Consume(&context, request, &response);
    EXPECT_TRUE(HasCode(status, rpc::StatusCode::UNKNOWN)) << when;
    EXPECT_EQ(status.error_message().find("not for clients"),
              std::string::npos);
  }
  TimedContext context;
  Nothing response;
  EXPECT_TRUE(HasCode(front_->Sleep(&context, Nap(), &response),
                      rpc::StatusCode::UNKNOWN));
  std::string answer;
  EXPECT_OK(rpc::SyncWait(Echo(front_.get(), "a", &answer)));
}

TEST_F(CoroutineHandlerTest, WhatNobodyImplementsIsUnimplemented) {
  TimedContext context;
  Observation response;
  EXPECT_TRUE(HasCode(front_->Observe(&context, Nothing(), &response),
                      rpc::StatusCode::UNIMPLEMENTED));
}

TEST_F(CoroutineHandlerTest, AServerThatShutsDownWaitsForItsHandlers) {
  for (int i = 0; i < 200; ++i) {
    rpc::Detach([](Probe::Stub* stub) -> rpc::Task<> {
      std::string answer;
      static_cast<void>(co_await Echo(stub, "a", &answer));
    }(front_.get()));
  }
  proxy_server_->Shutdown(std::chrono::system_clock::now());
  proxy_server_.reset();
  proxy_.reset();
}

}  // namespace
}  // namespace e2e
