// prelude.h and the API: for clang, which reads only what it needs of a
// precompiled header. GCC takes longer to map it than it saves.
#ifndef VERBENA_TESTS_PRELUDE_LARGE_PRELUDE_H_
#define VERBENA_TESTS_PRELUDE_LARGE_PRELUDE_H_

#include "google/protobuf/message.h"
#include "rpc/generated_code.h"
#include "rpc/rpc.h"
#include "tests/prelude/prelude.h"

#endif  // VERBENA_TESTS_PRELUDE_LARGE_PRELUDE_H_
