// What ucx_bench's client and server say to each other.
#ifndef VERBENA_BENCHMARKS_PEERS_UCX_MESSAGES_H_
#define VERBENA_BENCHMARKS_PEERS_UCX_MESSAGES_H_

#include <cstdint>

namespace benchmarks {

constexpr uint32_t kGroup = 64;  // messages of --one_way to an acknowledgement
constexpr uint32_t kGroups = 4;  // on their way

enum MessageId : unsigned {
  kSetup,  // to the server; data: Setup
  kReady,
  kEcho,  // to the server
  kAnswer,
  kPut,         // to the server
  kPutChecked,  // the same, and the receipt has the checksum as data
  kReceipt,
  kOneWay,  // to the server
  kGroupReceipt,
};

struct Header {
  uint32_t slot;   // of the call; of a group: its number
  uint32_t bytes;  // of the payload; from the server: that it received
};

struct Setup {
  uint64_t payload_bytes;
  uint64_t slots;
};

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_PEERS_UCX_MESSAGES_H_
