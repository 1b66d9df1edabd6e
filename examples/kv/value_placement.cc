#include "examples/kv/value_placement.h"

#include <utility>

#include "examples/kv/limits.h"

namespace kv {

rpc::BufferChain PlaceInlineValue(std::string_view bytes) {
  return rpc::BufferChain(rpc::Buffer::CopyOf(bytes));
}

absl::StatusOr<rpc::BufferChain> PlaceAttachedValue(rpc::BufferChain attachment,
                                                    AllocateFunction allocate) {
  const auto bytes = static_cast<size_t>(attachment.size());
  if (bytes >= kKeepInPlaceBytes || bytes == 0) return attachment;
  rpc::Buffer copy;
  if (bytes <= kMaxInlineValueBytes) {
    copy = rpc::Buffer::FromHeap(bytes);
  } else {
    absl::StatusOr<rpc::Buffer> registered = allocate(bytes);
    if (!registered.ok()) return registered.status();
    copy = *std::move(registered);
  }
  attachment.CopyTo(copy.mutable_data());
  return rpc::BufferChain(std::move(copy));
}

}  // namespace kv
