// Goal: no wish of a user makes a QP that waits for ever, or that the device
// refuses. Method: wishes at and beyond the edges of what verbs and a device
// with limits of its own can express.
#include "rdma_transport/hardware/qp_setup.h"

#include "gtest/gtest.h"

namespace rdma {
namespace {

ibv_device_attr SmallDevice() {
  ibv_device_attr limits = {};
  limits.max_qp_rd_atom = 4;
  limits.max_qp_init_rd_atom = 2;
  return limits;
}

TEST(QpSetupTest, KeepsTheDefaultsOfAGenerousDevice) {
  ibv_device_attr limits = {};
  limits.max_qp_rd_atom = limits.max_qp_init_rd_atom = 128;
  const ConnectionParameters defaults;
  const ConnectionParameters clamped = Clamp(defaults, limits);
  EXPECT_EQ(clamped.responder_resources, defaults.responder_resources);
  EXPECT_EQ(clamped.initiator_depth, defaults.initiator_depth);
  EXPECT_EQ(clamped.retry_count, defaults.retry_count);
  EXPECT_EQ(clamped.rnr_retry_count, defaults.rnr_retry_count);
  EXPECT_EQ(clamped.timeout, defaults.timeout);
  EXPECT_EQ(clamped.min_rnr_timer, defaults.min_rnr_timer);
}

TEST(QpSetupTest, ReadsFollowTheDevice) {
  const ConnectionParameters clamped =
      Clamp({.responder_resources = 16, .initiator_depth = 16}, SmallDevice());
  EXPECT_EQ(clamped.responder_resources, 4);
  EXPECT_EQ(clamped.initiator_depth, 2);
  ibv_device_attr none = {};
  none.max_qp_rd_atom = -1;
  EXPECT_EQ(Clamp({}, none).responder_resources, 0);
}

TEST(QpSetupTest, NothingLastsForEver) {
  const ConnectionParameters clamped = Clamp(
      {.retry_count = 255, .min_rnr_timer = 0, .timeout = 0}, SmallDevice());
  EXPECT_EQ(clamped.retry_count, kMaxRetryCount);
  EXPECT_EQ(clamped.min_rnr_timer, ConnectionParameters().min_rnr_timer);
  EXPECT_EQ(clamped.timeout, ConnectionParameters().timeout);
}

TEST(QpSetupTest, ValuesFitTheirFields) {
  const ConnectionParameters clamped =
      Clamp({.rnr_retry_count = 255, .min_rnr_timer = 255, .timeout = 255},
            SmallDevice());
  EXPECT_EQ(clamped.rnr_retry_count, kMaxRnrRetryCount);
  EXPECT_EQ(clamped.min_rnr_timer, 31);
  EXPECT_EQ(clamped.timeout, 31);
}

TEST(QpSetupTest, AtomicsAreAllowedWhereTheDeviceHasThem) {
  ibv_device_attr limits = {};
  limits.atomic_cap = IBV_ATOMIC_NONE;
  EXPECT_EQ(AccessFlags(limits) & IBV_ACCESS_REMOTE_ATOMIC, 0u);
  limits.atomic_cap = IBV_ATOMIC_HCA;
  EXPECT_NE(AccessFlags(limits) & IBV_ACCESS_REMOTE_ATOMIC, 0u);
}

}  // namespace
}  // namespace rdma
