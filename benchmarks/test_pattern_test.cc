// Goal: the checksum notices what transports get wrong (bytes, lengths, order,
// holes), and does not depend on how a chain is split.
#include "benchmarks/test_pattern.h"

#include <string>
#include <string_view>

#include "gtest/gtest.h"
#include "rpc/buffer.h"

namespace benchmarks {
namespace {

rpc::BufferChain Split(std::string_view bytes, size_t piece) {
  rpc::BufferChain chain;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    chain.Append(rpc::Buffer::CopyOf(bytes.substr(0, piece)));
  }
  return chain;
}

TEST(TestPatternTest, SeedsDiffer) {
  EXPECT_NE(TestPattern(64, 1), TestPattern(64, 2));
  EXPECT_EQ(TestPattern(1000, 3), TestPattern(1000, 3));
}

TEST(TestPatternTest, ChecksumNoticesEveryFlippedByte) {
  std::string bytes = TestPattern(1003, 1);
  const uint64_t expected = Checksum(bytes);
  for (char& byte : bytes) {
    byte ^= 1;
    EXPECT_NE(Checksum(bytes), expected);
    byte ^= 1;
  }
  EXPECT_EQ(Checksum(bytes), expected);
}

TEST(TestPatternTest, ChecksumNoticesLengthAndOrder) {
  const std::string zeros(64, '\0');
  EXPECT_NE(Checksum(zeros), Checksum(std::string_view(zeros).substr(1)));
  const std::string a = TestPattern(64, 1);
  const std::string b = TestPattern(64, 2);
  EXPECT_NE(Checksum(a + b), Checksum(b + a));
}

TEST(TestPatternTest, ChainsAreTheirBytesHoweverSplit) {
  const std::string bytes = TestPattern(1003, 1);
  for (const size_t piece : {1, 7, 8, 100, 1003}) {
    const rpc::BufferChain chain = Split(bytes, piece);
    EXPECT_EQ(Checksum(chain), Checksum(bytes)) << piece;
    EXPECT_TRUE(Equals(chain, bytes)) << piece;
    EXPECT_FALSE(Equals(chain, bytes.substr(1))) << piece;
    EXPECT_FALSE(Equals(chain, TestPattern(1003, 2))) << piece;
  }
  EXPECT_TRUE(Equals(rpc::BufferChain(), ""));
}

}  // namespace
}  // namespace benchmarks
