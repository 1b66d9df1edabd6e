// Goal: what a writer says is written is written for good, for messages of any
// shape; and one that is not what it was measured as fails. Method: each time
// that something is said to be written it is compared with the message
// serialized in one go.
#include "rpc/internal/message_in_parts.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "google/protobuf/descriptor.pb.h"
#include "gtest/gtest.h"
#include "rpc/internal/message_codec.h"
#include "tests/rpc/echo.pb.h"

namespace rpc::internal {
namespace {

using testing::SayRequest;

class WatchedMessage final : public GrowingMessage {
 public:
  WatchedMessage(const std::byte* memory, std::string expected)
      : memory_(memory), expected_(std::move(expected)) {}

  void SetWritten(uint64_t bytes) override {
    ++parts;
    ASSERT_GT(bytes, written);
    ASSERT_LE(bytes, expected_.size());
    written = bytes;
    if (!compares) return;
    EXPECT_EQ(std::memcmp(memory_, expected_.data(), bytes), 0)
        << "of the first " << bytes;
  }
  void SetAllWritten(NextWait) override { SetWritten(expected_.size()); }
  void Fail(const absl::Status& why) override { failure = why; }

  bool complete() const { return written == expected_.size(); }

  bool compares = true;
  int parts = 0;
  uint64_t written = 0;
  absl::Status failure;

 private:
  const std::byte* const memory_;
  const std::string expected_;
};

// EncodeMessage's allocator, whose one message is watched.
struct WatchingMemory {
  absl::StatusOr<Buffer> AllocateBuffer(size_t bytes) {
    Buffer buffer = Buffer::FromHeap(bytes);
    memory = buffer.data();
    return buffer;
  }
  std::shared_ptr<GrowingMessage> Grow(size_t) {
    return growing = std::make_shared<WatchedMessage>(memory, expected);
  }

  std::string expected;
  const std::byte* memory = nullptr;
  std::shared_ptr<WatchedMessage> growing;
};

class MessageInPartsTest : public ::testing::Test {
 protected:
  // False: it is written whole.
  bool Encode(const google::protobuf::MessageLite& message) {
    memory_.expected = message.SerializeAsString();
    Limits limits;
    limits.max_message_bytes = UINT64_MAX;
    Status status;
    EXPECT_TRUE(EncodeMessage(message, memory_,
                              EncodeLimits(limits, UINT64_MAX), scratch_,
                              frame_, &status))
        << status.error_message();
    return frame_.growing != nullptr;
  }
  void EncodeAndWrite(const google::protobuf::MessageLite& message) {
    ASSERT_TRUE(Encode(message));
    MessageInParts(frame_).Write(message, NextWait::kUnknown);
    EXPECT_TRUE(growing().complete());
    EXPECT_TRUE(growing().failure.ok()) << growing().failure;
    EXPECT_EQ(frame_.message.ToString(), memory_.expected);
  }
  WatchedMessage& growing() { return *memory_.growing; }

  WatchingMemory memory_;
  MessageScratch scratch_;
  OutgoingFrame frame_;
};

TEST_F(MessageInPartsTest, SmallerOnesAreWrittenWhole) {
  SayRequest message;
  message.set_payload(std::string(kFewestBytesInParts - 10, 'p'));
  EXPECT_FALSE(Encode(message));
  EXPECT_EQ(frame_.message.ToString(), memory_.expected);
}

TEST_F(MessageInPartsTest, OneLongField) {
  for (const size_t bytes :
       {kFewestBytesInParts, kFewestBytesInParts + 1, (size_t{7} << 20) - 7,
        size_t{8} << 20, size_t{33} << 20}) {
    SCOPED_TRACE(bytes);
    SayRequest message;
    std::string& payload = *message.mutable_payload();
    for (size_t i = 0; i < bytes; ++i) payload += static_cast<char>(i * i >> 7);
    frame_ = OutgoingFrame();
    EncodeAndWrite(message);
    EXPECT_GE(growing().parts, 4);
    EXPECT_LE(growing().parts, 17);
  }
}

TEST_F(MessageInPartsTest, FieldsOnEitherSideOfEachBoundary) {
  for (int shift = 0; shift < 20; ++shift) {
    SCOPED_TRACE(shift);
    SayRequest message;
    message.set_text(std::string(static_cast<size_t>(100 + shift), 't'));
    for (int64_t i = 0; i < 1'600'000; ++i) message.add_numbers(i << (i % 50));
    message.set_status_message("the last one");
    frame_ = OutgoingFrame();
    EncodeAndWrite(message);
  }
}

TEST_F(MessageInPartsTest, ManySmallMessagesInOneAnother) {
  google::protobuf::FileDescriptorProto file;
  for (int i = 0; i < 130'000; ++i) {
    auto* const type = file.add_message_type();
    type->set_name(std::string(static_cast<size_t>(i % 40), 'n'));
    auto* const field = type->add_field();
    field->set_number(i);
    field->set_name("field");
    type->add_nested_type()->add_nested_type()->set_name("innermost");
  }
  EncodeAndWrite(file);
}

TEST_F(MessageInPartsTest, OneThatHasBecomeLongerFails) {
  SayRequest message;
  message.set_payload(std::string(7 << 20, 'p'));
  ASSERT_TRUE(Encode(message));
  message.mutable_payload()->append(1000, 'x');
  growing().compares = false;  // its length stands in front
  MessageInParts(frame_).Write(message, NextWait::kUnknown);
  EXPECT_EQ(growing().failure.code(), absl::StatusCode::kInternal);
  EXPECT_FALSE(growing().complete());
}

TEST_F(MessageInPartsTest, OneThatHasBecomeShorterFails) {
  SayRequest message;
  message.set_payload(std::string(7 << 20, 'p'));
  ASSERT_TRUE(Encode(message));
  message.mutable_payload()->resize(6 << 20);
  growing().compares = false;  // its length stands in front
  MessageInParts(frame_).Write(message, NextWait::kUnknown);
  EXPECT_EQ(growing().failure.code(), absl::StatusCode::kInternal);
  EXPECT_FALSE(growing().complete());
}

}  // namespace
}  // namespace rpc::internal
