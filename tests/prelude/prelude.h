// What nearly all tests include, compiled once for all of them: reading it
// takes longer than compiling most of them. Tests include what they use all the
// same.
#ifndef VERBENA_TESTS_PRELUDE_PRELUDE_H_
#define VERBENA_TESTS_PRELUDE_PRELUDE_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"

#endif  // VERBENA_TESTS_PRELUDE_PRELUDE_H_
