// A message's bytes, to be compared: maps come in their order.
#ifndef VERBENA_TESTS_RPC_BYTES_IN_ORDER_H_
#define VERBENA_TESTS_RPC_BYTES_IN_ORDER_H_

#include <string>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/message_lite.h"

namespace rpc::testing {

inline std::string BytesInOrder(const google::protobuf::MessageLite& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream target(&bytes);
  google::protobuf::io::CodedOutputStream stream(&target);
  stream.SetSerializationDeterministic(true);
  message.SerializePartialToCodedStream(&stream);
  stream.Trim();
  return bytes;
}

}  // namespace rpc::testing

#endif  // VERBENA_TESTS_RPC_BYTES_IN_ORDER_H_
