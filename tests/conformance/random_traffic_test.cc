// Random mixes of SEND, READ, WRITE and WRITE_WITH_IMM over several
// connections, both ways at once, with every byte and the order of every
// completion checked. Method: a model keeps, for each direction of each
// connection, what is under way; the device must agree with it to the last
// byte.
//
// The seed is printed. To run the same traffic again:
//   bazel test //tests/conformance:random_traffic_software
//       --test_env=CONFORMANCE_SEED=123
#include <algorithm>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "tests/conformance/fixture.h"

namespace rdma::conformance {
namespace {

constexpr size_t kConnections = 4;
constexpr int kRequests = 4000;
constexpr uint32_t kQueueDepth = 16;
constexpr uint32_t kReceives = 8;
constexpr size_t kMaxBytes = 20000;

uint64_t ChooseSeed() {
  if (const char* given = std::getenv("CONFORMANCE_SEED")) {
    return std::strtoull(given, nullptr, 10);
  }
  return std::random_device()();
}

// A request under way, and what it is to bring about.
struct Pending {
  uint64_t wr_id;
  bool signaled;
  ibv_wc_opcode opcode;
  // The bytes that must lie at `target` of `owner` once it is done; READ and
  // WRITE only.
  const Region* owner = nullptr;
  size_t target = 0;
  std::string bytes;
};

// A message on its way to a receive.
struct Message {
  bool write = false;
  size_t bytes = 0;
  __be32 imm = 0;
  bool has_imm = false;
  std::string content;
};

// One direction of one connection: who posts here, and who receives.
struct Direction {
  ibv_qp* from = nullptr;
  ibv_qp* to = nullptr;
  ibv_cq* send_cq = nullptr;
  ibv_cq* recv_cq = nullptr;
  // Sources never change; a slot of a target is written by one request at a
  // time: slot i belongs to the i-th place of the queue.
  const Region* source = nullptr;         // at the sender
  const Region* reads = nullptr;          // at the sender: where READs go
  const Region* remote_source = nullptr;  // at the receiver
  const Region* writes = nullptr;         // at the receiver: where WRITEs go
  const Region* receives = nullptr;       // at the receiver: where SENDs go
  std::deque<Pending> pending;
  std::deque<Message> messages;
  std::deque<uint64_t> posted_receives;  // wr_ids, in the order posted
  uint64_t next_wr_id = 0;
  uint64_t next_receive = 0;
};

class RandomTrafficTest : public ConformanceTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ConformanceTest::SetUp());
    seed_ = ChooseSeed();
    std::cout << "CONFORMANCE_SEED=" << seed_ << std::endl;
    random_.seed(seed_);
    for (size_t i = 0; i < kConnections; ++i) {
      Link link;
      ASSERT_TRUE(Connect({.client = Queues(), .server = Queues()}, &link));
      ASSERT_NO_FATAL_FAILURE(
          AddDirection(link.client, client(), link.server, server()));
      ASSERT_NO_FATAL_FAILURE(
          AddDirection(link.server, server(), link.client, client()));
    }
    for (Direction& direction : directions_) {
      for (uint32_t i = 0; i < kReceives; ++i) PostNextReceive(direction);
    }
  }

  void TearDown() override {
    for (Direction& direction : directions_) {
      Side& side =
          direction.send_cq == client().send_cq() ? client() : server();
      side.DestroyQp(direction.from);
    }
    regions_.clear();
    ConformanceTest::TearDown();
  }

  static QpOptions Queues() {
    return {.max_send_wr = kQueueDepth, .max_recv_wr = kReceives};
  }

  size_t Below(size_t limit) {
    return std::uniform_int_distribution<size_t>(0, limit - 1)(random_);
  }

  // Lengths at both ends of the scale are as likely as all in between.
  size_t RandomLength() {
    switch (Below(4)) {
      case 0:
        return Below(130);
      case 1:
        return Below(5000);
      default:
        return Below(kMaxBytes + 1);
    }
  }

  const Region* Memory(Side& side, size_t slots, uint32_t fill) {
    regions_.push_back(side.Allocate(slots * kMaxBytes));
    if (regions_.back().empty()) return nullptr;
    if (fill != 0) regions_.back().Fill(fill);
    return &regions_.back();
  }

  void AddDirection(ibv_qp* from, Side& sender, ibv_qp* to, Side& receiver) {
    Direction direction;
    direction.from = from;
    direction.to = to;
    direction.send_cq = sender.send_cq();
    direction.recv_cq = receiver.recv_cq();
    const uint32_t fill = static_cast<uint32_t>(directions_.size()) * 2 + 1;
    direction.source = Memory(sender, 2, fill);
    direction.reads = Memory(sender, kQueueDepth, 0);
    direction.remote_source = Memory(receiver, 2, fill + 1);
    direction.writes = Memory(receiver, kQueueDepth, 0);
    direction.receives = Memory(receiver, kReceives, 0);
    ASSERT_NE(direction.receives, nullptr);
    directions_.push_back(std::move(direction));
  }

  void PostNextReceive(Direction& direction) {
    const uint64_t id = direction.next_receive++;
    const size_t slot = (id % kReceives) * kMaxBytes;
    // In one piece, or in two of random lengths.
    const size_t first = Below(2) == 0 ? kMaxBytes : Below(kMaxBytes);
    ReceiveRequest receive = {.wr_id = id,
                              .sges = {direction.receives->sge(slot, first)}};
    if (first < kMaxBytes) {
      receive.sges.push_back(
          direction.receives->sge(slot + first, kMaxBytes - first));
    }
    ASSERT_EQ(0, PostReceive(direction.to, receive));
    direction.posted_receives.push_back(id);
  }

  // `region`'s bytes in one to three pieces.
  void AddPieces(WorkRequest& request, const Region& region, size_t offset,
                 size_t bytes) {
    for (size_t pieces = Below(3); pieces > 0 && bytes > 0; --pieces) {
      const size_t piece = Below(bytes);
      request.Sge(region.sge(offset, piece));
      offset += piece;
      bytes -= piece;
    }
    request.Sge(region.sge(offset, bytes));
  }

  void PostRandomRequest(Direction& direction);
  void CheckSends(ibv_cq* cq);
  void CheckReceives(ibv_cq* cq);
  void CheckDone(const Pending& done);

  Direction* OfSender(uint32_t qp_num, ibv_cq* cq) {
    for (Direction& d : directions_) {
      if (d.from->qp_num == qp_num && d.send_cq == cq) return &d;
    }
    return nullptr;
  }
  Direction* OfReceiver(uint32_t qp_num, ibv_cq* cq) {
    for (Direction& d : directions_) {
      if (d.to->qp_num == qp_num && d.recv_cq == cq) return &d;
    }
    return nullptr;
  }

  uint64_t seed_ = 0;
  std::mt19937_64 random_;
  std::deque<Region> regions_;  // stable addresses
  std::deque<Direction> directions_;
};
CONFORMANCE_SUITE(RandomTrafficTest);

void RandomTrafficTest::PostRandomRequest(Direction& direction) {
  const uint64_t id = direction.next_wr_id;
  const size_t slot = (id % kQueueDepth) * kMaxBytes;
  const size_t bytes = RandomLength();
  const size_t from = Below(kMaxBytes);
  // No place of the queue is without a signaled one for long.
  Pending pending = {.wr_id = id,
                     .signaled = id % (kQueueDepth / 2) == 0 || Below(2) == 0};
  WorkRequest request = SendWr(id);
  bool is_message = false;
  switch (Below(4)) {
    case 0:
      request = ReadWr(id, direction.remote_source->addr(from),
                       direction.remote_source->rkey());
      AddPieces(request, *direction.reads, slot, bytes);
      pending.opcode = IBV_WC_RDMA_READ;
      pending.owner = direction.reads;
      pending.target = slot;
      pending.bytes = direction.remote_source->bytes(from, bytes);
      break;
    case 1:
      request =
          WriteWr(id, direction.writes->addr(slot), direction.writes->rkey());
      AddPieces(request, *direction.source, from, bytes);
      pending.opcode = IBV_WC_RDMA_WRITE;
      pending.owner = direction.writes;
      pending.target = slot;
      pending.bytes = direction.source->bytes(from, bytes);
      is_message = Below(2) == 0;
      break;
    default:
      AddPieces(request, *direction.source, from, bytes);
      pending.opcode = IBV_WC_SEND;
      is_message = true;
      break;
  }
  if (is_message) {
    Message message = {.write = pending.opcode == IBV_WC_RDMA_WRITE,
                       .bytes = bytes};
    if (!message.write) message.content = direction.source->bytes(from, bytes);
    if (message.write || Below(2) == 0) {
      message.has_imm = true;
      message.imm = static_cast<__be32>(random_());
      request.Imm(message.imm);
    }
    direction.messages.push_back(std::move(message));
  }
  if (pending.opcode != IBV_WC_RDMA_READ && bytes <= 64 && Below(2) == 0) {
    request.Inline();
  }
  if (Below(8) == 0 && deviations().resends_fenced_requests) request.Fence();
  if (!pending.signaled) request.Unsignaled();
  const int error = Post(direction.from, request);
  ASSERT_EQ(error, 0) << "request " << id;
  ++direction.next_wr_id;
  direction.pending.push_back(std::move(pending));
}

void RandomTrafficTest::CheckDone(const Pending& done) {
  if (done.owner == nullptr) return;
  ASSERT_TRUE(done.owner->bytes(done.target, done.bytes.size()) == done.bytes)
      << "the bytes of request " << done.wr_id << ", opcode " << done.opcode;
}

// A completion stands for its request and all unsignaled ones before it.
void RandomTrafficTest::CheckSends(ibv_cq* cq) {
  const ibv_wc wc = Await(cq);
  Direction* direction = OfSender(wc.qp_num, cq);
  ASSERT_NE(direction, nullptr) << testing::PrintToString(wc);
  while (!direction->pending.empty() && !direction->pending.front().signaled) {
    CheckDone(direction->pending.front());
    direction->pending.pop_front();
  }
  ASSERT_FALSE(direction->pending.empty());
  const Pending& expected = direction->pending.front();
  ASSERT_THAT(wc, Succeeded(expected.wr_id, expected.opcode));
  CheckDone(expected);
  direction->pending.pop_front();
}

void RandomTrafficTest::CheckReceives(ibv_cq* cq) {
  const ibv_wc wc = Await(cq);
  Direction* direction = OfReceiver(wc.qp_num, cq);
  ASSERT_NE(direction, nullptr) << testing::PrintToString(wc);
  ASSERT_FALSE(direction->messages.empty()) << testing::PrintToString(wc);
  const Message message = std::move(direction->messages.front());
  direction->messages.pop_front();
  const uint64_t id = direction->posted_receives.front();
  direction->posted_receives.pop_front();
  ASSERT_THAT(wc, Succeeded(id, message.write ? IBV_WC_RECV_RDMA_WITH_IMM
                                              : IBV_WC_RECV));
  ASSERT_EQ(wc.byte_len, message.bytes);
  ASSERT_EQ((wc.wc_flags & IBV_WC_WITH_IMM) != 0, message.has_imm);
  if (message.has_imm) {
    ASSERT_EQ(wc.imm_data, message.imm);
  }
  const size_t slot = (id % kReceives) * kMaxBytes;
  ASSERT_TRUE(direction->receives->bytes(slot, message.content.size()) ==
              message.content)
      << "the bytes of receive " << id;
  PostNextReceive(*direction);
}

TEST_P(RandomTrafficTest, AgreesWithTheModel) {
  SCOPED_TRACE(testing::Message() << "CONFORMANCE_SEED=" << seed_);
  int posted = 0;
  const auto under_way = [&](bool messages) {
    return std::count_if(
        directions_.begin(), directions_.end(), [messages](const Direction& d) {
          return messages
                     ? !d.messages.empty()
                     : std::any_of(d.pending.begin(), d.pending.end(),
                                   [](const Pending& p) { return p.signaled; });
        });
  };
  while (!HasFatalFailure() && !HasNonfatalFailure()) {
    Direction& direction = directions_[Below(directions_.size())];
    if (posted < kRequests && direction.pending.size() < kQueueDepth) {
      PostRandomRequest(direction);
      ++posted;
    }
    // Look at what has come by, in no hurry: sometimes the queues fill.
    if (posted < kRequests && Below(3) != 0) continue;
    pump().Turn();
    bool quiet = true;
    for (Side* side : {&client(), &server()}) {
      while (!HasFatalFailure() && pump().Has(side->recv_cq())) {
        CheckReceives(side->recv_cq());
        quiet = false;
      }
      while (!HasFatalFailure() && pump().Has(side->send_cq())) {
        CheckSends(side->send_cq());
        quiet = false;
      }
    }
    if (posted < kRequests || !quiet) continue;
    if (under_way(true) == 0 && under_way(false) == 0) break;
    ASSERT_TRUE(pump().Until(
        [&] {
          return pump().Has(client().recv_cq()) ||
                 pump().Has(server().recv_cq()) ||
                 pump().Has(client().send_cq()) ||
                 pump().Has(server().send_cq());
        },
        "the rest of the traffic"));
  }
}

}  // namespace
}  // namespace rdma::conformance
