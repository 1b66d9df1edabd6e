// What a poller's connections count, for statistics (statistics.h).
//
// Each poller counts for itself, so that counting costs no locked instruction;
// the sum over all of them, past ones included, is the process's.
#ifndef VERBENA_RDMA_TRANSPORT_TRANSPORT_COUNTERS_H_
#define VERBENA_RDMA_TRANSPORT_TRANSPORT_COUNTERS_H_

#include <atomic>
#include <cstdint>

namespace rdma {

// A number that one thread at a time changes and any thread reads.
class Counter {
 public:
  void Add(uint64_t count) {
    value_.store(value_.load(std::memory_order_relaxed) + count,
                 std::memory_order_relaxed);
  }
  void Subtract(uint64_t count) { Add(-count); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

// Thread rule: counted by the poller's driver.
struct TransportCounters {
  TransportCounters();
  // What was counted stays in the sum.
  ~TransportCounters();
  TransportCounters(const TransportCounters&) = delete;
  TransportCounters& operator=(const TransportCounters&) = delete;

  // Adds up `counter` over all pollers of the process. Any thread.
  static uint64_t Sum(Counter TransportCounters::*counter);

  Counter eager_messages_sent;
  Counter rendezvous_messages_sent;
  Counter eager_messages_received;
  Counter rendezvous_messages_received;
  Counter open_connections;
  Counter unanswered_offers;  // large messages that peers may still read
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_TRANSPORT_COUNTERS_H_
