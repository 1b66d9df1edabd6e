// What two sides tell each other in the connection manager's private data:
// versions and limits. See docs/wire_format.md, "Handshake".
//
// Pure functions and values.
#ifndef VERBENA_RDMA_TRANSPORT_HANDSHAKE_H_
#define VERBENA_RDMA_TRANSPORT_HANDSHAKE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace rdma {

inline constexpr uint16_t kProtocolVersion = 1;

// This side's offers are granted by memory windows: whoever says done to one
// invalidates its first key.
inline constexpr uint16_t kFeatureWindows = 1 << 0;

// Little-endian on the wire, 40 bytes, the same both ways; some devices pad
// private data with zeros, so what follows is ignored.
//   offset 0: magic "VRBN" (4), 4: version (2), 6: features (2)
//          8: receive_buffer_bytes (4), 12: initial_credits (2), 14: zero (2)
//         16: max_message_bytes (8), 24: max_attachment_bytes (8)
//         32: max_calls (4), 36: zero (4)
struct Handshake {
  uint16_t version = kProtocolVersion;
  uint16_t features = 0;  // kFeature...; unknown ones are ignored
  // The largest frame this side receives. DecodeHandshake gives kMaxFrameBytes
  // for more.
  uint32_t receive_buffer_bytes = 0;
  // Frames that the peer may send before it hears of more credits.
  uint16_t initial_credits = 0;
  // What this side refuses to receive beyond.
  uint64_t max_message_bytes = 0;
  uint64_t max_attachment_bytes = 0;
  // Most calls that the peer may have open on this connection.
  uint32_t max_calls = 0;
};

inline constexpr size_t kHandshakeBytes = 40;
inline constexpr uint32_t kMinReceiveBufferBytes = 4096;
// A frame is at most this long, whatever the peer could take.
inline constexpr uint32_t kMaxFrameBytes = 1 << 16;
inline constexpr uint16_t kMinInitialCredits = 3;

std::string EncodeHandshake(const Handshake& handshake);

// INVALID_ARGUMENT: not this protocol, or values out of range.
// FAILED_PRECONDITION: another version; the text names both, fit for the user
// of either side. `own_role` and `peer_role` name the sides in texts: "client",
// "server".
absl::StatusOr<Handshake> DecodeHandshake(std::string_view private_data,
                                          std::string_view own_role,
                                          std::string_view peer_role);

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_HANDSHAKE_H_
