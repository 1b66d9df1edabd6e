// std::string::resize without zeroes, for what is written as a whole anyway.
#ifndef VERBENA_RPC_INTERNAL_RESIZE_UNINITIALIZED_H_
#define VERBENA_RPC_INTERNAL_RESIZE_UNINITIALIZED_H_

#include <cstddef>
#include <string>

namespace rpc::internal {

// What `string` held is gone; it has `size` bytes of any value.
void ResizeUninitialized(std::string& string, size_t size);

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_RESIZE_UNINITIALIZED_H_
