// Goal: watch and upload do what their help says. Method: a real server and
// real clients, as processes; what is looked at is what a user sees.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "examples/kv/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/kv/kv_processes.h"
#include "tests/kv/temp_tree.h"

namespace kv {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr absl::Duration kPatience = absl::Minutes(1);

void Ok(const ProcessResult& result) {
  EXPECT_EQ(result.exit_status, 0) << result.err;
}

TEST(KvStreamsTest, WatchPrintsWhatChangesUntilItHasSeenEnough) {
  KvServer server;
  Ok(server.Kv({"put", "w/there", "present"}));
  Subprocess watch(KvCommand(
      server.address(), {"watch", "w/", "--present", "--values", "--count=2"}));
  EXPECT_THAT(watch.ReadLine(kPatience),
              AllOf(StartsWith("put w/there (version "),
                    EndsWith(", 7 bytes): present")));
  EXPECT_EQ(watch.ReadLine(kPatience), "synced");
  Ok(server.Kv({"put", "elsewhere", "x"}));
  Ok(server.Kv({"put", "w/a\nb", "a\nvalue"}));
  EXPECT_THAT(
      watch.ReadLine(kPatience),
      AllOf(StartsWith("put w/a\\nb (version "), EndsWith("): a\\nvalue")));
  Ok(server.Kv({"delete", "w/there"}));
  EXPECT_THAT(watch.ReadLine(kPatience), StartsWith("deleted w/there "));
  Ok(watch.Finish(kPatience));
}

TEST(KvStreamsTest, WatchPrintsJson) {
  KvServer server;
  Subprocess watch(
      KvCommand(server.address(), {"watch", "--json", "--count=1"}));
  EXPECT_EQ(watch.ReadLine(kPatience), R"({"event":"synced"})");
  Ok(server.Kv({"put", "key", "12345"}));
  const auto line = nlohmann::json::parse(watch.ReadLine(kPatience));
  EXPECT_EQ(line["event"], "put");
  EXPECT_EQ(line["key"], "key");
  EXPECT_EQ(line["bytes"], 5);
  EXPECT_GT(line["version"].get<uint64_t>(), 0u);
  EXPECT_FALSE(line.contains("value"));
  Ok(watch.Finish(kPatience));
}

// The server would wait for the watch as long as for any call: for an hour.
TEST(KvStreamsTest, WatchEndsWithTheServerAndDoesNotHoldItUp) {
  KvServer server({"--drain_seconds=3600"});
  Subprocess watch(KvCommand(server.address(), {"watch"}));
  EXPECT_EQ(watch.ReadLine(kPatience), "synced");
  Ok(server.Stop());
  const ProcessResult result = watch.Finish(kPatience);
  EXPECT_EQ(result.exit_status, 3);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr(server.address()), HasSubstr("the server ends")));
}

// The client cannot print, as nobody reads its output, so that it reads no more
// either. Were the server to wait for it, the loads would not end. Keys are
// long, to fill the stream.
TEST(KvStreamsTest, AWatchThatIsNotReadLosesChangesAndSaysHowMany) {
  constexpr int kFiles = 1100;
  constexpr int kLoads = 3;
  constexpr uint64_t kChanges = kFiles * kLoads;
  const std::string prefix(kMaxKeyBytes - 100, 'k');
  TempTree temp;
  for (int i = 0; i < kFiles; ++i) temp.Write(absl::StrCat(i), "x");
  KvServer server;
  Subprocess watch(KvCommand(
      server.address(), {"watch", "k", absl::StrCat("--count=", kChanges)}));
  ASSERT_EQ(watch.ReadLine(kPatience), "synced");
  for (int i = 0; i < kLoads; ++i) {
    Ok(server.Kv({"load", temp.root(), "--relative", "--key_prefix", prefix}));
  }

  const ProcessResult result = watch.Finish(kPatience);
  Ok(result);
  uint64_t told = 0;
  uint64_t lost = 0;
  const std::vector<std::string> lines =
      absl::StrSplit(result.out, '\n', absl::SkipEmpty());
  for (const std::string& line : lines) {
    uint64_t count = 0;
    if (absl::StartsWith(line, "put k")) {
      ++told;
    } else {
      const std::vector<std::string> words = absl::StrSplit(line, ' ');
      ASSERT_EQ(words[0], "lost");
      ASSERT_TRUE(absl::SimpleAtoi(words[1], &count));
      EXPECT_GT(count, 0u);
      lost += count;
    }
  }
  EXPECT_GE(told, kMaxWaitingChanges);
  EXPECT_GT(lost, 0u);
  EXPECT_EQ(told + lost, kChanges);
}

TEST(KvStreamsTest, UploadSetsAllFilesOrNamesTheOneThatItCannotRead) {
  KvServer server;
  TempTree temp;
  const std::string large(3'000'000, 'x');
  temp.Write("small", "small value");
  temp.Write("empty", "");
  temp.Write("large", large);
  const ProcessResult upload =
      server.Kv({"upload", temp.PathOf("small"), temp.PathOf("empty"),
                 temp.PathOf("large")});
  Ok(upload);
  EXPECT_THAT(upload.out, StartsWith("3 keys, 2.86 MiB"));
  EXPECT_EQ(server.Kv({"get", temp.PathOf("small")}).out, "small value");
  EXPECT_EQ(server.Kv({"get", temp.PathOf("empty")}).out, "");
  EXPECT_TRUE(server.Kv({"get", temp.PathOf("large")}).out == large);

  const ProcessResult wrong = server.Kv({"upload", temp.PathOf("nowhere")});
  EXPECT_EQ(wrong.exit_status, 5);
  EXPECT_THAT(wrong.err, HasSubstr(temp.PathOf("nowhere")));
  EXPECT_EQ(server.Kv({"upload"}).exit_status, 1);
}

TEST(KvStreamsTest, UploadEndsWhereTheServerIsFull) {
  KvServer server({"--memory_limit_bytes=1000000"});
  TempTree temp;
  temp.Write("a", std::string(700'000, 'x'));
  temp.Write("b", std::string(700'000, 'x'));
  const ProcessResult upload =
      server.Kv({"upload", temp.PathOf("a"), temp.PathOf("b")});
  EXPECT_EQ(upload.exit_status, 4);
  EXPECT_THAT(upload.err, HasSubstr("memory_limit_bytes"));
}

}  // namespace
}  // namespace kv
