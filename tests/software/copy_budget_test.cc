// Goal: one poll copies no more than its budget, however many QPs have large
// messages waiting, and all of them come in the end. Method: SENDs with
// immediate, which are taken by the short way, on one connection or on several
// of one CQ; what each poll gives is added up.
#include <arpa/inet.h>

#include <vector>

#include "gtest/gtest.h"
#include "tests/software/endpoint.h"

namespace rdma::soft {
namespace {

constexpr uint32_t kMessageBytes = 32 << 10;
constexpr int kMessages = 14;  // of each connection
// 64 KiB the short way, and 256 KiB the long one.
constexpr int kMostOfAPoll = (320 << 10) / kMessageBytes;

class CopyBudgetTest : public testing::TestWithParam<int> {};

TEST_P(CopyBudgetTest, IsSharedByAllThatAPollLooksAt) {
  Endpoint server;
  Endpoint client;
  const SocketAddress address = server.Listen();
  std::vector<ibv_qp*> senders;
  for (int i = 0; i < GetParam(); ++i) {
    senders.push_back(client.Connect(address));
    ibv_qp* const receiver = server.Accept();
    ASSERT_NE(receiver, nullptr);
    ASSERT_TRUE(client.Await(CmEvent::Type::kEstablished));
    for (int j = 0; j < kMessages; ++j) {
      ASSERT_EQ(server.PostReceive(receiver, 1, server.Sge(0, kMessageBytes)),
                0);
    }
  }
  for (ibv_qp* const sender : senders) {
    for (int i = 0; i < kMessages; ++i) {
      ibv_sge sge = client.Sge(0, kMessageBytes);
      ibv_send_wr wr = {};
      wr.sg_list = &sge;
      wr.num_sge = 1;
      wr.opcode = IBV_WR_SEND_WITH_IMM;
      wr.imm_data = htonl(static_cast<uint32_t>(i));
      ibv_send_wr* bad = nullptr;
      ASSERT_EQ(ibv_post_send(sender, &wr, &bad), 0);
    }
  }
  const int all = GetParam() * kMessages;
  int received = 0;
  ASSERT_TRUE(Until([&] {
    ibv_wc completions[64];
    const int count = ibv_poll_cq(server.cq(), 64, completions);
    EXPECT_LE(count, kMostOfAPoll);
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(completions[i].status, IBV_WC_SUCCESS);
      EXPECT_EQ(completions[i].byte_len, kMessageBytes);
    }
    received += count;
    return received >= all;
  }));
  EXPECT_EQ(received, all);
}

INSTANTIATE_TEST_SUITE_P(Connections, CopyBudgetTest, testing::Values(1, 2, 4),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace rdma::soft
