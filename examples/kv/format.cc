#include "examples/kv/format.h"

#include <array>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace kv {
namespace {

// Three significant digits and a unit.
std::string ThreeDigits(double value, std::string_view unit) {
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return absl::StrFormat("%.*f %s", decimals, value, std::string(unit));
}

// The length of the UTF-8 sequence at the front of `text`; 0 where there is
// none (also for overlong forms, surrogates, and what is beyond Unicode).
size_t Utf8Length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first < 0xc2   ? 0
                        : first < 0xe0 ? 2
                        : first < 0xf0 ? 3
                        : first < 0xf5 ? 4
                                       : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool bad_second =
      (first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) ||
      (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f);
  return bad_second ? 0 : length;
}

// C1 controls, U+0080 to U+009F: some terminals act on them.
bool IsC1Control(std::string_view sequence) {
  return sequence.size() == 2 && sequence[0] == '\xc2' &&
         static_cast<uint8_t>(sequence[1]) < 0xa0;
}

}  // namespace

std::string FormatBytes(uint64_t bytes) {
  static constexpr std::array<const char*, 6> kUnits = {"KiB", "MiB", "GiB",
                                                        "TiB", "PiB", "EiB"};
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  // 1023.5 would be printed as 1024 of its unit.
  while (value >= 1023.5 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return ThreeDigits(value, kUnits[unit]);
}

std::string FormatRate(double bytes_per_second) {
  static constexpr std::array<const char*, 5> kUnits = {"B/s", "kB/s", "MB/s",
                                                        "GB/s", "TB/s"};
  size_t unit = 0;
  while (bytes_per_second >= 999.5 && unit + 1 < kUnits.size()) {
    bytes_per_second /= 1000;
    ++unit;
  }
  return ThreeDigits(bytes_per_second, kUnits[unit]);
}

std::string FormatTimeLeft(absl::Duration duration) {
  if (duration < absl::ZeroDuration()) duration = absl::ZeroDuration();
  const int64_t seconds =
      absl::ToInt64Seconds(absl::Ceil(duration, absl::Seconds(1)));
  if (seconds < 3600) {
    return absl::StrFormat("%d:%02d", seconds / 60, seconds % 60);
  }
  return absl::StrFormat("%d:%02d:%02d", seconds / 3600, seconds / 60 % 60,
                         seconds % 60);
}

std::string FormatLatency(absl::Duration duration) {
  const double ns = absl::ToDoubleNanoseconds(duration);
  if (ns < 999.5) return absl::StrFormat("%.0f ns", ns);
  if (ns < 999.5e3) return ThreeDigits(ns / 1e3, "us");
  if (ns < 999.5e6) return ThreeDigits(ns / 1e6, "ms");
  return ThreeDigits(ns / 1e9, "s");
}

std::string Printable(std::string_view name) {
  std::string out;
  out.reserve(name.size());
  while (!name.empty()) {
    const size_t length = Utf8Length(name);
    const std::string_view sequence = name.substr(0, length == 0 ? 1 : length);
    const uint8_t byte = static_cast<uint8_t>(sequence[0]);
    if (byte == '\\') {
      out += "\\\\";
    } else if (byte == '\n') {
      out += "\\n";
    } else if (byte == '\t') {
      out += "\\t";
    } else if (length == 0 || byte < 0x20 || byte == 0x7f ||
               IsC1Control(sequence)) {
      for (const char c : sequence) {
        absl::StrAppendFormat(&out, "\\x%02x", static_cast<uint8_t>(c));
      }
    } else {
      out += sequence;
    }
    name.remove_prefix(sequence.size());
  }
  return out;
}

}  // namespace kv
