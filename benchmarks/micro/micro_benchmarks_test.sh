#!/bin/bash
# Goal: the micro-benchmarks run. What they measure is for people to read.
# Method: each program, given as an argument, for a millisecond a benchmark.
set -uo pipefail

suite=micro_benchmarks
# shellcheck source=tests/tools/shell_cases.sh
. tests/tools/shell_cases.sh

for program; do
  output=$("$program" --benchmark_min_time=0.001 2>&1) ||
    wrong "it ends with status $?"
  expect_in 'what it prints' ' ns ' "$output"
  # A benchmark that cannot go on says so in its line, and nowhere else.
  [[ $output != *ERROR* ]] || wrong "$output"
  conclude "$(basename "$program")"
done
conclude_all
