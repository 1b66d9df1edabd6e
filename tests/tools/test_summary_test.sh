#!/bin/bash
# Goal: the summary that tools/test ends with counts every test case, and counts
# as failed whatever went wrong without one. Method: reports and events as Bazel
# writes them, made here; the summary's last line and its exit status.
set -euo pipefail

summary=$PWD/tools/test_summary.py
scratch=$TEST_TMPDIR
failures=0

# report NAME BODY: a test.xml with some test cases.
report() {
  printf '<?xml version="1.0"?><testsuites><testsuite name="S">%s</testsuite></testsuites>' \
    "$2" >"$scratch/$1.xml"
}

# result LABEL STATUS REPORT [ATTEMPT]: the event of a test that ran.
result() {
  printf '{"id":{"testResult":{"label":"%s","run":1,"shard":0,"attempt":%d}},"testResult":{"status":"%s","testActionOutput":[{"name":"test.log","uri":"file://%s/x.log"},{"name":"test.xml","uri":"file://%s/%s.xml"}]}}\n' \
    "$1" "${4:-1}" "$2" "$scratch" "$scratch" "$3"
}

# expect NAME LAST_LINE RUN...: what the summary of these runs ends with.
expect() {
  local name=$1 line=$2 output status=0
  shift 2
  output=$(python3 "$summary" "$@") || status=$?
  local wanted=1
  [[ $line == *' 0 failed'* ]] && wanted=0
  if [[ ${output##*$'\n'} != "$line" || $status != "$wanted" ]]; then
    printf 'FAILED %s: wanted "%s" and %d, got %d and:\n%s\n' \
      "$name" "$line" "$wanted" "$status" "$output"
    failures=$((failures + 1))
  fi
}

passed='<testcase name="A" classname="S" status="run"/>'
failed='<testcase name="B" classname="S"><failure message="no &lt;testcase"/></testcase>'
skipped='<testcase name="C" classname="S"><skipped message="not here"/></testcase>'
disabled='<testcase name="D" classname="S" status="notrun"/>'

report good "$passed$passed"
report mixed "$passed$failed$skipped$disabled"
report cut ''
printf '<testsuites><testcase name="A"' >"$scratch/cut.xml"

cd "$scratch"
result //a:good PASSED good >good.json
expect 'all pass' '2 passed, 0 failed' default:0:good.json

result //a:mixed FAILED mixed >mixed.json
expect 'cases are counted, not targets' '1 passed, 1 failed, 2 skipped' \
  default:3:mixed.json

expect 'configurations add up' '3 passed, 1 failed, 2 skipped' \
  default:0:good.json asan:3:mixed.json

if python3 "$summary" default:4:/dev/null 2>/dev/null; then
  printf 'FAILED: no test ran, and that is taken for success\n'
  failures=$((failures + 1))
fi

result //a:leak FAILED good >leak.json
expect 'failing after all cases passed' '2 passed, 1 failed' asan:3:leak.json

result //a:crash FAILED none >crash.json
expect 'no report' '0 passed, 1 failed' default:3:crash.json

result //a:hang TIMEOUT cut >hang.json
expect 'half a report' '0 passed, 1 failed' default:3:hang.json

{
  result //a:flaky FAILED mixed 1
  result //a:flaky PASSED good 2
} >flaky.json
expect 'the last attempt counts' '2 passed, 0 failed' default:0:flaky.json

printf '{"id":{"targetCompleted":{"label":"//a:broken"}},"completed":{}}\n' \
  >broken.json
expect 'a target that does not build' '0 passed, 1 failed' default:1:broken.json

expect 'Bazel did not get that far' '0 passed, 1 failed' default:1:absent.json
expect 'Bazel was killed, though tests passed' '2 passed, 1 failed' \
  default:137:good.json
expect 'no tests in a configuration' '2 passed, 0 failed' \
  default:0:good.json tsan:4:absent.json

exit $((failures > 0))
