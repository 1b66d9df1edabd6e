// Goal: each piece of a READ is copied by one side, whatever the two do at the
// same time: a piece that the peer has claimed is never taken back, one that
// was taken back is never the peer's. Method: a reader on boards of this test,
// which answers as a peer would, or not.
#include "rdma_transport/software/engine/joint_reader.h"

#include <memory>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "rdma_transport/software/engine/fake_link.h"

namespace rdma::soft {
namespace {

constexpr uint32_t kIndex = 5;
constexpr uint64_t kRemote = 1 << 20;
constexpr size_t kBytes = 4 << 20;
constexpr size_t kPieceBytes = JointReader::PieceBytes(kBytes);

class JointReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    context_.memory = &memory_;
    context_.clock = Clock::System();
    context_.pd = memory_.AllocPd(nullptr);
    context_.link = &link_;
    link_.UseBoards(&board_, &answers_);
    region_ = Register(MemoryUse::kJointReads);
    sge_ = {reinterpret_cast<uint64_t>(region_->addr), kBytes, region_->lkey};
    wqe_.opcode = IBV_WR_RDMA_READ;
    link_.peer_access_ = IBV_ACCESS_REMOTE_READ;
    wqe_.byte_len = kBytes;
    wqe_.sge_count = 1;
    detail_.remote_address = kRemote;
    detail_.rkey = 77;
    reader_ = std::make_unique<JointReader>(&context_);
  }
  void TearDown() override {
    for (MemoryRegion* region : regions_) EXPECT_EQ(memory_.DeregMr(region), 0);
    EXPECT_EQ(memory_.DeallocPd(context_.pd), 0);
  }

  MemoryRegion* Register(MemoryUse use) {
    std::byte* const memory = *memory_.arenas().Allocate(kBytes, use);
    regions_.push_back(
        memory_.RegMr(context_.pd, memory, kBytes, IBV_ACCESS_LOCAL_WRITE));
    return regions_.back();
  }
  void Offer() { reader_->Offer(kIndex, wqe_, sge_, &detail_); }
  void Answer(uint32_t slot, JointAnswer answer) {
    const uint64_t number = board_.offers[slot].load() >> 1;
    answers_.answers[slot].store(EncodeAnswer(number, answer));
  }
  bool IsWithdrawn(uint32_t slot) const {
    return (board_.offers[slot].load() & 1) != 0;
  }
  int Collect() {
    int done = 0;
    reader_->Collect([&](uint32_t index) {
      EXPECT_EQ(index, kIndex);
      ++done;
    });
    return done;
  }

  std::vector<KeyEntry> entries_ = std::vector<KeyEntry>(1 << 16);
  LinkRegistry links_;
  MemoryRegistry memory_{entries_.data(), &links_, Clock::System()};
  std::vector<MemoryRegion*> regions_;
  FakeLink link_;
  JointReadBoard board_ = {};
  JointReadBoard answers_ = {};
  QpContext context_;
  MemoryRegion* region_ = nullptr;
  ibv_sge sge_ = {};
  SendWqe wqe_ = {};
  SendDetail detail_ = {};
  std::unique_ptr<JointReader> reader_;
};

TEST_F(JointReaderTest, TakesReadsIntoJointMemoryOfItsLinkOnly) {
  EXPECT_TRUE(JointReader::Takes(context_, wqe_, &sge_));
  // Another link comes too late.
  FakeLink other;
  other.UseBoards(&board_, &answers_);
  QpContext others = context_;
  others.link = &other;
  EXPECT_FALSE(JointReader::Takes(others, wqe_, &sge_));
  EXPECT_TRUE(JointReader::Takes(context_, wqe_, &sge_));

  wqe_.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  EXPECT_FALSE(JointReader::Takes(context_, wqe_, &sge_));
  wqe_.opcode = IBV_WR_RDMA_READ;
  wqe_.byte_len = JointReader::kFewestBytes - 1;
  EXPECT_FALSE(JointReader::Takes(context_, wqe_, &sge_));
  wqe_.byte_len = kBytes;
  for (const MemoryUse use : {MemoryUse::kLocal, MemoryUse::kRemoteWritable}) {
    const MemoryRegion* const region = Register(use);
    const ibv_sge sge = {reinterpret_cast<uint64_t>(region->addr), kBytes,
                         region->lkey};
    EXPECT_FALSE(JointReader::Takes(context_, wqe_, &sge));
  }
}

TEST_F(JointReaderTest, OffersPiecesInOrderAndTellsThePeerOnce) {
  Offer();
  EXPECT_EQ(link_.sent_, 1u) << "one packet";
  EXPECT_EQ(board_.reading.load(), 1u);
  EXPECT_EQ(detail_.bytes_done, kJointSlots * kPieceBytes);
  EXPECT_EQ(detail_.pieces_out, kJointSlots);
  for (uint32_t i = 0; i < kJointSlots; ++i) {
    const JointPiece& piece = board_.pieces[i];
    EXPECT_EQ(piece.from.load(), kRemote + i * kPieceBytes);
    EXPECT_EQ(piece.to.load(), sge_.addr + i * kPieceBytes);
    EXPECT_EQ(piece.bytes.load(), kPieceBytes);
    EXPECT_EQ(piece.rkey.load(), 77u);
    EXPECT_EQ(piece.lkey.load(), sge_.lkey);
  }
  Answer(3, JointAnswer::kDone);
  EXPECT_EQ(Collect(), 1);
  Offer();
  EXPECT_EQ(link_.sent_, 1u);
  EXPECT_EQ(board_.pieces[3].from.load(), kRemote + kJointSlots * kPieceBytes);
}

TEST_F(JointReaderTest, PiecesAreAQuarterOfTheReadUpToTheMost) {
  constexpr uint32_t kFewest = JointReader::kFewestBytes;
  EXPECT_EQ(JointReader::PieceBytes(kFewest), kFewest / 4);
  EXPECT_EQ(JointReader::PieceBytes(kFewest + 1), kFewest / 4 + 4096);
  EXPECT_EQ(JointReader::PieceBytes(1 << 20), 256u << 10);
  EXPECT_EQ(JointReader::PieceBytes((1 << 20) + 1), kMostJointPieceBytes);
  EXPECT_EQ(JointReader::PieceBytes(UINT32_MAX), kMostJointPieceBytes);

  wqe_.byte_len = kFewest + 1;
  Offer();
  EXPECT_EQ(detail_.bytes_done, wqe_.byte_len);
  EXPECT_EQ(detail_.pieces_out, 4u);
  EXPECT_EQ(board_.pieces[3].bytes.load(),
            kFewest + 1 - 3 * (kFewest / 4 + 4096));
}

TEST_F(JointReaderTest, OffersNothingToWhoSleeps) {
  link_.peer_armed_ = 1;
  Offer();
  EXPECT_EQ(detail_.bytes_done, 0u);
  EXPECT_EQ(link_.sent_, 0u);
}

TEST_F(JointReaderTest, OffersNothingThatThePeerCannotBeToldOf) {
  link_.sent_ = FakeLink::kRoom;
  Offer();
  EXPECT_EQ(detail_.bytes_done, 0u);
  link_.acknowledged_ = 1;
  Offer();
  EXPECT_GT(detail_.bytes_done, 0u);
}

TEST_F(JointReaderTest, TakesBackTheNewestFirst) {
  Offer();
  for (uint32_t left = kJointSlots; left != 0; --left) {
    EXPECT_TRUE(reader_->MayTakeBack());
    const JointReader::Piece* const piece = reader_->TakeBack();
    ASSERT_NE(piece, nullptr);
    EXPECT_EQ(piece->index, kIndex);
    EXPECT_EQ(piece->offset, (left - 1) * kPieceBytes);
    EXPECT_EQ(reader_->TakeBack(), piece) << "it stays until it is dropped";
    EXPECT_TRUE(IsWithdrawn(left - 1));
    reader_->Drop(piece);
  }
  EXPECT_EQ(reader_->TakeBack(), nullptr);
  EXPECT_FALSE(reader_->MayTakeBack());
}

TEST_F(JointReaderTest, WhatIsClaimedIsWaitedFor) {
  Offer();
  for (uint32_t i = 0; i < kJointSlots; ++i) Answer(i, JointAnswer::kClaimed);
  EXPECT_EQ(reader_->TakeBack(), nullptr);
  EXPECT_FALSE(reader_->MayTakeBack());
  EXPECT_EQ(Collect(), 0);
  Answer(0, JointAnswer::kDone);
  Answer(1, JointAnswer::kDeclined);
  EXPECT_EQ(Collect(), 1);
  // The peer yielded: it is the reader's.
  const JointReader::Piece* const piece = reader_->TakeBack();
  ASSERT_NE(piece, nullptr);
  EXPECT_EQ(piece->offset, kPieceBytes);
  reader_->Drop(piece);
  EXPECT_EQ(reader_->TakeBack(), nullptr);
}

// What the peer said of an earlier offer in the same slot says nothing of this
// one.
TEST_F(JointReaderTest, AnAnswerIsToOneOffer) {
  Offer();
  const uint64_t first = board_.offers[0].load() >> 1;
  for (uint32_t i = 0; i < kJointSlots; ++i) Answer(i, JointAnswer::kDone);
  EXPECT_EQ(Collect(), static_cast<int>(kJointSlots));
  Offer();
  EXPECT_EQ(Collect(), 0);
  answers_.answers[0].store(EncodeAnswer(first, JointAnswer::kClaimed));
  std::set<uint64_t> offsets;
  while (const JointReader::Piece* piece = reader_->TakeBack()) {
    offsets.insert(piece->offset);
    reader_->Drop(piece);
  }
  EXPECT_EQ(offsets.size(), kJointSlots);
}

// But for a peer that has not taken the last packet yet: it will look.
TEST_F(JointReaderTest, TellsAgainAfterARest) {
  for (const uint64_t told : {1, 2, 2}) {
    detail_.bytes_done = 0;
    Offer();
    EXPECT_EQ(board_.reading.load(), 1u);
    EXPECT_EQ(link_.sent_, told);
    for (uint32_t i = 0; i < kJointSlots; ++i) Answer(i, JointAnswer::kDone);
    EXPECT_EQ(Collect(), static_cast<int>(kJointSlots));
    EXPECT_FALSE(reader_->waits());
    reader_->Rest();
    EXPECT_EQ(board_.reading.load(), 0u);
    if (told == 1) link_.acknowledged_ = 1;
  }
}

}  // namespace
}  // namespace rdma::soft
