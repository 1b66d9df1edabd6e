// Goal: no bytes of a peer make DecodeFrame read beyond them, accept what is no
// frame, or lose a byte of what is one.
// Method: random bytes, and legal frames with random damage, by the hundred
// thousand, through CheckDecode; worth most under --config=asan and ubsan. A
// failure prints the seed that repeats it: --test_env=VERBENA_SEED=N.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include "gtest/gtest.h"
#include "rdma_transport/frame.h"
#include "tests/transport/frame_builder.h"
#include "tests/transport/frame_check.h"

namespace rdma {
namespace {

using testing::Bytes;
using testing::CheckDecode;
using testing::MakePayload;

constexpr int kFrames = 200'000;

class FrameRandomTest : public ::testing::Test {
 protected:
  FrameRandomTest() {
    const char* const given = std::getenv("VERBENA_SEED");
    seed_ = given == nullptr ? 20'240'229 : std::strtoul(given, nullptr, 10);
    random_.seed(seed_);
  }

  uint32_t Below(uint32_t bound) {
    return std::uniform_int_distribution<uint32_t>(0, bound - 1)(random_);
  }
  bool OneIn(uint32_t n) { return Below(n) == 0; }

  Bytes RandomBytes(size_t size) {
    Bytes bytes(size);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
    return bytes;
  }

  Bytes RandomSegments(size_t count) {
    std::vector<Segment> segments(count);
    for (Segment& segment : segments) {
      segment = {random_() >> 1, 1 + (random_() >> (16 + Below(47))),
                 static_cast<uint32_t>(random_())};
    }
    return testing::ToBytes(segments);
  }

  // Mostly legal.
  uint32_t RandomFrame(Bytes* payload) {
    FrameFields fields;
    fields.kind = static_cast<FrameKind>(1 + Below(kMaxFrameKind));
    fields.flags = static_cast<uint8_t>(random_());
    const bool open = fields.kind == FrameKind::kOpen;
    const bool call = open || fields.kind == FrameKind::kData;
    if (!OneIn(16)) {
      if (!call) fields.flags &= kWantCredits | kNotRun;
      if (!open) fields.flags &= static_cast<uint8_t>(~kMethodDefinition);
      if ((fields.flags & kMessageOffer) != 0) fields.flags |= kHasMessage;
      if (call && (fields.flags & kMessageOffer) == 0) {
        fields.flags &= static_cast<uint8_t>(~kInParts);
      }
    }
    fields.slot = Below(kMaxSlot + 1);
    fields.call_sequence = static_cast<uint32_t>(random_());
    fields.credits = static_cast<uint16_t>(random_());
    fields.detail = static_cast<uint32_t>(random_());
    fields.timeout_us = random_();
    const std::string path(1 + Below(40), 'p');
    fields.method_path = path;
    const Bytes header = RandomBytes(Below(40));
    fields.header_bytes = static_cast<uint16_t>(header.size());
    Bytes message, attachment;
    if (fields.kind == FrameKind::kPart) {
      message = RandomSegments(1 + Below(kMaxSegments));
      fields.message_bytes = static_cast<uint32_t>(message.size());
    } else if (call && (fields.flags & kInParts) != 0 &&
               (fields.flags & kMessageOffer) != 0) {
      fields.message_bytes = Below(kMaxSegments + 1);
      message = RandomSegments(fields.message_bytes);
      const Bytes total = testing::TotalBytes(1 + (random_() >> 16));
      message.insert(message.begin(), total.begin(), total.end());
    } else if ((fields.flags & kMessageOffer) != 0) {
      fields.message_bytes = 1 + Below(kMaxSegments);
      message = RandomSegments(fields.message_bytes);
    } else if ((fields.flags & kHasMessage) != 0) {
      message = RandomBytes(Below(100));
      fields.message_bytes = static_cast<uint32_t>(message.size());
    }
    if ((fields.flags & kAttachmentOffer) != 0) {
      attachment = RandomSegments(1 + Below(kMaxSegments));
    } else if (call) {
      attachment = RandomBytes(Below(100));
    }
    *payload = MakePayload(fields, header, message, attachment);
    return EncodeTag(fields);
  }

  void Damage(uint32_t* tag, Bytes* payload) {
    switch (Below(6)) {
      case 0:
        *tag ^= 1u << Below(32);
        return;
      case 1:
        payload->resize(Below(static_cast<uint32_t>(payload->size()) + 1));
        return;
      case 2:
        payload->resize(payload->size() + Below(60));
        return;
      default: {
        if (payload->empty()) return;
        const size_t at = Below(static_cast<uint32_t>(
            std::min<size_t>(payload->size(), OneIn(2) ? 40 : 4096)));
        (*payload)[at] =
            OneIn(2) ? std::byte{0xff} : static_cast<std::byte>(random_());
      }
    }
  }

  uint64_t seed_;
  std::mt19937_64 random_;
};

TEST_F(FrameRandomTest, RandomBytesAreHandledSafely) {
  for (int i = 0; i < kFrames; ++i) {
    // A legal kind gets further.
    const uint32_t tag = (1 + Below(kMaxFrameKind)) << 28 |
                         (static_cast<uint32_t>(random_()) >> 4);
    bool accepted;
    const char* const wrong =
        CheckDecode(tag, RandomBytes(Below(80)), &accepted);
    ASSERT_EQ(wrong, nullptr) << "VERBENA_SEED=" << seed_ << ", frame " << i;
  }
}

TEST_F(FrameRandomTest, DamagedFramesAreHandledSafely) {
  int accepted_count = 0;
  for (int i = 0; i < kFrames; ++i) {
    Bytes payload;
    uint32_t tag = RandomFrame(&payload);
    for (uint32_t times = Below(4); times > 0; --times) Damage(&tag, &payload);
    bool accepted;
    const char* const wrong = CheckDecode(tag, payload, &accepted);
    ASSERT_EQ(wrong, nullptr) << "VERBENA_SEED=" << seed_ << ", frame " << i;
    accepted_count += accepted;
  }
  // Both paths were taken, or this test shows nothing.
  EXPECT_GT(accepted_count, kFrames / 10);
  EXPECT_LT(accepted_count, kFrames * 9 / 10);
}

}  // namespace
}  // namespace rdma
