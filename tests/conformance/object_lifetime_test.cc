// Objects that others depend on cannot be destroyed before them: each says busy
// and stays usable. ibv_dealloc_pd(3), ibv_destroy_cq(3), ibv_destroy_srq(3),
// ibv_destroy_comp_channel(3), ibv_alloc_mw(3).
#include <cerrno>
#include <cstring>
#include <vector>

#include "tests/conformance/fixture.h"

namespace rdma::conformance {
namespace {

using testing::AnyOf;

class ObjectLifetimeTest : public ConformanceTest {
 protected:
  Device& device() { return client().device(); }
};
CONFORMANCE_SUITE(ObjectLifetimeTest);

// "ibv_dealloc_pd() may fail if any other resource is still associated with
// the PD being freed."
TEST_P(ObjectLifetimeTest, ADomainStaysWhileItIsUsed) {
  ibv_pd* pd = device().AllocPd();
  ASSERT_NE(pd, nullptr);
  {
    Region region(&device(), pd, 4096, kAllAccess, MemoryUse::kRemoteWritable);
    ASSERT_FALSE(region.empty());
    EXPECT_EQ(EBUSY, device().DeallocPd(pd));
  }
  ibv_qp* qp = client().CreateQp({.pd = pd});
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(EBUSY, device().DeallocPd(pd));
  client().DestroyQp(qp);
  EXPECT_EQ(0, device().DeallocPd(pd));
}

// "ibv_destroy_cq() fails if any queue pair is still associated with this CQ."
TEST_P(ObjectLifetimeTest, ACqStaysWhileAQpUsesIt) {
  ibv_cq* cq = device().CreateCq(16, nullptr, nullptr, 0);
  ASSERT_NE(cq, nullptr);
  ibv_qp* qp = client().CreateQp({.recv_cq = cq});
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(EBUSY, device().DestroyCq(cq));
  client().DestroyQp(qp);
  EXPECT_EQ(0, device().DestroyCq(cq));
}

// "ibv_destroy_srq() fails if any queue pair is still associated with this
// SRQ."
TEST_P(ObjectLifetimeTest, AnSrqStaysWhileAQpUsesIt) {
  uint32_t depth = 16;
  ibv_srq* srq = client().CreateSrq(&depth);
  ASSERT_NE(srq, nullptr);
  ibv_qp* qp = client().CreateQp({.srq = srq});
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(EBUSY, device().DestroySrq(srq));
  client().DestroyQp(qp);
  client().DestroySrq(srq);
}

// "ibv_destroy_comp_channel() fails if any CQs are still associated with the
// completion event channel being destroyed."
TEST_P(ObjectLifetimeTest, AChannelStaysWhileACqUsesIt) {
  ibv_comp_channel* channel = device().CreateCompChannel();
  ASSERT_NE(channel, nullptr);
  ibv_cq* cq = device().CreateCq(16, nullptr, channel, 0);
  ASSERT_NE(cq, nullptr);
  EXPECT_EQ(cq->channel, channel);
  EXPECT_EQ(EBUSY, device().DestroyCompChannel(channel));
  EXPECT_EQ(0, device().DestroyCq(cq));
  EXPECT_EQ(0, device().DestroyCompChannel(channel));
}

// "ibv_create_cq() may create a CQ with size greater than or equal".
TEST_P(ObjectLifetimeTest, ACqIsAtLeastAsDeepAsAsked) {
  int context = 0;
  ibv_cq* cq = client().CreateCq(100, client().channel(), &context);
  ASSERT_NE(cq, nullptr);
  EXPECT_GE(cq->cqe, 100);
  EXPECT_EQ(cq->cq_context, &context);
}

TEST_P(ObjectLifetimeTest, MakesAndDestroysManyOfEach) {
  for (int round = 0; round < 50; ++round) {
    std::vector<ibv_qp*> qps;
    std::vector<ibv_cq*> cqs;
    for (int i = 0; i < 10; ++i) {
      cqs.push_back(client().CreateCq(64, client().channel()));
      ASSERT_NE(cqs.back(), nullptr) << round;
      qps.push_back(client().CreateQp({.send_cq = cqs.back()}));
      ASSERT_NE(qps.back(), nullptr) << round;
    }
    for (ibv_qp* qp : qps) client().DestroyQp(qp);
    for (ibv_cq* cq : cqs) client().DestroyCq(cq);
  }
}

// What is connected and never disconnected goes as well.
TEST_P(ObjectLifetimeTest, AConnectedQpMayBeDestroyed) {
  for (int round = 0; round < 3; ++round) {
    Link link;
    ASSERT_TRUE(Connect({}, &link));
    client().DestroyQp(link.client);
    client().manager().Destroy(link.client_id);
    const std::optional<CmEvent> event = pump().Await(&server().manager());
    ASSERT_TRUE(event.has_value());
    EXPECT_EQ(event->type, CmEvent::Type::kDisconnected);
    EXPECT_EQ(event->id, link.server_id);
    server().DestroyQp(link.server);
    server().manager().Destroy(link.server_id);
  }
}

TEST_P(ObjectLifetimeTest, TwoDevicesOfOneNameAreIndependent) {
  std::unique_ptr<Provider> provider = TheProviderUnderTest().make();
  std::unique_ptr<Device> other = OpenDevice(*provider, End::kClient, {});
  ASSERT_NE(other, nullptr);
  ibv_pd* pd = other->AllocPd();
  ASSERT_NE(pd, nullptr);
  EXPECT_EQ(pd->context, other->context());
  EXPECT_NE(other->context(), device().context());
  EXPECT_EQ(0, other->DeallocPd(pd));
}

TEST_P(ObjectLifetimeTest, NamesItsDevices) {
  std::unique_ptr<Provider> provider = TheProviderUnderTest().make();
  EXPECT_THAT(provider->ListDevices(),
              testing::Contains(std::string(device().name())));
  EXPECT_EQ(absl::StatusCode::kNotFound,
            provider->Open("no such device", {}).status().code());
}

TEST_P(ObjectLifetimeTest, StatesItsLimits) {
  const ibv_device_attr& limits = device().attributes();
  EXPECT_GT(limits.max_qp, 0);
  EXPECT_GT(limits.max_qp_wr, 0);
  EXPECT_GT(limits.max_sge, 0);
  EXPECT_GT(limits.max_cq, 0);
  EXPECT_GT(limits.max_cqe, 0);
  EXPECT_GT(limits.max_mr, 0);
  EXPECT_GT(limits.max_pd, 0);
  EXPECT_GT(limits.max_qp_rd_atom, 0);
  EXPECT_GT(limits.max_qp_init_rd_atom, 0);
  EXPECT_GE(limits.phys_port_cnt, 1);
}

}  // namespace
}  // namespace rdma::conformance
