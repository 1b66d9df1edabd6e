// Copying between a run of bytes and a list of SGEs, which is a run of bytes
// too: its entries one after the other.
//
// Thread rule: none; pure functions. The SGEs were checked before.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_SGE_COPY_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_SGE_COPY_H_

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "memory/copy_bytes.h"

namespace rdma::soft {

inline uint64_t TotalBytes(const ibv_sge* sges, uint32_t count) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < count; ++i) total += sges[i].length;
  return total;
}

// Calls visit(std::byte* piece, uint64_t bytes) for the pieces of
// [offset, offset + bytes) of the list, in order.
// REQUIRES: that range lies in the list.
template <typename Visit>
void ForEachPiece(const ibv_sge* sges, uint64_t offset, uint64_t bytes,
                  Visit visit) {
  while (bytes != 0) {
    if (offset >= sges->length) {
      offset -= sges->length;
      ++sges;
      continue;
    }
    const uint64_t piece = std::min(bytes, sges->length - offset);
    visit(reinterpret_cast<std::byte*>(sges->addr) + offset, piece);
    bytes -= piece;
    offset += piece;
  }
}

// To [offset, offset + bytes) of the list.
template <void (*copy)(std::byte*, const std::byte*,
                       size_t) = memory::CopyBytes>
void Scatter(const ibv_sge* sges, uint64_t offset, const std::byte* from,
             uint64_t bytes) {
  ForEachPiece(sges, offset, bytes, [&](std::byte* piece, uint64_t size) {
    copy(piece, from, size);
    from += size;
  });
}

// From [offset, offset + bytes) of the list.
inline void Gather(const ibv_sge* sges, uint64_t offset, std::byte* to,
                   uint64_t bytes) {
  ForEachPiece(sges, offset, bytes, [&](const std::byte* piece, uint64_t size) {
    memory::CopyBytes(to, piece, size);
    to += size;
  });
}

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_SGE_COPY_H_
