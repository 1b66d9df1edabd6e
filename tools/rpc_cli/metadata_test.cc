// Goal: metadata is read as it is shown, and mistakes in it are named.
#include "tools/rpc_cli/metadata.h"

#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rpc_cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Pair;

std::string ErrorOf(const std::string& header) {
  const auto pair = ParseHeader(header);
  EXPECT_EQ(pair.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(pair.status().message());
}

TEST(MetadataTest, KeysAreSmallAndSpaceAroundThemIsNothing) {
  EXPECT_THAT(*ParseHeader("User:ada"), Pair("user", "ada"));
  EXPECT_THAT(*ParseHeader(" a-b :  x: y  "), Pair("a-b", "x: y"));
  EXPECT_THAT(*ParseHeader("empty:"), Pair("empty", ""));
}

TEST(MetadataTest, BinaryValuesAreBase64OfEitherAlphabet) {
  const std::string bytes("\xfb\xff\0", 3);
  for (const char* header : {"k-bin: +/8A", "k-bin: -_8A", "K-Bin:+/8A"}) {
    EXPECT_THAT(*ParseHeader(header), Pair("k-bin", bytes)) << header;
  }
  for (const char* header : {"k-bin: AA==", "k-bin: AA"}) {
    EXPECT_THAT(*ParseHeader(header), Pair("k-bin", std::string(1, '\0')));
  }
  EXPECT_EQ(FormatMetadata(Metadata{{"k-bin", bytes}}), "  k-bin: +/8A\n");
}

TEST(MetadataTest, WhatIsWrongIsSaid) {
  EXPECT_THAT(ErrorOf("user ada"), HasSubstr("'user ada': write it as"));
  EXPECT_THAT(ErrorOf("k-bin: *"), HasSubstr("base64"));
  EXPECT_THAT(ErrorOf("two words: x"), HasSubstr("two words"));
  EXPECT_THAT(ErrorOf(": x"), HasSubstr("': x'"));
  EXPECT_THAT(ErrorOf("k: \x01"), HasSubstr("k"));
}

TEST(MetadataTest, IsALineForEachPair) {
  EXPECT_EQ(FormatMetadata(Metadata{{"a", "1"}, {"b", "2"}}),
            "  a: 1\n  b: 2\n");
  EXPECT_EQ(FormatMetadata(Metadata{}), "  (none)\n");
}

}  // namespace
}  // namespace rpc_cli
