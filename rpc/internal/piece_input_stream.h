// Reads pieces of memory as protobuf reads streams, with no copy.
//
// One thread.
#ifndef VERBENA_RPC_INTERNAL_PIECE_INPUT_STREAM_H_
#define VERBENA_RPC_INTERNAL_PIECE_INPUT_STREAM_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "google/protobuf/io/zero_copy_stream.h"

namespace rpc::internal {

class PieceInputStream : public google::protobuf::io::ZeroCopyInputStream {
 public:
  bool Next(const void** data, int* size) final;
  void BackUp(int count) final;
  bool Skip(int count) final;
  int64_t ByteCount() const final { return byte_count_; }

 protected:
  // What Next would give, but all of it; empty at the end.
  absl::Span<const std::byte> Peek();
  // Goes on with `left` instead of what is left of the piece that Next reads
  // from, `count` bytes further on.
  absl::Span<const std::byte> left() const { return left_; }
  void Replace(absl::Span<const std::byte> left, size_t count) {
    left_ = left;
    byte_count_ += static_cast<int64_t>(count);
  }

 private:
  // Empty at the end. The one before is not needed any more.
  virtual absl::Span<const std::byte> NextPiece() = 0;

  absl::Span<const std::byte> left_;
  int64_t byte_count_ = 0;
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_PIECE_INPUT_STREAM_H_
