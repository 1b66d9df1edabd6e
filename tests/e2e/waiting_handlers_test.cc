// Goal: handlers that are coroutines and wait take no threads, however many
// they are. Method: handlers that wait at a gate of the test's, or for their
// clients, called by coroutines of the same process, whose threads are counted
// before and meanwhile. A few more may run then: a busy machine stops keepers
// within callbacks, and each that it stops, or that waits for a lock which one
// of them holds, has another one called. So the count is held against that of
// the handlers.
#include <atomic>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/e2e/device_under_test.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/one_connection.h"
#include "tests/e2e/parcels.h"
#include "tests/e2e/resources.h"

namespace e2e {
namespace {

// The threads may become more by so many while the handlers wait.
constexpr int64_t FewOf(int64_t handlers) { return handlers / 10; }

int64_t Threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                       std::filesystem::directory_iterator());
}

// Where coroutines wait until it opens. Any thread.
class Gate {
 public:
  auto operator co_await() {
    struct Awaiter {
      bool await_ready() const { return false; }
      bool await_suspend(std::coroutine_handle<> awaiter) {
        return gate.Add(awaiter);
      }
      void await_resume() const {}
      Gate& gate;
    };
    return Awaiter{*this};
  }

  size_t waiting() const {
    absl::MutexLock lock(&mutex_);
    return waiting_.size();
  }

  // They go on on this thread.
  void Open() {
    std::vector<std::coroutine_handle<>> waiting;
    {
      absl::MutexLock lock(&mutex_);
      is_open_ = true;
      waiting.swap(waiting_);
    }
    for (const std::coroutine_handle<> awaiter : waiting) awaiter.resume();
  }

 private:
  // False: it is open.
  bool Add(std::coroutine_handle<> awaiter) {
    absl::MutexLock lock(&mutex_);
    if (is_open_) return false;
    waiting_.push_back(awaiter);
    return true;
  }

  mutable absl::Mutex mutex_;
  std::vector<std::coroutine_handle<>> waiting_ ABSL_GUARDED_BY(mutex_);
  bool is_open_ ABSL_GUARDED_BY(mutex_) = false;
};

class WaitingService final : public Parcels::CoroutineService {
 public:
  Gate gate;
  std::atomic<int> chats{0};  // under way

 private:
  rpc::Task<rpc::Status> Unary(rpc::CallbackServerContext*,
                               const Parcel* request,
                               Parcel* response) override {
    co_await gate;
    *response = *request;
    co_return rpc::Status::OK;
  }

  rpc::Task<rpc::Status> Chat(
      rpc::CallbackServerContext*,
      rpc::CoroServerReaderWriter<Parcel, Parcel>* stream) override {
    ++chats;
    Parcel parcel;
    while (co_await stream->Read(&parcel)) {
      if (!co_await stream->Write(parcel)) break;
    }
    --chats;
    co_return rpc::Status::OK;
  }
};

class WaitingHandlersTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(ends_.ok());
    stub_ = Parcels::NewStub(ends_.channel());
    probe_ = Probe::NewStub(ends_.channel());
    threads_ = Threads();
  }

  // Begins `calls` of them. True, each time: it went well.
  template <class Call>
  void Begin(int calls, Call call) {
    done_ = std::make_unique<absl::BlockingCounter>(calls);
    for (int i = 0; i < calls; ++i) {
      rpc::Detach(
          [](Call call, int number, std::atomic<int>* right) -> rpc::Task<> {
            if (co_await call(number)) ++*right;
          }(call, i, &right_),
          [&](const std::exception_ptr&) { done_->DecrementCount(); });
    }
  }
  void ExpectAllRight(int calls) {
    done_->Wait();
    EXPECT_EQ(right_, calls);
  }

  WaitingService service_;
  OneConnection ends_{&service_};
  std::unique_ptr<Parcels::Stub> stub_;
  std::unique_ptr<Probe::Stub> probe_;
  int64_t threads_ = 0;  // before
  std::unique_ptr<absl::BlockingCounter> done_;
  std::atomic<int> right_{0};
};

TEST_F(WaitingHandlersTest, UnaryOnesTakeNoThreads) {
  const int calls = TheDeviceUnderTest().Rounds(3'000);
  Begin(calls, [this](int number) -> rpc::Task<bool> {
    TimedContext context;
    Parcel response;
    const rpc::Status status =
        co_await stub_->coro()->Unary(&context, ParcelFor(number), &response);
    co_return status.ok() && response.responses() == number;
  });
  EXPECT_TRUE(Eventually([&] {
    return service_.gate.waiting() == static_cast<size_t>(calls);
  })) << service_.gate.waiting();
  EXPECT_LE(Threads(), threads_ + FewOf(calls));
  service_.gate.Open();
  ExpectAllRight(calls);
}

TEST_F(WaitingHandlersTest, ThoseOfStreamsTakeNoThreads) {
  const int calls = TheDeviceUnderTest().Rounds(3'000);
  Gate clients;
  Begin(calls, [&](int number) -> rpc::Task<bool> {
    TimedContext context;
    const auto stream = stub_->coro()->Chat(&context);
    co_await clients;
    Parcel parcel = ParcelFor(number);
    const bool answered =
        co_await stream->Write(parcel) && co_await stream->Read(&parcel);
    const bool ended = co_await stream->WritesDone();
    const rpc::Status status = co_await stream->Finish();
    co_return answered&& ended&& status.ok() && parcel.responses() == number;
  });
  EXPECT_TRUE(Eventually([&] { return service_.chats == calls; }))
      << service_.chats;
  EXPECT_LE(Threads(), threads_ + FewOf(calls));
  clients.Open();
  ExpectAllRight(calls);
  EXPECT_TRUE(Eventually([&] { return service_.chats == 0; }));
}

// Or the count would show nothing.
TEST_F(WaitingHandlersTest, ThoseThatBlockTakeThreads) {
  constexpr int kCalls = 48;
  Begin(kCalls, [this](int) -> rpc::Task<bool> {
    TimedContext context;
    Nothing response;
    const rpc::Status status =
        co_await probe_->coro()->Block(&context, Blob(), &response);
    co_return status.ok();
  });
  const Client client(ends_.server().address());
  EXPECT_TRUE(Eventually([&] { return client.Observe().blocked() == kCalls; }));
  EXPECT_GT(Threads(), threads_ + kCalls / 2);
  EXPECT_OK(client.ReleaseBlocked());
  ExpectAllRight(kCalls);
}

}  // namespace
}  // namespace e2e
