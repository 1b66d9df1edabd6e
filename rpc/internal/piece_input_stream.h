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

 private:
  // Empty at the end. The one before is not needed any more.
  virtual absl::Span<const std::byte> NextPiece() = 0;

  absl::Span<const std::byte> left_;  // of the piece that Next reads from
  int64_t byte_count_ = 0;
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_PIECE_INPUT_STREAM_H_
