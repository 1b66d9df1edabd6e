"""Counts the test cases of Bazel runs; what tools/test ends with.

    test_summary.py NAME:EXIT_STATUS:EVENTS...

Each argument is one run of `bazel test`: a name for it, Bazel's exit status, and
the file that --build_event_json_file wrote. The last line of the output is
"N passed, N failed", with ", N skipped" appended where there are any. Exits with
1 if anything failed.

A test case is what the test program reports in its test.xml: for GoogleTest each
TEST, for a script the script. Nothing that went wrong goes uncounted: a target
that did not build, ended without a report (a crash, a timeout) or failed though
all cases it reported passed (a leak found at exit) is a failed case of its own.
"""

import collections
import json
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree

# Bazel's exit statuses that leave nothing to explain: all passed, some test
# failed, no test to run.
EXPLAINED_EXIT_STATUSES = (0, 3, 4)

# Of a message; the logs have the whole.
MAX_DETAIL_CHARACTERS = 200

Case = collections.namedtuple("Case", "name outcome detail")


def read_events(path):
    """The events of a file that Bazel may not have written, or not to the end."""
    events = []
    try:
        with open(path, encoding="utf-8") as file:
            for line in file:
                events.append(json.loads(line))
    except (OSError, ValueError):
        pass  # the exit status tells
    return events


def text_of(element):
    """The message of a <failure> or <skipped>, on one line."""
    text = element.get("message") or element.text or ""
    return " ".join(text.split())[:MAX_DETAIL_CHARACTERS]


def outcome_of(testcase):
    """What became of a <testcase>, and what it says about that."""
    for tag, outcome in (("failure", "failed"), ("error", "failed"), ("skipped", "skipped")):
        element = testcase.find(tag)
        if element is not None:
            return outcome, text_of(element)
    if testcase.get("status") == "notrun":
        return "skipped", "disabled"
    return "passed", ""


def name_of(label, testcase):
    suite, name = testcase.get("classname", ""), testcase.get("name", "")
    # A report that Bazel wrote for the program names its file only.
    return "%s %s.%s" % (label, suite, name) if suite else label


def cases_of_report(label, path):
    """The cases in a test.xml; none where it is missing or is not whole."""
    try:
        root = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError):
        return []
    return [
        Case(name_of(label, testcase), *outcome_of(testcase))
        for testcase in root.iter("testcase")
    ]


def cases_of_result(label, result):
    """The cases of one attempt at one shard of a test target."""
    files = {
        output["name"]: urllib.parse.unquote(urllib.parse.urlparse(output["uri"]).path)
        for output in result.get("testActionOutput", [])
        if "uri" in output
    }
    status = result.get("status", "NO_STATUS")
    log = files.get("test.log", "no log")
    cases = cases_of_report(label, files.get("test.xml", ""))
    if status == "PASSED":
        return cases or [Case(label, "passed", "")]
    if not any(case.outcome == "failed" for case in cases):
        cases.append(Case(label, "failed", "failed as a whole"))
    note = "" if status == "FAILED" else status + ", "  # TIMEOUT, FLAKY, ...
    return [
        case._replace(detail="%s%s (%s)" % (note, case.detail, log)) if case.outcome == "failed" else case
        for case in cases
    ]


def cases_of_events(events):
    results = {}
    broken = []
    for event in events:
        identity = event.get("id", {})
        if "testResult" in identity and "testResult" in event:
            key = identity["testResult"]
            # Later attempts replace earlier ones.
            results[key["label"], key.get("run"), key.get("shard")] = event["testResult"]
        elif "targetCompleted" in identity:
            if not event.get("completed", {}).get("success", False):
                broken.append(identity["targetCompleted"]["label"])
    cases = [Case(label, "failed", "did not build") for label in sorted(set(broken))]
    for (label, _, _), result in sorted(results.items(), key=lambda item: str(item[0])):
        cases += cases_of_result(label, result)
    return cases


def cases_of_run(exit_status, events):
    cases = cases_of_events(events)
    failed = any(case.outcome == "failed" for case in cases)
    if exit_status not in EXPLAINED_EXIT_STATUSES and not failed:
        cases.append(Case("bazel", "failed", "exit status %d, see above" % exit_status))
    return cases


def main(arguments):
    counts = collections.Counter()
    for argument in arguments:
        name, exit_status, path = argument.split(":", 2)
        cases = cases_of_run(int(exit_status), read_events(path))
        counts.update(case.outcome for case in cases)
        for case in cases:
            if case.outcome != "passed":
                print("%s [%s] %s: %s" % (case.outcome.upper(), name, case.name, case.detail))
        of_run = collections.Counter(case.outcome for case in cases)
        print(
            "%s: %d passed, %d failed, %d skipped"
            % (name, of_run["passed"], of_run["failed"], of_run["skipped"])
        )
    line = "%d passed, %d failed" % (counts["passed"], counts["failed"])
    if counts["skipped"]:
        line += ", %d skipped" % counts["skipped"]
    print(line)
    if not counts:
        print("no test ran: are these the targets' names?", file=sys.stderr)
    return 1 if counts["failed"] or not counts else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
