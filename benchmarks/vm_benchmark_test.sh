#!/bin/bash
# Runs the cases of vm_benchmark_test.py.
set -euo pipefail
exec python3 benchmarks/vm_benchmark_test.py
