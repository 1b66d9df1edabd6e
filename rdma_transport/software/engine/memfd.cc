#include "rdma_transport/software/engine/memfd.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "memory/round_up.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

namespace rdma::soft {
namespace {

constexpr size_t kHugePageBytes = size_t{2} << 20;
constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

absl::Status ErrnoStatus(std::string_view what) {
  const int error = errno;
  const std::string text =
      absl::StrCat(std::string(what), ": ", std::strerror(error));
  if (error == ENOMEM || error == ENOSPC || error == EMFILE ||
      error == ENFILE) {
    return absl::ResourceExhaustedError(text);
  }
  return absl::InternalError(text);
}

// Maps the file; large ones on a huge page boundary, so that the kernel can use
// huge pages where the host allows them for shared memory.
absl::StatusOr<Mapping> Map(int fd, size_t bytes, int protection) {
  if (bytes < kHugePageBytes) {
    void* const base = mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) return ErrnoStatus("mmap");
    return Mapping(static_cast<std::byte*>(base), bytes);
  }
  const size_t reserved_bytes = bytes + kHugePageBytes;
  void* const reserved =
      mmap(nullptr, reserved_bytes, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return ErrnoStatus("mmap");
  auto* const start = static_cast<std::byte*>(reserved);
  auto* const base = reinterpret_cast<std::byte*>(
      memory::RoundUp(reinterpret_cast<uintptr_t>(reserved), kHugePageBytes));
  if (mmap(base, bytes, protection, MAP_SHARED | MAP_FIXED, fd, 0) ==
      MAP_FAILED) {
    const absl::Status status = ErrnoStatus("mmap");
    munmap(reserved, reserved_bytes);
    return status;
  }
  if (base != start) munmap(start, base - start);
  std::byte* const end = base + bytes;
  munmap(end, start + reserved_bytes - end);
  madvise(base, bytes, MADV_HUGEPAGE);  // a hint: some hosts do not allow it
  return Mapping(base, bytes);
}

// Makes huge pages of what they fit into, where the kernel has some to give and
// knows how (Linux 6.1): copying large messages out of them and into them is
// faster by about a fifth. It does so whether or not the host has them for
// shared memory in general (transparent_hugepage/shmem_enabled), but only where
// a page is there already. Who lacks memory hears of it from Populate.
void TakeHugePages(int fd, const Mapping& mapping) {
  const size_t bytes = mapping.bytes() / kHugePageBytes * kHugePageBytes;
  if (bytes == 0) return;
  const size_t machine_bytes = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) *
                               static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (bytes > machine_bytes) return;
  for (size_t at = 0; at < bytes; at += kHugePageBytes) {
    if (fallocate(fd, 0, static_cast<off_t>(at), 1) != 0) return;
  }
  madvise(mapping.base(), bytes, MADV_COLLAPSE);
}

// Makes every page present now: without memory that is an error here instead of
// a signal later.
absl::Status Populate(int fd, const Mapping& mapping) {
  TakeHugePages(fd, mapping);
  if (fallocate(fd, 0, 0, static_cast<off_t>(mapping.bytes())) != 0) {
    return ErrnoStatus("fallocate");
  }
  if (madvise(mapping.base(), mapping.bytes(), MADV_POPULATE_WRITE) != 0 &&
      errno != EINVAL) {  // EINVAL: before Linux 5.14; the pages exist anyway
    return ErrnoStatus("madvise(MADV_POPULATE_WRITE)");
  }
  return absl::OkStatus();
}

}  // namespace

Mapping::~Mapping() {
  if (base_ != nullptr) munmap(base_, bytes_);
}

absl::StatusOr<Segment> Segment::Create(const char* name, size_t bytes,
                                        Sharing sharing, Prefault prefault) {
  if (bytes == 0 || bytes > static_cast<size_t>(INT64_MAX) / 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("a shared segment of ", bytes, " bytes"));
  }
  bytes = memory::RoundUp(bytes, static_cast<size_t>(sysconf(_SC_PAGESIZE)));
  UniqueFd fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return ErrnoStatus("memfd_create");
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return ErrnoStatus("ftruncate");
  }
  // The writable mapping comes before the seal, which forbids further ones.
  absl::StatusOr<Mapping> mapping =
      Map(fd.get(), bytes, PROT_READ | PROT_WRITE);
  if (!mapping.ok()) return mapping.status();
  if (prefault == Prefault::kYes) {
    const absl::Status status = Populate(fd.get(), *mapping);
    if (!status.ok()) return status;
  }
  const int seals =
      kSizeSeals |
      (sharing == Sharing::kReadOnlyToPeers ? F_SEAL_FUTURE_WRITE : 0);
  if (fcntl(fd.get(), F_ADD_SEALS, seals) != 0) {
    return ErrnoStatus("fcntl(F_ADD_SEALS)");
  }
  return Segment(std::move(fd), *std::move(mapping));
}

UniqueFd Segment::OpenReadOnly() const {
  return UniqueFd(
      open(absl::StrCat("/proc/self/fd/", fd()).c_str(), O_RDONLY | O_CLOEXEC));
}

absl::StatusOr<FileIdentity> CheckPeerSegment(int fd,
                                              const PeerSegmentRules& rules) {
  struct stat file;
  if (fstat(fd, &file) != 0) return ErrnoStatus("fstat");
  // Huge page files have seals too, but a page that the pool lacks is a SIGBUS.
  struct statfs system;
  if (fstatfs(fd, &system) != 0) return ErrnoStatus("fstatfs");
  if (!S_ISREG(file.st_mode) || system.f_type != TMPFS_MAGIC) {
    return absl::InvalidArgumentError("the peer's descriptor is no memfd");
  }
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & kSizeSeals) != kSizeSeals) {
    return absl::InvalidArgumentError("the peer's memory is not sealed");
  }
  const auto bytes = static_cast<uint64_t>(file.st_size);
  if (file.st_size <= 0 || bytes < rules.min_bytes || bytes > rules.max_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the peer's memory has ", file.st_size, " bytes"));
  }
  if (rules.writable && (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) != 0) {
    return absl::InvalidArgumentError(
        "the peer's memory is sealed against writing");
  }
  return FileIdentity{file.st_dev, file.st_ino, static_cast<size_t>(bytes)};
}

absl::StatusOr<Mapping> MapPeerSegment(int fd, const PeerSegmentRules& rules) {
  const absl::StatusOr<FileIdentity> file = CheckPeerSegment(fd, rules);
  if (!file.ok()) return file.status();
  return Map(fd, file->bytes,
             rules.writable ? PROT_READ | PROT_WRITE : PROT_READ);
}

}  // namespace rdma::soft
