// Goal: READs whose pieces the peer has claimed end as READs do: in order, with
// what they fail with, and not never where the peer stopped while it copied.
// Method: a requester on a link, boards, memory and a clock of this test, which
// answers as a peer would, or not.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "rdma_transport/software/engine/requester_fixture.h"

namespace rdma::soft {
namespace {

constexpr uint64_t kRemote = 1 << 20;
constexpr uint32_t kRkey = 3 << 8;
constexpr uint32_t kBytes = 512 << 10;
constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kLimit = kAnnouncementLimitNs;

class StoppedClock final : public Clock {
 public:
  int64_t NowNanoseconds() override { return now_ns; }
  int64_t now_ns = kSecond;
};

class JointRequesterTest : public RequesterFixture {
 protected:
  void SetUp() override {
    qp_.memory = &memory_;
    qp_.clock = &clock_;
    qp_.pd = memory_.AllocPd(nullptr);
    joint_ = Register(MemoryUse::kJointReads);
    local_ = Register(MemoryUse::kLocal);
    for (size_t i = 0; i < source_.size(); ++i) {
      source_[i] = static_cast<std::byte>(i * 7 + i / 4096);
    }
    KeyRange range;
    range.address = kRemote;
    range.length = source_.size();
    range.access = IBV_ACCESS_REMOTE_READ;
    KeyTable(peer_entries_.data(), peer_entries_.size()).Grant(kRkey, range);
    link_.peer_keys_ = KeyView(peer_entries_.data(), peer_entries_.size());
    link_.peer_memory_ = source_.data();
    link_.peer_access_ = IBV_ACCESS_REMOTE_READ;
    link_.UseBoards(&board_, &answers_);
    RequesterFixture::SetUp();
    requester_->SetMaxReads(4);
  }
  void TearDown() override {
    RequesterFixture::TearDown();
    for (MemoryRegion* region : {joint_, local_}) {
      EXPECT_EQ(memory_.DeregMr(region), 0);
    }
    EXPECT_EQ(memory_.DeallocPd(qp_.pd), 0);
  }

  MemoryRegion* Register(MemoryUse use) {
    std::byte* const memory = *memory_.arenas().Allocate(2 * kBytes, use);
    return memory_.RegMr(qp_.pd, memory, 2 * kBytes, IBV_ACCESS_LOCAL_WRITE);
  }
  void PostRead(uint64_t wr_id, const MemoryRegion* to, size_t offset,
                uint32_t bytes, uint32_t rkey = kRkey) {
    ibv_sge sge = {reinterpret_cast<uint64_t>(to->addr) + offset, bytes,
                   to->lkey};
    ibv_send_wr wr = {};
    wr.wr_id = wr_id;
    wr.opcode = IBV_WR_RDMA_READ;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.wr.rdma.remote_addr = kRemote + offset;
    wr.wr.rdma.rkey = rkey;
    ibv_send_wr* bad;
    ASSERT_EQ(requester_->Post(&wr, &bad), 0);
  }
  bool Turn(uint64_t budget_bytes = 1 << 20) {
    return requester_->Progress(&budget_bytes);
  }
  // The peer claims all that is on offer and was not answered.
  int ClaimAll() {
    int claimed = 0;
    for (uint32_t i = 0; i < kJointSlots; ++i) {
      const uint64_t offer = board_.offers[i];
      if (offer == 0 || (offer & 1) != 0 ||
          AnswerTo(offer >> 1, answers_.answers[i]) != JointAnswer::kNone) {
        continue;
      }
      Answer(i, JointAnswer::kClaimed);
      ++claimed;
    }
    return claimed;
  }
  void Answer(uint32_t slot, JointAnswer answer) {
    answers_.answers[slot] = EncodeAnswer(board_.offers[slot] >> 1, answer);
  }
  // It copies what it has claimed.
  void EndClaims() {
    for (uint32_t i = 0; i < kJointSlots; ++i) {
      if (AnswerTo(board_.offers[i] >> 1, answers_.answers[i]) !=
          JointAnswer::kClaimed) {
        continue;
      }
      const JointPiece& piece = board_.pieces[i];
      std::memcpy(reinterpret_cast<void*>(piece.to.load()),
                  source_.data() + (piece.from - kRemote), piece.bytes);
      Answer(i, JointAnswer::kDone);
    }
  }
  // Reads the beginning, offers the rest, and takes one piece of it back; the
  // peer claims the others.
  void BeginAndClaim(uint64_t wr_id) {
    PostRead(wr_id, joint_, 0, kBytes);
    EXPECT_FALSE(Turn(4096));
    EXPECT_FALSE(Turn(1));
    ASSERT_GT(ClaimAll(), 0);
    EXPECT_FALSE(Turn());
  }
  std::optional<ibv_wc> Completion() {
    ibv_wc completion;
    if (cq_->Poll(1, &completion) == 0) return std::nullopt;
    return completion;
  }
  void ExpectCompletion(uint64_t wr_id, ibv_wc_status status) {
    const std::optional<ibv_wc> completion = Completion();
    ASSERT_TRUE(completion.has_value());
    EXPECT_EQ(completion->wr_id, wr_id);
    EXPECT_EQ(completion->status, status);
  }
  bool Holds(const MemoryRegion* to, size_t offset, size_t bytes) const {
    return std::memcmp(static_cast<std::byte*>(to->addr) + offset,
                       source_.data() + offset, bytes) == 0;
  }

  StoppedClock clock_;
  std::vector<KeyEntry> entries_ = std::vector<KeyEntry>(1 << 16);
  std::vector<KeyEntry> peer_entries_ = std::vector<KeyEntry>(16);
  std::vector<std::byte> source_ = std::vector<std::byte>(2 * kBytes);
  LinkRegistry links_;
  MemoryRegistry memory_{entries_.data(), &links_, &clock_};
  MemoryRegion* joint_ = nullptr;
  MemoryRegion* local_ = nullptr;
  JointReadBoard board_ = {};
  JointReadBoard answers_ = {};
};

TEST_F(JointRequesterTest, IsOverOnceTheClaimsAre) {
  BeginAndClaim(1);
  EXPECT_FALSE(Completion().has_value());
  EndClaims();
  EXPECT_FALSE(Turn());
  ExpectCompletion(1, IBV_WC_SUCCESS);
  EXPECT_TRUE(Holds(joint_, 0, kBytes));
}

TEST_F(JointRequesterTest, AClaimThatNeverEndsFailsTheRead) {
  BeginAndClaim(1);
  clock_.now_ns += kLimit;
  EXPECT_FALSE(Turn());
  clock_.now_ns += 1;
  EXPECT_TRUE(Turn());
  ExpectCompletion(1, IBV_WC_RETRY_EXC_ERR);
}

// A QP that is connected anew has another peer, which has its own time.
TEST_F(JointRequesterTest, AnOldWaitIsNotCounted) {
  BeginAndClaim(1);
  requester_->Reset();
  std::fill(std::begin(answers_.answers), std::end(answers_.answers), 0);
  requester_->SetRunning(true);
  clock_.now_ns += 2 * kLimit;
  BeginAndClaim(2);
  clock_.now_ns += kLimit;
  EXPECT_FALSE(Turn());
  EXPECT_FALSE(Completion().has_value());
  EndClaims();
  EXPECT_FALSE(Turn());
  ExpectCompletion(2, IBV_WC_SUCCESS);
}

TEST_F(JointRequesterTest, OneThatFailsWaitsForTheClaimsBeforeIt) {
  BeginAndClaim(1);
  PostRead(2, joint_, kBytes, kBytes, kRkey + 1);
  EXPECT_FALSE(Turn());
  EXPECT_FALSE(Completion().has_value());
  EndClaims();
  EXPECT_TRUE(Turn());
  ExpectCompletion(1, IBV_WC_SUCCESS);
  ExpectCompletion(2, IBV_WC_REM_ACCESS_ERR);
  EXPECT_TRUE(Holds(joint_, 0, kBytes));
}

// One that is not joint begins when those before it are over.
TEST_F(JointRequesterTest, AnotherReadStaysBehindTheClaimsBeforeIt) {
  BeginAndClaim(1);
  PostRead(2, local_, 0, 4096);
  EXPECT_FALSE(Turn());
  EXPECT_FALSE(Completion().has_value());
  EXPECT_FALSE(Holds(local_, 0, 4096));
  EndClaims();
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(Turn());
  ExpectCompletion(1, IBV_WC_SUCCESS);
  ExpectCompletion(2, IBV_WC_SUCCESS);
  EXPECT_TRUE(Holds(local_, 0, 4096));
}

}  // namespace
}  // namespace rdma::soft
