#include "rpc/internal/resize_uninitialized.h"

namespace rpc::internal {

void ResizeUninitialized(std::string& string, size_t size) {
  string.clear();  // or else it would be copied
  // libstdc++ 12 hands the function what it made room for, which may be more.
  string.resize_and_overwrite(size, [size](char*, size_t) { return size; });
}

}  // namespace rpc::internal
