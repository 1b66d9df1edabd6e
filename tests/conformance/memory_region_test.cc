// Memory regions: no access without the right key, inside the bounds, with the
// rights and of the PD. Method: one wrong request on a fresh connection for
// each way of being wrong; the requester sees the specified status, both ends
// are in ERR where they have to be, and not a byte moved. ibv_reg_mr(3);
// IBTA 10.6.
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "tests/conformance/fixture.h"

namespace rdma::conformance {
namespace {

class MemoryRegionTest : public ConformanceTest {
 protected:
  static constexpr size_t kBytes = 3 * 4096;

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ConformanceTest::SetUp());
    near_ = client().Allocate(kBytes);
    far_ = server().Allocate(kBytes);
    ASSERT_FALSE(near_.empty() || far_.empty());
    near_.Fill(1);
    near_before_ = near_.bytes(0, kBytes);
    far_.Fill(2);
    far_before_ = far_.bytes(0, kBytes);
  }
  void TearDown() override {
    near_ = Region();
    far_ = Region();
    ConformanceTest::TearDown();
  }

  // Posts `request` on a connection of its own, between a good request and a
  // third one, and expects it to fail with `status`: the first succeeds, the
  // third is flushed. A fault of the remote side takes the peer's QP along.
  void ExpectFault(WorkRequest request, ibv_wc_status status, bool remote) {
    Link link;
    ASSERT_TRUE(Connect({}, &link));
    ASSERT_EQ(
        0, PostReceive(link.server, {.wr_id = 50, .sges = {far_.sge(0, 8)}}));
    ASSERT_EQ(0,
              Post(link.client,
                   WriteWr(10, far_.addr(), far_.rkey()).Sge(near_.sge(0, 0))));
    request.wr()->wr_id = 11;
    ASSERT_EQ(0, Post(link.client, request));
    ASSERT_EQ(0, Post(link.client, SendWr(12)));
    EXPECT_THAT(Await(client().send_cq()), Succeeded(10));
    EXPECT_THAT(Await(client().send_cq()), Failed(11, status));
    EXPECT_THAT(Await(client().send_cq()), Flushed(12));
    EXPECT_EQ(StateOf(client().device(), link.client), IBV_QPS_ERR);
    // A local fault does not reach the peer.
    if (!remote) MoveToError(server().device(), link.server);
    EXPECT_THAT(Await(server().recv_cq()), Flushed(50));
    EXPECT_EQ(StateOf(server().device(), link.server), IBV_QPS_ERR);
    EXPECT_TRUE(near_.bytes(0, kBytes) == near_before_) << "bytes came";
    EXPECT_TRUE(far_.bytes(0, kBytes) == far_before_) << "bytes went";
    Disconnect(&link);
  }

  // A READ, a WRITE, an ADD and a SWAP of 8 bytes with that key.
  std::vector<WorkRequest> EveryAccess(uint64_t addr, uint32_t rkey) {
    std::vector<WorkRequest> requests = {ReadWr(0, addr, rkey),
                                         WriteWr(0, addr, rkey)};
    if (client().device().attributes().atomic_cap != IBV_ATOMIC_NONE) {
      requests.push_back(FetchAndAddWr(0, addr, rkey, 1));
      requests.push_back(CompareAndSwapWr(0, addr, rkey, 0, 1));
    }
    for (WorkRequest& request : requests) request.Sge(near_.sge(0, 8));
    return requests;
  }

  void ExpectRemoteFaults(uint64_t addr, uint32_t rkey) {
    for (WorkRequest& request : EveryAccess(addr, rkey)) {
      SCOPED_TRACE(testing::Message() << "opcode " << request.wr()->opcode);
      ExpectFault(request, IBV_WC_REM_ACCESS_ERR, /*remote=*/true);
      if (HasFatalFailure()) return;
    }
  }

  Region near_;
  Region far_;
  std::string near_before_;
  std::string far_before_;
};
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

TEST_P(MemoryRegionTest, RefusesARemoteKeyThatIsNone) {
  for (uint32_t key :
       {far_.rkey() ^ 1, far_.rkey() + 0x100, far_.rkey() + 0x10000, 0u, ~0u}) {
    SCOPED_TRACE(key);
    ExpectRemoteFaults(far_.addr(), key);
    if (HasFailure()) return;
  }
}

// With no byte to move, address and key are not looked at (IBTA C9-88).
TEST_P(MemoryRegionTest, LooksAtNoKeyForNoBytes) {
  Link link;
  ASSERT_TRUE(Connect({}, &link));
  ASSERT_EQ(0, Post(link.client, ReadWr(1, 0, ~0u)));
  ASSERT_EQ(0, Post(link.client, WriteWr(2, 0, ~0u)));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(1, IBV_WC_RDMA_READ));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(2, IBV_WC_RDMA_WRITE));
}

TEST_P(MemoryRegionTest, HoldsRemoteRangesToTheirBounds) {
  const std::vector<uint64_t> outside = {
      far_.addr(kBytes) - 7,  // the last byte is one too far
      far_.addr(kBytes),      // right behind
      far_.addr() - 1,        // the first byte is one too early
      far_.addr() - 8,        // right before
      ~uint64_t{0} - 3,       // the end wraps around
      0,
  };
  for (uint64_t addr : outside) {
    SCOPED_TRACE(testing::Message() << "at offset " << addr - far_.addr());
    for (WorkRequest request :
         {ReadWr(0, addr, far_.rkey()), WriteWr(0, addr, far_.rkey())}) {
      ExpectFault(request.Sge(near_.sge(0, 8)), IBV_WC_REM_ACCESS_ERR, true);
      if (HasFailure()) return;
    }
  }
  // More than there is, from a good start.
  ExpectFault(ReadWr(0, far_.addr(1), far_.rkey()).Sge(near_.sge(0, kBytes)),
              IBV_WC_REM_ACCESS_ERR, true);
  ExpectFault(WriteWr(0, far_.addr(1), far_.rkey()).Sge(near_.sge(0, kBytes)),
              IBV_WC_REM_ACCESS_ERR, true);
}

// A region may be a part of an allocation; its bounds are its own.
TEST_P(MemoryRegionTest, ReachesNoFurtherThanTheRegisteredPart) {
  ibv_mr* part = server().device().RegMr(server().pd(), far_.data() + 1000, 100,
                                         kAllAccess);
  ASSERT_NE(part, nullptr) << std::strerror(errno);
  for (uint64_t addr : {far_.addr(999), far_.addr(1093), far_.addr(4096)}) {
    ExpectFault(ReadWr(0, addr, part->rkey).Sge(near_.sge(0, 8)),
                IBV_WC_REM_ACCESS_ERR, true);
  }
  Link link;
  ASSERT_TRUE(Connect({}, &link));
  ASSERT_EQ(
      0, Post(link.client,
              ReadWr(1, far_.addr(1000), part->rkey).Sge(near_.sge(0, 100))));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(1));
  EXPECT_EQ(near_.bytes(0, 100), far_.bytes(1000, 100));
  // The key is gone with its region; the other region of that memory stays.
  EXPECT_EQ(0, server().device().DeregMr(part));
  ASSERT_EQ(
      0, Post(link.client,
              ReadWr(2, far_.addr(1000), far_.rkey()).Sge(near_.sge(0, 100))));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(2));
}

// Every right alone, and every access that it does not give.
TEST_P(MemoryRegionTest, GrantsWhatTheFlagsSayAndNoMore) {
  for (int right : {0, static_cast<int>(IBV_ACCESS_REMOTE_READ),
                    static_cast<int>(IBV_ACCESS_REMOTE_WRITE),
                    static_cast<int>(IBV_ACCESS_REMOTE_ATOMIC),
                    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE}) {
    Region region = server().Allocate(4096, IBV_ACCESS_LOCAL_WRITE | right);
    ASSERT_FALSE(region.empty());
    for (WorkRequest& request : EveryAccess(region.addr(), region.rkey())) {
      const ibv_wr_opcode opcode = request.wr()->opcode;
      const int needed = opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_REMOTE_READ
                         : opcode == IBV_WR_RDMA_WRITE
                             ? IBV_ACCESS_REMOTE_WRITE
                             : IBV_ACCESS_REMOTE_ATOMIC;
      SCOPED_TRACE(testing::Message()
                   << "access " << right << ", opcode " << opcode);
      if ((right & needed) == 0) {
        ExpectFault(request, IBV_WC_REM_ACCESS_ERR, true);
        EXPECT_EQ(region.bytes(0, 8), std::string(8, '\0'));
      } else {
        Link link;
        ASSERT_TRUE(Connect({}, &link));
        ASSERT_EQ(0, Post(link.client, request));
        EXPECT_EQ(Await(client().send_cq()).status, IBV_WC_SUCCESS);
        near_.Fill(1);
        region.Clear();
      }
      if (HasFailure()) return;
    }
  }
}

TEST_P(MemoryRegionTest, RefusesTheKeyOfADeregisteredRegion) {
  Region gone = server().Allocate(4096);
  ASSERT_FALSE(gone.empty());
  const uint32_t key = gone.rkey();
  ASSERT_EQ(0, gone.Deregister());
  ExpectRemoteFaults(gone.addr(), key);
  // Nor does the key come to life again with the next region at that place.
  ibv_mr* next =
      server().device().RegMr(server().pd(), gone.data(), 4096, kAllAccess);
  ASSERT_NE(next, nullptr);
  EXPECT_NE(next->rkey, key);
  ExpectFault(ReadWr(0, gone.addr(), key).Sge(near_.sge(0, 8)),
              IBV_WC_REM_ACCESS_ERR, true);
  EXPECT_EQ(0, server().device().DeregMr(next));
}

TEST_P(MemoryRegionTest, RefusesTheLocalKeyOfADeregisteredRegion) {
  Region gone = client().Allocate(4096);
  ASSERT_FALSE(gone.empty());
  const ibv_sge sge = gone.sge(0, 8);
  ASSERT_EQ(0, gone.Deregister());
  ExpectFault(SendWr(0).Sge(sge), deviations().wrong_source_lkey, false);
}

TEST_P(MemoryRegionTest, RefusesARemoteKeyOfAnotherDomain) {
  ibv_pd* other = server().device().AllocPd();
  ASSERT_NE(other, nullptr);
  {
    Region foreign(&server().device(), other, 4096, kAllAccess,
                   MemoryUse::kRemoteWritable);
    ASSERT_FALSE(foreign.empty());
    ExpectRemoteFaults(foreign.addr(), foreign.rkey());
  }
  EXPECT_EQ(0, server().device().DeallocPd(other));
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
