// Goal: packets pass the ring in order and whole, whatever their sizes and
// laps, never more than there is room for; memory is resolved within its bounds
// only; and what a peer writes against the rules is seen as that. Method: two
// links of this process on one socket pair; the peer's memory is changed under
// them where the peer is to misbehave.
#include "rdma_transport/software/shm/shm_link.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace rdma::soft {
namespace {

constexpr uint32_t kLines = 64;
constexpr uint32_t kFirstQp = 100;

class ShmLinkTest : public testing::Test {
 protected:
  // One side: its device, its memory, its link.
  struct Side {
    std::unique_ptr<DeviceSegment> device;
    ArenaTable arenas;
    MappingCache cache;
    std::unique_ptr<ShmLink> link;
    LinkControl* control = nullptr;  // its own, which the other side reads
    RingLine* lines = nullptr;
  };

  void SetUp() override {
    int fds[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    absl::StatusOr<ShmLink::Local> locals[2] = {
        ShmLink::Local::Create(kFirstQp, kLines, 15),
        ShmLink::Local::Create(kFirstQp + 1, kLines, 15)};
    Side* const sides[2] = {&a_, &b_};
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(locals[i].ok());
      sides[i]->device =
          std::make_unique<DeviceSegment>(*DeviceSegment::Create());
      std::byte* const base = locals[i]->segment.base();
      sides[i]->control = reinterpret_cast<LinkControl*>(base);
      sides[i]->lines = reinterpret_cast<RingLine*>(base + sizeof(LinkControl));
    }
    ShmLink::Peer peers[2];
    for (int i = 0; i < 2; ++i) {
      Side& other = *sides[1 - i];
      peers[i].device = *sides[i]->cache.Map(other.device->fd(), {});
      peers[i].segment = *sides[i]->cache.Map(locals[1 - i]->segment.fd(), {});
      peers[i].ring_lines = kLines;
      peers[i].qp_num = kFirstQp + 1 - i;
      peers[i].recv_cq_line = 1;
      peers[i].send_cq_line = 2;
    }
    for (int i = 0; i < 2; ++i) {
      sides[i]->link = std::make_unique<ShmLink>(
          UniqueFd(fds[i]), *std::move(locals[i]), std::move(peers[i]),
          /*asymmetric=*/false, &sides[i]->arenas, &sides[i]->cache);
    }
  }

  static uint64_t Send(Side& from, const std::string& payload,
                       PacketKind kind = PacketKind::kSend,
                       uint32_t immediate = 0) {
    Packet packet;
    packet.kind = kind;
    packet.immediate = immediate;
    packet.payload_bytes = static_cast<uint16_t>(payload.size());
    const ConstBytes part = {reinterpret_cast<const std::byte*>(payload.data()),
                             static_cast<uint32_t>(payload.size())};
    return from.link->Send(packet, &part, 1);
  }

  static std::string Receive(Side& to, Packet* packet) {
    EXPECT_TRUE(to.link->HasIncoming());
    EXPECT_EQ(to.link->Peek(packet), Link::PeekResult::kPacket);
    std::string payload(packet->payload_bytes, '\0');
    to.link->Read(0, payload.data(), packet->payload_bytes);
    to.link->Consume();
    return payload;
  }

  // Makes the first line of the first packet from a to b.
  void WriteWord(uint64_t word) {
    a_.lines[FirstRingLineOf(kFirstQp)].word.store(word,
                                                   std::memory_order_release);
  }

  Side a_;
  Side b_;
};

TEST_F(ShmLinkTest, CarriesAPacket) {
  EXPECT_FALSE(b_.link->HasIncoming());
  EXPECT_NE(Send(a_, "hello", PacketKind::kSendWithImmediate, 77), 0u);
  Packet packet;
  EXPECT_EQ(Receive(b_, &packet), "hello");
  EXPECT_EQ(packet.kind, PacketKind::kSendWithImmediate);
  EXPECT_EQ(packet.immediate, 77u);
  EXPECT_FALSE(b_.link->HasIncoming());
}

TEST_F(ShmLinkTest, AllSizesPassManyLaps) {
  std::minstd_rand random(1);
  for (int i = 0; i < 20'000; ++i) {
    const std::string payload(random() % (kMaxPayloadBytes + 1),
                              static_cast<char>(i));
    ASSERT_NE(Send(a_, payload, PacketKind::kSend, i), 0u);
    Packet packet;
    ASSERT_EQ(Receive(b_, &packet), payload);
    ASSERT_EQ(packet.immediate, static_cast<uint32_t>(i));
    b_.link->Acknowledge();
  }
}

// By the shortest way that there is, as requesters do.
bool SendSmall(Link& link, uint32_t immediate, const std::byte* data,
               uint32_t bytes) {
  if (bytes > kShortBytes || !link.MayPutShort()) {
    return link.SendSmall(immediate, data, bytes);
  }
  if (link.PutShort(immediate, data, bytes)) link.Wake(/*solicited=*/false);
  return true;
}

TEST_F(ShmLinkTest, WhatIsNotTakenYetStaysAsItWasSent) {
  std::minstd_rand random(1);
  std::deque<std::string> on_the_way;
  size_t most_on_the_way = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string payload(random() % (kMaxPayloadBytes + 1),
                              static_cast<char>(i));
    // Either way fetches lines back, one of them by stores.
    a_.link->SetSeveralTaken(random() % 2 == 0);
    if (SendSmall(*a_.link, static_cast<uint32_t>(i),
                  reinterpret_cast<const std::byte*>(payload.data()),
                  static_cast<uint32_t>(payload.size())) ||
        Send(a_, payload, PacketKind::kSendWithImmediate, i) != 0) {
      on_the_way.push_back(payload);
    }
    most_on_the_way = std::max(most_on_the_way, on_the_way.size());
    for (auto left = random() % 4; left != 0 && !on_the_way.empty(); --left) {
      Packet packet;
      ASSERT_EQ(Receive(b_, &packet), on_the_way.front());
      on_the_way.pop_front();
    }
    if (random() % 2 == 0) b_.link->Acknowledge();
  }
  EXPECT_GT(most_on_the_way, 3u);
}

// Small packets have a way of their own on either side, which keeps in step
// with the other one.
TEST_F(ShmLinkTest, SmallPacketsOfAllSizesPassManyLaps) {
  constexpr std::byte kGuard{0xa5};
  std::minstd_rand random(1);
  std::vector<std::byte> payload(kMaxPayloadBytes);
  std::vector<std::byte> out(kMaxPayloadBytes + 2);
  for (uint32_t i = 0; i < 20'000; ++i) {
    // As often short ones, of a line or two, as others.
    const auto bytes = static_cast<uint32_t>(
        random() % ((i % 2 == 0 ? kShortBytes : kMaxPayloadBytes) + 1));
    for (uint32_t at = 0; at < bytes; ++at) {
      payload[at] = static_cast<std::byte>(i + at * 7);
    }
    a_.link->SetSeveralTaken(random() % 2 == 0);
    if (!SendSmall(*a_.link, i, payload.data(), bytes)) {
      Packet packet;
      packet.kind = PacketKind::kSendWithImmediate;
      packet.immediate = i;
      packet.payload_bytes = static_cast<uint16_t>(bytes);
      const ConstBytes part = {payload.data(), bytes};
      ASSERT_NE(a_.link->Send(packet, &part, 1), 0u);
    }
    uint64_t word;
    ASSERT_TRUE(b_.link->PeekSmall(&word));
    ASSERT_EQ(ImmediateOf(word), i);
    ASSERT_EQ(PayloadBytesOf(word), bytes);
    std::fill(out.begin(), out.end(), kGuard);
    if (random() % 4 != 0) {
      b_.link->TakeSmall(out.data() + 1, bytes);
      b_.link->AcknowledgeSmall();
    } else {
      Packet packet;
      ASSERT_EQ(b_.link->Peek(&packet), Link::PeekResult::kPacket);
      b_.link->Read(0, out.data() + 1, bytes);
      b_.link->Consume();
      b_.link->Acknowledge();
    }
    ASSERT_TRUE(
        std::equal(payload.begin(), payload.begin() + bytes, out.begin() + 1));
    ASSERT_EQ(out[0], kGuard);
    ASSERT_EQ(out[bytes + 1], kGuard) << "no byte more than were sent";
    ASSERT_FALSE(b_.link->HasIncoming());
  }
}

TEST_F(ShmLinkTest, PartsAreOnePayload) {
  const std::string first(70, 'a'), second(3, 'b'), third(100, 'c');
  std::vector<ConstBytes> parts;
  for (const std::string* text : {&first, &second, &third}) {
    parts.push_back({reinterpret_cast<const std::byte*>(text->data()),
                     static_cast<uint32_t>(text->size())});
  }
  Packet packet;
  packet.payload_bytes = 173;
  ASSERT_NE(a_.link->Send(packet, parts.data(), 3), 0u);
  EXPECT_EQ(Receive(b_, &packet), first + second + third);
}

TEST_F(ShmLinkTest, PiecesOfAPayloadCanBeRead) {
  std::string payload(300, '\0');
  for (size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<char>(i);
  Send(a_, payload);
  Packet packet;
  ASSERT_EQ(b_.link->Peek(&packet), Link::PeekResult::kPacket);
  for (uint32_t at : {0u, 1u, 55u, 56u, 57u, 112u, 250u}) {
    std::string piece(50, '\0');
    b_.link->Read(at, piece.data(), 50);
    EXPECT_EQ(piece, payload.substr(at, 50)) << at;
  }
}

TEST_F(ShmLinkTest, AFullRingTakesNoMoreUntilItIsAcknowledged) {
  int sent = 0;
  while (Send(a_, "x") != 0) ++sent;
  EXPECT_GT(sent, 32);
  EXPECT_LT(sent, static_cast<int>(kLines));
  Packet packet;
  Receive(b_, &packet);
  EXPECT_EQ(Send(a_, "x"), 0u) << "consumed, and not acknowledged";
  b_.link->Acknowledge();
  EXPECT_NE(Send(a_, "x"), 0u);
}

TEST_F(ShmLinkTest, TheLastWordsFindRoomInAFullRing) {
  while (Send(a_, "x") != 0) {
  }
  EXPECT_NE(Send(a_, "", PacketKind::kRefused), 0u);
  EXPECT_NE(Send(a_, "", PacketKind::kAccessFault), 0u);
  EXPECT_NE(Send(a_, "", PacketKind::kGone), 0u);
}

TEST_F(ShmLinkTest, AcknowledgementsCountPackets) {
  const uint64_t first = Send(a_, std::string(200, 'x'));
  const uint64_t second = Send(a_, "y");
  EXPECT_LT(first, second);
  EXPECT_EQ(a_.link->acknowledged(), 0u);
  Packet packet;
  Receive(b_, &packet);
  b_.link->Acknowledge();
  EXPECT_EQ(a_.link->acknowledged(), first);
  Receive(b_, &packet);
  b_.link->Acknowledge();
  EXPECT_EQ(a_.link->acknowledged(), second);
}

TEST_F(ShmLinkTest, ImpossibleAcknowledgementsAreNone) {
  const uint64_t position = Send(a_, "x");
  b_.control->consumed.store(position + 1);
  EXPECT_EQ(a_.link->acknowledged(), 0u) << "more than was sent";
  b_.control->consumed.store(UINT64_MAX);
  EXPECT_EQ(a_.link->acknowledged(), 0u);
  b_.control->consumed.store(position);
  EXPECT_EQ(a_.link->acknowledged(), position);
  b_.control->consumed.store(0);
  EXPECT_EQ(a_.link->acknowledged(), position) << "it does not go back";
}

TEST_F(ShmLinkTest, LinesThatBeginNoPacketAreViolations) {
  Packet sent;
  for (uint8_t kind : {0, 9, 15}) {
    sent.kind = static_cast<PacketKind>(kind);
    WriteWord(EncodeWord(sent, 1));
    Packet packet;
    EXPECT_EQ(b_.link->Peek(&packet), Link::PeekResult::kViolation)
        << static_cast<int>(kind);
  }
  sent.kind = PacketKind::kSend;
  sent.payload_bytes = kMaxPayloadBytes + 1;
  WriteWord(EncodeWord(sent, 1));
  Packet packet;
  EXPECT_EQ(b_.link->Peek(&packet), Link::PeekResult::kViolation);
}

TEST_F(ShmLinkTest, WordsOfOtherLapsAreNothing) {
  Packet sent;
  for (uint64_t lap : {0, 2, 255}) {
    WriteWord(EncodeWord(sent, lap));
    EXPECT_FALSE(b_.link->HasIncoming());
    Packet packet;
    EXPECT_EQ(b_.link->Peek(&packet), Link::PeekResult::kNothing);
  }
}

// --- Memory ------------------------------------------------------------------

TEST_F(ShmLinkTest, AnnouncedArenasResolveWithinTheirBounds) {
  std::byte* const memory = *a_.arenas.Allocate(8192, MemoryUse::kLocal);
  const uint32_t id = a_.arenas.Find(memory, 1)->id();
  std::byte* address;
  EXPECT_EQ(b_.link->Resolve(id, 0, 1, false, &address), Link::Access::kNotYet);
  EXPECT_TRUE(a_.link->Announce(id));
  ASSERT_EQ(b_.link->Resolve(id, 0, 8192, false, &address), Link::Access::kOk);
  memory[100] = std::byte{9};
  EXPECT_EQ(address[100], std::byte{9});
  EXPECT_EQ(b_.link->Resolve(id, 8191, 1, false, &address), Link::Access::kOk);
  EXPECT_EQ(b_.link->Resolve(id, 8192, 0, false, &address), Link::Access::kOk);
  for (const auto& [offset, bytes] :
       std::vector<std::pair<uint64_t, uint64_t>>{{8192, 1},
                                                  {0, 8193},
                                                  {4096, UINT64_MAX},
                                                  {UINT64_MAX, 1},
                                                  {UINT64_MAX, UINT64_MAX}}) {
    EXPECT_EQ(b_.link->Resolve(id, offset, bytes, false, &address),
              Link::Access::kInvalid)
        << offset << " + " << bytes;
  }
  EXPECT_EQ(b_.link->Resolve(id, 0, 1, true, &address), Link::Access::kInvalid)
      << "peers only read this one";
}

TEST_F(ShmLinkTest, WritableArenasResolveForWriting) {
  std::byte* const memory =
      *a_.arenas.Allocate(4096, MemoryUse::kRemoteWritable);
  const uint32_t id = a_.arenas.Find(memory, 1)->id();
  EXPECT_TRUE(a_.link->Announce(id));
  std::byte* address;
  ASSERT_EQ(b_.link->Resolve(id, 0, 1, true, &address), Link::Access::kOk);
  address[0] = std::byte{3};
  EXPECT_EQ(memory[0], std::byte{3});
}

TEST_F(ShmLinkTest, ArenasOfJointReadsResolveForWritingOnTheirLinkOnly) {
  std::byte* const memory = *a_.arenas.Allocate(4096, MemoryUse::kJointReads);
  std::byte* const others = *a_.arenas.Allocate(4096, MemoryUse::kJointReads);
  const std::shared_ptr<Arena> arena = a_.arenas.Find(memory, 1);
  const std::shared_ptr<Arena> other = a_.arenas.Find(others, 1);
  ASSERT_TRUE(arena->GiveTo(a_.link->serial()));
  ASSERT_TRUE(other->GiveTo(b_.link->serial()));
  EXPECT_FALSE(arena->GiveTo(b_.link->serial()));
  EXPECT_TRUE(a_.link->Announce(arena->id()));
  EXPECT_TRUE(a_.link->Announce(other->id()));
  std::byte* address;
  ASSERT_EQ(b_.link->Resolve(arena->id(), 0, 1, true, &address),
            Link::Access::kOk);
  address[0] = std::byte{3};
  EXPECT_EQ(memory[0], std::byte{3});
  EXPECT_EQ(b_.link->Resolve(other->id(), 0, 1, true, &address),
            Link::Access::kInvalid);
  others[0] = std::byte{4};
  ASSERT_EQ(b_.link->Resolve(other->id(), 0, 1, false, &address),
            Link::Access::kOk);
  EXPECT_EQ(address[0], std::byte{4});
}

TEST_F(ShmLinkTest, WithdrawnArenasAreGone) {
  std::byte* const memory = *a_.arenas.Allocate(4096, MemoryUse::kLocal);
  const uint32_t id = a_.arenas.Find(memory, 1)->id();
  a_.link->Announce(id);
  std::byte* address;
  ASSERT_EQ(b_.link->Resolve(id, 0, 1, false, &address), Link::Access::kOk);
  a_.arenas.Remove(memory);
  a_.link->Withdraw(id);
  b_.link->Service();
  EXPECT_EQ(b_.link->Resolve(id, 0, 1, false, &address), Link::Access::kNotYet);
}

TEST_F(ShmLinkTest, AnnouncementsWaitForRoomAndStayInOrder) {
  // Nobody reads: the socket fills with rings.
  const uint32_t ring[] = {1, 0};
  while (SendMessage(a_.link->fd(), ring, sizeof(ring), {}) ==
         SendResult::kSent) {
  }
  std::vector<uint32_t> ids;
  for (int i = 0; i < 3; ++i) {
    std::byte* const memory = *a_.arenas.Allocate(4096, MemoryUse::kLocal);
    memory[0] = std::byte(i);
    ids.push_back(a_.arenas.Find(memory, 1)->id());
    EXPECT_FALSE(a_.link->Announce(ids.back()));
  }
  b_.link->Service();
  b_.link->Service();
  // Who sleeps over them is woken when there is room.
  pollfd sleeper = {.fd = a_.link->fd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&sleeper, 1, 0), 1);
  a_.link->Service();
  b_.link->Service();
  a_.link->Service();
  EXPECT_EQ(poll(&sleeper, 1, 0), 0) << "once";
  for (int i = 0; i < 3; ++i) {
    std::byte* address;
    ASSERT_EQ(b_.link->Resolve(ids[i], 0, 1, false, &address),
              Link::Access::kOk);
    EXPECT_EQ(address[0], std::byte(i));
    EXPECT_TRUE(a_.link->Announce(ids[i]));
  }
}

TEST_F(ShmLinkTest, AnnouncementsThatWaitGoWithTheirArena) {
  const uint32_t ring[] = {1, 0};
  while (SendMessage(a_.link->fd(), ring, sizeof(ring), {}) ==
         SendResult::kSent) {
  }
  std::byte* const memory = *a_.arenas.Allocate(4096, MemoryUse::kLocal);
  const uint32_t id = a_.arenas.Find(memory, 1)->id();
  EXPECT_FALSE(a_.link->Announce(id));
  a_.link->Withdraw(id);
  for (int turn = 0; turn < 8; ++turn) {
    b_.link->Service();
    a_.link->Service();
  }
  std::byte* address;
  EXPECT_EQ(b_.link->Resolve(id, 0, 1, false, &address), Link::Access::kNotYet);
}

// What a device lets its owner allocate, its peers take.
TEST_F(ShmLinkTest, AllArenasOfADeviceFit) {
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_max < kMaxArenas + 100) {
    GTEST_SKIP() << "each arena is a descriptor, and so many are not allowed";
  }
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  std::byte* address;
  uint32_t id = 0;
  size_t count = 0;
  for (;; ++count) {
    const absl::StatusOr<std::byte*> memory =
        a_.arenas.Allocate(4096, MemoryUse::kLocal);
    if (!memory.ok()) break;
    id = a_.arenas.Find(*memory, 1)->id();
    ASSERT_TRUE(a_.link->Announce(id));
    ASSERT_EQ(b_.link->Resolve(id, 0, 4096, false, &address), Link::Access::kOk)
        << count;
  }
  EXPECT_EQ(count, kMaxArenas);
  // One goes, one comes.
  std::byte* const last = a_.arenas.FindById(id)->base();
  a_.arenas.Remove(last);
  a_.link->Withdraw(id);
  std::byte* const next = *a_.arenas.Allocate(4096, MemoryUse::kLocal);
  id = a_.arenas.Find(next, 1)->id();
  ASSERT_TRUE(a_.link->Announce(id));
  EXPECT_EQ(b_.link->Resolve(id, 0, 1, false, &address), Link::Access::kOk);
}

TEST_F(ShmLinkTest, APeersWritingCanBeSeen) {
  EXPECT_EQ(a_.link->PeersWritingKey(), 0u);
  b_.link->PublishWriting(5);
  EXPECT_EQ(a_.link->PeersWritingKey(), 5u);
  b_.link->PublishWriting(0);
  EXPECT_EQ(a_.link->PeersWritingKey(), 0u);
}

// --- Waking ------------------------------------------------------------------

TEST_F(ShmLinkTest, RingsOnceForEachArming) {
  CqLine* const line = b_.device->cq_line(1);
  Send(a_, "x");
  a_.link->Wake(false);
  b_.link->Service();
  EXPECT_FALSE(b_.link->TakeRing()) << "not armed";
  for (uint32_t number : {2u, 4u}) {
    line->armed.store(number);
    for (int i = 0; i < 3; ++i) {
      Send(a_, "x");
      a_.link->Wake(false);
      b_.link->Service();
      EXPECT_EQ(b_.link->TakeRing(), i == 0);
    }
  }
}

TEST_F(ShmLinkTest, SolicitedOnlyIsRungForSolicitedOnly) {
  b_.device->cq_line(1)->armed.store(2 | kSolicitedOnly);
  a_.link->Wake(false);
  b_.link->Service();
  EXPECT_FALSE(b_.link->TakeRing());
  a_.link->Wake(true);
  b_.link->Service();
  EXPECT_TRUE(b_.link->TakeRing());
}

TEST_F(ShmLinkTest, AcknowledgementsRingForThoseWhoWaitForThem) {
  a_.device->cq_line(2)->armed.store(2);  // a's send CQ
  const uint64_t first = Send(a_, "x");
  const uint64_t second = Send(a_, "x");
  a_.link->WantAcknowledgement(second);
  Packet packet;
  Receive(b_, &packet);
  b_.link->Acknowledge();
  a_.link->Service();
  EXPECT_EQ(a_.link->acknowledged(), first);
  EXPECT_FALSE(a_.link->TakeRing());
  Receive(b_, &packet);
  b_.link->Acknowledge();
  a_.link->Service();
  EXPECT_TRUE(a_.link->TakeRing());
}

// --- Life --------------------------------------------------------------------

TEST_F(ShmLinkTest, AHangUpIsSeenAndWhatCameBeforeStays) {
  Send(a_, "last");
  a_.link->MarkClosed();
  a_.link->HangUp();
  EXPECT_FALSE(b_.link->hung_up());
  EXPECT_TRUE(b_.link->IsPeerGone());
  b_.link->Service();
  EXPECT_TRUE(b_.link->hung_up());
  EXPECT_TRUE(b_.link->PeerClosed());
  Packet packet;
  EXPECT_EQ(Receive(b_, &packet), "last");
}

// Whoever else saw the end first, as the connection manager may.
TEST_F(ShmLinkTest, AnAnnouncementOfBeforeTheHangUpCounts) {
  std::byte* const memory = *a_.arenas.Allocate(4096, MemoryUse::kLocal);
  const uint32_t id = a_.arenas.Find(memory, 1)->id();
  ASSERT_TRUE(a_.link->Announce(id));
  a_.link->HangUp();
  b_.link->MarkHungUp();
  std::byte* address;
  EXPECT_EQ(b_.link->Resolve(id, 0, 4096, false, &address), Link::Access::kOk);
  EXPECT_EQ(b_.link->Resolve(id + 1, 0, 1, false, &address),
            Link::Access::kInvalid);
}

TEST_F(ShmLinkTest, OurOwnHangUpIsNotThePeers) {
  a_.link->HangUp();
  EXPECT_FALSE(a_.link->IsPeerGone());
  EXPECT_TRUE(b_.link->IsPeerGone());
  b_.link->HangUp();
  EXPECT_TRUE(b_.link->IsPeerGone());
}

TEST_F(ShmLinkTest, TellsItsObserver) {
  class Observer final : public HangUpObserver {
   public:
    void OnHangUp() override { ++calls; }
    int calls = 0;
  } observer;
  b_.link->SetObserver(&observer);
  a_.link.reset();
  b_.link->Service();
  EXPECT_EQ(observer.calls, 1);
  b_.link->SetObserver(nullptr);
}

class ShmLinkNonsenseTest : public ShmLinkTest,
                            public testing::WithParamInterface<int> {};

// Each ends the connection, and nothing else.
TEST_P(ShmLinkNonsenseTest, OnTheSocketEndsTheLink) {
  const uint32_t unknown[] = {99, 1};
  const uint32_t announcement[] = {2, 5};
  switch (GetParam()) {
    case 0:
      SendMessage(a_.link->fd(), unknown, sizeof(unknown), {});
      break;
    case 1:
      SendMessage(a_.link->fd(), "short", 5, {});
      break;
    case 2:  // without memory
      SendMessage(a_.link->fd(), announcement, sizeof(announcement), {});
      break;
    case 3:  // with what is no memory
      SendMessage(a_.link->fd(), announcement, sizeof(announcement),
                  {STDERR_FILENO});
      break;
    case 4:
      SendMessage(a_.link->fd(), announcement, sizeof(announcement),
                  {STDERR_FILENO, STDERR_FILENO});
      break;
  }
  b_.link->Service();
  EXPECT_TRUE(b_.link->hung_up());
  EXPECT_TRUE(a_.link->IsPeerGone());
}

INSTANTIATE_TEST_SUITE_P(Kinds, ShmLinkNonsenseTest, testing::Range(0, 5));

}  // namespace
}  // namespace rdma::soft
