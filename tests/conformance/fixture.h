// The fixtures of the conformance suite: two sides, and QPs that connect them.
//
//   class SendTest : public ConnectedTest {};
//   CONFORMANCE_SUITE(SendTest);
//
//   TEST_P(SendTest, ArrivesWhole) {
//     ASSERT_EQ(0, PostReceive(server_qp_, {.wr_id = 1, .sges = {...}}));
//     ASSERT_EQ(0, Post(client_qp_, SendWr(2).Sge(client_buffer_.sge(0, 64))));
//     EXPECT_THAT(Await(server().recv_cq()), Received(1, 64));
//   }
//
// The client is the end that connected, the server the one that accepted; verbs
// makes no other difference between them. Both live in this process unless the
// test says otherwise, and one thread drives them (see pump.h).
//
// Every test also checks that it leaves no descriptor and no shared mapping.
#ifndef VERBENA_TESTS_CONFORMANCE_FIXTURE_H_
#define VERBENA_TESTS_CONFORMANCE_FIXTURE_H_

#include <arpa/inet.h>
#include <infiniband/verbs.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rdma_transport/provider/provider.h"
#include "tests/conformance/provider_under_test.h"
#include "tests/conformance/pump.h"
#include "tests/conformance/side.h"
#include "tests/conformance/work_request.h"

namespace rdma::conformance {

// Runs the suite in every arrangement of AllVariants().
#define CONFORMANCE_SUITE(Suite)                                               \
  INSTANTIATE_TEST_SUITE_P(Verbs, Suite, ::testing::ValuesIn(AllVariants()),   \
                           [](const ::testing::TestParamInfo<Variant>& info) { \
                             return info.param.name;                           \
                           })

// The same in one arrangement.
#define CONFORMANCE_SUITE_ONCE(Suite)                                          \
  INSTANTIATE_TEST_SUITE_P(Verbs, Suite, ::testing::ValuesIn(OneVariant()),    \
                           [](const ::testing::TestParamInfo<Variant>& info) { \
                             return info.param.name;                           \
                           })

// How to make a connection; what is not said is the default of its type. Sends
// wait for receives for ever, and 0.27 s for each acknowledgement, so that no
// test depends on how fast it posts them, or on whether the machine is busy.
inline ConnectionParameters PatientParameters() {
  return {.rnr_retry_count = 7, .timeout = 16};
}
struct LinkOptions {
  QpOptions client;
  QpOptions server;
  ConnectionParameters client_parameters = PatientParameters();
  ConnectionParameters server_parameters = PatientParameters();
};

// A connected pair of QPs and the ids that connected them.
struct Link {
  ibv_qp* client = nullptr;
  ibv_qp* server = nullptr;
  CmId* client_id = nullptr;
  CmId* server_id = nullptr;
};

// Opens the devices and makes the two sides; connects nothing.
class ConformanceTest : public testing::TestWithParam<Variant> {
 protected:
  static void SetUpTestSuite();
  void SetUp() override;
  void TearDown() override;

  static const Deviations& deviations() {
    return TheProviderUnderTest().deviations;
  }

  Side& client() { return *client_; }
  Side& server() { return *server_; }
  Pump& pump() { return pump_; }

  // See Pump.
  ibv_wc Await(ibv_cq* cq) { return pump_.Await(cq); }
  std::vector<ibv_wc> Await(ibv_cq* cq, size_t count) {
    return pump_.Await(cq, count);
  }
  void ExpectSilence(ibv_cq* cq) { pump_.ExpectSilence(cq); }

  // The provider's server address with `port`.
  SocketAddress ServerAddress(uint16_t port = 0);

  // Makes a connection through a listener on the server's side that all of the
  // test's connections share. False after a failure, which fails the test.
  [[nodiscard]] bool Connect(const LinkOptions& options, Link* link);
  // With QPs that exist already.
  [[nodiscard]] bool Connect(ibv_qp* client_qp, ibv_qp* server_qp,
                             const LinkOptions& options, Link* link);

  // Disconnects from the client's end, waits until both ends know, and destroys
  // the QPs and ids.
  void Disconnect(Link* link);

  // The next async event of a device, acknowledged; nothing and a failed test
  // if none comes.
  std::optional<ibv_async_event> AwaitAsyncEvent(Device& device);
  void ExpectNoAsyncEvent(Device& device);

  // The state of a QP as ibv_query_qp(3) has it.
  static ibv_qp_state StateOf(Device& device, ibv_qp* qp);
  // Moves a QP to ERR, as ibv_modify_qp(3) does from any state.
  static void MoveToError(Device& device, ibv_qp* qp);

 private:
  std::unique_ptr<Provider> provider_;
  std::unique_ptr<Device> client_device_;
  std::unique_ptr<Device> server_device_;
  Pump pump_{TheProviderUnderTest().patience, TheProviderUnderTest().silence};
  std::unique_ptr<Side> client_;
  std::unique_ptr<Side> server_;
  CmId* listener_ = nullptr;
};

// A connection and a buffer at each end: the client's full of bytes, the
// server's of zeros, both open to everything.
class ConnectedTest : public ConformanceTest {
 protected:
  static constexpr size_t kBufferBytes = 64 * 1024;

  // What SetUp connects with; a suite that wants other queues overrides it.
  virtual LinkOptions Options() { return {}; }

  void SetUp() override;
  void TearDown() override;

  // Posts `count` receives of `bytes` bytes each to the server, one behind the
  // other in its buffer, numbered from `first_wr_id`.
  void PostServerReceives(int count, size_t bytes, uint64_t first_wr_id = 1000);

  Link link_;
  ibv_qp* client_qp_ = nullptr;
  ibv_qp* server_qp_ = nullptr;
  Region client_buffer_;
  Region server_buffer_;
};

// Opens one end's device: kClient or kServer of the provider under test. Null
// after a failure, which fails the test.
enum class End { kClient, kServer };
std::unique_ptr<Device> OpenDevice(Provider& provider, End end,
                                   const DeviceOptions& options);

}  // namespace rdma::conformance

#endif  // VERBENA_TESTS_CONFORMANCE_FIXTURE_H_
