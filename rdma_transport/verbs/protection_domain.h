// A PD, and the memory regions and windows made in it, as owning types.
//
// Each type owns one verbs object and frees it in its destructor. REQUIRES
// everywhere: the object is destroyed before what it was made of.
// Thread-safe, as the verbs calls are.
#ifndef VERBENA_RDMA_TRANSPORT_VERBS_PROTECTION_DOMAIN_H_
#define VERBENA_RDMA_TRANSPORT_VERBS_PROTECTION_DOMAIN_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "rdma_transport/provider/provider.h"

namespace rdma {

class ProtectionDomain {
 public:
  // ibv_alloc_pd(3).
  static absl::StatusOr<std::unique_ptr<ProtectionDomain>> Create(
      Device* device);
  ~ProtectionDomain();

  ProtectionDomain(const ProtectionDomain&) = delete;
  ProtectionDomain& operator=(const ProtectionDomain&) = delete;

  ibv_pd* get() const { return pd_; }
  Device* device() const { return device_; }

 private:
  ProtectionDomain(Device* device, ibv_pd* pd) : device_(device), pd_(pd) {}

  Device* const device_;
  ibv_pd* const pd_;
};

// Whether windows can be bound by work requests: type 2A or 2B, IBTA 10.6.7.2.
inline bool HasType2Windows(const ibv_device_attr& attributes) {
  return (attributes.device_cap_flags &
          (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B)) != 0;
}

// A piece of device memory (Device::AllocateMemory) registered as one MR.
class MemoryRegion {
 public:
  // Allocates and registers `bytes`; `access` as of ibv_reg_mr(3).
  static absl::StatusOr<std::unique_ptr<MemoryRegion>> Create(
      ProtectionDomain* pd, size_t bytes, int access);
  // The same for a use that does not follow from the access.
  static absl::StatusOr<std::unique_ptr<MemoryRegion>> Create(
      ProtectionDomain* pd, size_t bytes, int access, MemoryUse use);
  // Where the region cannot be deregistered its memory is not freed, and a line
  // in the log says so.
  ~MemoryRegion();

  // Deregisters and frees it ahead of the destructor. 0, or an errno value of
  // ibv_dereg_mr(3): a later try may succeed. In no case may it be used again.
  int Free();

  // Of all regions of the process that there are. Any thread.
  static uint64_t TotalBytes();

  MemoryRegion(const MemoryRegion&) = delete;
  MemoryRegion& operator=(const MemoryRegion&) = delete;

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  uint32_t lkey() const { return mr_->lkey; }
  uint32_t rkey() const { return mr_->rkey; }
  ibv_mr* get() const { return mr_; }

 private:
  MemoryRegion(Device* device, ibv_mr* mr, std::byte* data, size_t size)
      : device_(device), mr_(mr), data_(data), size_(size) {}

  Device* const device_;
  ibv_mr* mr_;  // null: freed
  std::byte* const data_;
  const size_t size_;
};

// A type 2 memory window: a revocable grant of a part of an MR to one QP.
class MemoryWindow {
 public:
  // ibv_alloc_mw(3) with IBV_MW_TYPE_2.
  static absl::StatusOr<std::unique_ptr<MemoryWindow>> Create(
      ProtectionDomain* pd);
  ~MemoryWindow();

  MemoryWindow(const MemoryWindow&) = delete;
  MemoryWindow& operator=(const MemoryWindow&) = delete;

  ibv_mw* get() const { return mw_; }
  // The key of the current binding.
  uint32_t rkey() const { return mw_->rkey; }
  // A fresh key for the next IBV_WR_BIND_MW. The post itself still needs the
  // current one, by which the device finds the window: SetRkey is for after it.
  uint32_t next_rkey() const { return ibv_inc_rkey(mw_->rkey); }
  void SetRkey(uint32_t rkey) { mw_->rkey = rkey; }

 private:
  explicit MemoryWindow(ibv_mw* mw) : mw_(mw) {}

  ibv_mw* const mw_;
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_VERBS_PROTECTION_DOMAIN_H_
