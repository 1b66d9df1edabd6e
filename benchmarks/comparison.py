"""Figures of several rounds, side by side: medians, ratios, and how far they spread.

    comparison = Comparison()
    comparison.add("ib_send_lat", 26.2)         # once a round
    comparison.add("rpc round trip", 33.9)
    comparison.ratio("rpc round trip", "ib_send_lat").median

A ratio is taken within each round, where both sides saw the same machine, and the
median of the rounds' ratios is what counts. A value for which they may not have
(`add(..., alike=False)`) counts only where there is nothing better: a ratio is of the
rounds in which both values are alike, of all rounds where there is none.
"""

import collections
import statistics

Spread = collections.namedtuple("Spread", "median low high")
Value = collections.namedtuple("Value", "value alike")
# Of the table: a figure's name, its unit, and the name of what it is compared with.
Row = collections.namedtuple("Row", "name unit floor")

TABLE = "%-36s %10s %10s %7s  %s"


def spread_of(values):
    return Spread(statistics.median(values), min(values), max(values))


class Comparison:
    def __init__(self):
        self.values = collections.defaultdict(list)

    def add(self, name, value, alike=True):
        self.values[name].append(Value(value, alike))

    def has(self, name):
        return name in self.values

    def spread(self, name):
        return spread_of([value for value, _ in self.values[name]])

    def ratio(self, name, floor):
        pairs = list(zip(self.values[name], self.values[floor], strict=True))
        alike = [pair for pair in pairs if all(value.alike for value in pair)]
        return spread_of([ours.value / theirs.value for ours, theirs in alike or pairs])


def table(comparison, rows):
    """Lines: each figure, what perftest has, their ratio, and the spread of that."""
    lines = [TABLE % ("median of the rounds", "perftest", "Verbena", "ratio", "lowest..highest")]
    for row in rows:
        name = "%s, %s" % (row.name, row.unit)
        own = number(comparison.spread(row.name).median)
        if row.floor is None:
            low, high = comparison.spread(row.name)[1:]
            lines.append(TABLE % (name, own, "", "", "%s..%s" % (number(low), number(high))))
            continue
        floor = number(comparison.spread(row.floor).median)
        ratio = comparison.ratio(row.name, row.floor)
        lines.append(TABLE % (name, floor, own, "%.3f" % ratio.median,
                              "%.3f..%.3f" % (ratio.low, ratio.high)))
    return lines


def number(value):
    return "%.4g" % value
