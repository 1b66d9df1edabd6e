// What the transport of this process has carried, in numbers, for programs that
// show them.
//
//   rdma::TransportStatistics now = rdma::GetTransportStatistics();
//   std::cout << now.rendezvous_messages_received;
//
// Thread rule: any thread.
#ifndef VERBENA_RDMA_TRANSPORT_STATISTICS_H_
#define VERBENA_RDMA_TRANSPORT_STATISTICS_H_

#include <cstdint>

namespace rdma {

// The messages are sums over all connections of the process, also closed ones,
// since it started. A message with its attachment counts once: as eager where
// all of it was in its frame, as by rendezvous where the receiver read any part
// of it.
struct TransportStatistics {
  uint64_t eager_messages_sent = 0;
  uint64_t eager_messages_received = 0;
  uint64_t rendezvous_messages_sent = 0;
  uint64_t rendezvous_messages_received = 0;

  // Not sums: the connections that there are now, of clients and of servers,
  // with those that are being made or taken down, and the memory that is
  // registered with devices.
  uint64_t open_connections = 0;
  uint64_t registered_bytes = 0;
};

// Each number is exact; they are not of the same instant.
TransportStatistics GetTransportStatistics();

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_STATISTICS_H_
