// Goal: the state changes of ibv_modify_qp(3), each with the attributes it
// needs and admits, and no others. Method: all pairs of states against the man
// page's table, and each attribute left out or added.
#include "rdma_transport/software/engine/qp_state.h"

#include <cerrno>
#include <map>
#include <utility>

#include "gtest/gtest.h"

namespace rdma::soft {
namespace {

constexpr ibv_qp_state kStates[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
                                    IBV_QPS_RTS,   IBV_QPS_SQD,  IBV_QPS_SQE,
                                    IBV_QPS_ERR};

constexpr int kToInit = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kToRtr = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                       IBV_QP_MIN_RNR_TIMER;
constexpr int kToRts = IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC |
                       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT;

// The legal changes, with what they require.
std::map<std::pair<int, int>, int> Legal() {
  std::map<std::pair<int, int>, int> legal = {
      {{IBV_QPS_RESET, IBV_QPS_RESET}, 0},
      {{IBV_QPS_RESET, IBV_QPS_INIT}, kToInit},
      {{IBV_QPS_INIT, IBV_QPS_INIT}, 0},
      {{IBV_QPS_INIT, IBV_QPS_RTR}, kToRtr},
      {{IBV_QPS_RTR, IBV_QPS_RTS}, kToRts},
      {{IBV_QPS_RTS, IBV_QPS_RTS}, 0},
      {{IBV_QPS_RTS, IBV_QPS_SQD}, 0},
      {{IBV_QPS_SQD, IBV_QPS_SQD}, 0},
      {{IBV_QPS_SQD, IBV_QPS_RTS}, 0},
  };
  for (ibv_qp_state state : kStates) {
    if (state == IBV_QPS_RESET) continue;
    legal[{state, IBV_QPS_RESET}] = 0;
    legal[{state, IBV_QPS_ERR}] = 0;
  }
  return legal;
}

TEST(QpStateTest, AdmitsTheLegalChangesOnly) {
  const auto legal = Legal();
  for (ibv_qp_state from : kStates) {
    for (ibv_qp_state to : kStates) {
      SCOPED_TRACE(testing::Message() << from << " -> " << to);
      const auto found = legal.find({from, to});
      if (found == legal.end()) {
        EXPECT_EQ(CheckTransition(from, to, IBV_QP_STATE), EINVAL);
      } else {
        EXPECT_EQ(CheckTransition(from, to, IBV_QP_STATE | found->second), 0);
      }
    }
  }
}

TEST(QpStateTest, RequiresEachRequiredAttribute) {
  for (const auto& [states, required] : Legal()) {
    for (int bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
      if ((required & bit) == 0) continue;
      EXPECT_EQ(CheckTransition(static_cast<ibv_qp_state>(states.first),
                                static_cast<ibv_qp_state>(states.second),
                                IBV_QP_STATE | (required & ~bit)),
                EINVAL)
          << states.first << " -> " << states.second << " without " << bit;
    }
  }
}

TEST(QpStateTest, RefusesAttributesThatDoNotGoWithTheChange) {
  EXPECT_EQ(CheckTransition(IBV_QPS_RESET, IBV_QPS_INIT,
                            IBV_QP_STATE | kToInit | IBV_QP_QKEY),
            EINVAL)
      << "an RC QP has no Q_Key";
  EXPECT_EQ(CheckTransition(IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_DEST_QPN), EINVAL);
  EXPECT_EQ(
      CheckTransition(IBV_QPS_RTS, IBV_QPS_ERR, IBV_QP_STATE | IBV_QP_TIMEOUT),
      EINVAL);
  EXPECT_EQ(CheckTransition(IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_MIN_RNR_TIMER), 0);
}

TEST(QpStateTest, RefusesValuesThatDoNotExist) {
  ibv_qp_attr attributes = {};
  attributes.port_num = 1;
  attributes.path_mtu = IBV_MTU_1024;
  EXPECT_EQ(CheckAttributeValues(attributes, kToInit | kToRtr | kToRts, 16), 0);
  const auto check = [](int mask, auto set) {
    ibv_qp_attr bad = {};
    set(&bad);
    return CheckAttributeValues(bad, mask, 16);
  };
  EXPECT_EQ(check(IBV_QP_PORT, [](auto* a) { a->port_num = 2; }), EINVAL);
  EXPECT_EQ(check(IBV_QP_PKEY_INDEX, [](auto* a) { a->pkey_index = 1; }),
            EINVAL);
  EXPECT_EQ(check(IBV_QP_MIN_RNR_TIMER, [](auto* a) { a->min_rnr_timer = 32; }),
            EINVAL);
  EXPECT_EQ(check(IBV_QP_RNR_RETRY, [](auto* a) { a->rnr_retry = 8; }), EINVAL);
  EXPECT_EQ(
      check(IBV_QP_MAX_QP_RD_ATOMIC, [](auto* a) { a->max_rd_atomic = 17; }),
      EINVAL);
  EXPECT_EQ(
      check(IBV_QP_ACCESS_FLAGS, [](auto* a) { a->qp_access_flags = 1 << 20; }),
      EINVAL);
  EXPECT_EQ(check(0, [](auto* a) { a->port_num = 2; }), 0) << "not named";
}

TEST(QpStateTest, CopiesWhatTheMaskNames) {
  ibv_qp_attr from = {};
  from.min_rnr_timer = 3;
  from.rnr_retry = 4;
  ibv_qp_attr to = {};
  to.rnr_retry = 5;
  CopyAttributes(from, IBV_QP_MIN_RNR_TIMER, &to);
  EXPECT_EQ(to.min_rnr_timer, 3);
  EXPECT_EQ(to.rnr_retry, 5);
}

}  // namespace
}  // namespace rdma::soft
