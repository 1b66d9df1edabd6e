// ByteBuffer has gRPC's semantics, and shares memory where gRPC's does.
#include "rpc/byte_buffer.h"

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "rpc/buffer.h"
#include "rpc/slice.h"

namespace rpc {
namespace {

std::string Text(const Slice& slice) {
  return std::string(slice.begin(), slice.end());
}

ByteBuffer Of(const std::vector<Slice>& slices) {
  return ByteBuffer(slices.data(), slices.size());
}

const Slice& Hello() {
  static const Slice& slice = *new Slice(std::string("hello "));
  return slice;
}
const Slice& World() {
  static const Slice& slice = *new Slice(std::string("world"));
  return slice;
}

TEST(ByteBufferTest, ByDefaultNotValid) {
  ByteBuffer buffer;
  EXPECT_FALSE(buffer.Valid());
  EXPECT_EQ(buffer.Length(), 0u);
  Slice slice(std::string("before"));
  std::vector<Slice> slices = {slice};
  EXPECT_EQ(buffer.TrySingleSlice(&slice).error_code(),
            StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(buffer.DumpToSingleSlice(&slice).error_code(),
            StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(Text(slice), "before");
  EXPECT_EQ(buffer.Dump(&slices).error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_TRUE(slices.empty());
}

TEST(ByteBufferTest, OneSliceIsShared) {
  const ByteBuffer buffer = Of({Hello()});
  EXPECT_TRUE(buffer.Valid());
  EXPECT_EQ(buffer.Length(), 6u);
  Slice single;
  ASSERT_TRUE(buffer.TrySingleSlice(&single).ok());
  EXPECT_EQ(single.begin(), Hello().begin());
  Slice dumped;
  ASSERT_TRUE(buffer.DumpToSingleSlice(&dumped).ok());
  EXPECT_EQ(dumped.begin(), Hello().begin());
  EXPECT_EQ(dumped.size(), 6u);
}

TEST(ByteBufferTest, SeveralSlicesAreSharedOneByOne) {
  const ByteBuffer buffer = Of({Hello(), World()});
  EXPECT_EQ(buffer.Length(), 11u);
  std::vector<Slice> slices = {Slice(std::string("before"))};
  ASSERT_TRUE(buffer.Dump(&slices).ok());
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(slices[0].begin(), Hello().begin());
  EXPECT_EQ(slices[1].begin(), World().begin());
}

TEST(ByteBufferTest, SeveralSlicesAreJoinedOnDemandOnly) {
  const ByteBuffer buffer = Of({Hello(), World()});
  Slice slice(std::string("before"));
  const Status status = buffer.TrySingleSlice(&slice);
  EXPECT_EQ(status.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_NE(status.error_message().find("2 slices"), std::string::npos);
  EXPECT_EQ(Text(slice), "before");
  ASSERT_TRUE(buffer.DumpToSingleSlice(&slice).ok());
  EXPECT_EQ(Text(slice), "hello world");
}

TEST(ByteBufferTest, EmptyMessagesAreValid) {
  for (const ByteBuffer& buffer :
       {ByteBuffer(nullptr, 0), Of({Slice()}), Of({Slice(), Slice()}),
        ByteBuffer(BufferChain())}) {
    EXPECT_TRUE(buffer.Valid());
    EXPECT_EQ(buffer.Length(), 0u);
    Slice slice(std::string("before"));
    ASSERT_TRUE(buffer.TrySingleSlice(&slice).ok());
    EXPECT_EQ(slice.size(), 0u);
    slice = Hello();
    ASSERT_TRUE(buffer.DumpToSingleSlice(&slice).ok());
    EXPECT_EQ(slice.size(), 0u);
    std::vector<Slice> slices = {Hello()};
    ASSERT_TRUE(buffer.Dump(&slices).ok());
    EXPECT_TRUE(slices.empty());
  }
}

TEST(ByteBufferTest, SlicesWithoutBytesAreNotKept) {
  const ByteBuffer buffer = Of({Slice(), Hello(), Slice()});
  Slice slice;
  ASSERT_TRUE(buffer.TrySingleSlice(&slice).ok());
  EXPECT_EQ(Text(slice), "hello ");
}

TEST(ByteBufferTest, ClearAndReleaseLetGo) {
  for (void (ByteBuffer::*const end)() :
       {&ByteBuffer::Clear, &ByteBuffer::Release}) {
    const Slice slice(std::string("bytes"));
    ByteBuffer buffer(&slice, 1);
    EXPECT_FALSE(slice.buffer().block()->unique());
    (buffer.*end)();
    EXPECT_TRUE(slice.buffer().block()->unique());
    EXPECT_FALSE(buffer.Valid());
    EXPECT_EQ(buffer.Length(), 0u);
  }
}

TEST(ByteBufferTest, CopiesShareAndLiveOn) {
  ByteBuffer buffer = Of({Hello(), World()});
  ByteBuffer copy = buffer;
  ByteBuffer assigned = Of({World()});
  assigned = buffer;
  assigned.Duplicate();
  buffer.Clear();
  EXPECT_EQ(copy.chain().ToString(), "hello world");
  EXPECT_EQ(assigned.chain().ToString(), "hello world");
  EXPECT_EQ(assigned.chain().buffers()[0].data(), Hello().buffer().data());
  copy = *&copy;
  EXPECT_TRUE(copy.Valid());
  EXPECT_EQ(copy.Length(), 11u);
  copy = ByteBuffer();
  EXPECT_FALSE(copy.Valid());
}

TEST(ByteBufferTest, MovedFromIsNotValid) {
  ByteBuffer buffer = Of({Hello()});
  ByteBuffer moved = std::move(buffer);
  EXPECT_FALSE(buffer.Valid());  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(moved.chain().ToString(), "hello ");
  ByteBuffer assigned = Of({World()});
  assigned = std::move(moved);
  EXPECT_FALSE(moved.Valid());  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(moved.Length(), 0u);
  EXPECT_EQ(assigned.chain().ToString(), "hello ");
}

TEST(ByteBufferTest, SwapChangesValidityToo) {
  ByteBuffer full = Of({Hello()});
  ByteBuffer none;
  full.Swap(&none);
  EXPECT_FALSE(full.Valid());
  EXPECT_EQ(none.chain().ToString(), "hello ");
  none.Swap(&none);
  EXPECT_EQ(none.chain().ToString(), "hello ");
}

TEST(ByteBufferTest, IsAChainWithoutACopy) {
  BufferChain chain(Hello().buffer());
  chain.Append(World().buffer());
  ByteBuffer buffer(std::move(chain));
  EXPECT_TRUE(buffer.Valid());
  EXPECT_EQ(buffer.chain().buffers()[1].data(), World().buffer().data());
  const BufferChain taken = buffer.TakeChain();
  EXPECT_EQ(taken.buffers()[0].data(), Hello().buffer().data());
  EXPECT_EQ(taken.ToString(), "hello world");
  EXPECT_FALSE(buffer.Valid());
  EXPECT_EQ(buffer.Length(), 0u);
}

}  // namespace
}  // namespace rpc
