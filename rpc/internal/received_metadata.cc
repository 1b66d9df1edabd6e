#include "rpc/internal/received_metadata.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace rpc::internal {
namespace {

Status Misplaced(const char* what) {
  return Status(
      StatusCode::INTERNAL,
      absl::StrCat("malformed header block: ", what, " where it may not be"));
}

// Keeps the first value of what may come once.
bool TakeOnce(std::string_view value, bool& has_it, std::string_view& out) {
  if (has_it) return false;
  has_it = true;
  out = value;
  return true;
}

}  // namespace

Status ReceivedMetadata::Add(absl::Span<const std::byte> block, From from,
                             bool first, size_t max_metadata_bytes) {
  blocks_.emplace_back(reinterpret_cast<const char*>(block.data()),
                       block.size());
  HeaderBlockReader reader(blocks_.back());
  HeaderEntry entry;
  while (reader.Next(&entry)) {
    Status status = AddEntry(entry, from, first);
    if (!status.ok()) return status;
  }
  if (!reader.status().ok()) return reader.status();
  const size_t bytes = std::max(initial_bytes_, trailing_bytes_);
  if (bytes > max_metadata_bytes) {
    return Status(StatusCode::RESOURCE_EXHAUSTED,
                  absl::StrCat("received metadata of ", bytes,
                               " bytes, over the limit of ", max_metadata_bytes,
                               " bytes (grpc.max_metadata_size)"));
  }
  return Status();
}

void ReceivedMetadata::AddOrigin(
    std::shared_ptr<const ReceivedMetadata> origin) {
  authority_ = origin->authority_;
  initial_.insert(origin->initial_.begin(), origin->initial_.end());
  origin_ = std::move(origin);
}

Status ReceivedMetadata::AddEntry(const HeaderEntry& entry, From from,
                                  bool first) {
  if (entry.kind == HeaderKind::kInitialMetadata) {
    if (!first) return Misplaced("initial metadata");
    AddPair(entry, initial_, initial_bytes_);
    return CheckMetadataEntry(entry.key, entry.value);
  }
  if (entry.kind == HeaderKind::kAuthority) {
    authority_ = entry.value;
    initial_bytes_ += entry.value.size();
    return Status();
  }
  if (from != From::kServerEnd) return Misplaced("trailing metadata or status");
  if (entry.kind == HeaderKind::kTrailingMetadata) {
    AddPair(entry, trailing_, trailing_bytes_);
    return CheckMetadataEntry(entry.key, entry.value);
  }
  trailing_bytes_ += entry.value.size();
  const bool fresh =
      entry.kind == HeaderKind::kStatusMessage
          ? TakeOnce(entry.value, has_status_message_, status_message_)
          : TakeOnce(entry.value, has_status_details_, status_details_);
  return fresh ? Status() : Misplaced("a second status text");
}

void ReceivedMetadata::AddPair(const HeaderEntry& entry,
                               ReceivedMetadataMap& map, size_t& bytes) {
  map.emplace(entry.key, entry.value);
  bytes += MetadataEntryBytes(entry.key, entry.value);
}

const ReceivedMetadataMap& ReceivedMetadata::Empty() {
  static const auto* const empty = new ReceivedMetadataMap();
  return *empty;
}

Status ReceivedStatus(uint32_t code, const ReceivedMetadata* metadata) {
  if (code == StatusCode::OK) return Status();
  const StatusCode known = code <= StatusCode::UNAUTHENTICATED
                               ? static_cast<StatusCode>(code)
                               : StatusCode::UNKNOWN;
  if (metadata == nullptr) return Status(known, "");
  return Status(known, std::string(metadata->status_message()),
                std::string(metadata->status_details()));
}

}  // namespace rpc::internal
