#include "tests/rpc/own_type.h"

#include <array>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "rpc/slice.h"

namespace rpc {

Status SerializationTraits<testing::Point>::Serialize(
    const testing::Point& point, ByteBuffer* buffer, bool* own_buffer) {
  const std::array<Slice, 3> slices = {absl::StrCat(point.x),
                                       Slice(",", 1, Slice::STATIC_SLICE),
                                       absl::StrCat(point.y)};
  *buffer = ByteBuffer(slices.data(), slices.size());
  *own_buffer = false;  // of no effect
  if (point.x >= 0) return Status::OK;
  return Status(StatusCode::OUT_OF_RANGE, "x is negative");
}

Status SerializationTraits<testing::Point>::Deserialize(ByteBuffer* buffer,
                                                        testing::Point* point) {
  const std::string bytes = buffer->chain().ToString();
  const std::vector<std::string> numbers = absl::StrSplit(bytes, ',');
  if (numbers.size() == 2 && absl::SimpleAtoi(numbers[0], &point->x) &&
      absl::SimpleAtoi(numbers[1], &point->y)) {
    return Status::OK;
  }
  return Status(StatusCode::INVALID_ARGUMENT, "not a point");
}

}  // namespace rpc
