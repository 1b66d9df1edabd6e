#include "tools/rdma_info/byte_text.h"

#include <cstddef>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace rdma_info {

std::string ByteText(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  uint64_t size = 1;
  while (unit + 1 < std::size(kUnits) && bytes / size >= 1024) {
    size *= 1024;
    ++unit;
  }
  const uint64_t tenths = bytes % size * 10 / size;
  const std::string fraction = tenths == 0 ? "" : absl::StrCat(".", tenths);
  return absl::StrCat(bytes / size, fraction, " ", kUnits[unit]);
}

}  // namespace rdma_info
