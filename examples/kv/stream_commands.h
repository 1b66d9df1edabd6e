// The commands of `kv` whose calls are streams: watch and upload.
#ifndef VERBENA_EXAMPLES_KV_STREAM_COMMANDS_H_
#define VERBENA_EXAMPLES_KV_STREAM_COMMANDS_H_

#include "examples/kv/command.h"

namespace kv {

extern const Command kWatchCommand;
extern const Command kUploadCommand;

}  // namespace kv

#endif  // VERBENA_EXAMPLES_KV_STREAM_COMMANDS_H_
