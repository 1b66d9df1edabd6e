#include "examples/kv/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

namespace kv {
namespace {

// The mode that open() would give a new file.
mode_t DefaultMode() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

// close() is where some file systems report that a write failed.
absl::Status Close(int fd, const std::string& path, absl::Status status) {
  if (::close(fd) != 0 && status.ok()) return absl::ErrnoToStatus(errno, path);
  return status;
}

absl::Status WriteInPlace(const std::string& path,
                          const rpc::BufferChain& bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, path);
  return Close(fd, path, WriteTo(fd, path, bytes));
}

}  // namespace

absl::Status WriteTo(int fd, const std::string& name,
                     const rpc::BufferChain& bytes) {
  for (const rpc::Buffer& buffer : bytes.buffers()) {
    std::string_view rest = buffer.view();
    while (!rest.empty()) {
      const ssize_t count = ::write(fd, rest.data(), rest.size());
      if (count < 0) {
        if (errno == EINTR) continue;
        return absl::ErrnoToStatus(errno, name);
      }
      rest.remove_prefix(static_cast<size_t>(count));
    }
  }
  return absl::OkStatus();
}

absl::Status WriteFile(const std::string& path, const rpc::BufferChain& bytes) {
  struct stat info;
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (exists && !S_ISREG(info.st_mode)) return WriteInPlace(path, bytes);

  std::string temporary = path + ".XXXXXX";
  const int fd = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, path);
  absl::Status status = WriteTo(fd, path, bytes);
  const mode_t mode = exists ? info.st_mode & 07777 : DefaultMode();
  if (status.ok() && ::fchmod(fd, mode) != 0) {
    status = absl::ErrnoToStatus(errno, path);
  }
  status = Close(fd, path, std::move(status));
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) {
    status = absl::ErrnoToStatus(errno, path);
  }
  if (!status.ok()) ::unlink(temporary.c_str());
  return status;
}

}  // namespace kv
