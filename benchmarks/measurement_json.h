// A measurement as fields of a line of JSON, the same for all programs.
#ifndef VERBENA_BENCHMARKS_MEASUREMENT_JSON_H_
#define VERBENA_BENCHMARKS_MEASUREMENT_JSON_H_

#include "benchmarks/recorder.h"
#include "nlohmann/json.hpp"

namespace benchmarks {

// Each call moved `payload_bytes_per_call`.
void AddFigures(const Measurement& measurement, double payload_bytes_per_call,
                nlohmann::ordered_json* line);

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_MEASUREMENT_JSON_H_
