// Reads what callgrind counted.
//
// Nothing but three lines of a dump is looked at, those with its name, with
// what was counted, and with the sums: no function's name matters, so functions
// may come and go.
#ifndef VERBENA_TESTS_WARM_CALL_CALLGRIND_DUMPS_H_
#define VERBENA_TESTS_WARM_CALL_CALLGRIND_DUMPS_H_

#include <cstdint>
#include <map>
#include <string>

namespace warm_call {

struct CallgrindCounts {
  int64_t instructions = 0;
  int64_t stores = 0;  // instructions that do; only with --cache-sim=yes
};

// The counts of each dump in `directory` that the program asked for by
// CALLGRIND_DUMP_STATS_AT(name), by name.
std::map<std::string, CallgrindCounts> ReadCallgrindDumps(
    const std::string& directory);

}  // namespace warm_call

#endif  // VERBENA_TESTS_WARM_CALL_CALLGRIND_DUMPS_H_
