"""Goal: each ratio is ours divided by theirs, of the figures that its name says.
Method: programs that print made-up figures, each a round number of its own.
"""

import contextlib
import io
import json
import os
import stat
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

# pylint: disable=wrong-import-position
import compare

# Prints what it is asked for: latency NS, rate RATE, bandwidth GB times the size.
FAKE = """\
#!/usr/bin/env python3
import json, os, sys
name = os.path.basename(sys.argv[0])
flags = dict(word[2:].partition("=")[::2] for word in sys.argv[1:])
figures = {"rpc_bench": 100, "ucx_bench": 200, "grpc_bench": 50, "floor_bench": 400}
for size in map(int, flags["payload_bytes"].split(",")):
    value = figures[name] * size * int(flags["concurrency"])
    value *= 3 if "attachment" in flags else 7 if "raw" in flags else 1
    value *= 11 if "working_set_bytes" in flags else 1
    print(json.dumps({"payload_bytes": size, "errors": ERRORS, "p50_ns": value,
                      "rate_per_s": value, "gigabytes_per_s": value}))
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
            "roundtrip_8192_vs_ucx": 0.5, "rate_64_vs_ucx": 0.5, "rate_64_vs_grpc": 2,
            "bandwidth_1MiB_vs_ucx": 1.5, "bandwidth_16MiB_vs_memcpy": 0.75,
            "bandwidth_16MiB_vs_grpc_raw": round(300 / 350, 4)}})
        rounds = [line["round"] for line in lines[:-1]]
        self.assertEqual(rounds, sorted(rounds))
        first = {line["program"] for line in lines[:-1] if line["round"] == 1}
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


if __name__ == "__main__":
    unittest.main()
