#include "rpc/proto_buffer_writer.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace rpc {

ProtoBufferWriter::ProtoBufferWriter(ByteBuffer* byte_buffer, int block_size,
                                     int total_size)
    : byte_buffer_(byte_buffer),
      block_size_(std::max(block_size, 1)),
      total_size_(total_size) {
  *byte_buffer_ = ByteBuffer(BufferChain());
}

bool ProtoBufferWriter::Next(void** data, int* size) {
  if (byte_count_ >= total_size_) return false;
  const auto left = static_cast<size_t>(total_size_ - byte_count_);
  if (spare_.empty()) {
    const auto block_size = static_cast<size_t>(block_size_);
    last_ = Buffer::FromHeap(std::min(block_size, left));
  } else {
    // Never more than is left: it was part of that before.
    last_ = std::exchange(spare_, Buffer());
  }
  *data = last_.mutable_data();
  *size = static_cast<int>(last_.size());
  byte_count_ += *size;
  byte_buffer_->chain_.Append(last_);
  return true;
}

void ProtoBufferWriter::BackUp(int count) {
  // That is how protobuf says that all of it was used.
  if (count == 0) return;
  const auto bytes = static_cast<size_t>(count);
  byte_buffer_->chain_.remove_suffix(bytes);
  byte_count_ -= count;
  spare_ = last_.Slice(last_.size() - bytes, bytes);
}

}  // namespace rpc
