#!/usr/bin/env python3
"""Do the programs of bench/ judge rightly? The comparison of two builds says slower of what is, and of nothing else; ranks go where
is said; bounds are those of `tombolo explain`; what cannot run or lost frames is listed and not judged. Figures are made up here."""
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import random
import subprocess
import sys
import tempfile
import traceback
import types

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "bench"))
import builds
import gridfile
from bounds import Bound, Bounds, explain
from builds import Cell

TOMBOLO = os.path.join(os.path.abspath(os.environ.get("BUILD_DIR") or os.path.join(ROOT, "build")), "bin", "tombolo")
GRIDS = os.path.join(ROOT, "examples", "grids")

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


# ---- grids -----------------------------------------------------------------------------------------------------------


def load(name):
    loader = importlib.machinery.SourceFileLoader(name, os.path.join(ROOT, "bench", name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


def grid_of(name):
    return gridfile.Grid(os.path.join(GRIDS, f"{name}.yaml"))


def near(value, wanted):
    return abs(value - wanted) <= 2e-6 * wanted


def hosts_are_those_of_the_file():
    """As many hosts and ranks as Tombolo finds, in every example."""
    for name in sorted(os.listdir(GRIDS)):
        grid = gridfile.Grid(os.path.join(GRIDS, name))
        told = explain(TOMBOLO, "barrier", 0, grid, "blocks", [])
        found = len(grid.ranks("blocks")), len(grid.hosts)
        assert found == (told["ranks"], told["hosts"]), f"{name}: {found} ranks and hosts, not {told['ranks']}, {told['hosts']}"


def hosts_are_said_in_many_ways():
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write("clusters:\n- {name: a, hosts: [g, 'kate@n[09-10]:2', {name: 'm[1,3]', slots: 0, bandwidth: 10}]}\n"
                   "- {name: b, hosts: [g:0, x], clusters: [{name: c, hosts: y}]}\n")
        file.flush()
        grid = gridfile.Grid(file.name)
        assert grid.ranks("blocks") == ["n09", "n09", "n10", "n10", "x", "y"], grid.ranks("blocks")
        assert grid.ranks("dealt") == ["n09", "x", "n09", "y", "n10", "n10"], grid.ranks("dealt")
        assert grid.clusters() == ["a", "b"] and grid.ranks("blocks")[4] == "x", grid.ranks("blocks")


def ranks_are_dealt_as_tombolo_deals():
    """The bound of a broadcast depends on where its root is: that of dealt rank r is that of a rank on the same host in blocks."""
    grid = grid_of("five-levels")
    bounds, blocks = Bounds(TOMBOLO, grid), grid.ranks("blocks")
    for rank, host in enumerate(grid.ranks("dealt")):
        both = bounds.of("bcast", 65536, "dealt", rank), bounds.of("bcast", 65536, "blocks", blocks.index(host))
        assert both[0] == both[1], f"rank {rank} on {host}: {both}"
    assert len({bounds.of("bcast", 65536, "blocks", rank) for rank in range(len(blocks))}) > 2


def bounds_know_the_whole_grid():
    """An uplink of 50 Mbit/s that all share, a host's own port, ports of one cluster, of which those of a lab pass 2048 bytes at
    once: no wire is left out."""
    wire = (1 << 20) * 1538 / 1448 * 8
    burst = lambda rate: int(2048 * 8 / rate * 1e6) / 1e6
    found = Bounds(TOMBOLO, grid_of("star3")).of("allgather", 1 << 20)
    assert near(found.seconds - found.latency, 8 * wire / 50e6) and 0.01 < found.latency < 0.011, found
    found = Bounds(TOMBOLO, grid_of("cluster8")).of("bcast", 1 << 20)
    assert near(found.seconds - found.latency, wire / 100e6 - burst(100e6)), found
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write("clusters:\n- {name: a, hosts: ['n[1-3]', {name: slow, bandwidth: 10}], ethernet: {bandwidth: 100, latency: 0}}\n")
        file.flush()
        found = Bounds(TOMBOLO, gridfile.Grid(file.name), ["ethernet_overhead=0", "lab_latency=0"]).of("bcast", 1 << 20)
    assert near(found.seconds, wire / 10e6 - burst(10e6)) and found.latency == 0, found


def bounds_of_what_is_no_collective():
    """A message is a broadcast to one, forms with counts need as much as those without, a mixture has no bound."""
    for name in sorted(os.listdir(GRIDS)):
        grid = gridfile.Grid(os.path.join(GRIDS, name))
        pair = explain(TOMBOLO, "bcast", 8, grid, "blocks", [], text=grid.pair(grid.hosts[0], grid.hosts[-1]))
        assert pair["ranks"] == 2 and pair["hosts"] == min(2, len(grid.hosts)), (name, pair["ranks"], pair["hosts"])
    grid = grid_of("two-clusters")
    bounds = Bounds(TOMBOLO, grid, ["ethernet_overhead=0", "agent_overhead=0", "lab_latency=0"])
    assert near(bounds.of("point", 16384).seconds, 0.0101 + 16384 * 1538 / 1448 * 8 / 20e6), bounds.of("point", 16384)
    assert bounds.of("point", 8, "blocks", 1).seconds < 1e-5 < 0.01 < bounds.of("point", 8, "dealt", 1).seconds  # on one host, or far
    gather, scatter = bounds.of("gatherv", 1024), bounds.of("scatter", 1024)
    assert gather == bounds.of("gather", 1024) and bounds.of("messages", 1024).seconds == gather.seconds + scatter.seconds
    assert bounds.of("mixture", 1024) is None


# ---- peers -----------------------------------------------------------------------------------------------------------


def libraries(peers):
    libs = {"Tombolo": {"run": ["mpiexec"]}, "MPICH": {"run": ["mpiexec.mpich"]}, "Open MPI": {"run": ["mpiexec.openmpi"]}}
    return {name: {**lib, "dir": name, peers.CANNOT: ""} for name, lib in libs.items()}


def behind(words, option):
    return words[words.index(option) + 1]


def everybody_puts_ranks_there():
    """In blocks and dealt: Tombolo by the grid file, the peers by lists of hosts."""
    peers, grid = load("peers"), grid_of("two-clusters")
    for way, listed in (("blocks", "e1:2,e2:2,e3:2,e4:2,w1:2"), ("dealt", "e1:1,w1:1,e1:1,w1:1,e2:1")):
        libs = libraries(peers)
        with tempfile.TemporaryDirectory() as folder:
            peers.lab_settings(libs, {"folder": folder, "shell": "shell", "interface": "eth0", "set": ["a=b"]}, grid, way)
            words = {name: lib["command"] for name, lib in libs.items()}
            assert behind(words["Tombolo"], "--grid") == grid.path and behind(words["Tombolo"], "--set") == "a=b", words
            assert libs["Tombolo"]["at"] is None and libs["MPICH"]["at"] == "e1", libs
            assert behind(words["MPICH"], "-hosts").startswith(listed) and behind(words["MPICH"], "-n") == "16", words
            if way == "blocks":
                assert "--map" not in words["Tombolo"] and behind(words["Open MPI"], "-H").startswith(listed), words
                continue
            assert behind(words["Tombolo"], "--map") == "cluster", words
            with open(behind(words["Open MPI"], "--hostfile"), encoding="utf-8") as f:
                assert f.read().split() == grid.ranks("dealt")


class FakeLab:
    """Each host knows some others."""

    def __init__(self, knows):
        self.knows = knows

    def run(self, host, *words):
        folder = tempfile.mkdtemp()
        with open(os.path.join(folder, "getent"), "w", encoding="utf-8") as f:
            f.write(f"#!/bin/sh\ncase $2 in {'|'.join(self.knows[host])}) ;; *) exit 2;; esac\n")
        os.chmod(f.name, 0o755)
        out = subprocess.run(words, env={"PATH": f"{folder}:/usr/bin:/bin"}, capture_output=True, text=True, check=True).stdout
        os.unlink(f.name)
        os.rmdir(folder)
        return out


def closed_hosts_are_seen():
    peers, hosts = load("peers"), ["a", "b", "c"]
    assert peers.unreached(FakeLab({host: hosts for host in hosts}), hosts) == ""
    assert peers.unreached(FakeLab({"a": hosts, "b": ["a", "b"], "c": hosts}), hosts) == "b does not reach c"


def who_cannot_run_is_not_tried():
    peers, run, tried = load("peers"), load("run"), []
    libs = libraries(peers)
    for name in ("MPICH", "Open MPI"):
        libs[name][peers.CANNOT] = "b does not reach c"

    def job(lib, *_):
        tried.append(lib["dir"])
        return {("bcast", 8): peers.Row(20, 10, 30, 30, 5, 0), ("mixture", 8): peers.Row(50, 50, 50, 50, 5, 0)}, ""
    peers.run_job, peers.others_run = job, lambda: False
    options = {"operations": ["bcast", "mixture"], "sizes": [8], "seconds": 1, "rounds": 3}
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        values, stories = peers.measure(libs, None, options)
        peers.print_table(run, libs, values, stories, options, lambda operation, n: Bound(1e-5, 0) if operation == "bcast" else None)
    rows = [line.split() for line in said.getvalue().splitlines()]
    assert tried == ["Tombolo"] * 3 and ["bcast", "8", "10", "20", "cannot", "cannot"] in rows, said.getvalue()
    assert ["mixture", "8", "-", "50", "cannot", "cannot"] in rows, said.getvalue()
    assert "MPICH: cannot: b does not reach c" in said.getvalue(), said.getvalue()


def the_wire_time_of_one_copy_has_no_latency():
    """2 s where the bound is 1.5 s, of which 0.5 s are latency: twice the wire time."""
    collectives = load("collectives")

    class Inside:
        options, grid = {"only": "reduce"}, grid_of("cluster8")

        @staticmethod
        def bound(_operation, _n):
            return Bound(1.5, 0.5)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        collectives.judge_wire(Inside, {"Tombolo": {("reduce", 1 << 20): [2e6]}}, "")
    assert "reduce 1048576: 2.000 of the wire time" in said.getvalue(), said.getvalue()


# ---- predictions -----------------------------------------------------------------------------------------------------


def judged(model, rows):
    """What is printed of one operation and size: {algorithm: (predicted, measured, frames dropped)}, the chosen one first."""
    table = {}
    for name, (predicted, measured, dropped) in rows.items():
        table[name] = model.Candidate({"algorithm": name, "argument": 0, "seconds": predicted * 1e-6, "runs": not table})
        table[name].times, table[name].dropped = [measured] * bool(measured), dropped
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        model.print_size(load("peers"), "bcast", 8, table, 5)
        page = model.judge(load("peers"), {"bcast": {8: table}}, {}, "blocks", "cubic")
    return said.getvalue(), page


def lost_frames_are_not_judged():
    """Neither is what was predicted of a cell that lost some, nor the choice, if that or the fastest did."""
    model = load("model")
    for rows, predictions, choices in (
            ({"a": (100, 100, 0), "b": (110, 80, 0)}, "1 of 2", "0 of 1"),
            ({"a": (100, 90, 0), "b": (110, 100, 0)}, "2 of 2", "1 of 1"),
            ({"a": (100, 900, 7), "b": (110, 100, 0)}, "1 of 1", "0 of 0"),
            ({"a": (100, 100, 0), "b": (110, 80, 7)}, "1 of 1", "0 of 0"),
            ({"a": (100, 100, 0), "b": (110, 900, 7)}, "1 of 1", "1 of 1"),
            ({"a": (100, 0, 0), "b": (110, 100, 0)}, "1 of 1", "0 of 1")):
        said, page = judged(model, rows)
        assert f"within 20 %: {predictions}" in page and f"of the fastest: {choices}" in page, f"{rows}:\n{page}"
        assert f"predicted within 20 %: {predictions}," in said and f"of the fastest: {choices}," in said, f"{rows}:\n{said}"
        assert ("lost frames: bcast 8" in said) == (choices == "0 of 0"), f"{rows}:\n{said}"


def what_ran_is_known():
    """By the table that a job prints: without an argument, with one, and with two lengths."""
    model = load("model")
    story = "".join(f"bcast 12 ranks {n} 10 {name} predicted\n" for n, name in
                    ((1, "linear"), (1024, "chain:8k"), (65536, "levels-packed-chain:8k/32k"), (1 << 20, "chain:900")))
    found = model.ran(story + "reduce 12 ranks 1 10 chain:1m predicted\n", "bcast")
    assert found == {1: "linear", 1024: "chain:8192", 65536: "levels-packed-chain:8192/32768", 1 << 20: "chain:900"}, found


# ---- levels ----------------------------------------------------------------------------------------------------------


def column(levels, times, **more):
    """{(operation, bytes): {root: [microseconds of each repetition]}}, as a job prints them."""
    found = levels.Column({"command": ["run"], **more})
    found.add("".join(f"{operation} {n} {root} {values[0] / 2} {' '.join(map(str, values))}\n"
                      for (operation, n), roots in times.items() for root, values in roots.items()) + "done\n")
    return found


def roots_are_told_apart():
    """A cell is the median over roots of medians over repetitions; what was dropped wholly counts nowhere."""
    levels = load("levels")
    found = column(levels, {("bcast", 8): {0: [10, 30, 20], 1: [40, 40, 40], 2: [1, 2, 3]}})
    found.add("cold bcast 8 0 77.5\nbcast 8 0 1000000000\nreduce 8 1 1000000000\nhello\n")
    cell = levels.Cell("bcast", 8)
    assert found.roots(cell) == {0: 20, 1: 40, 2: 2} and found.time(cell) == 20 and found.paper(cell) == 25.5, found.times
    assert found.cold == {cell: 77.5} and found.time(levels.Cell("reduce", 8)) is None, found.cold
    assert sorted(found.values(cell)) == [1, 2, 3, 10, 20, 30, 40, 40, 40]
    found.add("bcast 8 2 1 5 5\n")  # another round
    assert found.roots(cell)[2] == 3, found.times


def long_messages_have_a_root_a_cluster():
    levels, grid = load("levels"), gridfile.Grid(os.path.join(ROOT, "bench", "grids", "nat3-20.yaml"))
    for cell, way, roots in ((("bcast", 16), "blocks", list(range(12))), (("gather", 1 << 20), "blocks", [0, 4, 8]),
                             (("reduce", 1 << 20), "dealt", [0, 1, 2]), (("allreduce", 16), "blocks", [0, 4, 8]),
                             (("alltoall", 1 << 20), "dealt", [0]), (("point", 16), "blocks", [0])):
        assert levels.roots_of(levels.Cell(*cell), grid.ranks(way), grid.cluster) == roots, cell


def levels_are_forced_where_they_can_be():
    levels = load("levels")
    libs = {"Tombolo": {"command": ["mpiexec"]}, "MPICH": {"command": ["peer"]}}
    found = levels.columns_of(libs, [], "blocks")
    assert list(found) == ["levels", "machine", "site", "flat", "MPICH"], list(found)
    assert found["site"].lib["command"] == ["mpiexec", "--set", "levels=site"] and found["levels"].lib["command"] == ["mpiexec"]
    assert list(levels.columns_of(libs, [], "dealt")) == ["levels", "flat", "MPICH"]
    assert list(levels.columns_of(libs, ["site", "MPICH"], "dealt")) == ["site", "MPICH"]


class FakeBounds:
    """Seconds of (operation, bytes)."""

    def __init__(self, **seconds):
        self.seconds = seconds

    def of(self, operation, n, way="blocks", root=0):
        return types.SimpleNamespace(seconds=self.seconds[operation], latency=0)


def late_jobs_run_again():
    """Those during which the lab was late; what went wrong in them is told."""
    levels, peers, plan = load("levels"), load("peers"), types.SimpleNamespace(job_cells=lambda *_: ["a cell"], words=lambda *_: [], limit=lambda *_: 1)
    for lates, jobs, void in (([""], 1, False), (["late", ""], 2, False), (["late", "late", "late"], 3, True)):
        found, stories, seen, trouble = levels.Column({}), {}, [], ["hangs"] * (jobs == 2)
        peers.job_text = lambda *_, seen=seen, trouble=trouble: (seen.append(1) or f"job {len(seen)}", trouble.pop() if trouble else "")
        inside = types.SimpleNamespace(prefix=None, lab=types.SimpleNamespace(report=lambda: {}),
                                       bench=types.SimpleNamespace(is_late=lambda _, left=lates: left.pop(0)))
        with contextlib.redirect_stdout(io.StringIO()) as out:
            text = levels.take(peers, inside, plan, "blocks", "flat", found, "bcast", 0, stories)
        assert text == ("" if void else f"job {jobs}") and len(seen) == jobs and out.getvalue().count("late") == len(seen) - (not void), text
        assert any("VOID" in story for story in stories.values()) == void and ("hangs" in stories.values()) == (jobs == 2), stories


def long_jobs_are_planned():
    """How often what is called, and how long that takes: two roots, six calls of 0.1 s and three of 2 s."""
    levels, grid = load("levels"), grid_of("two-clusters")
    options = {"operations": ["bcast", "gather"], "sizes": [1 << 20], "ways": ["blocks"], "columns": ["levels"], "roots": [],
               "rounds": 1, "repetitions": 5, "idle": 10, "idle_sizes": [1 << 20]}
    plan = levels.Plan(options, grid, FakeBounds(bcast=0.1, gather=2, barrier=0.01))
    cells = [plan.cells(operation)[0] for operation in options["operations"]]
    assert plan.words(cells, "blocks", "levels", True) == ["bcast:1048576:5:10:0,8", "gather:1048576:2:10:0,8"]
    assert plan.words(cells, "blocks", "flat", True)[0] == "bcast:1048576:5:0:0,8"
    assert plan.words(cells, "blocks", "levels", False)[0] == "bcast:1048576:5:0:0,8"
    between = levels.BARRIERS * 0.01
    told = 2 * (levels.START_S + 10) + levels.USUAL_RATIO * 12 * 0.1 + levels.SLOW_RATIO * 6 * 2 + 18 * between
    assert abs(plan.all(["Tombolo"], False) - told) < 1e-9, plan.all(["Tombolo"], False)
    assert plan.job_cells("gather", "blocks", "site") == cells[1:]  # was asked for
    options["columns"] = []
    assert plan.job_cells("gather", "blocks", "site") == [] and plan.job_cells("gather", "blocks", "flat") == cells[1:]
    assert plan.limit(cells, "blocks", "levels", True) > 2 * plan.usual(cells, "blocks", "levels", True)


def misses(cell, ours, closed=False, bound=100, **others):
    levels = load("levels")
    cell = levels.Cell(*cell)
    times = {tuple(cell): {root: [ours] * 3 for root in range(4)}}
    if closed:
        times["point", 16], times["point", 4096] = {0: [60] * 3}, {0: [80] * 3}
    columns = {"levels": column(levels, times)}
    columns.update({name: column(levels, {tuple(cell): {root: [time] * 3 for root in range(4)}}) for name, time in others.items()})
    return levels.Judge(load("run"), columns, lambda operation, n, root: bound if operation != "point" else 50, closed).misses(cell)


def levels_meet_their_bars_or_not():
    for cell, bar in ((("bcast", 16), 1.2), (("reduce", 65536), 1.3), (("bcast", 1 << 20), 1.2), (("allreduce", 1024), 1.15),
                      (("barrier", 0), 1.15)):
        assert not misses(cell, 100 * bar - 1) and "of the bound" in misses(cell, 100 * bar + 1)[0], cell
    assert not misses(("allreduce", 65536), 500) and not misses(("alltoall", 16), 500)
    assert not misses(("bcast", 16), 110, MPICH=108, flat=109) and not misses(("bcast", 16), 110, MPICH=50, bound=None)[1:]
    assert "of the better peer" in misses(("alltoall", 16), 110, MPICH=105, OpenMPI=200)[0]
    assert misses(("bcast", 16), 110, site=105, flat=300) == ["1.05-1.05 of site"], misses(("bcast", 16), 110, site=105, flat=300)


def hops_are_those_that_were_measured():
    """Behind gateways the bound of 100 is 110 for short calls and 130 for long ones, and the bars are 1.3, 1.4 at 64 KiB."""
    for cell, most in ((("bcast", 16), 143), (("bcast", 65536), 182), (("reduce", 1 << 20), 169)):
        assert not misses(cell, most - 1, True) and misses(cell, most + 1, True), cell


def both_ways_are_alike_or_not():
    levels = load("levels")
    assert not levels.unlike([10000, 11900]) and levels.unlike([10000, 12100])
    assert not levels.unlike([1090000, 1000000]) and levels.unlike([1000000, 1110000])


# ---- plans -----------------------------------------------------------------------------------------------------------


def explained(rows):
    """The table of a job: (operation, smallest size, algorithm, why) of each row, laid out as jobs do it."""
    return "tombolo: collectives of rank 0\n" + "".join(f"{name:22} {12:6} {12:5} {n:12} {6:9}  {algorithm:28} {why:14} -\n"
                                                         for name, n, algorithm, why in rows)


def whether_a_plan_was_followed():
    planned = load("planned")
    told = explained([("barrier", 0, "levels-flat 10408.307 us", "predicted"), ("bcast", 16, "chain:8", "the plan"),
                      ("bcast", 65536, "planned", "the plan"), ("reduce", 40, "levels-flat-flat:24 10314.614 us", "predicted")])
    assert not planned.strayed(told, "bcast", [16, 65536], True) and not planned.strayed(told, "reduce", [40], False)
    assert "was followed: planned of 65536 bytes" in planned.strayed(told, "bcast", [65536], False)
    assert "no bcast of 1024 bytes" in planned.strayed(told, "bcast", [16, 1024], True)
    assert "not followed: levels-flat-flat:24 of 40 bytes because of predicted" in planned.strayed(told, "reduce", [40], True)
    partly = told + explained([("bcast", 65536, "chain:8 812.000 us", "predicted")])  # with another root
    assert "not followed: chain:8 of 65536 bytes" in planned.strayed(partly, "bcast", [65536], True)
    assert "its table has no" in planned.strayed("", "bcast", [16], True)


def plans_take_as_long_as_predicted_or_not():
    planned = load("planned")
    short, long = planned.Cell("bcast", 65536), planned.Cell("bcast", 1 << 20)
    predicted = {("lpbf", short): 100, ("own", short): 80, ("ecef", short): 110, ("own", long): 500}
    assert not planned.far(predicted, {key: 1.14 * took for key, took in predicted.items()})
    assert not planned.far(predicted, {key: 0.86 * took for key, took in predicted.items()})
    for factor in (1.16, 0.84):
        assert len(planned.far(predicted, {key: factor * took for key, took in predicted.items()})) == 4, factor
    assert planned.far(predicted, {("own", long): 600}) == ["own, bcast 1 MiB: 1.20 of what was predicted"]
    assert not planned.out_of_order(predicted, {key: 1.1 * took for key, took in predicted.items()})
    close = {("lpbf", short): 110, ("own", short): 90, ("ecef", short): 100}  # ecef and lpbf are predicted too near to each other
    assert not planned.out_of_order(predicted, close)
    told = planned.out_of_order(predicted, {**close, ("own", short): 105, ("own", long): 1})
    assert told == ["bcast 64 KiB: ecef is not slower than own"], told


def columns_of_rounds(levels, rounds):
    """A Column of each round: {root: microseconds} of a broadcast of eight bytes."""
    return [column(levels, {("bcast", 8): {root: [took] * 3 for root, took in roots.items()}} if roots else {}) for roots in rounds]


def plans_are_slower_or_not():
    """Round by round and root by root; a round that one of them lacks does not count, nor do other roots if one is asked for."""
    planned = load("planned")
    cell, dice = planned.Cell("bcast", 8), random.Random(1)
    old = columns_of_rounds(planned.levels, [{0: 100, 4: 200}, {}, {0: 100, 4: 200}])
    new = columns_of_rounds(planned.levels, [{0: 110, 4: 150}, {0: 1, 4: 1}, {0: 112, 4: 150, 8: 7}])
    assert planned.pairs_of(new, old, cell) == [(110, 100), (150, 200), (112, 100), (150, 200)]
    assert planned.pairs_of(new, old, cell, 4) == [(150, 200)] * 2 and not planned.pairs_of(new, old, planned.Cell("bcast", 16))
    for factor, slower, confirmed in ((1.06, True, False), (1.0, False, False), (0.95, False, False), (0.85, False, True)):
        pairs = [(100 * factor * dice.lognormvariate(0, 0.01), 100 * dice.lognormvariate(0, 0.01)) for _ in range(20)]
        assert (planned.is_slower(pairs), planned.is_confirmed(pairs)) == (slower, confirmed), factor
    wide = [(value, 100) for value in (60, 65, 70, 75, 80, 85, 150, 160, 170)]
    assert not planned.is_confirmed(wide) and not planned.is_slower(wide)


def rounds_of(planned, seconds, **options):
    """Of the two clusters of an example; every call of a column is predicted to take so long."""
    said = {"operations": ["bcast"], "sizes": [1 << 20], "ways": ["blocks"], "rounds": 2, "repetitions": 5, "seconds": 30, "set": [],
            "planners": [], "plans": {"blocks": dict.fromkeys(seconds, "")}, **options}
    rounds = planned.Rounds(said, grid_of("two-clusters"), TOMBOLO)
    rounds.bounds = FakeBounds(bcast=0.1, barrier=0.01)
    rounds.expected = lambda cell, way, name: seconds[name]
    return rounds


def slow_plans_are_run_less_often():
    """No root of a cell for more than half a minute, but at least once beside the call that does not count."""
    planned = load("planned")
    rounds = rounds_of(planned, {"own choice": 0.1, "plan": 8, "slow": 100})
    cell = rounds.cells("bcast")[0]
    assert [rounds.repetitions(cell, "blocks", name) for name in ("own choice", "plan", "slow")] == [5, 2, 1]
    assert rounds.words([cell], "blocks", "plan", True) == ["bcast:1048576:2:0:0,8"]
    told = 2 * 3 * planned.levels.START_S + 2 * 2 * planned.PREDICTED_RATIO * (6 * 0.1 + 3 * 8 + 2 * 100)
    assert abs(rounds.whole() - told - 2 * 2 * 11 * planned.levels.BARRIERS * 0.01) < 1e-9, rounds.whole()
    assert rounds.limit([cell], "blocks", "slow", True) > 2 * rounds.usual([cell], "blocks", "slow", True)
    assert rounds_of(planned, {"lpbf": 1}, planners=["lpbf"]).roots(cell, "blocks") == [0]
    some = rounds_of(planned, {"own choice": 1, "plan": 1}, sizes=[16, 1 << 20], wanted=[("bcast", 1 << 20, 8)])
    assert some.job_cells("bcast", "blocks", "plan") == [cell] and some.roots(cell, "blocks") == [8]


def gains_are_found():
    """Of all cells those that are predicted to be enough faster, the most first."""
    planned = load("planned")
    times = {"own.plan": {("bcast", 8): 100, ("reduce", 8): 100, ("bcast", 64): 100}, "": {("bcast", 8): 109, ("reduce", 8): 112, ("bcast", 64): 150}}
    fake = types.SimpleNamespace(of=lambda cell, way, root, plan: types.SimpleNamespace(seconds=times[plan][cell] * (root + 1)))
    found = planned.gains(fake, {"own choice": "", "plan": "own.plan"}, [planned.Cell(*cell) for cell in times[""]], [0, 4])
    assert [one[1:] for one in found] == [(("bcast", 64), 0), (("bcast", 64), 4), (("reduce", 8), 0), (("reduce", 8), 4)], found


def plots_have_the_bound():
    """Figures 38 to 41 beside what planners take, not those of planning times; a planner below it misses a bar."""
    planning = load("planning")

    class Fake:
        def __init__(self, above):
            self.options, self.above, self.drawn, self.missed = types.SimpleNamespace(quick=True), above, {}, []

        def ask(self, *words):
            row = {"mean_seconds": 0.2, "processor_seconds": 0.01, "complete": True}
            return {"series": [{"symmetric": kind, "mean_bound_seconds": 0.1, "bound_above": self.above,
                                "planners": [{**row, "planner": name} for name in ("lpbf", "own")]} for kind in (True, False)]}

        def plot(self, name, _title, _x_name, panels, _note=""):
            self.drawn[name] = panels

        miss = planning.Bench.miss

    for above in (0, 1):
        bench = Fake(above)
        planning.many_nodes(bench, [(8, 8), (16, 8)], lambda nodes, _: nodes, ((38, 39), (44, 45)), "eight clusters", "nodes")
        for _, lines in bench.drawn["planning-38-39"]:
            assert list(lines) == ["lpbf", "own", "bound"] and lines["bound"] == {8: 0.1, 16: 0.1}, lines
        assert all(list(lines) == ["lpbf", "own"] for _, lines in bench.drawn["planning-44-45"]), bench.drawn
        assert len(bench.missed) == 4 * above, bench.missed


def what_is_void_is_not_written():
    """Lines that were said in a lab come out of it, unless they are void; the page has a mark for all that writes into it."""
    import written
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as out:
        path = os.path.join(folder, "result")
        for void, text in (("", "| a |\n\nb"), (" (VOID, see above)", "")):
            say = written.Said()
            for line in ("", "| a |", "", "b", ""):
                say(line)
            say.keep(path, void)
            assert written.kept(path) == text and not os.path.exists(path) and written.kept(path) == "", void
        put = []
        written.write(lambda *words: put.append(words), "levels", {"mesh3-20": "| a |", "star3-20": ""})
    assert put == [({"mesh3-20": "| a |"}, "levels", "measured.md")] and "nothing is written of star3-20" in out.getvalue(), (put, out.getvalue())
    with open(os.path.join(ROOT, "docs", "guide", written.PAGE), encoding="utf-8") as f:
        page = f.read()
    names = [("levels", name) for name in ("mesh3-20", "star3-20", "nat3-20", "karonis")] + [("pacx", name) for name in load("pacx").TABLES]
    for program, name in [*names, ("examples", "table"), ("plans", "table")]:
        assert f"<!-- bench/{program}: {name} -->\n" in page, (program, name)


def tables_go_between_their_marks():
    planning = load("planning")
    with tempfile.TemporaryDirectory() as planning.GUIDE:
        path = os.path.join(planning.GUIDE, "planning.md")
        with open(path, "w", encoding="utf-8") as f:
            f.write("a\n<!-- bench/planned: gain -->\nold\n<!-- end -->\nb\n<!-- bench/planning: gain -->\nstays\n<!-- end -->\n")
        planning.document_write({"gain": "| new \\1 |"}, "planned")
        with open(path, encoding="utf-8") as f:
            assert f.read() == ("a\n<!-- bench/planned: gain -->\n| new \\1 |\n<!-- end -->\nb\n<!-- bench/planning: gain -->\nstays\n"
                                "<!-- end -->\n")
        try:
            planning.document_write({"nothing": ""}, "planned")
            assert False, "there is no such mark"
        except SystemExit as said:
            assert "no mark for nothing" in str(said)


def one_sided_bars_are_judged():
    """Two threads slower than one, and a target that computes and serves nobody, are said; what was not measured is not."""
    rma = load("rma")
    fine = {"messages, 1 thread": 2.0, "messages, 2 threads": 1.99, "lock, get on a busy target": 0.1}
    assert rma.further_bars(fine) == [] and rma.further_bars({}) == [] and rma.further_bars({"messages, 1 thread": 2.0}) == []
    missed = rma.further_bars({**fine, "TCP messages, 1 thread": 2.0, "TCP messages, 2 threads": 1.0, "lock, get on a busy target": 900.0})
    assert len(missed) == 2 and "900" in missed[0] and missed[1].startswith("TCP two threads"), missed
    names = [row[0] for row in rma.rows(None, 0.1)]
    assert len(names) == len(set(names)) == 2 * (2 * 4 * 4 + 2 + 1), names
    lines = rma.table([("put 8 B, fence", "us", {"Tombolo": 1.0, "MPICH": 2.0}, 0.5, 0.4, 0.6, 1.03), ("x", "us", {"Tombolo": None}, None, None, None, 1)])
    assert lines.splitlines()[2:] == ["| put 8 B, fence, us | 1 | 2 | - | 0.50 (0.40 to 0.60) |", "| x, us | - | - | - | - |"], lines


def main():
    cases = [one_sided_bars_are_judged, slower_is_said, equal_is_not_slower, the_interval_holds_the_truth, what_slows_both_does_not_count,
             chance_is_measured_again, missing_figures_are_no_success, what_says_little_is_said,
             a_lost_round_is_made_up_for, the_order_alternates, hosts_are_those_of_the_file, hosts_are_said_in_many_ways,
             ranks_are_dealt_as_tombolo_deals, bounds_know_the_whole_grid, bounds_of_what_is_no_collective,
             everybody_puts_ranks_there, closed_hosts_are_seen, who_cannot_run_is_not_tried,
             the_wire_time_of_one_copy_has_no_latency, lost_frames_are_not_judged, what_ran_is_known, roots_are_told_apart,
             long_messages_have_a_root_a_cluster, late_jobs_run_again, long_jobs_are_planned, levels_are_forced_where_they_can_be, levels_meet_their_bars_or_not,
             hops_are_those_that_were_measured, both_ways_are_alike_or_not, whether_a_plan_was_followed, plans_take_as_long_as_predicted_or_not,
             plans_are_slower_or_not, slow_plans_are_run_less_often, gains_are_found, plots_have_the_bound, what_is_void_is_not_written, tables_go_between_their_marks]
    failed = 0
    for case in cases:
        try:
            case()
            print(f"case: {case.__name__} ok")
        except Exception:
            failed += 1
            print(f"case: {case.__name__} failed\n{traceback.format_exc(limit=-2)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
