// Goal: a channel to a name follows what the name stands for, and loses no call
// over it.
// Method: a resolver whose answers the test gives, and transports that do as it
// says.
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rpc/routing/routing_options.h"
#include "tests/rpc/routing/fake_transports.h"

namespace rpc::routing {
namespace {

using Addresses = std::vector<std::string>;
using State = ConnectivityState;

template <typename Condition>
bool Eventually(Condition condition) {
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(1));
  }
  return true;
}

class ResolutionTest : public ::testing::Test {
 protected:
  // Of the fakes, 0 is none of the addresses.
  ResolutionTest() : fakes_(4) {}

  void Answer(absl::StatusOr<Addresses> answer) {
    absl::MutexLock lock(&mutex_);
    answer_ = std::move(answer);
  }
  int resolutions() const { return resolutions_; }

  std::unique_ptr<ClientTransport> Route(absl::Duration min_time_between) {
    return fakes_.RouteName({.policy = "round_robin",
                             .min_time_between_resolutions = min_time_between},
                            [this](std::string_view) {
                              ++resolutions_;
                              absl::MutexLock lock(&mutex_);
                              return answer_;
                            });
  }
  // Goes to whichever is ready.
  void Start(ClientTransport& routing, FakeSink& sink) {
    routing.StartCall({}, Message("request"), &sink);
  }

  FakeTransports fakes_;

 private:
  absl::Mutex mutex_;
  absl::StatusOr<Addresses> answer_;
  std::atomic<int> resolutions_ = 0;
};

TEST_F(ResolutionTest, AConnectionIsMadeWhoseNameIsResolvedLater) {
  Answer(Addresses{"fake://1"});
  const auto routing = Route(absl::ZeroDuration());
  EXPECT_EQ(routing->GetState(/*try_to_connect=*/true), State::kIdle);
  EXPECT_TRUE(Eventually([&] { return fakes_[1].connects() > 0; }));
}

TEST_F(ResolutionTest, ALostConnectionHasTheNameResolvedAgain) {
  Answer(Addresses{"fake://1", "fake://2"});
  const auto routing = Route(absl::ZeroDuration());
  FakeSink first, second;
  Start(*routing, first);
  EXPECT_TRUE(Eventually([&] { return fakes_[1].connects() > 0; }));
  Answer(Addresses{"fake://3", "fake://1"});
  fakes_[1].SetState(State::kReady);
  routing::Answer(fakes_[1].WaitForCall(0), "1");
  EXPECT_TRUE(first.WaitForEnd().status.ok());
  fakes_[2].SetState(State::kTransientFailure, "gone");
  EXPECT_TRUE(Eventually([&] { return fakes_[3].connects() > 0; }));
  EXPECT_TRUE(Eventually([&] { return fakes_[2].clients() == 0; }));
  EXPECT_EQ(fakes_[1].clients(), 1);  // the same still
  // The method is known to the new one.
  fakes_[3].SetState(State::kReady);
  fakes_[1].SetState(State::kIdle);
  Start(*routing, second);
  FakeCall& call = fakes_[3].WaitForCall(0);
  EXPECT_EQ(call.options.method, 101u);
  routing::Answer(call, "3");
  EXPECT_TRUE(second.WaitForEnd().status.ok());
}

TEST_F(ResolutionTest, ACallOnAnAddressThatIsGoneGoesOnToItsEnd) {
  Answer(Addresses{"fake://1", "fake://2"});
  const auto routing = Route(absl::ZeroDuration());
  FakeSink sink;
  Start(*routing, sink);
  EXPECT_TRUE(Eventually([&] { return fakes_[1].connects() > 0; }));
  fakes_[1].SetState(State::kReady);
  FakeCall& call = fakes_[1].WaitForCall(0);
  Answer(Addresses{"fake://3"});
  fakes_[2].SetState(State::kTransientFailure, "gone");
  EXPECT_TRUE(Eventually([&] { return fakes_[2].clients() == 0; }));
  EXPECT_EQ(fakes_[1].clients(), 1);
  EXPECT_FALSE(sink.is_over());
  routing::Answer(call, "late");
  EXPECT_TRUE(sink.WaitForEnd().status.ok());
  EXPECT_EQ(sink.messages(), std::vector<std::string>{"late"});
  EXPECT_TRUE(Eventually([&] { return fakes_[1].clients() == 0; }));
}

TEST_F(ResolutionTest, AChannelMayEndWithACallOnAnAddressThatIsGone) {
  Answer(Addresses{"fake://1", "fake://2"});
  auto routing = Route(absl::ZeroDuration());
  FakeSink sink;
  Start(*routing, sink);
  EXPECT_TRUE(Eventually([&] { return fakes_[1].connects() > 0; }));
  fakes_[1].SetState(State::kReady);
  fakes_[1].WaitForCall(0);
  Answer(Addresses{"fake://3"});
  fakes_[2].SetState(State::kTransientFailure, "gone");
  EXPECT_TRUE(Eventually([&] { return fakes_[2].clients() == 0; }));
  routing.reset();
  EXPECT_EQ(sink.WaitForEnd().status.code(), absl::StatusCode::kCancelled);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(fakes_[i].clients(), 0) << i;
}

TEST_F(ResolutionTest, NotMoreOftenThanIsAskedFor) {
  Answer(Addresses{"fake://1"});
  const auto routing = Route(absl::Hours(1));
  FakeSink sink;
  Start(*routing, sink);
  EXPECT_TRUE(Eventually([&] { return fakes_[1].connects() > 0; }));
  fakes_[1].SetState(State::kTransientFailure, "gone");
  EXPECT_FALSE(sink.WaitForEnd().status.ok());
  EXPECT_EQ(resolutions(), 1);
}

TEST_F(ResolutionTest, AddressesStayWhereTheNameCannotBeResolvedAgain) {
  Answer(Addresses{"fake://1", "fake://2"});
  const auto routing = Route(absl::ZeroDuration());
  FakeSink first, second;
  Start(*routing, first);
  EXPECT_TRUE(Eventually([&] { return fakes_[1].connects() > 0; }));
  Answer(absl::UnavailableError("no answer"));
  fakes_[2].SetState(State::kTransientFailure, "gone");
  EXPECT_TRUE(Eventually([&] { return resolutions() >= 2; }));
  fakes_[1].SetState(State::kReady);
  routing::Answer(fakes_[1].WaitForCall(0), "1");
  EXPECT_TRUE(first.WaitForEnd().status.ok());
  Start(*routing, second);
  routing::Answer(fakes_[1].WaitForCall(1), "1");
  EXPECT_TRUE(second.WaitForEnd().status.ok());
}

}  // namespace
}  // namespace rpc::routing
