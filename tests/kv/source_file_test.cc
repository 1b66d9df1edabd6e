// Goal: a file is read as one state of it, or the reader is told. Method: files
// changed between Open and the checks, and things that are no files.
#include "examples/kv/source_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "tests/kv/temp_tree.h"

namespace kv {
namespace {

std::string ReadAll(const SourceFile& file) {
  std::string bytes(file.size(), '\0');
  const absl::Status status = file.Read(
      0,
      absl::MakeSpan(reinterpret_cast<std::byte*>(bytes.data()), bytes.size()));
  return status.ok() ? bytes : status.ToString();
}

TEST(SourceFileTest, ReadsTheWholeAndParts) {
  TempTree temp;
  temp.Write("f", "hello world");
  const SourceFile file = *SourceFile::Open(temp.PathOf("f"), false);
  EXPECT_EQ(file.size(), 11u);
  EXPECT_EQ(ReadAll(file), "hello world");
  std::byte part[5];
  EXPECT_TRUE(file.Read(6, absl::MakeSpan(part)).ok());
  EXPECT_EQ(std::string(reinterpret_cast<char*>(part), 5), "world");
  EXPECT_TRUE(file.CheckUnchanged().ok());
}

TEST(SourceFileTest, AnEmptyFileIsFine) {
  TempTree temp;
  temp.Write("f", "");
  const SourceFile file = *SourceFile::Open(temp.PathOf("f"), false);
  EXPECT_EQ(file.size(), 0u);
  EXPECT_TRUE(file.CheckUnchanged().ok());
  EXPECT_EQ(ToHex(*file.Digest()),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(SourceFileTest, DigestIsOfAllPieces) {
  TempTree temp;
  temp.Write("f", std::string(1'000'000, 'a'));  // FIPS 180-2's long example
  const SourceFile file = *SourceFile::Open(temp.PathOf("f"), false);
  EXPECT_EQ(ToHex(*file.Digest()),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(SourceFileTest, NoticesThatTheFileBecameShorter) {
  TempTree temp;
  temp.Write("f", "hello world");
  const SourceFile file = *SourceFile::Open(temp.PathOf("f"), false);
  temp.Write("f", "he");
  std::byte all[11];
  EXPECT_EQ(file.Read(0, absl::MakeSpan(all)).code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(file.Digest().status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(file.CheckUnchanged().code(), absl::StatusCode::kAborted);
}

TEST(SourceFileTest, NoticesThatTheFileBecameLonger) {
  TempTree temp;
  temp.Write("f", "hello");
  const SourceFile file = *SourceFile::Open(temp.PathOf("f"), false);
  temp.Write("f", "hello world");
  EXPECT_EQ(ReadAll(file), "hello");
  EXPECT_EQ(file.CheckUnchanged().code(), absl::StatusCode::kAborted);
}

TEST(SourceFileTest, NoticesBytesOfAFileThatClaimsToBeEmpty) {
  // The kernel makes this file when it is opened. Where its time is that of
  // this very tick, Open already looks again and sees the bytes.
  absl::StatusOr<SourceFile> file =
      SourceFile::Open("/proc/self/status", false);
  absl::Status status = file.status();
  if (file.ok()) {
    EXPECT_EQ(file->size(), 0u);
    status = file->CheckUnchanged();
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
}

TEST(SourceFileTest, KeepsReadingAFileThatWasDeleted) {
  TempTree temp;
  temp.Write("f", "hello");
  const SourceFile file = *SourceFile::Open(temp.PathOf("f"), false);
  std::filesystem::remove(temp.PathOf("f"));
  EXPECT_EQ(ReadAll(file), "hello");
}

TEST(SourceFileTest, RefusesWhatIsNoRegularFile) {
  TempTree temp;
  temp.Write("f", "hello");
  std::filesystem::create_symlink("f", temp.PathOf("link"));
  ASSERT_EQ(::mkfifo(temp.PathOf("fifo").c_str(), 0600), 0);
  const auto code = [&](const char* name, bool follow) {
    return SourceFile::Open(temp.PathOf(name), follow).status().code();
  };
  EXPECT_EQ(code("link", false), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(code("link", true), absl::StatusCode::kOk);
  EXPECT_EQ(code("fifo", true), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(code(".", true), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(code("nowhere", true), absl::StatusCode::kNotFound);
}

TEST(SourceFileTest, SaysThatItMayNotRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read every file";
  TempTree temp;
  temp.Write("f", "hello");
  ASSERT_EQ(::chmod(temp.PathOf("f").c_str(), 0), 0);
  EXPECT_EQ(SourceFile::Open(temp.PathOf("f"), false).status().code(),
            absl::StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace kv
