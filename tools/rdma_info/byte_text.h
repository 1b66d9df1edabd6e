// Numbers of bytes as people write them.
#ifndef VERBENA_TOOLS_RDMA_INFO_BYTE_TEXT_H_
#define VERBENA_TOOLS_RDMA_INFO_BYTE_TEXT_H_

#include <cstdint>
#include <string>

namespace rdma_info {

// "64 KiB", "1.5 GiB": the largest unit that there is one of, one digit after
// the point where it is not whole.
std::string ByteText(uint64_t bytes);

}  // namespace rdma_info

#endif  // VERBENA_TOOLS_RDMA_INFO_BYTE_TEXT_H_
