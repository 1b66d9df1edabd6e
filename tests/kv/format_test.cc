// Goal: numbers read well at every size, above all where the unit changes, and
// a name of any bytes is safe to print. Method: examples at the edges.
#include "examples/kv/format.h"

#include <cstdint>
#include <limits>
#include <string>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace kv {
namespace {

TEST(FormatBytesTest, ThreeDigitsAndTheRightUnit) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1024), "1.00 KiB");
  EXPECT_EQ(FormatBytes(10235), "10.0 KiB");
  EXPECT_EQ(FormatBytes(102400), "100 KiB");
  EXPECT_EQ(FormatBytes((1 << 20) - 1), "1.00 MiB");
  EXPECT_EQ(FormatBytes(uint64_t{5} << 40), "5.00 TiB");
  EXPECT_EQ(FormatBytes(std::numeric_limits<uint64_t>::max()), "16.0 EiB");
}

TEST(FormatRateTest, DecimalUnits) {
  EXPECT_EQ(FormatRate(0), "0.00 B/s");
  EXPECT_EQ(FormatRate(999.9), "1.00 kB/s");
  EXPECT_EQ(FormatRate(1.25e9), "1.25 GB/s");
  EXPECT_EQ(FormatRate(1e16), "10000 TB/s");
}

TEST(FormatTimeLeftTest, RoundsUpToSeconds) {
  EXPECT_EQ(FormatTimeLeft(absl::ZeroDuration()), "0:00");
  EXPECT_EQ(FormatTimeLeft(absl::Milliseconds(1)), "0:01");
  EXPECT_EQ(FormatTimeLeft(absl::Seconds(754)), "12:34");
  EXPECT_EQ(FormatTimeLeft(absl::Seconds(3600)), "1:00:00");
  EXPECT_EQ(FormatTimeLeft(absl::Seconds(-5)), "0:00");
}

TEST(FormatLatencyTest, PicksTheUnit) {
  EXPECT_EQ(FormatLatency(absl::Nanoseconds(850)), "850 ns");
  EXPECT_EQ(FormatLatency(absl::Nanoseconds(999'600)), "1.00 ms");
  EXPECT_EQ(FormatLatency(absl::Microseconds(12.34)), "12.3 us");
  EXPECT_EQ(FormatLatency(absl::Seconds(75)), "75.0 s");
}

TEST(PrintableTest, LeavesTextAlone) {
  EXPECT_EQ(Printable("a b/c.txt"), "a b/c.txt");
  EXPECT_EQ(Printable("gr\u00fc\u00df/\u4f60\u597d/\U0001f600"),
            "gr\u00fc\u00df/\u4f60\u597d/\U0001f600");
  EXPECT_EQ(Printable(""), "");
}

TEST(PrintableTest, EscapesWhatATerminalWouldActOn) {
  EXPECT_EQ(Printable("a\nb\tc\\"), "a\\nb\\tc\\\\");
  EXPECT_EQ(Printable("\033[2J\x7f"), "\\x1b[2J\\x7f");
  EXPECT_EQ(Printable(std::string("\0", 1)), "\\x00");
  EXPECT_EQ(Printable("\u009b2J"), "\\xc2\\x9b2J");  // C1's CSI
}

TEST(PrintableTest, EscapesWhatIsNoUtf8) {
  EXPECT_EQ(Printable("\xff"), "\\xff");
  EXPECT_EQ(Printable("\xc3"), "\\xc3");           // cut short
  EXPECT_EQ(Printable("\xc0\xaf"), "\\xc0\\xaf");  // overlong
  EXPECT_EQ(Printable("\xe0\x80\xaf"), "\\xe0\\x80\\xaf");
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // surrogate
  EXPECT_EQ(Printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}

}  // namespace
}  // namespace kv
