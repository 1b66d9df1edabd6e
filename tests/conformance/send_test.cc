// SEND on a reliable connection: what is sent arrives once, whole and in order,
// in the next posted receive, with its immediate as it was given. Method: the
// client sends out of its buffer, the server receives, both completions and
// every byte are looked at. ibv_post_send(3), ibv_poll_cq(3).
#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>

#include "tests/conformance/fixture.h"

namespace rdma::conformance {
namespace {

using testing::ElementsAre;

class SendTest : public ConnectedTest {
 protected:
  // Sends `bytes` from the front of the client's buffer into a receive that is
  // exactly as long, and checks what comes out.
  void ExpectDelivered(size_t bytes, bool inline_data,
                       std::optional<__be32> imm = std::nullopt) {
    SCOPED_TRACE(bytes);
    server_buffer_.Clear();
    ReceiveRequest receive = {.wr_id = 1};
    if (bytes > 0) receive.sges = {server_buffer_.sge(0, bytes)};
    ASSERT_EQ(0, PostReceive(server_qp_, receive));
    WorkRequest send = SendWr(2);
    if (bytes > 0) send.Sge(client_buffer_.sge(0, bytes));
    if (inline_data) send.Inline();
    if (imm) send.Imm(*imm);
    ASSERT_EQ(0, Post(client_qp_, send));

    const ibv_wc received = Await(server().recv_cq());
    EXPECT_THAT(received, Received(1, bytes));
    EXPECT_EQ(received.qp_num, server_qp_->qp_num);
    EXPECT_EQ(received.wc_flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV),
              imm ? unsigned{IBV_WC_WITH_IMM} : 0u);
    if (imm) EXPECT_EQ(received.imm_data, *imm);
    const ibv_wc sent = Await(client().send_cq());
    EXPECT_THAT(sent, Succeeded(2, IBV_WC_SEND));
    EXPECT_EQ(sent.qp_num, client_qp_->qp_num);
    EXPECT_EQ(server_buffer_.bytes(0, bytes), client_buffer_.bytes(0, bytes));
    // Nothing behind the message was touched.
    EXPECT_EQ(server_buffer_.data()[bytes], 0);
  }

  uint32_t InlineLimit() {
    ibv_qp_attr attr = {};
    ibv_qp_init_attr init = {};
    EXPECT_EQ(0,
              client().device().QueryQp(client_qp_, &attr, IBV_QP_CAP, &init));
    return init.cap.max_inline_data;
  }

  LinkOptions Options() override {
    // As much inline as the device has.
    return {.client = {.max_inline_data = ~0u}};
  }
};
CONFORMANCE_SUITE(SendTest);

TEST_P(SendTest, DeliversEverySizeAroundTheLimits) {
  for (size_t bytes :
       {0, 1, 7, 8, 55, 56, 57, 63, 64, 65, 4095, 4096, 4097, 32767, 65535}) {
    ExpectDelivered(bytes, /*inline_data=*/false);
  }
}

TEST_P(SendTest, DeliversEverySizeWithAnImmediate) {
  for (uint32_t bytes :
       {0, 1, 56, 57, 112, 113, 1151, 1152, 1153, 4096, 8192, 32767, 65535}) {
    ExpectDelivered(bytes, /*inline_data=*/false, htonl(bytes + 1));
  }
}

// Only some of them complete at the sender, and each of those for all before.
TEST_P(SendTest, DeliversLargeOnesOfWhichFewAreSignaled) {
  constexpr uint64_t kMessages = 12;
  constexpr size_t kBytes = 4000;
  PostServerReceives(kMessages, kBytes);
  for (uint64_t i = 0; i < kMessages; ++i) {
    WorkRequest send = SendWr(i).Sge(client_buffer_.sge(0, kBytes));
    send.Imm(htonl(static_cast<uint32_t>(i)));
    if (i % 4 != 3) send.Unsignaled();
    ASSERT_EQ(0, Post(client_qp_, send));
  }
  for (uint64_t i = 0; i < kMessages; ++i) {
    const ibv_wc wc = Await(server().recv_cq());
    EXPECT_THAT(wc, Received(1000 + i, kBytes));
    EXPECT_EQ(wc.imm_data, htonl(static_cast<uint32_t>(i)));
  }
  for (uint64_t i = 3; i < kMessages; i += 4) {
    EXPECT_THAT(Await(client().send_cq()), Succeeded(i, IBV_WC_SEND));
  }
}

// A device may have a way of its own for the smallest, and for each where its
// own memory ends: so there are many of many sizes.
TEST_P(SendTest, DeliversManySmallOnesOfWhichFewAreSignaled) {
  constexpr size_t kLonger = 2000;
  const size_t most_inline = std::min<size_t>(InlineLimit(), 120);
  for (uint32_t i = 0; i < 900; ++i) {
    SCOPED_TRACE(i);
    const bool is_longer = i % 7 == 6;
    const size_t bytes = is_longer ? kLonger : i * 37 % (most_inline + 1);
    server_buffer_.Clear();
    ReceiveRequest receive = {.wr_id = i};
    if (bytes > 0) receive.sges = {server_buffer_.sge(0, bytes)};
    ASSERT_EQ(0, PostReceive(server_qp_, receive));
    WorkRequest send = SendWr(i).Imm(htonl(i));
    if (bytes > 0) send.Sge(client_buffer_.sge(i % 100, bytes));
    if (!is_longer) send.Inline();
    const bool is_signaled = i % 8 == 7;
    if (!is_signaled) send.Unsignaled();
    ASSERT_EQ(0, Post(client_qp_, send));

    const ibv_wc received = Await(server().recv_cq());
    ASSERT_THAT(received, Received(i, bytes));
    ASSERT_EQ(received.imm_data, htonl(i));
    ASSERT_EQ(server_buffer_.bytes(0, bytes),
              client_buffer_.bytes(i % 100, bytes));
    ASSERT_EQ(server_buffer_.data()[bytes], 0);
    if (is_signaled) {
      ASSERT_THAT(Await(client().send_cq()), Succeeded(i, IBV_WC_SEND));
    }
  }
}

TEST_P(SendTest, DeliversInlineUpToTheLimit) {
  const size_t limit = InlineLimit();
  ASSERT_GT(limit, 0u);
  for (size_t bytes = 0; bytes <= limit; ++bytes) {
    ExpectDelivered(bytes, /*inline_data=*/true);
    if (HasFailure()) return;
  }
}

TEST_P(SendTest, RefusesOneByteMoreInline) {
  const size_t limit = InlineLimit();
  ASSERT_EQ(
      0, PostReceive(server_qp_, {.wr_id = 1, .sges = {server_buffer_.sge()}}));
  EXPECT_EQ(deviations().inline_too_long_errno,
            Post(client_qp_,
                 SendWr(2).Sge(client_buffer_.sge(0, limit + 1)).Inline()));
  // The refusal left the queue as it was.
  ASSERT_EQ(0, Post(client_qp_, SendWr(3).Sge(client_buffer_.sge(0, 9))));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(3));
  EXPECT_THAT(Await(server().recv_cq()), Received(1, 9));
}

// "If the IBV_SEND_INLINE flag was set, the buffer can be reused immediately
// after the call returns", and "the L_Key will not be checked".
TEST_P(SendTest, InlineDataIsCopiedAtOnceAndNeedsNoKey) {
  char stack[] = "written over at once";
  const std::string kept = stack;
  const size_t length = std::min<size_t>(sizeof(stack) - 1, InlineLimit());
  ASSERT_EQ(
      0, Post(client_qp_, SendWr(2)
                              .Sge({.addr = reinterpret_cast<uintptr_t>(stack),
                                    .length = static_cast<uint32_t>(length),
                                    .lkey = 0})
                              .Inline()));
  std::fill(std::begin(stack), std::end(stack), '!');
  PostServerReceives(1, 64);
  EXPECT_THAT(Await(server().recv_cq()), Received(1000, length));
  EXPECT_EQ(server_buffer_.bytes(0, length), kept.substr(0, length));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(2));
}

TEST_P(SendTest, GathersInlineFromSeveralPieces) {
  const size_t piece = std::min<size_t>(InlineLimit() / 3, 21);
  ASSERT_EQ(0, PostReceive(server_qp_,
                           {.wr_id = 1, .sges = {server_buffer_.sge(0, 100)}}));
  ASSERT_EQ(0, Post(client_qp_, SendWr(2)
                                    .Sge(client_buffer_.sge(300, piece))
                                    .Sge(client_buffer_.sge(0, piece))
                                    .Sge(client_buffer_.sge(7, piece))
                                    .Inline()));
  EXPECT_THAT(Await(server().recv_cq()), Received(1, 3 * piece));
  EXPECT_EQ(server_buffer_.bytes(0, piece), client_buffer_.bytes(300, piece));
  EXPECT_EQ(server_buffer_.bytes(piece, piece), client_buffer_.bytes(0, piece));
  EXPECT_EQ(server_buffer_.bytes(2 * piece, piece),
            client_buffer_.bytes(7, piece));
}

// The two lists need not have the same shape, and an element may be empty.
TEST_P(SendTest, GathersAndScatters) {
  ASSERT_EQ(
      0, PostReceive(server_qp_, {.wr_id = 1,
                                  .sges = {server_buffer_.sge(0, 1),
                                           server_buffer_.sge(100, 999),
                                           server_buffer_.sge(5000, 0),
                                           server_buffer_.sge(8000, 4000)}}));
  ASSERT_EQ(0, Post(client_qp_, SendWr(2)
                                    .Sge(client_buffer_.sge(10, 500))
                                    .Sge(client_buffer_.sge(3, 0))
                                    .Sge(client_buffer_.sge(2000, 2500))
                                    .Sge(client_buffer_.sge(64, 7))));
  EXPECT_THAT(Await(server().recv_cq()), Received(1, 3007));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(2, IBV_WC_SEND));

  const std::string sent = std::string(client_buffer_.bytes(10, 500)) +
                           std::string(client_buffer_.bytes(2000, 2500)) +
                           std::string(client_buffer_.bytes(64, 7));
  const std::string arrived = std::string(server_buffer_.bytes(0, 1)) +
                              std::string(server_buffer_.bytes(100, 999)) +
                              std::string(server_buffer_.bytes(8000, 2007));
  EXPECT_EQ(arrived, sent);
  EXPECT_EQ(server_buffer_.data()[1], 0);
  EXPECT_EQ(server_buffer_.data()[1099], 0);
  EXPECT_EQ(server_buffer_.data()[5000], 0);
  EXPECT_EQ(server_buffer_.data()[10007], 0);
}

// Long and short pieces of two regions: as few as a device may have a short way
// for, and more.
TEST_P(SendTest, GathersWithImmediate) {
  const size_t lengths[] = {1500, 7, 2800, 64};
  Region another = client().Allocate(kBufferBytes);
  ASSERT_FALSE(another.empty());
  another.Fill(3);
  for (size_t pieces = 1; pieces <= std::size(lengths); ++pieces) {
    SCOPED_TRACE(pieces);
    server_buffer_.Clear();
    ASSERT_EQ(0,
              PostReceive(server_qp_, {.wr_id = pieces,
                                       .sges = {server_buffer_.sge(0, 6000)}}));
    WorkRequest send = SendWr(100 + pieces).Imm(htonl(7));
    std::string sent;
    for (size_t i = 0; i < pieces; ++i) {
      const Region& source = i % 2 == 0 ? client_buffer_ : another;
      const size_t offset = 5000 - 1000 * i;
      send.Sge(source.sge(offset, lengths[i]));
      sent += source.bytes(offset, lengths[i]);
    }
    ASSERT_EQ(0, Post(client_qp_, send));
    const ibv_wc received = Await(server().recv_cq());
    EXPECT_THAT(received, Received(pieces, sent.size()));
    EXPECT_EQ(received.imm_data, htonl(7));
    EXPECT_THAT(Await(client().send_cq()),
                Succeeded(100 + pieces, IBV_WC_SEND));
    EXPECT_EQ(server_buffer_.bytes(0, sent.size()), sent);
    EXPECT_EQ(server_buffer_.data()[sent.size()], 0);
  }
}

TEST_P(SendTest, RefusesMorePiecesThanTheQueueHas) {
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  ASSERT_EQ(0, client().device().QueryQp(client_qp_, &attr, IBV_QP_CAP, &init));
  WorkRequest send = SendWr(1);
  ReceiveRequest receive = {.wr_id = 2};
  for (uint32_t i = 0; i <= init.cap.max_send_sge; ++i) {
    send.Sge(client_buffer_.sge(i, 1));
  }
  for (uint32_t i = 0; i <= init.cap.max_recv_sge; ++i) {
    receive.sges.push_back(client_buffer_.sge(i, 1));
  }
  EXPECT_NE(0, Post(client_qp_, send));
  EXPECT_NE(0, PostReceive(client_qp_, receive));
}

// "Immediate data (in network byte order)": the four bytes arrive as they lie.
TEST_P(SendTest, CarriesTheImmediateUnchanged) {
  PostServerReceives(2, 64);
  const __be32 imm = htonl(0x01020304);
  ASSERT_EQ(0,
            Post(client_qp_, SendWr(1).Sge(client_buffer_.sge(0, 5)).Imm(imm)));
  ASSERT_EQ(0, Post(client_qp_, SendWr(2).Imm(0xffffffff).Inline()));
  ibv_wc wc = Await(server().recv_cq());
  EXPECT_THAT(wc, Received(1000, 5));
  EXPECT_NE(wc.wc_flags & IBV_WC_WITH_IMM, 0u);
  EXPECT_EQ(std::memcmp(&wc.imm_data, "\1\2\3\4", 4), 0);
  wc = Await(server().recv_cq());
  EXPECT_THAT(wc, Received(1001, 0));
  EXPECT_NE(wc.wc_flags & IBV_WC_WITH_IMM, 0u);
  EXPECT_EQ(wc.imm_data, 0xffffffff);
}

// Either end may send; neither direction waits for the other.
TEST_P(SendTest, RunsInBothDirectionsAtOnce) {
  constexpr int kCount = 20;
  for (int i = 0; i < kCount; ++i) {
    ASSERT_EQ(0,
              PostReceive(client_qp_,
                          {.wr_id = 100u + i,
                           .sges = {client_buffer_.sge(1000 + 10 * i, 10)}}));
  }
  PostServerReceives(kCount, 10);
  for (int i = 0; i < kCount; ++i) {
    ASSERT_EQ(0, Post(client_qp_, SendWr(i).Sge(client_buffer_.sge(i, 10))));
    ASSERT_EQ(0, Post(server_qp_, SendWr(i).Sge(server_buffer_.sge(9000, 8))));
  }
  for (int i = 0; i < kCount; ++i) {
    EXPECT_THAT(Await(server().recv_cq()), Received(1000 + i, 10));
    EXPECT_THAT(Await(client().recv_cq()), Received(100 + i, 8));
    EXPECT_THAT(Await(server().send_cq()), Succeeded(i, IBV_WC_SEND));
    EXPECT_THAT(Await(client().send_cq()), Succeeded(i, IBV_WC_SEND));
  }
}

// A message may be as long as port attributes' max_msg_sz, which no device in
// use has under 1 GiB; these lengths cross every quantum that a device may copy
// in, and the pieces lie at odd places.
TEST_P(SendTest, DeliversMegabytes) {
  const size_t largest =
      std::min<size_t>(TheProviderUnderTest().largest_message_bytes, 32 << 20);
  Region source = client().Allocate(largest + 4096);
  Region target = server().Allocate(largest + 4096);
  ASSERT_FALSE(source.empty() || target.empty());
  source.Fill(7);
  for (size_t bytes : {size_t{1} << 20, (size_t{1} << 20) + 1, largest - 3}) {
    SCOPED_TRACE(bytes);
    target.Clear();
    ASSERT_EQ(0, PostReceive(
                     server_qp_,
                     {.wr_id = 1,
                      .sges = {target.sge(1, bytes / 3),
                               target.sge(1 + bytes / 3, bytes - bytes / 3)}}));
    ASSERT_EQ(0, Post(client_qp_,
                      SendWr(2)
                          .Sge(source.sge(3, bytes / 2))
                          .Sge(source.sge(3 + bytes / 2, bytes - bytes / 2))));
    EXPECT_THAT(Await(server().recv_cq()), Received(1, bytes));
    EXPECT_THAT(Await(client().send_cq()), Succeeded(2));
    ASSERT_TRUE(target.bytes(1, bytes) == source.bytes(3, bytes));
    EXPECT_EQ(target.data()[1 + bytes], 0);
  }
}

// The receive's buffers may be longer than the message; what is left of them
// belongs to the program and stays as it was.
TEST_P(SendTest, LeavesTheRestOfALongReceiveAlone) {
  std::memset(server_buffer_.data(), 0xee, 256);
  ASSERT_EQ(0, PostReceive(server_qp_,
                           {.wr_id = 1, .sges = {server_buffer_.sge(0, 256)}}));
  ASSERT_EQ(
      0, Post(client_qp_, SendWr(2).Sge(client_buffer_.sge(0, 13)).Inline()));
  EXPECT_THAT(Await(server().recv_cq()), Received(1, 13));
  EXPECT_EQ(server_buffer_.bytes(13, 243), std::string(243, '\xee'));
}

// A sender's completion says that the message lies at the responder (IBTA
// 9.7.5.1.2), so the buffer may be used again: the bytes that were there when
// it was posted are what arrives.
TEST_P(SendTest, BufferIsFreeOnceTheSendCompletes) {
  PostServerReceives(2, 4096);
  const std::string first(client_buffer_.bytes(0, 4096));
  ASSERT_EQ(0, Post(client_qp_, SendWr(1).Sge(client_buffer_.sge(0, 4096))));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(1));
  client_buffer_.Fill(99);
  ASSERT_EQ(0, Post(client_qp_, SendWr(2).Sge(client_buffer_.sge(0, 4096))));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(2));
  EXPECT_THAT(Await(server().recv_cq(), 2),
              ElementsAre(Received(1000, 4096), Received(1001, 4096)));
  EXPECT_EQ(server_buffer_.bytes(0, 4096), first);
  EXPECT_EQ(server_buffer_.bytes(4096, 4096), client_buffer_.bytes(0, 4096));
}

}  // namespace
}  // namespace rdma::conformance
