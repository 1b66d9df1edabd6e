// What a device shows all of its peers: one memory file that they map
// read-only.
//
//   offset 0        DeviceSegmentHeader
//   offset 4096     CqLine[kMaxCompletionQueues]: who sleeps
//   after that      KeyEntry[kMaxKeys]: the key table
//
// It is sparse: pages exist as they are used.
//
// Thread rule: the fields are atomics; the object is immutable once made.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_DEVICE_SEGMENT_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_DEVICE_SEGMENT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "rdma_transport/software/engine/key_table.h"
#include "rdma_transport/software/engine/memfd.h"

namespace rdma::soft {

inline constexpr uint32_t kMaxCompletionQueues = 4096;
inline constexpr uint32_t kMaxKeys = 1u << 16;

// A completion queue's line: whether its owner wants to be woken.
//
// 0: not. Else a number that changes each time the queue is armed, times two,
// plus 1 where only solicited completions count. A peer wakes once for each
// number.
struct alignas(64) CqLine {
  std::atomic<uint32_t> armed;
};
static_assert(sizeof(CqLine) == 64);

inline constexpr uint32_t kSolicitedOnly = 1;

inline constexpr size_t kCqLinesOffset = 4096;
inline constexpr size_t kKeysOffset =
    kCqLinesOffset + kMaxCompletionQueues * sizeof(CqLine);
inline constexpr size_t kDeviceSegmentBytes =
    kKeysOffset + kMaxKeys * sizeof(KeyEntry);
static_assert(kKeysOffset % alignof(KeyEntry) == 0);

// The owner's side.
class DeviceSegment {
 public:
  static absl::StatusOr<DeviceSegment> Create() {
    absl::StatusOr<Segment> segment =
        Segment::Create("verbena-device", kDeviceSegmentBytes,
                        Sharing::kReadOnlyToPeers, Prefault::kNo);
    if (!segment.ok()) return segment.status();
    return DeviceSegment(*std::move(segment));
  }

  int fd() const { return segment_.fd(); }
  // REQUIRES: index < kMaxCompletionQueues.
  CqLine* cq_line(uint32_t index) const {
    return reinterpret_cast<CqLine*>(segment_.base() + kCqLinesOffset) + index;
  }
  KeyEntry* keys() const {
    return reinterpret_cast<KeyEntry*>(segment_.base() + kKeysOffset);
  }

 private:
  explicit DeviceSegment(Segment segment) : segment_(std::move(segment)) {}

  Segment segment_;
};

// A peer's segment, in a mapping of at least kDeviceSegmentBytes.
inline const CqLine* PeerCqLine(const std::byte* base, uint32_t index) {
  return reinterpret_cast<const CqLine*>(base + kCqLinesOffset) + index;
}
inline KeyView PeerKeys(const std::byte* base) {
  return KeyView(reinterpret_cast<const KeyEntry*>(base + kKeysOffset),
                 kMaxKeys);
}

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_DEVICE_SEGMENT_H_
