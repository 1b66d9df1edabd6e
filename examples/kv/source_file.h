// A local file that is read while others may be writing it. A SourceFile
// remembers what the file was when it was opened, so that its reader can tell a
// value that is the file's from a mixture of two states of it.
//
//   absl::StatusOr<kv::SourceFile> file = kv::SourceFile::Open(path);
//   absl::Status read = file->Read(0, memory);        // memory of file->size()
//   if (read.ok()) read = file->CheckUnchanged();     // ABORTED: try again
//
// Thread rule: one thread at a time.
#ifndef VERBENA_EXAMPLES_KV_SOURCE_FILE_H_
#define VERBENA_EXAMPLES_KV_SOURCE_FILE_H_

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "examples/kv/sha256.h"

namespace kv {

class SourceFile {
 public:
  // Opens a regular file. A symbolic link is refused where `follow_links` is
  // false. NOT_FOUND, PERMISSION_DENIED, ...: as errno; FAILED_PRECONDITION:
  // not a regular file. Never blocks on a FIFO that stands in a file's place.
  //
  // File times move in ticks of up to 10 ms, within which a second change would
  // not show. A file that was changed in this very tick is therefore waited
  // for, for 10 ms; ABORTED where it was changed again meanwhile.
  static absl::StatusOr<SourceFile> Open(const std::string& path,
                                         bool follow_links);

  SourceFile(SourceFile&& other) noexcept;
  SourceFile& operator=(SourceFile&& other) noexcept;
  ~SourceFile();

  // Bytes, when it was opened.
  uint64_t size() const { return static_cast<uint64_t>(info_.st_size); }

  // Fills `out` with the bytes from `offset` on. ABORTED where the file ends
  // before: it became shorter.
  absl::Status Read(uint64_t offset, absl::Span<std::byte> out) const;

  // The digest of all size() bytes. Errors as Read's.
  absl::StatusOr<Sha256Digest> Digest() const;

  // ABORTED where the file was written since it was opened, by its size and its
  // times, or has bytes behind size(), as files of /proc have.
  absl::Status CheckUnchanged() const;

 private:
  SourceFile(std::string path, int fd, const struct stat& info)
      : path_(std::move(path)), fd_(fd), info_(info) {}

  std::string path_;
  int fd_ = -1;
  struct stat info_;
};

}  // namespace kv

#endif  // VERBENA_EXAMPLES_KV_SOURCE_FILE_H_
