// A device of plain memory, for tests of what keeps memory and posts receives.
//
// It registers anything, remembers what was posted to its SRQs, counts what is
// alive, and fails where a test tells it to. It has no QPs and moves no data:
// that is the software device's part.
//
//   FakeDevice device;
//   auto pd = ProtectionDomain::Create(&device);
//   device.FailRegMrAfter(3);   // the fourth fails
//
// Thread rule: AllocateMemory, RegMr and their opposites from any thread, the
// rest from one at a time.
#ifndef VERBENA_TESTS_TRANSPORT_FAKE_DEVICE_H_
#define VERBENA_TESTS_TRANSPORT_FAKE_DEVICE_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "rdma_transport/provider/provider.h"

namespace rdma::testing {

class FakeDevice final : public Device {
 public:
  FakeDevice();
  // Nothing made of it may be left: checked.
  ~FakeDevice() override;

  // ---- For the test.

  // After `count` more that succeed, registrations (posts) fail with ENOMEM,
  // until told otherwise. Negative: never.
  void FailRegMrAfter(int count) { reg_mr_left_ = count; }
  void FailPostAfter(int count) { post_left_ = count; }
  // Called at the start of each registration (deregistration).
  void OnRegMr(std::function<void()> hook) { on_reg_mr_ = std::move(hook); }
  void OnDeregMr(std::function<void()> hook) { on_dereg_mr_ = std::move(hook); }
  // What DeregMr returns, and does nothing where that is not 0.
  void FailDeregMr(int error) { dereg_mr_error_ = error; }

  int live_regions() const { return live_regions_; }
  int64_t live_bytes() const { return live_bytes_; }

  // The oldest receive that is posted; takes it, as an arriving message would.
  // REQUIRES: posted_receives(srq) > 0.
  static ibv_recv_wr TakeReceive(ibv_srq* srq, ibv_sge* sge);
  static size_t posted_receives(ibv_srq* srq);

  // ---- Device.

  ibv_context* context() override { return &context_; }
  std::string_view name() const override { return "fake0"; }
  const ibv_device_attr& attributes() const override { return attributes_; }
  uint32_t max_inline_data() const override { return 512; }
  bool cpus_read() const override { return true; }
  void* AllocateMemory(size_t bytes, MemoryUse use) override;
  void FreeMemory(void* memory, size_t bytes) override;
  ibv_pd* AllocPd() override;
  int DeallocPd(ibv_pd* pd) override;
  ibv_mr* RegMr(ibv_pd* pd, void* addr, size_t length, int access) override;
  int DeregMr(ibv_mr* mr) override;
  ibv_srq* CreateSrq(ibv_pd* pd, ibv_srq_init_attr* init) override;
  int DestroySrq(ibv_srq* srq) override;

  ibv_comp_channel* CreateCompChannel() override;
  int DestroyCompChannel(ibv_comp_channel*) override;
  int GetCqEvent(ibv_comp_channel*, ibv_cq**, void**) override;
  void AckCqEvents(ibv_cq*, unsigned int) override {}
  ibv_cq* CreateCq(int, void*, ibv_comp_channel*, int) override;
  int ResizeCq(ibv_cq*, int) override;
  int DestroyCq(ibv_cq*) override;
  int ModifySrq(ibv_srq*, ibv_srq_attr*, int) override;
  int QuerySrq(ibv_srq*, ibv_srq_attr*) override;
  ibv_qp* CreateQp(ibv_pd*, ibv_qp_init_attr*) override;
  int ModifyQp(ibv_qp*, ibv_qp_attr*, int) override;
  int QueryQp(ibv_qp*, ibv_qp_attr*, int, ibv_qp_init_attr*) override;
  int DestroyQp(ibv_qp*) override;
  int GetAsyncEvent(ibv_async_event*) override;
  void AckAsyncEvent(ibv_async_event*) override {}
  absl::StatusOr<std::unique_ptr<ConnectionManager>> CreateConnectionManager()
      override;

 private:
  struct Srq;

  static int PostSrqRecv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad);

  ibv_context context_ = {};
  ibv_device_attr attributes_ = {};
  std::function<void()> on_reg_mr_;
  std::function<void()> on_dereg_mr_;
  std::atomic<int> reg_mr_left_{-1};
  std::atomic<int> post_left_{-1};
  std::atomic<int> dereg_mr_error_{0};
  std::atomic<int> live_regions_{0};
  std::atomic<int> live_pds_{0};
  std::atomic<int64_t> live_bytes_{0};
  std::atomic<uint32_t> next_key_{1};
};

}  // namespace rdma::testing

#endif  // VERBENA_TESTS_TRANSPORT_FAKE_DEVICE_H_
