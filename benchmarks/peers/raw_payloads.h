// Payloads that are plain memory, as what sends bytes (not messages of
// protobuf) takes them: `working_set_bytes` of memory, written once, out of
// which payloads take turns. The same turns and samples as rpc_bench's.
//
//   Memory memory = *Memory::Allocate(RawPayloads::MemoryBytes(workload));
//   RawPayloads payloads(workload, memory.data());
//   Send(payloads.data(number), workload.payload_bytes);
//
// Thread rule: const use by any number of threads.
#ifndef VERBENA_BENCHMARKS_PEERS_RAW_PAYLOADS_H_
#define VERBENA_BENCHMARKS_PEERS_RAW_PAYLOADS_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmarks/peers/peer_main.h"

namespace benchmarks {

// Memory of this process, in huge pages where the host gives them to those who
// ask, and touched.
class Memory {
 public:
  static absl::StatusOr<Memory> Allocate(size_t bytes);

  Memory() = default;
  Memory(Memory&& other) noexcept { *this = std::move(other); }
  Memory& operator=(Memory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Memory();

  char* data() const { return data_; }

 private:
  char* data_ = nullptr;
  size_t bytes_ = 0;
};

class RawPayloads {
 public:
  static size_t MemoryBytes(const PeerWorkload& workload);

  // `memory` has MemoryBytes and stays; it is written here.
  RawPayloads(const PeerWorkload& workload, char* memory);

  const char* data(uint64_t number) const {
    return memory_ + (number % checksums_.size()) * stride_;
  }

  // Whether contents are looked at: now and then, as that takes its time.
  static bool IsSampled(uint64_t number) { return number % 256 == 0; }

  // Of what came back as the echo of payload `number`: its size and, of a
  // sample, its contents. DATA_LOSS: they are others.
  absl::Status CheckEcho(uint64_t number, const char* data,
                         size_t bytes) const {
    if (bytes == bytes_ && !IsSampled(number)) return absl::OkStatus();
    return CompareEcho(number, data, bytes);
  }
  // Of what the receiver found: the size and, of a sample, the Checksum.
  absl::Status CheckReceipt(uint64_t number, size_t bytes,
                            uint64_t checksum) const;

 private:
  absl::Status CompareEcho(uint64_t number, const char* data,
                           size_t bytes) const;

  const size_t bytes_;
  const size_t stride_;
  char* const memory_;
  std::vector<uint64_t> checksums_;
};

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_PEERS_RAW_PAYLOADS_H_
