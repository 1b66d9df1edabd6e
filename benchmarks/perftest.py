"""Runs the programs of the package perftest, and reads what they print.

    lines = perftest.run(["ib_send_lat", "-s", "64"], server=END1, client=END0)
    us = perftest.typical_us(lines)

A pair of processes, each pinned to a CPU of its own, sets its connection up over TCP
and then measures. Only the client's output is read.
"""

import collections
import pathlib
import subprocess
import time

# One of the two sides: an RDMA device, its IPv4 address, the CPU to run on.
End = collections.namedtuple("End", "device address cpu")

PORT = 18515
SECONDS_TO_RUN = 120
SECONDS_TO_LISTEN = 60

INFINIBAND = pathlib.Path("/sys/class/infiniband")


class Error(Exception):
    """A program failed, or printed something else than it should."""


def gid_of(address):
    """The GID of an IPv4 address as sysfs writes it."""
    a, b, c, d = (int(part) for part in address.split("."))
    return "0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x" % (a, b, c, d)


def gid_index(end, root=INFINIBAND):
    """The index of the RoCE v2 GID of the end's address."""
    port = root / end.device / "ports" / "1"
    for file in (port / "gids").iterdir():
        try:
            kind = (port / "gid_attrs" / "types" / file.name).read_text(encoding="ascii").strip()
        except OSError:  # an entry that is empty
            continue
        if kind == "RoCE v2" and file.read_text(encoding="ascii").strip() == gid_of(end.address):
            return int(file.name)
    raise Error("%s has no RoCE v2 GID of %s" % (end.device, end.address))


def listens(table, port):
    """Whether a port is listened on, by the text of /proc/net/tcp or tcp6."""
    for line in table.splitlines()[1:]:
        words = line.split()
        if words[3] == "0A" and words[1].endswith(":%04X" % port):
            return True
    return False


def await_listener(server):
    """Waits until the server listens. Connecting to find out would be the client that it
    waits for, and perftest has no other sign."""
    deadline = time.monotonic() + SECONDS_TO_LISTEN
    tables = [pathlib.Path("/proc/net/tcp"), pathlib.Path("/proc/net/tcp6")]
    while not any(listens(table.read_text(encoding="ascii"), PORT) for table in tables):
        if server.poll() is not None or time.monotonic() > deadline:
            raise Error("the server of %s does not listen" % server.args)
        time.sleep(0.02)


def run(words, server, client):
    """Runs a program on two ends; returns the lines that the client printed."""
    def command(end, rest):
        return ["taskset", "-c", str(end.cpu)] + words + [
            "-F", "-d", end.device, "-x", str(gid_index(end)), "-p", str(PORT)] + rest

    with subprocess.Popen(command(server, []), stdout=subprocess.DEVNULL) as serving:
        try:
            await_listener(serving)
            result = subprocess.run(
                command(client, [server.address]), stdout=subprocess.PIPE, text=True,
                timeout=SECONDS_TO_RUN, check=False)
            if result.returncode != 0:
                raise Error("%s failed with status %d:\n%s"
                            % (words[0], result.returncode, result.stdout))
            serving.wait(SECONDS_TO_LISTEN)
        except subprocess.TimeoutExpired as error:
            raise Error("%s did not end within %g s" % (words[0], error.timeout)) from None
        finally:
            serving.kill()
    return result.stdout.splitlines()


# ---- What they print: a line of headings, each ending in its unit, then values. ----


def column(lines, heading):
    """The value under a heading, such as "t_typical[usec]"."""
    for names, values in zip(lines, lines[1:]):
        if not names.lstrip().startswith("#bytes"):
            continue
        # Headings of two words, "99% percentile[usec]", come after those of one.
        names = names.replace("BW ", "BW_").split()
        if heading in names:
            try:
                return float(values.split()[names.index(heading)])
            except (IndexError, ValueError):
                break
    raise Error("no %s in:\n%s" % (heading, "\n".join(lines)))


def typical_us(lines):
    """The median latency: of ib_send_lat half a round trip, of ib_read_lat a whole one."""
    return column(lines, "t_typical[usec]")


def gigabytes_per_s(lines):
    """The average bandwidth in 10^9 bytes a second. perftest's MB are 2^20 bytes."""
    return column(lines, "BW_average[MB/sec]") * (1 << 20) / 1e9
