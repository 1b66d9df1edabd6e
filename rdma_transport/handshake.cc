#include "rdma_transport/handshake.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace rdma {
namespace {

constexpr char kMagic[4] = {'V', 'R', 'B', 'N'};

template <typename T>
void Store(std::string& out, size_t at, T value) {
  std::memcpy(out.data() + at, &value, sizeof(value));
}

template <typename T>
T Load(std::string_view in, size_t at) {
  T value;
  std::memcpy(&value, in.data() + at, sizeof(value));
  return value;
}

}  // namespace

std::string EncodeHandshake(const Handshake& handshake) {
  std::string out(kHandshakeBytes, '\0');
  std::memcpy(out.data(), kMagic, sizeof(kMagic));
  Store(out, 4, handshake.version);
  Store(out, 6, handshake.features);
  Store(out, 8, handshake.receive_buffer_bytes);
  Store(out, 12, handshake.initial_credits);
  Store(out, 16, handshake.max_message_bytes);
  Store(out, 24, handshake.max_attachment_bytes);
  Store(out, 32, handshake.max_calls);
  return out;
}

absl::StatusOr<Handshake> DecodeHandshake(std::string_view private_data,
                                          std::string_view own_role,
                                          std::string_view peer_role) {
  if (private_data.size() < 8 ||
      std::memcmp(private_data.data(), kMagic, sizeof(kMagic)) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the ", std::string(peer_role),
                     " does not speak Verbena's protocol on this port"));
  }
  Handshake handshake;
  // The version comes before everything that a version may change.
  handshake.version = Load<uint16_t>(private_data, 4);
  if (handshake.version != kProtocolVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the ", std::string(own_role), " speaks protocol version ",
        kProtocolVersion, ", the ", std::string(peer_role), " version ",
        handshake.version, ": run the same Verbena on both sides"));
  }
  if (private_data.size() < kHandshakeBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a handshake of ", private_data.size(), " bytes, not ",
                     kHandshakeBytes));
  }
  handshake.features = Load<uint16_t>(private_data, 6);
  handshake.receive_buffer_bytes =
      std::min(Load<uint32_t>(private_data, 8), kMaxFrameBytes);
  handshake.initial_credits = Load<uint16_t>(private_data, 12);
  handshake.max_message_bytes = Load<uint64_t>(private_data, 16);
  handshake.max_attachment_bytes = Load<uint64_t>(private_data, 24);
  handshake.max_calls = Load<uint32_t>(private_data, 32);
  if (handshake.receive_buffer_bytes < kMinReceiveBufferBytes ||
      handshake.initial_credits < kMinInitialCredits ||
      handshake.max_calls == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the ", std::string(peer_role),
                     "'s handshake has values out of range"));
  }
  return handshake;
}

}  // namespace rdma
