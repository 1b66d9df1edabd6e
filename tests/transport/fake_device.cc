#include "tests/transport/fake_device.h"

#include <cerrno>
#include <cstdlib>

#include "gtest/gtest.h"

namespace rdma::testing {
namespace {

constexpr size_t kPage = 4096;

// Counts down to failure; true: fail this one.
bool CountDown(std::atomic<int>& left) {
  const int seen = left.load();
  if (seen < 0) return false;
  if (seen == 0) return true;
  left.fetch_sub(1);
  return false;
}

template <typename T>
T* NotSupported() {
  errno = EOPNOTSUPP;
  return nullptr;
}

}  // namespace

struct FakeDevice::Srq final : public ibv_srq {
  struct Receive {
    uint64_t wr_id;
    ibv_sge sge;
  };

  FakeDevice* device = nullptr;
  uint32_t depth = 0;
  std::deque<Receive> receives;
};

FakeDevice::FakeDevice() { context_.ops.post_srq_recv = PostSrqRecv; }

FakeDevice::~FakeDevice() {
  EXPECT_EQ(live_regions_, 0);
  EXPECT_EQ(live_pds_, 0);
  EXPECT_EQ(live_bytes_, 0);
}

void* FakeDevice::AllocateMemory(size_t bytes, MemoryUse) {
  const size_t rounded = (bytes + kPage - 1) / kPage * kPage;
  void* const memory = std::aligned_alloc(kPage, rounded);
  if (memory == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  live_bytes_ += static_cast<int64_t>(bytes);
  return memory;
}

void FakeDevice::FreeMemory(void* memory, size_t bytes) {
  live_bytes_ -= static_cast<int64_t>(bytes);
  std::free(memory);
}

ibv_pd* FakeDevice::AllocPd() {
  ++live_pds_;
  auto* const pd = new ibv_pd{};
  pd->context = &context_;
  return pd;
}

int FakeDevice::DeallocPd(ibv_pd* pd) {
  --live_pds_;
  delete pd;
  return 0;
}

ibv_mr* FakeDevice::RegMr(ibv_pd* pd, void* addr, size_t length, int) {
  if (on_reg_mr_ != nullptr) on_reg_mr_();
  if (CountDown(reg_mr_left_)) {
    errno = ENOMEM;
    return nullptr;
  }
  ++live_regions_;
  auto* const mr = new ibv_mr{};
  mr->context = &context_;
  mr->pd = pd;
  mr->addr = addr;
  mr->length = length;
  mr->lkey = mr->rkey = next_key_.fetch_add(1) << 8;
  return mr;
}

int FakeDevice::DeregMr(ibv_mr* mr) {
  if (on_dereg_mr_ != nullptr) on_dereg_mr_();
  if (const int error = dereg_mr_error_) return error;
  --live_regions_;
  delete mr;
  return 0;
}

ibv_srq* FakeDevice::CreateSrq(ibv_pd* pd, ibv_srq_init_attr* init) {
  auto* const srq = new Srq;
  srq->context = &context_;
  srq->pd = pd;
  srq->device = this;
  srq->depth = init->attr.max_wr;
  return srq;
}

int FakeDevice::DestroySrq(ibv_srq* srq) {
  delete static_cast<Srq*>(srq);
  return 0;
}

int FakeDevice::PostSrqRecv(ibv_srq* base, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  auto* const srq = static_cast<Srq*>(base);
  for (; wr != nullptr; wr = wr->next) {
    if (srq->receives.size() >= srq->depth ||
        CountDown(srq->device->post_left_)) {
      *bad = wr;
      return ENOMEM;
    }
    EXPECT_EQ(wr->num_sge, 1);
    srq->receives.push_back({wr->wr_id, *wr->sg_list});
  }
  return 0;
}

ibv_recv_wr FakeDevice::TakeReceive(ibv_srq* base, ibv_sge* sge) {
  auto* const srq = static_cast<Srq*>(base);
  const Srq::Receive receive = srq->receives.front();
  srq->receives.pop_front();
  *sge = receive.sge;
  return {receive.wr_id, nullptr, sge, 1};
}

size_t FakeDevice::posted_receives(ibv_srq* srq) {
  return static_cast<Srq*>(srq)->receives.size();
}

// ---- What no test of this device needs.

ibv_comp_channel* FakeDevice::CreateCompChannel() {
  return NotSupported<ibv_comp_channel>();
}
int FakeDevice::DestroyCompChannel(ibv_comp_channel*) { return EOPNOTSUPP; }
int FakeDevice::GetCqEvent(ibv_comp_channel*, ibv_cq**, void**) {
  errno = EAGAIN;
  return -1;
}
ibv_cq* FakeDevice::CreateCq(int, void*, ibv_comp_channel*, int) {
  return NotSupported<ibv_cq>();
}
int FakeDevice::ResizeCq(ibv_cq*, int) { return EOPNOTSUPP; }
int FakeDevice::DestroyCq(ibv_cq*) { return EOPNOTSUPP; }
int FakeDevice::ModifySrq(ibv_srq*, ibv_srq_attr*, int) { return EOPNOTSUPP; }
int FakeDevice::QuerySrq(ibv_srq*, ibv_srq_attr*) { return EOPNOTSUPP; }
ibv_qp* FakeDevice::CreateQp(ibv_pd*, ibv_qp_init_attr*) {
  return NotSupported<ibv_qp>();
}
int FakeDevice::ModifyQp(ibv_qp*, ibv_qp_attr*, int) { return EOPNOTSUPP; }
int FakeDevice::QueryQp(ibv_qp*, ibv_qp_attr*, int, ibv_qp_init_attr*) {
  return EOPNOTSUPP;
}
int FakeDevice::DestroyQp(ibv_qp*) { return EOPNOTSUPP; }
int FakeDevice::GetAsyncEvent(ibv_async_event*) {
  errno = EAGAIN;
  return -1;
}
absl::StatusOr<std::unique_ptr<ConnectionManager>>
FakeDevice::CreateConnectionManager() {
  return absl::UnimplementedError("the fake device connects nothing");
}

}  // namespace rdma::testing
