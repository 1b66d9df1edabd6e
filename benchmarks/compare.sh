#!/bin/bash
# bazel run -c opt //benchmarks:compare -- [OPTION...]; see compare.py --help.
set -euo pipefail

# Paths of the caller's options are the caller's.
runfiles=$PWD
cd "${BUILD_WORKING_DIRECTORY:-$PWD}"
# The distribution's, for which packages_compare.txt has the library that draws.
exec /usr/bin/python3 "$runfiles/benchmarks/compare.py" \
  --rpc_bench="$runfiles/benchmarks/rpc_bench" \
  --ucx_bench="$runfiles/benchmarks/peers/ucx_bench" \
  --grpc_bench="$runfiles/benchmarks/peers/grpc_bench" \
  --floor_bench="$runfiles/benchmarks/peers/floor_bench" \
  "$@"
