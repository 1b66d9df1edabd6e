#!/bin/bash
# Goal: api_bench ($1) measures every pair of APIs. Method: a round that is as
# short as it can be; the figures mean nothing.
set -euo pipefail
table=$("$1" --cpus=none --rounds=1 --seconds=0.01 --messages=1000)
# Where it counts none, grep fails, too; what it counted is judged below.
pairs=$(grep -cE '^[a-z]+ +[a-z]+( +[0-9]+\.[0-9]+){3}$' <<<"$table") || true
[[ $pairs == 16 ]] || {
  printf 'there are %s pairs, not 16:\n%s\n' "$pairs" "$table" >&2
  exit 1
}
