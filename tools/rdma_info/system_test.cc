// Goal: limits are read as the kernel applies them. Method: files of the test;
// and of this machine, what holds on every one.
#include "tools/rdma_info/system.h"

#include <sys/resource.h>

#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/rdma_info/made_up_files.h"

namespace rdma_info {
namespace {

using ::testing::IsEmpty;

constexpr char kFirstNamespace[] = "         0          0 4294967295";
constexpr char kRootless[] = "         0       1000          1";
constexpr char kAllCapabilities[] = "Name:\tx\nCapEff:\t000001ffffffffff";
// All but CAP_IPC_LOCK, which is 14.
constexpr char kNoIpcLock[] = "Name:\tx\nCapEff:\t000001ffffffbfff";

bool Ignores(const char* uid_map, const char* status) {
  MadeUpFiles files;
  files.Write("proc/self/uid_map", uid_map);
  files.Write("proc/self/status", status);
  return IgnoresMemlock(files.roots());
}

TEST(IgnoresMemlockTest, TheCapabilityDoesIt) {
  EXPECT_TRUE(Ignores(kFirstNamespace, kAllCapabilities));
  EXPECT_FALSE(Ignores(kFirstNamespace, kNoIpcLock));
}

TEST(IgnoresMemlockTest, RootOfARootlessContainerHasItForNothing) {
  EXPECT_FALSE(Ignores(kRootless, kAllCapabilities));
}

TEST(IgnoresMemlockTest, WithoutProcThereIsNone) {
  MadeUpFiles files;
  EXPECT_FALSE(IgnoresMemlock(files.roots()));
}

TEST(CgroupLimitsTest, WithoutTheControllerThereIsNone) {
  MadeUpFiles files;
  files.Write("proc/self/cgroup", "0::/user.slice");
  EXPECT_THAT(CollectCgroupLimits(files.roots()), IsEmpty());
}

TEST(CgroupLimitsTest, TheStrictestOnTheWayUpHolds) {
  MadeUpFiles files;
  files.Write("proc/self/cgroup", "0::/a/b");
  files.Write("sys/fs/cgroup/a/b/rdma.max",
              "mlx5_0 hca_handle=max hca_object=2000\n"
              "mlx5_1 hca_handle=max hca_object=max");
  files.Write("sys/fs/cgroup/a/rdma.max",
              "mlx5_0 hca_handle=3 hca_object=1000");
  const auto limits = CollectCgroupLimits(files.roots());
  ASSERT_EQ(limits.size(), 1u);  // max is none
  EXPECT_EQ(limits[0].device, "mlx5_0");
  EXPECT_EQ(limits[0].contexts, 3u);
  EXPECT_EQ(limits[0].objects, 1000u);
}

TEST(CgroupLimitsTest, VersionOneHasADirectoryOfItsOwn) {
  MadeUpFiles files;
  files.Write("proc/self/cgroup", "5:memory:/m\n4:rdma:/batch\n0::/");
  files.Write("sys/fs/cgroup/rdma/batch/rdma.max",
              "rxe0 hca_handle=max hca_object=0");
  files.Write("sys/fs/cgroup/m/rdma.max", "rxe0 hca_handle=0 hca_object=max");
  const auto limits = CollectCgroupLimits(files.roots());
  ASSERT_EQ(limits.size(), 1u);
  EXPECT_EQ(limits[0].contexts, std::nullopt);
  EXPECT_EQ(limits[0].objects, 0u);
}

TEST(SystemTest, TheKernelsInterfacesAreSeen) {
  MadeUpFiles files;
  System system = CollectSystem(files.roots());
  EXPECT_FALSE(system.has_uverbs);
  EXPECT_FALSE(system.has_rdma_ucm);
  EXPECT_EQ(system.rdma_cm, Access::kMissing);
  files.Write("sys/class/infiniband_verbs/abi_version", "6");
  files.Write("sys/class/misc/rdma_cm/dev", "10:124");
  files.Write("dev/infiniband/rdma_cm", "");
  files.Write("proc/sys/vm/nr_hugepages", "512");
  system = CollectSystem(files.roots());
  EXPECT_TRUE(system.has_uverbs);
  EXPECT_TRUE(system.has_rdma_ucm);
  EXPECT_EQ(system.rdma_cm, Access::kGranted);
  EXPECT_EQ(system.huge_pages, 512u);
}

TEST(SystemTest, TheLimitIsThatOfThisProcess) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &before), 0);
  rlimit lower = before;
  lower.rlim_cur = 64 << 10;
  ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &lower), 0);
  const System system = CollectSystem({});
  setrlimit(RLIMIT_MEMLOCK, &before);
  EXPECT_EQ(system.memlock_bytes, uint64_t{64} << 10);
  EXPECT_GT(system.memory_bytes, 0u);
  EXPECT_NE(system.kernel, "");
}

}  // namespace
}  // namespace rdma_info
