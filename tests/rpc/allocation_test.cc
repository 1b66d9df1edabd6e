// A warm unary call allocates nothing, on either side and by either API:
// counted where operator new is called, over the transport within the process,
// which allocates nothing either.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>

#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/rpc/echo_service.h"
#include "tests/rpc/loopback_transport.h"

namespace {

std::atomic<int64_t> allocations{0};

void* CountedAllocate(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* const memory = std::malloc(size);
  if (memory == nullptr) std::abort();
  return memory;
}

}  // namespace

void* operator new(size_t size) { return CountedAllocate(size); }
void* operator new[](size_t size) { return CountedAllocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

namespace rpc::testing {
namespace {

constexpr int kCalls = 1000;

// Does nothing of its own that allocates.
class QuietSyncEcho final : public Echo::Service {
  Status Say(ServerContext*, const SayRequest* request,
             SayResponse* response) override {
    response->set_payload(request->payload());
    return Status();
  }
};

class QuietCallbackEcho final : public Echo::CallbackService {
  ServerUnaryReactor* Say(CallbackServerContext* context,
                          const SayRequest* request,
                          SayResponse* response) override {
    response->set_payload(request->payload());
    ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(Status());
    return reactor;
  }
};

// Allocations of kCalls calls of `call` when warm: the least of some rounds,
// for on a busy machine a handler may seem slow and go to another thread.
int64_t Count(const std::function<void()>& call) {
  constexpr int kRounds = 10;
  int64_t least = INT64_MAX;
  for (int round = 0; round < kRounds && least > 0; ++round) {
    const int64_t before = allocations.load();
    for (int i = 0; i < kCalls; ++i) call();
    least = std::min(least, allocations.load() - before);
  }
  return least;
}

class AllocationTest : public ::testing::TestWithParam<bool> {
 protected:
  AllocationTest()
      : echo_({}, GetParam() ? static_cast<Service*>(&sync_)
                             : static_cast<Service*>(&callback_)) {
    request_.set_payload(std::string(60, 'p'));
  }

  QuietSyncEcho sync_;
  QuietCallbackEcho callback_;
  EchoServer echo_;
  SayRequest request_;
  SayResponse response_;
};

TEST_P(AllocationTest, OurCounterCounts) {
  EXPECT_EQ(Count([] { ::operator delete(::operator new(8)); }), kCalls);
}

TEST_P(AllocationTest, BlockingCall) {
  EXPECT_EQ(Count([&] {
              ClientContext context;
              const Status status =
                  echo_.stub().Say(&context, request_, &response_);
              if (!status.ok()) std::abort();
            }),
            0);
  EXPECT_EQ(response_.payload(), request_.payload());
}

TEST_P(AllocationTest, BlockingCallBeyondTheScratchMemory) {
  request_.set_payload(std::string(3000, 'p'));
  EXPECT_EQ(Count([&] {
              ClientContext context;
              const Status status =
                  echo_.stub().Say(&context, request_, &response_);
              if (!status.ok()) std::abort();
            }),
            0);
  EXPECT_EQ(response_.payload(), request_.payload());
}

TEST_P(AllocationTest, ReactorCall) {
  class Reactor final : public ClientUnaryReactor {
   public:
    Event done;

   private:
    void OnDone(const Status& status) override {
      if (!status.ok()) std::abort();
      done.Set();
    }
  };
  EXPECT_EQ(Count([&] {
              ClientContext context;
              Reactor reactor;
              echo_.stub().async()->Say(&context, &request_, &response_,
                                        &reactor);
              reactor.StartCall();
              reactor.done.WaitUntil(absl::InfiniteFuture());
            }),
            0);
}

// The state of such a call comes from a list of the thread that starts it and
// goes to one of the thread that ends it; now and then they exchange.
TEST(CallbackAllocationTest, CallbackCall) {
  QuietCallbackEcho service;
  EchoServer echo({.threads = 1}, &service);
  SayRequest request;
  SayResponse response;
  EXPECT_EQ(Count([&] {
              ClientContext context;
              Event done;
              echo.stub().async()->Say(&context, &request, &response,
                                       [&done](const Status& status) {
                                         if (!status.ok()) std::abort();
                                         done.Set();
                                       });
              done.WaitUntil(absl::InfiniteFuture());
            }),
            0);
}

INSTANTIATE_TEST_SUITE_P(ServerApis, AllocationTest, ::testing::Bool(),
                         [](const ::testing::TestParamInfo<bool>& info) {
                           return info.param ? "Sync" : "Callback";
                         });

}  // namespace
}  // namespace rpc::testing
