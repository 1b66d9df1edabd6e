// Sizes that the key-value service's two sides agree on.
#ifndef VERBENA_EXAMPLES_KV_LIMITS_H_
#define VERBENA_EXAMPLES_KV_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace kv {

// Longest key. A path of Linux (PATH_MAX) fits.
inline constexpr size_t kMaxKeyBytes = 4096;

// Values of up to this many bytes travel inside the message. A copy of 4 KiB
// costs less than handing a buffer over; larger values are attached.
inline constexpr size_t kMaxInlineValueBytes = 4096;

// Entries of one List page.
inline constexpr uint32_t kDefaultPageSize = 1000;
inline constexpr uint32_t kMaxPageSize = 10000;

// A page ends early once its keys have this many bytes together, so that a page
// of long keys stays a message of a reasonable size.
inline constexpr size_t kMaxPageKeyBytes = size_t{1} << 20;

// Changes that wait for a client that watches. One that is further behind loses
// what comes.
inline constexpr size_t kMaxWaitingChanges = 1024;

}  // namespace kv

#endif  // VERBENA_EXAMPLES_KV_LIMITS_H_
