// A directory with the kernel's files as a test wants them.
//
//   MadeUpFiles files;
//   files.Write("sys/class/infiniband/mlx5_0/fw_ver", "22.36.1010");
//   CollectKernelDevices(files.roots());
#ifndef VERBENA_TOOLS_RDMA_INFO_MADE_UP_FILES_H_
#define VERBENA_TOOLS_RDMA_INFO_MADE_UP_FILES_H_

#include <string>

#include "tools/rdma_info/machine.h"

namespace rdma_info {

class MadeUpFiles {
 public:
  // An empty directory below TEST_TMPDIR.
  MadeUpFiles();
  ~MadeUpFiles();

  MadeUpFiles(const MadeUpFiles&) = delete;
  MadeUpFiles& operator=(const MadeUpFiles&) = delete;

  // "sys", "dev" and "proc" of the directory.
  Roots roots() const;
  std::string path(const std::string& name) const {
    return directory_ + "/" + name;
  }

  // `text` and a line end, in a file whose directories are made.
  void Write(const std::string& name, const std::string& text) const;
  // A symbolic link, which need not lead anywhere.
  void Link(const std::string& name, const std::string& target) const;

 private:
  std::string directory_;
};

}  // namespace rdma_info

#endif  // VERBENA_TOOLS_RDMA_INFO_MADE_UP_FILES_H_
