#!/bin/bash
# An example ($1) greets, and does so over the transport that README.md promises.
set -euo pipefail
answer=$("$1" Verbena)
[[ $answer == 'Hello Verbena' ]] || {
  printf 'the example said: %s\n' "$answer" >&2
  exit 1
}
