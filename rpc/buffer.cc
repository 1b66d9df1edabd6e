#include "rpc/buffer.h"

#include <cstring>
#include <memory>
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

BufferChain::BufferChain(const BufferChain& other) : extent_(other.extent_) {
  if (!contiguous()) {
    std::construct_at(&several_, other.several_);
  } else if (!empty()) {
    std::construct_at(&only_, other.only_);
  }
}

BufferChain& BufferChain::operator=(const BufferChain& other) {
  return *this = BufferChain(other);
}

void BufferChain::AppendAnother(Buffer buffer) {
  if (contiguous()) {
    std::vector<Buffer> several;
    several.reserve(2);
    several.push_back(std::move(only_));
    std::destroy_at(&only_);
    std::construct_at(&several_, std::move(several));
  }
  const size_t bytes = buffer.size();
  several_.push_back(std::move(buffer));
  extent_.bytes += bytes;
  ++extent_.buffers;
}

void BufferChain::Append(BufferChain chain) {
  if (chain.empty()) return;
  if (empty()) return Take(chain);
  if (chain.contiguous()) return AppendAnother(std::move(chain.only_));
  for (Buffer& buffer : chain.several_) AppendAnother(std::move(buffer));
}

void BufferChain::DestroySeveral() { std::destroy_at(&several_); }

void BufferChain::TakeSeveral(BufferChain& other) {
  std::construct_at(&several_, std::move(other.several_));
  std::destroy_at(&other.several_);
}

void BufferChain::remove_suffix(uint64_t count) {
  if (count == extent_.bytes) return clear();
  extent_.bytes -= count;
  if (contiguous()) return only_.remove_suffix(count);
  while (count >= several_.back().size()) {
    count -= several_.back().size();
    several_.pop_back();
  }
  several_.back().remove_suffix(count);
  extent_.buffers = several_.size();
  if (extent_.buffers > 1) return;
  Buffer only = std::move(several_.front());
  std::destroy_at(&several_);
  std::construct_at(&only_, std::move(only));
}

void BufferChain::CopyTo(std::byte* out) const {
  for (const Buffer& buffer : buffers()) {
    std::memcpy(out, buffer.data(), buffer.size());
    out += buffer.size();
  }
}

std::string BufferChain::ToString() const {
  std::string result(extent_.bytes, '\0');
  CopyTo(reinterpret_cast<std::byte*>(result.data()));
  return result;
}

}  // namespace rpc
