#include "tests/conformance/work_request.h"

#include <utility>

namespace rdma::conformance {

using testing::AllOf;
using testing::Field;
using testing::Matcher;

WorkRequest::WorkRequest(const ibv_send_wr& wr) : wr_(wr) {
  wr_.send_flags |= IBV_SEND_SIGNALED;
}

WorkRequest& WorkRequest::Sge(ibv_sge sge) {
  sges_.push_back(sge);
  return *this;
}

WorkRequest& WorkRequest::Imm(__be32 imm) {
  wr_.opcode = wr_.opcode == IBV_WR_RDMA_WRITE ? IBV_WR_RDMA_WRITE_WITH_IMM
                                               : IBV_WR_SEND_WITH_IMM;
  wr_.imm_data = imm;
  return *this;
}

WorkRequest& WorkRequest::Set(unsigned int flag) {
  wr_.send_flags |= flag;
  return *this;
}

WorkRequest& WorkRequest::Clear(unsigned int flag) {
  wr_.send_flags &= ~flag;
  return *this;
}

ibv_send_wr* WorkRequest::wr() {
  wr_.sg_list = sges_.data();
  wr_.num_sge = static_cast<int>(sges_.size());
  wr_.next = nullptr;
  return &wr_;
}

namespace {

ibv_send_wr Base(uint64_t wr_id, ibv_wr_opcode opcode) {
  ibv_send_wr wr = {};
  wr.wr_id = wr_id;
  wr.opcode = opcode;
  return wr;
}

}  // namespace

WorkRequest SendWr(uint64_t wr_id) {
  return WorkRequest(Base(wr_id, IBV_WR_SEND));
}

WorkRequest ReadWr(uint64_t wr_id, uint64_t remote_addr, uint32_t rkey) {
  ibv_send_wr wr = Base(wr_id, IBV_WR_RDMA_READ);
  wr.wr.rdma = {.remote_addr = remote_addr, .rkey = rkey};
  return WorkRequest(wr);
}

WorkRequest WriteWr(uint64_t wr_id, uint64_t remote_addr, uint32_t rkey) {
  ibv_send_wr wr = Base(wr_id, IBV_WR_RDMA_WRITE);
  wr.wr.rdma = {.remote_addr = remote_addr, .rkey = rkey};
  return WorkRequest(wr);
}

WorkRequest CompareAndSwapWr(uint64_t wr_id, uint64_t remote_addr,
                             uint32_t rkey, uint64_t compare, uint64_t swap) {
  ibv_send_wr wr = Base(wr_id, IBV_WR_ATOMIC_CMP_AND_SWP);
  wr.wr.atomic = {.remote_addr = remote_addr,
                  .compare_add = compare,
                  .swap = swap,
                  .rkey = rkey};
  return WorkRequest(wr);
}

WorkRequest FetchAndAddWr(uint64_t wr_id, uint64_t remote_addr, uint32_t rkey,
                          uint64_t add) {
  ibv_send_wr wr = Base(wr_id, IBV_WR_ATOMIC_FETCH_AND_ADD);
  wr.wr.atomic = {
      .remote_addr = remote_addr, .compare_add = add, .swap = 0, .rkey = rkey};
  return WorkRequest(wr);
}

WorkRequest BindWr(uint64_t wr_id, ibv_mw* mw, uint32_t rkey,
                   const ibv_mw_bind_info& bind_info) {
  ibv_send_wr wr = Base(wr_id, IBV_WR_BIND_MW);
  wr.bind_mw.mw = mw;
  wr.bind_mw.rkey = rkey;
  wr.bind_mw.bind_info = bind_info;
  return WorkRequest(wr);
}

WorkRequest LocalInvalidateWr(uint64_t wr_id, uint32_t rkey) {
  ibv_send_wr wr = Base(wr_id, IBV_WR_LOCAL_INV);
  wr.invalidate_rkey = rkey;
  return WorkRequest(wr);
}

WorkRequest SendWithInvalidateWr(uint64_t wr_id, uint32_t rkey) {
  ibv_send_wr wr = Base(wr_id, IBV_WR_SEND_WITH_INV);
  wr.invalidate_rkey = rkey;
  return WorkRequest(wr);
}

int Post(ibv_qp* qp, WorkRequest request) {
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(qp, request.wr(), &bad);
}

int PostList(ibv_qp* qp, absl::Span<WorkRequest> requests, size_t* posted) {
  std::vector<ibv_send_wr> chain;
  chain.reserve(requests.size());
  for (WorkRequest& request : requests) chain.push_back(*request.wr());
  for (size_t i = 0; i + 1 < chain.size(); ++i) chain[i].next = &chain[i + 1];
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(qp, chain.data(), &bad);
  *posted = error == 0 ? chain.size() : static_cast<size_t>(bad - chain.data());
  return error;
}

namespace {

std::vector<ibv_recv_wr> ChainOf(absl::Span<const ReceiveRequest> requests) {
  std::vector<ibv_recv_wr> chain(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    chain[i].wr_id = requests[i].wr_id;
    // Verbs does not write to the list, but takes it without const.
    chain[i].sg_list = const_cast<ibv_sge*>(requests[i].sges.data());
    chain[i].num_sge = static_cast<int>(requests[i].sges.size());
    chain[i].next = i + 1 < chain.size() ? &chain[i + 1] : nullptr;
  }
  return chain;
}

}  // namespace

int PostReceive(ibv_qp* qp, const ReceiveRequest& request) {
  size_t posted = 0;
  return PostReceiveList(qp, {&request, 1}, &posted);
}

int PostReceive(ibv_srq* srq, const ReceiveRequest& request) {
  size_t posted = 0;
  return PostReceiveList(srq, {&request, 1}, &posted);
}

int PostReceiveList(ibv_qp* qp, absl::Span<const ReceiveRequest> requests,
                    size_t* posted) {
  std::vector<ibv_recv_wr> chain = ChainOf(requests);
  ibv_recv_wr* bad = nullptr;
  const int error = ibv_post_recv(qp, chain.data(), &bad);
  *posted = error == 0 ? chain.size() : static_cast<size_t>(bad - chain.data());
  return error;
}

int PostReceiveList(ibv_srq* srq, absl::Span<const ReceiveRequest> requests,
                    size_t* posted) {
  std::vector<ibv_recv_wr> chain = ChainOf(requests);
  ibv_recv_wr* bad = nullptr;
  const int error = ibv_post_srq_recv(srq, chain.data(), &bad);
  *posted = error == 0 ? chain.size() : static_cast<size_t>(bad - chain.data());
  return error;
}

Matcher<const ibv_wc&> Failed(uint64_t wr_id, ibv_wc_status status) {
  return AllOf(Field("wr_id", &ibv_wc::wr_id, wr_id),
               Field("status", &ibv_wc::status, status));
}

Matcher<const ibv_wc&> Flushed(uint64_t wr_id) {
  return Failed(wr_id, IBV_WC_WR_FLUSH_ERR);
}

Matcher<const ibv_wc&> Succeeded(uint64_t wr_id) {
  return Failed(wr_id, IBV_WC_SUCCESS);
}

Matcher<const ibv_wc&> Succeeded(uint64_t wr_id, ibv_wc_opcode opcode) {
  return AllOf(Succeeded(wr_id), Field("opcode", &ibv_wc::opcode, opcode));
}

Matcher<const ibv_wc&> Received(uint64_t wr_id, uint32_t bytes) {
  return AllOf(Succeeded(wr_id, IBV_WC_RECV),
               Field("byte_len", &ibv_wc::byte_len, bytes));
}

}  // namespace rdma::conformance

void PrintTo(const ibv_wc& wc, std::ostream* os) {
  *os << "{wr_id " << wc.wr_id << ", " << ibv_wc_status_str(wc.status)
      << " (status " << wc.status << ")";
  if (wc.status == IBV_WC_SUCCESS) {
    *os << ", opcode " << wc.opcode << ", " << wc.byte_len << " bytes, flags "
        << wc.wc_flags;
  }
  *os << ", qp " << wc.qp_num << "}";
}
