// References to messages lead to the object they were made of, whatever its
// type, and serialize it as the type's traits do.
#include "rpc/internal/message_ref.h"

#include <string_view>
#include <type_traits>
#include <utility>

#include "google/protobuf/message.h"
#include "google/protobuf/message_lite.h"
#include "gtest/gtest.h"
#include "rpc/buffer.h"
#include "rpc/byte_buffer.h"
#include "rpc/slice.h"
#include "tests/rpc/echo.pb.h"
#include "tests/rpc/own_type.h"

namespace rpc::internal {
namespace {

using testing::Point;
using testing::SayRequest;

static_assert(sizeof(ConstMessageRef) == 2 * sizeof(void*));
static_assert(sizeof(MessageRef) == 2 * sizeof(void*));
static_assert(std::is_trivially_copyable_v<ConstMessageRef>);
static_assert(std::is_trivially_copyable_v<MessageRef>);

// What converts is what can be sent, and received into.
struct Unknown {};
template <class T>
constexpr bool BothWays() {
  return std::is_convertible_v<const T&, ConstMessageRef> &&
         std::is_convertible_v<T*, MessageRef>;
}
static_assert(BothWays<SayRequest>());
static_assert(BothWays<google::protobuf::Message>());
static_assert(BothWays<google::protobuf::MessageLite>());
static_assert(BothWays<ByteBuffer>());
static_assert(BothWays<Point>());
static_assert(!std::is_convertible_v<const Unknown&, ConstMessageRef>);
static_assert(!std::is_convertible_v<Unknown*, MessageRef>);
static_assert(!std::is_convertible_v<const SayRequest*, MessageRef>);
static_assert(!std::is_convertible_v<const Point*, MessageRef>);

// As the runtime takes them.
const google::protobuf::MessageLite* LiteOf(ConstMessageRef message) {
  return message.lite();
}
google::protobuf::MessageLite* LiteOf(MessageRef message) {
  return message.lite();
}
Status Deserialize(std::string_view bytes, MessageRef message) {
  BufferChain chain(Buffer::CopyOf(bytes));
  Status status = message.Deserialize(std::move(chain));
  EXPECT_TRUE(chain.empty());  // NOLINT(bugprone-use-after-move)
  return status;
}

TEST(MessageRefTest, ProtobufMessagesAreLite) {
  SayRequest message;
  EXPECT_EQ(LiteOf(message), &message);
  EXPECT_EQ(LiteOf(&message), &message);
  google::protobuf::MessageLite& base = message;
  EXPECT_EQ(LiteOf(base), &message);
  EXPECT_EQ(LiteOf(&base), &message);
}

TEST(MessageRefTest, OthersAreNotLite) {
  Point point;
  ByteBuffer bytes;
  EXPECT_EQ(LiteOf(point), nullptr);
  EXPECT_EQ(LiteOf(&point), nullptr);
  EXPECT_EQ(LiteOf(bytes), nullptr);
  EXPECT_EQ(LiteOf(&bytes), nullptr);
  EXPECT_TRUE(ConstMessageRef(point).has_message());
  EXPECT_TRUE(MessageRef(&point).has_message());
}

TEST(MessageRefTest, OwnTypeGoesByItsTraits) {
  BufferChain chain(Buffer::CopyOf("what was there before"));
  ASSERT_TRUE(ConstMessageRef(Point{12, -3}).Serialize(&chain).ok());
  EXPECT_EQ(chain.ToString(), "12,-3");
  Point received;
  ASSERT_TRUE(MessageRef(&received).Deserialize(std::move(chain)).ok());
  EXPECT_EQ(received.x, 12);
  EXPECT_EQ(received.y, -3);
}

TEST(MessageRefTest, TheTraitsErrorIsTheResult) {
  BufferChain chain(Buffer::CopyOf("before"));
  const Status serialized = ConstMessageRef(Point{-1, 0}).Serialize(&chain);
  EXPECT_EQ(serialized.error_code(), StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(serialized.error_message(), "x is negative");
  EXPECT_EQ(chain.ToString(), "before");
  Point point;
  const Status parsed = Deserialize("1;2", &point);
  EXPECT_EQ(parsed.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(parsed.error_message(), "not a point");
}

TEST(MessageRefTest, BytesAreSharedBothWays) {
  const Slice slice(std::string("some bytes"));
  const ByteBuffer sent(&slice, 1);
  BufferChain chain;
  ASSERT_TRUE(ConstMessageRef(sent).Serialize(&chain).ok());
  ASSERT_EQ(chain.size(), slice.size());
  EXPECT_EQ(chain.buffers()[0].data(), slice.buffer().data());
  ByteBuffer received;
  ASSERT_TRUE(MessageRef(&received).Deserialize(std::move(chain)).ok());
  ASSERT_EQ(received.Length(), slice.size());
  EXPECT_EQ(received.chain().buffers()[0].data(), slice.buffer().data());
}

TEST(MessageRefTest, EmptyMessages) {
  for (const ByteBuffer& sent : {ByteBuffer(nullptr, 0), ByteBuffer()}) {
    BufferChain chain(Buffer::CopyOf("before"));
    ASSERT_TRUE(ConstMessageRef(sent).Serialize(&chain).ok());
    EXPECT_TRUE(chain.empty());
    ByteBuffer received;
    ASSERT_TRUE(MessageRef(&received).Deserialize(std::move(chain)).ok());
    EXPECT_TRUE(received.Valid());
    EXPECT_EQ(received.Length(), 0u);
  }
}

// The runtime has a shorter way for them; this one works all the same.
TEST(MessageRefTest, ProtobufMessages) {
  SayRequest message;
  message.set_text("hello");
  BufferChain chain;
  ASSERT_TRUE(ConstMessageRef(message).Serialize(&chain).ok());
  EXPECT_EQ(chain.ToString(), message.SerializeAsString());
  SayRequest received;
  ASSERT_TRUE(MessageRef(&received).Deserialize(std::move(chain)).ok());
  EXPECT_EQ(received.text(), "hello");
  EXPECT_EQ(Deserialize("\xff\xff", &received).error_code(),
            StatusCode::INTERNAL);
}

TEST(MessageRefTest, NoMessageIsAnError) {
  EXPECT_FALSE(ConstMessageRef().has_message());
  EXPECT_FALSE(MessageRef().has_message());
  EXPECT_EQ(LiteOf(ConstMessageRef()), nullptr);
  EXPECT_EQ(LiteOf(MessageRef()), nullptr);
  BufferChain chain;
  EXPECT_EQ(ConstMessageRef().Serialize(&chain).error_code(),
            StatusCode::INTERNAL);
  EXPECT_EQ(Deserialize("bytes", MessageRef()).error_code(),
            StatusCode::INTERNAL);
}

TEST(MessageRefTest, CopiesReferToTheSameMessage) {
  Point point{1, 2};
  const MessageRef first(&point);
  MessageRef second;
  second = first;
  ASSERT_TRUE(Deserialize("3,4", second).ok());
  EXPECT_EQ(point.x, 3);
  ConstMessageRef sent(point);
  ConstMessageRef copy(sent);
  BufferChain chain;
  ASSERT_TRUE(copy.Serialize(&chain).ok());
  EXPECT_EQ(chain.ToString(), "3,4");
}

}  // namespace
}  // namespace rpc::internal
