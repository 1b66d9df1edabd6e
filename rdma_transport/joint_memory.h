// Memory for what one connection's READs bring, where the peer's CPU helps to
// copy it (Device::reads_jointly): the peer writes to all of it.
//
// It is made for connections that bring one large attachment after the other,
// and given back when that ends: making it takes longer than reading into it.
//
//   std::optional<rpc::Buffer> buffer = joint.Allocate(bytes);   // or
//   elsewhere
//   // Once a kCheck, as long as this is true:
//   if (joint.StaysInUse()) ...
//
// Thread rule: the connection's driver. Buffers may outlive it.
#ifndef VERBENA_RDMA_TRANSPORT_JOINT_MEMORY_H_
#define VERBENA_RDMA_TRANSPORT_JOINT_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "rdma_transport/registered_memory.h"
#include "rpc/buffer.h"

namespace rdma {

class JointMemory {
 public:
  // Less is not worth a look at the peer.
  static constexpr size_t kFewestBytes = 256 << 10;
  static constexpr absl::Duration kCheck = absl::Seconds(1);

  // REQUIRES: `memory` outlives this.
  explicit JointMemory(RegisteredMemory* memory);
  ~JointMemory();

  JointMemory(const JointMemory&) = delete;
  JointMemory& operator=(const JointMemory&) = delete;

  // Nothing: not yet, or there is none.
  std::optional<rpc::Buffer> Allocate(size_t bytes);
  // Whether any was asked for since the last time; else it is given back.
  bool StaysInUse();

 private:
  // In one kCheck, until it is worth it.
  static constexpr uint32_t kFewestAllocations = 8;

  RegisteredMemory* const memory_;
  const uint64_t owner_;
  uint32_t allocations_ = 0;  // since the last check
  bool is_worth_it_ = false;
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_JOINT_MEMORY_H_
