// Memory regions: what can be registered, and no local use without the right
// key, inside the bounds and with the rights. What peers may do is in
// remote_access_test.cc. Method: one wrong request on a fresh connection for
// each way of being wrong. ibv_reg_mr(3); IBTA 10.6.
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "tests/conformance/memory_region_fixture.h"

namespace rdma::conformance {
namespace {

class MemoryRegionTest : public MemoryRegionFixture {};
CONFORMANCE_SUITE(MemoryRegionTest);

TEST_P(MemoryRegionTest, FreshMemoryIsAlignedAndZero) {
  for (MemoryUse use : {MemoryUse::kLocal, MemoryUse::kRemoteWritable}) {
    for (size_t bytes : {size_t{1}, size_t{4096}, size_t{3} << 20}) {
      Region region = client().Allocate(bytes, IBV_ACCESS_LOCAL_WRITE, use);
      ASSERT_FALSE(region.empty());
      EXPECT_EQ(region.addr() % 4096, 0u);
      EXPECT_EQ(region.bytes(0, bytes), std::string(bytes, '\0'));
      // Freed memory does not come back with what was in it.
      region.Fill(1);
    }
  }
}

TEST_P(MemoryRegionTest, SaysThatThereIsNoMoreMemory) {
  errno = 0;
  void* memory =
      client().device().AllocateMemory(size_t{1} << 60, MemoryUse::kLocal);
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(errno, ENOMEM);
}

TEST_P(MemoryRegionTest, RecordsWhatWasRegistered) {
  EXPECT_EQ(far_.mr()->addr, far_.data());
  EXPECT_EQ(far_.mr()->length, kBytes);
  EXPECT_EQ(far_.mr()->pd, server().pd());
  EXPECT_EQ(far_.mr()->context, server().device().context());
}

// "If IBV_ACCESS_REMOTE_WRITE or IBV_ACCESS_REMOTE_ATOMIC is set, then
// IBV_ACCESS_LOCAL_WRITE must be set too."
TEST_P(MemoryRegionTest, RefusesRemoteWritesWithoutLocalWrites) {
  for (int access : {IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_ATOMIC}) {
    errno = 0;
    EXPECT_EQ(
        server().device().RegMr(server().pd(), far_.data(), kBytes, access),
        nullptr);
    EXPECT_EQ(errno, EINVAL);
  }
}

TEST_P(MemoryRegionTest, RegistersOrRefusesForeignMemory) {
  alignas(4096) static char foreign[4096];
  errno = 0;
  ibv_mr* mr = client().device().RegMr(client().pd(), foreign, sizeof(foreign),
                                       IBV_ACCESS_LOCAL_WRITE);
  if (deviations().registers_any_memory) {
    ASSERT_NE(mr, nullptr) << std::strerror(errno);
    EXPECT_EQ(0, client().device().DeregMr(mr));
  } else {
    EXPECT_EQ(mr, nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
  }
}

TEST_P(MemoryRegionTest, RefusesALocalKeyThatIsNone) {
  ibv_sge sge = near_.sge(0, 8);
  for (uint32_t key : {near_.lkey() + 0x100, near_.lkey() ^ 1, 0u, ~0u}) {
    SCOPED_TRACE(key);
    sge.lkey = key;
    ExpectFault(SendWr(0).Sge(sge), deviations().wrong_source_lkey, false);
    ExpectFault(WriteWr(0, far_.addr(), far_.rkey()).Sge(sge),
                deviations().wrong_source_lkey, false);
    ExpectFault(ReadWr(0, far_.addr(), far_.rkey()).Sge(sge),
                deviations().wrong_target_lkey, false);
    if (HasFailure()) return;
  }
}

TEST_P(MemoryRegionTest, RefusesALocalKeyOfAnotherDomain) {
  ibv_pd* other = client().device().AllocPd();
  ASSERT_NE(other, nullptr);
  {
    Region foreign(&client().device(), other, 4096, kAllAccess,
                   MemoryUse::kRemoteWritable);
    ASSERT_FALSE(foreign.empty());
    ExpectFault(SendWr(0).Sge(foreign.sge(0, 8)),
                deviations().wrong_source_lkey, false);
    ExpectFault(ReadWr(0, far_.addr(), far_.rkey()).Sge(foreign.sge(0, 8)),
                deviations().wrong_target_lkey, false);
  }
  EXPECT_EQ(0, client().device().DeallocPd(other));
}

TEST_P(MemoryRegionTest, HoldsLocalPiecesToTheirBounds) {
  std::vector<ibv_sge> outside = {
      near_.sge(kBytes - 7, 8),
      near_.sge(kBytes, 1),
      {.addr = near_.addr() - 1, .length = 8, .lkey = near_.lkey()},
      {.addr = ~uint64_t{0} - 3, .length = 8, .lkey = near_.lkey()},
  };
  for (const ibv_sge& sge : outside) {
    SCOPED_TRACE(testing::Message()
                 << sge.addr - near_.addr() << " + " << sge.length);
    ExpectFault(WriteWr(0, far_.addr(), far_.rkey()).Sge(sge),
                IBV_WC_LOC_PROT_ERR, false);
    ExpectFault(SendWr(0).Sge(near_.sge(0, 4)).Sge(sge), IBV_WC_LOC_PROT_ERR,
                false);
    // Of so many bytes that a device may not copy them when they are posted.
    ExpectFault(SendWr(0).Sge(near_.sge(0, 4000)).Sge(sge).Imm(0),
                IBV_WC_LOC_PROT_ERR, false);
    if (HasFailure()) return;
  }
}

// More than 2 GiB in one message (IBTA 9.7.1.4), and a sum of lengths that
// would be small again in 32 bits.
TEST_P(MemoryRegionTest, RefusesAMessageLongerThanThereIs) {
  if (!deviations().checks_message_length) {
    GTEST_SKIP() << "this device adds lengths up in 32 bits";
  }
  const ibv_sge huge = {
      .addr = near_.addr(8), .length = ~0u, .lkey = near_.lkey()};
  Link link;
  ASSERT_TRUE(Connect({}, &link));
  ASSERT_EQ(0,
            PostReceive(link.server, {.wr_id = 1, .sges = {far_.sge(0, 64)}}));
  if (Post(link.client, SendWr(2).Sge(near_.sge(0, 4)).Sge(huge)) == 0) {
    const ibv_wc wc = Await(client().send_cq());
    EXPECT_EQ(wc.wr_id, 2u);
    EXPECT_THAT(wc.status,
                testing::AnyOf(IBV_WC_LOC_LEN_ERR, IBV_WC_LOC_PROT_ERR));
  }
  ExpectSilence(server().recv_cq());
  EXPECT_TRUE(far_.bytes(0, kBytes) == far_before_);
}

// "Local read access is always enabled", local write access only by the flag.
TEST_P(MemoryRegionTest, ReadOnlyMemoryIsASourceButNoTarget) {
  Region source = client().Allocate(4096, 0, MemoryUse::kLocal);
  ASSERT_FALSE(source.empty());
  ExpectFault(ReadWr(0, far_.addr(), far_.rkey()).Sge(source.sge(0, 8)),
              IBV_WC_LOC_PROT_ERR, false);
  EXPECT_EQ(source.data()[0], 0);
  source.Fill(5);
  Link link;
  ASSERT_TRUE(Connect({}, &link));
  ASSERT_EQ(
      0, Post(link.client,
              WriteWr(1, far_.addr(100), far_.rkey()).Sge(source.sge(0, 8))));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(1));
  EXPECT_EQ(far_.bytes(100, 8), source.bytes(0, 8));
}

TEST_P(MemoryRegionTest, RefusesTheLocalKeyOfADeregisteredRegion) {
  Region gone = client().Allocate(4096);
  ASSERT_FALSE(gone.empty());
  const ibv_sge sge = gone.sge(0, 8);
  ASSERT_EQ(0, gone.Deregister());
  ExpectFault(SendWr(0).Sge(sge), deviations().wrong_source_lkey, false);
}

// Registering and forgetting leaves nothing behind.
TEST_P(MemoryRegionTest, SurvivesManyRegistrations) {
  for (int i = 0; i < 3000; ++i) {
    ibv_mr* mr =
        server().device().RegMr(server().pd(), far_.data(), kBytes, kAllAccess);
    ASSERT_NE(mr, nullptr) << i << ": " << std::strerror(errno);
    ASSERT_EQ(0, server().device().DeregMr(mr)) << i;
  }
  for (int i = 0; i < 100; ++i) {
    Region region = server().Allocate(65536);
    ASSERT_FALSE(region.empty()) << i;
  }
}

}  // namespace
}  // namespace rdma::conformance
