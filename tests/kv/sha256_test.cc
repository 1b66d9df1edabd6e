// Goal: digests are SHA-256's, however the bytes are cut. Method: the examples
// of FIPS 180-2.
#include "examples/kv/sha256.h"

#include <string>

#include "gtest/gtest.h"
#include "rpc/buffer.h"

namespace kv {
namespace {

constexpr char kAbcDigest[] =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(Sha256Test, DigestsTheStandardsExamples) {
  Sha256 sha256;
  EXPECT_EQ(ToHex(sha256.Finish()),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  sha256.Update("abc");
  EXPECT_EQ(ToHex(sha256.Finish()), kAbcDigest);
}

TEST(Sha256Test, PiecesMakeNoDifference) {
  Sha256 sha256;
  sha256.Update("a");
  sha256.Update("");
  sha256.Update("bc");
  EXPECT_EQ(ToHex(sha256.Finish()), kAbcDigest);

  rpc::BufferChain chain(rpc::Buffer::CopyOf("ab"));
  chain.Append(rpc::Buffer::CopyOf("c"));
  sha256.Update(chain);
  EXPECT_EQ(ToHex(sha256.Finish()), kAbcDigest);
}

}  // namespace
}  // namespace kv
