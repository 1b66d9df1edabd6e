#include "rpc/grpc_names.h"

#include <cstdio>
#include <cstdlib>

namespace rpc::internal {

void AssertionFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace rpc::internal
