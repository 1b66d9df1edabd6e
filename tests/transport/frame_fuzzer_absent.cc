// Stands for the fuzzer where it is not built, so that its absence is counted.
#include "gtest/gtest.h"

TEST(FrameFuzzer, RunsUnderLibFuzzer) {
  GTEST_SKIP() << "needs libFuzzer: bazel test --config=fuzz "
                  "//tests/transport:frame_fuzzer (docs/testing.md)";
}
