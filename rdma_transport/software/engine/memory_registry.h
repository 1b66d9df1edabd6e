// A device's protection domains, memory regions and memory windows, and the
// checks of every access against them.
//
//   MemoryRegion* region = registry.RegMr(pd, addr, length, access);
//   if (!registry.CheckLocal(pd, sge, IBV_ACCESS_LOCAL_WRITE)) ...
//   ibv_wc_status status = registry.Bind(request);      // IBV_WR_BIND_MW
//
// Thread rule: thread-safe. CheckLocal and FindLocal take no lock.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_MEMORY_REGISTRY_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_MEMORY_REGISTRY_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "rdma_transport/software/clock.h"
#include "rdma_transport/software/engine/arena.h"
#include "rdma_transport/software/engine/key_table.h"
#include "rdma_transport/software/engine/link_registry.h"

namespace rdma::soft {

struct ProtectionDomain : ibv_pd {
  uint32_t id = 0;
  std::atomic<int> users{0};  // MRs, MWs, QPs and SRQs of it
};

inline ProtectionDomain* FromVerbs(ibv_pd* pd) {
  return static_cast<ProtectionDomain*>(pd);
}

struct MemoryRegion : ibv_mr {
  std::shared_ptr<Arena> arena;
  uint32_t access = 0;
  int bound_windows = 0;  // guarded by the registry's mutex
};

struct MemoryWindow : ibv_mw {
  // Guarded by the registry's mutex.
  MemoryRegion* region = nullptr;  // null: not bound
  uint32_t key = 0;                // of the current or last binding
  uint32_t qp_num = 0;             // of the current or last binding
};

class MemoryRegistry {
 public:
  // A peer that is stopped while it writes delays DeregMr and DeallocMw; this
  // long, then they fail with EBUSY.
  static constexpr int64_t kRevokeLimitNs = 200'000'000;

  // REQUIRES: all three outlive this.
  MemoryRegistry(KeyEntry* entries, LinkRegistry* links, Clock* clock)
      : keys_(entries, kMaxKeysOfTable),
        links_(links),
        clock_(clock),
        windows_(kMaxKeysOfTable) {}

  ArenaTable& arenas() { return arenas_; }
  KeyView keys() const { return keys_.view(); }

  ProtectionDomain* AllocPd(ibv_context* context);
  // EBUSY while something is made of it.
  int DeallocPd(ProtectionDomain* pd);

  // Null and errno: EINVAL (access flags that do not go together, or wrap),
  // EOPNOTSUPP (memory that is not of AllocateMemory, flags of other devices),
  // EACCES (remote writing in an arena that peers only read), ENOMEM.
  MemoryRegion* RegMr(ProtectionDomain* pd, void* addr, size_t length,
                      int access);
  // EBUSY: a window is bound to it, or a peer writes to it; a later try may
  // succeed.
  int DeregMr(MemoryRegion* region);

  MemoryWindow* AllocMw(ProtectionDomain* pd, ibv_mw_type type);
  int DeallocMw(MemoryWindow* window);

  struct BindRequest {
    MemoryWindow* window = nullptr;
    uint32_t rkey = 0;
    ibv_mw_bind_info info = {};
    const ProtectionDomain* pd = nullptr;  // of the QP
    uint32_t qp_num = 0;
  };
  // Binds, or, for a type 1 window and length 0, unbinds. IBV_WC_SUCCESS or
  // IBV_WC_MW_BIND_ERR.
  ibv_wc_status Bind(const BindRequest& request);

  // Ends the binding that `rkey` names: LOCAL_INV, or SEND_WITH_INV of the
  // peer. False: it names no type 2 window that this QP may invalidate. On
  // success no new access under it starts; running writes of the peer may not
  // be over yet (Link::PeersWritingKey).
  bool Invalidate(uint32_t rkey, const ProtectionDomain* pd, uint32_t qp_num);

  // Whether a peer that says it writes under this key of ours can be doing so.
  bool MayBeWritten(uint32_t key) const { return keys().MayBeWritten(key); }

  // Whether a QP of `pd` may use the SGE with this access (0 for reading).
  bool CheckLocal(const ProtectionDomain* pd, const ibv_sge& sge,
                  uint32_t access) const {
    return keys_.view().AllowsLocal(sge.lkey, pd->id, access, sge.addr,
                                    sge.length);
  }
  // The same, and says where in which arena the SGE lies.
  bool FindLocal(const ProtectionDomain* pd, const ibv_sge& sge,
                 uint32_t access, KeyRange* range) const {
    return keys_.view().Find(sge.lkey, range) &&
           (range->access & kWindowKey) == 0 &&
           range->Allows(pd->id, 0, access, sge.addr, sge.length);
  }

 private:
  static constexpr uint32_t kMaxKeysOfTable = 1u << 16;

  void Unbind(MemoryWindow* window);
  // False: a peer still writes under the revoked key.
  // `link`: whose peer alone can be one; 0: any.
  bool WaitForWriters(uint32_t key, uint64_t link = 0);

  KeyTable keys_;
  ArenaTable arenas_;
  LinkRegistry* const links_;
  Clock* const clock_;
  std::atomic<uint32_t> next_pd_{1};
  std::mutex mutex_;
  std::vector<MemoryWindow*> windows_;  // by key index; guarded by mutex_
};

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_MEMORY_REGISTRY_H_
