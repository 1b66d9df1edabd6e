"""The part of tools/vm_benchmark that runs inside the VM; see its --help.

All figures of a round come right after one another. Reading goes the same way on both
sides: rpc_bench's server READs the requests, so perftest's client, which is the one
that READs, runs where that server does.
"""

import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys

import comparison
import perftest

PAYLOAD = 64
LARGE = 1 << 20
# READs (perftest), calls (Verbena) under way. rxe allows 16 READs or more on a QP.
DEPTH = 16
# Some time for both sides alike: a second for the round trip, five for bandwidth.
# Requests that are READ over one QP end DEPTH at a time, as answers queue up behind the
# READs that follow; a window must hold many such lots, or it measures where it was cut.
LATENCY_ROUND_TRIPS = 20000
LATENCY_SECONDS = 1.0
READS = 650
BANDWIDTH_SECONDS = 5.0
# Of round trips by ring, in each round: what neighbours of the host leave of its caches
# makes some runs of either program half as long again or twice as long.
PAIRS = 3
SECONDS_TO_RUN = 120

# Ends of the cable, and their rps_cpus: which processors handle the packets that come.
VETHS = ("veth0", "veth1")
FIRST_PROCESSOR = "1"  # as tools/vm makes it
SENDERS = "0"

SEND_LAT = "2 x ib_send_lat, 64 B, by ring"
READ_LAT = "ib_read_lat, 64 B"
READ_BW = "ib_read_bw, 1 MiB"
ROUND_TRIP = "round trip, 64 B, by ring"
SEND_LAT_INTERRUPTED = "2 x ib_send_lat, 64 B, interrupts"
ROUND_TRIP_INTERRUPTED = "round trip, 64 B, interrupts"
ATTACHMENT_BW = "1 MiB requests, attachment"
BYTES_BW = "1 MiB requests, bytes field"

ROWS = [
    comparison.Row(ROUND_TRIP, "us", SEND_LAT),
    comparison.Row(ROUND_TRIP_INTERRUPTED, "us", SEND_LAT_INTERRUPTED),
    comparison.Row(ATTACHMENT_BW, "GB/s", READ_BW),
    comparison.Row(BYTES_BW, "GB/s", READ_BW),
    comparison.Row(READ_LAT, "us", None),
]


def ends():
    """rxe0 and rxe1, as tools/vm made them."""
    return (perftest.End("rxe0", os.environ["VERBENA_VM_ADDRESS"], 0),
            perftest.End("rxe1", os.environ["VERBENA_VM_PEER_ADDRESS"], 1))


def ethtool(*words):
    return subprocess.run(["ethtool"] + list(words), stdout=subprocess.PIPE, text=True,
                          check=True).stdout


def make_cable(processors, segmenting, gro):
    for veth in VETHS:
        ethtool("-K", veth, "tso", segmenting, "gro", gro)
        path = pathlib.Path("/sys/class/net", veth, "queues/rx-0/rps_cpus")
        path.write_text(processors, encoding="ascii")


def packets_by_ring():
    """How many came to either end so; what a ring's poll counts, it calls xdp."""
    return sum(int(line.rpartition(":")[2]) for veth in VETHS
               for line in ethtool("-S", veth).splitlines() if "xdp_packets" in line)


@contextlib.contextmanager
def cable_by_ring():
    """Meanwhile packets come through a ring at each end, which the sender's processor
    empties unless the other one is at it (NAPI, which a veth has for GRO and from a peer
    that leaves TCP no segmenting). They stay in order as before, but no processor
    interrupts the other for them, which makes round trips twice as long, of either
    program, by luck. A ring holds 256 packets: of READs it would lose some."""
    make_cable(SENDERS, "off", "on")
    before = packets_by_ring()
    try:
        yield
        if packets_by_ring() == before:
            raise perftest.Error("this kernel's veth has no ring: nothing came through it")
    finally:
        make_cable(FIRST_PROCESSOR, "on", "off")


def latency(program, near, far):
    # Not inline: perftest does that on no device that it does not know, such as rxe.
    lines = perftest.run([program, "-s", str(PAYLOAD), "-n", str(LATENCY_ROUND_TRIPS)],
                         server=far, client=near)
    return perftest.typical_us(lines)


def read_bandwidth(near, far):
    lines = perftest.run(
        ["ib_read_bw", "-s", str(LARGE), "-n", str(READS), "-t", str(DEPTH), "-o", str(DEPTH)],
        server=near, client=far)
    return perftest.gigabytes_per_s(lines)


def rpc(binary, near, far, seconds, words):
    """One line of rpc_bench: client near, server far."""
    command = [
        binary, "--json", "--device=" + near.device, "--server_device=" + far.device,
        "--server_host=" + far.address, "--cpus=%d,%d" % (near.cpu, far.cpu),
        "--seconds=%g" % seconds] + words
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=SECONDS_TO_RUN,
                            check=False)
    if result.returncode != 0:
        raise perftest.Error("%s failed with status %d"
                             % (" ".join(command), result.returncode))
    return json.loads(result.stdout)


def run_round(binary):
    """Yields names and values, those of round trips by ring PAIRS times."""
    near, far = ends()

    def round_trips():
        theirs = 2 * latency("ib_send_lat", near, far)
        line = rpc(binary, near, far, LATENCY_SECONDS,
                   ["--mode=latency", "--payload_bytes=%d" % PAYLOAD])
        return theirs, line["p50_ns"] / 1000

    with cable_by_ring():
        for _ in range(PAIRS):
            yield from zip((SEND_LAT, ROUND_TRIP), round_trips(), strict=True)
    yield from zip((SEND_LAT_INTERRUPTED, ROUND_TRIP_INTERRUPTED), round_trips(), strict=True)
    yield READ_LAT, latency("ib_read_lat", near, far)
    large = ["--mode=bandwidth", "--payload_bytes=%d" % LARGE, "--concurrency=%d" % DEPTH]

    def bandwidth(words):
        return rpc(binary, near, far, BANDWIDTH_SECONDS, large + words)["gigabytes_per_s"]

    yield ATTACHMENT_BW, bandwidth(["--attachment"])
    yield READ_BW, read_bandwidth(near, far)
    yield BYTES_BW, bandwidth([])


def summary(figures):
    return {"summary": {
        "roundtrip_64_vs_ib_send_lat": round(figures.ratio(ROUND_TRIP, SEND_LAT).median, 3),
        "bandwidth_1MiB_vs_ib_read_bw": round(figures.ratio(ATTACHMENT_BW, READ_BW).median, 3),
    }}


def main(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("--rpc_bench", required=True)
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    figures = comparison.Comparison()
    lines = []
    for number in range(1, options.rounds + 1):
        print("vm_benchmark: round %d of %d" % (number, options.rounds), file=sys.stderr)
        try:
            for name, value in run_round(options.rpc_bench):
                figures.add(name, value)
                unit = "GB/s" if name in (ATTACHMENT_BW, BYTES_BW, READ_BW) else "us"
                lines.append({"round": number, "figure": name, "unit": unit, "value": value})
        except (perftest.Error, subprocess.SubprocessError, OSError) as error:
            print("vm_benchmark: %s" % error, file=sys.stderr)
            return 1
    if not options.json:
        print("\n".join(comparison.table(figures, ROWS)), end="\n\n")
    for line in lines + [summary(figures)]:
        print(json.dumps(line))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
