// gRPC's names for protobuf's types are these types.
#include "rpc/config_protobuf.h"

#include <string>
#include <type_traits>

#include "gtest/gtest.h"
#include "tests/rpc/echo.pb.h"

namespace rpc::testing {
namespace {

TEST(ConfigProtobufTest, NamesAreProtobufs) {
  SayRequest request;
  request.set_text("ada");
  const protobuf::Message& message = request;
  const protobuf::Descriptor* const descriptor = message.GetDescriptor();
  EXPECT_EQ(descriptor->full_name(), "rpc.testing.SayRequest");
  std::string json;
  const protobuf::util::Status status =
      protobuf::json::MessageToJsonString(message, &json);
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(json, "{\"text\":\"ada\"}");
  static_assert(std::is_same_v<protobuf::io::ZeroCopyInputStream,
                               google::protobuf::io::ZeroCopyInputStream>);
}

}  // namespace
}  // namespace rpc::testing
