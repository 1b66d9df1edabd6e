// Goal: the bar fits its terminal, rate and time left are right, and a file
// gets plain lines at their interval. Method: rendering as a pure function;
// drawing into a temporary file with a clock that the test moves.
#include "examples/kv/progress.h"

#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kv {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ProgressTest : public ::testing::Test {
 protected:
  ProgressTest() : file_(std::tmpfile(), &std::fclose) {}

  Progress::Options OptionsOf(int columns) {
    return {.out = file_.get(), .columns = columns, .clock = [this] {
              return now_;
            }};
  }

  // What was written since the last call.
  std::string Written() {
    std::fflush(file_.get());
    const long end = std::ftell(file_.get());
    std::string text(static_cast<size_t>(end - read_), '\0');
    std::fseek(file_.get(), read_, SEEK_SET);
    EXPECT_EQ(std::fread(text.data(), 1, text.size(), file_.get()),
              text.size());
    read_ = end;
    return text;
  }

  const std::unique_ptr<FILE, int (*)(FILE*)> file_;
  absl::Time now_ = absl::UnixEpoch();
  long read_ = 0;
};

TEST(RenderBarTest, ShowsEverythingWhereThereIsRoom) {
  const std::string bar = RenderBar({.verb = "loading",
                                     .files = 50,
                                     .total_files = 100,
                                     .bytes = 1 << 20,
                                     .fraction = 0.5,
                                     .bytes_per_second = 2e6,
                                     .left = absl::Seconds(61)},
                                    120);
  EXPECT_THAT(bar, StartsWith("[####################--------------------]"));
  EXPECT_THAT(bar, AllOf(HasSubstr(" 50%"), HasSubstr("50/100 files"),
                         HasSubstr("1.00 MiB"), HasSubstr("2.00 MB/s"),
                         HasSubstr("1:01 left")));
}

TEST(RenderBarTest, NeverExceedsTheTerminal) {
  const ProgressState state = {.verb = "loading",
                               .files = 123456789,
                               .total_files = 123456789,
                               .bytes = uint64_t{1} << 62,
                               .fraction = 1.0,
                               .bytes_per_second = 1e12};
  for (int width = 0; width < 200; ++width) {
    EXPECT_LE(RenderBar(state, width).size(), static_cast<size_t>(width));
  }
}

TEST(RenderLineTest, SaysThatTheTimeIsNotKnownYet) {
  EXPECT_EQ(RenderLine({.verb = "verifying", .files = 0, .total_files = 3}),
            "verifying: 0%  0/3 files  0 B  0.00 B/s  -:-- left");
}

TEST_F(ProgressTest, DrawsTheBarInPlaceAndRemovesIt) {
  Progress progress("loading", 10, 1000, OptionsOf(100));
  progress.Draw();
  EXPECT_EQ(Written(), "");  // too early
  now_ += absl::Milliseconds(100);
  progress.Add(5, 500);
  progress.Draw();
  EXPECT_THAT(Written(), AllOf(StartsWith("\r["), HasSubstr(" 50%"),
                               HasSubstr("5/10 files"), Not(HasSubstr("\n"))));
  progress.Print("a warning");
  EXPECT_EQ(Written(), "\r\033[Ka warning\n");
  now_ += absl::Milliseconds(100);
  progress.Draw();
  EXPECT_THAT(Written(), StartsWith("\r["));
  progress.Finish();
  EXPECT_EQ(Written(), "\r\033[K");
  progress.Finish();
  EXPECT_EQ(Written(), "");
}

TEST_F(ProgressTest, WritesPlainLinesEveryFewSecondsElsewhere) {
  Progress progress("loading", 10, 1000, OptionsOf(0));
  for (int i = 0; i < 99; ++i) {
    now_ += absl::Milliseconds(100);
    progress.Draw();
  }
  const std::string text = Written();
  EXPECT_THAT(text, AllOf(StartsWith("loading: 0%"), EndsWith("left\n"),
                          Not(HasSubstr("\r")), Not(HasSubstr("\033"))));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

TEST_F(ProgressTest, RateIsOfTheLastSecondsAndTimeLeftFollows) {
  // Few files, so that bytes dominate: 100 MB, 1 MB a second at first.
  Progress progress("loading", 1, 100'000'000, OptionsOf(200));
  for (int i = 0; i < 20; ++i) {
    now_ += absl::Seconds(1);
    progress.Add(0, 1'000'000);
    progress.Draw();
  }
  EXPECT_THAT(Written(),
              AllOf(HasSubstr("1.00 MB/s"), EndsWith("1:21 left\033[K")));
  for (int i = 0; i < 10; ++i) {  // then 4 MB
    now_ += absl::Seconds(1);
    progress.Add(0, 4'000'000);
    progress.Draw();
  }
  EXPECT_THAT(Written(),
              AllOf(HasSubstr("4.00 MB/s"), EndsWith("0:11 left\033[K")));
}

TEST_F(ProgressTest, MoreThanPromisedIsStillOneHundredPercent) {
  Progress progress("loading", 1, 10, OptionsOf(100));
  progress.Add(5, 5'000'000);
  now_ += absl::Seconds(1);
  progress.Draw();
  EXPECT_THAT(Written(), HasSubstr("100%"));
}

TEST_F(ProgressTest, NothingToDoIsDone) {
  Progress progress("loading", 0, 0, OptionsOf(100));
  now_ += absl::Seconds(1);
  progress.Draw();
  EXPECT_THAT(Written(), HasSubstr("100%"));
}

TEST_F(ProgressTest, AFileIsNoTerminal) {
  EXPECT_EQ(Progress::OptionsFor(file_.get()).columns, 0);
}

TEST_F(ProgressTest, AddsFromManyThreadsAreAllCounted) {
  Progress progress("loading", 4000, 4000, OptionsOf(0));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) progress.Add(1, 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  now_ += absl::Seconds(5);
  progress.Draw();
  EXPECT_THAT(Written(), HasSubstr("4000/4000 files"));
}

}  // namespace
}  // namespace kv
