#include "rdma_transport/software/engine/link_registry.h"

#include <sched.h>

namespace rdma::soft {

void LinkRegistry::Add(Link* link) {
  std::lock_guard lock(mutex_);
  links_.insert(link);
}

void LinkRegistry::Remove(Link* link) {
  std::lock_guard lock(mutex_);
  links_.erase(link);
}

void LinkRegistry::Announce(uint32_t arena) {
  std::lock_guard lock(mutex_);
  for (Link* link : links_) link->Announce(arena);
}

void LinkRegistry::Withdraw(uint32_t arena) {
  std::lock_guard lock(mutex_);
  for (Link* link : links_) link->Withdraw(arena);
}

bool LinkRegistry::WaitUntilNotWritten(uint32_t key, uint64_t serial,
                                       Clock* clock, int64_t limit_ns) {
  if (!IsWritten(key, serial)) return true;
  const int64_t deadline_ns = clock->NowNanoseconds() + limit_ns;
  do {
    sched_yield();
    if (!IsWritten(key, serial)) return true;
  } while (clock->NowNanoseconds() < deadline_ns);
  return false;
}

bool LinkRegistry::IsWritten(uint32_t key, uint64_t serial) {
  std::lock_guard lock(mutex_);
  for (const Link* link : links_) {
    if ((serial == 0 || link->serial() == serial) &&
        link->PeersWritingKey() == key && !link->IsPeerGone()) {
      return true;
    }
  }
  return false;
}

}  // namespace rdma::soft
