// Goal: what the server keeps never pins a receive buffer, and large values are
// never copied. Method: chains over blocks whose memory the test knows.
#include "examples/kv/value_placement.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "examples/kv/limits.h"
#include "gtest/gtest.h"
#include "rpc/buffer.h"

namespace kv {
namespace {

// Counts what it gives; fails where it is told to.
class Allocator {
 public:
  absl::StatusOr<rpc::Buffer> Allocate(size_t bytes) {
    if (fail) return absl::ResourceExhaustedError("no registered memory left");
    ++buffers;
    last = rpc::Buffer::FromHeap(bytes);
    return last;
  }

  absl::StatusOr<rpc::BufferChain> Place(rpc::BufferChain attachment) {
    return PlaceAttachedValue(std::move(attachment),
                              [this](size_t bytes) { return Allocate(bytes); });
  }

  bool fail = false;
  int buffers = 0;
  rpc::Buffer last;
};

TEST(ValuePlacementTest, InlineValuesAreCompactCopies) {
  const std::string bytes = "value";
  const rpc::BufferChain kept = PlaceInlineValue(bytes);
  EXPECT_EQ(kept.ToString(), "value");
  EXPECT_EQ(kept.buffers()[0].block()->capacity(), bytes.size());
  EXPECT_TRUE(PlaceInlineValue("").empty());
}

TEST(ValuePlacementTest, LargeAttachmentsStayWhereTheyAre) {
  Allocator allocator;
  for (const size_t bytes : {kKeepInPlaceBytes, kKeepInPlaceBytes * 10}) {
    const rpc::Buffer arrived = rpc::Buffer::FromHeap(bytes);
    const rpc::BufferChain kept = *allocator.Place(rpc::BufferChain(arrived));
    EXPECT_EQ(kept.buffers()[0].data(), arrived.data());
  }
  EXPECT_EQ(allocator.buffers, 0);
}

TEST(ValuePlacementTest, SmallAttachmentsLeaveTheReceiveBuffer) {
  for (const size_t bytes : {size_t{1}, kMaxInlineValueBytes,
                             kMaxInlineValueBytes + 1, kKeepInPlaceBytes - 1}) {
    Allocator allocator;
    rpc::Buffer receive_buffer = rpc::Buffer::FromHeap(kKeepInPlaceBytes);
    std::fill_n(reinterpret_cast<char*>(receive_buffer.mutable_data()), bytes,
                'v');
    const rpc::BufferChain kept =
        *allocator.Place(rpc::BufferChain(receive_buffer.Slice(0, bytes)));
    EXPECT_TRUE(receive_buffer.block()->unique()) << bytes;
    EXPECT_EQ(kept.ToString(), std::string(bytes, 'v'));
    EXPECT_EQ(kept.buffers()[0].block()->capacity(), bytes);
    // Registered memory only for what a Get will attach.
    EXPECT_EQ(allocator.buffers, bytes > kMaxInlineValueBytes ? 1 : 0) << bytes;
  }
}

TEST(ValuePlacementTest, JoinsThePiecesOfASmallAttachment) {
  Allocator allocator;
  rpc::BufferChain pieces(rpc::Buffer::CopyOf(std::string(3000, 'a')));
  pieces.Append(rpc::Buffer::CopyOf(std::string(3000, 'b')));
  const rpc::BufferChain kept = *allocator.Place(pieces);
  EXPECT_TRUE(kept.contiguous());
  EXPECT_EQ(kept.ToString(), std::string(3000, 'a') + std::string(3000, 'b'));
}

TEST(ValuePlacementTest, PassesOnThatThereIsNoMemory) {
  Allocator allocator;
  allocator.fail = true;
  EXPECT_EQ(allocator.Place(rpc::BufferChain(rpc::Buffer::FromHeap(5000)))
                .status()
                .code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace kv
