#include "rpc/internal/message_in_parts.h"

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "rpc/internal/message_codec.h"
#include "rpc/internal/serialize_large.h"

namespace rpc::internal {
namespace {

// A part is a frame to the peer, and what it waits for before it begins.
constexpr size_t kSmallestPart = 256 << 10;
constexpr size_t kMostParts = 16;

}  // namespace

void MessageInParts::Write(const google::protobuf::MessageLite& message,
                           NextWait next_wait) {
  const size_t part_bytes =
      std::max(memory_.size() / kMostParts, kSmallestPart);
  const bool written = SerializeLarge(
      message, {memory_.mutable_data(), memory_.size()}, part_bytes,
      [this](size_t bytes) { growing_->SetWritten(bytes); });
  if (written) {
    growing_->SetAllWritten(next_wait);
    return;
  }
  const Status error = MessageChangedWhileSent();
  growing_->Fail(absl::Status(static_cast<absl::StatusCode>(error.error_code()),
                              error.error_message()));
}

}  // namespace rpc::internal
