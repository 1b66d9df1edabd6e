// What tests of lists keep in them: nodes that are counted.
//
//   list.Give(new CountedNode);
//   EXPECT_EQ(CountedNode::living, 1);
//
// Thread rule: any thread.
#ifndef VERBENA_TESTS_RPC_COUNTED_NODE_H_
#define VERBENA_TESTS_RPC_COUNTED_NODE_H_

#include <atomic>

#include "rpc/internal/free_list.h"

namespace rpc::testing {

class CountedNode final : public internal::FreeListNode {
 public:
  CountedNode() { living.fetch_add(1); }
  ~CountedNode() override { living.fetch_sub(1); }

  static inline std::atomic<int> living{0};
};

}  // namespace rpc::testing

#endif  // VERBENA_TESTS_RPC_COUNTED_NODE_H_
