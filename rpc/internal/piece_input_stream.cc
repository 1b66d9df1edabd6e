#include "rpc/internal/piece_input_stream.h"

#include <algorithm>
#include <climits>

namespace rpc::internal {

absl::Span<const std::byte> PieceInputStream::Peek() {
  if (left_.empty()) left_ = NextPiece();
  return left_;
}

bool PieceInputStream::Next(const void** data, int* size) {
  if (Peek().empty()) return false;
  // A piece may be larger than an int counts: it is given in parts.
  const size_t count = std::min<size_t>(left_.size(), INT_MAX);
  *data = left_.data();
  *size = static_cast<int>(count);
  left_.remove_prefix(count);
  byte_count_ += static_cast<int64_t>(count);
  return true;
}

void PieceInputStream::BackUp(int count) {
  // What Next gave last lies just before what is left.
  left_ = {left_.data() - count, left_.size() + static_cast<size_t>(count)};
  byte_count_ -= count;
}

bool PieceInputStream::Skip(int count) {
  const void* data;
  int size;
  while (count > 0) {
    if (!Next(&data, &size)) return false;
    if (size > count) BackUp(size - count);
    count -= std::min(size, count);
  }
  return true;
}

}  // namespace rpc::internal
