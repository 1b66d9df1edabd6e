#include "rpc/buffer.h"

#include <cstring>
#include <new>

namespace rpc {
namespace {

// The block's header and its bytes are one allocation.
class HeapBlock final : public BufferBlock {
 public:
  static HeapBlock* New(size_t size) {
    void* memory = ::operator new(sizeof(HeapBlock) + size);
    return new (memory)
        HeapBlock(static_cast<std::byte*>(memory) + sizeof(HeapBlock), size);
  }

 private:
  HeapBlock(std::byte* data, size_t size) : BufferBlock(data, size, nullptr) {}

  void Recycle() override {
    this->~HeapBlock();
    ::operator delete(static_cast<void*>(this));
  }
};

}  // namespace

Buffer Buffer::FromHeap(size_t size) {
  HeapBlock* block = HeapBlock::New(size);
  return Buffer(block, block->data(), size);
}

Buffer Buffer::CopyOf(std::string_view bytes) {
  Buffer buffer = FromHeap(bytes.size());
  if (!bytes.empty()) {
    std::memcpy(buffer.mutable_data(), bytes.data(), bytes.size());
  }
  return buffer;
}

void BufferChain::AppendAnother(Buffer buffer) {
  if (several_.empty()) several_.push_back(std::move(only_));
  size_ += buffer.size();
  several_.push_back(std::move(buffer));
}

void BufferChain::Append(BufferChain chain) {
  if (chain.empty()) return;
  if (empty()) return Take(chain);
  if (chain.several_.empty()) return AppendAnother(std::move(chain.only_));
  for (Buffer& buffer : chain.several_) AppendAnother(std::move(buffer));
}

void BufferChain::CopyTo(std::byte* out) const {
  for (const Buffer& buffer : buffers()) {
    std::memcpy(out, buffer.data(), buffer.size());
    out += buffer.size();
  }
}

std::string BufferChain::ToString() const {
  std::string result(size_, '\0');
  CopyTo(reinterpret_cast<std::byte*>(result.data()));
  return result;
}

}  // namespace rpc
