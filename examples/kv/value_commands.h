// The commands on single keys: get, put, delete.
#ifndef VERBENA_EXAMPLES_KV_VALUE_COMMANDS_H_
#define VERBENA_EXAMPLES_KV_VALUE_COMMANDS_H_

#include "examples/kv/command.h"

namespace kv {

extern const Command kGetCommand;
extern const Command kPutCommand;
extern const Command kDeleteCommand;

}  // namespace kv

#endif  // VERBENA_EXAMPLES_KV_VALUE_COMMANDS_H_
