// Goal: gRPC's interoperability cases go as its documentation describes them
// (interop_cases.h lists which), over the device under test, with each API of
// the client. Method: a server in this process, and the clients' tables of
// cases, one case after the other and all at a time.
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/interop_cases.h"
#include "tests/e2e/interop_service.h"

namespace interop {
namespace {

// For all that runs below.
struct Ends {
  Ends() : server({}, e2e::ServerUri(), &service) {
    EXPECT_TRUE(server.ok()) << server.status();
    if (server.ok()) {
      stubs.emplace(e2e::Client(server.address()).shared_channel());
    }
  }

  InteropService service;
  e2e::Server server;
  std::optional<Stubs> stubs;  // none where there is no server
};

class InteropTest : public testing::TestWithParam<Case> {};

TEST_P(InteropTest, GoesAsDescribed) {
  Ends ends;
  ASSERT_TRUE(ends.stubs.has_value());
  GetParam().run(*ends.stubs);
  // And what it left behind does not stand in its own way.
  GetParam().run(*ends.stubs);
}

INSTANTIATE_TEST_SUITE_P(Cases, InteropTest, testing::ValuesIn(AllCases()),
                         [](const testing::TestParamInfo<Case>& info) {
                           return NameOf(info.param);
                         });

TEST(InteropCasesTest, GoAsDescribedBesideEachOther) {
  Ends ends;
  ASSERT_TRUE(ends.stubs.has_value());
  std::vector<std::thread> threads;
  for (const Case& c : AllCases()) {
    threads.emplace_back([&ends, run = c.run] { run(*ends.stubs); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace interop
