// A message as bytes, for those who do not want it parsed: gRPC C++'s
// ByteBuffer.
//
//   rpc::Slice slice(text);
//   rpc::ByteBuffer request(&slice, 1);
//   ...
//   rpc::Slice whole;
//   rpc::Status status = response.DumpToSingleSlice(&whole);
//
// It is a `BufferChain` (see buffer.h) with gRPC's face, and turns into one and
// out of one without a copy; so does each of its buffers with a `Slice`. Copies
// of a ByteBuffer share the bytes. One that was received may keep registered
// memory until it goes.
//
// gRPC tells an empty message (valid, no bytes) from a ByteBuffer without one
// (not valid: made by default, or cleared). So does this one. But slices
// without bytes are not kept: an empty message has no slice, and TrySingleSlice
// gives an empty one for it.
//
// Thread rule: a value, one thread at a time. Errors: FAILED_PRECONDITION where
// what is asked for needs a valid buffer, or one slice.
#ifndef VERBENA_RPC_BYTE_BUFFER_H_
#define VERBENA_RPC_BYTE_BUFFER_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "rpc/buffer.h"
#include "rpc/slice.h"
#include "rpc/status.h"

namespace rpc {

class ByteBuffer final {
 public:
  // Not valid.
  ByteBuffer() = default;
  // Shares the memory of `nslices` slices. Valid, even with none of them.
  ByteBuffer(const Slice* slices, size_t nslices);

  ByteBuffer(const ByteBuffer&) = default;
  ByteBuffer& operator=(const ByteBuffer&) = default;
  // What was moved from is not valid.
  ByteBuffer(ByteBuffer&& other) noexcept
      : chain_(std::move(other.chain_)),
        valid_(std::exchange(other.valid_, false)) {}
  ByteBuffer& operator=(ByteBuffer&& other) noexcept {
    chain_ = std::move(other.chain_);
    valid_ = std::exchange(other.valid_, false);
    return *this;
  }

  // Beyond gRPC: a chain as a valid ByteBuffer, the bytes as a chain, and the
  // chain itself; this is not valid afterwards.
  explicit ByteBuffer(BufferChain chain)
      : chain_(std::move(chain)), valid_(true) {}
  const BufferChain& chain() const { return chain_; }
  BufferChain TakeChain() {
    valid_ = false;
    return std::move(chain_);
  }

  // The bytes, where they are one slice already. FAILED_PRECONDITION where they
  // are several; DumpToSingleSlice joins them.
  Status TrySingleSlice(Slice* slice) const;
  // The bytes as one slice: shared where they are one, else a copy.
  Status DumpToSingleSlice(Slice* slice) const;
  // All slices, shared, in the place of what was in `*slices`.
  Status Dump(std::vector<Slice>* slices) const;

  // Not valid afterwards, and without bytes.
  void Clear() {
    chain_.clear();
    valid_ = false;
  }
  // The same. gRPC's forgets memory that others own; here each ByteBuffer has
  // references of its own to give back.
  void Release() { Clear(); }
  // Nothing: each ByteBuffer has references of its own.
  void Duplicate() {}

  // Bytes; 0 where it is not valid.
  size_t Length() const { return chain_.size(); }
  void Swap(ByteBuffer* other) { std::swap(*this, *other); }
  bool Valid() const { return valid_; }

 private:
  friend class ProtoBufferWriter;

  BufferChain chain_;
  bool valid_ = false;  // false: no bytes
};

}  // namespace rpc

#endif  // VERBENA_RPC_BYTE_BUFFER_H_
