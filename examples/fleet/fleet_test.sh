#!/bin/bash
# Goal: every client sees the same of every server.
# Method: fleet_test.sh CLIENT SERVER...; each server as a process on a free
# port, and the client by each of its APIs; what is compared is what it prints.
# Each server must end in order when it is asked to.
set -euo pipefail

client=$1
shift
server_pid=

fail() {
  printf '%s\n' "$*" >&2
  exit 1
}

stop_server() {
  if [[ -n $server_pid ]]; then
    kill "$server_pid"
    wait "$server_pid" || fail "the server ended with $?"
    server_pid=
  fi
}
trap 'stop_server' EXIT

# Sets `address` when the server listens. Its one line comes through a FIFO.
start_server() {
  local line
  rm -f "$TEST_TMPDIR/line"
  mkfifo "$TEST_TMPDIR/line"
  "$1" 127.0.0.1:0 >"$TEST_TMPDIR/line" &
  server_pid=$!
  read -r line <"$TEST_TMPDIR/line" || fail "$1 did not start"
  [[ $line == 'listening on '* ]] || fail "$1 said: $line"
  address=${line#listening on }
}

expect() {
  diff -u "$TEST_TMPDIR/expected" "$TEST_TMPDIR/out" || fail "$1 differs"
}

cat >"$TEST_TMPDIR/expected" <<'END'
-- GetPlace
bus 1 is 300 m east and 400 m north of the depot
NOT_FOUND: no vehicle is called 'tram'
-- ListPlaces
bus 1 is 300 m east and 400 m north of the depot
bus 7 is 650 m east and 100 m north of the depot
-- RecordTrip
van reported 3 places over 150 m
van is 30 m east and -60 m north of the depot
INVALID_ARGUMENT: the trip is of 'van' and the report of 'lorry': report each vehicle in a call of its own
-- Talk
van: understood: come home
bus 1: understood: good night
bus 7: understood: good night
lorry: understood: good night
van: understood: good night
END

[[ $# -gt 0 ]] || fail 'no server to test'
for server in "$@"; do
  start_server "$server"
  for option in '' --reactors --coroutines; do
    "$client" $option "$address" >"$TEST_TMPDIR/out" ||
      fail "$server: the client failed $option"
    expect "$server $option"
  done
  stop_server
done
