"""What the defaults were chosen by; run by //benchmarks:sweep.

Runs rpc_bench with one setting after the other, round after round, and prints the medians
of the rounds, a table for each default: the eager limit, the spin, how far windows grow.
Batch sizes are constants, not settings; builds with other constants are compared by
--variant=NAME=RPC_BENCH, once for each. docs/defaults.md has the tables, the choices and
the reasons.
"""

import argparse
import collections
import json
import subprocess
import sys

import comparison

SECONDS_TO_RUN = 120
KIB = 1 << 10

# Columns of a table: a name, rpc_bench's flags, the figure of its line, and what to
# multiply it by. Columns with the same flags are measured by one run.
Column = collections.namedtuple("Column", "name flags figure unit")
# Rows: a name, and flags.
Row = collections.namedtuple("Row", "name flags")
Table = collections.namedtuple("Table", "name title rows columns")


def latency(name, size=64, pause_us=0, figure="p50_ns", unit=1e-3):
    flags = ("--mode=latency", "--payload_bytes=%d" % size, "--pause_us=%d" % pause_us)
    return Column(name, flags, figure, unit)


def rate(name, in_flight):
    flags = ("--mode=rate", "--payload_bytes=64", "--concurrency=%d" % in_flight)
    return Column(name, flags, "rate_per_s", 1e-6)


def bandwidth(name, size, in_flight):
    flags = ("--mode=bandwidth", "--payload_bytes=%d" % size, "--concurrency=%d" % in_flight)
    return Column(name, flags, "gigabytes_per_s", 1)


EAGER_SIZES = [256, 1 * KIB, 2 * KIB, 4 * KIB, 8 * KIB, 10000]
# A limit that all of these sizes are beyond.
RENDEZVOUS = "--eager_limit_bytes=200"

EAGER = Table(
    "eager", "Eager or by rendezvous: round trips in us, one way in GB/s with 8 in flight",
    [Row("eager", ()), Row("rendezvous", (RENDEZVOUS,))],
    [latency("%d B" % size, size) for size in EAGER_SIZES] +
    [bandwidth("%d B, GB/s" % size, size, 8) for size in (4 * KIB, 10000)])

PAUSES = (("100 us", 100), ("300 us", 300), ("3 ms", 3000))

SPIN = Table(
    "spin", "Spin: round trips of 64 B in us, one after the other and with pauses; CPU of both "
    "sides in us a call",
    [Row("default", ())] +
    [Row("%d us" % spin, ("--spin_us=%d" % spin,)) for spin in (0, 10, 50, 100, 400, 1000)],
    [latency("no pause")] +
    [column for name, pause in PAUSES for column in (
        latency("pause " + name, pause_us=pause),
        latency("p99", pause_us=pause, figure="p99_ns"),
        latency("client CPU", pause_us=pause, figure="client_cpu_ns_per_call"),
        latency("server CPU", pause_us=pause, figure="server_cpu_ns_per_call"))])

# Receive buffers come in slabs of 64, 10 KiB each, and windows grow into half of them: to
# 512 frames at most, and with one slab to 24.
SLAB_BYTES = 64 * 10 * KIB

WINDOWS = Table(
    "windows", "How far windows grow: calls of 64 B in millions a second",
    [Row("%d frames" % frames, ("--receive_budget_bytes=%d" % (slabs * SLAB_BYTES),))
     for frames, slabs in ((24, 1), (67, 2), (131, 4))] + [Row("512 frames (default)", ())],
    [rate("%d in flight" % depth, depth) for depth in (8, 64, 256)] +
    [bandwidth("4 KiB, 64, GB/s", 4 * KIB, 64)])

VARIANT_COLUMNS = (
    [latency("round trip, us")] +
    [rate("%d in flight" % depth, depth) for depth in (8, 64, 256)] +
    [bandwidth("4 KiB, 64, GB/s", 4 * KIB, 64)])

TABLES = [EAGER, SPIN, WINDOWS]


BUILDS = "build"


class Error(Exception):
    """What went wrong, for people."""


class Sweep:
    """Runs the tables' cells round by round."""

    def __init__(self, options):
        self.options = options
        self.figures = comparison.Comparison()

    def run(self, binary, flags):
        command = [binary, "--json", "--seconds=%g" % self.options.seconds,
                   "--warmup_seconds=%g" % self.options.warmup_seconds,
                   "--device=" + self.options.device] + list(flags)
        if self.options.cpus:
            command.append("--cpus=" + self.options.cpus)
        result = subprocess.run(command, stdout=subprocess.PIPE, text=True,
                                timeout=SECONDS_TO_RUN, check=False)
        if result.returncode != 0:
            raise Error("%s failed with status %d" % (" ".join(command), result.returncode))
        return json.loads(result.stdout)

    def run_round(self, table, binaries):
        """All rows of a column come right after one another."""
        for flags in dict.fromkeys(column.flags for column in table.columns):
            for row in table.rows:
                line = self.run(binaries[row.name], row.flags + flags)
                for number, column in enumerate(table.columns):
                    if column.flags == flags:
                        self.figures.add((table.name, row.name, number),
                                         line[column.figure] * column.unit)

    def run_table(self, table, binaries):
        for number in range(1, self.options.rounds + 1):
            print("sweep: %s, round %d of %d" % (table.name, number, self.options.rounds),
                  file=sys.stderr)
            self.run_round(table, binaries)
        self.print_table(table)

    def print_table(self, table):
        """As it stands in docs/defaults.md."""
        print("%s:\n" % table.title)
        lines = [[table.name] + [column.name for column in table.columns]]
        lines.append(["---"] * len(lines[0]))
        for row in table.rows:
            lines.append([row.name] + [self.cell(table, row.name, number)
                                       for number in range(len(table.columns))])
        for line in lines:
            print("| %s |" % " | ".join(line))
        print(flush=True)


    def cell(self, table, name, number):
        """A median; of another build also that of the rounds' ratios to this one."""
        text = comparison.number(self.figures.spread((table.name, name, number)).median)
        first = table.rows[0].name
        if table.name != BUILDS or name == first:
            return text
        ratio = self.figures.ratio((table.name, name, number), (table.name, first, number))
        return "%s (%.2f)" % (text, ratio.median)


def parse(arguments):
    names = [table.name for table in TABLES]
    parser = argparse.ArgumentParser(prog="sweep", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rpc_bench", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--tables", default=",".join(names),
                        help="a list of %s; empty: variants only" % ", ".join(names))
    parser.add_argument("--variant", action="append", default=[], metavar="NAME=RPC_BENCH",
                        help="another build of rpc_bench; compared with this one")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.4, help="for each measurement")
    parser.add_argument("--warmup_seconds", type=float, default=0.2)
    parser.add_argument("--device", default="soft", help="of both sides")
    parser.add_argument("--cpus", default="", help="CLIENT,SERVER; default: the first two")
    options = parser.parse_args(arguments)
    options.tables = [name for name in options.tables.split(",") if name]
    if options.rounds < 1 or set(options.tables) - set(names):
        parser.error("--rounds must be at least 1, --tables of " + ", ".join(names))
    if any("=" not in variant for variant in options.variant):
        parser.error("--variant takes NAME=RPC_BENCH")
    return options


def main(arguments):
    options = parse(arguments)
    sweep = Sweep(options)
    try:
        for table in TABLES:
            if table.name in options.tables:
                sweep.run_table(table, {row.name: options.rpc_bench for row in table.rows})
        if options.variant:
            binaries = dict([("as it is", options.rpc_bench)] +
                            [variant.split("=", 1) for variant in options.variant])
            sweep.run_table(Table(BUILDS, "Builds: calls of 64 B in millions a second, and the "
                                  "ratio to this one", [Row(name, ()) for name in binaries],
                                  VARIANT_COLUMNS), binaries)
    except (Error, subprocess.TimeoutExpired) as error:
        print("sweep: %s" % error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
