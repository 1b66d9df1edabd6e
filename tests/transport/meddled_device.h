// The software device with a test's hand in between: it can have narrower
// limits, and events and faults that never happen there.
//
// Thread rule: as Device; what is for the test says so where it is another.
#ifndef VERBENA_TESTS_TRANSPORT_MEDDLED_DEVICE_H_
#define VERBENA_TESTS_TRANSPORT_MEDDLED_DEVICE_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "rdma_transport/provider/provider.h"

namespace rdma::testing {

class MeddledDevice final : public Device {
 public:
  MeddledDevice();
  ~MeddledDevice() override;

  // ---- For the test. Limits before anything is made of it.

  ibv_device_attr& limits() { return attributes_; }
  // The next GetAsyncEvent returns it. Any thread.
  void Raise(const ibv_async_event& event);
  size_t raised() const;
  // The connection manager made next has so many events to begin with, which
  // are of no id.
  void FloodConnectionEvents(int count) { flood_left_ = count; }
  int flood_left() const { return flood_left_; }
  // From now on ibv_poll_cq fails. For good. Inside Side::Do.
  void FailPolls();
  // From now on counts the completions of sends that ibv_poll_cq gives, of all
  // devices for which this was called. Inside Side::Do.
  void CountSendCompletions();
  static int send_completions();
  // From now on counts the READs that are posted, and those of them with the
  // past_caches_flag; as CountSendCompletions.
  void CountReads();
  static int reads();
  static int reads_past_caches();
  // READs may store anywhere, as on the software device itself; else nowhere
  // but where NICs can. Before what is to be read.
  void ReadAnywhere() { reads_anywhere_ = true; }
  // READs fail from the one on that would be the `first` to complete.
  void FailReads(int first);
  // READs are refused from the `first` one on that is posted. As
  // CountSendCompletions.
  void RefuseReads(int first);
  // The one CQ and the QPs made of it, in the order made.
  ibv_cq* cq() const { return cq_; }
  std::vector<ibv_qp*> qps() const;

  // ---- Device.

  ibv_context* context() override { return real_->context(); }
  std::string_view name() const override { return real_->name(); }
  const ibv_device_attr& attributes() const override { return attributes_; }
  uint32_t max_inline_data() const override { return real_->max_inline_data(); }
  uint32_t useful_inline_data() const override {
    return real_->useful_inline_data();
  }
  bool cpus_read() const override { return real_->cpus_read(); }
  unsigned int past_caches_flag() const override {
    return real_->past_caches_flag();
  }
  uint32_t reserved_lkey() const override {
    return reads_anywhere_ ? real_->reserved_lkey() : 0;
  }
  void* AllocateMemory(size_t bytes, MemoryUse use) override {
    return real_->AllocateMemory(bytes, use);
  }
  void FreeMemory(void* memory, size_t bytes) override {
    real_->FreeMemory(memory, bytes);
  }
  ibv_pd* AllocPd() override { return real_->AllocPd(); }
  int DeallocPd(ibv_pd* pd) override { return real_->DeallocPd(pd); }
  ibv_mr* RegMr(ibv_pd* pd, void* addr, size_t length, int access) override {
    return real_->RegMr(pd, addr, length, access);
  }
  int DeregMr(ibv_mr* mr) override { return real_->DeregMr(mr); }
  ibv_comp_channel* CreateCompChannel() override {
    return real_->CreateCompChannel();
  }
  int DestroyCompChannel(ibv_comp_channel* channel) override {
    return real_->DestroyCompChannel(channel);
  }
  int GetCqEvent(ibv_comp_channel* channel, ibv_cq** cq,
                 void** cq_context) override {
    return real_->GetCqEvent(channel, cq, cq_context);
  }
  void AckCqEvents(ibv_cq* cq, unsigned int count) override {
    real_->AckCqEvents(cq, count);
  }
  ibv_cq* CreateCq(int cqe, void* cq_context, ibv_comp_channel* channel,
                   int comp_vector) override {
    return cq_ = real_->CreateCq(cqe, cq_context, channel, comp_vector);
  }
  int ResizeCq(ibv_cq* cq, int cqe) override {
    return real_->ResizeCq(cq, cqe);
  }
  int DestroyCq(ibv_cq* cq) override { return real_->DestroyCq(cq); }
  ibv_srq* CreateSrq(ibv_pd* pd, ibv_srq_init_attr* init) override {
    return real_->CreateSrq(pd, init);
  }
  int ModifySrq(ibv_srq* srq, ibv_srq_attr* attr, int mask) override {
    return real_->ModifySrq(srq, attr, mask);
  }
  int QuerySrq(ibv_srq* srq, ibv_srq_attr* attr) override {
    return real_->QuerySrq(srq, attr);
  }
  int DestroySrq(ibv_srq* srq) override { return real_->DestroySrq(srq); }
  ibv_qp* CreateQp(ibv_pd* pd, ibv_qp_init_attr* init) override;
  int ModifyQp(ibv_qp* qp, ibv_qp_attr* attr, int mask) override {
    return real_->ModifyQp(qp, attr, mask);
  }
  int QueryQp(ibv_qp* qp, ibv_qp_attr* attr, int mask,
              ibv_qp_init_attr* init) override {
    return real_->QueryQp(qp, attr, mask, init);
  }
  int DestroyQp(ibv_qp* qp) override { return real_->DestroyQp(qp); }
  int GetAsyncEvent(ibv_async_event* event) override;
  void AckAsyncEvent(ibv_async_event* event) override;
  absl::StatusOr<std::unique_ptr<ConnectionManager>> CreateConnectionManager()
      override;

 private:
  class MeddledConnectionManager;

  const std::unique_ptr<Provider> provider_;
  const std::unique_ptr<Device> real_;
  ibv_device_attr attributes_;
  ibv_cq* cq_ = nullptr;
  const int real_async_fd_;
  std::atomic<int> flood_left_{0};
  std::atomic<bool> reads_anywhere_{false};

  mutable absl::Mutex mutex_;
  std::vector<ibv_qp*> qps_ ABSL_GUARDED_BY(mutex_);
  std::deque<ibv_async_event> raised_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rdma::testing

#endif  // VERBENA_TESTS_TRANSPORT_MEDDLED_DEVICE_H_
