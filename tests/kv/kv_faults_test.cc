// Goal: when something is wrong, the right side says so, soon, in words to act
// on, and the server serves on. Method: real processes that find nobody, find
// the wrong one, run out of memory, or are killed.
#include <signal.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/kv/kv_processes.h"
#include "tests/kv/temp_tree.h"

namespace kv {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

int PutsOf(const KvServer& server) {
  const ProcessResult stats = server.Kv({"stats", "--json"});
  EXPECT_EQ(stats.exit_status, 0) << stats.err;
  return nlohmann::json::parse(stats.out)["puts"].get<int>();
}

TEST(KvFaultsTest, NoServerIsExitStatus3AtOnce) {
  const std::string address = e2e::ServerUri(1);
  const absl::Time start = absl::Now();
  const ProcessResult result = RunProcess(KvCommand(address, {"get", "k"}));
  EXPECT_EQ(result.exit_status, 3);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr(address), HasSubstr("start the server")));
  EXPECT_LT(absl::Now() - start, absl::Seconds(20));
}

TEST(KvFaultsTest, AnAddressThatIsNoneIsRefused) {
  for (const char* address :
       {"rdma://127.0.0.1", "rdma://127.0.0.1:99999", "http://127.0.0.1:1",
        "rdma://no.such.host.invalid:50051", ""}) {
    const ProcessResult result = RunProcess(KvCommand(address, {"get", "k"}));
    EXPECT_NE(result.exit_status, 0) << address;
    EXPECT_THAT(result.err, HasSubstr("kv: ")) << address;
    const ProcessResult server = RunProcess(KvServerCommand(address, {}));
    EXPECT_EQ(server.exit_status, 2) << address;
    EXPECT_THAT(server.err, HasSubstr("kv_server: ")) << address;
  }
}

TEST(KvFaultsTest, ADeviceThatIsNotThereIsNamed) {
  const ProcessResult server =
      RunProcess({"examples/kv/kv_server", "--device=mlx5_77",
                  "--address=rdma://127.0.0.1:0"});
  EXPECT_EQ(server.exit_status, 2);
  EXPECT_THAT(server.err, HasSubstr("mlx5_77"));
  const ProcessResult client =
      RunProcess({"examples/kv/kv", "--device=mlx5_77", "get", "k"});
  EXPECT_EQ(client.exit_status, 1);
  EXPECT_THAT(client.err, HasSubstr("mlx5_77"));
}

TEST(KvFaultsTest, APortInUseIsExitStatus2AndTheFirstServesOn) {
  KvServer server;
  const ProcessResult second =
      RunProcess(KvServerCommand(server.address(), {}));
  EXPECT_EQ(second.exit_status, 2);
  EXPECT_THAT(second.err, HasSubstr(server.address()));
  EXPECT_EQ(server.Kv({"put", "k", "v"}).exit_status, 0);
}

TEST(KvFaultsTest, TheMemoryLimitRefusesAndSaysWhatToDo) {
  KvServer server({"--memory_limit_bytes=10000000"});
  const std::string half(6'000'000, 'x');
  ASSERT_EQ(server.Kv({"put", "a"}, half).exit_status, 0);
  const ProcessResult full = server.Kv({"put", "b"}, half);
  EXPECT_EQ(full.exit_status, 4);
  EXPECT_THAT(full.err,
              AllOf(HasSubstr("RESOURCE_EXHAUSTED"), HasSubstr("10000000"),
                    HasSubstr("--memory_limit_bytes")));
  EXPECT_EQ(server.Kv({"get", "b"}).exit_status, 2);
  EXPECT_TRUE(server.Kv({"get", "a"}).out == half);
  EXPECT_EQ(server.Kv({"delete", "a"}).exit_status, 0);
  EXPECT_EQ(server.Kv({"put", "b"}, half).exit_status, 0);
}

TEST(KvFaultsTest, LoadingIntoAFullServerEndsAndNamesTheFile) {
  KvServer server({"--memory_limit_bytes=1000000"});
  TempTree temp;
  for (int i = 0; i < 30; ++i) {
    temp.Write(absl::StrCat("file", i), std::string(100'000, 'x'));
  }
  const ProcessResult load = server.Kv({"load", temp.root()});
  EXPECT_EQ(load.exit_status, 4);
  EXPECT_THAT(load.err,
              AllOf(HasSubstr("RESOURCE_EXHAUSTED"), HasSubstr(temp.root())));
}

TEST(KvFaultsTest, ClientsOfAKilledServerEndWithExitStatus3) {
  KvServer server;
  TempTree temp;
  for (int i = 0; i < 2000; ++i) {
    temp.Write(absl::StrCat("file", i), std::string(60'000, 'x'));
  }
  Subprocess load(KvCommand(server.address(), {"load", temp.root()}));
  // Killed once the load is under way.
  while (PutsOf(server) == 0) {
  }
  server.Kill();
  const ProcessResult result = load.Finish(absl::Minutes(1));
  // It may have been through already.
  if (result.exit_status != 0) {
    EXPECT_EQ(result.exit_status, 3) << result.err;
    EXPECT_THAT(result.err, HasSubstr("UNAVAILABLE"));
  }
}

TEST(KvFaultsTest, KilledClientsLeaveTheServerWhole) {
  KvServer server;
  TempTree temp;
  temp.Write("large", std::string(50'000'000, 'x'));
  for (int i = 0; i < 500; ++i) {
    temp.Write(absl::StrCat("file", i), std::string(20'000, 'x'));
  }
  for (int round = 0; round < 5; ++round) {
    const int before = PutsOf(server);
    Subprocess load(KvCommand(server.address(), {"load", temp.root()}));
    // Each time a little later.
    while (PutsOf(server) <= before + 20 * round) {
    }
    load.Signal(SIGKILL);
    load.Finish();
  }
  EXPECT_EQ(server.Kv({"load", temp.root()}).exit_status, 0);
  EXPECT_EQ(server.Kv({"verify", temp.root()}).exit_status, 0);
}

TEST(KvFaultsTest, AServerThatIsAskedToEndFinishesWhatRuns) {
  KvServer server;
  TempTree temp;
  for (int i = 0; i < 500; ++i) {
    temp.Write(absl::StrCat("file", i), std::string(20'000, 'x'));
  }
  Subprocess load(KvCommand(server.address(), {"load", temp.root()}));
  while (PutsOf(server) == 0) {
  }
  server.process().Signal(SIGINT);
  const ProcessResult stopped = server.Stop();
  // A second signal ends it at once: which of the two it was, is a race.
  EXPECT_THAT(stopped.exit_status, ::testing::AnyOf(0, 128 + SIGTERM));
  const ProcessResult result = load.Finish(absl::Minutes(1));
  EXPECT_THAT(result.exit_status, ::testing::AnyOf(0, 3)) << result.err;
}

TEST(KvFaultsTest, ARestartedServerIsFoundAgain) {
  const std::string address = e2e::ServerUri(e2e::PortToComeBackTo());
  KvServer first({}, address);
  ASSERT_EQ(first.Kv({"put", "k", "v"}).exit_status, 0);
  first.Kill();
  KvServer second({}, address);
  EXPECT_EQ(second.address(), first.address());
  EXPECT_EQ(second.Kv({"get", "k"}).exit_status, 2);  // memory is not disk
  EXPECT_EQ(second.Kv({"put", "k", "v"}).exit_status, 0);
}

}  // namespace
}  // namespace kv
