// Decides in which memory the server keeps a value.
//
// A large value stays where the transport put it: in registered memory that was
// allocated for it alone, from where a Get sends it again without a copy. A
// small one must not stay there. Small attachments arrive inside receive
// buffers, and one that was kept would take a whole receive buffer (often 100
// times its size) out of the pool that every connection depends on: a hundred
// thousand little values would stop the server from hearing anybody. So small
// values are copied into memory of their own size, which costs less than a
// microsecond.
//
//   absl::StatusOr<rpc::BufferChain> value =
//       kv::PlaceAttachedValue(std::move(attachment), allocate);
//   storage.Put(key, *std::move(value));
//
// Thread rule: any thread, if `allocate` may be called from any.
#ifndef VERBENA_EXAMPLES_KV_VALUE_PLACEMENT_H_
#define VERBENA_EXAMPLES_KV_VALUE_PLACEMENT_H_

#include <cstddef>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "rpc/buffer.h"

namespace kv {

// Attachments of at least this many bytes are kept in the memory they came in.
// REQUIRES: the transport's receive buffers are smaller than this.
inline constexpr size_t kKeepInPlaceBytes = size_t{64} << 10;

// Gives registered memory: ServerContext::AllocateBuffer.
using AllocateFunction =
    absl::FunctionRef<absl::StatusOr<rpc::Buffer>(size_t bytes)>;

// A value that came inside a message: compact memory of the heap. (Its Get will
// copy it into a message again.)
rpc::BufferChain PlaceInlineValue(std::string_view bytes);

// A value that came as an attachment: itself, or a compact copy. Copies of over
// kMaxInlineValueBytes, whose Get attaches them, are in registered memory;
// where `allocate` has none, its error is returned.
absl::StatusOr<rpc::BufferChain> PlaceAttachedValue(rpc::BufferChain attachment,
                                                    AllocateFunction allocate);

}  // namespace kv

#endif  // VERBENA_EXAMPLES_KV_VALUE_PLACEMENT_H_
