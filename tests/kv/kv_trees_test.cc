// Goal: load and verify agree with each other and with the files, for every
// kind of file and name, and verify finds every kind of difference. Method:
// real processes over trees made for the purpose.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/kv/kv_processes.h"
#include "tests/kv/temp_tree.h"

namespace kv {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class KvTreesTest : public ::testing::Test {
 protected:
  // Runs `load` or `verify` with --json and returns its summary.
  nlohmann::json Summary(const Words& words, int expected_status) {
    Words command = words;
    command.push_back("--json");
    const ProcessResult result = server_.Kv(command);
    err_ = result.err;
    EXPECT_EQ(result.exit_status, expected_status) << result.err;
    return nlohmann::json::parse(result.out);
  }

  void WriteSample() {
    temp_.Write("empty", "");
    for (const size_t size : {1u, 56u, 57u, 512u, 4095u, 4096u, 4097u, 8192u,
                              16384u, 65535u, 65536u, 3'000'000u, 9'000'000u}) {
      std::string bytes(size, '\0');
      for (size_t i = 0; i < size; ++i) {
        bytes[i] = static_cast<char>(i * 2654435761u >> 13);
      }
      temp_.Write(absl::StrCat("sizes/", size), bytes);
    }
    temp_.Write("a name with spaces", "1");
    temp_.Write("a line\nend", "2");
    temp_.Write("gr\u00fc\u00df/\u6df1\u3044", "3");
    temp_.Write("not utf-8 \xff\xfe", "4");
    temp_.Write("deep/er/and/deeper/file", "5");
    std::filesystem::create_symlink("empty", temp_.PathOf("link"));
    ASSERT_EQ(::mkfifo(temp_.PathOf("fifo").c_str(), 0600), 0);
  }

  static constexpr int kSampleFiles = 19;

  TempTree temp_;
  KvServer server_;
  std::string err_;
};

TEST_F(KvTreesTest, EveryFileComesBackByteForByte) {
  WriteSample();
  const auto load = Summary({"load", temp_.root()}, 0);
  EXPECT_EQ(load["files"], kSampleFiles);
  EXPECT_EQ(load["failed"], 0);
  EXPECT_EQ(load["skipped_links"], 1);
  EXPECT_EQ(load["skipped_special"], 1);
  EXPECT_THAT(err_, HasSubstr("1 symbolic links"));

  const auto verify = Summary({"verify", temp_.root()}, 0);
  EXPECT_EQ(verify["same"], kSampleFiles);
  EXPECT_EQ(verify["bytes"], load["bytes"]);
  EXPECT_EQ(verify["gets"], kSampleFiles);
  EXPECT_EQ(verify["all_same"], true);
  EXPECT_GT(verify["get_p50_us"].get<double>(), 0);
  EXPECT_GE(verify["get_p99_us"].get<double>(),
            verify["get_p50_us"].get<double>());

  // Keys are paths as given, and values the files' bytes.
  const ProcessResult get = server_.Kv({"get", temp_.PathOf("sizes/65536")});
  EXPECT_TRUE(get.out == temp_.Read("sizes/65536"));
}

TEST_F(KvTreesTest, LoadingTwiceReplaces) {
  WriteSample();
  Summary({"load", temp_.root()}, 0);
  temp_.Write("empty", "no longer");
  Summary({"load", temp_.root() + "/"}, 0);
  EXPECT_EQ(Summary({"verify", temp_.root()}, 0)["same"], kSampleFiles);
}

TEST_F(KvTreesTest, VerifyFindsWhatDiffers) {
  temp_.Write("same", "1");
  temp_.Write("changed", "12345");
  temp_.Write("longer", std::string(10'000, 'x'));
  temp_.Write("missing", "1");
  temp_.Write("extra", "1");
  Summary({"load", temp_.root()}, 0);
  temp_.Write("changed", "12346");
  temp_.Write("longer", std::string(10'001, 'x'));
  std::filesystem::remove(temp_.PathOf("extra"));
  ASSERT_EQ(server_.Kv({"delete", temp_.PathOf("missing")}).exit_status, 0);

  const auto verify = Summary({"verify", temp_.root()}, 2);
  EXPECT_EQ(verify["same"], 1);
  EXPECT_EQ(verify["different"], 2);
  EXPECT_EQ(verify["missing"], 1);
  EXPECT_EQ(verify["extra"], 1);
  EXPECT_EQ(verify["all_same"], false);
  for (const char* name : {"changed", "longer", "missing", "extra"}) {
    EXPECT_THAT(err_, HasSubstr(temp_.PathOf(name)));
  }
  EXPECT_THAT(err_, Not(HasSubstr(temp_.PathOf("same"))));
}

TEST_F(KvTreesTest, RelativeKeysAndPrefixes) {
  temp_.Write("a/b", "1");
  Summary({"load", temp_.root(), "--relative", "--key_prefix=backup:"}, 0);
  EXPECT_EQ(server_.Kv({"list"}).out, "backup:a/b\n");
  Summary({"verify", temp_.root(), "--relative", "--key_prefix=backup:"}, 0);
  Summary({"verify", temp_.root()}, 2);
}

TEST_F(KvTreesTest, SeveralTreesAtOnce) {
  TempTree other;
  temp_.Write("a", "1");
  other.Write("b", "22");
  EXPECT_EQ(Summary({"load", temp_.root(), other.root()}, 0)["files"], 2);
  EXPECT_EQ(Summary({"verify", temp_.root(), other.root()}, 0)["bytes"], 3);
  EXPECT_EQ(server_.Kv({"load", temp_.root(), other.root(), "--relative"})
                .exit_status,
            1);
}

TEST_F(KvTreesTest, AnEmptyTreeIsLoadedAndVerified) {
  EXPECT_EQ(Summary({"load", temp_.root()}, 0)["files"], 0);
  EXPECT_EQ(Summary({"verify", temp_.root()}, 0)["same"], 0);
}

TEST_F(KvTreesTest, SmallBoundsOnWhatIsInFlightOnlySlowItDown) {
  WriteSample();
  Summary({"load", temp_.root(), "--inflight=1", "--inflight_bytes=1"}, 0);
  EXPECT_EQ(Summary({"verify", temp_.root(), "--threads=5"}, 0)["same"],
            kSampleFiles);
}

// Files of /proc have bytes though their size is 0: they do not hold still.
TEST_F(KvTreesTest, FilesThatCannotBeReadAreNamedAndTheOthersLoaded) {
  const auto load = Summary({"load", "/proc/sys/kernel/random"}, 5);
  EXPECT_GT(load["failed"].get<int>(), 0);
  EXPECT_EQ(load["complete"], false);
  EXPECT_THAT(err_, HasSubstr("/proc/sys/kernel/random/uuid"));
  const auto verify = Summary({"verify", "/proc/sys/kernel/random"}, 2);
  EXPECT_GT(verify["missing"].get<int>(), 0);
}

TEST_F(KvTreesTest, FilesWithoutPermissionAreNamed) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read every file";
  temp_.Write("open", "1");
  temp_.Write("closed", "1");
  ASSERT_EQ(::chmod(temp_.PathOf("closed").c_str(), 0), 0);
  EXPECT_EQ(Summary({"load", temp_.root()}, 5)["files"], 1);
  EXPECT_THAT(err_, HasSubstr(temp_.PathOf("closed")));
  const auto verify = Summary({"verify", temp_.root()}, 5);
  EXPECT_EQ(verify["same"], 1);
  EXPECT_EQ(verify["unreadable"], 1);
  EXPECT_EQ(verify["missing"], 0);
}

TEST_F(KvTreesTest, ADirectoryThatIsNoneIsNamed) {
  temp_.Write("file", "1");
  for (const std::string& name :
       {temp_.PathOf("nowhere"), temp_.PathOf("file")}) {
    const ProcessResult result = server_.Kv({"load", name});
    EXPECT_EQ(result.exit_status, 5);
    EXPECT_THAT(result.err, HasSubstr(name));
  }
}

TEST_F(KvTreesTest, ProgressOfAPipeHasNoControlCharacters) {
  WriteSample();
  const ProcessResult result = server_.Kv({"load", temp_.root()});
  EXPECT_THAT(result.err, AllOf(Not(HasSubstr("\r")), Not(HasSubstr("\033"))));
  EXPECT_THAT(result.out, HasSubstr("loaded 19 of 19 files"));
}

}  // namespace
}  // namespace kv
