// Goal: handlers run on the thread that received their call, but for those that
// keep it for long; what a device takes to post a response is not their doing.
// Method: a transport whose calls all happen on the caller's thread, and whose
// posting may take long; handlers say which thread they are on.
#include <pthread.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <utility>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rpc/internal/handler_pacer.h"
#include "rpc/rpc.h"
#include "tests/rpc/echo.rpc.pb.h"
#include "tests/rpc/echo_service.h"
#include "tests/rpc/loopback_transport.h"

namespace rpc::testing {
namespace {

using internal::HandlerPacer;

// Many times what it takes to see a method as slow.
constexpr int kCalls = 8 * static_cast<int>(HandlerPacer::kSampleEvery);
constexpr std::chrono::nanoseconds kLong = 5 * HandlerPacer::kLong;

class Service final : public Echo::Service {
 public:
  std::chrono::nanoseconds takes{0};
  size_t response_bytes = 1;

  // How many calls, since this was asked last.
  int on_callers_thread() { return std::exchange(on_callers_thread_, 0); }

 private:
  Status Say(ServerContext*, const SayRequest*,
             SayResponse* response) override {
    on_callers_thread_ += pthread_equal(pthread_self(), caller_);
    if (takes.count() > 0) std::this_thread::sleep_for(takes);
    response->mutable_text()->resize(response_bytes);
    return Status::OK;
  }

  const pthread_t caller_ = pthread_self();
  int on_callers_thread_ = 0;
};

class HandlerThreadsTest : public ::testing::Test {
 protected:
  void Say(int times = kCalls) {
    for (int i = 0; i < times; ++i) {
      ClientContext context;
      SayResponse response;
      ASSERT_TRUE(echo_.stub().Say(&context, SayRequest(), &response).ok());
    }
  }

  Service service_;
  EchoServer echo_{LoopbackOptions{.send_time = absl::FromChrono(kLong)},
                   &service_};
};

TEST_F(HandlerThreadsTest, AQuickOneStaysHoweverLongPostingTakes) {
  Say();
  // Not all: a busy machine may keep a thread for long, too.
  EXPECT_GT(service_.on_callers_thread(), kCalls / 4);
}

TEST_F(HandlerThreadsTest, ASlowOneLeavesAndComesBack) {
  service_.takes = kLong;
  Say();
  EXPECT_LT(service_.on_callers_thread(), kCalls / 4);
  service_.takes = {};
  for (int i = 0; i < 20 && service_.on_callers_thread() == 0; ++i) Say();
  Say();
  EXPECT_GT(service_.on_callers_thread(), 0);
}

TEST_F(HandlerThreadsTest, ALargeResponseCountsAsWell) {
  service_.response_bytes = 16 << 20;
  Say(4);
  EXPECT_EQ(service_.on_callers_thread(), 2);
}

}  // namespace
}  // namespace rpc::testing
