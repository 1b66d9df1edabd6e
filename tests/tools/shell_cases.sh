#!/bin/bash
# Test cases in a shell script, reported one by one as Bazel counts them. To be
# sourced:
#
#   suite=vm
#   . tests/tools/shell_cases.sh
#   prints_its_help() { expect_in 'help' 'Runs a command' "$(tools/vm --help)"; }
#   run_cases prints_its_help
#   run_cases_in_vm boots
#   conclude_all
#
# A case is a function without arguments. It fails if it calls `wrong`, as the
# expectations do, and goes on. `suite` names them all.

cases=() # XML
failures=0
problems=

escaped() { sed -e 's/&/\&amp;/g; s/</\&lt;/g; s/"/\&quot;/g' <<<"$1"; }

# What is wrong with the case that runs.
wrong() { problems+="$1"$'\n'; }

# expect WHAT WANTED GOT
expect() { [[ $2 == "$3" ]] || wrong "$1: wanted '$2', got '$3'"; }

# expect_in WHAT WANTED_PART TEXT
expect_in() { [[ $3 == *"$2"* ]] || wrong "$1: no '$2' in '$3'"; }

# add_case NAME RESULT_XML
add_case() {
  # The caller sets it.
  # shellcheck disable=SC2154
  cases+=("<testcase classname=\"$suite\" name=\"$1\" status=\"run\">$2</testcase>")
}

# Ends a case of the name.
conclude() {
  local body=
  if [[ -n $problems ]]; then
    printf 'FAILED %s:\n%s\n' "$1" "$problems"
    body="<failure message=\"$(escaped "$problems")\"/>"
    failures=$((failures + 1))
  else
    printf 'passed %s (%d s)\n' "$1" "$SECONDS"
  fi
  add_case "$1" "$body"
  problems=
}

# skip NAME REASON
skip() {
  printf 'SKIPPED %s: %s\n' "$1" "$2"
  add_case "$1" "<skipped message=\"$(escaped "$2")\"/>"
}

# run_cases NAME...
run_cases() {
  local name
  for name; do
    "$name"
    conclude "$name"
  done
}

# The same of cases that take a VM; where none can run they are skipped, with the
# reason.
run_cases_in_vm() {
  local name reason
  if reason=$(tools/vm --no-install --check 2>&1); then
    printf '%s\n' "$reason"
    run_cases "$@"
  else
    for name; do skip "$name" "$reason"; done
  fi
}

# Writes the report and ends the script: with 1 if a case failed.
conclude_all() {
  if [[ -n ${XML_OUTPUT_FILE:-} ]]; then
    printf '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites><testsuite name="%s">%s</testsuite></testsuites>\n' \
      "$suite" "${cases[*]}" >"$XML_OUTPUT_FILE"
  fi
  exit $((failures > 0))
}
