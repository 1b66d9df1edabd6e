"""Goal: each ratio is ours divided by theirs, of the figures that its name says.
Method: programs that print made-up figures, each a round number of its own.
"""

import argparse
import contextlib
import io
import json
import os
import stat
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

# pylint: disable=wrong-import-position
import compare
import comparison

# Prints what it is asked for, each figure so many times the size.
FAKE = """\
#!/bin/sh
case ${0##*/} in rpc_bench) times=100 ;; ucx_bench) times=200 ;; grpc_bench) times=50 ;;
  *) times=400 ;; esac
for word; do
  case $word in
    --payload_bytes=*) size=${word#*=} ;;
    --concurrency=*) times=$((times * ${word#*=})) ;;
    --attachment) times=$((times * 3)) ;;
    --raw) times=$((times * 7)) ;;
    --protobuf) times=$((times / 16)) ;;
    --one_way) times=$((times * 2)) ;;
    --working_set_bytes=*) times=$((times * 11)) ;;
  esac
done
value=$((times * size))
echo "{\\"payload_bytes\\": $size, \\"errors\\": ERRORS, \\"p50_ns\\": $value,"\
  "\\"rate_per_s\\": $value, \\"gigabytes_per_s\\": $value}"
"""


def run_compare(rounds, errors="0", words=()):
    """compare's status, and what it prints, with those programs."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = []
        for name in sorted(set(compare.BINARY.values())):
            path = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(FAKE.replace("ERRORS", errors))
            os.chmod(path, stat.S_IRWXU)
            arguments.append("--%s=%s" % (name, path))
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            status = compare.main(arguments + ["--rounds=%d" % rounds] + list(words))
        return status, out.getvalue().splitlines()


class CompareTest(unittest.TestCase):
    def test_json_lines_with_the_summary_last(self):
        status, lines = run_compare(2, words=["--json"])
        self.assertEqual(status, 0)
        lines = [json.loads(line) for line in lines]
        self.assertEqual(lines[-1], {"summary": {
            "roundtrip_64_vs_ucx": 0.5, "roundtrip_64_vs_grpc": 2,
            "roundtrip_8192_vs_ucx": 0.5, "rate_64_vs_ucx": 0.25, "rate_64_vs_grpc": 2,
            "bandwidth_1MiB_vs_ucx": 1.5, "bandwidth_16MiB_vs_memcpy": 0.75,
            "bandwidth_16MiB_vs_grpc_raw": round(300 / 350, 4)}})
        self.assertEqual(set(lines[-2]["rounds_alike"].values()), {2})
        self.assertEqual(lines[-3], {"protobuf_alone": {
            "roundtrip_64_vs_ucx": 0.125, "roundtrip_8192_vs_ucx": 0.125,
            "rate_64_vs_ucx": 0.0625}})
        self.assertEqual(lines[-4], {"attachment": {
            "roundtrip_64_vs_ucx": 1.5, "roundtrip_8192_vs_ucx": 1.5}})
        far = 400 * compare.DISTANCE_BYTES
        self.assertEqual(lines[-5]["by_distance"]["rate_64_vs_ucx"], [[far, 0.25], [far, 0.25]])
        rounds = [line["round"] for line in lines[:-5]]
        self.assertEqual(rounds, sorted(rounds))
        first = {line["program"] for line in lines[:-5] if line["round"] == 1}
        self.assertEqual(first, set(compare.WORDS))

    def test_a_table_for_people(self):
        _, lines = run_compare(1)
        self.assertTrue(any(line.startswith("round trip, us") for line in lines))

    def test_an_error_ends_it(self):
        status, _ = run_compare(1, errors="1")
        self.assertEqual(status, 1)

    def test_sizes_have_names(self):
        self.assertEqual(compare.size_name(64), "64 B")
        self.assertEqual(compare.size_name(1 << 16), "64 KiB")
        self.assertEqual(compare.size_name(1 << 26), "64 MiB")


class GlibcTunablesTest(unittest.TestCase):
    ZEN_3 = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\n"

    def test_no_rep_movsb_where_it_is_slow(self):
        self.assertEqual(compare.glibc_tunables(self.ZEN_3, {}), compare.NO_REP_MOVSB)
        for other in (("25", "26"), ("AuthenticAMD", "GenuineIntel")):
            self.assertEqual(compare.glibc_tunables(self.ZEN_3.replace(*other), {}), "")

    def test_the_callers_are_left_as_they_are(self):
        self.assertEqual(compare.glibc_tunables(self.ZEN_3, {"GLIBC_TUNABLES": "a=1"}), "a=1")


class RunnerAt(compare.Runner):
    """One whose CPUs have the given distances, and whose programs print how many ran."""

    def __init__(self, distances, wanted="0-"):
        self.lines = []
        options = argparse.Namespace(distance_ns=compare.distance_range(wanted))
        super().__init__(options, comparison.Comparison(), self.lines.append)
        self.distances = list(distances)
        self.runs = 0

    def distance(self):
        return self.distances.pop(0)

    def run(self, task):
        self.runs += 1
        return {"p50_ns": self.runs}


class DistanceTest(unittest.TestCase):
    TASKS = [compare.Task(program, "latency", 64) for program in (compare.VERBENA, compare.UCX)]

    def run_at(self, distances, wanted="0-"):
        """The runner afterwards, and of its lines the figures and the marks."""
        runner = RunnerAt(distances, wanted)
        runner.run_together(self.TASKS)
        self.assertEqual(runner.distances, [])
        return runner, [(line["p50_ns"], line["alike"], line["attempt"]) for line in runner.lines]

    def test_once_where_it_stays(self):
        runner, lines = self.run_at([100, 124, 110])
        self.assertEqual(lines, [(1, True, 1), (2, True, 1)])
        self.assertEqual(runner.lines[1]["distance_ns"], [124, 110])

    def test_again_where_it_changed(self):
        for changed in ([100, 100, 130], [130, 100, 100], [100, 130, 100]):
            runner, lines = self.run_at(changed + [500, 500, 500])
            self.assertEqual(lines, [(3, True, 2), (4, True, 2)])
            self.assertEqual(runner.figures.spread("verbena: round trip 64 B").median, 3)

    def test_where_it_never_stays_the_one_in_which_it_changed_least(self):
        _, lines = self.run_at([100, 100, 200, 100, 150, 100, 100, 300, 100])
        self.assertEqual(lines, [(3, False, 2), (4, False, 2)])

    @mock.patch("compare.SECONDS_BETWEEN_LOOKS", 0)
    def test_waits_for_the_distance_that_is_wanted(self):
        runner, lines = self.run_at([600, 140, 110, 600, 80, 120, 100, 125], "90-130")
        self.assertEqual(lines, [(2, True, 1), (3, True, 1)])
        self.assertEqual([line["distance_ns"] for line in runner.lines],
                         [[120, 100], [100, 125]])
        _, lines = self.run_at([100, 620, 600, 610], "330-")
        self.assertEqual(lines, [(1, True, 1), (2, True, 1)])

    @mock.patch("compare.SECONDS_BETWEEN_LOOKS", 0)
    @mock.patch("compare.PATIENCE_SECONDS", -1)
    def test_does_not_wait_for_ever(self):
        with self.assertRaisesRegex(compare.Error, "never took 330 to inf ns.*took 100"):
            self.run_at([100], "330-")

    def test_a_distance_is_a_range(self):
        self.assertEqual(compare.distance_range("90-130.5"), (90, 130.5))
        self.assertEqual(compare.distance_range("330-"), (330, float("inf")))
        for wrong in ("", "330", "-", "-330", "far", "5-3", "1-2-3"):
            with self.assertRaises(argparse.ArgumentTypeError):
                compare.distance_range(wrong)

    def test_a_ratio_is_of_rounds_that_are_alike(self):
        figures = comparison.Comparison()
        for ours, most in ((1, 125), (8, 126), (9, 600), (3, 100)):
            figures.add("ours", ours, least=100, most=most)
            figures.add("theirs", 1, least=100, most=100)
        self.assertEqual(figures.ratio("ours", "theirs"), (2, 1, 3))
        self.assertEqual(figures.ratios_of_rounds("ours", "theirs"), [(100, 1), (100, 3)])
        self.assertEqual(figures.spread("ours"), (5.5, 1, 9))
        # Each by itself stayed the same, but not together.
        figures.add("near", 1, least=100, most=101)
        figures.add("far", 1, least=600, most=601)
        self.assertEqual(figures.pairs("near", "far")[1], [])

    def test_of_all_rounds_where_none_is(self):
        figures = comparison.Comparison()
        for ours in (1, 5, 6):
            figures.add("ours", ours, least=1, most=2)
            figures.add("theirs", 1)
        self.assertEqual(figures.ratio("ours", "theirs").median, 5)


if __name__ == "__main__":
    unittest.main()
