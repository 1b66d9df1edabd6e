// Metadata on its way out: checked, and written into header blocks.
//
// Thread rule: pure functions.
#ifndef VERBENA_RPC_INTERNAL_SENT_METADATA_H_
#define VERBENA_RPC_INTERNAL_SENT_METADATA_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "rpc/internal/header_block.h"
#include "rpc/metadata.h"
#include "rpc/status.h"

namespace rpc::internal {

// INTERNAL: a pair is illegal (metadata.h).
Status WritePairs(HeaderKind kind, const MetadataMap& metadata,
                  HeaderBlockWriter& writer);

// A client's, whole, into `header`, with its call's authority if that is not
// empty. Besides: RESOURCE_EXHAUSTED where it is
// larger than `max_bytes`.
Status EncodeInitialMetadata(const MetadataMap& metadata,
                             std::string_view authority, uint32_t max_bytes,
                             std::string& header);

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_SENT_METADATA_H_
