#include "rpc/logging.h"

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace rpc {
namespace {

using Lines = std::vector<std::pair<LogLevel, std::string>>;

class LoggingTest : public ::testing::Test {
 protected:
  LoggingTest() {
    SetLogSink([this](LogLevel level, std::string_view text) {
      lines_.emplace_back(level, std::string(text));
    });
  }
  ~LoggingTest() override {
    SetLogSink(nullptr);
    SetLogLevel(LogLevel::kWarning);
  }

  Lines lines_;
};

TEST_F(LoggingTest, LevelsBelowTheThresholdAreDropped) {
  SetLogLevel(LogLevel::kWarning);
  Log(LogLevel::kInfo, "no");
  Log(LogLevel::kWarning, "yes");
  Log(LogLevel::kError, "yes too");
  EXPECT_EQ(lines_, (Lines{{LogLevel::kWarning, "yes"},
                           {LogLevel::kError, "yes too"}}));
  EXPECT_FALSE(LogEnabled(LogLevel::kDebug));
  SetLogLevel(LogLevel::kDebug);
  EXPECT_TRUE(LogEnabled(LogLevel::kDebug));
  SetLogLevel(LogLevel::kNone);
  EXPECT_FALSE(LogEnabled(LogLevel::kError));
  EXPECT_FALSE(LogEnabled(LogLevel::kNone));
}

TEST_F(LoggingTest, ManyThreads) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int j = 0; j < 100; ++j) Log(LogLevel::kError, "line");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lines_.size(), 400u);
}

TEST(LogLimiterTest, OnceInAnInterval) {
  LogLimiter limiter(absl::InfiniteDuration());
  uint64_t skipped = 7;
  EXPECT_TRUE(limiter.Allow(&skipped));
  EXPECT_EQ(skipped, 0u);
  EXPECT_FALSE(limiter.Allow());
  LogLimiter always(absl::ZeroDuration());
  EXPECT_TRUE(always.Allow());
  EXPECT_TRUE(always.Allow());
}

TEST(LogNamesTest, Names) {
  EXPECT_EQ(LogLevelName(LogLevel::kDebug), "debug");
  EXPECT_EQ(LogLevelName(LogLevel::kNone), "none");
}

}  // namespace
}  // namespace rpc
