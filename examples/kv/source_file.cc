#include "examples/kv/source_file.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace kv {
namespace {

// One read for the digest: fits the L2 cache, and 20 us of hashing a call.
constexpr size_t kDigestPieceBytes = size_t{256} << 10;

// The longest tick of Linux' clock for file times: CONFIG_HZ is 100 or more.
constexpr absl::Duration kFileTimeTick = absl::Milliseconds(10);

// Whether a file changed so lately that one more change might leave its times
// as they are. (A time in the future is another machine's: no wait makes it
// older.)
bool ChangedThisTick(const struct stat& info) {
  timespec now;
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  const absl::Duration age =
      absl::TimeFromTimespec(now) - absl::TimeFromTimespec(info.st_ctim);
  return age >= absl::ZeroDuration() && age < kFileTimeTick;
}

bool SameTime(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

}  // namespace

absl::StatusOr<SourceFile> SourceFile::Open(const std::string& path,
                                            bool follow_links) {
  // O_NONBLOCK has no effect on regular files, and keeps open() from waiting
  // for the writer of a FIFO.
  const int flags =
      O_RDONLY | O_CLOEXEC | O_NONBLOCK | (follow_links ? 0 : O_NOFOLLOW);
  const int fd = ::open(path.c_str(), flags);
  if (fd < 0) {
    if (errno == ELOOP && !follow_links) {
      return absl::FailedPreconditionError(
          absl::StrCat(path, ": not a regular file"));
    }
    return absl::ErrnoToStatus(errno, path);
  }
  struct stat info;
  if (::fstat(fd, &info) != 0) {
    const absl::Status status = absl::ErrnoToStatus(errno, path);
    ::close(fd);
    return status;
  }
  SourceFile file(path, fd, info);
  if (!S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": not a regular file"));
  }
  if (ChangedThisTick(info)) {
    absl::SleepFor(kFileTimeTick);
    if (absl::Status status = file.CheckUnchanged(); !status.ok()) {
      return status;
    }
  }
  return file;
}

SourceFile::SourceFile(SourceFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      info_(other.info_) {}

SourceFile& SourceFile::operator=(SourceFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(info_, other.info_);
  return *this;
}

SourceFile::~SourceFile() {
  if (fd_ >= 0) ::close(fd_);
}

absl::Status SourceFile::Read(uint64_t offset,
                              absl::Span<std::byte> out) const {
  while (!out.empty()) {
    // Linux reads 2 GiB - 4096 bytes at most in one call.
    const ssize_t count =
        ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0) {
      if (errno == EINTR) continue;
      return absl::ErrnoToStatus(errno, path_);
    }
    if (count == 0) {
      return absl::AbortedError(
          absl::StrCat(path_, ": became shorter while it was read"));
    }
    offset += static_cast<uint64_t>(count);
    out.remove_prefix(static_cast<size_t>(count));
  }
  return absl::OkStatus();
}

absl::StatusOr<Sha256Digest> SourceFile::Digest() const {
  const auto piece_bytes = std::min<uint64_t>(size(), kDigestPieceBytes);
  const auto memory = std::make_unique<std::byte[]>(piece_bytes);
  Sha256 sha256;
  for (uint64_t offset = 0; offset < size();) {
    const auto piece = absl::MakeSpan(
        memory.get(), std::min<uint64_t>(size() - offset, piece_bytes));
    if (absl::Status status = Read(offset, piece); !status.ok()) return status;
    sha256.Update(std::string_view(reinterpret_cast<const char*>(piece.data()),
                                   piece.size()));
    offset += piece.size();
  }
  return sha256.Finish();
}

absl::Status SourceFile::CheckUnchanged() const {
  struct stat now;
  if (::fstat(fd_, &now) != 0) return absl::ErrnoToStatus(errno, path_);
  std::byte behind;
  const bool longer = ::pread(fd_, &behind, 1, info_.st_size) > 0;
  // The change time moves with every write; links and modes move it too, which
  // costs a second read and no more.
  if (longer || now.st_size != info_.st_size ||
      !SameTime(now.st_mtim, info_.st_mtim) ||
      !SameTime(now.st_ctim, info_.st_ctim)) {
    return absl::AbortedError(
        absl::StrCat(path_, ": changed while it was read"));
  }
  return absl::OkStatus();
}

}  // namespace kv
