// Goal: what a transport brings before its StartCall has returned, as it may on
// another thread, is as good as what comes later. Method: a transport of one
// call that answers within StartCall, on a thread of its own.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rpc/generated_code.h"
#include "rpc/rpc.h"
#include "tests/rpc/echo.rpc.pb.h"
#include "tests/rpc/transport_channel.h"

namespace rpc::testing {
namespace {

constexpr uint64_t kHandle = 42;
constexpr uint64_t kWindow = BareTransport::kWindow;

class OneCallTransport final : public BareTransport {
 public:
  // What comes before StartCall returns.
  explicit OneCallTransport(std::function<void(CallSink&)> answer)
      : answer_(std::move(answer)) {}

  // Runs at the end of Cancel.
  void AfterCancel(std::function<void()> what) {
    after_cancel_ = std::move(what);
  }

  // What was done with the call's handle. Of another: nothing.
  int sent() const {
    absl::MutexLock lock(&mutex_);
    return sent_;
  }
  uint64_t released() const {
    absl::MutexLock lock(&mutex_);
    return released_;
  }

  CallHandle StartCall(const CallOptions&, OutgoingFrame&&,
                       CallSink* sink) override {
    sink_ = sink;
    std::thread([&] { answer_(*sink); }).join();
    return CallHandle{kHandle};
  }
  bool Send(CallHandle call, OutgoingFrame&&) override {
    absl::MutexLock lock(&mutex_);
    if (call.value == kHandle) ++sent_;
    return true;
  }
  void Release(CallHandle call, uint64_t window_bytes, bool) override {
    absl::MutexLock lock(&mutex_);
    if (call.value == kHandle) released_ += window_bytes;
  }
  void Cancel(CallHandle call, absl::Status reason) override {
    if (call.value == kHandle) sink_->OnClosed({std::move(reason), true});
    if (after_cancel_ != nullptr) after_cancel_();
  }
  void Wait(Event& event) override { event.WaitUntil(absl::InfiniteFuture()); }

 private:
  const std::function<void(CallSink&)> answer_;
  std::function<void()> after_cancel_;
  CallSink* sink_ = nullptr;
  mutable absl::Mutex mutex_;
  int sent_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t released_ ABSL_GUARDED_BY(mutex_) = 0;
};

IncomingFrame EmptyMessage(uint64_t window_bytes = 0) {
  IncomingFrame frame;
  frame.has_message = true;
  frame.window_bytes = window_bytes;
  return frame;
}

class EarlyAnswerTest : public ::testing::Test {
 protected:
  void AnswerBy(std::function<void(CallSink&)> answer) {
    transport_ = std::make_unique<OneCallTransport>(std::move(answer));
    channel_ = std::make_shared<TransportChannel>(transport_.get());
  }
  internal::RpcMethod Method(internal::RpcMethod::RpcType type) const {
    return internal::RpcMethod("/rpc.testing.Echo/Some", type, channel_);
  }

  std::unique_ptr<OneCallTransport> transport_;
  std::shared_ptr<TransportChannel> channel_;
  ClientContext context_;
};

// A handler that was seen to have begun lets the test cancel before StartCall
// has returned, and then answers.
TEST_F(EarlyAnswerTest, AUnaryCallThatWasCancelledFirstIsNotAnswered) {
  AnswerBy([&](CallSink& sink) {
    context_.TryCancel();
    IncomingFrame frame = EmptyMessage();
    frame.end = true;
    sink.OnFrame(frame);
    sink.OnClosed({});
  });
  SayResponse response;
  const Status status = internal::BlockingUnaryCall<SayRequest, SayResponse>(
      channel_.get(), Method(internal::RpcMethod::NORMAL_RPC), &context_,
      SayRequest(), &response);
  EXPECT_EQ(status.error_code(), StatusCode::CANCELLED);
}

// Its callback may let the channel go, and the transport with it.
TEST_F(EarlyAnswerTest, ACancelledCallEndsOnceItsTransportIsLeft) {
  absl::Notification done;
  AnswerBy([&](CallSink&) { context_.TryCancel(); });
  bool cancelled = false;
  transport_->AfterCancel([&] {
    cancelled = true;
    EXPECT_FALSE(done.HasBeenNotified());
  });
  const SayRequest request;
  SayResponse response;
  internal::CallbackUnaryCall<SayRequest, SayResponse>(
      channel_.get(), Method(internal::RpcMethod::NORMAL_RPC), &context_,
      &request, &response, [&](const Status& status) {
        EXPECT_EQ(status.error_code(), StatusCode::CANCELLED);
        done.Notify();
      });
  done.WaitForNotification();
  EXPECT_TRUE(cancelled);
}

TEST_F(EarlyAnswerTest, AStreamThatWasCancelledFirstIsNotAnswered) {
  AnswerBy([&](CallSink& sink) {
    context_.TryCancel();
    IncomingFrame frame = EmptyMessage();
    frame.end = true;
    sink.OnFrame(frame);
  });
  const std::unique_ptr<ClientReader<SayResponse>> reader(
      internal::ClientReaderFactory<SayResponse>::Create(
          channel_.get(), Method(internal::RpcMethod::SERVER_STREAMING),
          &context_, SayRequest()));
  SayResponse response;
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_EQ(reader->Finish().error_code(), StatusCode::CANCELLED);
}

// ---- Completion queues.

class EarlyAnswerQueueTest : public EarlyAnswerTest {
 protected:
  using Chat = ClientAsyncReaderWriter<SayRequest, SayResponse>;

  std::unique_ptr<Chat> MakeChat(CompletionQueue& queue, bool start) {
    return std::unique_ptr<Chat>(
        internal::ClientAsyncReaderWriterFactory<SayRequest, SayResponse>::
            Create(channel_.get(), &queue,
                   Method(internal::RpcMethod::BIDI_STREAMING), &context_,
                   start, nullptr));
  }
  // Begins a stream of responses; the `ok` of its beginning.
  bool Begins() {
    CompletionQueue queue;
    const std::unique_ptr<ClientAsyncReader<SayResponse>> reader(
        internal::ClientAsyncReaderFactory<SayResponse>::Create(
            channel_.get(), &queue,
            Method(internal::RpcMethod::SERVER_STREAMING), &context_,
            SayRequest(), /*start=*/true, nullptr));
    reader->Finish(&status_, nullptr);
    void* tag;
    bool ok = false;
    bool ended = false;
    EXPECT_TRUE(queue.Next(&tag, &ok));
    EXPECT_TRUE(queue.Next(&tag, &ended));
    queue.Shutdown();
    EXPECT_FALSE(queue.Next(&tag, &ended));
    return ok;
  }

  Status status_;
};

TEST_F(EarlyAnswerQueueTest, ACallThatIsOverByThenHasBegun) {
  AnswerBy([](CallSink& sink) {
    IncomingFrame frame = EmptyMessage();
    frame.end = true;
    sink.OnFrame(frame);
    sink.OnClosed({});
  });
  EXPECT_TRUE(Begins());
  EXPECT_TRUE(status_.ok()) << status_;
}

TEST_F(EarlyAnswerQueueTest, OneThatFailedOnItsWayHasBegun) {
  AnswerBy([](CallSink& sink) {
    sink.OnClosed({absl::UnavailableError("broken"), true});
  });
  EXPECT_TRUE(Begins());
  EXPECT_EQ(status_.error_code(), StatusCode::UNAVAILABLE);
}

TEST_F(EarlyAnswerQueueTest, OneThatNeverLeftHasNot) {
  AnswerBy([](CallSink& sink) {
    sink.OnClosed({absl::UnavailableError("nobody there"), false});
  });
  EXPECT_FALSE(Begins());
  EXPECT_EQ(status_.error_code(), StatusCode::UNAVAILABLE);
}

TEST_F(EarlyAnswerQueueTest, AStreamThatLeftCanBeWrittenToOnceItHasBegun) {
  CompletionQueue queue;
  void* tag;
  bool ok = false;
  AnswerBy([&](CallSink& sink) {
    sink.OnSent();
    // Another thread would write, and the call has no handle yet.
    EXPECT_EQ(queue.AsyncNext(&tag, &ok, absl::Now()),
              CompletionQueue::TIMEOUT);
  });
  const std::unique_ptr<Chat> chat = MakeChat(queue, /*start=*/true);
  EXPECT_TRUE(queue.Next(&tag, &ok));
  EXPECT_TRUE(ok) << "the beginning";
  chat->Write(SayRequest(), nullptr);
  EXPECT_TRUE(queue.Next(&tag, &ok));
  EXPECT_TRUE(ok) << "the write";
  EXPECT_EQ(transport_->sent(), 1);
  context_.TryCancel();
  chat->Finish(&status_, nullptr);
  EXPECT_TRUE(queue.Next(&tag, &ok));
  queue.Shutdown();
  EXPECT_FALSE(queue.Next(&tag, &ok));
}

TEST_F(EarlyAnswerQueueTest,
       AStreamThatIsOverByThenBeginsOnceItsContextIsLeft) {
  CompletionQueue queue;
  void* tag;
  bool ok = true;
  AnswerBy([&](CallSink& sink) {
    sink.OnClosed({absl::UnavailableError("nobody there"), false});
    // Another thread would end it, and let the context go.
    EXPECT_EQ(queue.AsyncNext(&tag, &ok, absl::Now()),
              CompletionQueue::TIMEOUT);
  });
  const std::unique_ptr<Chat> chat = MakeChat(queue, /*start=*/true);
  EXPECT_TRUE(queue.Next(&tag, &ok));
  EXPECT_FALSE(ok) << "the beginning";
  chat->Finish(&status_, nullptr);
  EXPECT_TRUE(queue.Next(&tag, &ok));
  EXPECT_EQ(status_.error_code(), StatusCode::UNAVAILABLE);
  queue.Shutdown();
  EXPECT_FALSE(queue.Next(&tag, &ok));
}

// Its beginning has no event, and reading may begin before it.
TEST_F(EarlyAnswerQueueTest, ACorkedStreamThatIsOverByThenEndsOnceItIsLeft) {
  CompletionQueue queue;
  void* tag;
  bool ok = true;
  context_.set_initial_metadata_corked(true);
  std::unique_ptr<Chat> chat;
  AnswerBy([&](CallSink& sink) {
    sink.OnClosed({absl::UnavailableError("nobody there"), false});
    EXPECT_TRUE(queue.Next(&tag, &ok));
    EXPECT_FALSE(ok) << "the reading";
    chat->Finish(&status_, nullptr);
    EXPECT_EQ(queue.AsyncNext(&tag, &ok, absl::Now()),
              CompletionQueue::TIMEOUT);
  });
  chat = MakeChat(queue, /*start=*/false);
  SayResponse response;
  chat->Read(&response, nullptr);
  chat->StartCall(nullptr);
  EXPECT_TRUE(queue.Next(&tag, &ok));
  EXPECT_EQ(status_.error_code(), StatusCode::UNAVAILABLE);
  queue.Shutdown();
  EXPECT_FALSE(queue.Next(&tag, &ok));
}

// ---- Reactors.

// Writes once there are initial metadata, and cancels in the end.
class Writer final : public ClientBidiReactor<SayRequest, SayResponse> {
 public:
  explicit Writer(ClientContext* context) : context_(*context) {}

  void OnReadInitialMetadataDone(bool ok) override {
    EXPECT_TRUE(ok);
    StartWrite(&request_);
  }
  void OnWriteDone(bool ok) override {
    EXPECT_TRUE(ok) << "a write that was begun by a reaction";
    context_.TryCancel();
  }
  void OnDone(const Status& status) override {
    EXPECT_EQ(status.error_code(), StatusCode::CANCELLED) << status;
    done_.Notify();
  }
  void Wait() { done_.WaitForNotification(); }

 private:
  ClientContext& context_;
  SayRequest request_;
  absl::Notification done_;
};

TEST_F(EarlyAnswerTest, AReactionToItCanWrite) {
  AnswerBy([](CallSink& sink) {
    IncomingFrame metadata;
    sink.OnFrame(metadata);
  });
  Writer writer(&context_);
  internal::ClientCallbackReaderWriterFactory<SayRequest, SayResponse>::Create(
      channel_.get(), Method(internal::RpcMethod::BIDI_STREAMING), &context_,
      &writer);
  writer.StartCall();
  writer.Wait();
  EXPECT_EQ(transport_->sent(), 1);
}

class Reader final : public ClientReadReactor<SayResponse> {
 public:
  void OnReadDone(bool ok) override {
    if (!ok) return;
    ++count_;
    StartRead(&response_);
  }
  void OnDone(const Status& status) override {
    EXPECT_TRUE(status.ok()) << status;
    done_.Notify();
  }
  int Wait() {
    done_.WaitForNotification();
    return count_;
  }
  SayResponse* response() { return &response_; }

 private:
  SayResponse response_;
  int count_ = 0;
  absl::Notification done_;
};

TEST_F(EarlyAnswerTest, WhatReactionsReadGivesItsWindowBack) {
  CallSink* open = nullptr;
  AnswerBy([&](CallSink& sink) {
    for (int i = 0; i < 2; ++i) {
      IncomingFrame frame = EmptyMessage(kWindow / 2);
      sink.OnFrame(frame);
    }
    open = &sink;
  });
  Reader reader;
  SayRequest request;
  internal::ClientCallbackReaderFactory<SayResponse>::Create(
      channel_.get(), Method(internal::RpcMethod::SERVER_STREAMING), &context_,
      &request, &reader);
  reader.StartRead(reader.response());
  reader.StartCall();
  while (transport_->released() < kWindow) std::this_thread::yield();
  IncomingFrame last;
  last.end = true;
  open->OnFrame(last);
  open->OnClosed({});
  EXPECT_EQ(reader.Wait(), 2);
}

}  // namespace
}  // namespace rpc::testing
