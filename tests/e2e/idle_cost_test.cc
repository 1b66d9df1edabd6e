// Goal: who has connections and no calls sleeps, on either side.
// Method: the CPU time of a server's process and of its client's, over some
// seconds. Of several looks the best one counts: on a busy machine something
// may come between, but who polls, polls all the time.
#include <time.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/peer_process.h"

namespace e2e {
namespace {

constexpr absl::Duration kLook = absl::Seconds(2);
constexpr int kLooks = 5;
constexpr double kMostOfOneCpu = 0.05;

absl::Duration OwnCpuTime() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return absl::DurationFromTimespec(time);
}

TEST(IdleCostTest, AServerAndAClientWithManyIdleConnectionsSleep) {
  const PeerProcess server = PeerProcess::Serve();
  ASSERT_TRUE(server.ok()) << server.address();
  const int connections = TheDeviceUnderTest().software
                              ? 300
                              : TheDeviceUnderTest().many_connections;
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < connections; ++i) {
    clients.push_back(std::make_unique<Client>(
        server.address(), Arguments{{"grpc.use_local_subchannel_pool", 1}}));
    ASSERT_OK(clients.back()->Echo(100)) << i;
  }
  double server_share = 1;
  double client_share = 1;
  for (int look = 0; look < kLooks; ++look) {
    const absl::Time start = absl::Now();
    const absl::Duration server_start = server.CpuTime();
    const absl::Duration client_start = OwnCpuTime();
    absl::SleepFor(kLook);
    const absl::Duration time = absl::Now() - start;
    server_share =
        std::min(server_share,
                 absl::FDivDuration(server.CpuTime() - server_start, time));
    client_share = std::min(
        client_share, absl::FDivDuration(OwnCpuTime() - client_start, time));
    if (std::max(server_share, client_share) < kMostOfOneCpu) break;
  }
  EXPECT_LT(server_share, kMostOfOneCpu);
  EXPECT_LT(client_share, kMostOfOneCpu);
  ASSERT_OK(clients.front()->Echo(100));
}

}  // namespace
}  // namespace e2e
