// A temporary directory with files in it, removed with the object.
//
//   TempTree tree;
//   tree.Write("sub/name", "bytes");
//   Use(tree.PathOf("sub/name"));
#ifndef VERBENA_TESTS_KV_TEMP_TREE_H_
#define VERBENA_TESTS_KV_TEMP_TREE_H_

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace kv {

class TempTree {
 public:
  TempTree() {
    std::string name = ::testing::TempDir() + "/kv_tree_XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    root_ = name;
  }
  ~TempTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  TempTree(const TempTree&) = delete;
  TempTree& operator=(const TempTree&) = delete;

  const std::string& root() const { return root_; }
  std::string PathOf(std::string_view name) const {
    return root_ + "/" + std::string(name);
  }

  // Makes a file, and the directories that it needs.
  void Write(std::string_view name, std::string_view bytes) const {
    const std::filesystem::path path(PathOf(name));
    std::filesystem::create_directories(path.parent_path());
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    ASSERT_TRUE(out.good()) << path;
  }

  std::string Read(std::string_view name) const {
    std::ifstream in(PathOf(name), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }

 private:
  std::string root_;
};

}  // namespace kv

#endif  // VERBENA_TESTS_KV_TEMP_TREE_H_
