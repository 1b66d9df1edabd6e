// All links of a device: whom to tell of memory, and whom to ask whether it is
// still being written.
//
//   LinkRegistry::Entry entry(&registry, link);   // for the life of the link
//   registry.Announce(arena);                     // to every peer
//   registry.WaitUntilNotWritten(rkey, limit);
//
// Thread rule: thread-safe.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_LINK_REGISTRY_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_LINK_REGISTRY_H_

#include <cstdint>
#include <mutex>
#include <unordered_set>

#include "rdma_transport/software/clock.h"
#include "rdma_transport/software/engine/link.h"

namespace rdma::soft {

class LinkRegistry {
 public:
  void Add(Link* link);
  void Remove(Link* link);

  // What a peer cannot be told now, because its socket is full, the link keeps
  // and tells later.
  void Announce(uint32_t arena);
  void Withdraw(uint32_t arena);

  // Waits until no peer writes under the revoked `key`; a dead peer does not.
  // `serial`: only this link's peer may; 0: any. A
  // peer's write lasts microseconds, so this polls. False: at `limit_ns` one
  // still did, as a process that is stopped in the middle of a copy would.
  bool WaitUntilNotWritten(uint32_t key, uint64_t serial, Clock* clock,
                           int64_t limit_ns);

 private:
  bool IsWritten(uint32_t key, uint64_t serial);

  std::mutex mutex_;
  std::unordered_set<Link*> links_;  // guarded by mutex_
};

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_LINK_REGISTRY_H_
