"""Figures of several rounds, side by side: medians, ratios, and how far they spread.

    comparison = Comparison()
    comparison.add("ib_send_lat", 26.2)         # once a round
    comparison.add("rpc round trip", 33.9)
    comparison.ratio("rpc round trip", "ib_send_lat").median

A ratio is taken within each round, where both sides saw the same machine, and the
median of the rounds' ratios is what counts. On a machine that changes within rounds,
each value may come with how it was meanwhile, a number at its least and at its most:

    comparison.add("ucx", 361, least=141, most=151)

Where that differs by more than a quarter within the two values, they are not alike. A
ratio is of the rounds in which they are, of all rounds where there is none.
"""

import collections
import statistics

Spread = collections.namedtuple("Spread", "median low high")
Value = collections.namedtuple("Value", "value least most")
# Of the table: a figure's name, its unit, and the name of what it is compared with.
Row = collections.namedtuple("Row", "name unit floor")

ALIKE = 1.25

TABLE = "%-36s %10s %10s %7s  %s"


def spread_of(values):
    return Spread(statistics.median(values), min(values), max(values))


class Comparison:
    def __init__(self):
        self.values = collections.defaultdict(list)

    def add(self, name, value, least=1, most=1):
        self.values[name].append(Value(value, least, most))

    def has(self, name):
        return name in self.values

    def spread(self, name):
        return spread_of([value.value for value in self.values[name]])

    def pairs(self, name, floor):
        """Of each round both values; of those in which they are alike."""
        every = list(zip(self.values[name], self.values[floor], strict=True))
        return every, [pair for pair in every if are_alike(pair)]

    def ratios_of_rounds(self, name, floor):
        """Of each round that counts, by how the machine was: its least, and the ratio."""
        every, alike = self.pairs(name, floor)
        return sorted((min(ours.least, theirs.least), ours.value / theirs.value)
                      for ours, theirs in alike or every)

    def ratio(self, name, floor):
        return spread_of([ratio for _, ratio in self.ratios_of_rounds(name, floor)])


def are_alike(values):
    """Of values, or what else has the two."""
    return max(value.most for value in values) <= ALIKE * min(value.least for value in values)


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
