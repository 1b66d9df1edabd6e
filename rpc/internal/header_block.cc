#include "rpc/internal/header_block.h"

#include "absl/strings/str_cat.h"

namespace rpc::internal {
namespace {

constexpr int kLengthBits = 32;

bool IsMetadata(HeaderKind kind) {
  return kind == HeaderKind::kInitialMetadata ||
         kind == HeaderKind::kTrailingMetadata;
}

bool IsKnown(HeaderKind kind) {
  return (kind >= HeaderKind::kInitialMetadata &&
          kind <= HeaderKind::kStatusDetails) ||
         kind == HeaderKind::kAuthority;
}

void AppendLength(size_t length, std::string& out) {
  for (; length >= 0x80; length >>= 7) {
    out.push_back(static_cast<char>(length | 0x80));
  }
  out.push_back(static_cast<char>(length));
}

void AppendBytes(std::string_view bytes, std::string& out) {
  AppendLength(bytes.size(), out);
  out.append(bytes);
}

}  // namespace

void HeaderBlockWriter::Add(HeaderKind kind, std::string_view key,
                            std::string_view value) {
  out_.push_back(static_cast<char>(kind));
  if (IsMetadata(kind)) AppendBytes(key, out_);
  AppendBytes(value, out_);
}

bool HeaderBlockReader::Next(HeaderEntry* entry) {
  while (!rest_.empty()) {
    const auto byte = static_cast<uint8_t>(rest_.front());
    entry->kind = static_cast<HeaderKind>(byte);
    entry->key = std::string_view();
    rest_.remove_prefix(1);
    const bool skip = byte >= kFirstSkippableHeaderKind &&
                      entry->kind != HeaderKind::kAuthority;
    if (!skip && !IsKnown(entry->kind)) return Fail("an unknown kind of entry");
    if (IsMetadata(entry->kind) && !ReadBytes(&entry->key)) return false;
    if (!ReadBytes(&entry->value)) return false;
    if (!skip) return true;
  }
  return false;
}

bool HeaderBlockReader::ReadLength(uint32_t* length) {
  uint64_t result = 0;
  for (int shift = 0; shift < kLengthBits; shift += 7) {
    if (rest_.empty()) return Fail("a length that is cut off");
    const auto byte = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    result |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) {
      if (result > UINT32_MAX) break;
      *length = static_cast<uint32_t>(result);
      return true;
    }
  }
  return Fail("a length over 32 bits");
}

bool HeaderBlockReader::ReadBytes(std::string_view* bytes) {
  uint32_t length = 0;
  if (!ReadLength(&length)) return false;
  if (length > rest_.size()) return Fail("an entry that is cut off");
  *bytes = rest_.substr(0, length);
  rest_.remove_prefix(length);
  return true;
}

bool HeaderBlockReader::Fail(const char* what) {
  status_ = Status(StatusCode::INTERNAL,
                   absl::StrCat("malformed header block: ", what));
  rest_ = std::string_view();
  return false;
}

}  // namespace rpc::internal
