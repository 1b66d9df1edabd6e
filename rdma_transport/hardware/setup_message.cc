#include "rdma_transport/hardware/setup_message.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace rdma {
namespace {

constexpr uint32_t kMagic = 0x56625150;  // "VbQP"
constexpr uint8_t kVersion = 1;
constexpr uint32_t kMax24Bits = 0xffffff;  // QP numbers and PSNs
constexpr size_t kPrivateDataOffset = 40;
static_assert(kPrivateDataOffset + kMaxAcceptPrivateData == kSetupMessageBytes);
static_assert(sizeof(ibv_gid) == 16);

void Put16(uint8_t* at, uint16_t value) {
  at[0] = static_cast<uint8_t>(value >> 8);
  at[1] = static_cast<uint8_t>(value);
}

void Put32(uint8_t* at, uint32_t value) {
  Put16(at, static_cast<uint16_t>(value >> 16));
  Put16(at + 2, static_cast<uint16_t>(value));
}

uint16_t Get16(const uint8_t* at) {
  return static_cast<uint16_t>(at[0] << 8 | at[1]);
}

uint32_t Get32(const uint8_t* at) {
  return uint32_t{Get16(at)} << 16 | Get16(at + 2);
}

size_t MaxPrivateData(SetupMessage::Kind kind) {
  switch (kind) {
    case SetupMessage::Kind::kRequest:
      return kMaxConnectPrivateData;
    case SetupMessage::Kind::kAccept:
      return kMaxAcceptPrivateData;
    case SetupMessage::Kind::kReject:
      return kMaxRejectPrivateData;
    case SetupMessage::Kind::kReady:
      return 0;
  }
  return 0;
}

absl::Status Bad(std::string_view what, uint32_t value) {
  return absl::InvalidArgumentError(absl::StrCat(
      "a connection set-up message with ", std::string(what), " ", value));
}

// What only request and accept have.
absl::Status CheckQueuePair(const SetupMessage& message) {
  if (message.qp_num > kMax24Bits) return Bad("QP number", message.qp_num);
  if (message.psn > kMax24Bits) return Bad("PSN", message.psn);
  if (message.retry_count > 7) return Bad("retry count", message.retry_count);
  if (message.rnr_retry_count > 7) {
    return Bad("RNR retry count", message.rnr_retry_count);
  }
  return absl::OkStatus();
}

}  // namespace

SetupMessageBytes Encode(const SetupMessage& message) {
  SetupMessageBytes bytes = {};
  Put32(&bytes[0], kMagic);
  bytes[4] = kVersion;
  bytes[5] = static_cast<uint8_t>(message.kind);
  bytes[6] = static_cast<uint8_t>(message.private_data.size());
  bytes[7] = static_cast<uint8_t>(message.mtu);
  Put32(&bytes[8], message.qp_num);
  Put32(&bytes[12], message.psn);
  std::memcpy(&bytes[16], message.gid.raw, sizeof(message.gid.raw));
  Put16(&bytes[32], message.lid);
  bytes[34] = message.responder_resources;
  bytes[35] = message.initiator_depth;
  bytes[36] = message.retry_count;
  bytes[37] = message.rnr_retry_count;
  std::copy(message.private_data.begin(), message.private_data.end(),
            bytes.begin() + kPrivateDataOffset);
  return bytes;
}

absl::StatusOr<SetupMessage> Decode(const SetupMessageBytes& bytes) {
  if (Get32(&bytes[0]) != kMagic) {
    return absl::InvalidArgumentError(
        "what came is no connection set-up message: is this the port of an "
        "RDMA server that sets up its connections by TCP?");
  }
  if (bytes[4] != kVersion) return Bad("version", bytes[4]);
  SetupMessage message;
  message.kind = static_cast<SetupMessage::Kind>(bytes[5]);
  if (message.kind < SetupMessage::Kind::kRequest ||
      message.kind > SetupMessage::Kind::kReady) {
    return Bad("kind", bytes[5]);
  }
  if (bytes[6] > MaxPrivateData(message.kind)) {
    return Bad("a private data size of", bytes[6]);
  }
  message.qp_num = Get32(&bytes[8]);
  message.psn = Get32(&bytes[12]);
  std::memcpy(message.gid.raw, &bytes[16], sizeof(message.gid.raw));
  message.lid = Get16(&bytes[32]);
  message.responder_resources = bytes[34];
  message.initiator_depth = bytes[35];
  message.retry_count = bytes[36];
  message.rnr_retry_count = bytes[37];
  message.private_data.assign(bytes.begin() + kPrivateDataOffset,
                              bytes.begin() + kPrivateDataOffset + bytes[6]);
  if (message.kind == SetupMessage::Kind::kRequest ||
      message.kind == SetupMessage::Kind::kAccept) {
    // Nothing but these is a value of the type.
    if (bytes[7] < IBV_MTU_256 || bytes[7] > IBV_MTU_4096) {
      return Bad("MTU", bytes[7]);
    }
    message.mtu = static_cast<ibv_mtu>(bytes[7]);
    if (absl::Status status = CheckQueuePair(message); !status.ok()) {
      return status;
    }
  }
  return message;
}

}  // namespace rdma
