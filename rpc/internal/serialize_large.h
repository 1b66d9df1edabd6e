// Serializes a message of megabytes into one piece of memory.
//
// Protobuf copies strings by memcpy, which has the CPU read each line of the
// target before it is written to. So long strings are taken from protobuf as
// they are (ZeroCopyOutputStream::WriteAliasedRaw), and copied as suits the
// message's size: memory/copy_bytes.h.
//
// Thread rule: no state; the message belongs to the caller.
#ifndef VERBENA_RPC_INTERNAL_SERIALIZE_LARGE_H_
#define VERBENA_RPC_INTERNAL_SERIALIZE_LARGE_H_

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "google/protobuf/message_lite.h"

namespace rpc::internal {

// False where the message does not take up `memory` exactly, which is of its
// ByteSizeLong of just before. Calls `on_written` with how many of the first
// bytes will stay as they are, each time when some `part_bytes` more will.
bool SerializeLarge(const google::protobuf::MessageLite& message,
                    absl::Span<std::byte> memory, size_t part_bytes,
                    absl::FunctionRef<void(size_t)> on_written);

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_SERIALIZE_LARGE_H_
