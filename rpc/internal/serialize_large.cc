#include "rpc/internal/serialize_large.h"

#include <algorithm>
#include <cstdint>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream.h"
#include "memory/copy_bytes.h"

namespace rpc::internal {
namespace {

// What protobuf is given at a time: strings that do not fit into the rest of it
// are copied here.
constexpr size_t kPieceBytes = 64 << 10;

// Hands out one piece of memory bit by bit, and tells of what is there when the
// next one is asked for: what protobuf has written before that stays as it is.
class OneMemoryStream final
    : public google::protobuf::io::ZeroCopyOutputStream {
 public:
  OneMemoryStream(absl::Span<std::byte> memory, size_t part_bytes,
                  absl::FunctionRef<void(size_t)> on_written)
      : memory_(memory), part_bytes_(part_bytes), on_written_(on_written) {}

  bool Next(void** data, int* size) override {
    const size_t bytes = std::min(kPieceBytes, memory_.size() - given_);
    if (bytes == 0) return false;
    TellOfPart();
    *data = memory_.data() + given_;
    *size = static_cast<int>(bytes);
    given_ += bytes;
    return true;
  }
  void BackUp(int count) override { given_ -= static_cast<size_t>(count); }
  int64_t ByteCount() const override { return static_cast<int64_t>(given_); }

  bool AllowsAliasing() const override { return true; }
  bool WriteAliasedRaw(const void* data, int size) override {
    absl::Span<const std::byte> rest(static_cast<const std::byte*>(data),
                                     static_cast<size_t>(size));
    if (rest.size() > memory_.size() - given_) return false;
    while (!rest.empty()) {
      TellOfPart();
      const size_t bytes =
          std::min(rest.size(), part_bytes_ - (given_ - told_));
      Copy(memory_.data() + given_, rest.data(), bytes);
      given_ += bytes;
      rest.remove_prefix(bytes);
    }
    return true;
  }

 private:
  void Copy(std::byte* to, const std::byte* from, size_t bytes) const {
    if (memory_.size() >= memory::kFewestBytesPastCaches) {
      memory::CopyPastCaches(to, from, bytes);
    } else {
      memory::CopyBytes(to, from, bytes);
    }
  }
  void TellOfPart() {
    if (given_ - told_ < part_bytes_) return;
    told_ = given_;
    on_written_(told_);
  }

  const absl::Span<std::byte> memory_;
  const size_t part_bytes_;
  const absl::FunctionRef<void(size_t)> on_written_;
  size_t given_ = 0;
  size_t told_ = 0;
};

}  // namespace

bool SerializeLarge(const google::protobuf::MessageLite& message,
                    absl::Span<std::byte> memory, size_t part_bytes,
                    absl::FunctionRef<void(size_t)> on_written) {
  OneMemoryStream target(memory, part_bytes, on_written);
  bool written;
  {
    google::protobuf::io::CodedOutputStream stream(&target);
    stream.EnableAliasing(true);
    message.SerializeWithCachedSizes(&stream);
    stream.Trim();
    written = !stream.HadError();
  }
  return written && target.ByteCount() == static_cast<int64_t>(memory.size());
}

}  // namespace rpc::internal
