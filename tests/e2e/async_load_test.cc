// Goal: thousands of calls at a time by one completion queue, with several
// threads on either side, each get their own answer, and each event once.
// Method: calls that know what is to come, and end themselves; asynchronous
// servers with as many threads.
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/e2e/device_under_test.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/parcels.h"
#include "tests/e2e/streams.rpc.pb.h"
#include "tests/e2e/streams_services.h"

namespace e2e {
namespace {

constexpr int kThreads = 3;

// What a tag points to.
class Step {
 public:
  virtual ~Step() = default;
  virtual void Proceed(bool ok) = 0;
};

// Threads that take a queue's events until it is over.
class Threads {
 public:
  explicit Threads(rpc::CompletionQueue* queue) : queue_(*queue) {
    for (int i = 0; i < kThreads; ++i) {
      threads_.emplace_back([this] {
        void* tag;
        bool ok;
        while (queue_.Next(&tag, &ok)) static_cast<Step*>(tag)->Proceed(ok);
      });
    }
  }
  // Nothing new begins.
  ~Threads() {
    queue_.Shutdown();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  rpc::CompletionQueue& queue_;
  std::vector<std::thread> threads_;
};

// ---- Unary calls.

// Asks for a call, has another one ask, and answers it.
class Answer final : public Step {
 public:
  Answer(Parcels::AsyncService* service, rpc::ServerCompletionQueue* queue)
      : service_(*service), queue_(*queue) {
    service->RequestUnary(&context_, &request_, &responder_, queue, queue,
                          this);
  }
  void Proceed(bool ok) override {
    if (!ok || finished_) {
      EXPECT_EQ(ok, finished_) << "the server shut down, or it did not answer";
      delete this;
      return;
    }
    new Answer(&service_, &queue_);
    finished_ = true;
    responder_.Finish(request_, rpc::Status::OK, this);
  }

 private:
  Parcels::AsyncService& service_;
  rpc::ServerCompletionQueue& queue_;
  rpc::ServerContext context_;
  Parcel request_;
  rpc::ServerAsyncResponseWriter<Parcel> responder_{&context_};
  bool finished_ = false;
};

class UnaryLoad {
 public:
  UnaryLoad(Parcels::Stub* stub, rpc::CompletionQueue* queue, int calls)
      : stub_(*stub), queue_(*queue), calls_(calls), left_(calls) {}

  // So many at a time, each of which begins the next.
  void Run(int at_a_time) {
    for (int i = 0; i < at_a_time; ++i) Begin();
    done_.WaitForNotification();
  }

 private:
  class Call final : public Step {
   public:
    Call(UnaryLoad* load, int number) : load_(*load), number_(number) {
      Parcel request = ParcelOf(static_cast<size_t>(number % 500));
      request.set_code(number);
      reader_ = load->stub_.AsyncUnary(&context_, request, &load->queue_);
      reader_->Finish(&response_, &status_, this);
    }
    void Proceed(bool ok) override {
      EXPECT_TRUE(ok);
      EXPECT_OK(status_);
      EXPECT_EQ(response_.code(), number_);
      EXPECT_EQ(response_.content().data().size(),
                static_cast<size_t>(number_ % 500));
      UnaryLoad& load = load_;
      delete this;
      load.Begin();
      load.OnDone();
    }

   private:
    UnaryLoad& load_;
    const int number_;
    TimedContext context_;
    Parcel response_;
    rpc::Status status_;
    std::unique_ptr<rpc::ClientAsyncResponseReader<Parcel>> reader_;
  };

  void Begin() {
    const int number = next_++;
    if (number < calls_) new Call(this, number);
  }
  void OnDone() {
    if (--left_ == 0) done_.Notify();
  }

  Parcels::Stub& stub_;
  rpc::CompletionQueue& queue_;
  const int calls_;
  std::atomic<int> next_{0};
  std::atomic<int> left_;
  absl::Notification done_;
};

TEST(AsyncLoadTest, ThousandsOfUnaryCallsAtATime) {
  const int at_a_time = TheDeviceUnderTest().Rounds(4'000);
  Parcels::AsyncService service;
  std::unique_ptr<rpc::ServerCompletionQueue> server_queue;
  std::optional<Server> server(std::in_place, Arguments(), ServerUri(),
                               &service, &server_queue);
  ASSERT_TRUE(server->ok()) << server->status();
  const Threads server_threads(server_queue.get());
  // Fewer than calls: some wait.
  for (int i = 0; i < at_a_time / 4; ++i) {
    new Answer(&service, server_queue.get());
  }
  {
    const auto stub =
        Parcels::NewStub(Client(server->address()).shared_channel());
    rpc::CompletionQueue queue;
    const Threads threads(&queue);
    UnaryLoad load(stub.get(), &queue, 3 * at_a_time);
    load.Run(at_a_time);
  }
  server.reset();
}

// ---- Streams.

class Chatter final : public Step {
 public:
  Chatter(Streams::Stub* stub, rpc::CompletionQueue* queue, int first,
          int messages, std::function<void()> done)
      : next_(first), end_(first + messages), done_(std::move(done)) {
    stream_ = stub->PrepareAsyncChat(&context_, queue);
    stream_->StartCall(this);
  }

  void Proceed(bool ok) override {
    switch (state_) {
      case State::kReading:
        EXPECT_TRUE(ok);
        EXPECT_EQ(item_.number(), next_);
        ++next_;
        [[fallthrough]];
      case State::kStarting:
        EXPECT_TRUE(ok);
        if (next_ == end_) {
          state_ = State::kEnding;
          return stream_->WritesDone(this);
        }
        state_ = State::kWriting;
        item_.set_number(next_);
        return stream_->Write(item_, this);
      case State::kWriting:
        EXPECT_TRUE(ok);
        state_ = State::kReading;
        return stream_->Read(&item_, this);
      case State::kEnding:
        EXPECT_TRUE(ok);
        state_ = State::kReadingEnd;
        return stream_->Read(&item_, this);
      case State::kReadingEnd:
        EXPECT_FALSE(ok);
        state_ = State::kFinishing;
        return stream_->Finish(&status_, this);
      case State::kFinishing:
        EXPECT_TRUE(ok);
        EXPECT_OK(status_);
        const std::function<void()> done = std::move(done_);
        delete this;
        return done();
    }
  }

 private:
  enum class State {
    kStarting,
    kWriting,
    kReading,
    kEnding,
    kReadingEnd,
    kFinishing,
  };

  State state_ = State::kStarting;
  int64_t next_;
  const int64_t end_;
  std::function<void()> done_;
  TimedContext context_;
  Item item_;
  rpc::Status status_;
  std::unique_ptr<rpc::ClientAsyncReaderWriter<Item, Item>> stream_;
};

TEST(AsyncLoadTest, HundredsOfStreamsAtATime) {
  const int streams = TheDeviceUnderTest().Rounds(300);
  constexpr int kMessages = 50;
  StreamsProgress progress;
  const std::unique_ptr<ServedStreams> served =
      ServeStreams(Api::kQueue, &progress);
  const Server server({}, ServerUri(), &served->service(), served->queue());
  ASSERT_TRUE(server.ok()) << server.status();
  served->Begin();
  const auto stub = Streams::NewStub(Client(server.address()).shared_channel());
  rpc::CompletionQueue queue;
  const Threads threads(&queue);
  std::atomic<int> left(streams);
  absl::Notification done;
  for (int i = 0; i < streams; ++i) {
    new Chatter(stub.get(), &queue, i * kMessages, kMessages, [&] {
      if (--left == 0) done.Notify();
    });
  }
  done.WaitForNotification();
}

}  // namespace
}  // namespace e2e
