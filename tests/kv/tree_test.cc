// Goal: a walk finds every regular file and nothing else, survives whatever a
// tree can hold, and names what it could not read. Method: small trees made for
// each case.
#include "examples/kv/tree.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/kv/temp_tree.h"

namespace kv {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> NamesOf(const Tree& tree) {
  std::vector<std::string> names;
  for (const TreeFile& file : tree.files) names.push_back(file.name);
  return names;
}

TEST(WalkTreeTest, FindsEveryRegularFileInOrder) {
  TempTree temp;
  temp.Write("b/2", "22");
  temp.Write("a", "");
  temp.Write("b/c/d/1", "1");
  temp.Write("name with space\nand line\xff", "333");
  std::filesystem::create_directory(temp.PathOf("empty"));
  const Tree tree = *WalkTree(temp.root());
  EXPECT_THAT(NamesOf(tree), ElementsAre("a", "b/2", "b/c/d/1",
                                         "name with space\nand line\xff"));
  EXPECT_EQ(tree.total_bytes, 6u);
  EXPECT_THAT(tree.problems, IsEmpty());
  EXPECT_EQ(tree.PathOf(tree.files[1]), temp.PathOf("b/2"));
}

TEST(WalkTreeTest, ATrailingSlashChangesNothing) {
  TempTree temp;
  temp.Write("a", "1");
  const Tree tree = *WalkTree(temp.root() + "//");
  EXPECT_EQ(tree.root, temp.root());
  EXPECT_EQ(tree.PathOf(tree.files[0]), temp.PathOf("a"));
}

TEST(WalkTreeTest, DoesNotFollowLinksInsideTheTree) {
  TempTree temp;
  temp.Write("sub/file", "1");
  std::filesystem::create_symlink(temp.root(), temp.PathOf("sub/loop"));
  std::filesystem::create_symlink("file", temp.PathOf("sub/link"));
  std::filesystem::create_symlink("nowhere", temp.PathOf("dangling"));
  const Tree tree = *WalkTree(temp.root());
  EXPECT_THAT(NamesOf(tree), ElementsAre("sub/file"));
  EXPECT_EQ(tree.skipped_links, 3u);
}

TEST(WalkTreeTest, FollowsTheRoot) {
  TempTree temp;
  temp.Write("sub/file", "1");
  std::filesystem::create_symlink("sub", temp.PathOf("link"));
  const Tree tree = *WalkTree(temp.PathOf("link"));
  EXPECT_THAT(NamesOf(tree), ElementsAre("file"));
}

TEST(WalkTreeTest, CountsFifosAndSkipsThem) {
  TempTree temp;
  temp.Write("file", "1");
  ASSERT_EQ(::mkfifo(temp.PathOf("fifo").c_str(), 0600), 0);
  const Tree tree = *WalkTree(temp.root());
  EXPECT_THAT(NamesOf(tree), ElementsAre("file"));
  EXPECT_EQ(tree.skipped_special, 1u);
}

TEST(WalkTreeTest, HardLinksAreFilesOfTheirOwn) {
  TempTree temp;
  temp.Write("a", "1");
  std::filesystem::create_hard_link(temp.PathOf("a"), temp.PathOf("b"));
  EXPECT_THAT(NamesOf(*WalkTree(temp.root())), ElementsAre("a", "b"));
}

TEST(WalkTreeTest, NamesDirectoriesThatItMayNotRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read every directory";
  TempTree temp;
  temp.Write("closed/file", "1");
  temp.Write("open/file", "1");
  ASSERT_EQ(::chmod(temp.PathOf("closed").c_str(), 0), 0);
  const Tree tree = *WalkTree(temp.root());
  ASSERT_EQ(::chmod(temp.PathOf("closed").c_str(), 0700), 0);
  EXPECT_THAT(NamesOf(tree), ElementsAre("open/file"));
  ASSERT_EQ(tree.problems.size(), 1u);
  EXPECT_EQ(tree.problems[0].path, temp.PathOf("closed"));
  EXPECT_EQ(tree.problems[0].status.code(),
            absl::StatusCode::kPermissionDenied);
}

// Deeper than one path may be long: the part that no path reaches is a problem,
// not a crash, and the rest is found.
TEST(WalkTreeTest, NamesWhatLiesDeeperThanAPathReaches) {
  TempTree temp;
  temp.Write("file", "1");
  const std::string name(250, 'd');
  const std::filesystem::path start = std::filesystem::current_path();
  std::filesystem::current_path(temp.root());
  for (int depth = 0; depth < 20; ++depth) {
    ASSERT_EQ(::mkdir(name.c_str(), 0700), 0);
    ASSERT_EQ(::chdir(name.c_str()), 0);
  }
  std::filesystem::current_path(start);
  const Tree tree = *WalkTree(temp.root());
  EXPECT_THAT(NamesOf(tree), ElementsAre("file"));
  ASSERT_EQ(tree.problems.size(), 1u);
}

TEST(WalkTreeTest, SaysWhatIsWrongWithTheRoot) {
  TempTree temp;
  temp.Write("file", "1");
  EXPECT_EQ(WalkTree(temp.PathOf("nowhere")).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(WalkTree(temp.PathOf("file")).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(WalkTree("").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace kv
