// The mappings of peers' memory: a file that several connections are given is
// mapped once, so that a thousand connections between two processes cost one
// mapping of each arena.
//
//   absl::StatusOr<std::shared_ptr<const PeerMapping>> arena =
//       cache.Map(fd, {.writable = false});
//
// Thread rule: thread-safe.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_SHM_MAPPING_CACHE_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_SHM_MAPPING_CACHE_H_

#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

#include "absl/status/statusor.h"
#include "rdma_transport/software/engine/memfd.h"

namespace rdma::soft {

struct PeerMapping {
  Mapping mapping;
  bool writable = false;

  std::byte* base() const { return mapping.base(); }
  size_t bytes() const { return mapping.bytes(); }
};

class MappingCache {
 public:
  // Checks what the descriptor is, and maps it unless it is mapped. The
  // descriptor stays the caller's. The mapping goes with its last user.
  absl::StatusOr<std::shared_ptr<const PeerMapping>> Map(
      int fd, const PeerSegmentRules& rules);

 private:
  using Key = std::tuple<dev_t, ino_t, bool>;

  std::mutex mutex_;
  size_t sweep_at_ = 1;  // guarded by mutex_, as all below
  std::map<Key, std::weak_ptr<const PeerMapping>> mappings_;
};

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_SHM_MAPPING_CACHE_H_
