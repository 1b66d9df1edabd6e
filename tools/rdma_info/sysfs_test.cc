// Goal: the kernel's small files are read as they are written, and what is not
// there is empty. Method: files of the test.
#include "tools/rdma_info/sysfs.h"

#include <unistd.h>

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/rdma_info/made_up_files.h"

namespace rdma_info {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SysfsTest, LinesComeWithoutSpacesAround) {
  MadeUpFiles files;
  files.Write("rate", " 100 Gb/sec (4X EDR) \nsecond");
  EXPECT_EQ(ReadLine(files.path("rate")), "100 Gb/sec (4X EDR)");
  EXPECT_THAT(ReadLines(files.path("rate")),
              ElementsAre(" 100 Gb/sec (4X EDR) ", "second"));
}

TEST(SysfsTest, WhatIsNotThereIsEmpty) {
  MadeUpFiles files;
  EXPECT_EQ(ReadLine(files.path("none")), "");
  EXPECT_THAT(ReadLines(files.path("none")), IsEmpty());
  EXPECT_EQ(ReadNumber(files.path("none")), 0u);
  EXPECT_EQ(ReadEnumerated(files.path("none")).word, "");
  EXPECT_THAT(ListNames(files.path("none")), IsEmpty());
  EXPECT_FALSE(Exists(files.path("none")));
  EXPECT_EQ(LinkedName(files.path("none")), "");
}

TEST(SysfsTest, NumbersAreDecimalOrHexadecimal) {
  MadeUpFiles files;
  files.Write("mtu", "9000");
  files.Write("lid", "0x1f");
  EXPECT_EQ(ReadNumber(files.path("mtu")), 9000u);
  EXPECT_EQ(ReadNumber(files.path("lid")), 31u);
}

TEST(SysfsTest, EnumerationsAreNumberAndWord) {
  MadeUpFiles files;
  files.Write("state", "4: ACTIVE");
  files.Write("word", "ACTIVE");
  EXPECT_EQ(ReadEnumerated(files.path("state")).number, 4);
  EXPECT_EQ(ReadEnumerated(files.path("state")).word, "ACTIVE");
  EXPECT_EQ(ReadEnumerated(files.path("word")).number, 0);
  EXPECT_EQ(ReadEnumerated(files.path("word")).word, "ACTIVE");
}

TEST(SysfsTest, NumbersAreListedInTheirOrder) {
  MadeUpFiles files;
  for (const char* name : {"10", "9", "mlx5_1", "0", "mlx5_0"}) {
    files.Write(std::string("list/") + name, "");
  }
  EXPECT_THAT(ListNames(files.path("list")),
              ElementsAre("0", "9", "10", "mlx5_0", "mlx5_1"));
}

TEST(SysfsTest, ALinkHasANameEvenWhereItLeadsNowhere) {
  MadeUpFiles files;
  files.Link("driver", "../../bus/pci/drivers/mlx5_core");
  EXPECT_EQ(LinkedName(files.path("driver")), "mlx5_core");
}

TEST(SysfsTest, AccessTellsMissingFromDenied) {
  MadeUpFiles files;
  files.Write("dev/uverbs0", "");
  EXPECT_EQ(AccessTo(files.path("dev/uverbs0")), Access::kGranted);
  EXPECT_EQ(AccessTo(files.path("dev/uverbs1")), Access::kMissing);
  if (geteuid() == 0) GTEST_SKIP() << "root may open every file";
  std::filesystem::permissions(files.path("dev/uverbs0"),
                               std::filesystem::perms::none);
  EXPECT_EQ(AccessTo(files.path("dev/uverbs0")), Access::kDenied);
}

}  // namespace
}  // namespace rdma_info
