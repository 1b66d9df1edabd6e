// What most files include, compiled once for all of them: reading it takes
// longer than compiling most of them. They include what they use all the same.
#ifndef VERBENA_TOOLS_PRELUDE_LIBRARY_PRELUDE_H_
#define VERBENA_TOOLS_PRELUDE_LIBRARY_PRELUDE_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

#endif  // VERBENA_TOOLS_PRELUDE_LIBRARY_PRELUDE_H_
