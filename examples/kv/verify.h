// Compares the store with a tree, byte for byte: what `kv verify` does.
//
//   kv::VerifyReport report = kv::VerifyTree(client, tree, base, {}, progress);
//   if (report.same_files == tree.files.size() && report.extra_keys == 0) ...
//
// Several threads each take a file, Get its value with a blocking call, and
// compare the SHA-256 of the value with the SHA-256 of the file as it is on
// disk now. Then the keys below the base are listed: one that no file has is
// extra.
#ifndef VERBENA_EXAMPLES_KV_VERIFY_H_
#define VERBENA_EXAMPLES_KV_VERIFY_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "examples/kv/client.h"
#include "examples/kv/latency_histogram.h"
#include "examples/kv/progress.h"
#include "examples/kv/tree.h"

namespace kv {

struct VerifyOptions {
  int threads = 2;
};

// Each file of the tree is counted in one of the first four. All but the first
// are named by Progress::Print.
struct VerifyReport {
  uint64_t same_files = 0;
  uint64_t different_files = 0;
  uint64_t missing_files = 0;     // no such key
  uint64_t unreadable_files = 0;  // on this side: vanished, changing, no right
  uint64_t extra_keys = 0;

  uint64_t bytes = 0;  // of the values that were read
  LatencyHistogram get_latencies;
  absl::Duration time_in_gets = absl::ZeroDuration();  // of all threads

  // Not OK: the comparison ended early, and why.
  absl::Status fatal;

  bool all_same() const {
    return fatal.ok() && different_files == 0 && missing_files == 0 &&
           unreadable_files == 0 && extra_keys == 0;
  }
  // As if both comparisons had been one.
  void Add(const VerifyReport& other);
};

// Blocks until all is done. Draws `progress` and prints each difference through
// it. Every key that starts with `key_base` is taken to be the tree's: an empty
// base is right only for a store that holds nothing else.
VerifyReport VerifyTree(Client& client, const Tree& tree,
                        std::string_view key_base, const VerifyOptions& options,
                        Progress& progress);

}  // namespace kv

#endif  // VERBENA_EXAMPLES_KV_VERIFY_H_
