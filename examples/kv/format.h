// Numbers and names as people read them.
//
// Thread rule: pure functions.
#ifndef VERBENA_EXAMPLES_KV_FORMAT_H_
#define VERBENA_EXAMPLES_KV_FORMAT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/time/time.h"

namespace kv {

// "0 B", "999 B", "1.00 KiB", "12.3 MiB", "4.56 TiB": three digits.
std::string FormatBytes(uint64_t bytes);

// "12.3 MB/s", "1.25 GB/s": decimal units, as networks are measured in.
std::string FormatRate(double bytes_per_second);

// "0:07", "12:34", "3:02:05". Rounded up to a second, so that a time left is
// 0:00 only at the end.
std::string FormatTimeLeft(absl::Duration duration);

// "850 ns", "12.3 us", "4.56 ms", "1.20 s".
std::string FormatLatency(absl::Duration duration);

// A name of any bytes on one line of a terminal: control characters and bytes
// that are no UTF-8 become \n, \t, \x1b, ...; a backslash becomes \\. Nothing
// that a name holds reaches the terminal as a command.
std::string Printable(std::string_view name);

}  // namespace kv

#endif  // VERBENA_EXAMPLES_KV_FORMAT_H_
