#include "tools/rdma_info/made_up_files.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace rdma_info {

MadeUpFiles::MadeUpFiles() {
  const char* const parent = std::getenv("TEST_TMPDIR");
  directory_ =
      std::string(parent == nullptr ? "/tmp" : parent) + "/filesXXXXXX";
  if (mkdtemp(directory_.data()) == nullptr) std::abort();
}

MadeUpFiles::~MadeUpFiles() { std::filesystem::remove_all(directory_); }

Roots MadeUpFiles::roots() const {
  return {.sys = path("sys"), .dev = path("dev"), .proc = path("proc")};
}

void MadeUpFiles::Write(const std::string& name,
                        const std::string& text) const {
  const std::filesystem::path file = path(name);
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text << '\n';
}

void MadeUpFiles::Link(const std::string& name,
                       const std::string& target) const {
  const std::filesystem::path link = path(name);
  std::filesystem::create_directories(link.parent_path());
  std::filesystem::create_symlink(target, link);
}

}  // namespace rdma_info
