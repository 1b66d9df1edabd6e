// Goal: an attachment of more than 2 GiB, beyond what 31 or 32 bits hold,
// passes whole in either direction, of a unary call and of a stream.
//
// Method: one of 2 GiB + 1 MiB there and back, summed up before and afterwards.
// The client holds it twice, the server once: 7 GiB of memory; skipped, and
// says so, where there is less.
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "benchmarks/test_pattern.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/peer_process.h"
#include "tests/e2e/resources.h"
#include "tests/e2e/streams_services.h"

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

class HugeAttachmentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (AvailableKib() < kNeededKib) {
      GTEST_SKIP() << "needs " << kNeededKib / 1024
                   << " MiB of memory, there are " << AvailableKib() / 1024;
    }
  }
};

TEST_F(HugeAttachmentTest, PassesThereAndBack) {
  const PeerProcess server = PeerProcess::Serve();
  ASSERT_TRUE(server.ok()) << server.address();
  const Client client(server.address());
  EXPECT_OK(client.Echo(100, kBytes, absl::Minutes(4)));
}

TEST_F(HugeAttachmentTest, PassesThereAndBackInAStream) {
  StreamsProgress progress;
  const std::unique_ptr<ServedStreams> streams =
      ServeStreams(Api::kBlocking, &progress);
  const Server server({}, ServerUri(), &streams->service());
  ASSERT_TRUE(server.ok()) << server.status();
  const Client client(server.address());
  absl::StatusOr<rpc::Buffer> buffer = client.channel().AllocateBuffer(kBytes);
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  benchmarks::FillTestPattern(reinterpret_cast<char*>(buffer->mutable_data()),
                              kBytes, 5);
  rpc::BufferChain attachment(*std::move(buffer));
  const uint64_t checksum = benchmarks::Checksum(attachment);

  TimedContext context(absl::Minutes(4));
  const auto stream = Streams::NewStub(client.shared_channel())->Chat(&context);
  Item item;
  item.set_number(1);
  ASSERT_TRUE(stream->Write(
      item, rpc::WriteOptions().set_attachment(std::move(attachment))));
  rpc::BufferChain answer;
  ASSERT_TRUE(stream->Read(&item, &answer));
  EXPECT_EQ(answer.size(), kBytes);
  EXPECT_EQ(benchmarks::Checksum(answer), checksum);
  EXPECT_TRUE(stream->WritesDone());
  EXPECT_OK(stream->Finish());
}

}  // namespace
}  // namespace e2e
