#include "rpc/metadata.h"

#include <string>

#include "gtest/gtest.h"

namespace rpc::internal {
namespace {

TEST(MetadataTest, LegalKeys) {
  for (const char* key : {"a", "user-agent", "a.b_c-d", "0", "x-bin", "-"}) {
    EXPECT_TRUE(IsLegalMetadataKey(key)) << key;
  }
}

TEST(MetadataTest, IllegalKeys) {
  for (const std::string& key :
       {std::string(), std::string("A"), std::string("a b"), std::string(":a"),
        std::string("a\0b", 3), std::string("\xc3\xa9"), std::string("a/b")}) {
    EXPECT_FALSE(IsLegalMetadataKey(key)) << key;
    EXPECT_EQ(CheckMetadataEntry(key, "value").error_code(),
              StatusCode::INTERNAL);
  }
}

TEST(MetadataTest, Values) {
  EXPECT_TRUE(CheckMetadataEntry("key", "").ok());
  EXPECT_TRUE(CheckMetadataEntry("key", " ~!\"").ok());
  EXPECT_TRUE(CheckMetadataEntry("key-bin", std::string("\0\xff\n", 3)).ok());
  for (const std::string& value : {std::string("\n"), std::string("\x7f"),
                                   std::string("\0", 1), std::string("\xe9")}) {
    EXPECT_EQ(CheckMetadataEntry("key", value).error_code(),
              StatusCode::INTERNAL);
  }
}

TEST(MetadataTest, ErrorQuotesTheKeyShortAndEscaped) {
  const Status status = CheckMetadataEntry(std::string(1000, '\n'), "");
  EXPECT_NE(status.error_message().find("\\n"), std::string::npos);
  EXPECT_LT(status.error_message().size(), 400u);
}

}  // namespace
}  // namespace rpc::internal
