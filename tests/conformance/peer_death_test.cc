// The death of the other process, by SIGKILL, in the middle of everything: the
// survivor hears of it, every request that it posted ends, memory is its own
// again, and it connects to the next peer. Method: peers in forked processes,
// killed while idle, sending, being read, reading and writing.
#include <poll.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "tests/conformance/fixture.h"
#include "tests/conformance/peer_process.h"

namespace rdma::conformance {
namespace {

using Role = PeerProcess::Role;

class PeerDeathTest : public ConformanceTest {
 protected:
  static constexpr size_t kBytes = size_t{2} << 20;

  // Devices are opened once the peers have been forked.
  void SetUp() override {}
  void TearDown() override {
    buffer_ = Region();
    ConformanceTest::TearDown();
    peer_.reset();
  }

  void StartPeer(Role role) {
    peer_ = std::make_unique<PeerProcess>(role);
    ASSERT_NO_FATAL_FAILURE(ConformanceTest::SetUp());
    buffer_ = client().Allocate(kBytes);
    ASSERT_FALSE(buffer_.empty());
    ASSERT_NO_FATAL_FAILURE(ConnectTo(*peer_));
  }

  // Connects a new QP, offers it the buffer, and keeps what it offers.
  void ConnectTo(const PeerProcess& peer) {
    qp_ = client().CreateQp({});
    ASSERT_NE(qp_, nullptr);
    const MemoryOffer mine = {
        .addr = buffer_.addr(), .rkey = buffer_.rkey(), .bytes = kBytes};
    absl::StatusOr<CmId*> id = client().manager().Connect(
        peer.address(), qp_,
        {.private_data = mine.ToPrivateData(), .rnr_retry_count = 7},
        pump().patience(), nullptr);
    ASSERT_TRUE(id.ok()) << id.status();
    id_ = *id;
    std::optional<CmEvent> event = pump().Await(&client().manager());
    ASSERT_TRUE(event.has_value());
    ASSERT_EQ(event->type, CmEvent::Type::kEstablished) << event->status;
    offer_ = MemoryOffer::FromPrivateData(event->private_data);
  }

  // What a program does when its peer goes, and what it may rely on.
  void ExpectDisconnected() {
    const std::optional<CmEvent> event = pump().Await(&client().manager());
    ASSERT_TRUE(event.has_value());
    EXPECT_EQ(event->type, CmEvent::Type::kDisconnected);
    EXPECT_EQ(event->id, id_);
    client().manager().Disconnect(id_);
    EXPECT_EQ(StateOf(client().device(), qp_), IBV_QPS_ERR);
  }

  void PostReceives(uint64_t count) {
    for (uint64_t id = 0; id < count; ++id) PostOneReceive(id);
  }
  void PostOneReceive(uint64_t id) {
    ASSERT_EQ(
        0, PostReceive(qp_, {.wr_id = id,
                             .sges = {buffer_.sge(1000 * (id % 64), 1000)}}));
  }

  WorkRequest ReadOffer(uint64_t wr_id) {
    return ReadWr(wr_id, offer_.addr, offer_.rkey).Sge(buffer_.sge());
  }

  std::unique_ptr<PeerProcess> peer_;
  Region buffer_;
  ibv_qp* qp_ = nullptr;
  CmId* id_ = nullptr;
  MemoryOffer offer_;
};
CONFORMANCE_SUITE_ONCE(PeerDeathTest);

TEST_P(PeerDeathTest, WhileIdle) {
  ASSERT_NO_FATAL_FAILURE(StartPeer(Role::kIdle));
  PostReceives(5);
  peer_->Kill();
  ExpectDisconnected();
  for (uint64_t id = 0; id < 5; ++id) {
    EXPECT_THAT(Await(client().recv_cq()), Flushed(id));
  }
}

// The survivor sleeps on the descriptor of its connection manager alone.
TEST_P(PeerDeathTest, WakesASleepingSurvivor) {
  ASSERT_NO_FATAL_FAILURE(StartPeer(Role::kIdle));
  ConnectionManager& manager = client().manager();
  while (manager.GetEvent().has_value()) {
  }
  peer_->Kill();
  pollfd descriptor = {.fd = manager.fd(), .events = POLLIN};
  std::optional<CmEvent> event;
  EXPECT_TRUE(pump().Until(
      [&] {
        if (poll(&descriptor, 1, 10) == 1) event = manager.GetEvent();
        return event.has_value();
      },
      "the descriptor to wake"));
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->type, CmEvent::Type::kDisconnected);
}

// Requests posted to a dead peer, before anybody has said that it is dead.
TEST_P(PeerDeathTest, RequestsToADeadPeerEnd) {
  ASSERT_NO_FATAL_FAILURE(StartPeer(Role::kServe));
  peer_->Kill();
  for (uint64_t id = 0; id < 20; id += 2) {
    ASSERT_EQ(0, Post(qp_, SendWr(id).Sge(buffer_.sge(0, 100))));
    ASSERT_EQ(0, Post(qp_, ReadOffer(id + 1)));
  }
  ExpectDisconnected();
  for (uint64_t id = 0; id < 20; ++id) {
    const ibv_wc wc = Await(client().send_cq());
    EXPECT_EQ(wc.wr_id, id);
    EXPECT_NE(wc.status, IBV_WC_SUCCESS);
  }
}

// What came before it died is whole and in order, then comes the flush.
TEST_P(PeerDeathTest, WhileItSends) {
  ASSERT_NO_FATAL_FAILURE(StartPeer(Role::kSend));
  PostReceives(64);
  Region expected = client().Allocate(size_t{4} << 20);
  ASSERT_FALSE(expected.empty());
  expected.Fill(PeerProcess::kFill);
  uint64_t received = 0;
  bool flushed = false;
  const auto take = [&](const ibv_wc& wc) {
    if (wc.status != IBV_WC_SUCCESS) {
      EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
      flushed = true;
      return;
    }
    ASSERT_FALSE(flushed) << "a message after the flush";
    ASSERT_EQ(wc.wr_id, received);
    ASSERT_EQ(wc.imm_data, htonl(received));
    ASSERT_EQ(wc.byte_len, PeerProcess::kMessageBytes);
    ASSERT_EQ(buffer_.bytes(1000 * (received % 64), wc.byte_len),
              expected.bytes(received % 1000, wc.byte_len));
    ++received;
  };
  while (received < 500 && !HasFailure()) {
    take(Await(client().recv_cq()));
    PostOneReceive(received + 63);
  }
  peer_->Kill();
  ExpectDisconnected();
  // 64 receives were posted ahead all the time.
  const uint64_t end = received + 64;
  for (uint64_t id = received; id < end && !HasFailure(); ++id) {
    take(Await(client().recv_cq()));
  }
}

// The READs that ended well brought the right bytes; the others failed; none
// hangs, although the memory's owner is gone.
TEST_P(PeerDeathTest, WhileItIsRead) {
  ASSERT_NO_FATAL_FAILURE(StartPeer(Role::kServe));
  Region expected = client().Allocate(size_t{4} << 20);
  ASSERT_FALSE(expected.empty());
  expected.Fill(PeerProcess::kFill);
  uint64_t posted = 0;
  for (; posted < 8; ++posted) ASSERT_EQ(0, Post(qp_, ReadOffer(posted)));
  for (uint64_t id = 0; id < 20; ++id, ++posted) {
    ASSERT_THAT(Await(client().send_cq()), Succeeded(id, IBV_WC_RDMA_READ));
    ASSERT_TRUE(buffer_.bytes(0, kBytes) == expected.bytes(0, kBytes));
    ASSERT_EQ(0, Post(qp_, ReadOffer(posted)));
  }
  peer_->Kill();
  bool failed = false;
  ExpectDisconnected();
  for (uint64_t id = 20; id < posted; ++id) {
    const ibv_wc wc = Await(client().send_cq());
    EXPECT_EQ(wc.wr_id, id);
    EXPECT_FALSE(failed && wc.status == IBV_WC_SUCCESS);
    failed = failed || wc.status != IBV_WC_SUCCESS;
  }
}

// The memory that it was reading can be taken back at once.
TEST_P(PeerDeathTest, WhileItReads) {
  ASSERT_NO_FATAL_FAILURE(StartPeer(Role::kRead));
  pump().TurnFor(absl::Milliseconds(30));
  peer_->Kill();
  EXPECT_EQ(0, buffer_.Deregister());
  ExpectDisconnected();
}

TEST_P(PeerDeathTest, WhileItWrites) {
  ASSERT_NO_FATAL_FAILURE(StartPeer(Role::kWrite));
  EXPECT_TRUE(pump().Until(
      [&] { return buffer_.data()[kBytes - 1] != 0 || buffer_.data()[0] != 0; },
      "the peer's bytes"));
  peer_->Kill();
  EXPECT_EQ(0, buffer_.Deregister());
  ExpectDisconnected();
  // The memory is this process's again: nobody writes to it any more.
  buffer_.Clear();
  pump().TurnFor(pump().silence());
  EXPECT_EQ(std::count(buffer_.data(), buffer_.data() + kBytes, 0),
            static_cast<ptrdiff_t>(kBytes));
}

// One peer after another, and nothing is left of the dead.
TEST_P(PeerDeathTest, TheNextPeerIsServed) {
  std::vector<std::unique_ptr<PeerProcess>> peers;
  for (int i = 0; i < 5; ++i) {
    peers.push_back(std::make_unique<PeerProcess>(Role::kServe));
  }
  ASSERT_NO_FATAL_FAILURE(ConformanceTest::SetUp());
  buffer_ = client().Allocate(kBytes);
  ASSERT_FALSE(buffer_.empty());
  for (std::unique_ptr<PeerProcess>& peer : peers) {
    ASSERT_NO_FATAL_FAILURE(ConnectTo(*peer));
    ASSERT_EQ(0, Post(qp_, ReadOffer(1)));
    EXPECT_THAT(Await(client().send_cq()), Succeeded(1));
    peer->Kill();
    ExpectDisconnected();
    client().DestroyQp(qp_);
    client().manager().Destroy(id_);
  }
}

// The other connections of a process do not care.
TEST_P(PeerDeathTest, OtherConnectionsGoOn) {
  PeerProcess survivor(Role::kServe);
  ASSERT_NO_FATAL_FAILURE(StartPeer(Role::kServe));
  ibv_qp* dying = qp_;
  CmId* dying_id = id_;
  ASSERT_NO_FATAL_FAILURE(ConnectTo(survivor));
  peer_->Kill();
  ASSERT_EQ(0, Post(dying, ReadOffer(1)));
  for (uint64_t id = 10; id < 30; ++id) {
    ASSERT_EQ(0, Post(qp_, ReadOffer(id)));
  }
  client().manager().Disconnect(dying_id);
  uint64_t next = 10;
  for (const ibv_wc& wc : Await(client().send_cq(), 21)) {
    if (wc.wr_id == 1) {
      EXPECT_NE(wc.status, IBV_WC_SUCCESS);
    } else {
      EXPECT_THAT(wc, Succeeded(next++));
    }
  }
  EXPECT_EQ(next, 30u);
}

}  // namespace
}  // namespace rdma::conformance
