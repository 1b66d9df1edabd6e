// Puts every file of a tree into the store, several at a time: what `kv load`
// does.
//
//   kv::LoadReport report = kv::LoadTree(client, tree, base, {}, progress);
//
// One thread reads files, straight into the memory that they are sent from, and
// starts calls of the callback API; the transport ends them. Calls in flight
// are bounded in number and in bytes, so that a tree of any size needs no more
// memory than its largest file or the bound.
//
// A file that cannot be read, vanishes, or does not hold still is a problem by
// name, and the rest goes on. What makes the rest pointless ends the load: a
// server that is gone or full.
#ifndef VERBENA_EXAMPLES_KV_LOAD_H_
#define VERBENA_EXAMPLES_KV_LOAD_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "examples/kv/client.h"
#include "examples/kv/progress.h"
#include "examples/kv/tree.h"

namespace kv {

struct LoadOptions {
  int max_calls_in_flight = 64;
  // A larger file than this goes alone.
  uint64_t max_bytes_in_flight = uint64_t{256} << 20;
};

struct LoadReport {
  uint64_t files = 0;  // stored
  uint64_t bytes = 0;
  uint64_t failed_files = 0;  // named by Progress::Print
  // Not OK: the load ended early, and why.
  absl::Status fatal;

  // As if both loads had been one.
  void Add(const LoadReport& other);
};

// Blocks until all is done. Draws `progress` and prints each problem through
// it.
LoadReport LoadTree(Client& client, const Tree& tree, std::string_view key_base,
                    const LoadOptions& options, Progress& progress);

}  // namespace kv

#endif  // VERBENA_EXAMPLES_KV_LOAD_H_
