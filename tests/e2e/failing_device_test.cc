// Goal: whichever control call of a device fails, once, in the life of a server
// and a client, their calls end with a status, both go on as if nothing had
// happened, and nothing leaks.
// Method: the program's own MakeSoftwareProvider and MakeHardwareProvider give
// out failing providers: the linker puts the ones below in their place
// (--wrap). The same program is run with the first call failing, then the
// second, and so on, until it has no call left to fail. Its threads call in
// another order each time; what so was left out fails by name.
#include <cerrno>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rdma_transport/hardware/hardware_options.h"
#include "rdma_transport/provider/failing_provider.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/resources.h"

namespace {

rdma::FaultPlan* current_plan = nullptr;

std::unique_ptr<rdma::Provider> Failing(
    std::unique_ptr<rdma::Provider> provider) {
  if (current_plan == nullptr) return provider;
  return rdma::MakeFailingProvider(std::move(provider), current_plan);
}

}  // namespace

// The names that --wrap makes of the mangled ones.
#define SOFTWARE(prefix) prefix##_ZN4rdma20MakeSoftwareProviderEv
#define HARDWARE(prefix) \
  prefix##_ZN4rdma20MakeHardwareProviderERKNS_15HardwareOptionsE

// References and results that are no C types are meant here.
#pragma GCC diagnostic ignored "-Wpedantic"
extern "C" {
std::unique_ptr<rdma::Provider> SOFTWARE(__real_)();
std::unique_ptr<rdma::Provider> SOFTWARE(__wrap_)() {
  return Failing(SOFTWARE(__real_)());
}
std::unique_ptr<rdma::Provider> HARDWARE(__real_)(const rdma::HardwareOptions&);
std::unique_ptr<rdma::Provider> HARDWARE(__wrap_)(
    const rdma::HardwareOptions& options) {
  return Failing(HARDWARE(__real_)(options));
}
}

namespace e2e {
namespace {

constexpr absl::Duration kLongestCall = absl::Seconds(5);

// A server and a client with calls of all kinds. The errors of the first calls
// are what this is for; in the end a call must be served.
void ServeAndCall(std::set<rpc::StatusCode>* codes) {
  std::optional<Server> server;
  for (int attempt = 0; attempt < 2; ++attempt) {
    server.emplace(Arguments{{"verbena.pollers", 2}});
    if (server->ok()) break;
  }
  ASSERT_TRUE(server->ok()) << server->status() << ", though it failed once";
  std::optional<Client> client;
  const auto call = [&](size_t message_bytes, size_t attachment_bytes) {
    const absl::Time start = absl::Now();
    const rpc::Status status =
        client->Echo(message_bytes, attachment_bytes, kLongestCall);
    EXPECT_LT(absl::Now() - start, kLongestCall + absl::Seconds(3));
    codes->insert(status.error_code());
    return status.ok();
  };
  // A channel that could not be made is lame for good, as in gRPC: its calls
  // say why, and the next channel is another.
  client.emplace(server->address(), QuickReconnect());
  if (!call(100, 0)) client.emplace(server->address(), QuickReconnect());
  call(100'000, 0);
  call(100, 1'000'000);
  EXPECT_TRUE(Eventually([&] { return call(100, 20'000); }));
  // The second connection is handed over to the second poller.
  Arguments own = QuickReconnect();
  own["grpc.use_local_subchannel_pool"] = 1;
  client.emplace(server->address(), own);
  call(100, 0);
  EXPECT_TRUE(Eventually([&] {
    const rpc::Status status =
        Client(server->address(), own).Echo(100, 0, kLongestCall);
    codes->insert(status.error_code());
    return status.ok();
  }));
}

void RunWith(rdma::FaultPlan& plan, std::set<rpc::StatusCode>* codes) {
  current_plan = &plan;
  ServeAndCall(codes);
  EXPECT_TRUE(Eventually([&] { return plan.Leaks().empty(); })) << plan.Leaks();
  current_plan = nullptr;
}

TEST(FailingDeviceTest, WhicheverCallFailsAllGoesOnAndNothingLeaks) {
  std::set<std::string> failed_calls;
  std::set<rpc::StatusCode> codes;
  int runs = 0;
  for (;; ++runs) {
    rdma::FaultPlan plan;
    plan.FailCall(runs, ENOMEM);
    RunWith(plan, &codes);
    ASSERT_FALSE(HasFailure())
        << "call " << runs << " failed, " << plan.failed_call();
    if (!plan.failed()) break;
    failed_calls.insert(plan.failed_call());
  }
  RecordProperty("calls_failed", runs);
  for (const char* const call :
       {"Accept", "Adopt", "AllocPd", "AllocateMemory", "Connect",
        "CreateCompChannel", "CreateConnectionManager", "CreateCq", "CreateQp",
        "CreateSrq", "Listen", "Open", "RegMr", "Release"}) {
    if (failed_calls.contains(call)) continue;
    rdma::FaultPlan plan;
    plan.FailFirst(call, ENOMEM);
    RunWith(plan, &codes);
    ASSERT_FALSE(HasFailure()) << call << " failed";
    EXPECT_TRUE(plan.failed()) << call << " was not called";
  }
  // DEADLINE_EXCEEDED would be a call that nobody looked after.
  EXPECT_THAT(codes, testing::IsSubsetOf(
                         {rpc::StatusCode::OK, rpc::StatusCode::UNAVAILABLE,
                          rpc::StatusCode::RESOURCE_EXHAUSTED}));
}

}  // namespace
}  // namespace e2e
