#!/bin/bash
# Goal: tools/vm runs a command in a VM as it says: status, output, files, RDMA
# devices that reach each other, two VMs, and a clear end for what goes wrong.
# Method: the tool itself, as a user calls it, with rdma-core's own programs for
# traffic. Skips the cases that take a VM where none can run, with the reason.
#
# Cases are called by their names, and the guest expands what it is given:
# shellcheck disable=SC2016,SC2317
set -euo pipefail

vm=tools/vm
scratch=$TEST_TMPDIR
# Generous: a busy host.
readonly SECONDS_FOR_A_COMMAND=120

suite=vm
# shellcheck source=tests/tools/shell_cases.sh
. tests/tools/shell_cases.sh

# Runs tools/vm, with the one processor that boots fastest. Sets status, output and
# error.
run() {
  status=0
  # Words, on purpose.
  # shellcheck disable=SC2086
  $vm --no-install --cpus=1 --timeout="$SECONDS_FOR_A_COMMAND" "$@" \
    >"$scratch/output" 2>"$scratch/error" </dev/null || status=$?
  output=$(<"$scratch/output")
  error=$(<"$scratch/error")
}

# Process ids of the children of a process.
children() {
  local file line
  for file in /proc/[0-9]*/stat; do
    line=$(cat "$file" 2>/dev/null) || continue
    line=${line##*) }
    [[ $(cut -d' ' -f2 <<<"$line") != "$1" ]] || printf '%s\n' "${file//[^0-9]/}"
  done
}

# ---- Without a VM ----

refuses_wrong_arguments() {
  local arguments
  for arguments in '' '--nonsense true' '--loss=101 true' '--loss=x true' \
    '--timeout=0 true' '--cpus=0 true' '--two true' '--two -- true' \
    '--two true --' '--check true' '--results=/proc/none true' '--'; do
    # Words, on purpose.
    # shellcheck disable=SC2086
    run $arguments
    expect "status of '$arguments'" 2 "$status"
    expect_in "error of '$arguments'" 'vm: error: ' "$error"
  done
}

says_what_is_missing() {
  local cache=$scratch/empty_cache
  mkdir -p "$cache"
  status=0
  error=$(XDG_CACHE_HOME=$cache "$vm" --check 2>&1) || status=$?
  expect 'status' 122 "$status"
  expect_in 'reason' 'no VM can run here: ' "$error"
  expect_in 'what to do' 'tools/vm --prepare' "$error"
}

# ---- One VM ----

passes_output_and_status_through() {
  run sh -c 'for i in 1 2 3; do echo "out $i"; echo "err $i" >&2; done
    printf "no line end"; echo "by name" >/dev/stderr; exit 7'
  expect 'status' 7 "$status"
  expect 'output' $'out 1\nout 2\nout 3\nno line end' "$output"
  expect 'error' $'err 1\nerr 2\nerr 3\nby name' "$error"
}

# Everything in one boot that can be seen from within.
shows_the_guest_its_world() {
  local results=$scratch/results own=$scratch/own_file
  printf 'of the host' >"$own"
  run --results="$results" sh -c '
    echo "cwd $(pwd)"
    echo "user $(id -u)"
    echo "memlock $(ulimit -l)"
    echo "names $(hostname) $VERBENA_VM_NAME"
    echo "variable $CALLERS_VARIABLE"
    echo "devices" $(ls /sys/class/infiniband)
    echo "mtu" $(ibv_devinfo | sed -n "s/.*active_mtu:[^0-9]*\([0-9]*\).*/\1/p")
    echo "networks" $(ls /sys/class/net)
    echo "before $(cat '"$own"')"
    echo changed >'"$own"' && echo "after $(cat '"$own"')"
    : >/etc/verbena_vm_test && echo "writes /etc"
    head -c 300000 /dev/zero >$VERBENA_VM_RESULTS/zeros
    cat >/dev/null && echo "no input"
    sleep 1000 &'
  expect 'status' 0 "$status"
  expect 'error' '' "$error"
  expect 'what the guest sees' "cwd $PWD
user 0
memlock unlimited
names vm vm
variable a  'b'
devices rxe0 rxe1
mtu 4096 4096
networks lo veth0 veth1
before of the host
after changed
writes /etc
no input" "$output"
  expect 'the file of the host' 'of the host' "$(<"$own")"
  [[ ! -e /etc/verbena_vm_test ]] || wrong 'the guest wrote into the /etc of the host'
  cmp <(head -c 300000 /dev/zero) "$results/zeros" || wrong 'results/zeros differs'
}

# By rdma_cm and without it, both ways, bound and not, and again after the link was
# down. What went over the cable is counted there, and what went through lo is not.
carries_rdma_over_the_cable() {
  run --delay=1 sh -c '
    tc qdisc | grep -c "netem.* delay 1ms"
    sent() { cat /sys/class/net/$1/statistics/tx_packets; }
    ping() { # SERVER_ADDRESS OPTION...
      address=$1; shift
      rping -s -a $address -C 10 >/dev/null 2>&1 &
      until [ -n "$(rdma resource show cm_id | grep LISTEN)" ]; do sleep 0.1; done
      rping -c -a $address -C 10 -v "$@" | grep -c "^ping data"
      wait $!
    }
    first=$(sent veth0) second=$(sent veth1)
    ping $VERBENA_VM_PEER_ADDRESS
    ping $VERBENA_VM_ADDRESS
    ping $VERBENA_VM_PEER_ADDRESS -I $VERBENA_VM_ADDRESS
    ibv_rc_pingpong -c -n 50 -d rxe1 -g 1 >/dev/null & server=$!
    until ibv_rc_pingpong -c -n 50 -d rxe0 -g 1 $VERBENA_VM_PEER_ADDRESS 2>/dev/null |
      grep -o "^50 iters"; do sleep 0.1; done
    wait $server && echo "server fine"
    # 3 times 10 pings of several packets, 50 of two packets each way
    [ $(($(sent veth0) - first)) -gt 200 ] && [ $(($(sent veth1) - second)) -gt 200 ] &&
      echo "over the cable"
    has_route() { ip route get $VERBENA_VM_PEER_ADDRESS >/dev/null 2>&1; }
    ip link set veth0 down
    has_route || echo "no way"
    ip link set veth0 up
    until has_route && rdma link show rxe0/1 | grep -q ACTIVE; do sleep 0.1; done
    ping $VERBENA_VM_PEER_ADDRESS'
  expect 'status' 0 "$status"
  expect 'output' $'2\n10\n10\n10\n50 iters\nserver fine\nover the cable\nno way\n10' "$output"
}

tells_a_panic() {
  run sh -c 'echo before; sleep 2; echo c >/proc/sysrq-trigger; sleep 1000'
  expect 'status' 125 "$status"
  expect 'output until then' before "$output"
  expect_in 'error' "vm: the guest's kernel panicked (sysrq triggered crash)" "$error"
  expect_in 'the console' 'sysrq: Trigger a crash' "$error"
}

ends_after_its_time() {
  local seconds
  # A busy host takes its time to begin.
  for seconds in 1.5 8 40; do
    run --timeout="$seconds" sh -c 'echo before; sleep 1000'
    expect "status after $seconds s" 124 "$status"
    expect 'error' "vm: the command did not end within $seconds s" "$error"
    [[ -z $output ]] || break
  done
  expect 'output until then' before "$output"
}

# Ctrl-C: nothing stays.
ends_when_interrupted() {
  local pid child
  mkdir -p "$scratch/tmp"
  TMPDIR=$scratch/tmp env --default-signal=INT "$vm" --no-install --cpus=1 sh -c 'echo runs; sleep 1000' \
    >"$scratch/output" 2>&1 </dev/null &
  pid=$!
  until grep -q runs "$scratch/output"; do
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  child=$(children "$pid")
  [[ -n $child ]] || wrong 'no child process: this test looks at the wrong place'
  kill -INT "$pid" || wrong 'it ended before the interrupt'
  status=0
  wait "$pid" || status=$?
  expect 'status' 130 "$status"
  expect 'output' runs "$(<"$scratch/output")"
  for pid in $child; do
    [[ ! -e /proc/$pid ]] || wrong "process $pid is still there"
  done
  expect 'files in TMPDIR' '' "$(find "$scratch/tmp" -mindepth 1)"
}

# Also where real-time processors that never sleep take all the CPUs of the host.
fires_timers_in_real_time() {
  local processors
  processors=$(nproc)
  # By builtins of bash: while all processors are busy, what is read of the host's
  # files, as to run a program, takes its time.
  vm='chrt --rr 1 tools/vm' run --cpus="$((processors < 8 ? processors : 8))" bash -c '
    look() {  # TICKS UPTIME
      local name count rest
      while read -r name count rest; do
        [[ $name != LOC: ]] || printf -v "$1" %d "$count"
      done </proc/interrupts
      read -r "$2" rest </proc/uptime
    }
    busy=()
    for processor in $(seq 0 $(($(nproc) - 1))); do
      taskset -c $processor timeout 3 sh -c "while :; do :; done" &
      busy+=($!)
    done
    look ticks_before before
    for one in "${busy[@]}"; do
      wait "$one"
      (($? == 124)) || exit 1  # it was not busy until its time was up
    done
    look ticks_after after
    echo $(((ticks_after - ticks_before) * 100 / (10#${after/./} - 10#${before/./})))'
  expect 'status' 0 "$status"
  # Debian's kernel has 250; with the timers last in line there are 23.
  ((${output:-0} >= 120)) || wrong "${output:-no} timer interrupts a second"
}

# ---- Two VMs ----

# Under loss, soft-RoCE of Linux 6.1 now and then stops a connection for good (about
# 1 of 30 with 100 messages each way, at 5 %), and takes the pingpong's retry count
# of 7 as "for ever". So both ends have a time and try again.
connects_two_with_loss() {
  run --two --loss=5 --delay=1 sh -c '
    echo "$VERBENA_VM_NAME $VERBENA_VM_ADDRESS $VERBENA_VM_PEER_ADDRESS"
    printf "a rest" >&2
    while :; do timeout 15 ibv_rc_pingpong -c -n 25 -d rxe0 -g 1 >/dev/null 2>&1; done' -- sh -c '
    echo "$VERBENA_VM_NAME $VERBENA_VM_ADDRESS $VERBENA_VM_PEER_ADDRESS"
    until timeout 15 ibv_rc_pingpong -c -n 25 -d rxe0 -g 1 server 2>/dev/null |
      grep -o "^25 iters"; do sleep 0.1; done
    # All packets of one may have come through.
    until tc -s qdisc show dev eth0 | grep -q "dropped [1-9]"; do
      timeout 15 ibv_rc_pingpong -c -n 25 -d rxe0 -g 1 server >/dev/null 2>&1
      sleep 0.1
    done
    echo "lost some"
    sleep 2; exit 3'
  expect 'status' 3 "$status"
  expect "the server's lines" '[server] server 10.77.0.1 10.77.0.2' \
    "$(grep -F '[server]' <<<"$output")"
  expect "the client's lines" \
    $'[client] client 10.77.0.2 10.77.0.1\n[client] 25 iters\n[client] lost some' \
    "$(grep -F '[client]' <<<"$output")"
  expect 'error' '[server] a rest' "$error"
}

# The server fails once it has heard of the client, whose trap is set by then.
ends_the_client_when_the_server_fails() {
  run --two sh -c '
    until rping -s -a $VERBENA_VM_ADDRESS -C 1 >/dev/null 2>&1; do sleep 0.1; done
    exit 9' -- sh -c '
    trap "echo asked; exit 0" TERM
    while :; do
      rping -c -a $VERBENA_VM_PEER_ADDRESS -C 1 >/dev/null 2>&1
      sleep 0.1
    done'
  expect 'status' 9 "$status"
  expect 'output' '[client] asked' "$output"
}

# ---- All ----

readonly WITHOUT_VM=(refuses_wrong_arguments says_what_is_missing)
readonly WITH_VM=(
  passes_output_and_status_through
  shows_the_guest_its_world
  carries_rdma_over_the_cable
  tells_a_panic
  ends_after_its_time
  ends_when_interrupted
  connects_two_with_loss
  ends_the_client_when_the_server_fails
)

export CALLERS_VARIABLE="a  'b'"
run_cases "${WITHOUT_VM[@]}"
run_cases_in_vm "${WITH_VM[@]}"
if chrt --rr 1 true 2>/dev/null; then
  run_cases_in_vm fires_timers_in_real_time
else
  skip fires_timers_in_real_time 'no real-time priority here (chrt)'
fi
conclude_all
