// The fixture of the tests of memory regions: a region at each end, and a way
// to see one wrong request fail.
//
//   ExpectFault(ReadWr(0, addr, wrong_key).Sge(near_.sge(0, 8)),
//               IBV_WC_REM_ACCESS_ERR, /*remote=*/true);
//
// Thread rule: one thread.
#ifndef VERBENA_TESTS_CONFORMANCE_MEMORY_REGION_FIXTURE_H_
#define VERBENA_TESTS_CONFORMANCE_MEMORY_REGION_FIXTURE_H_

#include <string>
#include <vector>

#include "tests/conformance/fixture.h"

namespace rdma::conformance {

class MemoryRegionFixture : public ConformanceTest {
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

}  // namespace rdma::conformance

#endif  // VERBENA_TESTS_CONFORMANCE_MEMORY_REGION_FIXTURE_H_
