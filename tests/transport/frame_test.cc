// Goal: what a frame says arrives as it was said, and what is no frame is
// refused, each with its reason.
// Method: round trips of all kinds with all flags against rules written down
// here a second time; then one malformed frame for each rule.
#include "rdma_transport/frame.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/frame_builder.h"

namespace rdma {
namespace {

using testing::Bytes;
using testing::MakePayload;
using testing::ToBytes;

constexpr uint8_t kCallOnly =
    kEnd | kHasMessage | kMessageOffer | kAttachmentOffer;

std::string_view TextOf(absl::Span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool IsCall(FrameKind kind) {
  return kind == FrameKind::kOpen || kind == FrameKind::kData;
}

bool Legal(uint32_t kind, uint8_t flags) {
  if (kind < 1 || kind > 8) return false;
  const bool call = kind == 1 || kind == 2;
  if (!call && (flags & kCallOnly) != 0) return false;
  if (kind != 1 && (flags & kMethodDefinition) != 0) return false;
  if (call && (flags & kInParts) != 0 && (flags & kMessageOffer) == 0) {
    return false;
  }
  return (flags & kMessageOffer) == 0 || (flags & kHasMessage) != 0;
}

// A frame of all parts that its kind and flags allow.
struct Sample {
  FrameFields fields;
  Bytes header;
  Bytes message;
  Bytes attachment;

  uint64_t total = 0;  // of a message in parts

  Bytes payload() const {
    Bytes area = message;
    if (total != 0) {
      const Bytes first = testing::TotalBytes(total);
      area.insert(area.begin(), first.begin(), first.end());
    }
    return MakePayload(fields, header, area, attachment);
  }
  uint32_t tag() const { return EncodeTag(fields); }
};

Sample MakeSample(FrameKind kind, uint8_t flags) {
  Sample sample;
  FrameFields& fields = sample.fields;
  fields.kind = kind;
  fields.flags = flags;
  fields.slot = 0xabcde;
  fields.call_sequence = 0x01020304;
  fields.credits = 0xfedc;
  fields.detail = 0x0a0b0c0d;
  if (kind == FrameKind::kOpen) fields.timeout_us = 0x1112131415161718;
  if ((flags & kMethodDefinition) != 0) fields.method_path = "/kv.Kv/Get";
  sample.header = ToBytes("header");
  fields.header_bytes = static_cast<uint16_t>(sample.header.size());
  if ((flags & kMessageOffer) != 0) {
    sample.message = ToBytes({{0x1000, 10, 1}, {0x2000, 20, 2}});
    fields.message_bytes = 2;
    if (IsCall(kind) && (flags & kInParts) != 0) sample.total = 100;
  } else if (kind == FrameKind::kPart) {
    sample.message = ToBytes({{0x1000, 10, 1}});
    fields.message_bytes = kSegmentBytes;
  } else if ((flags & kHasMessage) != 0) {
    sample.message = ToBytes("the message");
    fields.message_bytes = static_cast<uint32_t>(sample.message.size());
  }
  if ((flags & kAttachmentOffer) != 0) {
    sample.attachment = ToBytes({{0x3000, 30, 3}});
  } else if (IsCall(kind)) {
    sample.attachment = ToBytes("attached");
  }
  return sample;
}

std::string Refusal(uint32_t tag, const Bytes& payload) {
  FrameView view;
  const char* const wrong = DecodeFrame(tag, payload, &view);
  return wrong == nullptr ? "accepted" : wrong;
}

std::string Refusal(const Sample& sample) {
  return Refusal(sample.tag(), sample.payload());
}

TEST(FrameTest, EveryKindWithEveryFlagArrivesAsItWasSentOrIsRefused) {
  for (uint32_t kind = 0; kind < 16; ++kind) {
    for (uint32_t flags = 0; flags < 256; ++flags) {
      SCOPED_TRACE(::testing::Message()
                   << "kind " << kind << " flags " << flags);
      const Sample sample =
          MakeSample(static_cast<FrameKind>(kind), static_cast<uint8_t>(flags));
      const Bytes payload = sample.payload();
      FrameView view;
      const char* const wrong = DecodeFrame(sample.tag(), payload, &view);
      ASSERT_EQ(wrong == nullptr, Legal(kind, static_cast<uint8_t>(flags)))
          << (wrong == nullptr ? "" : wrong);
      if (wrong != nullptr) continue;
      const FrameFields& fields = sample.fields;
      EXPECT_EQ(view.fields.kind, fields.kind);
      EXPECT_EQ(view.fields.flags, fields.flags);
      EXPECT_EQ(view.fields.slot, fields.slot);
      EXPECT_EQ(view.fields.call_sequence, fields.call_sequence);
      EXPECT_EQ(view.fields.credits, fields.credits);
      EXPECT_EQ(view.fields.detail, fields.detail);
      EXPECT_EQ(view.fields.timeout_us, fields.timeout_us);
      EXPECT_EQ(view.fields.method_path, fields.method_path);
      EXPECT_EQ(Bytes(view.header.begin(), view.header.end()), sample.header);
      EXPECT_EQ(Bytes(view.message.begin(), view.message.end()),
                sample.message);
      EXPECT_EQ(Bytes(view.attachment.begin(), view.attachment.end()),
                sample.attachment);
      EXPECT_EQ(view.message_total, sample.total);
    }
  }
}

// The bytes of docs/wire_format.md's example, so that the page cannot drift.
TEST(FrameTest, TheDocumentedExampleIsWhatIsSent) {
  FrameFields fields;
  fields.kind = FrameKind::kOpen;
  fields.flags = kEnd | kHasMessage | kMethodDefinition;
  fields.slot = 5;
  fields.call_sequence = 7;
  fields.credits = 3;
  fields.message_bytes = 2;
  fields.detail = 1;
  fields.timeout_us = 1'000'000;
  fields.method_path = "/a.B/C";
  EXPECT_EQ(EncodeTag(fields), 0x11300005u);
  const Bytes payload = MakePayload(fields, {}, ToBytes("hi"), {});
  const uint8_t expected[] = {0x07, 0,   0,   0,    0x03, 0,   0,    0,    0x02,
                              0,    0,   0,   0x01, 0,    0,   0,    0x40, 0x42,
                              0x0f, 0,   0,   0,    0,    0,   0x06, 0,    '/',
                              'a',  '.', 'B', '/',  'C',  'h', 'i'};
  ASSERT_EQ(payload.size(), sizeof(expected));
  EXPECT_EQ(std::memcmp(payload.data(), expected, sizeof(expected)), 0);
}

TEST(FrameTest, SlotAndCountersKeepTheirExtremes) {
  FrameFields fields;
  fields.kind = FrameKind::kData;
  fields.flags = kHasMessage;
  for (const uint32_t extreme : {0u, 1u, UINT32_MAX}) {
    fields.slot = extreme & kMaxSlot;
    fields.call_sequence = extreme;
    fields.credits = static_cast<uint16_t>(extreme);
    fields.detail = extreme;
    const Bytes payload = MakePayload(fields, {}, {}, {});
    FrameView view;
    ASSERT_EQ(DecodeFrame(EncodeTag(fields), payload, &view), nullptr);
    EXPECT_EQ(view.fields.slot, fields.slot);
    EXPECT_EQ(view.fields.call_sequence, fields.call_sequence);
    EXPECT_EQ(view.fields.credits, fields.credits);
    EXPECT_EQ(view.fields.detail, fields.detail);
    EXPECT_TRUE(view.message.empty());
    EXPECT_TRUE(view.has(kHasMessage)) << "an empty message is a message";
  }
}

TEST(MethodLimitTest, IsOfPathsAndOfTheirBytes) {
  MethodLimit many;
  for (uint32_t i = 0; i < MethodLimit::kMaxMethods; ++i) {
    ASSERT_TRUE(many.HasRoom("/a.B/C"));
    many.Add("/a.B/C");
  }
  EXPECT_FALSE(many.HasRoom("/"));

  MethodLimit large;
  const std::string path(kMaxPathBytes, 'x');
  for (size_t i = 0; i < MethodLimit::kMaxBytes / kMaxPathBytes; ++i) {
    ASSERT_TRUE(large.HasRoom(path));
    large.Add(path);
  }
  EXPECT_FALSE(large.HasRoom("/"));
}

TEST(FrameTest, SegmentsSurviveTheTrip) {
  for (const Segment& segment :
       {Segment{0, 1, 0}, Segment{UINT64_MAX, 1, UINT32_MAX},
        Segment{0x0102030405060708, 0x1112131415161718, 0x21222324}}) {
    std::byte bytes[kSegmentBytes];
    EncodeSegment(segment, bytes);
    EXPECT_EQ(DecodeSegment(bytes), segment);
    EXPECT_EQ(TextOf({bytes + 20, 4}), std::string_view("\0\0\0\0", 4));
  }
}

TEST(FrameTest, ReasonsForFlagsNameTheRule) {
  EXPECT_EQ(Refusal(0, Bytes(64)), "an unknown kind of frame");
  EXPECT_EQ(Refusal(9u << 28, Bytes(64)), "an unknown kind of frame");
  EXPECT_EQ(Refusal(MakeSample(FrameKind::kReset, kEnd)),
            "flags that do not go with the kind");
  EXPECT_EQ(Refusal(MakeSample(FrameKind::kData, kMethodDefinition)),
            "a method definition outside an open");
  EXPECT_EQ(Refusal(MakeSample(FrameKind::kData, kMessageOffer)),
            "an offer of a message without a message");
  EXPECT_EQ(Refusal(MakeSample(FrameKind::kOpen, kHasMessage | kInParts)),
            "a message in parts that is not offered");
}

TEST(FrameTest, AMessageInPartsMayBeginWithNone) {
  Sample sample =
      MakeSample(FrameKind::kOpen, kHasMessage | kMessageOffer | kInParts);
  sample.message.clear();
  sample.fields.message_bytes = 0;
  EXPECT_EQ(Refusal(sample), "accepted");
  sample = MakeSample(FrameKind::kPart, 0);
  EXPECT_EQ(Refusal(sample), "accepted");
  sample.message.clear();
  sample.fields.message_bytes = 0;
  EXPECT_EQ(Refusal(sample), "an offer with a wrong number of segments");
}

TEST(FrameTest, ATotalIsFromOneByteToTheLongestSegment) {
  Sample sample =
      MakeSample(FrameKind::kData, kHasMessage | kMessageOffer | kInParts);
  for (const auto& [total, expected] :
       {std::pair{uint64_t{1}, "accepted"},
        std::pair{uint64_t{1} << 48, "accepted"},
        std::pair{(uint64_t{1} << 48) + 1,
                  "a message in parts of a wrong size"},
        std::pair{UINT64_MAX, "a message in parts of a wrong size"}}) {
    sample.total = total;
    EXPECT_EQ(Refusal(sample), expected) << total;
  }
  const Bytes nothing(kTotalBytes);
  sample.total = 0;
  sample.message.insert(sample.message.begin(), nothing.begin(), nothing.end());
  EXPECT_EQ(Refusal(sample), "a message in parts of a wrong size");
}

TEST(FrameTest, AMessageInPartsTakesAllOfItFromTheWindow) {
  Sample sample =
      MakeSample(FrameKind::kData, kHasMessage | kMessageOffer | kInParts);
  sample.attachment.clear();
  const Bytes payload = sample.payload();
  FrameView view;
  ASSERT_EQ(DecodeFrame(sample.tag(), payload, &view), nullptr);
  EXPECT_EQ(view.WindowBytes(),
            kFrameWindow + static_cast<int64_t>(sample.header.size()) + 100);
}

TEST(FrameTest, BytesOfPartsThatAreNotThereAreRefused) {
  Sample data = MakeSample(FrameKind::kData, 0);
  data.fields.message_bytes = 3;
  EXPECT_EQ(Refusal(data), "the bytes of a message without a message");
  for (const FrameKind kind :
       {FrameKind::kReset, FrameKind::kDone, FrameKind::kCredit,
        FrameKind::kGoAway, FrameKind::kWindow}) {
    Sample control = MakeSample(kind, 0);
    ASSERT_FALSE(IsCall(kind));
    EXPECT_EQ(Refusal(control), "accepted");
    control.attachment = ToBytes("x");
    EXPECT_EQ(Refusal(control), "bytes after a control frame");
  }
}

TEST(FrameTest, AViewThatIsUsedAgainForgetsTheFrameBefore) {
  const Sample open = MakeSample(FrameKind::kOpen, kMethodDefinition);
  const Sample data = MakeSample(FrameKind::kData, 0);
  const Bytes first = open.payload();
  const Bytes second = data.payload();
  FrameView view;
  ASSERT_EQ(DecodeFrame(open.tag(), first, &view), nullptr);
  ASSERT_EQ(DecodeFrame(data.tag(), second, &view), nullptr);
  EXPECT_EQ(view.fields.timeout_us, 0u);
  EXPECT_EQ(view.fields.method_path, "");
}

TEST(FrameTest, AFrameCutAnywhereIsRefused) {
  for (const uint8_t flags :
       {uint8_t{kHasMessage}, uint8_t{kHasMessage | kMethodDefinition},
        uint8_t{kHasMessage | kMessageOffer | kMethodDefinition},
        uint8_t{kHasMessage | kMessageOffer | kInParts}}) {
    Sample sample = MakeSample(FrameKind::kOpen, flags);
    sample.attachment.clear();  // it is what is left, so it can be cut
    const Bytes whole = sample.payload();
    ASSERT_EQ(Refusal(sample.tag(), whole), "accepted");
    for (size_t size = 0; size < whole.size(); ++size) {
      const Bytes cut(whole.begin(),
                      whole.begin() + static_cast<ptrdiff_t>(size));
      EXPECT_NE(Refusal(sample.tag(), cut), "accepted") << size << " bytes";
    }
  }
}

TEST(FrameTest, AnAttachmentIsWhatIsLeft) {
  Sample sample = MakeSample(FrameKind::kData, kHasMessage);
  for (size_t size = 0; size < 3; ++size) {
    sample.attachment.resize(size);
    const Bytes payload = sample.payload();
    FrameView view;
    ASSERT_EQ(DecodeFrame(sample.tag(), payload, &view), nullptr);
    EXPECT_EQ(view.attachment.size(), size);
  }
}

TEST(FrameTest, SizesBeyondThePayloadAreRefused) {
  Sample sample = MakeSample(FrameKind::kData, kHasMessage);
  sample.attachment.clear();
  sample.fields.message_bytes += 1;
  EXPECT_EQ(Refusal(sample), "a message cut short");
  sample.fields.message_bytes = UINT32_MAX;
  EXPECT_EQ(Refusal(sample), "a message cut short");
  sample.fields.header_bytes = UINT16_MAX;
  EXPECT_EQ(Refusal(sample), "a header cut short");
}

TEST(FrameTest, MethodPathsHaveALengthFromOneToTheLimit) {
  Sample sample = MakeSample(FrameKind::kOpen, kMethodDefinition);
  const std::string longest(kMaxPathBytes, 'p');
  sample.fields.method_path = longest;
  EXPECT_EQ(Refusal(sample), "accepted");
  const std::string longer(kMaxPathBytes + 1, 'p');
  sample.fields.method_path = longer;
  EXPECT_EQ(Refusal(sample), "a method path of a wrong length");
  sample.fields.method_path = "";
  EXPECT_EQ(Refusal(sample), "a method path of a wrong length");
}

TEST(FrameTest, OffersHaveFromOneSegmentToTheLimit) {
  const Segment good = {0x1000, 16, 7};
  for (const size_t count :
       {size_t{0}, size_t{1}, kMaxSegments, kMaxSegments + 1}) {
    const Bytes segments = ToBytes(std::vector<Segment>(count, good));
    const bool legal = count >= 1 && count <= kMaxSegments;
    const std::string expected =
        legal ? "accepted" : "an offer with a wrong number of segments";
    Sample message = MakeSample(FrameKind::kData, kHasMessage | kMessageOffer);
    message.message = segments;
    message.fields.message_bytes = static_cast<uint32_t>(count);
    EXPECT_EQ(Refusal(message), expected) << count;
    Sample attachment = MakeSample(FrameKind::kData, kAttachmentOffer);
    attachment.attachment = segments;
    EXPECT_EQ(Refusal(attachment), expected) << count;
  }
}

TEST(FrameTest, AHugeNumberOfSegmentsDoesNotWrapAround) {
  Sample sample = MakeSample(FrameKind::kData, kHasMessage | kMessageOffer);
  // Times 24, these are 8 and 16 in 32 bits.
  for (const uint32_t count : {0x55555556u, 0xaaaaaaabu, UINT32_MAX}) {
    sample.fields.message_bytes = count;
    EXPECT_EQ(Refusal(sample), "a message cut short") << count;
  }
}

TEST(FrameTest, APieceOfASegmentIsRefused) {
  Sample sample = MakeSample(FrameKind::kData, kAttachmentOffer);
  for (size_t size = 1; size < kSegmentBytes; ++size) {
    sample.attachment.resize(size);
    EXPECT_EQ(Refusal(sample), "an offer with a wrong number of segments");
  }
}

TEST(FrameTest, SegmentsThatNobodyCanReadAreRefused) {
  const auto refusal = [](const Segment& segment) {
    Sample sample = MakeSample(FrameKind::kData, kAttachmentOffer);
    sample.attachment = ToBytes({{0x1000, 16, 7}, segment});
    return Refusal(sample);
  };
  constexpr uint64_t kLongest = uint64_t{1} << 48;
  const std::string wrong = "an offered segment of a wrong length";
  EXPECT_EQ(refusal({0x1000, 0, 7}), wrong);
  EXPECT_EQ(refusal({0x1000, kLongest, 7}), "accepted");
  EXPECT_EQ(refusal({0x1000, kLongest + 1, 7}), wrong);
  EXPECT_EQ(refusal({UINT64_MAX - 4, 16, 7}), wrong);
  EXPECT_EQ(refusal({0x1000, UINT64_MAX, 7}), wrong);
}

}  // namespace
}  // namespace rdma
