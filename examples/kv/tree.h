// Finds the regular files of a directory tree: what `kv load` puts and what
// `kv verify` expects.
//
//   absl::StatusOr<kv::Tree> tree = kv::WalkTree("/usr/include");
//   for (const kv::TreeFile& file : tree->files) Use(tree->PathOf(file));
//
// What counts: regular files, each name of a hard link for itself. Symbolic
// links inside the tree are not followed, so that no loop and nothing outside
// of it is ever entered; they are counted, as are devices, FIFOs and sockets.
// The root itself may be a link to a directory.
//
// Thread rule: pure functions of the file system.
#ifndef VERBENA_EXAMPLES_KV_TREE_H_
#define VERBENA_EXAMPLES_KV_TREE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kv {

struct TreeFile {
  std::string name;    // relative to the root: "sys/stat.h"
  uint64_t bytes = 0;  // when the tree was walked
};

// Something that could not be read, by name.
struct FileProblem {
  std::string path;
  absl::Status status;
};

struct Tree {
  std::string root;             // as given, without trailing slashes
  std::vector<TreeFile> files;  // by name
  uint64_t total_bytes = 0;
  uint64_t skipped_links = 0;
  uint64_t skipped_special = 0;
  // Directories and entries that could not be read; their files are missing.
  std::vector<FileProblem> problems;

  // `root` with a slash behind it: what every path of the tree begins with.
  std::string RootWithSlash() const;
  std::string PathOf(const TreeFile& file) const;
};

// Walks the tree below `root`. Errors are those of the root alone (NOT_FOUND,
// FAILED_PRECONDITION where it is no directory, PERMISSION_DENIED); whatever is
// wrong deeper is in `problems`. Entries that vanish while the tree is walked
// were never there.
absl::StatusOr<Tree> WalkTree(std::string_view root);

}  // namespace kv

#endif  // VERBENA_EXAMPLES_KV_TREE_H_
