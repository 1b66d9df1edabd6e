// Goal: whichever call into libibverbs, librdmacm or the kernel fails, the
// hardware provider says so and leaves nothing behind. Method: one program that
// makes every kind of object and a connection (device_program.h), run with the
// Nth call failing for N = 0, 1, 2, ... until a run is clean; by each way of
// setting connections up. Needs a device: see hardware_provider_under_test.cc.
#include "tests/hardware/failing_calls.h"

#include <dirent.h>

#include <cerrno>
#include <memory>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/conformance/provider_under_test.h"
#include "tests/transport/device_program.h"

namespace rdma {
namespace {

int CountDescriptors() {
  DIR* const directory = opendir("/proc/self/fd");
  if (directory == nullptr) return -1;
  int count = 0;
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

absl::Status RunProgram(FaultPlan* plan) {
  const conformance::ProviderUnderTest& under_test =
      conformance::TheProviderUnderTest();
  const std::unique_ptr<Provider> provider = under_test.make();
  const SocketAddress address =
      *SocketAddress::FromNumeric(conformance::OneDeviceAddress(), 0);
  SetFaultPlan(plan);
  const absl::Status status = RunDeviceProgram(provider.get(), address);
  SetFaultPlan(nullptr);
  return status;
}

// Calls whose failure a connection survives: options and farewells, what is
// tried to find a limit out, and what is tried again.
bool MayBeSurvived(const std::string& call) {
  static const auto* calls = new std::set<std::string>{
      "rdma_set_option", "rdma_disconnect", "ibv_create_qp",
      "ibv_modify_qp",   "accept4",         "epoll_ctl"};
  return calls->count(call) != 0;
}

TEST(FailingCallsTest, WhicheverCallFailsNothingLeaks) {
  // The libraries open something once a process.
  ASSERT_TRUE(RunProgram(nullptr).ok());
  const int descriptors = CountDescriptors();
  std::set<std::string> failed_calls;
  int calls = 0;
  for (bool clean = false; !clean; ++calls) {
    ASSERT_LT(calls, 1000);
    FaultPlan plan;
    plan.FailCall(calls, ENOMEM);
    const absl::Status status = RunProgram(&plan);
    clean = !plan.failed();
    failed_calls.insert(plan.failed_call());
    SCOPED_TRACE(testing::Message() << "call " << calls << ", "
                                    << plan.failed_call() << ": " << status);
    EXPECT_EQ(plan.Leaks(), "");
    EXPECT_EQ(CountDescriptors(), descriptors);
    if (clean || !MayBeSurvived(plan.failed_call())) {
      EXPECT_EQ(status.ok(), clean);
    }
    EXPECT_NE(status.code(), absl::StatusCode::kInternal);
    if (!status.ok()) {
      EXPECT_NE(status.message(), "");
    }
  }
  RecordProperty("calls", calls);
  // That the calls were seen at all.
  EXPECT_THAT(
      failed_calls,
      testing::IsSupersetOf(
          {"ibv_open_device", "ibv_query_device", "ibv_alloc_pd",
           "ibv_reg_mr_iova2", "ibv_create_comp_channel", "ibv_create_cq",
           "ibv_create_srq", "ibv_modify_srq", "ibv_create_qp", "ibv_modify_qp",
           "epoll_create1", "timerfd_create"}));
  const bool by_tcp =
      conformance::TheProviderUnderTest().name.find("tcp") != std::string::npos;
  if (by_tcp) {
    EXPECT_THAT(failed_calls,
                testing::IsSupersetOf({"_ibv_query_gid_table", "ibv_query_gid",
                                       "socket", "bind", "listen", "connect",
                                       "accept4", "send"}));
  } else {
    EXPECT_THAT(
        failed_calls,
        testing::IsSupersetOf(
            {"rdma_create_event_channel", "rdma_create_id", "rdma_bind_addr",
             "rdma_listen", "rdma_resolve_addr", "rdma_resolve_route",
             "rdma_connect", "rdma_establish", "rdma_migrate_id", "rdma_accept",
             "rdma_init_qp_attr", "rdma_set_option", "rdma_disconnect"}));
  }
}

}  // namespace
}  // namespace rdma
