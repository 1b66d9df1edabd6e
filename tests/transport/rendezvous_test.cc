// Goal: what a peer offers is read whole, each byte once and to its place,
// whatever the segments and the chunks; what this side offers is answered in
// the order made. Method: reads carried out by memcpy, with random segments and
// limits.
#include "rdma_transport/rendezvous.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/connection_side.h"
#include "tests/transport/fake_memory.h"
#include "tests/transport/frame_builder.h"

namespace rdma {
namespace {

using testing::Bytes;
using testing::FakeMemory;
using testing::ToBytes;

constexpr uint64_t kMiB = 1 << 20;

// An offer in a frame, and the frame's bytes.
class OfferFrame {
 public:
  OfferFrame(const std::vector<Segment>& message,
             const std::vector<Segment>& attachment) {
    FrameFields fields;
    fields.kind = FrameKind::kData;
    fields.slot = 3;
    fields.call_sequence = 9;
    if (!message.empty()) {
      fields.flags |= kHasMessage | kMessageOffer;
      fields.message_bytes = static_cast<uint32_t>(message.size());
    }
    if (!attachment.empty()) fields.flags |= kAttachmentOffer;
    payload_ =
        testing::MakePayload(fields, {}, ToBytes(message), ToBytes(attachment));
    EXPECT_EQ(DecodeFrame(EncodeTag(fields), payload_, &view_), nullptr);
  }
  const FrameView& view() const { return view_; }

 private:
  Bytes payload_;
  FrameView view_;
};

// A peer's memory, and segments of it that together are the text.
struct Peer {
  std::vector<std::string> pieces;
  std::vector<Segment> segments;

  void Offer(std::string piece, uint32_t rkey) {
    pieces.push_back(std::move(piece));
    segments.push_back({0, pieces.back().size(), rkey});
  }
  // Once all pieces are there: a string's bytes move with it.
  void FillInAddresses() {
    for (size_t i = 0; i < pieces.size(); ++i) {
      segments[i].address = reinterpret_cast<uint64_t>(pieces[i].data());
    }
  }
  std::string whole() const {
    std::string all;
    for (const std::string& piece : pieces) all += piece;
    return all;
  }
};

void Carry(const ReadChunk& chunk) {
  std::memcpy(chunk.to, reinterpret_cast<const void*>(chunk.remote_address),
              chunk.bytes);
}

MessagesBeingRead being_read;  // of the tests one after the other

TEST(IncomingReadTest, SaysWhatItIsOfBeforeAnythingIsAllocated) {
  const OfferFrame frame({{0x1000, 10, 21}, {0x2000, 20, 22}},
                         {{0x3000, 5, 23}});
  const IncomingRead read(frame.view(), rpc::CallHandle{77}, nullptr,
                          &being_read);
  EXPECT_EQ(read.message_bytes(), 30u);
  EXPECT_EQ(read.attachment_bytes(), 5u);
  EXPECT_EQ(read.key(), (OfferKey{3, 9}));
  EXPECT_EQ(read.call(), rpc::CallHandle{77});
  EXPECT_EQ(read.done_rkey(), 21u);
  EXPECT_FALSE(read.all_issued());
  EXPECT_FALSE(read.finished());
}

TEST(IncomingReadTest, OfAnAttachmentAloneTheFirstKeyIsTheAttachments) {
  const OfferFrame frame({}, {{0x3000, 5, 23}, {0x4000, 5, 24}});
  const IncomingRead read(frame.view(), {}, nullptr, &being_read);
  EXPECT_EQ(read.done_rkey(), 23u);
  EXPECT_EQ(read.message_bytes(), 0u);
}

TEST(IncomingReadTest, SizesAddUpBeyond32Bits) {
  constexpr uint64_t kHuge = uint64_t{1} << 48;
  const OfferFrame frame(std::vector<Segment>(kMaxSegments, {0, kHuge, 1}),
                         std::vector<Segment>(kMaxSegments, {0, kHuge, 1}));
  const IncomingRead read(frame.view(), {}, nullptr, &being_read);
  EXPECT_EQ(read.message_bytes(), kHuge * kMaxSegments);
  EXPECT_EQ(read.attachment_bytes(), kHuge * kMaxSegments);
}

TEST(IncomingReadTest, ChunksKeepToTheLimitAndToTheirSegment) {
  const auto fake = FakeMemory::Create(64 * kMiB);
  const OfferFrame frame({{0x1000, 10, 21}, {0x9000, 3, 22}},
                         {{0x3000, 4, 23}});
  IncomingRead read(frame.view(), {}, nullptr, &being_read);
  ASSERT_TRUE(read.Allocate(fake->memory()).ok());
  const struct {
    uint64_t address;
    uint32_t rkey;
    uint32_t bytes;
  } expected[] = {{0x1000, 21, 4},
                  {0x1004, 21, 4},
                  {0x1008, 21, 2},
                  {0x9000, 22, 3},
                  {0x3000, 23, 4}};
  const std::byte* message = nullptr;
  for (size_t i = 0; i < 5; ++i) {
    ASSERT_FALSE(read.all_issued());
    const ReadChunk chunk = read.NextChunk(4);
    EXPECT_EQ(chunk.remote_address, expected[i].address);
    EXPECT_EQ(chunk.rkey, expected[i].rkey);
    EXPECT_EQ(chunk.bytes, expected[i].bytes);
    if (i == 0) message = chunk.to;
    if (i == 3) {
      EXPECT_EQ(chunk.to, message + 10);
    }
  }
  EXPECT_TRUE(read.all_issued());
}

TEST(IncomingReadTest, IsFinishedWhenTheLastChunkIsDone) {
  const auto fake = FakeMemory::Create(64 * kMiB);
  const OfferFrame frame({{0x1000, 10, 21}}, {});
  IncomingRead read(frame.view(), {}, nullptr, &being_read);
  ASSERT_TRUE(read.Allocate(fake->memory()).ok());
  read.NextChunk(5);
  read.ChunkDone();
  EXPECT_FALSE(read.finished());
  read.NextChunk(5);
  EXPECT_TRUE(read.all_issued());
  EXPECT_FALSE(read.finished());
  read.ChunkDone();
  EXPECT_TRUE(read.finished());
}

TEST(IncomingReadTest, AnAbandonedOneIssuesNoMoreButWaitsForWhatItIssued) {
  const auto fake = FakeMemory::Create(64 * kMiB);
  HeldFrame held;
  const OfferFrame frame({{0x1000, 10, 21}}, {});
  IncomingRead read(frame.view(), {}, &held, &being_read);
  ASSERT_TRUE(read.Allocate(fake->memory()).ok());
  read.NextChunk(5);
  read.Abandon();
  EXPECT_TRUE(read.abandoned());
  EXPECT_EQ(read.held(), nullptr) << "the frame may be gone";
  EXPECT_TRUE(read.all_issued());
  EXPECT_FALSE(read.finished());
  read.ChunkDone();
  EXPECT_TRUE(read.finished());
}

TEST(IncomingReadTest, MovesOnlyWhatWasOfferedIntoTheFrame) {
  const auto fake = FakeMemory::Create(64 * kMiB);
  const OfferFrame frame({}, {{0x1000, 10, 21}});
  IncomingRead read(frame.view(), {}, nullptr, &being_read);
  ASSERT_TRUE(read.Allocate(fake->memory()).ok());
  rpc::IncomingFrame incoming;
  incoming.message = rpc::BufferChain(rpc::Buffer::CopyOf("came with it"));
  read.MoveInto(incoming);
  EXPECT_EQ(incoming.message.ToString(), "came with it");
  EXPECT_EQ(incoming.attachment.size(), 10u);
}

TEST(IncomingReadTest, WithoutMemoryItCanTryAgain) {
  const auto fake = FakeMemory::Create(8 * kMiB);
  const OfferFrame frame({{0x1000, 3 * kMiB, 1}}, {{0x1000, 3 * kMiB, 2}});
  absl::StatusOr<rpc::Buffer> in_the_way = fake->memory().Allocate(3 * kMiB);
  ASSERT_TRUE(in_the_way.ok());
  IncomingRead read(frame.view(), {}, nullptr, &being_read);
  EXPECT_EQ(read.Allocate(fake->memory()).code(),
            absl::StatusCode::kResourceExhausted);
  in_the_way->reset();
  EXPECT_TRUE(read.Allocate(fake->memory()).ok());
  EXPECT_TRUE(read.Allocate(fake->memory()).ok()) << "nothing is left to do";
}

TEST(IncomingReadTest, WithMemoryForOnePartOnlyItTakesNone) {
  const auto fake = FakeMemory::Create(64 * kMiB);
  const absl::StatusOr<rpc::Buffer> other = fake->memory().Allocate(20 * kMiB);
  ASSERT_TRUE(other.ok());
  const OfferFrame frame({{0x1000, 20 * kMiB, 21}}, {{0x3000, 30 * kMiB, 22}});
  IncomingRead read(frame.view(), {}, nullptr, &being_read);
  EXPECT_FALSE(read.Allocate(fake->memory()).ok());
  EXPECT_TRUE(fake->memory().Allocate(30 * kMiB).ok());
}

// A frame of a message of `total` bytes, with the first segments of it.
class InPartsFrame {
 public:
  InPartsFrame(uint64_t total, const std::vector<Segment>& segments) {
    FrameFields fields;
    fields.kind = FrameKind::kData;
    fields.flags = kHasMessage | kMessageOffer | kInParts;
    fields.message_bytes = static_cast<uint32_t>(segments.size());
    Bytes message = testing::TotalBytes(total);
    const Bytes first = ToBytes(segments);
    message.insert(message.end(), first.begin(), first.end());
    payload_ = testing::MakePayload(fields, {}, message, {});
    EXPECT_EQ(DecodeFrame(EncodeTag(fields), payload_, &view_), nullptr);
  }
  const FrameView& view() const { return view_; }

 private:
  Bytes payload_;
  FrameView view_;
};

TEST(IncomingReadTest, OfAMessageInPartsTheWholeIsAllocated) {
  const auto fake = FakeMemory::Create(64 * kMiB);
  const InPartsFrame frame(30, {});
  IncomingRead read(frame.view(), {}, nullptr, &being_read);
  EXPECT_EQ(read.message_bytes(), 30u);
  EXPECT_EQ(read.done_rkey(), 0u);
  EXPECT_FALSE(read.HasChunk());
  EXPECT_TRUE(read.waits_for_parts());
  EXPECT_FALSE(read.finished());
  ASSERT_TRUE(read.Allocate(fake->memory()).ok());

  ASSERT_TRUE(read.AddPart(ToBytes({{0x1000, 10, 21}})));
  EXPECT_EQ(read.done_rkey(), 21u);
  const ReadChunk first = read.NextChunk(100);
  EXPECT_EQ(first.bytes, 10u);
  EXPECT_FALSE(read.HasChunk());
  EXPECT_FALSE(read.all_issued());
  read.ChunkDone();
  EXPECT_FALSE(read.finished());

  ASSERT_TRUE(read.AddPart(ToBytes({{0x2000, 20, 22}})));
  EXPECT_FALSE(read.waits_for_parts());
  const ReadChunk second = read.NextChunk(100);
  EXPECT_EQ(second.to, first.to + 10);
  EXPECT_EQ(second.remote_address, 0x2000u);
  EXPECT_EQ(second.rkey, 22u);
  EXPECT_TRUE(read.all_issued());
  read.ChunkDone();
  EXPECT_TRUE(read.finished());
}

TEST(IncomingReadTest, OneThatArrivesIsReadAsFarAsThereIsRoom) {
  constexpr uint64_t kChunk = ArrivingMessage::kChunkBytes;
  constexpr uint64_t kTotal = 5 * kChunk + 100;
  const auto fake = FakeMemory::Create(64 * kMiB);
  const InPartsFrame frame(kTotal, {{0x1000, kChunk + 100, 21}});
  IncomingRead read(frame.view(), {}, nullptr, &being_read);
  // Nobody is told of room, as there is none before a second piece is taken.
  testing::Side side;
  rpc::Buffer memory = *fake->memory().Allocate(ArrivingMessage::kBytes);
  const std::byte* const ring = memory.data();
  const auto arriving = std::make_shared<ArrivingMessage>(
      &side.poller(), /*owner=*/nullptr, std::move(memory),
      /*reserved_lkey=*/0, kTotal);
  read.ParseWhatArrives(arriving);
  ASSERT_TRUE(read.AddPart(ToBytes({{0x900000, 4 * kChunk, 22}})));

  const uint64_t sizes[] = {kChunk, 100, kChunk, kChunk};
  const uint64_t addresses[] = {0x1000, 0x1000 + kChunk, 0x900000,
                                0x900000 + kChunk};
  for (size_t i = 0; i < ArrivingMessage::kChunks; ++i) {
    ASSERT_TRUE(read.CanReadOn()) << i;
    const ReadChunk chunk = read.NextChunk(1 << 20);
    EXPECT_EQ(chunk.bytes, sizes[i]);
    EXPECT_EQ(chunk.remote_address, addresses[i]);
    EXPECT_EQ(chunk.to, ring + i * kChunk);
    read.ChunkDone();
  }
  EXPECT_TRUE(read.HasChunk());
  EXPECT_FALSE(read.CanReadOn());
  EXPECT_FALSE(read.finished());
  const absl::Span<const std::byte> piece = arriving->Next();
  EXPECT_EQ(piece.data(), ring);
  EXPECT_EQ(piece.size(), kChunk);
  EXPECT_FALSE(read.CanReadOn()) << "it is being parsed";
  arriving->StopParsing();
}

TEST(IncomingReadTest, WhatComesOfOneThatWasAbandonedDoesNotCount) {
  const auto fake = FakeMemory::Create(64 * kMiB);
  const InPartsFrame frame(1000, {{0x1000, 1000, 21}});
  IncomingRead read(frame.view(), {}, nullptr, &being_read);
  const auto arriving = std::make_shared<ArrivingMessage>(
      /*poller=*/nullptr, /*owner=*/nullptr,
      *fake->memory().Allocate(ArrivingMessage::kBytes), /*reserved_lkey=*/0,
      1000);
  read.ParseWhatArrives(arriving);
  read.NextChunk(1 << 20);
  read.Abandon();
  read.ChunkDone();
  EXPECT_TRUE(read.finished());
  EXPECT_TRUE(arriving->Next().empty());
}

TEST(IncomingReadTest, MoreThanThereIsIsRefused) {
  const InPartsFrame frame(30, {{0x1000, 10, 21}});
  IncomingRead read(frame.view(), {}, nullptr, &being_read);
  EXPECT_FALSE(read.offers_too_much());
  EXPECT_TRUE(read.AddPart(ToBytes({{0x1000, 19, 21}})));
  EXPECT_FALSE(read.AddPart(ToBytes({{0x1000, 2, 21}})));

  const InPartsFrame too_much(30, {{0x1000, 31, 21}});
  EXPECT_TRUE(IncomingRead(too_much.view(), {}, nullptr, &being_read)
                  .offers_too_much());
}

TEST(IncomingReadTest, SegmentsOfPartsAreLimitedInNumber) {
  constexpr uint64_t kTotal = uint64_t{1} << 40;
  const InPartsFrame frame(kTotal, {});
  IncomingRead read(frame.view(), {}, nullptr, &being_read);
  const Bytes part = ToBytes(std::vector<Segment>(
      kMaxSegments, {0x1000, LeastPartBytes(kTotal) / kMaxSegments + 1, 21}));
  for (size_t i = 0; i < kMaxSegmentsInParts / kMaxSegments; ++i) {
    ASSERT_TRUE(read.AddPart(part));
  }
  EXPECT_FALSE(read.AddPart(part));
}

TEST(IncomingReadTest, OnlyTheLastPartMayBeShort) {
  constexpr uint64_t kTotal = 1 << 20;
  constexpr uint64_t kLeast = LeastPartBytes(kTotal);
  EXPECT_GT(kLeast, 1u);
  const InPartsFrame frame(kTotal, {{0x1000, 1, 21}});
  EXPECT_FALSE(
      IncomingRead(frame.view(), {}, nullptr, &being_read).offers_too_much());
  EXPECT_FALSE(IncomingRead(frame.view(), {}, nullptr, &being_read)
                   .AddPart(ToBytes({{0x1000, kLeast - 1, 21}})));
  IncomingRead read(frame.view(), {}, nullptr, &being_read);
  EXPECT_TRUE(read.AddPart(ToBytes({{0x1000, kLeast, 21}})));
  EXPECT_TRUE(read.AddPart(ToBytes({{0x1000, kTotal - kLeast - 2, 21}})));
  EXPECT_TRUE(read.waits_for_parts());
  EXPECT_TRUE(read.AddPart(ToBytes({{0x1000, 1, 21}})));
  EXPECT_FALSE(read.waits_for_parts());
}

TEST(IncomingReadTest, AnAbandonedOneWaitsForNoParts) {
  const InPartsFrame frame(30, {});
  IncomingRead read(frame.view(), {}, nullptr, &being_read);
  read.Abandon();
  EXPECT_FALSE(read.waits_for_parts());
  EXPECT_TRUE(read.finished());
}

TEST(IncomingReadTest, EveryByteArrivesOnceAndInItsPlace) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const auto fake = FakeMemory::Create(64 * kMiB);
    Peer message, attachment;
    for (Peer* peer : {&message, &attachment}) {
      for (size_t i = random() % 6; i > 0; --i) {
        std::string piece(1 + random() % 3000, '\0');
        for (char& c : piece) c = static_cast<char>(random());
        peer->Offer(std::move(piece), static_cast<uint32_t>(random()));
      }
      peer->FillInAddresses();
    }
    if (message.segments.empty() && attachment.segments.empty()) continue;
    const OfferFrame frame(message.segments, attachment.segments);
    IncomingRead read(frame.view(), {}, nullptr, &being_read);
    ASSERT_TRUE(read.Allocate(fake->memory()).ok());
    uint64_t carried = 0;
    int outstanding = 0;
    while (!read.finished()) {
      if (!read.all_issued() && (outstanding == 0 || random() % 2 == 0)) {
        const uint32_t limit = 1 + random() % 1000;
        const ReadChunk chunk = read.NextChunk(limit);
        ASSERT_GT(chunk.bytes, 0u);
        ASSERT_LE(chunk.bytes, limit);
        carried += chunk.bytes;
        Carry(chunk);
        ++outstanding;
      } else {
        ASSERT_GT(outstanding, 0);
        read.ChunkDone();
        --outstanding;
      }
    }
    EXPECT_EQ(carried, message.whole().size() + attachment.whole().size());
    rpc::IncomingFrame incoming;
    read.MoveInto(incoming);
    EXPECT_EQ(incoming.message.ToString(), message.whole());
    EXPECT_EQ(incoming.attachment.ToString(), attachment.whole());
  }
}

// ---- This side's offers.

TEST(OfferTest, OneBufferIsOneSegment) {
  const auto fake = FakeMemory::Create(64 * kMiB);
  rpc::Buffer buffer = *fake->memory().Allocate(1000);
  Offer offer;
  offer.AddChain(rpc::BufferChain(buffer));
  ASSERT_EQ(offer.segments.size(), 1u);
  EXPECT_EQ(offer.segments[0].address,
            reinterpret_cast<uint64_t>(buffer.data()));
  EXPECT_EQ(offer.segments[0].length, 1000u);
  EXPECT_EQ(offer.segments[0].rkey, RegisteredMemory::MrOf(buffer)->rkey);
  EXPECT_FALSE(buffer.block()->unique()) << "the offer keeps it";
}

TEST(OfferTest, WhatLiesSideBySideIsOneSegment) {
  const auto fake = FakeMemory::Create(64 * kMiB);
  const rpc::Buffer buffer = *fake->memory().Allocate(1000);
  rpc::BufferChain chain;
  chain.Append(buffer.Slice(0, 100));
  chain.Append(buffer.Slice(100, 200));
  chain.Append(buffer.Slice(500, 10));   // a gap
  chain.Append(buffer.Slice(400, 100));  // backwards
  Offer offer;
  offer.AddChain(chain);
  ASSERT_EQ(offer.segments.size(), 3u);
  EXPECT_EQ(offer.segments[0].length, 300u);
  EXPECT_EQ(offer.segments[1].length, 10u);
  EXPECT_EQ(offer.segments[2].length, 100u);
  EXPECT_EQ(offer.segment_buffers, (std::vector<size_t>{0, 2, 3}));
  EXPECT_EQ(offer.buffers.size(), 4u);
}

TEST(OfferTest, MessageAndAttachmentStayApart) {
  const auto fake = FakeMemory::Create(64 * kMiB);
  const rpc::Buffer buffer = *fake->memory().Allocate(1000);
  Offer offer;
  offer.AddChain(rpc::BufferChain(buffer.Slice(0, 500)));
  offer.AddChain(rpc::BufferChain(buffer.Slice(500, 500)));
  EXPECT_EQ(offer.segments.size(), 2u);
}

Offer OfferOf(uint32_t slot, uint32_t sequence) {
  Offer offer;
  offer.key = {slot, sequence};
  return offer;
}

TEST(OfferTableTest, OffersOfOneCallAreAnsweredInTheOrderMade) {
  OfferTable table;
  Offer& first = table.Add(OfferOf(1, 1));
  Offer& other_call = table.Add(OfferOf(1, 2));
  Offer& second = table.Add(OfferOf(1, 1));
  EXPECT_EQ(table.FindOldest({1, 1}), &first);
  table.MarkAnswered(first);
  EXPECT_EQ(table.FindOldest({1, 1}), &second);
  EXPECT_EQ(table.Find(first.id), &first) << "until its windows are gone";
  table.MarkAnswered(second);
  EXPECT_EQ(table.FindOldest({1, 1}), nullptr);
  EXPECT_EQ(table.FindOldest({1, 2}), &other_call);
}

TEST(OfferTableTest, RemovingForgetsIt) {
  OfferTable table;
  const uint64_t answered = table.Add(OfferOf(1, 1)).id;
  const uint64_t unanswered = table.Add(OfferOf(1, 1)).id;
  table.MarkAnswered(*table.Find(answered));
  table.Remove(answered);
  table.Remove(unanswered);
  table.Remove(unanswered);
  EXPECT_EQ(table.Find(answered), nullptr);
  EXPECT_EQ(table.FindOldest({1, 1}), nullptr);
  EXPECT_TRUE(table.empty());
}

TEST(OfferTableTest, UnknownOnesAreNotFound) {
  OfferTable table;
  EXPECT_EQ(table.Find(0), nullptr);
  EXPECT_EQ(table.FindOldest({0, 0}), nullptr);
  table.Remove(5);
  const uint64_t id = table.Add(OfferOf(1, 1)).id;
  EXPECT_EQ(table.Find(id + 1), nullptr);
  EXPECT_EQ(table.FindOldest({1, 0}), nullptr);
  EXPECT_EQ(table.FindOldest({0, 1}), nullptr);
  table.Clear();
  EXPECT_TRUE(table.empty());
}

}  // namespace
}  // namespace rdma
