#!/bin/bash
# Goal: rdma_info says of real devices what is true of them, and finds what was
# broken on purpose. Method: one VM with soft-RoCE, taken through scenes that each
# leave a report of every kind that is looked at afterwards; what needs no device
# runs here. tools/rdma_info has the tests of machines made up.
#
#   rdma_info_test.sh RDMA_INFO
#
# Cases are called by their names, and the guest expands what it is given:
# shellcheck disable=SC2016,SC2317
set -euo pipefail

suite=rdma_info
# shellcheck source=tests/tools/shell_cases.sh
. tests/tools/shell_cases.sh

rdma_info=$1
results=$TEST_TMPDIR/results
# For all scenes together; a busy host takes several times as long as a quiet one.
readonly SECONDS_FOR_ALL_SCENES=400

# value SCENE EXPRESSION: of `r`, the scene's report. `device`, `port` and `finding`
# find by name, port by its device's; the last two give None where there is none.
value() {
  python3 - "$results/$1.json" "$2" <<'END' 2>&1
import json
import sys

with open(sys.argv[1]) as file:
    r = json.load(file)

def device(name):
    return next(d for d in r["devices"] if d["name"] == name)

def port(name):
    return device(name)["ports"][0]

def finding(id, subject=""):
    return next((f for f in r["findings"]
                 if f["id"] == id and f["subject"] == subject), None)

def chosen(use, provider):
    return next((c["device"], c["reason"]) for c in r["address"]["choices"]
                if c["use"] == use and c["provider"] == provider)

print(eval(sys.argv[2]))
END
}

# expect_value SCENE WANTED EXPRESSION
expect_value() { expect "$1: $3" "$2" "$(value "$1" "$3")"; }

# expect_status SCENE WANTED: of the program, and what its report says of it.
expect_status() {
  expect "status of $1" "$2" "$(cat "$results/$1.status" 2>&1)"
  expect_value "$1" "$2" 'r["exit_status"]'
}

# ---- Without a VM ----

# What the command prints and its status, in `output` and `status`.
run() {
  status=0
  output=$("$@" 2>&1) || status=$?
}

has_help() {
  run "$rdma_info" --help
  expect 'status' 0 "$status"
  expect_in 'help' '--address=HOST:PORT' "$output"
}

refuses_wrong_arguments() {
  local argument
  for argument in --nonsense host --address --address=10.0.0.1 \
    --address=tcp://10.0.0.1:1 --address=10.0.0.1:99999 --address= --json=yes; do
    run "$rdma_info" "$argument"
    expect "status of $argument" 2 "$status"
    expect_in "error of $argument" 'rdma_info: see --help' "$output"
  done
}

# Whether this host has devices is not known here; soft0 it has.
leads_to_this_host_by_the_software_device() {
  local status=0
  mkdir -p "$results"
  "$rdma_info" --json --address=rdma://localhost:1 >"$results/here.json" || status=$?
  # 1 where such devices have faults.
  [[ $status -le 1 ]] || wrong "status of rdma_info: $status"
  expect_value here "('soft0', 'software')" \
    '(device("soft0")["name"], device("soft0")["provider"])'
  expect_value here soft0 'chosen("connect", "software")[0]'
  expect_value here soft0 'chosen("listen", "software")[0]'
}

# ---- In the VM ----

# The scenes, in the guest. Ports and GIDs change in the background, and nothing
# tells when: await asks.
readonly SCENES='
  as_user=
  info() { # SCENE OPTION...
    local scene=$1 status=0
    shift
    $as_user "$RDMA_INFO" --json "$@" >"$VERBENA_VM_RESULTS/$scene.json" ||
      status=$?
    echo "$status" >"$VERBENA_VM_RESULTS/$scene.status"
  }
  await() { until eval "$1"; do sleep 0.1; done; }
  state() { cat /sys/class/infiniband/$1/ports/1/state; }
  has_gid() { grep -qs 0a4d:0001 /sys/class/infiniband/rxe0/ports/1/gids/*; }
  user="setpriv --reuid=65534 --regid=65534 --clear-groups"

  info healthy --address=$VERBENA_VM_PEER_ADDRESS:7471
  "$RDMA_INFO" --address=$VERBENA_VM_PEER_ADDRESS:7471 >"$VERBENA_VM_RESULTS/text"
  info loopback --address=127.0.0.1:1
  info loopback_required --address=127.0.0.1:1 --require_hardware
  info no_route --address=8.8.8.8:1

  (ulimit -l 64; as_user=$user info memlock; info memlock_of_root)

  chmod 600 /dev/infiniband/uverbs0
  as_user=$user info denied
  chmod 666 /dev/infiniband/uverbs0

  ip link set veth0 mtu 1500
  await "ibv_devinfo -d rxe0 | grep -q active_mtu.*1024"
  info mtu
  ip link set veth0 mtu 9000

  ip addr del $VERBENA_VM_ADDRESS/24 dev veth0
  await "! has_gid"
  info no_address

  ip link set veth0 down
  await "state rxe0 | grep -q DOWN && state rxe1 | grep -q DOWN"
  info down

  rmmod rdma_ucm
  info no_rdma_ucm
  rdma link delete rxe0
  rdma link delete rxe1
  info no_device
  info no_device_required --require_hardware
'

plays_all_scenes() {
  run env RDMA_INFO="$rdma_info" tools/vm --no-install --cpus=1 --cwd="$PWD" \
    --results="$results" --timeout="$SECONDS_FOR_ALL_SCENES" \
    bash -euc "$SCENES" </dev/null
  expect 'status' 0 "$status"
  expect 'output' '' "$output"
}

shows_devices_ports_and_gids() {
  expect_status healthy 0
  expect_value healthy "['rxe0', 'rxe1', 'soft0']" \
    '[d["name"] for d in r["devices"]]'
  expect_value healthy "['rxe0', 'rxe1']" 'r["usable_devices"]'
  expect_value healthy "('rdma_rxe', '/dev/infiniband/uverbs0', 'CA')" \
    'tuple(device("rxe0")[k] for k in ("driver", "node", "node_type"))'
  expect_value healthy "('ACTIVE', 'LinkUp', 'Ethernet', 4096, 4096, ['veth0'])" \
    'tuple(port("rxe0")[k] for k in ("state", "physical_state", "link_layer",
           "active_mtu_bytes", "max_mtu_bytes", "netdevs"))'
  expect_value healthy "('::ffff:10.77.0.1', 'RoCE v2', 'veth0', '10.77.0.1')" \
    'tuple(port("rxe0")["gids"][1][k] for k in ("gid", "type", "netdev",
           "ip_address"))'
  expect_value healthy None 'port("rxe0")["gids"][0]["ip_address"]'
  # rdma_rxe of Linux 6.1: rxe_param.h, and the deepest inline data it takes.
  expect_value healthy "{'device': 32767, 'transport': 32767}" \
    'device("rxe0")["capabilities"]["max_cqe"]'
  expect_value healthy "{'device': 128, 'transport': 16}" \
    'device("rxe0")["capabilities"]["max_qp_rd_atom"]'
  expect_value healthy "{'device': 512, 'transport': 512}" \
    'device("rxe0")["capabilities"]["max_inline_data"]'
  # Its windows do not survive lost packets: docs/hardware.md.
  expect_value healthy "{'device': True, 'transport': False}" \
    'device("rxe0")["capabilities"]["mem_window_type_2"]'
  expect_value healthy "['soft_roce']" '[f["id"] for f in r["findings"]]'
}

shows_the_same_as_text() {
  local text
  text=$(cat "$results/text" 2>&1) || true
  expect_in 'the port' 'port 1: ACTIVE (LinkUp), Ethernet,' "$text"
  expect_in 'the GID' '::ffff:10.77.0.1, RoCE v2, veth0, address 10.77.0.1' "$text"
  expect_in 'rxe1' 'capabilities as of rxe0' "$text"
  expect_in 'the verdict' 'RDMA hardware is ready: rxe0, rxe1.' "$text"
}

chooses_by_the_route_and_says_so() {
  expect_value healthy \
    "('rxe0', 'the route to 10.77.0.2 starts at 10.77.0.1, GID 1 of its port 1 (veth0, RoCE v2)')" \
    'chosen("connect", "hardware")'
  expect_value healthy \
    "('rxe1', '10.77.0.2 is GID 1 of its port 1 (veth1, RoCE v2)')" \
    'chosen("listen", "hardware")'
}

finds_no_hardware_for_the_loopback_address() {
  expect_status loopback 0
  expect_value loopback None 'chosen("connect", "hardware")[0]'
  expect_value loopback soft0 'chosen("connect", "software")[0]'
  expect_value loopback note \
    'finding("address_software_only", "127.0.0.1:1")["severity"]'
  expect_status loopback_required 1
  expect_value loopback_required ready 'r["hardware"]'
}

finds_no_device_without_a_route() {
  expect_status no_route 1
  expect_in 'why' 'no route to 8.8.8.8' \
    "$(value no_route 'finding("address_unreachable", "8.8.8.8:1")["why"]')"
}

finds_too_little_locked_memory() {
  expect_status memlock 1
  expect_value memlock 65536 'r["system"]["memlock_bytes"]'
  expect_value memlock error 'finding("memlock_too_low")["severity"]'
  # Whom the limit does not concern.
  expect_status memlock_of_root 0
  expect_value memlock_of_root True 'r["system"]["ignores_memlock"]'
}

finds_a_device_without_permission() {
  expect_status denied 0
  expect_value denied warning 'finding("device_access_denied", "rxe0")["severity"]'
  expect_value denied "(False, 'denied', 'ACTIVE')" \
    '(device("rxe0")["opened"], device("rxe0")["access"], port("rxe0")["state"])'
  # From the kernel's files, as nothing else is to be had.
  expect_value denied "('::ffff:10.77.0.1', 'RoCE v2', 'veth0', '10.77.0.1')" \
    'tuple(port("rxe0")["gids"][1][k] for k in ("gid", "type", "netdev",
           "ip_address"))'
  expect_value denied "['rxe1']" 'r["usable_devices"]'
}

finds_a_small_mtu() {
  expect_status mtu 0
  expect_value mtu 1024 'port("rxe0")["active_mtu_bytes"]'
  expect_in 'what to do' 'sudo ip link set dev veth0 mtu 4192' \
    "$(value mtu 'finding("mtu_small", "rxe0/1")["fix"]')"
}

finds_an_interface_without_address() {
  expect_status no_address 0
  expect_value no_address warning 'finding("no_ip_address", "rxe0/1")["severity"]'
  expect_value no_address "['rxe1']" 'r["usable_devices"]'
}

finds_ports_that_are_down() {
  expect_status down 1
  expect_value down unusable 'r["hardware"]'
  expect_value down "['sudo ip link set dev veth0 up']" \
    'finding("port_down", "rxe0/1")["fix"]'
  # The other end of the cable: its interface is up, and has no link.
  expect_in 'rxe1' 'veth1 has no link' \
    "$(value down 'finding("port_down", "rxe1/1")["what"]')"
}

finds_a_module_that_is_not_loaded() {
  expect_status no_rdma_ucm 1
  expect_value no_rdma_ucm error 'finding("rdma_ucm_missing")["severity"]'
}

is_content_without_hardware() {
  expect_status no_device 0
  expect_value no_device "('none', [])" '(r["hardware"], r["usable_devices"])'
  expect_value no_device "['no_device']" '[f["id"] for f in r["findings"]]'
  expect_status no_device_required 1
}

# ---- All ----

run_cases has_help refuses_wrong_arguments \
  leads_to_this_host_by_the_software_device
run_cases_in_vm plays_all_scenes shows_devices_ports_and_gids \
  shows_the_same_as_text chooses_by_the_route_and_says_so \
  finds_no_hardware_for_the_loopback_address finds_no_device_without_a_route \
  finds_too_little_locked_memory finds_a_device_without_permission \
  finds_a_small_mtu finds_an_interface_without_address \
  finds_ports_that_are_down finds_a_module_that_is_not_loaded \
  is_content_without_hardware
conclude_all
