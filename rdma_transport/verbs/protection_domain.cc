#include "rdma_transport/verbs/protection_domain.h"

#include <atomic>
#include <cerrno>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "rdma_transport/verbs/verbs_error.h"

namespace rdma {
namespace {

std::atomic<uint64_t> total_bytes{0};

}  // namespace

absl::StatusOr<std::unique_ptr<ProtectionDomain>> ProtectionDomain::Create(
    Device* device) {
  ibv_pd* const pd = device->AllocPd();
  if (pd == nullptr) return VerbsError("ibv_alloc_pd", errno, device->name());
  return absl::WrapUnique(new ProtectionDomain(device, pd));
}

ProtectionDomain::~ProtectionDomain() {
  LogIfFailed("ibv_dealloc_pd", device_->DeallocPd(pd_));
}

absl::StatusOr<std::unique_ptr<MemoryRegion>> MemoryRegion::Create(
    ProtectionDomain* pd, size_t bytes, int access) {
  const bool remote_writes =
      (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0;
  return Create(pd, bytes, access,
                remote_writes ? MemoryUse::kRemoteWritable : MemoryUse::kLocal);
}

absl::StatusOr<std::unique_ptr<MemoryRegion>> MemoryRegion::Create(
    ProtectionDomain* pd, size_t bytes, int access, MemoryUse use) {
  Device* const device = pd->device();
  void* const memory = device->AllocateMemory(bytes, use);
  if (memory == nullptr) {
    return VerbsError("allocating registered memory", errno,
                      absl::StrCat(bytes, " bytes"));
  }
  ibv_mr* const mr = device->RegMr(pd->get(), memory, bytes, access);
  if (mr == nullptr) {
    const int error = errno;
    device->FreeMemory(memory, bytes);
    return RegistrationError(error, bytes);
  }
  total_bytes.fetch_add(bytes, std::memory_order_relaxed);
  return absl::WrapUnique(
      new MemoryRegion(device, mr, static_cast<std::byte*>(memory), bytes));
}

uint64_t MemoryRegion::TotalBytes() {
  return total_bytes.load(std::memory_order_relaxed);
}

MemoryRegion::~MemoryRegion() {
  if (mr_ == nullptr) return;
  // The device may reach it still, and so may a peer that writes to it.
  LogIfFailed(
      absl::StrCat("ibv_dereg_mr (its ", size_, " bytes stay allocated)"),
      Free());
}

int MemoryRegion::Free() {
  if (const int error = device_->DeregMr(mr_); error != 0) return error;
  mr_ = nullptr;
  total_bytes.fetch_sub(size_, std::memory_order_relaxed);
  device_->FreeMemory(data_, size_);
  return 0;
}

absl::StatusOr<std::unique_ptr<MemoryWindow>> MemoryWindow::Create(
    ProtectionDomain* pd) {
  ibv_mw* const mw = ibv_alloc_mw(pd->get(), IBV_MW_TYPE_2);
  if (mw == nullptr) return VerbsError("ibv_alloc_mw", errno);
  return absl::WrapUnique(new MemoryWindow(mw));
}

MemoryWindow::~MemoryWindow() {
  LogIfFailed("ibv_dealloc_mw", ibv_dealloc_mw(mw_));
}

}  // namespace rdma
