#include "rpc/internal/chain_input_stream.h"

#include <algorithm>
#include <climits>

namespace rpc::internal {

bool ChainInputStream::Next(const void** data, int* size) {
  const BufferChain::Buffers buffers = chain_.buffers();
  while (index_ < buffers.size() && offset_ == buffers[index_].size()) {
    ++index_;
    offset_ = 0;
  }
  if (index_ == buffers.size()) return false;
  const Buffer& buffer = buffers[index_];
  // A buffer may be larger than an int counts: it is given in parts.
  const size_t count = std::min<size_t>(buffer.size() - offset_, INT_MAX);
  *data = buffer.data() + offset_;
  *size = static_cast<int>(count);
  offset_ += count;
  byte_count_ += static_cast<int64_t>(count);
  return true;
}

void ChainInputStream::BackUp(int count) {
  // What Next gave last lies in the current buffer, just before offset_.
  offset_ -= static_cast<size_t>(count);
  byte_count_ -= count;
}

bool ChainInputStream::Skip(int count) {
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
