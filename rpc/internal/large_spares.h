// Spare objects that held something large: calls', whose messages have memory
// that is mapped and cleared already. The next large ones take them and so meet
// no page fault. There are few at most, as many as were in use at once lately,
// and none once nobody has used them for a while: a free list of such objects
// would keep memory for ever.
//
//   FreeListNode* call = spares.Take();
//   if (call == nullptr) call = new Call;
//   ...
//   spares.Give(call);
//
// Thread rule: any thread; the destructor when none uses it any more.
#ifndef VERBENA_RPC_INTERNAL_LARGE_SPARES_H_
#define VERBENA_RPC_INTERNAL_LARGE_SPARES_H_

#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "rpc/internal/free_list.h"

namespace rpc::internal {

class LargeSpares {
 public:
  static constexpr uint32_t kMost = 4;
  // What was not needed for so long is deleted, at the latest after twice that.
  static constexpr absl::Duration kIdleTimeout = absl::Seconds(1);

  LargeSpares();
  ~LargeSpares();
  LargeSpares(const LargeSpares&) = delete;
  LargeSpares& operator=(const LargeSpares&) = delete;

  // A spare object, or null. Takes a lock.
  FreeListNode* Take();
  // Keeps (or deletes) `node`.
  void Give(FreeListNode* node);

 private:
  class Shelf;

  const std::shared_ptr<Shelf> shelf_;
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_LARGE_SPARES_H_
