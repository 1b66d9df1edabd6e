#!/bin/bash
# Runs the cases of sweep_test.py.
set -euo pipefail
exec python3 benchmarks/sweep_test.py
