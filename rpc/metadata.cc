#include "rpc/metadata.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace rpc::internal {
namespace {

// Enough of a hostile key to recognise it in a log.
constexpr size_t kMaxQuotedBytes = 64;

bool IsKeyByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

bool IsTextByte(char c) { return c >= 0x20 && c <= 0x7e; }

std::string Quoted(std::string_view bytes) {
  const size_t size = std::min(bytes.size(), kMaxQuotedBytes);
  return absl::StrCat("'", absl::CEscape(absl::string_view(bytes.data(), size)),
                      size < bytes.size() ? "...'" : "'");
}

Status IllegalKey(std::string_view key) {
  return Status(
      StatusCode::INTERNAL,
      absl::StrCat("illegal metadata key ", Quoted(key),
                   ": keys are made of lower-case letters, digits, '-', '_' "
                   "and '.'"));
}

Status IllegalValue(std::string_view key) {
  return Status(StatusCode::INTERNAL,
                absl::StrCat("illegal value of metadata key ", Quoted(key),
                             ": it is not printable ASCII; bytes need a key "
                             "that ends in -bin"));
}

}  // namespace

bool IsLegalMetadataKey(std::string_view key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), IsKeyByte);
}

bool IsBinaryMetadataKey(std::string_view key) { return key.ends_with("-bin"); }

Status CheckMetadataEntry(std::string_view key, std::string_view value) {
  if (!IsLegalMetadataKey(key)) return IllegalKey(key);
  if (!IsBinaryMetadataKey(key) &&
      !std::all_of(value.begin(), value.end(), IsTextByte)) {
    return IllegalValue(key);
  }
  return Status();
}

}  // namespace rpc::internal
