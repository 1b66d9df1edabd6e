#include "rdma_transport/statistics.h"

#include "rdma_transport/transport_counters.h"
#include "rdma_transport/verbs/protection_domain.h"

namespace rdma {

TransportStatistics GetTransportStatistics() {
  using Counters = TransportCounters;
  return {
      .eager_messages_sent = Counters::Sum(&Counters::eager_messages_sent),
      .eager_messages_received =
          Counters::Sum(&Counters::eager_messages_received),
      .rendezvous_messages_sent =
          Counters::Sum(&Counters::rendezvous_messages_sent),
      .rendezvous_messages_received =
          Counters::Sum(&Counters::rendezvous_messages_received),
      .open_connections = Counters::Sum(&Counters::open_connections),
      .registered_bytes = MemoryRegion::TotalBytes(),
  };
}

}  // namespace rdma
