#include "examples/kv/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

namespace kv {
namespace {

struct CloseDir {
  void operator()(DIR* dir) const { ::closedir(dir); }
};
using UniqueDir = std::unique_ptr<DIR, CloseDir>;

class Walker {
 public:
  explicit Walker(Tree* tree)
      : tree_(*tree), root_with_slash_(tree->RootWithSlash()) {}

  // Directories wait in a list, not on the stack: depth costs no descriptors.
  void Run(UniqueDir root) {
    ReadDirectory(std::move(root), "");
    while (!waiting_.empty()) {
      const std::string name = std::move(waiting_.back());
      waiting_.pop_back();
      const std::string path = root_with_slash_ + name;
      // O_NOFOLLOW: it may have become a link since it was listed.
      const int fd =
          ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
      if (fd < 0) {
        AddProblem(name, "open");
        continue;
      }
      UniqueDir dir(::fdopendir(fd));
      if (dir == nullptr) {
        AddProblem(name, "fdopendir");
        ::close(fd);
        continue;
      }
      ReadDirectory(std::move(dir), name + "/");
    }
  }

 private:
  void ReadDirectory(UniqueDir dir, const std::string& prefix) {
    while (true) {
      errno = 0;
      const dirent* entry = ::readdir(dir.get());
      if (entry == nullptr) {
        if (errno != 0) AddProblem(prefix, "readdir");
        return;
      }
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      AddEntry(::dirfd(dir.get()), entry->d_name, prefix + entry->d_name);
    }
  }

  void AddEntry(int dir_fd, const char* entry, std::string name) {
    struct stat info;
    if (::fstatat(dir_fd, entry, &info, AT_SYMLINK_NOFOLLOW) != 0) {
      AddProblem(name, "stat");
    } else if (S_ISDIR(info.st_mode)) {
      waiting_.push_back(std::move(name));
    } else if (S_ISREG(info.st_mode)) {
      const auto bytes = static_cast<uint64_t>(info.st_size);
      tree_.total_bytes += bytes;
      tree_.files.push_back({std::move(name), bytes});
    } else if (S_ISLNK(info.st_mode)) {
      ++tree_.skipped_links;
    } else {
      ++tree_.skipped_special;
    }
  }

  void AddProblem(const std::string& name, const char* call) {
    const int error = errno;
    if (error == ENOENT) return;
    tree_.problems.push_back(
        {root_with_slash_ + name, absl::ErrnoToStatus(error, call)});
  }

  Tree& tree_;
  const std::string root_with_slash_;
  std::vector<std::string> waiting_;
};

}  // namespace

std::string Tree::RootWithSlash() const {
  return root == "/" ? root : root + "/";
}

std::string Tree::PathOf(const TreeFile& file) const {
  return RootWithSlash() + file.name;
}

absl::StatusOr<Tree> WalkTree(std::string_view root) {
  Tree tree;
  tree.root = root;
  while (tree.root.size() > 1 && tree.root.back() == '/') tree.root.pop_back();
  UniqueDir dir(::opendir(tree.root.c_str()));
  if (dir == nullptr) {
    const int error = errno;
    if (error == ENOTDIR) {
      return absl::FailedPreconditionError(
          absl::StrCat(tree.root, ": not a directory"));
    }
    return absl::ErrnoToStatus(error, tree.root);
  }
  Walker(&tree).Run(std::move(dir));
  std::sort(
      tree.files.begin(), tree.files.end(),
      [](const TreeFile& a, const TreeFile& b) { return a.name < b.name; });
  return tree;
}

}  // namespace kv
