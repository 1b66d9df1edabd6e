// Goal: READs that both sides copy bring what the memory held, whoever copied
// which piece, whether the peer polls, polls now and then, or never; nobody but
// the one peer can write where they go; and what a reader asks of its peer by
// hand is refused where it is not the reader's. Method: two endpoints of this
// process, each with a mapping of its own of the other's memory; a client that
// speaks the protocol by hand.
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "rdma_transport/software/engine/joint_read_board.h"
#include "rdma_transport/software/engine/key_table.h"
#include "rdma_transport/software/engine/memfd.h"
#include "rdma_transport/software/shm/handshake.h"
#include "rdma_transport/software/shm/link_segment.h"
#include "tests/software/endpoint.h"
#include "tests/software/hostile_client.h"

namespace rdma::soft {
namespace {

constexpr size_t kBytes = 4 << 20;

// Memory of an endpoint's.
class Registered {
 public:
  Registered(Endpoint* endpoint, MemoryUse use, int access)
      : endpoint_(endpoint),
        data_(
            static_cast<char*>(endpoint->device().AllocateMemory(kBytes, use))),
        mr_(endpoint->device().RegMr(endpoint->pd(), data_, kBytes, access)) {}
  ~Registered() {
    EXPECT_EQ(endpoint_->device().DeregMr(mr_), 0);
    endpoint_->device().FreeMemory(data_, kBytes);
  }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

  char* data() const { return data_; }
  uint64_t address(size_t offset = 0) const {
    return reinterpret_cast<uint64_t>(data_) + offset;
  }
  ibv_sge sge(size_t offset, uint32_t bytes) const {
    return {address(offset), bytes, mr_->lkey};
  }
  ibv_mr* mr() const { return mr_; }

 private:
  Endpoint* const endpoint_;
  char* const data_;
  ibv_mr* const mr_;
};

void Fill(char* data, size_t bytes, uint32_t seed) {
  for (size_t i = 0; i + sizeof(uint32_t) <= bytes; i += sizeof(uint32_t)) {
    const uint32_t word = seed + static_cast<uint32_t>(i) * 2654435761u;
    std::memcpy(data + i, &word, sizeof(word));
  }
}

class JointReadTest : public testing::Test {
 protected:
  void SetUp() override {
    const SocketAddress address = peer_.Listen();
    qp_ = reader_.Connect(address);
    ASSERT_NE(peer_qp_ = peer_.Accept(), nullptr);
    ASSERT_TRUE(reader_.Await(CmEvent::Type::kEstablished));
    Fill(source_.data(), kBytes, 1);
  }

  void PostRead(uint64_t id, size_t from, size_t to, uint32_t bytes) {
    ASSERT_EQ(reader_.PostRead(qp_, id, target_.sge(to, bytes),
                               source_.address(from), source_.mr()->rkey),
              0);
  }
  // A turn of one side.
  static int Turn(Endpoint& side, ibv_wc* completion) {
    return ibv_poll_cq(side.cq(), 1, completion);
  }
  static void Turns(Endpoint& side, int count) {
    ibv_wc completion;
    for (int i = 0; i < count; ++i) EXPECT_EQ(Turn(side, &completion), 0);
  }
  bool Holds(size_t from, size_t to, size_t bytes) const {
    return std::memcmp(source_.data() + from, target_.data() + to, bytes) == 0;
  }

  Endpoint peer_;
  Endpoint reader_;
  Registered source_{&peer_, MemoryUse::kLocal,
                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ};
  Registered target_{&reader_, MemoryUse::kJointReads, IBV_ACCESS_LOCAL_WRITE};
  ibv_qp* qp_ = nullptr;
  ibv_qp* peer_qp_ = nullptr;
};

TEST_F(JointReadTest, ThePeerCopiesWhatIsOnOffer) {
  PostRead(1, 0, 0, 1 << 20);
  // In its first turn the reader offers all that is left, and takes the end
  // back.
  Turns(reader_, 1);
  constexpr size_t kMiddle = 256 << 10;
  EXPECT_TRUE(Holds(0, 0, 4096));
  EXPECT_FALSE(Holds(kMiddle, kMiddle, 4096));
  Turns(peer_, 20);
  EXPECT_TRUE(Holds(0, 0, 1 << 20)) << "the peer has done the rest";
  const std::optional<ibv_wc> done = reader_.AwaitCompletion();
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(done->status, IBV_WC_SUCCESS);
  EXPECT_EQ(done->byte_len, 1u << 20);
}

TEST_F(JointReadTest, TheReaderDoesAloneWhatThePeerDoesNot) {
  for (uint64_t id = 1; id <= 20; ++id) {
    Fill(source_.data(), kBytes, static_cast<uint32_t>(id));
    PostRead(id, 0, 0, kBytes);
    const std::optional<ibv_wc> done = reader_.AwaitCompletion();
    ASSERT_TRUE(done.has_value());
    ASSERT_EQ(done->status, IBV_WC_SUCCESS);
    ASSERT_TRUE(Holds(0, 0, kBytes));
  }
}

// Each READ of its own bytes; the peer polls as chance has it.
TEST_F(JointReadTest, AnyShareOfThePeersBringsTheSame) {
  std::mt19937 random(7);
  std::atomic<bool> ends = false;
  std::thread peers([&] {
    std::mt19937 pauses(11);
    ibv_wc completion;
    while (!ends) {
      for (uint32_t turns = pauses() % 50; turns != 0; --turns) {
        Turn(peer_, &completion);
      }
      if (pauses() % 4 == 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(pauses() % 300));
      }
    }
  });
  for (int round = 0; round < 60; ++round) {
    std::memset(target_.data(), 0, kBytes);
    const uint32_t count = 1 + random() % 8;
    const uint32_t most = kBytes / count;
    struct Piece {
      size_t from;
      uint32_t bytes;
    };
    std::vector<Piece> reads;
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t bytes = 1 + random() % most;
      const size_t from = random() % (kBytes - bytes + 1);
      reads.push_back({from, bytes});
      PostRead(i, from, size_t{i} * most, bytes);
    }
    for (uint32_t i = 0; i < count; ++i) {
      const std::optional<ibv_wc> done = reader_.AwaitCompletion();
      ASSERT_TRUE(done.has_value());
      ASSERT_EQ(done->status, IBV_WC_SUCCESS);
      ASSERT_EQ(done->wr_id, i);
      ASSERT_TRUE(Holds(reads[i].from, size_t{i} * most, reads[i].bytes));
    }
  }
  ends = true;
  peers.join();
}

// A key that the peer takes back in between fails the READ, and the QP; what
// the peer copies by then is not written afterwards.
TEST_F(JointReadTest, WhatIsRevokedMeanwhileFails) {
  auto source = std::make_unique<Registered>(
      &peer_, MemoryUse::kLocal,
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
  ASSERT_EQ(reader_.PostRead(qp_, 1, target_.sge(0, kBytes), source->address(),
                             source->mr()->rkey),
            0);
  Turns(reader_, 2);
  Turns(peer_, 2);
  source.reset();
  const std::optional<ibv_wc> done = reader_.AwaitCompletion();
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(done->wr_id, 1u);
  EXPECT_EQ(done->status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(qp_->state, IBV_QPS_ERR);
}

// Where READs of one connection go, another one's peer may only read.
TEST_F(JointReadTest, AnotherConnectionReadsThereAlone) {
  PostRead(1, 0, 0, kBytes);
  ASSERT_TRUE(reader_.AwaitCompletion().has_value());
  Endpoint other;
  Registered others(&other, MemoryUse::kLocal,
                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
  Fill(others.data(), kBytes, 99);
  const SocketAddress address = other.Listen();
  ibv_qp* const qp = reader_.Connect(address);
  ASSERT_NE(other.Accept(), nullptr);
  ASSERT_TRUE(reader_.Await(CmEvent::Type::kEstablished));
  ASSERT_EQ(reader_.PostRead(qp, 2, target_.sge(0, 1 << 20), others.address(),
                             others.mr()->rkey),
            0);
  Turns(reader_, 2);
  Turns(other, 20);
  // Its peer had nothing on offer, so the rest is not there.
  EXPECT_NE(std::memcmp(others.data() + (1 << 20) - 4096,
                        target_.data() + (1 << 20) - 4096, 4096),
            0);
  const std::optional<ibv_wc> done = reader_.AwaitCompletion();
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(done->status, IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(others.data(), target_.data(), 1 << 20), 0);
}

// ---- What a reader may ask for.

class HostileReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    const SocketAddress address = victim_.Listen();
    hostile_ = std::make_unique<HostileClient>(address);
    ASSERT_EQ(hostile_->SendHello(hostile_->GoodSetup()), SendResult::kSent);
    qp_ = victim_.Accept();
    ASSERT_NE(qp_, nullptr);
    const auto answer = hostile_->AwaitAnswer([] {});
    ASSERT_NE(answer, nullptr);
    ASSERT_EQ(answer->fd_count, 2u);
    absl::StatusOr<Mapping> victims =
        MapPeerSegment(answer->fds[1].get(), {.writable = false});
    ASSERT_TRUE(victims.ok());
    victims_ = *std::move(victims);
    absl::StatusOr<HandshakeSetup> setup = DecodeSetup(*answer);
    ASSERT_TRUE(setup.ok());
    victims_lines_ = setup->ring_lines;
    Packet packet;
    packet.kind = PacketKind::kJointRead;
    board().reading = 1;
    hostile_->WritePacket(packet);
  }

  JointReadBoard& board() {
    return *reinterpret_cast<JointReadBoard*>(&hostile_->line(0) +
                                              HostileClient::kRingLines);
  }
  uint64_t answer(uint32_t slot) const {
    const auto* const lines = reinterpret_cast<const RingLine*>(
        victims_.base() + sizeof(LinkControl));
    return reinterpret_cast<const JointReadBoard*>(lines + victims_lines_)
        ->answers[slot]
        .load(std::memory_order_acquire);
  }
  JointAnswer Ask(uint64_t from, uint32_t rkey, uint64_t to, uint32_t lkey,
                  uint32_t bytes) {
    const uint32_t slot = ++number_ % kJointSlots;
    board().pieces[slot].from = from;
    board().pieces[slot].rkey = rkey;
    board().pieces[slot].to = to;
    board().pieces[slot].lkey = lkey;
    board().pieces[slot].bytes = bytes;
    board().offers[slot] = EncodeOffer(number_, /*withdrawn=*/false);
    ibv_wc completion;
    EXPECT_TRUE(Until(
        [&] { return AnswerTo(number_, answer(slot)) > JointAnswer::kClaimed; },
        [&] { EXPECT_EQ(ibv_poll_cq(victim_.cq(), 1, &completion), 0); }));
    return AnswerTo(number_, answer(slot));
  }
  // A key of the client's that says it stands for an arena with this number.
  void Grant(uint32_t key, uint32_t access, uint64_t address, uint64_t length,
             uint32_t arena) {
    KeyTable table(hostile_->device().keys(), 1 << 8);
    KeyRange range;
    range.address = address;
    range.length = length;
    range.arena = arena;
    range.access = access;
    range.pd = hostile_->GoodSetup().pd;
    table.Grant(key, range);
  }

  Endpoint victim_;
  std::unique_ptr<HostileClient> hostile_;
  ibv_qp* qp_ = nullptr;
  Mapping victims_;
  uint32_t victims_lines_ = 0;
  uint64_t number_ = 0;
};

TEST_F(HostileReaderTest, WhatIsNotItsToReadIsDeclined) {
  const uint64_t from = reinterpret_cast<uint64_t>(victim_.buffer());
  const uint32_t rkey = victim_.mr()->rkey;
  constexpr uint32_t kLkey = 3 << 8;
  constexpr uint64_t kTo = 1 << 20;
  Grant(kLkey, kJointKey, kTo, 1 << 20, /*arena=*/1);
  ibv_mr* const local = victim_.device().RegMr(victim_.pd(), victim_.buffer(),
                                               4096, IBV_ACCESS_LOCAL_WRITE);
  EXPECT_EQ(Ask(from, local->rkey, kTo, kLkey, 4096), JointAnswer::kDeclined);
  EXPECT_EQ(Ask(from, rkey + 1, kTo, kLkey, 4096), JointAnswer::kDeclined);
  EXPECT_EQ(Ask(from, 0, kTo, kLkey, 4096), JointAnswer::kDeclined);
  EXPECT_EQ(Ask(from, UINT32_MAX, kTo, kLkey, 4096), JointAnswer::kDeclined);
  EXPECT_EQ(Ask(from - 1, rkey, kTo, kLkey, 4096), JointAnswer::kDeclined);
  EXPECT_EQ(Ask(from + Endpoint::kBufferBytes - 4095, rkey, kTo, kLkey, 4096),
            JointAnswer::kDeclined);
  EXPECT_EQ(Ask(from, rkey, kTo, kLkey, 0), JointAnswer::kDeclined);
  EXPECT_EQ(Ask(from, rkey, kTo, kLkey, kMostJointPieceBytes + 1),
            JointAnswer::kDeclined);
  EXPECT_EQ(victim_.device().DeregMr(local), 0);
  EXPECT_EQ(qp_->state, IBV_QPS_RTS);
}

// Where it says that the bytes are to go the victim writes only what it was
// given to map.
TEST_F(HostileReaderTest, WhereItCannotWriteIsDeclined) {
  const uint64_t from = reinterpret_cast<uint64_t>(victim_.buffer());
  const uint32_t rkey = victim_.mr()->rkey;
  constexpr uint32_t kLkey = 3 << 8;
  EXPECT_EQ(Ask(from, rkey, from, kLkey, 4096), JointAnswer::kDeclined);
  EXPECT_EQ(Ask(from, rkey, from, rkey, 4096), JointAnswer::kDeclined);
  // An arena that was never announced.
  Grant(kLkey, kJointKey, from, 1 << 20, /*arena=*/1);
  EXPECT_EQ(Ask(from, rkey, from, kLkey, 4096), JointAnswer::kDeclined);
  EXPECT_EQ(qp_->state, IBV_QPS_RTS);
}

// A number that no answer has room for would be open for ever.
TEST_F(HostileReaderTest, AnOfferThatCannotBeAnsweredIsNone) {
  board().offers[0] = uint64_t{1} << 63;
  ibv_wc completion;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(ibv_poll_cq(victim_.cq(), 1, &completion), 0);
  }
  EXPECT_FALSE(victim_.device().is_at_work(victim_.cq()));
  EXPECT_EQ(answer(0), 0u);
}

// Without anything on offer they cost the victim a look each, and no more.
TEST_F(HostileReaderTest, AnnouncementsOfNothingDoNotKeepItAtWork) {
  board().reading = 0;
  ibv_wc completion;
  for (uint32_t lap = 1; lap <= 3; ++lap) {
    for (uint32_t i = lap == 1 ? 1 : 0; i < HostileClient::kRingLines; ++i) {
      Packet packet;
      packet.kind = PacketKind::kJointRead;
      hostile_->line(i).word.store(EncodeWord(packet, lap),
                                   std::memory_order_release);
    }
    for (int i = 0; i < 100; ++i) {
      EXPECT_EQ(ibv_poll_cq(victim_.cq(), 1, &completion), 0);
    }
  }
  EXPECT_EQ(
      reinterpret_cast<const LinkControl*>(victims_.base())->consumed.load(),
      3 * HostileClient::kRingLines);
  EXPECT_FALSE(victim_.device().is_at_work(victim_.cq()));
  EXPECT_EQ(qp_->state, IBV_QPS_RTS);
}

// With an offer of garbage, and no more of them to come.
TEST_F(HostileReaderTest, ALastOfferThatIsDeclinedDoesNotKeepItAtWork) {
  board().reading = 0;
  EXPECT_EQ(Ask(0, 0, 0, 0, 4096), JointAnswer::kDeclined);
  ibv_wc completion;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(ibv_poll_cq(victim_.cq(), 1, &completion), 0);
  }
  EXPECT_FALSE(victim_.device().is_at_work(victim_.cq()));
}

// Memory of joint READs is not for peers to name.
TEST_F(JointReadTest, GrantsNothingByAKeyOfTheRegion) {
  auto* const memory =
      reader_.device().AllocateMemory(kBytes, MemoryUse::kJointReads);
  for (const int access : {IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_WRITE}) {
    EXPECT_EQ(reader_.device().RegMr(reader_.pd(), memory, kBytes,
                                     IBV_ACCESS_LOCAL_WRITE | access),
              nullptr);
    EXPECT_EQ(errno, EACCES);
  }
  reader_.device().FreeMemory(memory, kBytes);
}

}  // namespace
}  // namespace rdma::soft
