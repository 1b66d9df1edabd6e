// How the files of a tree are named in the store: a key is a base and the
// file's name inside the tree. `load` and `verify` of one tree must agree on
// the base.
#ifndef VERBENA_EXAMPLES_KV_TREE_KEYS_H_
#define VERBENA_EXAMPLES_KV_TREE_KEYS_H_

#include <string>
#include <string_view>

#include "examples/kv/tree.h"

namespace kv {

// The base of `tree`'s keys: `key_prefix`, then the tree's root as it was given
// and a slash, unless `relative`. "/usr/include" gives keys "/usr/include/...".
inline std::string KeyBaseOf(const Tree& tree, std::string_view key_prefix,
                             bool relative) {
  std::string base(key_prefix);
  if (!relative) base += tree.RootWithSlash();
  return base;
}

}  // namespace kv

#endif  // VERBENA_EXAMPLES_KV_TREE_KEYS_H_
