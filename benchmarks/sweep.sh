#!/bin/bash
# bazel run -c opt //benchmarks:sweep -- [OPTION...]; see sweep.py --help.
set -euo pipefail

# Paths of the caller's options are the caller's.
runfiles=$PWD
cd "${BUILD_WORKING_DIRECTORY:-$PWD}"
exec python3 "$runfiles/benchmarks/sweep.py" \
  --rpc_bench="$runfiles/benchmarks/rpc_bench" "$@"
