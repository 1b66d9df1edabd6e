// Goal: handlers run on the thread that received their call, but for those that
// keep it for long; what a device takes to post a response is not their doing.
// Method: a transport whose calls all happen on the caller's thread, and whose
// posting may take long; handlers say which thread they are on.
#include <pthread.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

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
  bool throws = false;
  // What the next calls answer with, and take no time for.
  std::vector<std::string> responses;

  // How many calls, since this was asked last.
  int on_callers_thread() { return std::exchange(on_callers_thread_, 0); }

 private:
  Status Say(ServerContext*, const SayRequest*,
             SayResponse* response) override {
    on_callers_thread_ += pthread_equal(pthread_self(), caller_);
    if (takes.count() > 0) std::this_thread::sleep_for(takes);
    if (throws) throw 1;
    if (!responses.empty()) {
      *response->mutable_text() = std::move(responses.back());
      responses.pop_back();
    }
    return Status::OK;
  }

  const pthread_t caller_ = pthread_self();
  int on_callers_thread_ = 0;
};

// Takes long with what a handler sends.
class Slow final : public experimental::Interceptor {
 public:
  void Intercept(experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(
            experimental::InterceptionHookPoints::PRE_SEND_MESSAGE)) {
      std::this_thread::sleep_for(kLong);
    }
    methods->Proceed();
  }
};

class SlowOnes final : public experimental::ServerInterceptorFactoryInterface {
 public:
  experimental::Interceptor* CreateServerInterceptor(
      experimental::ServerRpcInfo*) override {
    return new Slow;
  }
};

void AddSlowOnes(ServerBuilder& builder) {
  std::vector<std::unique_ptr<experimental::ServerInterceptorFactoryInterface>>
      factories;
  factories.push_back(std::make_unique<SlowOnes>());
  builder.experimental().SetInterceptorCreators(std::move(factories));
}

class HandlerThreadsTest : public ::testing::Test {
 protected:
  void Start(std::chrono::nanoseconds send_time,
             const std::function<void(ServerBuilder&)>& configure = {}) {
    echo_.emplace(LoopbackOptions{.send_time = absl::FromChrono(send_time)},
                  &service_, ChannelArguments(), configure);
  }

  void Say(int times = kCalls) {
    for (int i = 0; i < times; ++i) {
      ClientContext context;
      SayResponse response;
      EXPECT_EQ(echo_->stub().Say(&context, SayRequest(), &response).ok(),
                !service_.throws);
    }
  }

  // Whose function takes long only where the machine is busy: then its calls
  // leave the caller's thread, and come back, as those of any method do that is
  // quick again. Were the posting counted, they would not.
  void ExpectToStay() {
    int on_callers_thread = 0;
    for (int i = 0; i < 20 && on_callers_thread <= kCalls / 4; ++i) {
      Say();
      on_callers_thread = service_.on_callers_thread();
    }
    EXPECT_GT(on_callers_thread, kCalls / 4);
  }

  Service service_;
  std::optional<EchoServer> echo_;
};

TEST_F(HandlerThreadsTest, AQuickOneStaysHoweverLongPostingTakes) {
  Start(kLong);
  ExpectToStay();
}

TEST_F(HandlerThreadsTest, ASlowOneLeavesAndComesBack) {
  Start(kLong);
  service_.takes = kLong;
  Say();
  EXPECT_LT(service_.on_callers_thread(), kCalls / 4);
  service_.takes = {};
  for (int i = 0; i < 20 && service_.on_callers_thread() == 0; ++i) Say();
  Say();
  EXPECT_GT(service_.on_callers_thread(), 0);
}

// It takes long to serialize, and nothing else does.
TEST_F(HandlerThreadsTest, ALargeResponseCountsAsWell) {
  Start(std::chrono::nanoseconds(0));
  service_.responses.assign(4, std::string(16 << 20, 'x'));
  Say(4);
  EXPECT_EQ(service_.on_callers_thread(), 2);
}

TEST_F(HandlerThreadsTest, InterceptorsCountAsWell) {
  Start(std::chrono::nanoseconds(0), AddSlowOnes);
  Say();
  EXPECT_LT(service_.on_callers_thread(), kCalls / 4);
}

TEST_F(HandlerThreadsTest, OneThatThrowsIsNoSlowerForIt) {
  Start(kLong);
  service_.throws = true;
  ExpectToStay();
}

}  // namespace
}  // namespace rpc::testing
