// The header block of a frame: metadata, and a status' text and details. This
// is what rpc/ puts into OutgoingFrame::header; docs/wire_format.md
// specifies it, byte for byte. Most frames have none.
//
//   std::string block;
//   HeaderBlockWriter writer(&block);
//   writer.Add(HeaderKind::kInitialMetadata, "user", "ada");
//
//   HeaderBlockReader reader(block);
//   HeaderEntry entry;
//   while (reader.Next(&entry)) Use(entry);
//   if (!reader.status().ok()) ...
//
// Thread rule: one thread at a time.
#ifndef VERBENA_RPC_INTERNAL_HEADER_BLOCK_H_
#define VERBENA_RPC_INTERNAL_HEADER_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/types/span.h"
#include "rpc/status.h"

namespace rpc::internal {

// The first byte of an entry. Kinds from 0x80 on may be skipped by who does not
// know them; an unknown kind below makes the block malformed.
enum class HeaderKind : uint8_t {
  kInitialMetadata = 0x01,   // key and value
  kTrailingMetadata = 0x02,  // key and value; with a server's `end` only
  kStatusMessage = 0x03,     // value; with a server's `end` only, at most once
  kStatusDetails = 0x04,     // value; with a server's `end` only, at most once
  kAuthority = 0x80,         // value; what the client calls the server
};
inline constexpr uint8_t kFirstSkippableHeaderKind = 0x80;

struct HeaderEntry {
  HeaderKind kind;
  std::string_view key;  // of metadata; else empty
  std::string_view value;
};

class HeaderBlockWriter {
 public:
  // Appends to `*out`, which must outlive the writer.
  explicit HeaderBlockWriter(std::string* out) : out_(*out) {}

  // REQUIRES: `key` is empty unless `kind` is metadata; both are < 4 GiB.
  void Add(HeaderKind kind, std::string_view key, std::string_view value);

 private:
  std::string& out_;
};

// Reads entries in order; their views point into the block. Checks the framing,
// not what keys and values say.
class HeaderBlockReader {
 public:
  explicit HeaderBlockReader(std::string_view block) : rest_(block) {}
  explicit HeaderBlockReader(absl::Span<const std::byte> block)
      : rest_(reinterpret_cast<const char*>(block.data()), block.size()) {}

  // False at the end, and where the block is malformed: see status().
  bool Next(HeaderEntry* entry);

  // INTERNAL where the block is malformed.
  const Status& status() const { return status_; }

 private:
  bool ReadLength(uint32_t* length);
  bool ReadBytes(std::string_view* bytes);
  bool Fail(const char* what);

  std::string_view rest_;
  Status status_;
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_HEADER_BLOCK_H_
