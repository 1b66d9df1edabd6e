// A file as a value, read straight into the memory that it is sent from.
//
//   absl::StatusOr<rpc::BufferChain> value = kv::ValueOfFile(client, "a.txt");
//
// Thread rule: any thread.
#ifndef VERBENA_EXAMPLES_KV_VALUE_OF_FILE_H_
#define VERBENA_EXAMPLES_KV_VALUE_OF_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "examples/kv/client.h"
#include "rpc/buffer.h"

namespace kv {

// Follows symbolic links. Errors as SourceFile's and Client::AllocateValue's.
absl::StatusOr<rpc::BufferChain> ValueOfFile(Client& client,
                                             const std::string& path);

}  // namespace kv

#endif  // VERBENA_EXAMPLES_KV_VALUE_OF_FILE_H_
