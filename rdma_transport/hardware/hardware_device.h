// One opened RDMA device: the control verbs, by libibverbs.
//
// Made by MakeHardwareProvider()->Open(name). Everything is the verbs call of
// that name; what is added: descriptors that do not block, the inline limit,
// and memory in huge pages.
//
// Thread-safe, as libibverbs is.
#ifndef VERBENA_RDMA_TRANSPORT_HARDWARE_HARDWARE_DEVICE_H_
#define VERBENA_RDMA_TRANSPORT_HARDWARE_HARDWARE_DEVICE_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "rdma_transport/hardware/hardware_options.h"
#include "rdma_transport/provider/provider.h"

namespace rdma {

class HardwareDevice final : public Device {
 public:
  // ibv_open_device(3), and queries what the device can do. PERMISSION_DENIED
  // where /dev/infiniband may not be opened.
  static absl::StatusOr<std::unique_ptr<HardwareDevice>> Open(
      ibv_device* device, const HardwareOptions& options);
  ~HardwareDevice() override;

  HardwareDevice(const HardwareDevice&) = delete;
  HardwareDevice& operator=(const HardwareDevice&) = delete;

  ibv_context* context() override { return context_; }
  std::string_view name() const override { return name_; }
  const ibv_device_attr& attributes() const override { return attributes_; }
  uint32_t max_inline_data() const override { return max_inline_data_; }
  unsigned int invalidation_flags() const override;

  void* AllocateMemory(size_t bytes, MemoryUse use) override;
  void FreeMemory(void* memory, size_t bytes) override;

  ibv_pd* AllocPd() override;
  int DeallocPd(ibv_pd* pd) override;
  ibv_mr* RegMr(ibv_pd* pd, void* addr, size_t length, int access) override;
  int DeregMr(ibv_mr* mr) override;

  ibv_comp_channel* CreateCompChannel() override;
  int DestroyCompChannel(ibv_comp_channel* channel) override;
  int GetCqEvent(ibv_comp_channel* channel, ibv_cq** cq,
                 void** cq_context) override;
  void AckCqEvents(ibv_cq* cq, unsigned int count) override;

  ibv_cq* CreateCq(int cqe, void* cq_context, ibv_comp_channel* channel,
                   int comp_vector) override;
  int ResizeCq(ibv_cq* cq, int cqe) override;
  int DestroyCq(ibv_cq* cq) override;

  ibv_srq* CreateSrq(ibv_pd* pd, ibv_srq_init_attr* init) override;
  int ModifySrq(ibv_srq* srq, ibv_srq_attr* attr, int mask) override;
  int QuerySrq(ibv_srq* srq, ibv_srq_attr* attr) override;
  int DestroySrq(ibv_srq* srq) override;

  ibv_qp* CreateQp(ibv_pd* pd, ibv_qp_init_attr* init) override;
  int ModifyQp(ibv_qp* qp, ibv_qp_attr* attr, int mask) override;
  int QueryQp(ibv_qp* qp, ibv_qp_attr* attr, int mask,
              ibv_qp_init_attr* init) override;
  int DestroyQp(ibv_qp* qp) override;

  int GetAsyncEvent(ibv_async_event* event) override;
  void AckAsyncEvent(ibv_async_event* event) override;

  absl::StatusOr<std::unique_ptr<ConnectionManager>> CreateConnectionManager()
      override;

 private:
  HardwareDevice(ibv_context* context, const HardwareOptions& options);
  absl::Status Initialize();

  ibv_context* const context_;
  const HardwareOptions options_;
  const std::string name_;
  ibv_device_attr attributes_ = {};
  uint32_t max_inline_data_ = 0;
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_HARDWARE_HARDWARE_DEVICE_H_
