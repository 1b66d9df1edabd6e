#include "rpc/internal/resize_uninitialized.h"

namespace rpc::internal {

void ResizeUninitialized(std::string& string, size_t size) {
  string.clear();  // or else it would be copied
  string.resize_and_overwrite(size, [](char*, size_t bytes) { return bytes; });
}

}  // namespace rpc::internal
