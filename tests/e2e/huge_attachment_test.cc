// Goal: an attachment of more than 2 GiB, beyond what 31 or 32 bits hold,
// passes whole in either direction.
//
// Method: one of 2 GiB + 1 MiB there and back, summed up before and afterwards.
// The client holds it twice, the server once: 7 GiB of memory; skipped, and
// says so, where there is less.
#include <cstdint>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/peer_process.h"
#include "tests/e2e/resources.h"

namespace e2e {
namespace {

constexpr uint64_t kBytes = (uint64_t{2} << 30) + (uint64_t{1} << 20);
constexpr uint64_t kNeededKib = uint64_t{7} << 20;

// What the system could give without swapping; 0 where it does not say.
uint64_t AvailableKib() {
  std::ifstream file("/proc/meminfo");
  uint64_t kib = 0;
  for (std::string word; file >> word;) {
    if (word == "MemAvailable:" && file >> kib) return kib;
  }
  return 0;
}

TEST(HugeAttachmentTest, PassesThereAndBack) {
  if (AvailableKib() < kNeededKib) {
    GTEST_SKIP() << "needs " << kNeededKib / 1024
                 << " MiB of memory, there are " << AvailableKib() / 1024;
  }
  const PeerProcess server = PeerProcess::Serve();
  ASSERT_TRUE(server.ok()) << server.address();
  const Client client(server.address());
  EXPECT_OK(client.Echo(100, kBytes, absl::Minutes(4)));
}

}  // namespace
}  // namespace e2e
