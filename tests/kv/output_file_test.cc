// Goal: a value reaches its file whole or not at all, with the right mode, and
// failures leave nothing behind. Method: files and directories in every state
// that get --output can meet.
#include "examples/kv/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/buffer.h"
#include "tests/kv/temp_tree.h"

namespace kv {
namespace {

using ::testing::HasSubstr;

rpc::BufferChain TwoPieces() {
  rpc::BufferChain chain(rpc::Buffer::CopyOf("hello "));
  chain.Append(rpc::Buffer::CopyOf("world"));
  return chain;
}

size_t EntriesOf(const TempTree& temp) {
  const std::filesystem::directory_iterator all(temp.root());
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

mode_t ModeOf(const std::string& path) {
  struct stat info = {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0);
  return info.st_mode & 07777;
}

TEST(WriteFileTest, MakesANewFileWithTheUsersMask) {
  TempTree temp;
  const mode_t mask = ::umask(027);
  EXPECT_TRUE(WriteFile(temp.PathOf("out"), TwoPieces()).ok());
  ::umask(mask);
  EXPECT_EQ(temp.Read("out"), "hello world");
  EXPECT_EQ(ModeOf(temp.PathOf("out")), 0640u);
  EXPECT_EQ(EntriesOf(temp), 1u);
}

TEST(WriteFileTest, ReplacesAFileAndKeepsItsMode) {
  TempTree temp;
  temp.Write("out", "something longer than the new value");
  ASSERT_EQ(::chmod(temp.PathOf("out").c_str(), 0604), 0);
  EXPECT_TRUE(WriteFile(temp.PathOf("out"), TwoPieces()).ok());
  EXPECT_EQ(temp.Read("out"), "hello world");
  EXPECT_EQ(ModeOf(temp.PathOf("out")), 0604u);
}

TEST(WriteFileTest, AnEmptyValueIsAnEmptyFile) {
  TempTree temp;
  temp.Write("out", "old");
  EXPECT_TRUE(WriteFile(temp.PathOf("out"), rpc::BufferChain()).ok());
  EXPECT_EQ(temp.Read("out"), "");
}

TEST(WriteFileTest, WritesToWhatIsNoRegularFile) {
  EXPECT_TRUE(WriteFile("/dev/null", TwoPieces()).ok());
  struct stat info = {};
  ASSERT_EQ(::stat("/dev/null", &info), 0);
  EXPECT_TRUE(S_ISCHR(info.st_mode));
}

TEST(WriteFileTest, NamesADirectoryThatDoesNotExist) {
  TempTree temp;
  const absl::Status status =
      WriteFile(temp.PathOf("nowhere/out"), TwoPieces());
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("nowhere/out"));
}

TEST(WriteFileTest, RefusesADirectory) {
  TempTree temp;
  EXPECT_FALSE(WriteFile(temp.root(), TwoPieces()).ok());
}

TEST(WriteFileTest, NamesADirectoryThatItMayNotWrite) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write every directory";
  TempTree temp;
  ASSERT_EQ(::chmod(temp.root().c_str(), 0500), 0);
  EXPECT_EQ(WriteFile(temp.PathOf("out"), TwoPieces()).code(),
            absl::StatusCode::kPermissionDenied);
  ASSERT_EQ(::chmod(temp.root().c_str(), 0700), 0);
}

TEST(WriteToTest, SaysWhenTheDiskIsFull) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  const absl::Status status = WriteTo(full, "/dev/full", TwoPieces());
  ::close(full);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/dev/full"));
}

}  // namespace
}  // namespace kv
