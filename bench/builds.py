"""Two builds of Tombolo beside each other, for the programs of this folder that take --against DIR.

A round measures both, and who is first alternates. Of each cell there are the medians, the ratio new by old (for rates: old by
new, so that above 1 is always slower) and its 95 % interval: a bootstrap that draws whole rounds, so that what slows a round
slows both and does not count. A cell is slower when its interval lies wholly above BAR. With many cells chance alone makes
some look so, therefore such a cell is measured again, with twice the rounds, and only what comes then counts.
"""
import math
import os
import random
import statistics
from typing import NamedTuple

BAR = 1.03
DRAWS = 1000
LEAST_ROUNDS = 3  # fewer say nothing
WIDE = 0.1  # an interval that is wider says little
WIDTH = 46  # of the first column


class Cell(NamedTuple):
    name: str
    unit: str
    higher_is_better: bool = False


def median_ratio(pairs, higher_is_better):
    new, old = (statistics.median(values) for values in zip(*pairs))
    above, below = (old, new) if higher_is_better else (new, old)
    return above / below if below else math.inf if above else 1.0


def interval(pairs, higher_is_better=False):
    """Ratio and its 95 % interval. `pairs`: (new, old) of each round."""
    dice = random.Random(1)
    drawn = sorted(median_ratio(dice.choices(pairs, k=len(pairs)), higher_is_better) for _ in range(DRAWS))
    return median_ratio(pairs, higher_is_better), drawn[DRAWS // 40], drawn[DRAWS - 1 - DRAWS // 40]


def take_rounds(measure, builds, rounds):
    """{cell: [(new, old)]}, and {cell: [how often new and old had a figure]}. A round that lacks one is made up for, but not
    without end."""
    pairs, had = {}, {}
    complete = 0
    for i in range(rounds + rounds // 2):
        order = ("new", "old") if i % 2 == 0 else ("old", "new")
        got = {name: measure(builds[name]) or {} for name in order}
        for cell in {**got["old"], **got["new"]}:
            count = had.setdefault(cell, [0, 0])
            count[0] += cell in got["new"]
            count[1] += cell in got["old"]
            if cell in got["new"] and cell in got["old"]:
                pairs.setdefault(cell, []).append((got["new"][cell], got["old"][cell]))
        complete += bool(got["new"]) and got["new"].keys() == got["old"].keys()
        if complete == rounds:
            break
    return pairs, had


class Comparison:
    """Takes cells, prints a line for each, and keeps what is to be said at the end."""

    def __init__(self, builds, rounds):
        self.builds, self.rounds = builds, rounds
        self.ratios, self.slower, self.missing, self.wide = [], [], [], 0

    def head(self):
        print(f"load of this machine {os.getloadavg()[0]:.1f}; median of {self.rounds} interleaved rounds; ratio new by old, "
              f"above 1 is slower\n{'':{WIDTH}}{'old':>12}{'new':>12}{'ratio':>9}{'95 % interval':>17}", flush=True)

    def take(self, label, measure, rounds=0, again=None):
        """`measure`, given a build, returns {Cell: figure}, or nothing if it went wrong. `again`: a function that makes a
        shorter one from the cells that are to be measured again."""
        rounds = rounds or self.rounds
        pairs, had = take_rounds(measure, self.builds, rounds)
        if not had:
            self.miss(label, "neither build gave a figure")
        suspects = [cell for cell in had if self.tell(cell, pairs.get(cell, []), had[cell], False)]
        if suspects:
            shorter = again(suspects) if again else measure
            pairs, had = take_rounds(shorter, self.builds, 2 * rounds)
            for cell in suspects:
                self.tell(cell, pairs.get(cell, []), had.get(cell, [0, 0]), True)

    def tell(self, cell, pairs, had, second):
        """Prints a cell. True if it has to be measured again."""
        label = f"{cell.name}, {cell.unit}"
        if len(pairs) < LEAST_ROUNDS:
            self.miss(label, f"new gave a figure {had[0]} times, old {had[1]} times")
            return False
        ratio, low, high = interval(pairs, cell.higher_is_better)
        above = low > BAR
        new, old = (statistics.median(values) for values in zip(*pairs))
        verdict = "  " + ("SLOWER" if second else "again") if above else "  not again" if second else ""
        print(f"{label:{WIDTH}}{old:12.4g}{new:12.4g}{ratio:9.3f}{low:9.3f}-{high:<7.3f}{verdict}".rstrip(), flush=True)
        if above and not second:
            return True
        self.ratios.append(ratio)
        self.wide += high - low > WIDE
        if above:
            self.slower.append(f"{label}: {ratio:.3f} ({low:.3f}-{high:.3f})")
        return False

    def miss(self, label, why):
        print(f"{label:{WIDTH}}{'failed':>12}: {why}", flush=True)
        self.missing.append(f"{label}: {why}")

    def found(self):
        """For another process, which gives it to `add`."""
        return {"ratios": self.ratios, "slower": self.slower, "missing": self.missing, "wide": self.wide}

    def add(self, found):
        self.ratios += found["ratios"]
        self.slower += found["slower"]
        self.missing += found["missing"]
        self.wide += found["wide"]

    def finish(self):
        """Prints the verdict; returns the exit status."""
        positive = [ratio for ratio in self.ratios if 0 < ratio < math.inf]
        if positive:
            mean = math.exp(statistics.fmean(math.log(ratio) for ratio in positive))
            print(f"\ngeometric mean of {len(positive)} ratios {mean:.3f}; load of this machine {os.getloadavg()[0]:.1f}")
        if self.wide:
            print(f"cells whose interval is wider than {WIDE}, so that they say little: {self.wide}; a quieter machine or more "
                  "rounds would tell more")
        for heading, cells in ((f"cells whose interval lies wholly above {BAR}", self.slower),
                               ("cells without figures", self.missing)):
            if cells:
                print(f"{heading}: {len(cells)}")
                for cell in cells:
                    print(f"  {cell}")
        if not self.slower:
            print("no cell is slower" + (" of those that were measured" if self.missing else ""))
        return 1 if self.slower or self.missing or not self.ratios else 0


def compiled(run, new, old, programs):
    """{"new": ..., "old": ...}, libraries as bench/run knows them. Both builds' programs are in the new one's folder."""
    builds = {name: run.libraries(os.path.abspath(build))["Tombolo"] for name, build in (("new", new), ("old", old))}
    run.compile_programs(builds, os.path.join(os.path.abspath(new), "bench"), programs)
    print(f"new: {os.path.abspath(new)}\nold: {os.path.abspath(old)}")
    return builds


def add_options(parser):
    parser.add_argument("--against", metavar="DIR", 
                        help="another build of Tombolo, instead of the peers; exit status 1 if a cell is slower")
    parser.add_argument("--quick", action="store_true", help="with --against: fewer rounds")
