#include "rdma_transport/software/shm/handshake.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "rdma_transport/software/engine/device_segment.h"
#include "rdma_transport/software/engine/requester.h"
#include "rdma_transport/software/shm/link_segment.h"

namespace rdma::soft {
namespace {

struct WireHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t kind;
};
static_assert(sizeof(WireHeader) == 8);

constexpr size_t kMaxPrivateData =
    std::max(kMaxConnectPrivateData, kMaxAcceptPrivateData);

struct WireSetup {
  WireHeader header;
  uint32_t qp_num;
  uint32_t pd;
  uint32_t send_cq_line;
  uint32_t recv_cq_line;
  uint32_t ring_lines;
  uint8_t asymmetric_fence;
  uint8_t responder_resources;
  uint8_t initiator_depth;
  uint8_t rnr_retry_count;
  uint8_t retry_count;
  uint8_t address_family;  // 4 or 6
  uint16_t port;
  uint8_t address[16];
  uint16_t private_data_bytes;
  uint8_t unused[10];
  uint8_t private_data[kMaxPrivateData];
};
static_assert(sizeof(WireSetup) == 64 + kMaxPrivateData);
static_assert(sizeof(WireSetup) <= kMaxControlBytes);

struct WireRejection {
  WireHeader header;
  uint16_t by_user;
  uint16_t reason_bytes;
  char reason[kMaxRejectPrivateData];
};
static_assert(sizeof(WireRejection) == 12 + kMaxRejectPrivateData);

void EncodeAddress(const SocketAddress& address, WireSetup* wire) {
  wire->port = address.port();
  if (address.family() == AF_INET6) {
    wire->address_family = 6;
    std::memcpy(
        wire->address,
        &reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr, 16);
  } else {
    wire->address_family = 4;
    std::memcpy(wire->address,
                &reinterpret_cast<const sockaddr_in*>(address.get())->sin_addr,
                4);
  }
}

bool DecodeAddress(const WireSetup& wire, SocketAddress* address) {
  if (wire.address_family == 4) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(address->storage);
    v4.sin_family = AF_INET;
    std::memcpy(&v4.sin_addr, wire.address, 4);
  } else if (wire.address_family == 6) {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(address->storage);
    v6.sin6_family = AF_INET6;
    std::memcpy(&v6.sin6_addr, wire.address, 16);
  } else {
    return false;
  }
  address->set_port(wire.port);
  return true;
}

template <typename Wire>
EncodedHandshake Encode(const Wire& wire) {
  EncodedHandshake encoded;
  std::memcpy(encoded.data, &wire, sizeof(wire));
  encoded.bytes = sizeof(wire);
  return encoded;
}

}  // namespace

EncodedHandshake EncodeSetup(HandshakeKind kind, const HandshakeSetup& setup) {
  WireSetup wire = {};
  wire.header = {kHandshakeMagic, kProtocolVersion,
                 static_cast<uint16_t>(kind)};
  wire.qp_num = setup.qp_num;
  wire.pd = setup.pd;
  wire.send_cq_line = setup.send_cq_line;
  wire.recv_cq_line = setup.recv_cq_line;
  wire.ring_lines = setup.ring_lines;
  wire.asymmetric_fence = setup.asymmetric_fence;
  wire.responder_resources = setup.responder_resources;
  wire.initiator_depth = setup.initiator_depth;
  wire.rnr_retry_count = setup.rnr_retry_count;
  wire.retry_count = setup.retry_count;
  EncodeAddress(setup.address, &wire);
  const size_t bytes = std::min(setup.private_data.size(), kMaxPrivateData);
  wire.private_data_bytes = static_cast<uint16_t>(bytes);
  std::memcpy(wire.private_data, setup.private_data.data(), bytes);
  return Encode(wire);
}

EncodedHandshake EncodeRejection(const Rejection& rejection) {
  WireRejection wire = {};
  wire.header = {kHandshakeMagic, kProtocolVersion,
                 static_cast<uint16_t>(HandshakeKind::kReject)};
  wire.by_user = rejection.by_user;
  const size_t bytes = std::min(rejection.reason.size(), sizeof(wire.reason));
  wire.reason_bytes = static_cast<uint16_t>(bytes);
  std::memcpy(wire.reason, rejection.reason.data(), bytes);
  return Encode(wire);
}

absl::StatusOr<HandshakeKind> DecodeKind(const ControlMessage& message) {
  WireHeader header;
  if (message.bytes < sizeof(header)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a message of ", message.bytes, " bytes"));
  }
  std::memcpy(&header, message.data.data(), sizeof(header));
  if (header.magic != kHandshakeMagic || header.kind < 1 || header.kind > 3) {
    return absl::InvalidArgumentError("no soft-device handshake");
  }
  return static_cast<HandshakeKind>(header.kind);
}

absl::StatusOr<HandshakeSetup> DecodeSetup(const ControlMessage& message) {
  WireHeader header = {};
  std::memcpy(&header, message.data.data(),
              std::min(sizeof(header), message.bytes));
  if (header.version != kProtocolVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "this side speaks soft-device protocol ", kProtocolVersion,
        ", the peer ", header.version, ": run the same release on both sides"));
  }
  WireSetup wire;
  if (message.bytes != sizeof(wire) || message.truncated ||
      message.fd_count != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("a handshake of ", message.bytes, " bytes with ",
                     message.fd_count, " descriptors"));
  }
  std::memcpy(&wire, message.data.data(), sizeof(wire));
  HandshakeSetup setup;
  if (!IsValidRingSize(wire.ring_lines) ||
      wire.send_cq_line >= kMaxCompletionQueues ||
      wire.recv_cq_line >= kMaxCompletionQueues ||
      wire.private_data_bytes > kMaxPrivateData || wire.rnr_retry_count > 7 ||
      wire.retry_count > 7 || wire.responder_resources > kMaxReads ||
      wire.initiator_depth > kMaxReads ||
      !DecodeAddress(wire, &setup.address)) {
    return absl::InvalidArgumentError("a handshake with a field out of range");
  }
  setup.qp_num = wire.qp_num;
  setup.pd = wire.pd;
  setup.send_cq_line = wire.send_cq_line;
  setup.recv_cq_line = wire.recv_cq_line;
  setup.ring_lines = wire.ring_lines;
  setup.asymmetric_fence = wire.asymmetric_fence != 0;
  setup.responder_resources = wire.responder_resources;
  setup.initiator_depth = wire.initiator_depth;
  setup.rnr_retry_count = wire.rnr_retry_count;
  setup.retry_count = wire.retry_count;
  setup.private_data.assign(reinterpret_cast<const char*>(wire.private_data),
                            wire.private_data_bytes);
  return setup;
}

absl::StatusOr<Rejection> DecodeRejection(const ControlMessage& message) {
  WireRejection wire;
  if (message.bytes != sizeof(wire)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a rejection of ", message.bytes, " bytes"));
  }
  std::memcpy(&wire, message.data.data(), sizeof(wire));
  if (wire.header.kind != static_cast<uint16_t>(HandshakeKind::kReject) ||
      wire.reason_bytes > sizeof(wire.reason)) {
    return absl::InvalidArgumentError("a rejection that is none");
  }
  Rejection rejection;
  rejection.by_user = wire.by_user != 0;
  rejection.reason.assign(wire.reason, wire.reason_bytes);
  return rejection;
}

}  // namespace rdma::soft
