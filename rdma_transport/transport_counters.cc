#include "rdma_transport/transport_counters.h"

#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace rdma {
namespace {

constexpr Counter TransportCounters::*kAll[] = {
    &TransportCounters::eager_messages_sent,
    &TransportCounters::rendezvous_messages_sent,
    &TransportCounters::eager_messages_received,
    &TransportCounters::rendezvous_messages_received,
    &TransportCounters::open_connections,
    &TransportCounters::unanswered_offers,
};

struct Registry {
  absl::Mutex mutex;
  std::set<TransportCounters*> counting ABSL_GUARDED_BY(mutex);
};

Registry& GetRegistry() {
  static auto* const registry = new Registry;
  return *registry;
}

}  // namespace

TransportCounters::TransportCounters() {
  Registry& registry = GetRegistry();
  absl::MutexLock lock(&registry.mutex);
  registry.counting.insert(this);
}

TransportCounters::~TransportCounters() {
  // One of those that count, of all that do no more.
  static auto* const past = new TransportCounters;
  Registry& registry = GetRegistry();
  absl::MutexLock lock(&registry.mutex);
  registry.counting.erase(this);
  for (const auto counter : kAll)
    (past->*counter).Add((this->*counter).value());
}

uint64_t TransportCounters::Sum(Counter TransportCounters::*counter) {
  Registry& registry = GetRegistry();
  absl::MutexLock lock(&registry.mutex);
  uint64_t sum = 0;
  for (const TransportCounters* each : registry.counting) {
    sum += (each->*counter).value();
  }
  return sum;
}

}  // namespace rdma
