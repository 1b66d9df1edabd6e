#include "rpc/byte_buffer.h"

#include "absl/strings/str_cat.h"

namespace rpc {
namespace {

Status NotValid() {
  return Status(StatusCode::FAILED_PRECONDITION,
                "the ByteBuffer holds no message: it was never filled, or was "
                "cleared or moved from");
}

// REQUIRES: the chain is contiguous.
Slice OnlySlice(const BufferChain& chain) {
  return chain.empty() ? Slice() : Slice(chain.buffers().front());
}

}  // namespace

ByteBuffer::ByteBuffer(const Slice* slices, size_t nslices) : valid_(true) {
  for (size_t i = 0; i < nslices; ++i) chain_.Append(slices[i].buffer());
}

Status ByteBuffer::TrySingleSlice(Slice* slice) const {
  if (!valid_) return NotValid();
  if (!chain_.contiguous()) {
    return Status(StatusCode::FAILED_PRECONDITION,
                  absl::StrCat("the ByteBuffer has ", chain_.buffers().size(),
                               " slices: DumpToSingleSlice joins them"));
  }
  *slice = OnlySlice(chain_);
  return Status();
}

Status ByteBuffer::DumpToSingleSlice(Slice* slice) const {
  if (!valid_) return NotValid();
  if (chain_.contiguous()) {
    *slice = OnlySlice(chain_);
    return Status();
  }
  Buffer whole = Buffer::FromHeap(chain_.size());
  chain_.CopyTo(whole.mutable_data());
  *slice = Slice(std::move(whole));
  return Status();
}

Status ByteBuffer::Dump(std::vector<Slice>* slices) const {
  slices->clear();
  if (!valid_) return NotValid();
  for (const Buffer& buffer : chain_.buffers()) slices->emplace_back(buffer);
  return Status();
}

}  // namespace rpc
