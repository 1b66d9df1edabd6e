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

// Memory that came from outside. `destroy` is a function of no arguments.
template <class Destroy>
class AdoptedBlock final : public BufferBlock {
 public:
  AdoptedBlock(void* data, size_t size, Destroy destroy)
      : BufferBlock(static_cast<std::byte*>(data), size, nullptr),
        destroy_(destroy) {}

 private:
  void Recycle() override {
    const Destroy destroy = destroy_;
    delete this;
    destroy();
  }

  const Destroy destroy_;
};

template <class Destroy>
Buffer AdoptBlock(void* data, size_t size, Destroy destroy) {
  return Buffer(new AdoptedBlock<Destroy>(data, size, destroy),
                static_cast<std::byte*>(data), size);
}

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

Buffer Buffer::Unowned(std::string_view bytes) {
  // Buffers of memory that may be written have the same type.
  void* const data = const_cast<char*>(bytes.data());
  return Buffer(nullptr, static_cast<std::byte*>(data), bytes.size());
}

Buffer Buffer::Adopt(void* data, size_t size, void (*destroy)(void*),
                     void* user_data) {
  return AdoptBlock(data, size, [destroy, user_data] { destroy(user_data); });
}

Buffer Buffer::Adopt(void* data, size_t size, void (*destroy)(void*, size_t)) {
  return AdoptBlock(data, size, [destroy, data, size] { destroy(data, size); });
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

void BufferChain::remove_suffix(uint64_t count) {
  if (count == size_) return clear();
  size_ -= count;
  if (several_.empty()) return only_.remove_suffix(count);
  while (count >= several_.back().size()) {
    count -= several_.back().size();
    several_.pop_back();
  }
  several_.back().remove_suffix(count);
  if (several_.size() > 1) return;
  only_ = std::move(several_.front());
  several_.clear();
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
