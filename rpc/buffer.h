// Reference-counted memory, and chains of it: what a transport and the layers
// above it pass to each other instead of copying bytes.
//
// A `BufferBlock` is one piece of memory with one owner (a pool of registered
// memory, or the heap). A `Buffer` is a counted view of a part of a block; a
// `BufferChain` is a list of buffers that together are one run of bytes.
//
//   absl::StatusOr<rpc::Buffer> buffer = channel->AllocateBuffer(1 << 20);
//   std::memcpy(buffer->mutable_data(), tensor, 1 << 20);
//   context.set_attachment(rpc::BufferChain(*std::move(buffer)));
//
// Thread rule: a `Buffer` or a `BufferChain` object belongs to one thread at a
// time, as an int does; blocks may be shared, and their count is atomic. The
// bytes of a buffer that was handed to a call must not change while the call
// holds a reference (BufferBlock::unique says whether it does): a peer may be
// reading them. A client's call lets go before it ends; a server's is over once
// its answer is on its way, and lets go when the client has read it.
#ifndef VERBENA_RPC_BUFFER_H_
#define VERBENA_RPC_BUFFER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace rpc {

// One piece of memory and its owner. Implemented by whoever owns memory.
class BufferBlock {
 public:
  BufferBlock(const BufferBlock&) = delete;
  BufferBlock& operator=(const BufferBlock&) = delete;

  std::byte* data() const { return data_; }
  size_t capacity() const { return capacity_; }

  // Identifies the memory's registration: a transport recognises its own
  // registered memory by this pointer and copies what is not its own. Null for
  // memory that nobody registered.
  const void* domain() const { return domain_; }

  void Ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  // The last one gives the memory back to its owner, on the calling thread.
  void Unref() {
    // A sole owner needs no read-modify-write: nobody else can add a reference.
    if (refs_.load(std::memory_order_acquire) == 1 ||
        refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      Recycle();
    }
  }
  // True when the caller holds the only reference.
  bool unique() const { return refs_.load(std::memory_order_acquire) == 1; }

 protected:
  // A block starts with one reference, which the first Buffer takes over.
  BufferBlock(std::byte* data, size_t capacity, const void* domain)
      : data_(data), capacity_(capacity), domain_(domain) {}
  virtual ~BufferBlock() = default;

  // For owners that hand the same block out again.
  void ResetRefs() { refs_.store(1, std::memory_order_relaxed); }

 private:
  // Called once the last reference is gone, on any thread. Must not block.
  virtual void Recycle() = 0;

  std::atomic<uint32_t> refs_{1};
  std::byte* data_;
  size_t capacity_;
  const void* domain_;
};

// A counted view of `size()` bytes of a block. Copying shares the block.
class Buffer {
 public:
  Buffer() = default;
  // Takes over the caller's reference to `block`.
  // REQUIRES: [data, data + size) lies in the block.
  Buffer(BufferBlock* block, std::byte* data, size_t size)
      : block_(block), data_(data), size_(size) {}
  ~Buffer() { reset(); }

  Buffer(const Buffer& other)
      : block_(other.block_), data_(other.data_), size_(other.size_) {
    if (block_ != nullptr) block_->Ref();
  }
  Buffer(Buffer&& other) noexcept
      : block_(std::exchange(other.block_, nullptr)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer other) noexcept {
    std::swap(block_, other.block_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  // Heap memory, not registered: a transport copies it when it sends it.
  static Buffer FromHeap(size_t size);
  static Buffer CopyOf(std::string_view bytes);

  // Memory of somebody else, which a transport copies, too. Nothing counts who
  // refers to it: block() is null. `bytes` must outlive every buffer that
  // shares them and stay as they are; mutable_data() is not for them.
  static Buffer Unowned(std::string_view bytes);
  // The last buffer calls `destroy`, once, on the thread that lets go of it:
  // that may be one that drives a transport, so it must not block. Even where
  // `size` is 0.
  static Buffer Adopt(void* data, size_t size, void (*destroy)(void* user_data),
                      void* user_data);
  static Buffer Adopt(void* data, size_t size,
                      void (*destroy)(void* data, size_t size));

  const std::byte* data() const { return data_; }
  std::byte* mutable_data() { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::string_view view() const {
    return {reinterpret_cast<const char*>(data_), size_};
  }
  BufferBlock* block() const { return block_; }

  // Bytes of the block in front of data(), free to use where unique().
  size_t headroom() const {
    return block_ == nullptr ? 0 : static_cast<size_t>(data_ - block_->data());
  }
  // The same behind the last byte.
  size_t tailroom() const {
    return block_ == nullptr ? 0 : block_->capacity() - headroom() - size_;
  }

  // Shrinks the view. REQUIRES: count <= size().
  void remove_prefix(size_t count) {
    data_ += count;
    size_ -= count;
  }
  void remove_suffix(size_t count) { size_ -= count; }
  // Shares [offset, offset + size). REQUIRES: it lies inside this view.
  Buffer Slice(size_t offset, size_t size) const {
    if (block_ != nullptr) block_->Ref();
    return Buffer(block_, data_ + offset, size);
  }

  // Gives the reference to the caller. Null where there is none.
  BufferBlock* Release() {
    data_ = nullptr;
    size_ = 0;
    return std::exchange(block_, nullptr);
  }

  void reset() {
    if (block_ != nullptr) std::exchange(block_, nullptr)->Unref();
    data_ = nullptr;
    size_ = 0;
  }

 private:
  BufferBlock* block_ = nullptr;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Buffers that are one run of bytes. Most chains have one buffer, or none: that
// one lies in the chain itself.
class BufferChain {
 public:
  using Buffers = absl::Span<const Buffer>;

  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): of the union
  BufferChain() { ClearSize(); }
  explicit BufferChain(Buffer buffer)
      : extent_{buffer.size(), buffer.empty() ? 0u : 1u} {
    if (!empty()) std::construct_at(&only_, std::move(buffer));
  }
  // Where it is empty, as most are, there is nothing in it to be destroyed.
  ~BufferChain() {
    if (!empty()) [[unlikely]]
      DestroyBuffers();
  }
  BufferChain(const BufferChain& other);
  BufferChain& operator=(const BufferChain& other);
  // A moved-from chain is empty. Frames have two chains, mostly empty, and are
  // moved from hand to hand: that costs next to nothing.
  BufferChain(BufferChain&& other) noexcept {
    ClearSize();
    if (!other.empty()) Take(other);
  }
  BufferChain& operator=(BufferChain&& other) noexcept {
    if (this == &other) return *this;
    if (!empty()) clear();
    if (!other.empty()) Take(other);
    return *this;
  }

  // Empty buffers are dropped.
  void Append(Buffer buffer) {
    if (buffer.empty()) [[unlikely]]
      return;
    if (empty()) [[likely]] {
      extent_ = {buffer.size(), 1};
      std::construct_at(&only_, std::move(buffer));
    } else {
      AppendAnother(std::move(buffer));
    }
  }
  void Append(BufferChain chain);

  uint64_t size() const { return extent_.bytes; }
  bool empty() const { return extent_.bytes == 0; }
  // In order. Valid until the chain changes.
  Buffers buffers() const {
    if (!contiguous()) return several_;
    return {&only_, extent_.buffers};
  }
  // The whole as one contiguous view, where it is one buffer or none.
  bool contiguous() const { return extent_.buffers <= 1; }
  // Whether it is exactly one; and that.
  bool is_one_buffer() const { return extent_.buffers == 1; }
  const Buffer& only() const { return only_; }
  std::string_view front_view() const {
    if (!contiguous()) return several_.front().view();
    return empty() ? std::string_view() : only_.view();
  }

  // Takes out the only buffer. REQUIRES: contiguous().
  Buffer TakeOnly() {
    if (empty()) return Buffer();
    Buffer only = std::move(only_);
    clear();
    return only;
  }
  // Lets go of the last `count` bytes. REQUIRES: count <= size().
  void remove_suffix(uint64_t count);
  void clear() {
    if (empty()) return;
    DestroyBuffers();
    ClearSize();
  }
  // Copies all bytes to `out`. REQUIRES: room for size() bytes.
  void CopyTo(std::byte* out) const;
  std::string ToString() const;

 private:
  // In one store, where compilers make two: a call constructs many chains, and
  // what it takes is for a good part its stores.
  void ClearSize() { std::memset(&extent_, 0, sizeof(extent_)); }
  void AppendAnother(Buffer buffer);
  // REQUIRES: it is not empty.
  void DestroyBuffers() {
    if (contiguous()) {
      std::destroy_at(&only_);
    } else {
      DestroySeveral();
    }
  }
  void DestroySeveral();
  // REQUIRES: this chain is empty, `other` is not.
  void Take(BufferChain& other) {
    if (other.contiguous()) {
      std::construct_at(&only_, std::move(other.only_));
      std::destroy_at(&other.only_);
    } else {
      TakeSeveral(other);
    }
    extent_.bytes = std::exchange(other.extent_.bytes, 0);
    extent_.buffers = std::exchange(other.extent_.buffers, 0);
  }
  void TakeSeveral(BufferChain& other);

  struct Extent {
    uint64_t bytes;
    size_t buffers;  // 0: nothing is in the union
  };

  Extent extent_;
  union {
    Buffer only_;                  // where there is just one
    std::vector<Buffer> several_;  // where there are more: all of them
  };
};

}  // namespace rpc

#endif  // VERBENA_RPC_BUFFER_H_
