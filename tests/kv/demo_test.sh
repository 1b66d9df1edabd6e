#!/bin/bash
# Goal: however tools/demo ends, it says why and leaves nothing behind: no process,
# no file. Method: the script itself, with stand-ins for Bazel, the server and the
# client that do (and fail to do) what each case needs. That the real ones work is
# for the tests of kv_server and kv, and for the demo itself.
set -euo pipefail

work=$(mktemp -d "${TEST_TMPDIR:-/tmp}/demo_test.XXXXXX")
# In a checkout of its own, for which no Bazel runs.
mkdir -p "$work/checkout/tools"
cp tools/demo "$work/checkout/tools/"
readonly DEMO=$work/checkout/tools/demo
trap 'rm -rf "$work"' EXIT
failed=0 passed=0

# ---- Stand-ins ----

# Each tells `events` that it has begun. MARK finds their processes again.
mkdir -p "$work/bin/examples/kv" "$work/tree/sub"
mkfifo "$work/events" "$work/never"
exec 7<>"$work/events"
export WORK=$work
readonly MARK=demo_test_$$

cat >"$work/bazel" <<'BAZEL'
#!/bin/bash
case $1 in
  build)
    # A server that outlives this command, as Bazel's does.
    # shellcheck disable=SC2016
    setsid bash -c 'read -r <"$WORK/never"' "--workspace_directory=$PWD" &
    echo $! >"$WORK/server"
    until grep -qs workspace_directory /proc/$!/cmdline; do sleep 0.01; done
    echo build >&7
    case $FAKE_BUILD in
      fails) echo 'no such target' >&2; exit 1 ;;
      hangs) exec sleep 1000 ;;
    esac ;;
  info) echo "$WORK/bin" ;;
  shutdown)
    # At first it does not find the server, which is only just starting.
    [[ ! -e $WORK/shutdown ]] || kill "$(<"$WORK/server")"
    touch "$WORK/shutdown" ;;
esac
BAZEL

cat >"$work/bin/examples/kv/kv_server" <<'SERVER'
#!/bin/bash
echo 'the server logs this' >&2
echo server >&7
[[ $FAKE_SERVER != fails ]] || { echo 'kv_server: no device' >&2; exit 2; }
# Able to end in order before it says anything: the demo may end it at once.
sleep 1000 &
case $FAKE_SERVER in
  stubborn) trap '' TERM ;;
  crashes) trap 'kill %1; wait %1; exit 7' TERM ;;
  *) trap 'kill %1; wait %1; exit 0' TERM ;;
esac
case $FAKE_SERVER in
  babbles) echo 'hello' ;;
  *) echo 'listening on rdma://127.0.0.1:1 (device soft0)' ;;
esac
wait
[[ $FAKE_SERVER != stubborn ]] || wait
SERVER

cat >"$work/bin/examples/kv/kv" <<'CLIENT'
#!/bin/bash
while [[ $1 == --* ]]; do shift; done
command=$1
shift
echo "$command" >&7
echo "$command" "$@" >>"$WORK/commands"
[[ $FAKE_CLIENT != "$command hangs" ]] || exec sleep 1000
[[ $FAKE_CLIENT != "$command fails" ]] || { echo 'kv: oh no' >&2; exit 2; }
files=$(find "$@" -type f 2>/dev/null | wc -l)
case $command in
  load) echo "{\"files\":$files,\"seconds\":1.0,\"gigabytes_per_s\":1.0}" ;;
  verify)
    [[ $FAKE_CLIENT != 'verify forgets' ]] || files=$((files - 1))
    echo "{\"same\":$files,\"bytes\":1234567,\"seconds\":1.0,\"gigabytes_per_s\":2.5,\"get_p50_us\":1.5,\"get_p99_us\":20.25,\"get_gigabytes_per_s\":3.0}" ;;
  stats) echo '{"messages_eager":1000,"messages_rendezvous":20,"device":"soft0"}' ;;
esac
CLIENT
chmod +x "$work/bazel" "$work/bin/examples/kv/"*
echo 'a file' >"$work/tree/a"
: >"$work/tree/sub/empty"

# ---- Checks ----

check() {
  local what=$1
  shift
  if "$@"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'FAILED: %s: %s\n' "$name" "$what"
    sed 's/^/    /' "$work/out" || true
  fi
}

says() { grep -qF -- "$1" "$work/out"; }
status_is() { [[ $status == "$1" ]]; }

# The demo and its children have the mark in their environment.
processes_left() {
  grep -qzx "DEMO_MARK=$MARK" /proc/[0-9]*/environ 2>/dev/null
}
nothing_left() {
  ! processes_left && [[ -z $(ls "$work/tmp") ]]
}

begin() {
  name=$1
  rm -rf "$work/tmp" "$work/commands" "$work/shutdown"
  mkdir -p "$work/tmp"
  export FAKE_BUILD='' FAKE_SERVER='' FAKE_CLIENT='' TMPDIR=$work/tmp
  # Events that an earlier case left.
  while read -r -t 0.01 <&7; do :; done
}

start_demo() {
  # A background job ignores SIGINT, and so would the demo, for ever.
  DEMO_MARK=$MARK BAZEL=$work/bazel env --default-signal=INT \
    "$DEMO" --no-install --quick --tree "$work/tree" "$@" >"$work/out" 2>&1 &
  demo=$!
}
finish_demo() {
  status=0
  wait "$demo" || status=$?
}
run_demo() {
  start_demo "$@"
  finish_demo
}
# Waits until a stand-in says that it has begun.
await() {
  local event
  while read -r -t 60 event <&7; do
    [[ $event != "$1" ]] || return 0
  done
  return 1
}

# ---- Cases ----

begin 'a demo that works'
run_demo
check 'status 0' status_is 0
check 'the last line' test "$(tail -n 1 "$work/out")" = 'demo: ok'
for text in 'soft0' '1 000' '20' '1.5 us' '20.2 us' '2.50 GB/s' '1 234 567'; do
  check "the table has $text" says "$text"
done
check 'loads and verifies the tree' test \
  "$(grep -c -F "$work/tree" "$work/commands")" = 2
check 'nothing is left' nothing_left

for moment in 'INT build' 'TERM build' 'INT load' 'HUP load' 'TERM verify'; do
  begin "SIG$moment"
  read -r signal stage <<<"$moment"
  case $stage in
    build) FAKE_BUILD=hangs ;;
    *) FAKE_CLIENT="$stage hangs" ;;
  esac
  start_demo
  check "gets to $stage" await "$stage"
  kill -s "$signal" "$demo"
  finish_demo
  check 'a status of 128 and more' test "$status" -gt 128
  check 'nothing is left' nothing_left
done

begin 'killed'
FAKE_CLIENT='load hangs'
start_demo
check 'gets to load' await load
kill -s KILL "$demo"
finish_demo
kill "$(<"$work/server")"  # Bazel's server belongs to nobody; it stays
# The kernel asks the children to end; give them the time to do so.
for ((i = 0; i < 200; i++)); do
  processes_left || break
  sleep 0.05
done
check 'no process is left' eval '! processes_left'

begin 'a build that fails'
FAKE_BUILD=fails
run_demo
check 'status 1' status_is 1
check 'says what failed' says 'demo: FAILED: the build failed'
check 'nothing is left' nothing_left

begin 'a server that does not start'
FAKE_SERVER=fails
run_demo
check 'status 1' status_is 1
check 'says what failed' says 'the server did not start'
check 'shows its log' says 'kv_server: no device'
check 'nothing is left' nothing_left

begin 'a server that says something else'
FAKE_SERVER=babbles
run_demo
check 'status 1' status_is 1
check 'says what' says 'unexpected: hello'
check 'nothing is left' nothing_left

begin 'a server that ends badly'
FAKE_SERVER=crashes
run_demo
check 'status 1' status_is 1
check 'says with which status' says 'ended with status 7'
check 'nothing is left' nothing_left

for stage in load verify stats; do
  begin "a client that fails to $stage"
  FAKE_CLIENT="$stage fails"
  run_demo
  check 'status 1' status_is 1
  check 'passes on what it said' says 'kv: oh no'
  check 'shows the log of the server' says 'the server logs this'
  check 'nothing is left' nothing_left
done

begin 'a file that was not verified'
FAKE_CLIENT='verify forgets'
run_demo
check 'status 1' status_is 1
check 'says how many' says 'verified.'
check 'nothing is left' nothing_left

begin 'no directory for temporary files'
TMPDIR=$work/nowhere
run_demo
check 'status 1' status_is 1
check 'names it' says "$work/nowhere"

begin 'a tree that is not there'
run_demo --tree "$work/nowhere"
check 'status 1' status_is 1
check 'names it' says "$work/nowhere"
check 'nothing is left' nothing_left

begin 'a wrong option'
run_demo --nonsense
check 'status 2' status_is 2
check 'names it' says '--nonsense'

begin 'help'
run_demo --help
check 'status 0' status_is 0
check 'says what it does' says 'tools/demo'

printf '%d checks passed, %d failed\n' "$passed" "$failed"
[[ $failed == 0 ]]
