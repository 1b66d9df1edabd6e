// Frames for tests, as a peer would put them on the wire.
#ifndef VERBENA_TESTS_TRANSPORT_FRAME_BUILDER_H_
#define VERBENA_TESTS_TRANSPORT_FRAME_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "rdma_transport/frame.h"

namespace rdma::testing {

using Bytes = std::vector<std::byte>;

inline Bytes ToBytes(std::string_view text) {
  const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
  return Bytes(begin, begin + text.size());
}

inline Bytes ToBytes(const std::vector<Segment>& segments) {
  Bytes bytes(segments.size() * kSegmentBytes);
  for (size_t i = 0; i < segments.size(); ++i) {
    EncodeSegment(segments[i], bytes.data() + i * kSegmentBytes);
  }
  return bytes;
}

// What comes before the segments of a message in parts.
inline Bytes TotalBytes(uint64_t total) {
  Bytes bytes(kTotalBytes);
  std::memcpy(bytes.data(), &total, sizeof(total));
  return bytes;
}

// A payload. The sizes in `fields` are written as they are, right or wrong.
inline Bytes MakePayload(const FrameFields& fields, const Bytes& header,
                         const Bytes& message, const Bytes& attachment) {
  Bytes payload(PrefixBytes(fields));
  EncodePrefix(fields, payload.data());
  for (const Bytes* part : {&header, &message, &attachment}) {
    payload.insert(payload.end(), part->begin(), part->end());
  }
  return payload;
}

}  // namespace rdma::testing

#endif  // VERBENA_TESTS_TRANSPORT_FRAME_BUILDER_H_
