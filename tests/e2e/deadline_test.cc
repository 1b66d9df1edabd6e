// Goal: a server sees the deadline that its client set, whichever way the call
// goes: sent as it is started, out of registered memory, or after it waited for
// its connection; and none where there is none.
// Method: a handler that notes its call's deadline. Both sides share a clock,
// so that the two are as far apart as the call was under way.
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/resources.h"

namespace e2e {
namespace {

constexpr absl::Duration kUnderWay = absl::Seconds(2);
constexpr absl::Duration kWaiting = absl::Seconds(5);  // more than that

class NotingProbe final : public Probe::Service {
 public:
  absl::Time last() const {
    const absl::MutexLock lock(&mutex_);
    return last_;
  }

 private:
  rpc::Status Block(rpc::ServerContext* context, const Blob* request,
                    Nothing* response) override {
    const absl::MutexLock lock(&mutex_);
    last_ = context->raw_deadline();
    return rpc::Status::OK;
  }

  mutable absl::Mutex mutex_;
  absl::Time last_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

class DeadlineTest : public testing::Test {
 protected:
  // Port 0: any.
  void Serve(int port) {
    rpc::ServerBuilder builder;
    builder.AddListeningPort(ServerUri(port), rpc::InsecureServerCredentials(),
                             &port_);
    builder.AddChannelArgument("verbena.device",
                               TheDeviceUnderTest().server_device);
    builder.RegisterService(&probe_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }

  // What the server saw.
  absl::Time CallWith(const Client& client, absl::Time deadline,
                      size_t bytes = 0) {
    rpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(deadline);
    Blob request;
    request.set_data(std::string(bytes, 'x'));
    Nothing response;
    EXPECT_OK(client.stub().Block(&context, request, &response));
    return probe_.last();
  }

  static void ExpectNear(absl::Time seen, absl::Time set) {
    EXPECT_GT(seen, set - absl::Milliseconds(1));
    EXPECT_LT(seen, set + kUnderWay);
  }

  NotingProbe probe_;
  int port_ = 0;
  std::unique_ptr<rpc::Server> server_;
};

TEST_F(DeadlineTest, ReachesTheServerWithCallsOfAllSizes) {
  Serve(0);
  const Client client(ServerUri(port_));
  // The first call is another one: it defines its method.
  for (const size_t bytes : {0, 0, 64, 1000, 5000, 100'000}) {
    SCOPED_TRACE(bytes);
    const absl::Time deadline = absl::Now() + absl::Hours(1);
    ExpectNear(CallWith(client, deadline, bytes), deadline);
    EXPECT_EQ(CallWith(client, absl::InfiniteFuture(), bytes),
              absl::InfiniteFuture());
  }
}

TEST_F(DeadlineTest, ReachesTheServerAfterWaitingForIt) {
  Serve(PortToComeBackTo());
  const Client client(ServerUri(port_), QuickReconnect());
  CallWith(client, absl::InfiniteFuture());
  server_->Shutdown();
  server_.reset();
  const absl::Time deadline = absl::Now() + absl::Minutes(10);
  std::thread restart([this] {
    absl::SleepFor(kWaiting);
    Serve(port_);
  });
  // One of them is the first of its connection.
  std::thread another([&] { CallWith(client, deadline); });
  ExpectNear(CallWith(client, deadline), deadline);
  another.join();
  ExpectNear(probe_.last(), deadline);
  restart.join();
}

TEST_F(DeadlineTest, BeyondAllTimeIsFarAway) {
  Serve(0);
  const Client client(ServerUri(port_));
  const absl::Time far = absl::Now() + absl::Hours(24 * 365 * 5'000);
  for (int i = 0; i < 2; ++i) {
    EXPECT_GT(CallWith(client, far), absl::Now() + absl::Hours(24 * 365 * 100));
  }
}

TEST_F(DeadlineTest, ThatHasPassedEndsTheCallBeforeItBegins) {
  Serve(0);
  const Client client(ServerUri(port_));
  CallWith(client, absl::InfiniteFuture());
  for (const absl::Time past :
       {absl::Now() - absl::Nanoseconds(1), absl::InfinitePast()}) {
    rpc::ClientContext context;
    context.set_deadline(past);
    Nothing response;
    EXPECT_TRUE(HasCode(client.stub().Block(&context, Blob(), &response),
                        rpc::StatusCode::DEADLINE_EXCEEDED));
    EXPECT_FALSE(context.may_have_run());
  }
}

}  // namespace
}  // namespace e2e
