// A run of bytes in memory that is counted: what a `ByteBuffer` is made of.
//
//   rpc::Slice copied(text);  // of a std::string
//   rpc::Slice referring(kTable, sizeof(kTable), rpc::Slice::STATIC_SLICE);
//   rpc::Slice owning(data, size, &std::free);
//   rpc::Slice head = copied.sub(0, 4);  // shares, copies nothing
//
// Names and semantics are gRPC C++'s, whose `grpc_slice` is a `Buffer` here
// (see buffer.h): a slice that came by the wire may keep registered memory.
// That is scarce, so what is kept for long is better copied. A slice of any
// size may be shared; none lies in the object itself.
//
// Thread rule: a value; slices that share memory may be on several threads. The
// bytes must not change while a call has them.
#ifndef VERBENA_RPC_SLICE_H_
#define VERBENA_RPC_SLICE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "rpc/buffer.h"

namespace rpc {

class Slice final {
 public:
  enum StaticSlice { STATIC_SLICE };

  // Empty.
  Slice() = default;
  // `len` bytes from the heap, not initialised. What is to be written is
  // written through begin() and a const_cast, as with gRPC, or into a Buffer
  // that then becomes a slice.
  explicit Slice(size_t len);
  // Copies to the heap.
  Slice(const void* buf, size_t len);
  Slice(const std::string& str);  // NOLINT(google-explicit-constructor)

  // Refers to memory that stays as it is for as long as the program runs.
  Slice(const void* buf, size_t len, StaticSlice);

  // Takes memory over. When nothing refers to it any more, `destroy` is called,
  // once, with `user_data`, with `buf`, or with both `buf` and `len`: on the
  // thread that let go last, which may be one of the transport, so it must not
  // block.
  Slice(void* buf, size_t len, void (*destroy)(void*), void* user_data);
  Slice(void* buf, size_t len, void (*destroy)(void*));
  Slice(void* buf, size_t len, void (*destroy)(void*, size_t));

  // Beyond gRPC: the memory that calls and attachments pass on. No copy.
  explicit Slice(Buffer buffer) : buffer_(std::move(buffer)) {}
  const Buffer& buffer() const { return buffer_; }

  size_t size() const { return buffer_.size(); }
  const uint8_t* begin() const {
    return reinterpret_cast<const uint8_t*>(buffer_.data());
  }
  const uint8_t* end() const { return begin() + size(); }

  // The bytes [begin, end), shared. There are none beyond size(), nor where
  // `end` comes before `begin`.
  Slice sub(size_t begin, size_t end) const;

 private:
  Buffer buffer_;
};

}  // namespace rpc

#endif  // VERBENA_RPC_SLICE_H_
