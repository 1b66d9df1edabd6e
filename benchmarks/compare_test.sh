#!/bin/bash
# Runs the cases of compare_test.py.
set -euo pipefail
exec python3 benchmarks/compare_test.py
