// Work requests that tests write in one line, and what they expect back.
//
//   ASSERT_EQ(0, Post(qp, SendWr(7).Sge(buffer.sge(0, 64)).Imm(htonl(3))));
//   EXPECT_THAT(Await(cq), Succeeded(7, IBV_WC_SEND));
//
// A request is signaled unless it says otherwise. The s/g list is a copy of
// what was given, so a request may be posted more than once.
//
// Thread rule: values; share nothing.
#ifndef VERBENA_TESTS_CONFORMANCE_WORK_REQUEST_H_
#define VERBENA_TESTS_CONFORMANCE_WORK_REQUEST_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"

// In the global namespace, where ibv_wc lives and GoogleTest looks.
void PrintTo(const ibv_wc& wc, std::ostream* os);

namespace rdma::conformance {

// One ibv_send_wr of ibv_post_send(3) with its s/g list.
class WorkRequest {
 public:
  // `wr` but for its s/g list and its `next`.
  explicit WorkRequest(const ibv_send_wr& wr);

  WorkRequest& Sge(ibv_sge sge);
  WorkRequest& Unsignaled() { return Clear(IBV_SEND_SIGNALED); }
  WorkRequest& Inline() { return Set(IBV_SEND_INLINE); }
  WorkRequest& Fence() { return Set(IBV_SEND_FENCE); }
  WorkRequest& Solicited() { return Set(IBV_SEND_SOLICITED); }
  // A device's own.
  WorkRequest& Flag(unsigned int flag) { return Set(flag); }
  // SEND and WRITE become their _WITH_IMM; `imm` is in network byte order.
  WorkRequest& Imm(__be32 imm);

  // The request as verbs wants it, valid until this object changes or dies.
  ibv_send_wr* wr();

 private:
  WorkRequest& Set(unsigned int flag);
  WorkRequest& Clear(unsigned int flag);

  std::vector<ibv_sge> sges_;
  ibv_send_wr wr_;
};

WorkRequest SendWr(uint64_t wr_id);
WorkRequest ReadWr(uint64_t wr_id, uint64_t remote_addr, uint32_t rkey);
WorkRequest WriteWr(uint64_t wr_id, uint64_t remote_addr, uint32_t rkey);
WorkRequest CompareAndSwapWr(uint64_t wr_id, uint64_t remote_addr,
                             uint32_t rkey, uint64_t compare, uint64_t swap);
WorkRequest FetchAndAddWr(uint64_t wr_id, uint64_t remote_addr, uint32_t rkey,
                          uint64_t add);
WorkRequest BindWr(uint64_t wr_id, ibv_mw* mw, uint32_t rkey,
                   const ibv_mw_bind_info& bind_info);
WorkRequest LocalInvalidateWr(uint64_t wr_id, uint32_t rkey);
WorkRequest SendWithInvalidateWr(uint64_t wr_id, uint32_t rkey);

// One ibv_recv_wr of ibv_post_recv(3) with its s/g list.
struct ReceiveRequest {
  uint64_t wr_id = 0;
  std::vector<ibv_sge> sges;
};

// Post what they are named after and return what it returns: 0 or an errno.
// The list forms post one chain; `*posted` is how many requests went before the
// one that bad_wr named, and all of them on success.
int Post(ibv_qp* qp, WorkRequest request);
int PostList(ibv_qp* qp, absl::Span<WorkRequest> requests, size_t* posted);
int PostReceive(ibv_qp* qp, const ReceiveRequest& request);
int PostReceive(ibv_srq* srq, const ReceiveRequest& request);
int PostReceiveList(ibv_qp* qp, absl::Span<const ReceiveRequest> requests,
                    size_t* posted);
int PostReceiveList(ibv_srq* srq, absl::Span<const ReceiveRequest> requests,
                    size_t* posted);

// Matches a completion of `wr_id` with status success. The opcode is looked at
// in the second form only.
testing::Matcher<const ibv_wc&> Succeeded(uint64_t wr_id);
testing::Matcher<const ibv_wc&> Succeeded(uint64_t wr_id, ibv_wc_opcode opcode);
// A receive of `bytes` bytes.
testing::Matcher<const ibv_wc&> Received(uint64_t wr_id, uint32_t bytes);
// A completion of `wr_id` with that error; nothing but wr_id, status and qp_num
// is valid then (ibv_poll_cq(3)).
testing::Matcher<const ibv_wc&> Failed(uint64_t wr_id, ibv_wc_status status);
testing::Matcher<const ibv_wc&> Flushed(uint64_t wr_id);

}  // namespace rdma::conformance

#endif  // VERBENA_TESTS_CONFORMANCE_WORK_REQUEST_H_
