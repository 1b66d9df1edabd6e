// Goal: a thousand connections of one client process to one server cost little
// memory while they are idle, and all are served.
// Method: channels with connections of their own; what the transport itself
// says it has registered, on both sides.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rdma_transport/statistics.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/peer_process.h"
#include "tests/e2e/resources.h"

namespace e2e {
namespace {

constexpr int kConnections = 1000;
constexpr int64_t kMostBytesOfIdleOne = 32 << 10;

std::unique_ptr<Client> OneOfItsOwn(const std::string& address) {
  return std::make_unique<Client>(
      address, Arguments{{"grpc.use_local_subchannel_pool", 1}});
}

TEST(ManyConnectionsTest, AThousandIdleOnesCostLittleAndAreServed) {
  const PeerProcess server = PeerProcess::Serve();
  std::vector<std::unique_ptr<Client>> clients;
  clients.push_back(OneOfItsOwn(server.address()));
  ASSERT_OK(clients[0]->Echo(100));
  const Observation server_at_first = clients[0]->Observe();
  const auto registered_here = [] {
    return static_cast<int64_t>(
        rdma::GetTransportStatistics().registered_bytes);
  };
  const int64_t here_at_first = registered_here();

  while (clients.size() < kConnections) {
    clients.push_back(OneOfItsOwn(server.address()));
    ASSERT_OK(clients.back()->Echo(100)) << clients.size();
  }
  const Observation server_now = clients[0]->Observe();
  EXPECT_EQ(rdma::GetTransportStatistics().open_connections, kConnections);
  EXPECT_EQ(server_now.connections(), kConnections);
  const auto bytes_of_one = [](int64_t before, int64_t after) {
    return (after - before) / (kConnections - 1);
  };
  const int64_t here = bytes_of_one(here_at_first, registered_here());
  const int64_t there = bytes_of_one(server_at_first.registered_bytes(),
                                     server_now.registered_bytes());
  EXPECT_LE(here, kMostBytesOfIdleOne);
  EXPECT_LE(there, kMostBytesOfIdleOne);
  RecordProperty("registered_bytes_of_an_idle_connection",
                 absl::StrCat(here, " client, ", there, " server"));

  for (const size_t bytes : {100, 50'000}) {
    for (size_t i = 0; i < clients.size(); ++i) {
      ASSERT_OK(clients[i]->Echo(bytes)) << bytes << " bytes on " << i;
    }
  }
  clients.resize(1);
  EXPECT_TRUE(
      Eventually([&] { return clients[0]->Observe().connections() == 1; }));
}

}  // namespace
}  // namespace e2e
