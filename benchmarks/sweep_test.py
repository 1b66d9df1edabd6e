"""Goal: each cell is the median of its own setting's runs.
Method: a program in rpc_bench's place that prints a figure made from its flags.
"""

import contextlib
import io
import os
import stat
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

# pylint: disable=wrong-import-position
import sweep

FAKE = """\
#!/usr/bin/env python3
import json, os, sys
flags = dict(word[2:].partition("=")[::2] for word in sys.argv[1:])
spin = int(flags.get("spin_us", 7))
value = 1000 * (spin + int(flags.get("pause_us", 0)))
if os.path.basename(sys.argv[0]) == "other":
    value += 500
print(json.dumps({"p50_ns": value, "p99_ns": 2 * value, "rate_per_s": value,
                  "gigabytes_per_s": value, "client_cpu_ns_per_call": 3 * value,
                  "server_cpu_ns_per_call": 4 * value}))
sys.exit(STATUS)
"""


def run_sweep(words, status="0"):
    """The status, and what is printed, cell by cell."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("rpc_bench", "other"):
            path = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(FAKE.replace("STATUS", status))
            os.chmod(path, stat.S_IRWXU)
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            result = sweep.main(["--rpc_bench=" + os.path.join(folder, "rpc_bench")] +
                                [word.replace("FOLDER", folder) for word in words])
        rows = [[cell.strip() for cell in line.strip("| ").split("|")]
                for line in out.getvalue().splitlines() if line.startswith("|")]
        return result, {row[0]: row[1:] for row in rows}


class SweepTest(unittest.TestCase):
    def test_a_row_for_each_setting_and_a_column_for_each_figure(self):
        status, rows = run_sweep(["--tables=spin", "--rounds=2"])
        self.assertEqual(status, 0)
        self.assertEqual(rows["spin"][:5],
                         ["no pause", "pause 100 us", "p99", "client CPU", "server CPU"])
        self.assertEqual(rows["default"][:5], ["7", "107", "214", "321", "428"])
        self.assertEqual(rows["50 us"][:2], ["50", "150"])

    def test_variants_are_other_programs(self):
        status, rows = run_sweep(["--tables=", "--rounds=1", "--variant=small=FOLDER/other"])
        self.assertEqual(status, 0)
        self.assertEqual(rows["as it is"][0], "7")
        self.assertEqual(rows["small"][0], "7.5 (1.07)")

    def test_a_failure_ends_it(self):
        status, _ = run_sweep(["--tables=eager", "--rounds=1"], status="1")
        self.assertEqual(status, 1)


if __name__ == "__main__":
    unittest.main()
