// Writes a value to where a user wants it.
//
// Thread rule: pure functions of the file system.
#ifndef VERBENA_EXAMPLES_KV_OUTPUT_FILE_H_
#define VERBENA_EXAMPLES_KV_OUTPUT_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "rpc/buffer.h"

namespace kv {

// Writes all of `bytes` to a descriptor. `name` is for the error.
absl::Status WriteTo(int fd, const std::string& name,
                     const rpc::BufferChain& bytes);

// Makes `path` hold `bytes`. A regular file appears whole or not at all: the
// bytes go to a new file beside it, which then takes its name and, where there
// was a file, its mode. What is no regular file (/dev/null, a FIFO) is written
// to as it is. Errors name the path that failed, and leave nothing behind.
absl::Status WriteFile(const std::string& path, const rpc::BufferChain& bytes);

}  // namespace kv

#endif  // VERBENA_EXAMPLES_KV_OUTPUT_FILE_H_
