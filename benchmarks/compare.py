"""Verbena beside gRPC, UCX and the bare machine; run by //benchmarks:compare.

In each round every program runs once for every figure, right after one another, its
two processes bound to the same two CPUs. A ratio is taken within a round, and the
median of the rounds' ratios is what counts (comparison.py).

The CPUs of a virtual machine may change their distance within seconds, and all figures
change with it. So the floor's echo of 64 B is timed before and after every program
("distance_ns"). Where it changed by more than a quarter from the first to the last
program of a figure, all of them run again, up to three times; then those count in
which it changed least, and their lines say "alike": false. Ratios are of the rounds in
which the programs were alike, of all where there is no such round. Medians of rounds
near and far are of neither: with --distance_ns=330- only what ran while the echo took
330 ns or more counts, with --distance_ns=0-330 what ran while it took less
(docs/performance.md, "How to read the figures"). That waits, for a quarter of an hour at
most each time, and repeats each program until it is so.

On AMD's Zen 3 and 4 every program is run without glibc's `rep movsb`, for there what it
takes depends on where malloc put two strings (docs/large_messages.md, "Where addresses
matter"); the lines of such a run say so ("glibc_tunables"), and a GLIBC_TUNABLES of the
caller's is left as it is.

Prints JSON lines, one for each measurement, a table, and with --picture draws latency
and bandwidth against size. With --json only JSON lines, the last one
{"summary": {...}}: medians of ours divided by theirs. The one before says of how many
rounds, in which the programs were alike. The two before that have others instead of
ours: {"protobuf_alone": {...}} the floor's echo with protobuf, without an RPC, of which an
RPC can hardly do better where messages are small; of 8 KiB it can where CPUs are far from
each other, for that echo parses right where the peer wrote. {"attachment": {...}} our
round trip with an attachment, bytes that nobody parses, as UCX's are. {"by_distance":
{...}} has what each median is of: a round's distance, in ns, and its ratio.
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import time

import comparison

VERBENA, ATTACHMENT = "verbena", "verbena attachment"
UCX, GRPC, GRPC_RAW, FLOOR = "ucx", "grpc", "grpc raw", "floor"
# UCX's rate with an answer to each message; the floor's echo with protobuf in it.
UCX_ECHO, FLOOR_PROTOBUF = "ucx echo", "floor protobuf"

LATENCY_SIZES = [64, 1 << 10, 8 << 10]
RATE_DEPTHS = [1, 8, 64]
BANDWIDTH_SIZES = [64 << 10, 1 << 20, 16 << 20, 64 << 20]
# Calls in flight; two keep both sides busy, where one call is long.
BANDWIDTH_DEPTH = {64 << 10: 8, 1 << 20: 4, 16 << 20: 2, 64 << 20: 2}
COLD_BYTES = 1 << 30
LARGE_BYTES = 16 << 20
LARGE_WARMUP_SECONDS = 1.5
SECONDS_TO_RUN = 600

ATTEMPTS = 3
DISTANCE_BYTES = 64
DISTANCE_SECONDS = 0.03
PATIENCE_SECONDS = 900
SECONDS_BETWEEN_LOOKS = 0.2

# Of each program the words that select what it measures, by mode.
WORDS = {
    VERBENA: {"latency": [], "rate": [], "bandwidth": []},
    ATTACHMENT: {"latency": ["--attachment"], "bandwidth": ["--attachment"]},
    UCX: {"latency": [], "rate": ["--one_way"], "bandwidth": []},
    GRPC: {"latency": [], "rate": [], "bandwidth": []},
    GRPC_RAW: {"bandwidth": ["--raw"]},
    FLOOR: {"latency": [], "rate": [], "bandwidth": []},
    UCX_ECHO: {"rate": []},
    FLOOR_PROTOBUF: {"latency": ["--protobuf"], "rate": ["--protobuf"]},
}
# What counts of the line that a program prints.
FIGURE = {"latency": "p50_ns", "rate": "rate_per_s", "bandwidth": "gigabytes_per_s"}
BINARY = {VERBENA: "rpc_bench", ATTACHMENT: "rpc_bench", UCX: "ucx_bench", GRPC: "grpc_bench",
          GRPC_RAW: "grpc_bench", FLOOR: "floor_bench", UCX_ECHO: "ucx_bench",
          FLOOR_PROTOBUF: "floor_bench"}


NO_REP_MOVSB = "glibc.cpu.x86_rep_movsb_threshold=1073741824"


class Error(Exception):
    """What went wrong, for people."""


def glibc_tunables(cpuinfo, environ):
    """The GLIBC_TUNABLES that programs run with, "" for none. `cpuinfo`: /proc/cpuinfo."""
    zen_3_or_4 = (re.search(r"^vendor_id\s*: AuthenticAMD$", cpuinfo, re.MULTILINE) and
                  re.search(r"^cpu family\s*: 25$", cpuinfo, re.MULTILINE))
    return environ.get("GLIBC_TUNABLES", NO_REP_MOVSB if zen_3_or_4 else "")


def size_name(size):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return "%d %s" % (size // unit, name)
    return "%d B" % size


def figure(program, mode, size, depth=1, cold=False):
    """The name under which a value is noted."""
    words = {"latency": "round trip %s" % size_name(size),
             "rate": "%s, %d in flight" % (size_name(size), depth),
             "bandwidth": "%s%s" % (size_name(size), ", cold" if cold else "")}
    return "%s: %s" % (program, words[mode])


# What a program is to measure.
Task = collections.namedtuple("Task", "program mode size depth cold", defaults=(1, False))
# What the programs of a figure printed, how near and far the CPUs were meanwhile, and
# the number of times that it took.
Attempt = collections.namedtuple("Attempt", "lines least most number")


def tasks_of_a_round():
    """Lists of tasks whose figures are compared with each other."""
    for size in LATENCY_SIZES:
        yield [Task(program, "latency", size)
               for program in (VERBENA, ATTACHMENT, UCX, FLOOR, FLOOR_PROTOBUF, GRPC)]
    for depth in RATE_DEPTHS:
        yield [Task(program, "rate", 64, depth)
               for program in (VERBENA, UCX, UCX_ECHO, FLOOR, FLOOR_PROTOBUF, GRPC)]
    for size in BANDWIDTH_SIZES:
        for cold in (False, True):
            yield [Task(program, "bandwidth", size, BANDWIDTH_DEPTH[size], cold)
                   for program in (ATTACHMENT, VERBENA, UCX, FLOOR, GRPC_RAW, GRPC)]


class Runner:
    """Runs the programs, and notes what they print."""

    def __init__(self, options, figures, emit):
        self.options = options
        self.figures = figures
        self.emit = emit
        with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
            self.glibc_tunables = glibc_tunables(cpuinfo.read(), os.environ)

    def execute(self, binary, words, seconds, warmup_seconds):
        """The line that a program printed."""
        command = [self.options.binaries[binary], "--seconds=%g" % seconds,
                   "--warmup_seconds=%g" % warmup_seconds] + words
        if binary == "rpc_bench":
            command.append("--json")
        if self.options.cpus:
            command.append("--cpus=" + self.options.cpus)
        environ = dict(os.environ)
        if self.glibc_tunables:
            environ["GLIBC_TUNABLES"] = self.glibc_tunables
        result = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environ,
                                timeout=SECONDS_TO_RUN, check=False)
        if result.returncode != 0:
            raise Error("%s failed with status %d" % (" ".join(command), result.returncode))
        lines = result.stdout.splitlines()
        if len(lines) != 1:
            raise Error("%s printed %d lines" % (" ".join(command), len(lines)))
        line = json.loads(lines[0])
        if line["errors"]:
            raise Error("%s had errors: %s" % (" ".join(command), line.get("first_error")))
        return line

    def distance(self):
        """How far the CPUs are from each other at the moment, in ns."""
        words = ["--mode=latency", "--payload_bytes=%d" % DISTANCE_BYTES, "--concurrency=1"]
        return self.execute("floor_bench", words, DISTANCE_SECONDS, 0)["p50_ns"]

    def is_wanted(self, distance_ns):
        least, most = self.options.distance_ns
        return least <= distance_ns <= most

    def wanted_distance(self):
        """Waits until the CPUs are as far from each other as is wanted; how far that is."""
        give_up = time.monotonic() + PATIENCE_SECONDS
        while not self.is_wanted(distance := self.distance()):
            if time.monotonic() > give_up:
                raise Error("for %d s the floor's echo never took %g to %g ns, as --distance_ns "
                            "has it; the last one took %g" %
                            ((PATIENCE_SECONDS,) + self.options.distance_ns + (distance,)))
            time.sleep(SECONDS_BETWEEN_LOOKS)
        return distance

    def run(self, task):
        # Longer where memory has to be made present first.
        large = task.mode == "bandwidth" and task.size >= LARGE_BYTES
        warmup = max(self.options.warmup_seconds, LARGE_WARMUP_SECONDS if large else 0)
        words = ["--mode=" + task.mode, "--payload_bytes=%d" % task.size,
                 "--concurrency=%d" % task.depth] + WORDS[task.program][task.mode]
        if task.cold:
            words.append("--working_set_bytes=%d" % COLD_BYTES)
        return self.execute(BINARY[task.program], words, self.options.seconds, warmup)

    def attempt(self, tasks, number):
        lines = []
        distances = [self.wanted_distance()]
        for task in tasks:
            line = self.run(task)
            while not self.is_wanted(after := self.distance()):
                distances.append(self.wanted_distance())
                line = self.run(task)
            distances.append(after)
            lines.append(dict({"program": task.program, "cold": task.cold,
                               "distance_ns": distances[-2:]}, **line))
        return Attempt(lines, min(distances), max(distances), number)

    def run_together(self, tasks):
        """Runs the tasks while the CPUs' distance stays the same, and notes the figures."""
        best = None
        for number in range(1, ATTEMPTS + 1):
            attempt = self.attempt(tasks, number)
            if best is None or attempt.most / attempt.least < best.most / best.least:
                best = attempt
            if comparison.are_alike([best]):
                break
        alike = comparison.are_alike([best])
        for task, line in zip(tasks, best.lines):
            self.figures.add(figure(*task), line[FIGURE[task.mode]], best.least, best.most)
            line = dict(line, alike=alike, attempt=best.number)
            if self.glibc_tunables:
                line["glibc_tunables"] = self.glibc_tunables
            self.emit(line)

    def run_round(self):
        for tasks in tasks_of_a_round():
            self.run_together(tasks)


def best_of(figures, names):
    """The name with the highest median."""
    return max(names, key=lambda name: figures.spread(name).median)


def ratios(figures):
    """Of each ratio of the summary, the names of ours and of theirs."""
    small, medium, large = 64, 8 << 10, 16 << 20
    rate = figure(VERBENA, "rate", small, 64)
    grpc_rate = best_of(figures, [figure(GRPC, "rate", small, depth) for depth in RATE_DEPTHS])
    round_trip = figure(VERBENA, "latency", small)
    return {
        "roundtrip_64_vs_ucx": (round_trip, figure(UCX, "latency", small)),
        "roundtrip_64_vs_grpc": (round_trip, figure(GRPC, "latency", small)),
        "roundtrip_8192_vs_ucx": (figure(VERBENA, "latency", medium),
                                  figure(UCX, "latency", medium)),
        "rate_64_vs_ucx": (rate, figure(UCX, "rate", small, 64)),
        "rate_64_vs_grpc": (rate, grpc_rate),
        "bandwidth_1MiB_vs_ucx": (figure(ATTACHMENT, "bandwidth", 1 << 20),
                                  figure(UCX, "bandwidth", 1 << 20)),
        "bandwidth_16MiB_vs_memcpy": (figure(ATTACHMENT, "bandwidth", large, cold=True),
                                      figure(FLOOR, "bandwidth", large, cold=True)),
        "bandwidth_16MiB_vs_grpc_raw": (figure(ATTACHMENT, "bandwidth", large),
                                        figure(GRPC_RAW, "bandwidth", large)),
    }


def instead_of_ours(program):
    """As ratios, of another program's figures, those that it has."""
    names = {"roundtrip_64_vs_ucx": ("latency", 64), "roundtrip_8192_vs_ucx": ("latency", 8 << 10),
             "rate_64_vs_ucx": ("rate", 64, 64)}
    return {name: (figure(program, *words), figure(UCX, *words))
            for name, words in names.items() if words[0] in WORDS[program]}


def medians(figures, pairs):
    return {name: round(figures.ratio(*pair).median, 4) for name, pair in pairs.items()}


def summaries(figures):
    """The last five lines."""
    pairs = ratios(figures)
    yield {"by_distance": {name: [[distance, round(ratio, 4)] for distance, ratio in
                                  figures.ratios_of_rounds(*pair)]
                           for name, pair in pairs.items()}}
    yield {"attachment": medians(figures, instead_of_ours(ATTACHMENT))}
    yield {"protobuf_alone": medians(figures, instead_of_ours(FLOOR_PROTOBUF))}
    yield {"rounds_alike": {name: len(figures.pairs(*pair)[1]) for name, pair in pairs.items()}}
    yield {"summary": medians(figures, pairs)}


# --- For people --------------------------------------------------------------

COLUMNS = (VERBENA, ATTACHMENT, UCX, UCX_ECHO, GRPC, GRPC_RAW, FLOOR, FLOOR_PROTOBUF)
CELL = "%-20s" + " %18s" * len(COLUMNS)


def table(figures):
    """Medians of the rounds, a program a column."""
    rows = [("round trip, us", "latency", [(size, 1, False) for size in LATENCY_SIZES], 1e-3),
            ("million a second", "rate", [(64, depth, False) for depth in RATE_DEPTHS], 1e-6),
            ("GB/s", "bandwidth", [(size, 1, cold) for size in BANDWIDTH_SIZES
                                   for cold in (False, True)], 1)]
    lines = []
    for title, mode, cases, unit in rows:
        lines.append(CELL % ((title,) + COLUMNS))
        for size, depth, cold in cases:
            cells = []
            for program in COLUMNS:
                name = figure(program, mode, size, depth, cold)
                cells.append(comparison.number(figures.spread(name).median * unit)
                             if figures.has(name) else "")
            label = figure("", mode, size, depth, cold)[2:]
            lines.append((CELL % ((label,) + tuple(cells))).rstrip())
        lines.append("")
    return lines


def draw(figures, path):
    """Latency and bandwidth against size."""
    # Only whoever wants a picture needs it.
    import matplotlib  # pylint: disable=import-outside-toplevel
    matplotlib.use("Agg")
    from matplotlib import pyplot  # pylint: disable=import-outside-toplevel
    plot, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.6))
    for axes, mode, sizes, unit, label in (
            (left, "latency", LATENCY_SIZES, 1e-3, "round trip, us"),
            (right, "bandwidth", BANDWIDTH_SIZES, 1, "GB/s")):
        for number, program in enumerate(COLUMNS):
            points = [(size, figures.spread(figure(program, mode, size)).median * unit)
                      for size in sizes if figures.has(figure(program, mode, size))]
            if points:
                axes.plot(*zip(*points), marker="o", label=program, color="C%d" % number)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(sizes, [size_name(size) for size in sizes])
        axes.set_ylabel(label)
        axes.yaxis.set_major_formatter("{x:g}")
        axes.grid(True, which="both", alpha=0.3)
    shown = {name: handle for axes in (left, right)
             for handle, name in zip(*axes.get_legend_handles_labels())}
    plot.legend(shown.values(), shown.keys(), loc="lower center", ncol=len(shown), frameon=False)
    plot.tight_layout(rect=(0, 0.06, 1, 1))
    plot.savefig(path)


def distance_range(text):
    """Of "LEAST-MOST", the latter empty for any."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)?", text)
    bounds = (float(match[1]), float(match[2] or "inf")) if match else (1, 0)
    if bounds[0] > bounds[1]:
        raise argparse.ArgumentTypeError(
            '"%s" is no range in ns, such as 0-330, or 330- for 330 and more' % text)
    return bounds


def parse(arguments):
    parser = argparse.ArgumentParser(prog="compare", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for binary in sorted(set(BINARY.values())):
        parser.add_argument("--" + binary, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="for each measurement")
    parser.add_argument("--warmup_seconds", type=float, default=0.2)
    parser.add_argument("--cpus", default="", help="CLIENT,SERVER; default: the first two")
    parser.add_argument("--distance_ns", type=distance_range, default="0-",
                        metavar="LEAST-[MOST]", help="see above; default: any")
    parser.add_argument("--json", action="store_true", help="JSON lines only, the summary last")
    parser.add_argument("--picture", default="", help="a file to draw to, such as compare.svg")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    options.binaries = {name: getattr(options, name) for name in BINARY.values()}
    return options


def main(arguments):
    options = parse(arguments)
    figures = comparison.Comparison()
    runner = Runner(options, figures, None)
    try:
        for number in range(1, options.rounds + 1):
            print("compare: round %d of %d" % (number, options.rounds), file=sys.stderr)
            runner.emit = lambda line, number=number: print(
                json.dumps(dict({"round": number}, **line)), flush=True)
            runner.run_round()
    except (Error, subprocess.TimeoutExpired) as error:
        print("compare: %s" % error, file=sys.stderr)
        return 1
    if options.picture:
        draw(figures, options.picture)
    if not options.json:
        print("\n" + "\n".join(table(figures)))
    for line in summaries(figures):
        print(json.dumps(line))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
