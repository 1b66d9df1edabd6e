#include "tools/rpc_cli/metadata.h"

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace rpc_cli {
namespace {

template <class... Words>
absl::Status Wrong(const std::string& header, const Words&... words) {
  return absl::InvalidArgumentError(
      absl::StrCat("metadata '", header, "': ", words...));
}

// Either alphabet.
bool DecodeBase64(const std::string& text, std::string* bytes) {
  return absl::Base64Unescape(text, bytes) ||
         absl::WebSafeBase64Unescape(text, bytes);
}

template <class Pairs>
std::string Format(const Pairs& metadata) {
  if (metadata.empty()) return "  (none)\n";
  std::string text;
  for (const auto& [key, value] : metadata) {
    const std::string bytes(value);
    absl::StrAppend(&text, "  ", std::string(key), ": ",
                    rpc::internal::IsBinaryMetadataKey(key)
                        ? absl::Base64Escape(bytes)
                        : bytes,
                    "\n");
  }
  return text;
}

}  // namespace

absl::StatusOr<Metadata::value_type> ParseHeader(const std::string& header) {
  const size_t colon = header.find(':');
  if (colon == std::string::npos) {
    return Wrong(header, "write it as 'key: value'");
  }
  const std::string key = absl::AsciiStrToLower(
      absl::StripAsciiWhitespace(header.substr(0, colon)));
  std::string value(absl::StripAsciiWhitespace(header.substr(colon + 1)));
  if (rpc::internal::IsBinaryMetadataKey(key)) {
    std::string bytes;
    if (!DecodeBase64(value, &bytes)) {
      return Wrong(header, "the value of a key in -bin is to be base64");
    }
    value = std::move(bytes);
  }
  const rpc::Status status = rpc::internal::CheckMetadataEntry(key, value);
  if (!status.ok()) return Wrong(header, status.error_message());
  return Metadata::value_type(key, std::move(value));
}

std::string FormatMetadata(const Metadata& metadata) {
  return Format(metadata);
}

std::string FormatMetadata(const rpc::ReceivedMetadataMap& metadata) {
  return Format(metadata);
}

}  // namespace rpc_cli
