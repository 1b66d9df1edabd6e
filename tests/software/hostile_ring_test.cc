// Goal: whatever a connected peer writes into its memory or sends over its
// socket, the victim ends with an error on that connection at worst. Method: a
// peer that makes a right handshake and then breaks one rule; the victim's QP
// must go to ERR and flush, or ignore it, and another connection of the same
// device must work on. A seeded storm of random words closes the list.
#include <sys/eventfd.h>

#include <cstring>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/software/endpoint.h"
#include "tests/software/hostile_client.h"

namespace rdma::soft {
namespace {

class HostileRingTest : public testing::Test {
 protected:
  static constexpr uint64_t kReceives = 4;

  void SetUp() override {
    address_ = victim_.Listen();
    // The connection that must not care.
    good_near_ = good_.Connect(address_);
    good_far_ = victim_.Accept();
    ASSERT_NE(good_far_, nullptr);
    ASSERT_TRUE(good_.Await(CmEvent::Type::kEstablished));
    ConnectHostile();
  }

  void TearDown() override {
    hostile_.reset();
    ibv_wc completion;
    while (ibv_poll_cq(victim_.cq(), 1, &completion) == 1) {
    }
    ASSERT_EQ(victim_.PostReceive(good_far_, 500, victim_.Sge(0, 100)), 0);
    ASSERT_EQ(good_.PostSend(good_near_, 501, good_.Sge(0, 10)), 0);
    for (;;) {
      const auto received = victim_.AwaitCompletion();
      ASSERT_TRUE(received);
      if (received->wr_id != 500) continue;
      EXPECT_EQ(received->status, IBV_WC_SUCCESS);
      break;
    }
    EXPECT_EQ(good_.AwaitCompletion()->status, IBV_WC_SUCCESS);
  }

  void ConnectHostile() {
    hostile_ = std::make_unique<HostileClient>(address_);
    ASSERT_EQ(hostile_->SendHello(hostile_->GoodSetup()), SendResult::kSent);
    qp_ = victim_.Accept();
    ASSERT_NE(qp_, nullptr);
    const auto answer = hostile_->AwaitAnswer([] {});
    ASSERT_NE(answer, nullptr);
    ASSERT_TRUE(DecodeSetup(*answer).ok());
    for (uint64_t id = 0; id < kReceives; ++id) {
      ASSERT_EQ(victim_.PostReceive(qp_, id, victim_.Sge(4096 * id, 4096)), 0);
    }
  }

  // The QP ends; its receives complete with `first`, then with flushes.
  void ExpectEnd(ibv_wc_status first = IBV_WC_WR_FLUSH_ERR) {
    for (uint64_t id = 0; id < kReceives; ++id) {
      const auto completion = victim_.AwaitCompletion();
      ASSERT_TRUE(completion);
      EXPECT_EQ(completion->wr_id, id);
      EXPECT_EQ(completion->status, id == 0 ? first : IBV_WC_WR_FLUSH_ERR);
    }
    EXPECT_EQ(qp_->state, IBV_QPS_ERR);
  }

  // Nothing happens, and the connection works.
  void ExpectIndifference(int polls = 20'000) {
    ibv_wc completion;
    for (int i = 0; i < polls; ++i) {
      ASSERT_EQ(ibv_poll_cq(victim_.cq(), 1, &completion), 0);
    }
    EXPECT_EQ(qp_->state, IBV_QPS_RTS);
  }

  Endpoint victim_;
  Endpoint good_;
  SocketAddress address_;
  ibv_qp* good_near_ = nullptr;
  ibv_qp* good_far_ = nullptr;
  std::unique_ptr<HostileClient> hostile_;
  ibv_qp* qp_ = nullptr;
};

TEST_F(HostileRingTest, AGoodPacketIsReceived) {
  Packet packet;
  packet.payload_bytes = 5;
  hostile_->WritePacket(packet, "hello", 5);
  const auto completion = victim_.AwaitCompletion();
  EXPECT_EQ(completion->status, IBV_WC_SUCCESS);
  EXPECT_EQ(std::string(victim_.buffer(), 5), "hello");
}

TEST_F(HostileRingTest, UnknownKinds) {
  for (int kind : {0, 9, 15}) {
    Packet packet;
    packet.kind = static_cast<PacketKind>(kind);
    hostile_->WritePacket(packet);
    ExpectEnd();
    ConnectHostile();
  }
}

TEST_F(HostileRingTest, PayloadLongerThanAPacket) {
  for (uint16_t bytes : {uint16_t{kMaxPayloadBytes + 1}, uint16_t{65535}}) {
    Packet packet;
    packet.payload_bytes = bytes;
    hostile_->WritePacket(packet);
    ExpectEnd();
    ConnectHostile();
  }
}

// Those with an immediate, of few pieces, are taken by a short way of their
// own.
constexpr PacketKind kDescribedKinds[] = {PacketKind::kSend,
                                          PacketKind::kSendWithImmediate};

Packet Described(PacketKind kind, size_t pieces = 1) {
  Packet packet;
  packet.kind = kind;
  packet.described = true;
  packet.payload_bytes = static_cast<uint16_t>(pieces * sizeof(Descriptor));
  return packet;
}

TEST_F(HostileRingTest, DescriptionsOfMemoryThatWasNeverShared) {
  for (const PacketKind kind : kDescribedKinds) {
    const Descriptor nowhere = {.arena = 77, .bytes = 100, .offset = 0};
    hostile_->WritePacket(Described(kind), &nowhere, sizeof(nowhere));
    // It might still be announced: until the peer hangs up the victim waits.
    // Few polls: it waits for 5 s, and each of them looks at the socket.
    ExpectIndifference(1000);
    hostile_->HangUp();
    ExpectEnd();
    ConnectHostile();
  }
}

TEST_F(HostileRingTest, DescriptionsOutsideOfTheirArena) {
  for (const PacketKind kind : kDescribedKinds) {
    for (const Descriptor& wrong :
         {Descriptor{.arena = 5, .bytes = 4096, .offset = 4096},
          Descriptor{.arena = 5, .bytes = 1, .offset = 8192},
          Descriptor{.arena = 5, .bytes = 100, .offset = UINT64_MAX - 10}}) {
      const auto arena = Segment::Create(
          "arena", 8192 - 4096, Sharing::kReadOnlyToPeers, Prefault::kYes);
      ASSERT_TRUE(arena.ok());
      const uint32_t announce[2] = {2, 5};
      hostile_->Send(announce, sizeof(announce), {arena->fd()});
      hostile_->WritePacket(Described(kind), &wrong, sizeof(wrong));
      ExpectEnd();
      ConnectHostile();
    }
  }
}

TEST_F(HostileRingTest, AWriteOfMoreThanAMessageMayHave) {
  Packet packet;
  packet.kind = PacketKind::kWriteWithImmediate;
  packet.payload_bytes = sizeof(uint32_t);
  const uint32_t bytes = (1u << 31) + 1;
  hostile_->WritePacket(packet, &bytes, sizeof(bytes));
  ExpectEnd();
}

TEST_F(HostileRingTest, DescriptionsOfMoreThanAMessageMayHave) {
  std::vector<Descriptor> descriptors(
      kMaxSges, Descriptor{.arena = 1, .bytes = ~0u, .offset = 0});
  Packet packet;
  packet.described = true;
  packet.payload_bytes = kMaxSges * sizeof(Descriptor);
  hostile_->WritePacket(packet, descriptors.data(), packet.payload_bytes);
  ExpectEnd();
}

// As many as a packet has room for, which is more than a SEND may have SGEs.
TEST_F(HostileRingTest, MoreDescriptionsThanASendMayHavePieces) {
  constexpr size_t kMost = kMaxPayloadBytes / sizeof(Descriptor);
  static_assert(kMost > kMaxSges);
  for (const PacketKind kind : kDescribedKinds) {
    for (const size_t count : {size_t{kMaxSges} + 1, kMost}) {
      const std::vector<Descriptor> descriptors(
          count, Descriptor{.arena = 1, .bytes = 1, .offset = 0});
      hostile_->WritePacket(Described(kind, count), descriptors.data(),
                            count * sizeof(Descriptor));
      ExpectEnd();
      ConnectHostile();
    }
  }
}

// Few enough for the short way, of which the first is as it should be.
TEST_F(HostileRingTest, SeveralDescriptionsOfWhichOneIsWrong) {
  constexpr uint32_t kArena = 5;
  const Descriptor good = {.arena = kArena, .bytes = 100, .offset = 0};
  for (const PacketKind kind : kDescribedKinds) {
    for (const size_t count : {2, 3}) {
      for (const bool too_long : {false, true}) {
        const auto arena = Segment::Create(
            "arena", 4096, Sharing::kReadOnlyToPeers, Prefault::kYes);
        ASSERT_TRUE(arena.ok());
        const uint32_t announce[2] = {2, kArena};
        hostile_->Send(announce, sizeof(announce), {arena->fd()});
        std::vector<Descriptor> pieces(count, good);
        // Outside of its arena, or with the others more than the receive has.
        pieces.back().bytes = too_long ? 4096 : 100;
        pieces.back().offset = too_long ? 0 : 4096;
        hostile_->WritePacket(Described(kind, count), pieces.data(),
                              count * sizeof(Descriptor));
        if (too_long) {
          ExpectEnd(IBV_WC_LOC_LEN_ERR);
        } else {
          ExpectEnd();
        }
        ConnectHostile();
      }
    }
  }
}

TEST_F(HostileRingTest, DescriptionsThatAreNoWholeNumber) {
  Packet packet;
  packet.described = true;
  packet.payload_bytes = sizeof(Descriptor) + 1;
  hostile_->WritePacket(packet);
  ExpectEnd();
}

TEST_F(HostileRingTest, AMessageLongerThanItsReceive) {
  for (const PacketKind kind : kDescribedKinds) {
    const Descriptor piece = {.arena = 1, .bytes = 1 << 20, .offset = 0};
    hostile_->WritePacket(Described(kind), &piece, sizeof(piece));
    ExpectEnd(IBV_WC_LOC_LEN_ERR);
    ConnectHostile();
  }
}

TEST_F(HostileRingTest, AnImmediateWithoutItsLength) {
  Packet packet;
  packet.kind = PacketKind::kWriteWithImmediate;
  packet.payload_bytes = 3;
  hostile_->WritePacket(packet);
  ExpectEnd();
}

TEST_F(HostileRingTest, InvalidationOfSomebodyElsesKey) {
  Packet packet;
  packet.kind = PacketKind::kSendWithInvalidate;
  packet.immediate = victim_.mr()->rkey;
  hostile_->WritePacket(packet);
  ExpectEnd(IBV_WC_REM_INV_REQ_ERR);
  // The region still serves the good connection.
  ASSERT_EQ(good_.PostRead(good_near_, 9, good_.Sge(0, 8),
                           reinterpret_cast<uint64_t>(victim_.buffer()),
                           victim_.mr()->rkey),
            0);
  EXPECT_EQ(good_.AwaitCompletion()->status, IBV_WC_SUCCESS);
}

TEST_F(HostileRingTest, RefusalsOfWhatWasNeverSent) {
  for (uint32_t status : {0u, 5u, 9u, 13u, 9999u}) {
    Packet packet;
    packet.kind = PacketKind::kRefused;
    packet.immediate = status;
    hostile_->WritePacket(packet);
    ExpectIndifference();
    hostile_.reset();
    ExpectEnd();
    ConnectHostile();
  }
}

TEST_F(HostileRingTest, RefusalsWithAStatusThatIsNone) {
  ASSERT_EQ(victim_.PostSend(qp_, 100, victim_.Sge(0, 10)), 0);
  Packet packet;
  packet.kind = PacketKind::kRefused;
  packet.immediate = IBV_WC_SUCCESS;
  hostile_->WritePacket(packet);
  const auto completion = victim_.AwaitCompletion();
  EXPECT_EQ(completion->wr_id, 100u);
  EXPECT_EQ(completion->status, IBV_WC_REM_OP_ERR);
  ExpectEnd();
}

TEST_F(HostileRingTest, AcknowledgementsOfWhatWasNeverSent) {
  ASSERT_EQ(victim_.PostSend(qp_, 100, victim_.Sge(0, 10)), 0);
  for (uint64_t count : {uint64_t{2}, uint64_t{1} << 40, UINT64_MAX}) {
    hostile_->control().consumed.store(count);
    ExpectIndifference();
  }
  hostile_->control().consumed.store(1);
  EXPECT_EQ(victim_.AwaitCompletion()->status, IBV_WC_SUCCESS);
}

TEST_F(HostileRingTest, AnAccessFaultThatNeverHappened) {
  Packet packet;
  packet.kind = PacketKind::kAccessFault;
  packet.immediate = IBV_WC_REM_ACCESS_ERR;
  hostile_->WritePacket(packet);
  ExpectEnd();
  ibv_async_event event;
  ASSERT_EQ(victim_.device().GetAsyncEvent(&event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
  victim_.device().AckAsyncEvent(&event);
}

// The hostile side's key table: the victim is the requester now.
TEST_F(HostileRingTest, KeysThatPointAnywhere) {
  const auto arena =
      Segment::Create("arena", 4096, Sharing::kReadOnlyToPeers, Prefault::kYes);
  ASSERT_TRUE(arena.ok());
  struct Case {
    uint64_t length, offset;
    uint32_t arena;
  };
  for (const Case& wrong :
       {Case{.length = UINT64_MAX, .offset = 0, .arena = 5},
        Case{.length = 1 << 20, .offset = UINT64_MAX - 4095, .arena = 5},
        Case{.length = 1 << 20, .offset = 4000, .arena = 5}}) {
    const uint32_t announce[2] = {2, 5};
    hostile_->Send(announce, sizeof(announce), {arena->fd()});
    hostile_->control().access.store(15);
    KeyTable keys(hostile_->device().keys(), kMaxKeys);
    KeyRange range;
    range.length = wrong.length;
    range.arena = wrong.arena;
    range.arena_offset = wrong.offset;
    range.access = 15;
    range.pd = 1;
    keys.Grant(1 << 8, range);
    ASSERT_EQ(victim_.PostRead(qp_, 50, victim_.Sge(0, 8192), 0, 1 << 8), 0);
    auto completion = victim_.AwaitCompletion();
    EXPECT_EQ(completion->wr_id, 50u);
    EXPECT_EQ(completion->status, IBV_WC_REM_OP_ERR);
    ExpectEnd();
    ConnectHostile();
  }
}

TEST_F(HostileRingTest, WritesIntoMemoryThatIsSealedAgainstThem) {
  const auto arena =
      Segment::Create("arena", 4096, Sharing::kReadOnlyToPeers, Prefault::kYes);
  ASSERT_TRUE(arena.ok());
  const uint32_t announce[2] = {2, 5};
  hostile_->Send(announce, sizeof(announce), {arena->fd()});
  hostile_->control().access.store(15);
  KeyTable keys(hostile_->device().keys(), kMaxKeys);
  KeyRange range;
  range.length = 4096;
  range.arena = 5;
  range.access = 15;
  range.pd = 1;
  keys.Grant(1 << 8, range);
  ASSERT_EQ(victim_.PostWrite(qp_, 50, victim_.Sge(0, 100), 0, 1 << 8), 0);
  EXPECT_EQ(victim_.AwaitCompletion()->status, IBV_WC_REM_OP_ERR);
  ExpectEnd();
}

TEST_F(HostileRingTest, NoiseOnTheSocket) {
  const UniqueFd event(eventfd(0, EFD_CLOEXEC));
  std::minstd_rand random(1);
  for (int i = 0; i < 50; ++i) {
    SCOPED_TRACE(i);
    const int descriptors = CountDescriptors();
    const uint32_t noise[3] = {static_cast<uint32_t>(4 + random() % 5),
                               static_cast<uint32_t>(random() % 7),
                               static_cast<uint32_t>(random())};
    const size_t bytes = 1 + random() % sizeof(noise);
    if (random() % 2 == 0) {
      hostile_->Send(noise, bytes, {event.get()});
    } else {
      hostile_->Send(noise, bytes);
    }
    ExpectEnd();
    EXPECT_EQ(CountDescriptors(), descriptors);
    ConnectHostile();
  }
}

TEST_F(HostileRingTest, RingsWithoutEnd) {
  const uint32_t ring[] = {1, 0};
  for (int i = 0; i < 20; ++i) {
    while (hostile_->Send(ring, sizeof(ring)) == SendResult::kSent) {
    }
    ExpectIndifference();
  }
}

// Random words on every line, again and again: no crash, no hang.
TEST_F(HostileRingTest, RandomWords) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    for (int i = 0; i < 8; ++i) {
      for (uint32_t line = 0; line < HostileClient::kRingLines; ++line) {
        uint64_t word = random();
        // Mostly of the right lap, and often of a kind that exists.
        if (random() % 4 != 0) word = (word & ~kLapMask) | 1;
        if (random() % 2 != 0) word = (word & ~uint64_t{0xf08}) | 0x100;
        hostile_->line(line).word.store(word);
        const uint64_t payload = random();
        std::memcpy(hostile_->line(line).payload, &payload, sizeof(payload));
      }
      ibv_wc completions[16];
      ibv_poll_cq(victim_.cq(), 16, completions);
      if (qp_->state == IBV_QPS_ERR) break;
    }
    hostile_.reset();
    ASSERT_TRUE(Until([&] {
      ibv_wc completions[16];
      ibv_poll_cq(victim_.cq(), 16, completions);
      return qp_->state == IBV_QPS_ERR;
    }));
    ibv_async_event event;
    while (victim_.device().GetAsyncEvent(&event) == 0) {
      victim_.device().AckAsyncEvent(&event);
    }
    ibv_wc completion;
    while (ibv_poll_cq(victim_.cq(), 1, &completion) == 1) {
    }
    victim_.DestroyQp(qp_);
    ConnectHostile();
  }
}

}  // namespace
}  // namespace rdma::soft
