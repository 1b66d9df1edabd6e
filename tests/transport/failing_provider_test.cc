// Goal: the Nth call fails and no other, what is alive is counted right, and
// the owning types of rdma_transport/verbs/ leak nothing whichever call fails.
// Method: one program over the software device that makes every kind of object
// and a connection, run with N = 0, 1, 2, ... until a run is clean.
#include "rdma_transport/provider/failing_provider.h"

#include <cerrno>
#include <memory>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rdma_transport/software/software_provider.h"
#include "tests/transport/device_program.h"

namespace rdma {
namespace {

const SocketAddress& Here() {
  static const auto* here =
      new SocketAddress(*SocketAddress::FromNumeric("127.0.0.1", 0));
  return *here;
}

TEST(FailingProviderTest, WhicheverCallFailsNothingLeaks) {
  std::set<std::string> failed_calls;
  for (int n = 0; n < 100; ++n) {
    FaultPlan plan;
    plan.FailCall(n, ENOMEM);
    const absl::Status status = RunDeviceProgram(
        MakeFailingProvider(MakeSoftwareProvider(), &plan).get(), Here());
    EXPECT_EQ(plan.Leaks(), "") << "call " << n << ", " << plan.failed_call();
    failed_calls.insert(plan.failed_call());
    // MoveToError asks for the state only to save itself a move.
    if (plan.failed_call() == "QueryQp") continue;
    EXPECT_EQ(status.ok(), !plan.failed()) << status;
    if (!plan.failed()) {
      EXPECT_EQ(plan.calls(), n);
      break;
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  }
  EXPECT_THAT(
      failed_calls,
      testing::ElementsAre(
          "", "Accept", "Adopt", "AllocPd", "AllocateMemory", "Connect",
          "CreateCompChannel", "CreateConnectionManager", "CreateCq",
          "CreateQp", "CreateSrq", "DeviceFor", "Listen", "ModifyQp",
          "ModifySrq", "Open", "QueryQp", "RegMr", "Reject", "Release"));
}

TEST(FailingProviderTest, FailsOnceAndWithThatErrno) {
  FaultPlan plan;
  const std::unique_ptr<Device> device =
      *MakeFailingProvider(MakeSoftwareProvider(), &plan)->Open("soft0", {});
  plan.FailCall(plan.calls() + 1, EPERM);
  ibv_pd* const first = device->AllocPd();
  ASSERT_NE(first, nullptr);
  errno = 0;
  EXPECT_EQ(device->AllocPd(), nullptr);
  EXPECT_EQ(errno, EPERM);
  ibv_pd* const second = device->AllocPd();
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(plan.Leaks(), "2 PD, 1 device");
  EXPECT_EQ(device->DeallocPd(first), 0);
  EXPECT_EQ(device->DeallocPd(second), 0);
  EXPECT_EQ(plan.Leaks(), "1 device");
}

// A leak must be seen, or the test above could not fail.
TEST(FailingProviderTest, SeesWhatIsLeft) {
  FaultPlan plan;
  std::unique_ptr<Device> device =
      *MakeFailingProvider(MakeSoftwareProvider(), &plan)->Open("soft0", {});
  void* const memory = device->AllocateMemory(4096, MemoryUse::kLocal);
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(plan.Leaks(), "1 device, 1 memory");
  device->FreeMemory(memory, 4096);
  device.reset();
  EXPECT_EQ(plan.Leaks(), "");
}

}  // namespace
}  // namespace rdma
