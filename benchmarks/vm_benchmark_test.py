"""Goal: the figures are the ones that were printed, and the ratios the right way up.
Method: output of perftest 4.5 as it was printed, and figures with known medians.
"""

import contextlib
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

# pylint: disable=wrong-import-position
import comparison
import perftest
import vm_benchmark

LATENCY = """\
---------------------------------------------------------------------------------------
 Mtu             : 4096[B]
---------------------------------------------------------------------------------------
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    \
t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]\x20
 64      2000          12.22          328.85       12.91    \t       13.15      \t2.11   \t\t\
25.48 \t\t51.68\x20
---------------------------------------------------------------------------------------
""".splitlines()

BANDWIDTH = """\
 #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 1048576    100              147.00             142.24 \t\t   0.000142
""".splitlines()

TCP = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:4855 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1
   1: 0100007F:1D2F 0100007F:4855 01 00000000:00000000 00:00000000 00000000     0        0 2 1
"""


class PerftestTest(unittest.TestCase):
    def test_reads_the_typical_latency(self):
        self.assertEqual(perftest.typical_us(LATENCY), 12.91)

    def test_reads_the_average_bandwidth_in_powers_of_ten(self):
        self.assertAlmostEqual(perftest.gigabytes_per_s(BANDWIDTH), 0.14915, places=5)

    def test_says_what_it_did_not_find(self):
        for lines in ([], ["Unable to open device"], BANDWIDTH, LATENCY[:4], LATENCY[:4] + [""]):
            with self.assertRaisesRegex(perftest.Error, "t_typical"):
                perftest.typical_us(lines)

    def test_sees_who_listens(self):
        self.assertTrue(perftest.listens(TCP, 18517))
        self.assertFalse(perftest.listens(TCP, 7471), "connected, not listening")
        self.assertFalse(perftest.listens(TCP, 1))

    def test_finds_the_gid_of_an_address(self):
        end = perftest.End("rxe0", "10.77.0.1", 0)
        link_local, ipv4 = "fe80:0000:0000:0000:0408:16ff:fe6d:ea66", perftest.gid_of("10.77.0.1")
        self.assertEqual(ipv4, "0000:0000:0000:0000:0000:ffff:0a4d:0001")
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            port = root / "rxe0" / "ports" / "1"
            (port / "gids").mkdir(parents=True)
            (port / "gid_attrs" / "types").mkdir(parents=True)
            entries = [(0, link_local, "RoCE v2"), (1, ipv4, "IB/RoCE v1"), (2, ipv4, "RoCE v2")]
            for index, gid, kind in entries[:2]:
                (port / "gids" / str(index)).write_text(gid + "\n")
                (port / "gid_attrs" / "types" / str(index)).write_text(kind + "\n")
            with self.assertRaises(perftest.Error):
                perftest.gid_index(end, root)
            (port / "gids" / "2").write_text(ipv4 + "\n")
            (port / "gid_attrs" / "types" / "2").write_text("RoCE v2\n")
            self.assertEqual(perftest.gid_index(end, root), 2)


class ComparisonTest(unittest.TestCase):
    def setUp(self):
        self.figures = comparison.Comparison()
        for floor, own in ((10, 13), (20, 22), (10, 30)):
            self.figures.add("floor", floor)
            self.figures.add("own", own)

    def test_takes_the_median_of_the_ratios_within_rounds(self):
        self.assertEqual(self.figures.ratio("own", "floor"), (1.3, 1.1, 3.0))
        self.assertEqual(self.figures.spread("own"), (22, 13, 30))

    def test_refuses_rounds_that_miss_a_figure(self):
        self.figures.add("own", 1)
        with self.assertRaises(ValueError):
            self.figures.ratio("own", "floor")

    def test_prints_floor_own_ratio_and_spread(self):
        lines = comparison.table(self.figures, [
            comparison.Row("own", "us", "floor"), comparison.Row("floor", "us", None)])
        self.assertEqual(lines[1].split(), ["own,", "us", "10", "22", "1.300", "1.100..3.000"])
        self.assertEqual(lines[2].split(), ["floor,", "us", "10", "10..20"])


class SummaryTest(unittest.TestCase):
    def test_divides_ours_by_theirs(self):
        figures = comparison.Comparison()
        figures.add(vm_benchmark.SEND_LAT, 26.0)
        figures.add(vm_benchmark.ROUND_TRIP, 32.5)
        figures.add(vm_benchmark.READ_BW, 0.15)
        figures.add(vm_benchmark.ATTACHMENT_BW, 0.144)
        self.assertEqual(vm_benchmark.summary(figures), {"summary": {
            "roundtrip_64_vs_ib_send_lat": 1.25, "bandwidth_1MiB_vs_ib_read_bw": 0.96}})


class CableTest(unittest.TestCase):
    """Without a VM: what would be done to the cable is noted, and what came is made up."""

    def setUp(self):
        self.made = []
        self.came = iter([100, 900])
        for name, fake in {
                "make_cable": lambda *how: self.made.append(how),
                "packets_by_ring": lambda: next(self.came)}.items():
            patch = mock.patch.object(vm_benchmark, name, fake)
            patch.start()
            self.addCleanup(patch.stop)

    def test_is_set_back_where_measuring_fails(self):
        with self.assertRaises(KeyError):
            with vm_benchmark.cable_by_ring():
                self.assertEqual(self.made, [("0", "off", "on")])
                raise KeyError
        self.assertEqual(self.made[1:], [("1", "on", "off")])

    def test_fails_where_nothing_came_by_ring(self):
        self.came = iter([100, 100])
        with self.assertRaises(perftest.Error):
            with vm_benchmark.cable_by_ring():
                pass
        self.assertEqual(self.made[1:], [("1", "on", "off")])

    def test_round_trips_of_both_cables_are_measured(self):
        def by_cable(ring, interrupts):
            return ring if self.made[-1:] == [("0", "off", "on")] else interrupts

        with contextlib.ExitStack() as stack:
            for name, fake in {
                    "ends": lambda: (mock.Mock(), mock.Mock()),
                    "latency": lambda *_: by_cable(34.0, 30.0),
                    "rpc": lambda *_: {"p50_ns": by_cable(75_000, 66_000),
                                       "gigabytes_per_s": 0.1},
                    "read_bandwidth": lambda *_: 0.1}.items():
                stack.enter_context(mock.patch.object(vm_benchmark, name, fake))
            values = list(vm_benchmark.run_round("rpc_bench"))
        figures = dict(values)
        self.assertEqual(figures[vm_benchmark.SEND_LAT], 68.0)
        self.assertEqual(figures[vm_benchmark.ROUND_TRIP], 75.0)
        self.assertEqual(figures[vm_benchmark.SEND_LAT_INTERRUPTED], 60.0)
        self.assertEqual(figures[vm_benchmark.ROUND_TRIP_INTERRUPTED], 66.0)
        self.assertEqual(set(figures), {name for row in vm_benchmark.ROWS
                                        for name in (row.name, row.floor) if name})
        names = [name for name, _ in values]
        for name in figures:
            times = vm_benchmark.PAIRS if name.endswith("by ring") else 1
            self.assertEqual(names.count(name), times, name)


if __name__ == "__main__":
    unittest.main()
