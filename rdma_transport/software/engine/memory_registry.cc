#include "rdma_transport/software/engine/memory_registry.h"

#include <cerrno>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "rdma_transport/software/log.h"

namespace rdma::soft {
namespace {

constexpr int kKnownAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                             IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                             IBV_ACCESS_MW_BIND;
static_assert(kRemoteWriting ==
              (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC));
constexpr uint32_t kRemote = kRemoteWriting | IBV_ACCESS_REMOTE_READ;

// 0, or the errno value that ibv_reg_mr(3) gives for such access.
int CheckAccess(int access, MemoryUse use) {
  // Flags of the optional range may be ignored by a device that lacks them.
  const int required = access & ~IBV_ACCESS_OPTIONAL_RANGE;
  if ((required & ~kKnownAccess) != 0) return EOPNOTSUPP;
  if ((access & kRemoteWriting) != 0 &&
      (access & IBV_ACCESS_LOCAL_WRITE) == 0) {
    return EINVAL;
  }
  if ((access & kRemote) != 0 && use == MemoryUse::kJointReads) {
    Log("ibv_reg_mr: memory of joint READs is granted by windows only");
    return EACCES;
  }
  if ((access & kRemoteWriting) != 0 && use != MemoryUse::kRemoteWritable) {
    Log("ibv_reg_mr: peers cannot write memory that was not allocated for it: "
        "use MemoryUse::kRemoteWritable");
    return EACCES;
  }
  return 0;
}

bool Contains(const MemoryRegion& region, uint64_t address, uint64_t length) {
  const auto start = reinterpret_cast<uint64_t>(region.addr);
  return address >= start && length <= region.length &&
         address - start <= region.length - length;
}

}  // namespace

ProtectionDomain* MemoryRegistry::AllocPd(ibv_context* context) {
  auto* const pd = new ProtectionDomain{};
  pd->context = context;
  pd->id = next_pd_.fetch_add(1, std::memory_order_relaxed);
  pd->handle = pd->id;
  return pd;
}

int MemoryRegistry::DeallocPd(ProtectionDomain* pd) {
  if (pd->users.load() != 0) return EBUSY;
  delete pd;
  return 0;
}

MemoryRegion* MemoryRegistry::RegMr(ProtectionDomain* pd, void* addr,
                                    size_t length, int access) {
  std::shared_ptr<Arena> arena = arenas_.Find(addr, length);
  if (arena == nullptr) {
    Log("ibv_reg_mr: this device registers memory of Device::AllocateMemory "
        "only, and all of a region must lie in one allocation");
    errno = EOPNOTSUPP;
    return nullptr;
  }
  const int error = length == 0 ? EINVAL : CheckAccess(access, arena->use());
  if (error != 0) {
    errno = error;
    return nullptr;
  }
  const std::optional<uint32_t> key = keys_.Allocate();
  if (!key) {
    errno = ENOMEM;
    return nullptr;
  }

  auto* const region = new MemoryRegion{};
  region->context = pd->context;
  region->pd = pd;
  region->addr = addr;
  region->length = length;
  region->handle = *key >> 8;
  region->lkey = region->rkey = *key;
  region->arena = arena;
  region->access = static_cast<uint32_t>(access & kKnownAccess);
  pd->users.fetch_add(1);

  KeyRange range;
  range.address = reinterpret_cast<uint64_t>(addr);
  range.length = length;
  range.arena = arena->id();
  range.arena_offset = static_cast<std::byte*>(addr) - arena->base();
  range.access =
      region->access | (arena->use() == MemoryUse::kJointReads ? kJointKey : 0);
  range.pd = pd->id;
  keys_.Grant(*key, range);
  // Peers get the arena before the caller can tell them the rkey.
  if ((access & kRemote) != 0) {
    arena->OpenToPeers();
    links_->Announce(arena->id());
  }
  return region;
}

int MemoryRegistry::DeregMr(MemoryRegion* region) {
  {
    std::lock_guard lock(mutex_);
    if (region->bound_windows != 0) return EBUSY;
  }
  keys_.Revoke(region->rkey);
  if (!WaitForWriters(region->rkey, region->arena->joint_link())) {
    Log("ibv_dereg_mr: a peer is still writing to this region");
    return EBUSY;
  }
  keys_.Free(region->rkey);
  FromVerbs(region->pd)->users.fetch_sub(1);
  delete region;
  return 0;
}

MemoryWindow* MemoryRegistry::AllocMw(ProtectionDomain* pd, ibv_mw_type type) {
  if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) {
    errno = EINVAL;
    return nullptr;
  }
  const std::optional<uint32_t> key = keys_.Allocate();
  if (!key) {
    errno = ENOMEM;
    return nullptr;
  }
  auto* const window = new MemoryWindow{};
  window->context = pd->context;
  window->pd = pd;
  window->rkey = *key;
  window->handle = *key >> 8;
  window->type = type;
  pd->users.fetch_add(1);
  std::lock_guard lock(mutex_);
  windows_[*key >> 8] = window;
  return window;
}

int MemoryRegistry::DeallocMw(MemoryWindow* window) {
  {
    std::lock_guard lock(mutex_);
    if (window->region != nullptr) Unbind(window);
  }
  if (!WaitForWriters(window->key)) {
    Log("ibv_dealloc_mw: a peer is still writing to this window");
    return EBUSY;
  }
  {
    std::lock_guard lock(mutex_);
    windows_[window->handle] = nullptr;
  }
  // The consumer chooses the keys of a window, and may have stepped beyond the
  // last one that was bound.
  keys_.Free(window->key != 0 ? window->key
                              : window->handle << 8 | (window->rkey & 0xff));
  FromVerbs(window->pd)->users.fetch_sub(1);
  delete window;
  return 0;
}

ibv_wc_status MemoryRegistry::Bind(const BindRequest& request) {
  MemoryWindow* const window = request.window;
  const ibv_mw_bind_info& info = request.info;
  const bool type_2 = window->type == IBV_MW_TYPE_2;
  if (window->pd != request.pd || request.rkey >> 8 != window->handle) {
    return IBV_WC_MW_BIND_ERR;
  }
  std::unique_lock lock(mutex_);
  if (window->region != nullptr) {
    // A type 2 window must be invalidated before it is bound again.
    if (type_2) return IBV_WC_MW_BIND_ERR;
    Unbind(window);
    lock.unlock();
    if (!WaitForWriters(window->key)) return IBV_WC_MW_BIND_ERR;
    lock.lock();
  }
  if (info.length == 0 && !type_2) return IBV_WC_SUCCESS;

  auto* const region = static_cast<MemoryRegion*>(info.mr);
  if (region == nullptr || region->pd != request.pd ||
      (region->access & IBV_ACCESS_MW_BIND) == 0 || info.length == 0 ||
      !Contains(*region, info.addr, info.length)) {
    return IBV_WC_MW_BIND_ERR;
  }
  const unsigned int access = info.mw_access_flags;
  if ((access & ~kRemote) != 0) {
    return IBV_WC_MW_BIND_ERR;
  }
  if ((access & kRemoteWriting) != 0 &&
      ((region->access & IBV_ACCESS_LOCAL_WRITE) == 0 ||
       region->arena->use() != MemoryUse::kRemoteWritable)) {
    return IBV_WC_MW_BIND_ERR;
  }

  KeyRange range;
  range.address = info.addr;
  range.length = info.length;
  range.arena = region->arena->id();
  range.arena_offset =
      info.addr - reinterpret_cast<uint64_t>(region->arena->base());
  range.access = access | kWindowKey;
  range.pd = request.pd->id;
  range.qp_num = type_2 ? request.qp_num : 0;
  keys_.Grant(request.rkey, range);
  window->rkey = request.rkey;
  window->region = region;
  window->key = request.rkey;
  window->qp_num = range.qp_num;
  ++region->bound_windows;
  if (type_2) return IBV_WC_SUCCESS;  // for the QP's own peer, which is told
  region->arena->OpenToPeers();
  lock.unlock();
  links_->Announce(range.arena);
  return IBV_WC_SUCCESS;
}

bool MemoryRegistry::Invalidate(uint32_t rkey, const ProtectionDomain* pd,
                                uint32_t qp_num) {
  const uint32_t index = rkey >> 8;
  std::lock_guard lock(mutex_);
  if (index >= windows_.size()) return false;
  MemoryWindow* const window = windows_[index];
  if (window == nullptr || window->region == nullptr ||
      window->type != IBV_MW_TYPE_2 || window->key != rkey ||
      window->pd != pd || window->qp_num != qp_num) {
    return false;
  }
  Unbind(window);
  return true;
}

void MemoryRegistry::Unbind(MemoryWindow* window) {
  keys_.Revoke(window->key);
  --window->region->bound_windows;
  window->region = nullptr;
}

bool MemoryRegistry::WaitForWriters(uint32_t key, uint64_t link) {
  return !MayBeWritten(key) ||
         links_->WaitUntilNotWritten(key, link, clock_, kRevokeLimitNs);
}

}  // namespace rdma::soft
