// Shared memory between two processes: anonymous memory files ("memfds") that
// one side makes, and the other maps after a descriptor was passed to it.
//
// The side that makes one seals its size, so that nobody can shrink it under a
// mapping (which would be a SIGBUS), and, where peers only read, seals it
// against further writable mappings. The side that receives a descriptor trusts
// nothing: it checks file system, seals and size before it maps.
//
//   absl::StatusOr<Segment> mine =
//       Segment::Create("verbena-ring", 1 << 14, Sharing::kReadOnlyToPeers);
//   ... pass mine->fd() to the peer, which calls ...
//   absl::StatusOr<Mapping> its = MapPeerSegment(fd, {.writable = false});
//
// Thread rule: values, owned by one thread at a time.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_MEMFD_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_MEMFD_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/status/statusor.h"
#include "rdma_transport/provider/unique_fd.h"

namespace rdma::soft {

// A mapping, unmapped when it goes.
class Mapping {
 public:
  Mapping() = default;
  Mapping(std::byte* base, size_t bytes) : base_(base), bytes_(bytes) {}
  Mapping(Mapping&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping();

  std::byte* base() const { return base_; }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* base_ = nullptr;
  size_t bytes_ = 0;
};

enum class Sharing {
  kReadOnlyToPeers,
  kWritableByPeers,
};

enum class Prefault {
  kNo,   // pages come as they are touched (sparse tables)
  kYes,  // pages are present from the start; without memory, an error
};

// Memory that this process made, with the descriptor that shares it.
class Segment {
 public:
  // `bytes` is rounded up to whole pages; the memory is zeroed. `name` shows in
  // /proc/PID/maps only. RESOURCE_EXHAUSTED where there is no memory.
  static absl::StatusOr<Segment> Create(const char* name, size_t bytes,
                                        Sharing sharing, Prefault prefault);

  std::byte* base() const { return mapping_.base(); }
  size_t bytes() const { return mapping_.bytes(); }
  // -1 after CloseDescriptor.
  int fd() const { return fd_.get(); }
  // Another descriptor of it, which maps for reading only. Nothing where the
  // system has none to give, or no /proc.
  UniqueFd OpenReadOnly() const;
  // Once everybody who is to map it has it.
  void CloseDescriptor() { fd_.reset(); }

 private:
  Segment(UniqueFd fd, Mapping mapping)
      : fd_(std::move(fd)), mapping_(std::move(mapping)) {}

  UniqueFd fd_;
  Mapping mapping_;
};

// Which file a descriptor is: the same memory passed twice has one identity.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  size_t bytes = 0;

  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

struct PeerSegmentRules {
  bool writable = false;
  size_t min_bytes = 1;
  size_t max_bytes = std::numeric_limits<int64_t>::max();
};

// Whether a peer's descriptor is memory that can be mapped safely.
// INVALID_ARGUMENT says what is wrong with it.
absl::StatusOr<FileIdentity> CheckPeerSegment(int fd,
                                              const PeerSegmentRules& rules);

// Checks a peer's descriptor and maps it whole. The descriptor stays the
// caller's, and may be closed at once.
absl::StatusOr<Mapping> MapPeerSegment(int fd, const PeerSegmentRules& rules);

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_MEMFD_H_
