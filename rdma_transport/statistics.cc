#include "rdma_transport/statistics.h"

#include <atomic>

#include "rdma_transport/connection.h"
#include "rdma_transport/verbs/protection_domain.h"

namespace rdma {

TransportStatistics GetTransportStatistics() {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  const TransportCounters& counters = TransportCounters::Get();
  return {
      .eager_messages_sent = counters.eager_messages_sent.load(kRelaxed),
      .eager_messages_received =
          counters.eager_messages_received.load(kRelaxed),
      .rendezvous_messages_sent =
          counters.rendezvous_messages_sent.load(kRelaxed),
      .rendezvous_messages_received =
          counters.rendezvous_messages_received.load(kRelaxed),
      .open_connections = counters.open_connections.load(kRelaxed),
      .registered_bytes = MemoryRegion::TotalBytes(),
  };
}

}  // namespace rdma
