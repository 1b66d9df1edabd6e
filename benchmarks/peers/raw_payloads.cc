#include "benchmarks/peers/raw_payloads.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "benchmarks/test_pattern.h"

namespace benchmarks {
namespace {

constexpr size_t kCacheLine = 64;
constexpr size_t kHugePage = size_t{2} << 20;
// As rpc_bench: beyond this many, payloads are so small that taking turns
// changes nothing.
constexpr uint64_t kMostPayloads = 1 << 16;

size_t RoundUp(size_t bytes, size_t unit) {
  return (std::max<size_t>(bytes, 1) + unit - 1) / unit * unit;
}

size_t Count(const PeerWorkload& workload) {
  return static_cast<size_t>(std::clamp<uint64_t>(
      workload.working_set_bytes / std::max<size_t>(workload.payload_bytes, 1),
      1, kMostPayloads));
}

absl::Status WrongAnswer(size_t expected_bytes, uint64_t bytes) {
  return absl::DataLossError(absl::StrCat(
      "wrong answer: ", expected_bytes, " bytes were sent, ", bytes,
      bytes == expected_bytes ? " came, with other contents" : " came"));
}

}  // namespace

absl::StatusOr<Memory> Memory::Allocate(size_t bytes) {
  bytes = RoundUp(bytes, kHugePage);
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return absl::ErrnoToStatus(errno, "mmap");
  madvise(data, bytes, MADV_HUGEPAGE);
  std::memset(data, 1, bytes);
  Memory memory;
  memory.data_ = static_cast<char*>(data);
  memory.bytes_ = bytes;
  return memory;
}

Memory::~Memory() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

size_t RawPayloads::MemoryBytes(const PeerWorkload& workload) {
  return Count(workload) * RoundUp(workload.payload_bytes, kCacheLine);
}

RawPayloads::RawPayloads(const PeerWorkload& workload, char* memory)
    : bytes_(workload.payload_bytes),
      stride_(RoundUp(bytes_, kCacheLine)),
      memory_(memory),
      checksums_(Count(workload)) {
  for (size_t i = 0; i < checksums_.size(); ++i) {
    FillTestPattern(memory_ + i * stride_, bytes_, i);
    checksums_[i] = Checksum(std::string_view(data(i), bytes_));
  }
}

absl::Status RawPayloads::CheckReceipt(uint64_t number, size_t bytes,
                                       uint64_t checksum) const {
  if (bytes == bytes_ && (!IsSampled(number) ||
                          checksum == checksums_[number % checksums_.size()])) {
    return absl::OkStatus();
  }
  return WrongAnswer(bytes_, bytes);
}

absl::Status RawPayloads::CompareEcho(uint64_t number, const char* data,
                                      size_t bytes) const {
  if (bytes == bytes_ && std::memcmp(data, this->data(number), bytes_) == 0) {
    return absl::OkStatus();
  }
  return WrongAnswer(bytes_, bytes);
}

}  // namespace benchmarks
