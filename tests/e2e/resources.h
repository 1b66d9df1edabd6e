// What a process holds of the system, to be compared before and after.
//
//   const Resources before = Resources::Now();
//   ...
//   EXPECT_TRUE(Eventually([&] { return Resources::Now() == before; }))
//       << Resources::Now() << " before: " << before;
//
// Thread rule: none.
#ifndef VERBENA_TESTS_E2E_RESOURCES_H_
#define VERBENA_TESTS_E2E_RESOURCES_H_

#include <cstdint>
#include <functional>
#include <ostream>
#include <set>
#include <string>

#include "absl/time/time.h"

namespace e2e {

struct Resources {
  int descriptors = 0;
  // Address space that is shared memory, one's own and peers': arenas and
  // rings, so also all registered memory.
  uint64_t shared_bytes = 0;
  std::set<std::string> dev_shm;  // files in /dev/shm

  static Resources Now();
  bool operator==(const Resources&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Resources& resources);

// How often the runtime's threads of a name slept so far, in this process:
// those that drive for others, and the one that sees to it that somebody does.
inline constexpr char kKeepers[] = "verbena-keeper";
inline constexpr char kMonitor[] = "verbena-monitor";
int64_t SleepsOf(const char* threads);

// Whether `condition` comes true within `timeout`. For what other processes and
// background threads do, and tell nobody about.
bool Eventually(const std::function<bool()>& condition,
                absl::Duration timeout = absl::Seconds(20));

}  // namespace e2e

#endif  // VERBENA_TESTS_E2E_RESOURCES_H_
