// The state machine of a reliable connection's QP: which transitions there are,
// with which attributes, what may be posted in which state, and what ERR and
// RESET do to what was posted. ibv_modify_qp(3), ibv_query_qp(3);
// IBTA 10.3.1, table 91 and 11.2.5.2.
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "tests/conformance/fixture.h"

namespace rdma::conformance {
namespace {

// What ibv_modify_qp(3) requires of RESET to INIT on an RC QP.
constexpr int kInitMask =
    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kRtrMask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                         IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kRtsMask = IBV_QP_STATE | IBV_QP_SQ_PSN |
                         IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT |
                         IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT;

// Good values for every attribute that a transition may ask for.
ibv_qp_attr Attributes(ibv_qp_state state) {
  ibv_qp_attr attr = {};
  attr.qp_state = state;
  attr.port_num = 1;
  attr.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = 17;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 12;
  attr.max_rd_atomic = 1;
  attr.retry_cnt = 3;
  attr.rnr_retry = 3;
  attr.timeout = 14;
  attr.ah_attr.port_num = 1;
  return attr;
}

int Modify(Device& device, ibv_qp* qp, ibv_qp_state state, int mask) {
  ibv_qp_attr attr = Attributes(state);
  return device.ModifyQp(qp, &attr, mask);
}

// A QP that nothing has connected yet.
class FreshQueuePairTest : public ConformanceTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ConformanceTest::SetUp());
    buffer_ = client().Allocate(4096);
    qp_ = client().CreateQp({});
    ASSERT_NE(qp_, nullptr);
  }
  void TearDown() override {
    buffer_ = Region();
    ConformanceTest::TearDown();
  }

  Device& device() { return client().device(); }
  ibv_qp_state State() { return StateOf(device(), qp_); }

  Region buffer_;
  ibv_qp* qp_ = nullptr;
};
CONFORMANCE_SUITE(FreshQueuePairTest);

TEST_P(FreshQueuePairTest, StartsInReset) {
  EXPECT_EQ(State(), IBV_QPS_RESET);
  EXPECT_EQ(qp_->qp_type, IBV_QPT_RC);
  EXPECT_EQ(qp_->pd, client().pd());
  EXPECT_EQ(qp_->send_cq, client().send_cq());
  EXPECT_EQ(qp_->recv_cq, client().recv_cq());
  EXPECT_EQ(qp_->context, device().context());
}

// "The values will be greater than or equal to the values requested."
TEST_P(FreshQueuePairTest, ReportsItsCapabilities) {
  ibv_qp_cap cap = {};
  ibv_qp* qp = client().CreateQp({.max_send_wr = 100,
                                  .max_recv_wr = 50,
                                  .max_send_sge = 3,
                                  .max_recv_sge = 2,
                                  .max_inline_data = 32},
                                 &cap);
  ASSERT_NE(qp, nullptr);
  EXPECT_GE(cap.max_send_wr, 100u);
  EXPECT_GE(cap.max_recv_wr, 50u);
  EXPECT_GE(cap.max_send_sge, 3u);
  EXPECT_GE(cap.max_recv_sge, 2u);
  EXPECT_GE(cap.max_inline_data, 32u);
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  ASSERT_EQ(0, device().QueryQp(qp, &attr, IBV_QP_CAP, &init));
  EXPECT_GE(init.cap.max_send_wr, cap.max_send_wr);
  EXPECT_GE(init.cap.max_recv_wr, cap.max_recv_wr);
  EXPECT_EQ(init.cap.max_inline_data, cap.max_inline_data);
  EXPECT_EQ(init.send_cq, client().send_cq());
  EXPECT_EQ(init.recv_cq, client().recv_cq());
  EXPECT_EQ(init.qp_type, IBV_QPT_RC);
}

TEST_P(FreshQueuePairTest, NumbersItsQpsApart) {
  ibv_qp* other = client().CreateQp({});
  ASSERT_NE(other, nullptr);
  EXPECT_NE(other->qp_num, qp_->qp_num);
}

TEST_P(FreshQueuePairTest, RefusesMoreThanTheDeviceHas) {
  const ibv_device_attr& limits = device().attributes();
  ibv_qp_init_attr base = {};
  base.qp_type = IBV_QPT_RC;
  base.send_cq = client().send_cq();
  base.recv_cq = client().recv_cq();
  base.cap = {
      .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
  std::vector<ibv_qp_init_attr> too_much(4, base);
  too_much[0].cap.max_send_wr = limits.max_qp_wr + 1;
  too_much[1].cap.max_recv_wr = limits.max_qp_wr + 1;
  too_much[2].cap.max_send_sge = limits.max_sge + 1;
  too_much[3].cap.max_inline_data = device().max_inline_data() + 1;
  for (size_t i = 0; i < too_much.size(); ++i) {
    SCOPED_TRACE(i);
    errno = 0;
    ibv_qp* qp = device().CreateQp(client().pd(), &too_much[i]);
    EXPECT_EQ(qp, nullptr);
    EXPECT_THAT(errno, testing::AnyOf(EINVAL, ENOMEM));
    if (qp != nullptr) device().DestroyQp(qp);
  }
}

TEST_P(FreshQueuePairTest, RefusesACqOfNoOrAbsurdDepth) {
  for (int depth : {0, -1, device().attributes().max_cqe + 1}) {
    errno = 0;
    ibv_cq* cq = device().CreateCq(depth, nullptr, nullptr, 0);
    EXPECT_EQ(cq, nullptr) << depth;
    EXPECT_EQ(errno, EINVAL);
    if (cq != nullptr) device().DestroyCq(cq);
  }
}

TEST_P(FreshQueuePairTest, GoesToInitWithAllThatIsRequired) {
  EXPECT_EQ(0, Modify(device(), qp_, IBV_QPS_INIT, kInitMask));
  EXPECT_EQ(State(), IBV_QPS_INIT);
  // And again, with less: INIT to INIT changes what it names.
  EXPECT_EQ(0, Modify(device(), qp_, IBV_QPS_INIT,
                      IBV_QP_STATE | IBV_QP_ACCESS_FLAGS));
  EXPECT_EQ(State(), IBV_QPS_INIT);
}

// "If any of the modify attributes or the modify mask are invalid, none of the
// attributes will be modified (including the QP state)."
TEST_P(FreshQueuePairTest, EachRequiredAttributeIsRequired) {
  for (int missing : {IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_ACCESS_FLAGS}) {
    EXPECT_EQ(EINVAL, Modify(device(), qp_, IBV_QPS_INIT, kInitMask & ~missing))
        << "without " << missing;
    EXPECT_EQ(State(), IBV_QPS_RESET);
  }
}

TEST_P(FreshQueuePairTest, RefusesAnAttributeThatIsNotOfTheTransition) {
  for (int extra :
       {static_cast<int>(IBV_QP_QKEY), static_cast<int>(IBV_QP_DEST_QPN),
        static_cast<int>(IBV_QP_SQ_PSN), static_cast<int>(IBV_QP_TIMEOUT)}) {
    EXPECT_EQ(EINVAL, Modify(device(), qp_, IBV_QPS_INIT, kInitMask | extra))
        << "with " << extra;
    EXPECT_EQ(State(), IBV_QPS_RESET);
  }
}

TEST_P(FreshQueuePairTest, RefusesTransitionsThatSkipAState) {
  EXPECT_EQ(EINVAL, Modify(device(), qp_, IBV_QPS_RTR, kRtrMask));
  EXPECT_EQ(EINVAL, Modify(device(), qp_, IBV_QPS_RTS, kRtsMask));
  EXPECT_EQ(EINVAL, Modify(device(), qp_, IBV_QPS_SQD, IBV_QP_STATE));
  EXPECT_EQ(State(), IBV_QPS_RESET);
  ASSERT_EQ(0, Modify(device(), qp_, IBV_QPS_INIT, kInitMask));
  EXPECT_EQ(EINVAL, Modify(device(), qp_, IBV_QPS_RTS, kRtsMask));
  EXPECT_EQ(EINVAL, Modify(device(), qp_, IBV_QPS_SQD, IBV_QP_STATE));
  EXPECT_EQ(EINVAL, Modify(device(), qp_, IBV_QPS_RTR, IBV_QP_STATE));
  EXPECT_EQ(State(), IBV_QPS_INIT);
}

TEST_P(FreshQueuePairTest, RefusesAStateItIsNotIn) {
  ibv_qp_attr attr = Attributes(IBV_QPS_INIT);
  attr.cur_qp_state = IBV_QPS_RTS;
  EXPECT_EQ(EINVAL,
            device().ModifyQp(qp_, &attr, kInitMask | IBV_QP_CUR_STATE));
  EXPECT_EQ(State(), IBV_QPS_RESET);
}

// From INIT on; a QP in RESET has nothing to be in error about, and whether it
// may go to ERR is where Linux and the specification differ.
TEST_P(FreshQueuePairTest, GoesToErrorAndOnlyToResetFromThere) {
  ASSERT_EQ(0, Modify(device(), qp_, IBV_QPS_INIT, kInitMask));
  MoveToError(device(), qp_);
  EXPECT_EQ(State(), IBV_QPS_ERR);
  EXPECT_EQ(EINVAL, Modify(device(), qp_, IBV_QPS_INIT, kInitMask));
  EXPECT_EQ(EINVAL, Modify(device(), qp_, IBV_QPS_RTS, kRtsMask));
  EXPECT_EQ(State(), IBV_QPS_ERR);
  EXPECT_EQ(0, Modify(device(), qp_, IBV_QPS_RESET, IBV_QP_STATE));
  EXPECT_EQ(State(), IBV_QPS_RESET);
  EXPECT_EQ(0, Modify(device(), qp_, IBV_QPS_INIT, kInitMask));
}

// IBTA 10.3.1.1 to 10.3.1.3: no sends before RTS, no receives in RESET.
TEST_P(FreshQueuePairTest, RefusesPostsThatAreTooEarly) {
  const ReceiveRequest receive = {.wr_id = 1, .sges = {buffer_.sge(0, 8)}};
  EXPECT_EQ(EINVAL, Post(qp_, SendWr(1).Sge(buffer_.sge(0, 8))));
  EXPECT_EQ(EINVAL, PostReceive(qp_, receive));
  ASSERT_EQ(0, Modify(device(), qp_, IBV_QPS_INIT, kInitMask));
  EXPECT_EQ(EINVAL, Post(qp_, SendWr(1).Sge(buffer_.sge(0, 8))));
  EXPECT_EQ(0, PostReceive(qp_, receive));
  ExpectSilence(client().recv_cq());
  MoveToError(device(), qp_);
  EXPECT_THAT(Await(client().recv_cq()), Flushed(1));
}

// What was posted is forgotten, with no completion.
TEST_P(FreshQueuePairTest, ResetForgetsWhatWasPosted) {
  ASSERT_EQ(0, Modify(device(), qp_, IBV_QPS_INIT, kInitMask));
  ASSERT_EQ(0, PostReceive(qp_, {.wr_id = 1, .sges = {buffer_.sge(0, 8)}}));
  ASSERT_EQ(0, Modify(device(), qp_, IBV_QPS_RESET, IBV_QP_STATE));
  ASSERT_EQ(0, Modify(device(), qp_, IBV_QPS_INIT, kInitMask));
  MoveToError(device(), qp_);
  ExpectSilence(client().recv_cq());
}

// A connected QP.
class QueuePairStateTest : public ConnectedTest {
 protected:
  ReceiveRequest Receive(uint64_t wr_id) {
    return {.wr_id = wr_id, .sges = {client_buffer_.sge(0, 8)}};
  }
  WorkRequest Send(uint64_t wr_id) {
    return SendWr(wr_id).Sge(client_buffer_.sge(0, 8));
  }
};
CONFORMANCE_SUITE(QueuePairStateTest);

TEST_P(QueuePairStateTest, IsReadyToSendOnceConnected) {
  EXPECT_EQ(StateOf(client().device(), client_qp_), IBV_QPS_RTS);
  EXPECT_EQ(StateOf(server().device(), server_qp_), IBV_QPS_RTS);
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  ASSERT_EQ(0, client().device().QueryQp(
                   client_qp_, &attr, IBV_QP_STATE | IBV_QP_DEST_QPN, &init));
  EXPECT_EQ(attr.dest_qp_num, server_qp_->qp_num);
  ASSERT_EQ(0, server().device().QueryQp(
                   server_qp_, &attr, IBV_QP_STATE | IBV_QP_DEST_QPN, &init));
  EXPECT_EQ(attr.dest_qp_num, client_qp_->qp_num);
}

TEST_P(QueuePairStateTest, RefusesToGoBackwards) {
  Device& device = client().device();
  EXPECT_EQ(EINVAL, Modify(device, client_qp_, IBV_QPS_INIT, kInitMask));
  EXPECT_EQ(EINVAL, Modify(device, client_qp_, IBV_QPS_RTR, kRtrMask));
  EXPECT_EQ(StateOf(device, client_qp_), IBV_QPS_RTS);
}

// What may be changed while it runs.
TEST_P(QueuePairStateTest, TakesANewRnrTimerWhileItRuns) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_RTS;
  attr.min_rnr_timer = 3;
  EXPECT_EQ(0, server().device().ModifyQp(server_qp_, &attr,
                                          IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER));
  ibv_qp_init_attr init = {};
  attr = {};
  ASSERT_EQ(0, server().device().QueryQp(server_qp_, &attr,
                                         IBV_QP_MIN_RNR_TIMER, &init));
  EXPECT_EQ(attr.min_rnr_timer, 3);
  attr.qp_state = IBV_QPS_RTS;
  EXPECT_EQ(EINVAL, server().device().ModifyQp(server_qp_, &attr,
                                               IBV_QP_STATE | IBV_QP_RQ_PSN));
}

// "SQD: the QP ends what it began, and begins nothing": a READ and a WRITE that
// are longer than any device moves at once, and a SEND behind them.
TEST_P(QueuePairStateTest, TheSendQueueDrainsAndGoesOn) {
  if (!deviations().goes_on_after_draining) {
    GTEST_SKIP() << "the device sleeps on when SQD is over";
  }
  constexpr size_t kBytes = size_t{4} << 20;
  Device& device = client().device();
  Region near = client().Allocate(kBytes);
  Region far = server().Allocate(kBytes);
  ASSERT_FALSE(near.empty() || far.empty());
  for (const bool writes : {false, true}) {
    SCOPED_TRACE(writes ? "WRITE" : "READ");
    near.Fill(1);
    far.Fill(2);
    PostServerReceives(1, 8);
    WorkRequest request = writes ? WriteWr(1, far.addr(), far.rkey())
                                 : ReadWr(1, far.addr(), far.rkey());
    ASSERT_EQ(0, Post(client_qp_, request.Sge(near.sge())));
    ibv_qp_attr attr = {};
    attr.qp_state = IBV_QPS_SQD;
    attr.en_sqd_async_notify = 1;
    ASSERT_EQ(0, device.ModifyQp(client_qp_, &attr,
                                 IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
    ASSERT_EQ(0, Post(client_qp_, Send(2)));
    const std::optional<ibv_async_event> event = AwaitAsyncEvent(device);
    ASSERT_TRUE(event.has_value());
    EXPECT_EQ(event->event_type, IBV_EVENT_SQ_DRAINED);
    EXPECT_EQ(event->element.qp, client_qp_);
    EXPECT_THAT(Await(client().send_cq()), Succeeded(1));
    EXPECT_TRUE(near.bytes(0, kBytes) == far.bytes(0, kBytes));
    ibv_qp_init_attr init = {};
    ASSERT_EQ(0, device.QueryQp(client_qp_, &attr, IBV_QP_STATE, &init));
    EXPECT_EQ(attr.qp_state, IBV_QPS_SQD);
    EXPECT_EQ(attr.sq_draining, 0);
    ExpectSilence(server().recv_cq());
    attr.qp_state = IBV_QPS_RTS;
    ASSERT_EQ(0, device.ModifyQp(client_qp_, &attr, IBV_QP_STATE));
    EXPECT_THAT(Await(client().send_cq()), Succeeded(2, IBV_WC_SEND));
    EXPECT_THAT(Await(server().recv_cq()), Received(1000, 8));
  }
}

// What nobody was to be told of has to end all the same.
TEST_P(QueuePairStateTest, UnsignaledSendsDrainToo) {
  if (!deviations().goes_on_after_draining) {
    GTEST_SKIP() << "the device sleeps on when SQD is over";
  }
  Device& device = client().device();
  PostServerReceives(1, 8);
  ASSERT_EQ(0, Post(client_qp_, Send(1).Unsignaled()));
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_SQD;
  attr.en_sqd_async_notify = 1;
  ASSERT_EQ(0, device.ModifyQp(client_qp_, &attr,
                               IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
  const std::optional<ibv_async_event> event = AwaitAsyncEvent(device);
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->event_type, IBV_EVENT_SQ_DRAINED);
  ibv_qp_init_attr init = {};
  ASSERT_EQ(0, device.QueryQp(client_qp_, &attr, IBV_QP_STATE, &init));
  EXPECT_EQ(attr.sq_draining, 0);
  EXPECT_THAT(Await(server().recv_cq()), Received(1000, 8));
}

// To RESET no completion comes, not even of what is posted afterwards: the QP
// is as new.
TEST_P(QueuePairStateTest, ResetForgetsBothQueues) {
  ASSERT_EQ(0, PostReceive(client_qp_, Receive(1)));
  ASSERT_EQ(0, Post(client_qp_, Send(2)));
  ASSERT_EQ(0,
            Modify(client().device(), client_qp_, IBV_QPS_RESET, IBV_QP_STATE));
  EXPECT_EQ(StateOf(client().device(), client_qp_), IBV_QPS_RESET);
  ExpectSilence(client().send_cq());
  ExpectSilence(client().recv_cq());
  EXPECT_EQ(EINVAL, Post(client_qp_, Send(3)));
}

}  // namespace
}  // namespace rdma::conformance
