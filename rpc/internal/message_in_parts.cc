#include "rpc/internal/message_in_parts.h"

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream.h"
#include "rpc/internal/message_codec.h"

namespace rpc::internal {
namespace {

// A part is a frame to the peer, and what it waits for before it begins.
constexpr size_t kSmallestPart = 256 << 10;
constexpr size_t kMostParts = 16;

// Hands out one buffer part by part, and tells of each when the next is asked
// for: what protobuf has written before that stays as it is.
class PartStream final : public google::protobuf::io::ZeroCopyOutputStream {
 public:
  PartStream(Buffer& memory, GrowingMessage& growing)
      : memory_(memory),
        growing_(growing),
        part_bytes_(std::max(memory.size() / kMostParts, kSmallestPart)) {}

  bool Next(void** data, int* size) override {
    const size_t part = std::min(part_bytes_, memory_.size() - given_);
    if (part == 0) return false;
    if (given_ > 0) growing_.SetWritten(given_);
    *data = memory_.mutable_data() + given_;
    *size = static_cast<int>(part);
    given_ += part;
    return true;
  }
  void BackUp(int count) override { given_ -= static_cast<size_t>(count); }
  int64_t ByteCount() const override { return static_cast<int64_t>(given_); }

 private:
  Buffer& memory_;
  GrowingMessage& growing_;
  const size_t part_bytes_;
  size_t given_ = 0;
};

}  // namespace

void MessageInParts::Write(const google::protobuf::MessageLite& message) {
  PartStream parts(memory_, *growing_);
  bool written;
  {
    google::protobuf::io::CodedOutputStream stream(&parts);
    message.SerializeWithCachedSizes(&stream);
    stream.Trim();
    written = !stream.HadError();
  }
  if (written && parts.ByteCount() == static_cast<int64_t>(memory_.size())) {
    growing_->SetWritten(memory_.size());
    return;
  }
  const Status error = MessageChangedWhileSent();
  growing_->Fail(absl::Status(static_cast<absl::StatusCode>(error.error_code()),
                              error.error_message()));
}

}  // namespace rpc::internal
