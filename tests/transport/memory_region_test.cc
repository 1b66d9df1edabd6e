// Goal: memory is given back once no device and no peer can reach it, and not
// before. Method: a region of the fake device, which refuses to let it go.
#include <cerrno>
#include <memory>

#include "gtest/gtest.h"
#include "rdma_transport/verbs/protection_domain.h"
#include "tests/transport/fake_device.h"

namespace rdma::testing {
namespace {

constexpr size_t kBytes = 4096;

TEST(MemoryRegionTest, GivesItsMemoryBack) {
  FakeDevice device;
  auto pd = *ProtectionDomain::Create(&device);
  auto region = *MemoryRegion::Create(pd.get(), kBytes, IBV_ACCESS_LOCAL_WRITE);
  EXPECT_GT(device.live_bytes(), 0);
  region.reset();
  EXPECT_EQ(device.live_bytes(), 0);
}

TEST(MemoryRegionTest, KeepsMemoryThatTheDeviceDoesNotLetGo) {
  FakeDevice device;
  auto pd = *ProtectionDomain::Create(&device);
  auto region = *MemoryRegion::Create(pd.get(), kBytes, IBV_ACCESS_LOCAL_WRITE);
  ibv_mr* const mr = region->get();
  void* const memory = region->data();
  const int64_t bytes = device.live_bytes();
  device.FailDeregMr(EBUSY);
  region.reset();
  EXPECT_EQ(device.live_bytes(), bytes);
  EXPECT_EQ(device.live_regions(), 1);
  // As the process's end would.
  device.FailDeregMr(0);
  EXPECT_EQ(device.DeregMr(mr), 0);
  if (device.live_bytes() != 0) device.FreeMemory(memory, kBytes);
}

TEST(MemoryRegionTest, MayBeFreedLater) {
  FakeDevice device;
  auto pd = *ProtectionDomain::Create(&device);
  auto region = *MemoryRegion::Create(pd.get(), kBytes, IBV_ACCESS_LOCAL_WRITE);
  const uint64_t bytes = MemoryRegion::TotalBytes();
  device.FailDeregMr(EBUSY);
  EXPECT_EQ(region->Free(), EBUSY);
  EXPECT_EQ(MemoryRegion::TotalBytes(), bytes);
  device.FailDeregMr(0);
  EXPECT_EQ(region->Free(), 0);
  EXPECT_EQ(device.live_bytes(), 0);
  EXPECT_EQ(MemoryRegion::TotalBytes(), bytes - kBytes);
  region.reset();  // has nothing left to free
  EXPECT_EQ(MemoryRegion::TotalBytes(), bytes - kBytes);
}

}  // namespace
}  // namespace rdma::testing
