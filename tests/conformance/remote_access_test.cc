// What a peer may do to memory: nothing without the right key, inside the
// bounds, with the rights and of the PD. Method: one wrong request on a fresh
// connection for each way of being wrong; the requester sees the specified
// status, both ends are in ERR, and not a byte moved. ibv_reg_mr(3);
// IBTA 10.6, 9.7.4.1.
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "tests/conformance/memory_region_fixture.h"

namespace rdma::conformance {
namespace {

class RemoteAccessTest : public MemoryRegionFixture {};
CONFORMANCE_SUITE(RemoteAccessTest);

TEST_P(RemoteAccessTest, RefusesARemoteKeyThatIsNone) {
  for (uint32_t key :
       {far_.rkey() ^ 1, far_.rkey() + 0x100, far_.rkey() + 0x10000, 0u, ~0u}) {
    SCOPED_TRACE(key);
    ExpectRemoteFaults(far_.addr(), key);
    if (HasFailure()) return;
  }
}

// With no byte to move, address and key are not looked at (IBTA C9-88).
TEST_P(RemoteAccessTest, LooksAtNoKeyForNoBytes) {
  Link link;
  ASSERT_TRUE(Connect({}, &link));
  ASSERT_EQ(0, Post(link.client, ReadWr(1, 0, ~0u)));
  ASSERT_EQ(0, Post(link.client, WriteWr(2, 0, ~0u)));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(1, IBV_WC_RDMA_READ));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(2, IBV_WC_RDMA_WRITE));
}

TEST_P(RemoteAccessTest, HoldsRemoteRangesToTheirBounds) {
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
TEST_P(RemoteAccessTest, ReachesNoFurtherThanTheRegisteredPart) {
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
TEST_P(RemoteAccessTest, GrantsWhatTheFlagsSayAndNoMore) {
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

// The QP has a say as well: what it does not allow is an invalid request
// (IBTA 9.7.4.1.2), whatever the memory's rights are.
TEST_P(RemoteAccessTest, GrantsNothingThatTheQpDoesNot) {
  for (WorkRequest& request : EveryAccess(far_.addr(), far_.rkey())) {
    SCOPED_TRACE(testing::Message() << "opcode " << request.wr()->opcode);
    Link link;
    ASSERT_TRUE(Connect({}, &link));
    ibv_qp_attr attr = {};
    attr.qp_state = IBV_QPS_RTS;
    attr.qp_access_flags = 0;
    ASSERT_EQ(0, server().device().ModifyQp(
                     link.server, &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS));
    ASSERT_EQ(0, Post(link.client, request));
    EXPECT_EQ(Await(client().send_cq()).status,
              deviations().not_allowed_by_the_qp);
    EXPECT_EQ(StateOf(server().device(), link.server), IBV_QPS_ERR);
    EXPECT_TRUE(near_.bytes(0, kBytes) == near_before_);
    EXPECT_TRUE(far_.bytes(0, kBytes) == far_before_);
  }
}

TEST_P(RemoteAccessTest, RefusesTheKeyOfADeregisteredRegion) {
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

// The memory lives on, as that of many connections does; the QP by which the
// peer was let in does not.
TEST_P(RemoteAccessTest, TouchesNothingByAQpThatEnded) {
  std::vector<WorkRequest> requests = EveryAccess(far_.addr(), far_.rkey());
  // With no byte to move there is still a peer to ask.
  requests.push_back(ReadWr(0, far_.addr(), far_.rkey()));
  requests.push_back(WriteWr(0, far_.addr(), far_.rkey()));
  std::vector<Link> links(2 * requests.size());
  for (Link& link : links) ASSERT_TRUE(Connect({}, &link));
  // All at once: each is retried for some time.
  for (size_t i = 0; i < links.size(); ++i) {
    if (i < requests.size()) {
      MoveToError(server().device(), links[i].server);
    } else {
      server().DestroyQp(links[i].server);
    }
    ASSERT_EQ(0, Post(links[i].client, requests[i % requests.size()]));
  }
  for (size_t i = 0; i < links.size(); ++i) {
    EXPECT_THAT(Await(client().send_cq()), Failed(0, IBV_WC_RETRY_EXC_ERR));
  }
  EXPECT_TRUE(near_.bytes(0, kBytes) == near_before_) << "bytes came";
  EXPECT_TRUE(far_.bytes(0, kBytes) == far_before_) << "bytes went";
}

TEST_P(RemoteAccessTest, RefusesARemoteKeyOfAnotherDomain) {
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

}  // namespace
}  // namespace rdma::conformance
