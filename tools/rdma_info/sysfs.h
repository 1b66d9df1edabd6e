// Reading the small files by which the kernel tells about itself.
//
//   const std::string rate = ReadLine(port + "/rate");  // "100 Gb/sec (4X
//   EDR)"
//
// Nothing here fails: a file that is missing, or that the kernel does not want
// to read out (an empty entry of a GID table), is an empty string. Thread-safe.
#ifndef VERBENA_TOOLS_RDMA_INFO_SYSFS_H_
#define VERBENA_TOOLS_RDMA_INFO_SYSFS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/rdma_info/machine.h"

namespace rdma_info {

// The first line, without the spaces around it.
std::string ReadLine(const std::string& path);

// All lines.
std::vector<std::string> ReadLines(const std::string& path);

// The number that the first line is or begins with; 0 without one.
uint64_t ReadNumber(const std::string& path);

// "4: ACTIVE" is {4, "ACTIVE"}: how files of InfiniBand write enumerations.
struct Enumerated {
  int number = 0;
  std::string word;
};
Enumerated ReadEnumerated(const std::string& path);

// What is in a directory, sorted: numbers by value, then the rest by name.
std::vector<std::string> ListNames(const std::string& directory);

bool Exists(const std::string& path);

// The last part of what a symbolic link leads to; empty where it is none.
std::string LinkedName(const std::string& path);

// Whether this process may open a device's file.
Access AccessTo(const std::string& path);

}  // namespace rdma_info

#endif  // VERBENA_TOOLS_RDMA_INFO_SYSFS_H_
