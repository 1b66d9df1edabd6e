// SerializationTraits of the types that are known, and of a user's own.
#include "rpc/serialization_traits.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "rpc/slice.h"
#include "tests/rpc/echo.pb.h"
#include "tests/rpc/own_type.h"

namespace rpc {
namespace {

using testing::Point;
using testing::SayRequest;

// As a template of a user's would.
template <class T>
Status Serialize(const T& message, ByteBuffer* buffer) {
  bool own_buffer = false;
  return SerializationTraits<T>::Serialize(message, buffer, &own_buffer);
}
template <class T>
Status Deserialize(ByteBuffer* buffer, T* message) {
  return SerializationTraits<T>::Deserialize(buffer, message);
}

ByteBuffer InPieces(const std::string& bytes, size_t piece) {
  std::vector<Slice> slices;
  for (size_t i = 0; i < bytes.size(); i += piece) {
    slices.emplace_back(bytes.substr(i, piece));
  }
  return ByteBuffer(slices.data(), slices.size());
}

SayRequest Request() {
  SayRequest request;
  request.set_text("some text");
  for (int i = 0; i < 20; ++i) request.add_numbers(int64_t{i} * 1000003);
  return request;
}

TEST(ProtobufTraitsTest, SerializeIntoOneSlice) {
  const SayRequest request = Request();
  ByteBuffer buffer = InPieces("what was there before", 4);
  bool own_buffer = false;
  ASSERT_TRUE(
      SerializationTraits<SayRequest>::Serialize(request, &buffer, &own_buffer)
          .ok());
  EXPECT_TRUE(own_buffer);
  Slice slice;
  ASSERT_TRUE(buffer.TrySingleSlice(&slice).ok());
  EXPECT_EQ(std::string(slice.begin(), slice.end()),
            request.SerializeAsString());
}

TEST(ProtobufTraitsTest, EmptyMessagesAreValid) {
  ByteBuffer buffer;
  ASSERT_TRUE(Serialize(SayRequest(), &buffer).ok());
  EXPECT_TRUE(buffer.Valid());
  EXPECT_EQ(buffer.Length(), 0u);
  SayRequest request = Request();
  ASSERT_TRUE(Deserialize(&buffer, &request).ok());
  EXPECT_EQ(request.text(), "");
}

TEST(ProtobufTraitsTest, DeserializeFromPiecesAndClear) {
  const std::string bytes = Request().SerializeAsString();
  for (const size_t piece : {size_t{1}, size_t{7}, bytes.size()}) {
    ByteBuffer buffer = InPieces(bytes, piece);
    SayRequest request;
    request.set_status_message("what was there before");
    ASSERT_TRUE(Deserialize(&buffer, &request).ok()) << piece;
    EXPECT_EQ(request.SerializeAsString(), bytes);
    EXPECT_FALSE(buffer.Valid());
  }
}

TEST(ProtobufTraitsTest, WhatDoesNotParseIsNamed) {
  for (const size_t piece : {1u, 100u}) {
    ByteBuffer buffer = InPieces("\xff\xff\xff", piece);
    SayRequest request;
    const Status status = Deserialize(&buffer, &request);
    EXPECT_EQ(status.error_code(), StatusCode::INTERNAL);
    EXPECT_NE(status.error_message().find("rpc.testing.SayRequest"),
              std::string::npos)
        << status;
    EXPECT_FALSE(buffer.Valid());
  }
}

TEST(ProtobufTraitsTest, NothingToParseIsAnError) {
  SayRequest request;
  ByteBuffer buffer;
  EXPECT_EQ(Deserialize(&buffer, &request).error_code(), StatusCode::INTERNAL);
  EXPECT_EQ(Deserialize<SayRequest>(nullptr, &request).error_code(),
            StatusCode::INTERNAL);
}

TEST(ProtobufTraitsTest, KnowTheBaseClasses) {
  const SayRequest request = Request();
  ByteBuffer buffer;
  ASSERT_TRUE(Serialize<google::protobuf::MessageLite>(request, &buffer).ok());
  SayRequest received;
  ASSERT_TRUE(Deserialize<google::protobuf::Message>(&buffer, &received).ok());
  EXPECT_EQ(received.SerializeAsString(), request.SerializeAsString());
}

TEST(ByteBufferTraitsTest, ShareTheBytes) {
  const ByteBuffer source = InPieces("hello", 3);
  ByteBuffer sent;
  bool own_buffer = false;
  ASSERT_TRUE(
      SerializationTraits<ByteBuffer>::Serialize(source, &sent, &own_buffer)
          .ok());
  EXPECT_TRUE(own_buffer);
  ByteBuffer received = InPieces("what was there before", 5);
  ASSERT_TRUE(Deserialize(&sent, &received).ok());
  ASSERT_EQ(received.chain().buffers().size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(received.chain().buffers()[i].data(),
              source.chain().buffers()[i].data());
  }
  EXPECT_EQ(source.chain().ToString(), "hello");
  EXPECT_FALSE(sent.Valid());
}

TEST(OwnTraitsTest, ThereAndBack) {
  ByteBuffer buffer;
  ASSERT_TRUE(Serialize(Point{5, -6}, &buffer).ok());
  EXPECT_EQ(buffer.chain().ToString(), "5,-6");
  Point point;
  ASSERT_TRUE(Deserialize(&buffer, &point).ok());
  EXPECT_EQ(point.x, 5);
  EXPECT_EQ(point.y, -6);
}

TEST(OwnTraitsTest, ErrorsAreTheTypes) {
  ByteBuffer buffer;
  EXPECT_EQ(Serialize(Point{-1, 0}, &buffer).error_code(),
            StatusCode::OUT_OF_RANGE);
  buffer = InPieces("no point", 100);
  Point point;
  EXPECT_EQ(Deserialize(&buffer, &point).error_code(),
            StatusCode::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace rpc
