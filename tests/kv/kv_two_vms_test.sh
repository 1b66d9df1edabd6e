#!/bin/bash
# Goal: the key-value demo carries a directory tree from one machine to another
# over real verbs, though packets get lost on the way, and every byte arrives.
# Method: kv_server in one VM, kv in another, 1% of the packets lost in each
# direction. `kv verify` compares, and so does cmp, which knows nothing of kv.
#
# The guests expand what they are given:
# shellcheck disable=SC2016
set -euo pipefail

readonly SECONDS_FOR_ALL=600  # of a busy host; a quiet one takes half a minute
tree=$TEST_TMPDIR/tree
name=ATreeArrivesByteForByteThoughPacketsAreLost

escaped() { sed -e 's/&/\&amp;/g; s/</\&lt;/g; s/"/\&quot;/g' <<<"$1"; }

# report BODY: of the one case.
report() {
  printf '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites><testsuite name="KvTwoVmsTest"><testcase classname="KvTwoVmsTest" name="%s" status="run">%s</testcase></testsuite></testsuites>\n' \
    "$name" "$1" >"${XML_OUTPUT_FILE:-/dev/null}"
}

# Of sizes from nothing to megabytes, of every way a value can travel. Bytes that
# depend on their place, so that a mix-up shows.
make_tree() {
  local size i
  mkdir -p "$tree/many" "$tree/large"
  : >"$tree/empty"
  for i in {1..40}; do seq "$i" $((i * 60)) >"$tree/many/file $i"; done
  for size in 4095 4096 10240 65537 1048576 3000001; do
    head -c "$size" < <(seq "$((size % 1000))" 1000000) >"$tree/large/$size"
  done
}

serve='exec examples/kv/kv_server --device=rxe0 --address=rdma://$VERBENA_VM_ADDRESS:50051'

# Loads, verifies, and fetches every file again.
load_and_verify='
  kv() { examples/kv/kv --device=rxe0 --address=rdma://$VERBENA_VM_PEER_ADDRESS:50051 "$@"; }
  until kv stats >/dev/null 2>&1; do sleep 0.2; done  # the server starts
  kv load "$TREE" && kv verify "$TREE" || exit
  find "$TREE" -type f | while read -r file; do
    kv get "$file" | cmp - "$file" && echo "compared"
  done | sort | uniq -c
  # Of all that, something was lost: else this test shows nothing.
  tc -s qdisc show dev eth0 | grep -o "dropped [1-9][0-9]*"'

main() {
  local reason status=0 output files
  if ! reason=$(tools/vm --no-install --check 2>&1); then
    printf 'SKIPPED: %s\n' "$reason"
    report "<skipped message=\"$(escaped "$reason")\"/>"
    return
  fi
  make_tree
  files=$(find "$tree" -type f | wc -l)
  output=$(TREE=$tree tools/vm --no-install --two --loss=1 \
    --timeout="$SECONDS_FOR_ALL" --cwd="$PWD" \
    sh -c "$serve" -- sh -c "$load_and_verify" 2>&1 </dev/null) || status=$?
  printf '%s\ntook %d s\n' "$output" "$SECONDS"
  if ((status == 0)) && grep -qE "^\[client\] +$files compared$" <<<"$output" &&
    grep -q '^\[client\] dropped' <<<"$output"; then
    report ''
    return
  fi
  report "<failure message=\"$(escaped "$output")\"/>"
  return 1
}

main
