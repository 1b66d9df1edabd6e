// A type of a user's own, which is no protobuf message and goes by
// SerializationTraits.
#ifndef VERBENA_TESTS_RPC_OWN_TYPE_H_
#define VERBENA_TESTS_RPC_OWN_TYPE_H_

#include "rpc/byte_buffer.h"
#include "rpc/serialization_traits.h"
#include "rpc/status.h"

namespace rpc::testing {

// On the wire "x,y", in several slices. Points with a negative x cannot be
// sent.
struct Point {
  int x = 0;
  int y = 0;
};

}  // namespace rpc::testing

namespace rpc {

template <>
class SerializationTraits<testing::Point> {
 public:
  // OUT_OF_RANGE where x is negative; the buffer has bytes by then.
  static Status Serialize(const testing::Point& point, ByteBuffer* buffer,
                          bool* own_buffer);
  // INVALID_ARGUMENT where it is not a point.
  static Status Deserialize(ByteBuffer* buffer, testing::Point* point);
};

}  // namespace rpc

#endif  // VERBENA_TESTS_RPC_OWN_TYPE_H_
