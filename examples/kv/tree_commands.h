// The commands on whole directory trees: load, verify.
#ifndef VERBENA_EXAMPLES_KV_TREE_COMMANDS_H_
#define VERBENA_EXAMPLES_KV_TREE_COMMANDS_H_

#include "examples/kv/command.h"

namespace kv {

extern const Command kLoadCommand;
extern const Command kVerifyCommand;

}  // namespace kv

#endif  // VERBENA_EXAMPLES_KV_TREE_COMMANDS_H_
