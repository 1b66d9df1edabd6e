// The commands on the whole store: list, stats.
#ifndef VERBENA_EXAMPLES_KV_STORE_COMMANDS_H_
#define VERBENA_EXAMPLES_KV_STORE_COMMANDS_H_

#include "examples/kv/command.h"

namespace kv {

extern const Command kListCommand;
extern const Command kStatsCommand;

}  // namespace kv

#endif  // VERBENA_EXAMPLES_KV_STORE_COMMANDS_H_
