// Metadata: pairs of a key and a value that travel beside a call's messages.
//
// A key is one or more of 0-9 a-z _ - . ; a value is printable ASCII (0x20 to
// 0x7E), unless the key ends in "-bin": then any bytes. One key may have
// several values; their order is kept.
#ifndef VERBENA_RPC_METADATA_H_
#define VERBENA_RPC_METADATA_H_

#include <map>
#include <string>
#include <string_view>

#include "rpc/status.h"

namespace rpc {

// gRPC's names for a string, and for a view of bytes.
using string = std::string;
using string_ref = std::string_view;

// Metadata as received. The views are valid as long as the context that gave
// it.
using ReceivedMetadataMap = std::multimap<string_ref, string_ref>;

namespace internal {

using MetadataMap = std::multimap<std::string, std::string>;

// What a pair adds to the size that "grpc.max_metadata_size" limits: gRPC
// counts HTTP/2's 32 bytes for each.
inline constexpr size_t kMetadataEntryOverheadBytes = 32;
inline constexpr size_t kDefaultMaxMetadataBytes = 8192;

inline size_t MetadataEntryBytes(std::string_view key, std::string_view value) {
  return key.size() + value.size() + kMetadataEntryOverheadBytes;
}

bool IsLegalMetadataKey(std::string_view key);
bool IsBinaryMetadataKey(std::string_view key);

// INTERNAL, as gRPC has it, where key or value is illegal; says which and why.
Status CheckMetadataEntry(std::string_view key, std::string_view value);

}  // namespace internal
}  // namespace rpc

#endif  // VERBENA_RPC_METADATA_H_
