// Memory of the loopback transport: blocks with a domain, a budget and spares.
//
// Stands for registered memory: the transport passes such blocks on without
// copying them, and copies all others. Thread rule: any thread.
#ifndef VERBENA_TESTS_RPC_LOOPBACK_MEMORY_H_
#define VERBENA_TESTS_RPC_LOOPBACK_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rpc/buffer.h"

namespace rpc::testing {

// Shared by what allocates and by its blocks, which may outlive the transport.
class LoopbackMemory : public std::enable_shared_from_this<LoopbackMemory> {
 public:
  explicit LoopbackMemory(uint64_t budget_bytes);
  ~LoopbackMemory();

  // RESOURCE_EXHAUSTED at the budget.
  absl::StatusOr<Buffer> Allocate(size_t bytes);
  // A copy in pieces of at most `piece_bytes`, beyond any budget.
  BufferChain Copy(absl::Span<const std::byte> bytes, size_t piece_bytes);
  // The chain itself where all of it is such memory, else a copy.
  BufferChain PassOrCopy(BufferChain chain);

  uint64_t bytes_in_use() const;

 private:
  class Block;
  struct State;

  Buffer NewBuffer(size_t bytes);

  const std::unique_ptr<State> state_;
};

}  // namespace rpc::testing

#endif  // VERBENA_TESTS_RPC_LOOPBACK_MEMORY_H_
