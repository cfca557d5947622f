#!/usr/bin/env python3
"""Does the comparison of two builds (bench/builds.py) say slower of what is, and of nothing else? Its figures are made up here."""
import io
import contextlib
import os
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bench"))
import builds
from builds import Cell

TIME, RATE = Cell("time", "us"), Cell("rate", "MB/s", True)


def noisy(seed, level, noise=0.01):
    """A build whose figures lie about a level."""
    dice = random.Random(seed)
    return lambda: level * dice.lognormvariate(0, noise)


def compare(new, old, cells=(TIME,), rounds=9):
    """The comparison of two functions that give a figure, or None for none; and what it printed."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        comparison = builds.Comparison({"new": new, "old": old}, rounds)
        comparison.take("job", lambda build: {cell: value for cell in cells if (value := build()) is not None})
        status = comparison.finish()
    return comparison, status, said.getvalue()


def slower_is_said():
    """Ten per cent are, of times and of rates, and the other way round they are not."""
    for cell, factor in ((TIME, 1.1), (RATE, 1 / 1.1)):
        comparison, status, said = compare(noisy(1, 100 * factor), noisy(2, 100), [cell])
        assert status == 1 and len(comparison.slower) == 1 and "SLOWER" in said, said
        comparison, status, said = compare(noisy(1, 100 / factor), noisy(2, 100), [cell])
        assert status == 0 and not comparison.slower and "no cell is slower" in said, said


def equal_is_not_slower():
    """Where noise is as large as the bar, of 200 equal pairs hardly one is called slower."""
    called = [seed for seed in range(200) if compare(noisy(seed, 100, 0.03), noisy(1000 + seed, 100, 0.03))[1] != 0]
    assert len(called) <= 2, called


def the_interval_holds_the_truth():
    """In at least nine of ten cases; and it is not so wide that it says nothing."""
    held, width = 0, 0.0
    for seed in range(200):
        new, old = noisy(seed, 120, 0.05), noisy(1000 + seed, 100, 0.05)
        _, low, high = builds.interval([(new(), old()) for _ in range(9)])
        held += low <= 1.2 <= high
        width += (high - low) / 200
    assert held >= 180 and width < 0.2, (held, width)


def what_slows_both_does_not_count():
    """A machine that is twice as slow in every third round leaves the interval narrow."""
    weather = random.Random(3)
    pairs = []
    for _ in range(15):
        factor = weather.choice((1, 1, 2))
        pairs.append((106 * factor, 100 * factor))
    ratio, low, high = builds.interval(pairs)
    assert abs(ratio - 1.06) < 1e-9 and high - low < 1e-9, (ratio, low, high)


def chance_is_measured_again():
    """Who is slow in the first rounds only is not slower, and only the second figures count."""
    calls = []

    def new():
        calls.append(1)
        return 150 if len(calls) <= 9 else 100
    comparison, status, said = compare(new, lambda: 100)
    assert status == 0 and "again" in said and comparison.ratios == [1.0] and len(calls) == 27, (said, len(calls))


def missing_figures_are_no_success():
    never, always = lambda: None, lambda: 100
    for new, old in ((never, always), (always, never), (never, never)):
        comparison, status, said = compare(new, old)
        assert status == 1 and comparison.missing and "failed" in said, said


def what_says_little_is_said():
    """A busy machine hides differences; the verdict must not look better for it."""
    assert "say little: 1" in compare(noisy(1, 100, 0.3), noisy(2, 100, 0.3))[2]
    assert "say little" not in compare(noisy(1, 100), noisy(2, 100))[2]


def a_lost_round_is_made_up_for():
    calls = []

    def new():
        calls.append(1)
        return None if len(calls) == 2 else 100
    _, status, said = compare(new, lambda: 100)
    assert status == 0 and len(calls) == 10, (said, len(calls))


def the_order_alternates():
    order = []
    compare(lambda: order.append("new") or 1, lambda: order.append("old") or 1, rounds=4)
    assert order == ["new", "old", "old", "new"] * 2, order


def main():
    cases = [slower_is_said, equal_is_not_slower, the_interval_holds_the_truth, what_slows_both_does_not_count,
             chance_is_measured_again, missing_figures_are_no_success, what_says_little_is_said,
             a_lost_round_is_made_up_for, the_order_alternates]
    failed = 0
    for case in cases:
        try:
            case()
            print(f"case: {case.__name__} ok")
        except AssertionError as problem:
            failed += 1
            print(f"case: {case.__name__} failed\n{problem}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
