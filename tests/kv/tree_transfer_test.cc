// Goal: load and verify keep their bounds, name every problem, and end when
// going on is pointless, whatever the timing; and the client's calls work
// inline and attached. Method: client and server in one process over a loopback
// transport, inline and with threads, so that the sanitizers see all of it.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "examples/kv/client.h"
#include "examples/kv/limits.h"
#include "examples/kv/load.h"
#include "examples/kv/progress.h"
#include "examples/kv/storage.h"
#include "examples/kv/tree.h"
#include "examples/kv/verify.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/buffer.h"
#include "tests/kv/loopback_store.h"
#include "tests/kv/temp_tree.h"

namespace kv {
namespace {

using ::testing::HasSubstr;

// How many threads carry the network.
class TreeTransferTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    Start({.memory_limit_bytes = uint64_t{1} << 30}, uint64_t{1} << 30);
  }

  void Start(const StorageOptions& options, uint64_t network_memory_bytes) {
    store_ = std::make_unique<LoopbackStore>(
        options, rpc::testing::LoopbackOptions{
                     .threads = GetParam(),
                     .memory_budget_bytes = network_memory_bytes});
  }

  Client& client() { return store_->client(); }

  LoadReport Load(const LoadOptions& options = {}) {
    const Tree tree = *WalkTree(temp_.root());
    Progress progress("loading", 0, 0, {.out = log_.get()});
    return LoadTree(client(), tree, tree.RootWithSlash(), options, progress);
  }

  VerifyReport Verify(int threads = 2) {
    const Tree tree = *WalkTree(temp_.root());
    Progress progress("verifying", 0, 0, {.out = log_.get()});
    return VerifyTree(client(), tree, tree.RootWithSlash(),
                      {.threads = threads}, progress);
  }

  // What was printed.
  std::string Log() {
    std::rewind(log_.get());
    std::string text(1 << 16, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), log_.get()));
    return text;
  }

  void WriteFiles(int count, size_t bytes) {
    for (int i = 0; i < count; ++i) {
      temp_.Write(absl::StrCat("file", i),
                  std::string(bytes, static_cast<char>('a' + i % 26)));
    }
  }

  TempTree temp_;
  const std::unique_ptr<FILE, int (*)(FILE*)> log_{std::tmpfile(),
                                                   &std::fclose};
  std::unique_ptr<LoopbackStore> store_;
};

TEST_P(TreeTransferTest, ClientCallsWorkInlineAndAttached) {
  for (const size_t bytes : {size_t{0}, size_t{1}, kMaxInlineValueBytes,
                             kMaxInlineValueBytes + 1, size_t{1} << 20}) {
    rpc::BufferChain value = *client().AllocateValue(bytes);
    for (rpc::Buffer buffer : value.buffers()) {
      std::fill_n(reinterpret_cast<char*>(buffer.mutable_data()), buffer.size(),
                  'v');
    }
    const PutResponse put = *client().Put("key", value);
    const Value got = *client().Get("key");
    EXPECT_EQ(got.version, put.version());
    EXPECT_TRUE(got.bytes.ToString() == std::string(bytes, 'v')) << bytes;

    const CompareAndSwapResponse late =
        *client().CompareAndSwap("key", put.version() + 1, value);
    EXPECT_FALSE(late.swapped());
    EXPECT_TRUE(
        client().CompareAndSwap("key", put.version(), value)->swapped());
  }
  EXPECT_EQ(client().List("", 0, "")->entries_size(), 1);
  EXPECT_EQ(client().Stats()->keys(), 1u);
  EXPECT_TRUE(client().Delete("key")->deleted());
}

TEST_P(TreeTransferTest, ErrorsNameTheServer) {
  const absl::Status status = client().Get("nowhere").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(store_->network().address()));
}

// Neither is to be taken for the server's answer about a key.
TEST_P(TreeTransferTest, AWrongAddressIsNoAnswer) {
  for (const char* address : {"", "nonsense", "nonsense://127.0.0.1:1"}) {
    Client client({.address = address});
    EXPECT_EQ(client.Get("key").status().code(),
              absl::StatusCode::kFailedPrecondition);
  }
}

TEST_P(TreeTransferTest, LoadsAndVerifies) {
  WriteFiles(200, 3000);
  temp_.Write("empty", "");
  temp_.Write("large", std::string(3'000'000, 'x'));
  const LoadReport load = Load();
  EXPECT_TRUE(load.fatal.ok()) << load.fatal;
  EXPECT_EQ(load.files, 202u);
  EXPECT_EQ(load.failed_files, 0u);
  const VerifyReport verify = Verify();
  EXPECT_TRUE(verify.all_same()) << Log();
  EXPECT_EQ(verify.same_files, 202u);
  EXPECT_EQ(verify.bytes, load.bytes);
  EXPECT_EQ(verify.get_latencies.count(), 202u);
}

TEST_P(TreeTransferTest, LoadKeepsToItsBounds) {
  WriteFiles(50, 10'000);
  EXPECT_EQ(Load({.max_calls_in_flight = 1}).files, 50u);
  EXPECT_EQ(Load({.max_bytes_in_flight = 1}).files, 50u);
}

// Less registered memory than the files in flight would take: load waits for
// its own calls, and does not fail.
TEST_P(TreeTransferTest, LoadWaitsForMemoryThatItsOwnCallsHold) {
  WriteFiles(5, 10'000);
  EXPECT_EQ(Load().files, 5u);
  // The store holds this much of the network's memory for good.
  const uint64_t held = store_->network().bytes_in_use();
  Start({.memory_limit_bytes = uint64_t{1} << 30}, held * 2 + 40'000);
  EXPECT_EQ(Load().files, 5u);
}

TEST_P(TreeTransferTest, AFullServerEndsTheLoad) {
  Start({.memory_limit_bytes = 100'000}, uint64_t{1} << 30);
  WriteFiles(50, 10'000);
  const LoadReport load = Load({.max_calls_in_flight = 4});
  EXPECT_EQ(load.fatal.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_LT(load.files, 10u);
  EXPECT_THAT(std::string(load.fatal.message()), HasSubstr(temp_.root()));
}

TEST_P(TreeTransferTest, AServerThatIsGoneEndsLoadAndVerify) {
  WriteFiles(50, 10'000);
  store_->network().set_unreachable(true);
  EXPECT_EQ(Load().fatal.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Verify().fatal.code(), absl::StatusCode::kUnavailable);
}

// Files vanish between the walk and the reading.
TEST_P(TreeTransferTest, FilesThatVanishAreNamed) {
  WriteFiles(10, 100);
  const Tree tree = *WalkTree(temp_.root());
  std::filesystem::remove(temp_.PathOf("file3"));
  Progress progress("loading", 0, 0, {.out = log_.get()});
  const LoadReport load =
      LoadTree(client(), tree, tree.RootWithSlash(), {}, progress);
  EXPECT_EQ(load.files, 9u);
  EXPECT_EQ(load.failed_files, 1u);
  EXPECT_TRUE(load.fatal.ok());
  EXPECT_THAT(Log(), HasSubstr(temp_.PathOf("file3")));

  const VerifyReport verify =
      VerifyTree(client(), tree, tree.RootWithSlash(), {}, progress);
  EXPECT_EQ(verify.same_files, 9u);
  EXPECT_EQ(verify.unreadable_files, 1u);
  EXPECT_EQ(verify.missing_files, 0u);
}

TEST_P(TreeTransferTest, VerifyTellsEveryKindOfDifference) {
  WriteFiles(10, 100);
  ASSERT_EQ(Load().files, 10u);
  temp_.Write("file1", std::string(100, '!'));
  temp_.Write("file2", "short");
  temp_.Write("new", "1");
  std::filesystem::remove(temp_.PathOf("file3"));
  for (const int threads : {1, 4}) {
    const VerifyReport verify = Verify(threads);
    EXPECT_FALSE(verify.all_same());
    EXPECT_EQ(verify.same_files, 7u);
    EXPECT_EQ(verify.different_files, 2u);
    EXPECT_EQ(verify.missing_files, 1u);
    EXPECT_EQ(verify.extra_keys, 1u);
  }
  const std::string log = Log();
  for (const char* name : {"file1", "file2", "new", "file3"}) {
    EXPECT_THAT(log, HasSubstr(temp_.PathOf(name)));
  }
}

// A file that is rewritten all the time is loaded as one of its states or
// named, never as a mixture.
TEST_P(TreeTransferTest, NeverStoresAMixtureOfTwoStates) {
  const std::string a(300'000, 'a');
  const std::string b(300'000, 'b');
  temp_.Write("busy", a);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; !stop; ++i) {
      temp_.Write("busy", i % 2 == 0 ? b : a);
      // Shorter and longer than a tick of the file system's clock.
      absl::SleepFor(absl::Milliseconds(i * 7 % 30));
    }
  });
  int stored_states = 0;
  for (int round = 0; round < 30 || stored_states == 0; ++round) {
    if (Load().files == 0) continue;
    ++stored_states;
    const std::string stored =
        client().Get(temp_.PathOf("busy"))->bytes.ToString();
    // Empty, or a part: the writer truncates first, and writes in pieces. Those
    // are states of the file too.
    EXPECT_EQ(stored.find_first_not_of(stored.substr(0, 1)), std::string::npos);
  }
  stop = true;
  writer.join();
}

INSTANTIATE_TEST_SUITE_P(Network, TreeTransferTest, ::testing::Values(0, 3),
                         [](const auto& info) {
                           return absl::StrCat("Threads", info.param);
                         });

}  // namespace
}  // namespace kv
