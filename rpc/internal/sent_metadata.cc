#include "rpc/internal/sent_metadata.h"

#include "absl/strings/str_cat.h"

namespace rpc::internal {

Status WritePairs(HeaderKind kind, const MetadataMap& metadata,
                  HeaderBlockWriter& writer) {
  for (const auto& [key, value] : metadata) {
    Status status = CheckMetadataEntry(key, value);
    if (!status.ok()) return status;
    writer.Add(kind, key, value);
  }
  return Status();
}

Status EncodeInitialMetadata(const MetadataMap& metadata,
                             std::string_view authority, uint32_t max_bytes,
                             std::string& header) {
  HeaderBlockWriter writer(&header);
  if (!authority.empty()) writer.Add(HeaderKind::kAuthority, "", authority);
  Status status = WritePairs(HeaderKind::kInitialMetadata, metadata, writer);
  if (!status.ok() || header.size() <= max_bytes) return status;
  return Status(StatusCode::RESOURCE_EXHAUSTED,
                absl::StrCat("metadata of ", header.size(),
                             " bytes does not fit into a frame's header of ",
                             max_bytes, " bytes"));
}

}  // namespace rpc::internal
