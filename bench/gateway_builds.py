"""What bench/gateways --against measures: the same jobs as its sections, started by two builds in one lab.

The lab is the new build's for both. Only what Tombolo does is measured, neither iperf3 nor sockets; messages are shorter where
the link's rate is what counts. A figure that was taken while the lab was late does not count (bench/builds.py measures again).
"""
import json
import os
import re
import signal
import statistics
import subprocess
import sys

import builds
import gateway_border
import gateway_far
import labfacts
from builds import Cell
from gateway_lab import load

PROBLEMS = (RuntimeError, ValueError, KeyError, IndexError, StopIteration, subprocess.SubprocessError)


gateways = load("gateways")
MIB = gateways.MIB
LONG, LOSSY, COMPRESSED = 16 * MIB, 6 * MIB, 2 * MIB
SHORT_S = 3  # of those that last a while
PINGS = 3  # times the rounds: they take a second
EXAMPLES = {**gateways.EXAMPLES, "heat": ["--steps", "100"], "gauss": ["--size", "80"]}


def rate(name, *words, **keys):
    cell = Cell(name, "Mbit/s", True)
    return name, lambda here: {cell: here.mbits(*words, **keys)}


def long(here):
    yield rate("16 MiB, 1 stream", LONG, settings=["gateway_streams=1"])
    yield rate("16 MiB, 4 streams", LONG, settings=["gateway_streams=4"])
    yield rate("16 MiB, streams as chosen", LONG)


def lossy(here):
    yield rate("6 MiB, 75 ms, 0.5 % loss", LOSSY)


def two(here):
    yield rate("16 MiB over two links", LONG, to=1)


def hop(here):
    for name, other in (("direct", 1), ("by a gateway", 2)):
        cell = Cell(f"8 bytes, half round trip, {name}", "us")
        yield cell.name, lambda here, c=cell, o=other: {
            c: next(float(words[1]) for words in here.job("ping", 0, o, 8, 1) if words[0] == "ping")}


def border(here):
    for cell, measure in ((Cell("8 bytes, half round trip, by agents", "us"), gateway_border.ping),
                          (Cell("64 MiB by agents, 1 Gbit/s", "Mbit/s", True), gateway_border.mbits)):
        yield cell.name, lambda here, c=cell, m=measure: {c: m(here)}


def crowd(here):
    def measure(here):
        (one, cost), (both, _) = (gateway_border.crowd_mbits(here, ways) for ways in (1, 2))
        rate, slow = gateway_border.crowd_pings(here)
        return {Cell("8 pairs by agents, 16 MiB one way", "Mbit/s", True): one, Cell("agents of that", "ms/MiB"): cost,
                Cell("8 pairs by agents, 16 MiB both ways", "Mbit/s", True): both,
                Cell("8 pairs by agents, 8 bytes", "1/s", True): rate, Cell("the slowest of them", "us"): slow}
    yield "crowd", measure


def far_cells(here, name):
    for how, label in gateway_far.WAYS.items():
        cells = [Cell(f"64 KiB {name}, {label}{after}", "ms") for after in ("", ", after a rest")]
        yield label, lambda here, h=how, c=cells: dict(zip(c, gateway_far.far(here, h)))


def far(here):
    return far_cells(here, "far")


def behind(here):
    return far_cells(here, "behind gateways")


def compression(here):
    folder = os.path.dirname(here.grid)
    text, field = os.path.join(folder, "text"), os.path.join(folder, "field")
    text_bytes = gateways.gather_text(text)
    subprocess.run([here.program("gateways"), "field", "512", "1024", "1000", field], check=True)
    yield rate("random data, with compression", COMPRESSED)
    yield rate("text", text_bytes, text)
    yield rate("field of heat", os.path.getsize(field), field)


def fan(here):
    def measure(here):
        rows = [words for words in here.job("fan", 1024, 10) if words[0] == "fan"]
        return {Cell(name, "ms"): statistics.median(float(words[i]) for words in rows) * 1e3
                for i, name in ((1, "28 x 1 KiB to one rank"), (2, "the sender that is free last"))}
    yield "fan", measure


def beside(here):
    def measure(here):
        rows = {words[0]: float(words[1]) for words in here.job("beside", 1, 3, 0, 2, gateways.GIGABYTE, SHORT_S)
                if len(words) == 3}
        return {Cell(f"8 bytes, half round trip, {name}", "us"): rows[key]
                for key, name in (("idle", "idle gateways"), ("loaded", "while 1 GiB passes"))}
    yield "beside", measure


def stopped(here):
    """The rate that others have before the receiver stops and after, and the memory of the largest agent."""
    def measure(here):
        before, after, most = gateways.stopped_rates(here, SHORT_S)
        return {Cell("a rate beside 1 GiB", "Mbit/s", True): before,
                Cell("the same, its receiver stopped", "Mbit/s", True): after,
                Cell("memory of the largest agent then", "MiB"): most}
    yield "stopped", measure


def examples(here):
    for example, words in EXAMPLES.items():
        cell = Cell(f"{example} on three clusters", "s")

        def measure(here, example=example, words=words, cell=cell):
            lines = "\n".join(gateways.Job(here, [here.program(example), "--quiet", *words]).end())
            return {cell: float(re.search(r" seconds=([\d.]+)", lines)[1])}
        yield cell.name, measure


SECTIONS = {section.__name__: section
            for section in (long, lossy, two, hop, border, crowd, far, behind, compression, fan, beside, stopped, examples)}


def guarded(measure):
    """None for what failed, or while the lab was late."""
    def one(here):
        here.lab.ask("report", "--reset")
        try:
            found = measure(here)
        except PROBLEMS as problem:
            print(f"    {here.bin}: {problem}"[:400], flush=True)
            here.void()
            return None
        late = gateways.bench.is_late(here.lab.report()) or here.void()
        here.void()
        return None if late else found
    return one


def inside():
    options = json.loads(os.environ.pop(gateways.INSIDE))
    both = {name: gateways.Here({**options, **build}) for name, build in options["builds"].items()}
    comparison = builds.Comparison(both, options["rounds"])
    section = options["section"]
    print(f"{section}: {labfacts.facts(options['tombolo'])}", flush=True)
    for label, measure in SECTIONS[section](both["new"]):
        comparison.take(label, guarded(measure), options["rounds"] * (PINGS if section == "hop" else 1))
    with open(options["found"], "w", encoding="utf-8") as f:
        json.dump(comparison.found(), f)
    return 0


def compare(new, old, sections, rounds):
    """Of the sections that have something to compare; returns the exit status."""
    both = {}
    for name, build in (("new", new), ("old", old)):
        folder = gateways.compile_programs(build, os.path.join(new, "bench", f"gateways-{name}"))
        both[name] = {"bin": os.path.join(build, "bin"), "folder": folder}
        print(f"{name}: {build}")
    comparison = builds.Comparison(both, rounds)
    comparison.head()
    found = os.path.join(new, "bench", "gateways-found.json")
    for section in (name for name in sections if name in SECTIONS):
        if os.path.exists(found):
            os.unlink(found)
        gateways.in_lab(section, {"tombolo": os.path.join(new, "bin", "tombolo"), "folder": both["new"]["folder"], "builds": both,
                                  "rounds": rounds, "found": found}, __file__)
        try:
            with open(found, encoding="utf-8") as f:
                comparison.add(json.load(f))
        except OSError:
            comparison.miss(section, "the section broke off")
    return comparison.finish()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(inside())
