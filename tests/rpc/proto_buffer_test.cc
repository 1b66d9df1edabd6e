// Protobuf's streams over ByteBuffers: by hand, and as protobuf uses them.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "google/protobuf/io/coded_stream.h"
#include "gtest/gtest.h"
#include "rpc/buffer.h"
#include "rpc/byte_buffer.h"
#include "rpc/proto_buffer_reader.h"
#include "rpc/proto_buffer_writer.h"
#include "rpc/proto_utils.h"
#include "tests/rpc/echo.pb.h"

namespace rpc {
namespace {

using testing::SayRequest;

ByteBuffer InPieces(std::string_view bytes, size_t piece) {
  BufferChain chain;
  for (size_t i = 0; i < bytes.size(); i += piece) {
    chain.Append(Buffer::CopyOf(bytes.substr(i, piece)));
  }
  return ByteBuffer(std::move(chain));
}

SayRequest LargeRequest(size_t payload_bytes) {
  SayRequest request;
  for (int i = 0; i < 20; ++i) request.add_numbers(int64_t{i} * 1000003);
  std::string payload(payload_bytes, '\0');
  for (size_t i = 0; i < payload_bytes; ++i) {
    payload[i] = static_cast<char>(i * 7);
  }
  request.set_payload(std::move(payload));
  return request;
}

// ---- ProtoBufferReader ----

std::string NextOf(ProtoBufferReader& reader) {
  const void* data = nullptr;
  int size = 0;
  if (!reader.Next(&data, &size)) return "(end)";
  return std::string(static_cast<const char*>(data), static_cast<size_t>(size));
}

TEST(ProtoBufferReaderTest, GivesTheSlicesWhereTheyLie) {
  ByteBuffer buffer = InPieces("abcdefghij", 4);
  ProtoBufferReader reader(&buffer);
  ASSERT_TRUE(reader.status().ok());
  const void* data = nullptr;
  int size = 0;
  ASSERT_TRUE(reader.Next(&data, &size));
  EXPECT_EQ(data, buffer.chain().buffers()[0].data());
  EXPECT_EQ(size, 4);
  EXPECT_EQ(NextOf(reader), "efgh");
  EXPECT_EQ(NextOf(reader), "ij");
  EXPECT_EQ(NextOf(reader), "(end)");
  EXPECT_EQ(reader.ByteCount(), 10);
  EXPECT_EQ(buffer.Length(), 10u);
}

TEST(ProtoBufferReaderTest, BackUpAndSkip) {
  ByteBuffer buffer = InPieces("abcdefghij", 4);
  ProtoBufferReader reader(&buffer);
  EXPECT_EQ(NextOf(reader), "abcd");
  reader.BackUp(3);
  EXPECT_EQ(reader.ByteCount(), 1);
  EXPECT_TRUE(reader.Skip(4));
  EXPECT_EQ(NextOf(reader), "fgh");
  EXPECT_TRUE(reader.Skip(2));
  EXPECT_FALSE(reader.Skip(1));
}

TEST(ProtoBufferReaderTest, WithoutAMessageThereIsNothing) {
  ByteBuffer not_valid;
  for (ByteBuffer* const buffer :
       {&not_valid, static_cast<ByteBuffer*>(nullptr)}) {
    ProtoBufferReader reader(buffer);
    EXPECT_EQ(reader.status().error_code(), StatusCode::INTERNAL);
    EXPECT_EQ(NextOf(reader), "(end)");
    EXPECT_FALSE(reader.Skip(1));
  }
  ByteBuffer empty((BufferChain()));
  ProtoBufferReader reader(&empty);
  EXPECT_TRUE(reader.status().ok());
  EXPECT_EQ(NextOf(reader), "(end)");
}

// ---- ProtoBufferWriter ----

// Fills what Next gives with `fill`; its size, or -1.
int Fill(ProtoBufferWriter& writer, char fill) {
  void* data = nullptr;
  int size = 0;
  if (!writer.Next(&data, &size)) return -1;
  std::memset(data, fill, static_cast<size_t>(size));
  return size;
}

TEST(ProtoBufferWriterTest, GivesBlocksUntilAllIsGiven) {
  ByteBuffer buffer = InPieces("what was there before", 5);
  ProtoBufferWriter writer(&buffer, 4, 10);
  EXPECT_TRUE(buffer.Valid());
  EXPECT_EQ(buffer.Length(), 0u);
  EXPECT_EQ(Fill(writer, 'a'), 4);
  EXPECT_EQ(buffer.chain().ToString(), "aaaa");
  EXPECT_EQ(Fill(writer, 'b'), 4);
  EXPECT_EQ(Fill(writer, 'c'), 2);
  EXPECT_EQ(Fill(writer, 'd'), -1);
  EXPECT_EQ(writer.ByteCount(), 10);
  EXPECT_EQ(buffer.chain().ToString(), "aaaabbbbcc");
  EXPECT_EQ(buffer.chain().buffers().size(), 3u);
}

TEST(ProtoBufferWriterTest, WhatIsGivenBackComesNext) {
  ByteBuffer buffer;
  ProtoBufferWriter writer(&buffer, 8, 10);
  EXPECT_EQ(Fill(writer, 'a'), 8);
  writer.BackUp(5);
  EXPECT_EQ(writer.ByteCount(), 3);
  EXPECT_EQ(buffer.chain().ToString(), "aaa");
  EXPECT_EQ(Fill(writer, 'b'), 5);
  writer.BackUp(0);
  EXPECT_EQ(buffer.chain().ToString(), "aaabbbbb");
  EXPECT_EQ(buffer.chain().buffers()[0].block(),
            buffer.chain().buffers()[1].block());
  EXPECT_EQ(Fill(writer, 'c'), 2);
  writer.BackUp(2);
  EXPECT_EQ(buffer.Length(), 8u);
  EXPECT_EQ(Fill(writer, 'd'), 2);
  EXPECT_EQ(buffer.chain().ToString(), "aaabbbbbdd");
  EXPECT_EQ(Fill(writer, 'e'), -1);
}

// Who has a copy of the ByteBuffer keeps what it saw.
TEST(ProtoBufferWriterTest, CopiesStayAsTheyAre) {
  ByteBuffer buffer;
  ByteBuffer copy;
  {
    ProtoBufferWriter writer(&buffer, 8, 16);
    EXPECT_EQ(Fill(writer, 'a'), 8);
    writer.BackUp(6);
    copy = buffer;
    EXPECT_EQ(Fill(writer, 'b'), 6);
  }
  EXPECT_EQ(copy.chain().ToString(), "aa");
  EXPECT_EQ(buffer.chain().ToString(), "aabbbbbb");
}

TEST(ProtoBufferWriterTest, BlocksHaveAByteAtLeast) {
  ByteBuffer buffer;
  ProtoBufferWriter writer(&buffer, 0, 2);
  EXPECT_EQ(Fill(writer, 'a'), 1);
  EXPECT_EQ(Fill(writer, 'b'), 1);
  EXPECT_EQ(Fill(writer, 'c'), -1);
  EXPECT_EQ(buffer.chain().ToString(), "ab");
}

// ---- As protobuf uses them ----

TEST(ProtoBufferTest, MessagesThroughBlocksOfEverySize) {
  const SayRequest request = LargeRequest(100);
  const std::string bytes = request.SerializeAsString();
  const int total = static_cast<int>(bytes.size());
  for (int block_size = 1; block_size <= total + 1; ++block_size) {
    ByteBuffer buffer;
    ProtoBufferWriter writer(&buffer, block_size, total);
    ASSERT_TRUE(request.SerializeToZeroCopyStream(&writer)) << block_size;
    ASSERT_EQ(buffer.chain().ToString(), bytes) << block_size;
    SayRequest parsed;
    ProtoBufferReader reader(&buffer);
    ASSERT_TRUE(parsed.ParseFromZeroCopyStream(&reader)) << block_size;
    EXPECT_EQ(parsed.SerializeAsString(), bytes) << block_size;
  }
}

TEST(ProtoBufferTest, MessagesOneAfterTheOther) {
  const SayRequest request = LargeRequest(30);
  const int size = static_cast<int>(request.ByteSizeLong());
  ByteBuffer buffer;
  ProtoBufferWriter writer(&buffer, 32, 3 * size);
  for (int i = 0; i < 3; ++i) {
    google::protobuf::io::CodedOutputStream output(&writer);
    ASSERT_TRUE(request.SerializeToCodedStream(&output));
  }
  ASSERT_EQ(buffer.Length(), static_cast<size_t>(3 * size));
  ProtoBufferReader reader(&buffer);
  for (int i = 0; i < 3; ++i) {
    SayRequest parsed;
    ASSERT_TRUE(parsed.ParseFromBoundedZeroCopyStream(&reader, size));
    EXPECT_EQ(parsed.SerializeAsString(), request.SerializeAsString());
  }
}

// ---- proto_utils.h ----

TEST(GenericSerializeTest, ThereAndBackInPieces) {
  const SayRequest request = LargeRequest(5 << 19);
  ByteBuffer buffer = InPieces("what was there before", 5);
  bool own_buffer = false;
  ASSERT_TRUE((GenericSerialize<ProtoBufferWriter, SayRequest>(request, &buffer,
                                                               &own_buffer))
                  .ok());
  EXPECT_TRUE(own_buffer);
  EXPECT_EQ(buffer.Length(), request.ByteSizeLong());
  EXPECT_EQ(buffer.chain().buffers()[0].size(), size_t{1} << 20);
  EXPECT_EQ(buffer.chain().buffers().size(), 3u);
  SayRequest parsed;
  ASSERT_TRUE(
      (GenericDeserialize<ProtoBufferReader, SayRequest>(&buffer, &parsed))
          .ok());
  EXPECT_EQ(parsed.payload(), request.payload());
  EXPECT_FALSE(buffer.Valid());
}

TEST(GenericSerializeTest, EmptyMessagesAreValid) {
  ByteBuffer buffer;
  bool own_buffer = false;
  ASSERT_TRUE(
      GenericSerialize<ProtoBufferWriter>(SayRequest(), &buffer, &own_buffer)
          .ok());
  EXPECT_TRUE(buffer.Valid());
  SayRequest parsed = LargeRequest(10);
  ASSERT_TRUE(GenericDeserialize<ProtoBufferReader>(&buffer, &parsed).ok());
  EXPECT_EQ(parsed.ByteSizeLong(), 0u);
}

// A stream that has half of the memory that is asked for.
class ShortWriter : public ProtoBufferWriter {
 public:
  ShortWriter(ByteBuffer* buffer, int block_size, int total_size)
      : ProtoBufferWriter(buffer, block_size, total_size / 2) {}
};

TEST(GenericSerializeTest, AWriterWithoutMemoryIsAnError) {
  ByteBuffer buffer;
  bool own_buffer = false;
  EXPECT_EQ(
      GenericSerialize<ShortWriter>(LargeRequest(1000), &buffer, &own_buffer)
          .error_code(),
      StatusCode::INTERNAL);
}

TEST(GenericDeserializeTest, Errors) {
  SayRequest parsed;
  EXPECT_EQ(
      GenericDeserialize<ProtoBufferReader>(nullptr, &parsed).error_code(),
      StatusCode::INTERNAL);
  ByteBuffer buffer;
  EXPECT_EQ(
      GenericDeserialize<ProtoBufferReader>(&buffer, &parsed).error_code(),
      StatusCode::INTERNAL);
  buffer = InPieces("\xff\xff\xff", 2);
  const Status status = GenericDeserialize<ProtoBufferReader>(&buffer, &parsed);
  EXPECT_EQ(status.error_code(), StatusCode::INTERNAL);
  EXPECT_NE(status.error_message().find("rpc.testing.SayRequest"),
            std::string::npos);
  EXPECT_FALSE(buffer.Valid());
}

}  // namespace
}  // namespace rpc
