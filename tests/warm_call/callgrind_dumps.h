// Reads what callgrind counted.
//
// Nothing but two lines of a dump is looked at, the one with its name and the
// one with its sum: no function's name matters, so functions may come and go.
#ifndef VERBENA_TESTS_WARM_CALL_CALLGRIND_DUMPS_H_
#define VERBENA_TESTS_WARM_CALL_CALLGRIND_DUMPS_H_

#include <cstdint>
#include <map>
#include <string>

namespace warm_call {

// Instructions of each dump in `directory` that the program asked for by
// CALLGRIND_DUMP_STATS_AT(name), by name.
std::map<std::string, int64_t> ReadCallgrindDumps(const std::string& directory);

}  // namespace warm_call

#endif  // VERBENA_TESTS_WARM_CALL_CALLGRIND_DUMPS_H_
