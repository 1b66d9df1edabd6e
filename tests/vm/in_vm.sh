#!/bin/bash
# Runs test programs one after the other in a VM that has soft-RoCE (tools/vm),
# and reports their cases as its own:
#
#   in_vm.sh SECONDS DEVICES PROGRAM...
#
# Each gets the environment of tests/conformance/hardware_provider_under_test.cc.
# DEVICES is 2: clients on rxe0, servers on rxe1, and the cable between; or 1: both
# on rxe0, the only one there is. SECONDS are for all of them together. Where no VM
# can run this is one case, which is skipped and says why.
#
# The guest expands what it is given:
# shellcheck disable=SC2016
set -euo pipefail

seconds=$1
shift
results=$TEST_TMPDIR/results

escaped() { sed -e 's/&/\&amp;/g; s/</\&lt;/g; s/"/\&quot;/g' <<<"$1"; }

# report SUITES: the account of cases that Bazel reads.
report() {
  printf '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n%s\n</testsuites>\n' \
    "$1" >"${XML_OUTPUT_FILE:-/dev/null}"
}

if ! reason=$(tools/vm --no-install --check 2>&1); then
  printf 'SKIPPED: %s\n' "$reason"
  report "<testsuite name=\"vm\"><testcase classname=\"vm\" name=\"RunsHere\" status=\"run\"><skipped message=\"$(escaped "$reason")\"/></testcase></testsuite>"
  exit 0
fi

rm -rf "$results"  # of an attempt before
mkdir -p "$results"
status=0
# The programs get files of their own to report to.
env -u XML_OUTPUT_FILE -u TEST_PREMATURE_EXIT_FILE \
  tools/vm --no-install --results="$results" --timeout="$seconds" --cwd="$PWD" \
  sh -c '
    devices=$1
    shift
    # rxe0 reaches $VERBENA_VM_ADDRESS, its own, from rxe1 only. This one it
    # reaches by itself.
    export VERBENA_TEST_DEVICE=rxe0 VERBENA_TEST_CLIENT_ADDRESS=10.77.1.1
    export VERBENA_TEST_ADDRESS=$VERBENA_TEST_CLIENT_ADDRESS
    if [ "$devices" = 2 ]; then
      export VERBENA_TEST_SERVER_DEVICE=rxe1
      export VERBENA_TEST_ADDRESS=$VERBENA_VM_PEER_ADDRESS
    else
      rdma link delete rxe1
    fi
    export TEST_TMPDIR=/tmp
    export VERBENA_TEST_NETDEV=veth0 VERBENA_TEST_SERVER_NETDEV=veth1
    export VERBENA_TEST_NAME=servers-device
    echo "$VERBENA_TEST_ADDRESS $VERBENA_TEST_NAME" >>/etc/hosts
    ip addr add $VERBENA_TEST_CLIENT_ADDRESS/24 dev veth0
    until grep -qs 0a4d:0101 /sys/class/infiniband/rxe0/ports/1/gids/*; do
      sleep 0.1  # the kernel adds GIDs in the background, and tells nobody
    done
    status=0
    for program; do
      begun=$(cut -d" " -f1 /proc/uptime)
      "$program" --gtest_brief=1 \
        --gtest_output="xml:$VERBENA_VM_RESULTS/${program##*/}.xml" || status=1
      echo "$begun $(cut -d" " -f1 /proc/uptime) $program" |
        awk "{printf \"%s took %.1f s\n\", \$3, \$2 - \$1}"
    done
    exit $status' sh "$@" </dev/null || status=$?
# One that crashed or had no time left has reported nothing.
for program in "${@:2}"; do
  name=${program##*/}
  if [[ ! -s $results/$name.xml ]]; then
    printf '<testsuite name="%s"><testcase classname="%s" name="Ends" status="run"><failure message="it did not end by itself; see the log"/></testcase></testsuite>\n' \
      "$name" "$name" >"$results/$name.xml"
    [[ $status != 0 ]] || status=1
  fi
done
report "$(cat "$results"/*.xml 2>/dev/null |
  sed -e '/^<?xml/d; /^<testsuites/d; /^<\/testsuites/d')"
exit "$status"
