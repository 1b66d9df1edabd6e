// What two ends tell each other over TCP to connect QPs without rdma_cm.
//
// Three messages of one fixed size: the connecting side's request, the
// accepting side's accept or reject, the connecting side's ready. After that
// nothing is sent: the end of the TCP connection is the end of the QPs'.
//
//   offset  bytes
//        0      4  magic: "VbQP"
//        4      1  version: 1
//        5      1  kind: 1 request, 2 accept, 3 reject, 4 ready
//        6      1  bytes of private data that are used
//        7      1  IBTA MTU of the port, 1 (256) to 5 (4096)
//        8      4  QP number, 24 bits
//       12      4  PSN of its first packet, 24 bits
//       16     16  GID; zero where there is none
//       32      2  LID; zero on Ethernet
//       34      1  READs that it serves at once
//       35      1  READs that it issues at once
//       36      1  retry count
//       37      1  RNR retry count, of the peer's sends
//       38      2  zero
//       40    196  private data, padded with zeros
//
// Numbers are big-endian. Offsets 7 to 37 count in request and accept only.
//
// Thread-safe. Nothing of a peer is trusted: see Decode.
#ifndef VERBENA_RDMA_TRANSPORT_HARDWARE_SETUP_MESSAGE_H_
#define VERBENA_RDMA_TRANSPORT_HARDWARE_SETUP_MESSAGE_H_

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "rdma_transport/provider/provider.h"

namespace rdma {

inline constexpr size_t kSetupMessageBytes = 40 + kMaxAcceptPrivateData;

struct SetupMessage {
  enum class Kind : uint8_t {
    kRequest = 1,
    kAccept = 2,
    kReject = 3,
    kReady = 4,
  };

  Kind kind = Kind::kReady;
  ibv_mtu mtu = IBV_MTU_256;
  uint32_t qp_num = 0;
  uint32_t psn = 0;
  ibv_gid gid = {};
  uint16_t lid = 0;
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
  uint8_t retry_count = 0;
  uint8_t rnr_retry_count = 0;
  std::string private_data;
};

using SetupMessageBytes = std::array<uint8_t, kSetupMessageBytes>;

// REQUIRES: the private data fits its kind (provider.h), numbers their bits.
SetupMessageBytes Encode(const SetupMessage& message);

// INVALID_ARGUMENT, with a text for the user, for whatever Encode does not
// make.
absl::StatusOr<SetupMessage> Decode(const SetupMessageBytes& bytes);

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_HARDWARE_SETUP_MESSAGE_H_
