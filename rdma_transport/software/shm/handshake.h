// The handshake of two soft devices, over a Unix socket:
//
//   to the server   HandshakeSetup (kHello), the client's two segments
//   to the client   HandshakeSetup (kAccept), the server's two segments, or
//                   Rejection (kReject)
//
// after which the connection is up, and the socket belongs to the link
// (shm_link.h). Every message begins with a header whose layout, and that of
// Rejection, never changes, so that any two versions can tell each other that
// they do not fit.
//
// Encode and Decode know nothing of sockets; Decode trusts nothing.
//
// Thread rule: none; pure functions.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_SHM_HANDSHAKE_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_SHM_HANDSHAKE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "rdma_transport/provider/provider.h"
#include "rdma_transport/software/shm/control_socket.h"

namespace rdma::soft {

inline constexpr uint32_t kHandshakeMagic = 0x62726556;  // "Verb"
// Of the rings, the segments and the messages on the socket together.
inline constexpr uint16_t kProtocolVersion = 2;

enum class HandshakeKind : uint16_t {
  kHello = 1,
  kAccept = 2,
  kReject = 3,
};

// What each side says of itself. Its two descriptors go along: the device's
// segment, then the link's.
struct HandshakeSetup {
  uint32_t qp_num = 0;
  uint32_t pd = 0;
  uint32_t send_cq_line = 0;
  uint32_t recv_cq_line = 0;
  uint32_t ring_lines = 0;
  bool asymmetric_fence = false;
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
  uint8_t rnr_retry_count = 0;
  uint8_t retry_count = 0;
  SocketAddress address;  // its own, as the other side should call it
  std::string private_data;
};

struct Rejection {
  bool by_user = false;  // ConnectionManager::Reject, not the device
  std::string reason;
};

struct EncodedHandshake {
  std::byte data[kMaxControlBytes];
  size_t bytes = 0;
};

EncodedHandshake EncodeSetup(HandshakeKind kind, const HandshakeSetup& setup);
// A longer reason is cut to kMaxRejectPrivateData bytes.
EncodedHandshake EncodeRejection(const Rejection& rejection);

// The kind of a message, whatever its version. INVALID_ARGUMENT: not one.
absl::StatusOr<HandshakeKind> DecodeKind(const ControlMessage& message);
// FAILED_PRECONDITION: another version, with both in the text.
// INVALID_ARGUMENT: a field that cannot be.
absl::StatusOr<HandshakeSetup> DecodeSetup(const ControlMessage& message);
absl::StatusOr<Rejection> DecodeRejection(const ControlMessage& message);

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_SHM_HANDSHAKE_H_
