// Goal: two sides that fit together learn each other's limits; two that do not
// learn why.
// Method: round trips, padding, and one bad handshake for each rule.
#include "rdma_transport/handshake.h"

#include <random>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rdma_transport/provider/provider.h"

namespace rdma {
namespace {

using ::testing::HasSubstr;

Handshake Good() {
  Handshake handshake;
  handshake.features = 0x0a0b;
  handshake.receive_buffer_bytes = 10240;
  handshake.initial_credits = 8;
  handshake.max_message_bytes = 0x1112131415161718;
  handshake.max_attachment_bytes = UINT64_MAX;
  handshake.max_calls = 65536;
  return handshake;
}

absl::StatusOr<Handshake> Decode(const std::string& private_data) {
  return DecodeHandshake(private_data, "server", "client");
}

absl::StatusCode CodeOf(const std::string& private_data) {
  return Decode(private_data).status().code();
}

TEST(HandshakeTest, ArrivesAsItWasSent) {
  const auto decoded = Decode(EncodeHandshake(Good()));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->version, kProtocolVersion);
  EXPECT_EQ(decoded->features, 0x0a0b);
  EXPECT_EQ(decoded->receive_buffer_bytes, 10240u);
  EXPECT_EQ(decoded->initial_credits, 8);
  EXPECT_EQ(decoded->max_message_bytes, 0x1112131415161718u);
  EXPECT_EQ(decoded->max_attachment_bytes, UINT64_MAX);
  EXPECT_EQ(decoded->max_calls, 65536u);
}

TEST(HandshakeTest, HasTheDocumentedBytes) {
  const std::string bytes = EncodeHandshake(Good());
  ASSERT_EQ(bytes.size(), kHandshakeBytes);
  EXPECT_EQ(bytes.substr(0, 8), std::string("VRBN\x01\x00\x0b\x0a", 8));
  EXPECT_EQ(bytes.substr(8, 8), std::string("\x00\x28\0\0\x08\0\0\0", 8));
  EXPECT_EQ(bytes.substr(16, 8), "\x18\x17\x16\x15\x14\x13\x12\x11");
  EXPECT_EQ(bytes.substr(24, 8), std::string(8, '\xff'));
  EXPECT_EQ(bytes.substr(32, 8), std::string("\0\0\1\0\0\0\0\0", 8));
}

// A frame is copied in one go on the driver: not a gigabyte, whoever asks.
TEST(HandshakeTest, ALargeReceiveBufferIsNotAReasonForLargeFrames) {
  Handshake handshake = Good();
  for (const uint32_t bytes :
       {kMaxFrameBytes, kMaxFrameBytes + 1, 1u << 30, UINT32_MAX}) {
    handshake.receive_buffer_bytes = bytes;
    const auto decoded = Decode(EncodeHandshake(handshake));
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->receive_buffer_bytes, kMaxFrameBytes);
  }
}

TEST(HandshakeTest, FitsThePrivateDataOfBothDirections) {
  EXPECT_LE(kHandshakeBytes, kMaxConnectPrivateData);
  EXPECT_LE(kHandshakeBytes, kMaxAcceptPrivateData);
}

TEST(HandshakeTest, PaddingIsIgnored) {
  std::string padded = EncodeHandshake(Good());
  padded.resize(kMaxAcceptPrivateData, '\0');
  EXPECT_TRUE(Decode(padded).ok());
  padded.back() = 'x';
  EXPECT_TRUE(Decode(padded).ok());
}

TEST(HandshakeTest, CutAnywhereItIsRefused) {
  const std::string whole = EncodeHandshake(Good());
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(CodeOf(whole.substr(0, size)), absl::StatusCode::kInvalidArgument)
        << size << " bytes";
  }
}

TEST(HandshakeTest, AnotherProtocolIsRecognised) {
  for (const std::string& stranger :
       {std::string(), std::string(40, '\0'), std::string("GET / HTTP/1.1\r\n"),
        "vrbn" + EncodeHandshake(Good()).substr(4)}) {
    const auto decoded = Decode(stranger);
    EXPECT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(decoded.status().message()),
                HasSubstr("does not speak Verbena"));
  }
}

TEST(HandshakeTest, AnotherVersionIsNamedEvenWhereTheRestIsUnknown) {
  for (const int version : {0, 2, 0xffff}) {
    Handshake other = Good();
    other.version = static_cast<uint16_t>(version);
    for (const size_t size : {size_t{8}, kHandshakeBytes}) {
      const auto decoded = Decode(EncodeHandshake(other).substr(0, size));
      EXPECT_EQ(decoded.status().code(), absl::StatusCode::kFailedPrecondition);
      const std::string text(decoded.status().message());
      EXPECT_THAT(text, HasSubstr(std::to_string(version)));
      EXPECT_THAT(text, HasSubstr(std::to_string(kProtocolVersion)));
      EXPECT_THAT(text, HasSubstr("client"));
      EXPECT_THAT(text, HasSubstr("server"));
    }
  }
}

TEST(HandshakeTest, TextsFitARejection) {
  Handshake other = Good();
  other.version = 0xffff;
  Handshake small = Good();
  small.initial_credits = 0;
  for (const std::string& bad :
       {std::string("x"), EncodeHandshake(other), EncodeHandshake(small),
        EncodeHandshake(Good()).substr(0, 20)}) {
    EXPECT_LE(Decode(bad).status().message().size(), kMaxRejectPrivateData);
  }
}

TEST(HandshakeTest, LimitsThatNobodyCanWorkWithAreRefused) {
  const auto code_with = [](void (*change)(Handshake&)) {
    Handshake handshake = Good();
    change(handshake);
    return CodeOf(EncodeHandshake(handshake));
  };
  constexpr auto kBad = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code_with([](Handshake& h) {
              h.receive_buffer_bytes = kMinReceiveBufferBytes - 1;
            }),
            kBad);
  EXPECT_EQ(code_with([](Handshake& h) {
              h.initial_credits = kMinInitialCredits - 1;
            }),
            kBad);
  EXPECT_EQ(code_with([](Handshake& h) { h.max_calls = 0; }), kBad);
  EXPECT_EQ(code_with([](Handshake& h) {
              h.receive_buffer_bytes = kMinReceiveBufferBytes;
              h.initial_credits = kMinInitialCredits;
              h.max_calls = 1;
              h.max_message_bytes = 0;
              h.max_attachment_bytes = 0;
            }),
            absl::StatusCode::kOk);
}

TEST(HandshakeTest, RandomBytesNeverDoHarm) {
  std::mt19937 random(1);
  for (int i = 0; i < 100'000; ++i) {
    std::string bytes(random() % 64, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    if (bytes.size() >= 6 && i % 2 == 0) {
      bytes.replace(0, 6, std::string("VRBN\x01\x00", 6));
    }
    Decode(bytes).status().IgnoreError();
  }
}

}  // namespace
}  // namespace rdma
