#include "rpc/internal/message_codec.h"

#include <climits>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "gtest/gtest.h"
#include "rpc/internal/chain_input_stream.h"
#include "tests/rpc/echo.pb.h"
#include "tests/rpc/pieces_that_come.h"

namespace rpc::internal {
namespace {

using testing::PiecesThatCome;
using testing::SayRequest;

// Gives heap memory, or nothing.
struct FakeTransport {
  absl::StatusOr<Buffer> AllocateBuffer(size_t bytes) {
    ++allocations;
    if (empty) return absl::ResourceExhaustedError("no more");
    Buffer buffer = Buffer::FromHeap(bytes + spare_bytes);
    buffer.remove_suffix(spare_bytes);
    return buffer;
  }
  bool empty = false;
  size_t spare_bytes = 0;  // behind each buffer
  int allocations = 0;
};

constexpr Limits kLimits = {.max_header_bytes = 1024,
                            .copy_message_bytes = 100,
                            .max_message_bytes = 10000,
                            .max_attachment_bytes = 1000};

class EncodeTest : public ::testing::Test {
 protected:
  // A message of `bytes` bytes.
  Status Encode(size_t bytes, uint64_t max_bytes = UINT64_MAX) {
    SayRequest message;
    message.set_payload(std::string(bytes < 130 ? bytes - 2 : bytes - 3, 'p'));
    EXPECT_EQ(message.ByteSizeLong(), bytes);
    expected_ = message.SerializeAsString();
    Status status;
    const bool encoded =
        EncodeMessage(message, transport_, EncodeLimits(kLimits, max_bytes),
                      scratch_, frame_, &status);
    EXPECT_EQ(encoded, status.ok());
    return status;
  }

  FakeTransport transport_;
  MessageScratch scratch_;
  OutgoingFrame frame_;
  std::string expected_;
};

TEST_F(EncodeTest, SmallOnesGoByScratchMemory) {
  ASSERT_TRUE(Encode(100).ok());
  EXPECT_TRUE(frame_.has_message);
  EXPECT_TRUE(frame_.message.empty());
  EXPECT_EQ(frame_.small_message.data(), scratch_.message());
  EXPECT_EQ(
      std::string(reinterpret_cast<const char*>(frame_.small_message.data()),
                  frame_.small_message.size()),
      expected_);
  EXPECT_EQ(transport_.allocations, 0);
}

TEST_F(EncodeTest, LargerOnesGoByTheTransportsMemory) {
  ASSERT_TRUE(Encode(101).ok());
  EXPECT_TRUE(frame_.small_message.empty());
  EXPECT_EQ(frame_.message.ToString(), expected_);
  EXPECT_TRUE(frame_.message.contiguous());
  EXPECT_EQ(transport_.allocations, 1);
}

// Written by the functions that are given, with all the room there is.
TEST_F(EncodeTest, LargerOnesAreFilledByTheirTypesFunctions) {
  static size_t filled_bytes;
  static size_t filled_capacity;
  filled_bytes = filled_capacity = 0;
  MessageFunctions functions = kProtobufsOwn;
  functions.fill = [](const google::protobuf::MessageLite& message, size_t size,
                      uint8_t* target, size_t capacity) {
    filled_bytes = size;
    filled_capacity = capacity;
    return kProtobufsOwn.fill(message, size, target, capacity);
  };
  transport_.spare_bytes = 40;
  SayRequest message;
  message.set_payload(std::string(200, 'p'));
  Status status;
  ASSERT_TRUE(EncodeMessage(message, transport_,
                            EncodeLimits(kLimits, UINT64_MAX), scratch_, frame_,
                            &status, functions));
  EXPECT_EQ(frame_.message.ToString(), message.SerializeAsString());
  EXPECT_EQ(filled_bytes, frame_.message.size());
  EXPECT_EQ(filled_capacity, filled_bytes + 40);
}

TEST_F(EncodeTest, NoMemoryNamesSizeAndCause) {
  transport_.empty = true;
  const Status status = Encode(101);
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(status.error_message().find("101"), std::string::npos);
  EXPECT_NE(status.error_message().find("no more"), std::string::npos);
}

TEST_F(EncodeTest, Limits) {
  EXPECT_TRUE(Encode(200, 200).ok());
  const Status mine = Encode(201, 200);
  EXPECT_EQ(mine.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(mine.error_message().find("201 vs. 200"), std::string::npos);
  frame_ = OutgoingFrame();
  const Status transports = Encode(10001);
  EXPECT_EQ(transports.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(transports.error_message().find("10001 vs. 10000"),
            std::string::npos);
}

Status Decode(const BufferChain& chain, SayRequest* message) {
  Status status;
  const bool decoded = DecodeMessage(chain, message, &status);
  EXPECT_EQ(decoded, status.ok());
  return status;
}

BufferChain InPieces(const std::string& bytes, size_t piece) {
  BufferChain chain;
  for (size_t i = 0; i < bytes.size(); i += piece) {
    chain.Append(Buffer::CopyOf(std::string_view(bytes).substr(i, piece)));
  }
  return chain;
}

TEST(DecodeTest, PiecesOfEverySize) {
  SayRequest message;
  message.set_text("some text that spans pieces");
  for (int i = 0; i < 50; ++i) message.add_numbers(i * 1000003);
  const std::string bytes = message.SerializeAsString();
  for (size_t piece = 1; piece <= bytes.size(); ++piece) {
    SayRequest parsed;
    parsed.set_status_message("what was there before is gone");
    ASSERT_TRUE(Decode(InPieces(bytes, piece), &parsed).ok()) << piece;
    EXPECT_EQ(parsed.SerializeAsString(), bytes);
  }
}

TEST(DecodeTest, EmptyChainIsAnEmptyMessage) {
  SayRequest parsed;
  parsed.set_text("before");
  ASSERT_TRUE(Decode(BufferChain(), &parsed).ok());
  EXPECT_EQ(parsed.text(), "");
}

TEST(DecodeTest, FailureNamesTheType) {
  for (const size_t piece : {1u, 100u}) {
    SayRequest parsed;
    const Status status = Decode(InPieces("\xff\xff\xff", piece), &parsed);
    EXPECT_EQ(status.error_code(), StatusCode::INTERNAL);
    EXPECT_NE(status.error_message().find("rpc.testing.SayRequest"),
              std::string::npos);
  }
}

// A block that only claims a size: what is refused is not read.
class HugeBlock final : public BufferBlock {
 public:
  HugeBlock() : BufferBlock(nullptr, SIZE_MAX, nullptr) {}

 private:
  void Recycle() override { delete this; }
};

TEST(DecodeTest, BeyondProtobufsLimitIsRefused) {
  BufferChain chain(Buffer(new HugeBlock, nullptr, size_t{INT_MAX} + 1));
  SayRequest parsed;
  const Status status = Decode(chain, &parsed);
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(status.error_message().find("2147483648 vs. 2147483647"),
            std::string::npos)
      << status;
}

std::string LongMessage() {
  SayRequest message;
  message.set_text("some text that spans pieces");
  for (int i = 0; i < 50; ++i) message.add_numbers(i * 1000003);
  message.set_payload(std::string(300, 'p'));
  return message.SerializeAsString();
}

TEST(DecodeArrivingTest, PiecesOfEverySize) {
  const std::string bytes = LongMessage();
  for (size_t piece = 1; piece <= bytes.size(); ++piece) {
    PiecesThatCome arriving(bytes, piece, bytes.size());
    SayRequest parsed;
    parsed.set_status_message("what was there before is gone");
    Status error;
    ASSERT_EQ(DecodeArriving(arriving, &parsed, &error), Arrival::kParsed)
        << piece;
    EXPECT_EQ(parsed.SerializeAsString(), bytes);
    EXPECT_TRUE(arriving.empty());
  }
}

// Some of what comes is a message by itself.
TEST(DecodeArrivingTest, OneThatIsCutOffIsNone) {
  const std::string bytes = LongMessage();
  for (size_t came = 0; came < bytes.size(); ++came) {
    for (const size_t piece : {7u, 1000u}) {
      PiecesThatCome arriving(std::string_view(bytes).substr(0, came), piece,
                              bytes.size());
      SayRequest parsed;
      Status error;
      EXPECT_EQ(DecodeArriving(arriving, &parsed, &error), Arrival::kCutOff)
          << came;
      EXPECT_EQ(error.error_code(), StatusCode::INTERNAL);
    }
  }
}

TEST(DecodeArrivingTest, NoMoreIsAskedForOfWhatIsNoMessage) {
  const std::string bytes(1000, '\xff');
  PiecesThatCome arriving(bytes, 100, bytes.size());
  SayRequest parsed;
  Status error;
  EXPECT_EQ(DecodeArriving(arriving, &parsed, &error), Arrival::kMalformed);
  EXPECT_FALSE(arriving.empty());
  EXPECT_NE(error.error_message().find("1000 bytes as a rpc.testing"),
            std::string::npos)
      << error;
}

TEST(ChainInputStreamTest, BuffersBeyondAnIntComeInParts) {
  auto* const nowhere = reinterpret_cast<std::byte*>(4096);
  BufferChain chain(Buffer(new HugeBlock, nowhere, size_t{INT_MAX} + 10));
  ChainInputStream stream(chain);
  const void* data;
  int size;
  ASSERT_TRUE(stream.Next(&data, &size));
  EXPECT_EQ(size, INT_MAX);
  ASSERT_TRUE(stream.Next(&data, &size));
  EXPECT_EQ(size, 10);
  EXPECT_FALSE(stream.Next(&data, &size));
  EXPECT_EQ(stream.ByteCount(), int64_t{INT_MAX} + 10);
}

TEST(ChainInputStreamTest, BackUpAndSkip) {
  const BufferChain chain = InPieces("abcdefghij", 4);
  ChainInputStream stream(chain);
  const void* data;
  int size;
  ASSERT_TRUE(stream.Next(&data, &size));
  EXPECT_EQ(size, 4);
  stream.BackUp(3);
  EXPECT_EQ(stream.ByteCount(), 1);
  ASSERT_TRUE(stream.Skip(4));  // into the second piece
  ASSERT_TRUE(stream.Next(&data, &size));
  EXPECT_EQ(
      std::string(static_cast<const char*>(data), static_cast<size_t>(size)),
      "fgh");
  EXPECT_TRUE(stream.Skip(2));
  EXPECT_FALSE(stream.Skip(1));
  EXPECT_EQ(stream.ByteCount(), 10);
}

}  // namespace
}  // namespace rpc::internal
