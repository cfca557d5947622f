"""What the parts of bench/multicast share: clusters, the wire time of a copy, jobs in a lab and what they print, and verdicts."""
import json
import os
import statistics
import time
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader

import labfacts

HERE = os.path.dirname(os.path.abspath(__file__))
KIB, MIB = 1 << 10, 1 << 20
OURS, TCP, BARE = "Tombolo", "TCP only", "bare"
OTHERS = ("MPICH", "Open MPI")  # whose failures are no fault of ours
PIECE = 1420  # payload of a datagram of IPv4, on an MTU of 1500
HEADER, MTU = 52, 1500  # TB_DATAGRAM_BYTES
LOWER, ETHERNET, SHORTEST = 28, 14 + 24, 84  # IP and UDP; frame, preamble, check sequence and gap; of the wire, at least
# For estimates and limits: a job's start and end; between calls; what a call takes of the wire time of a copy.
START_S, BETWEEN_S, JOB_S = 4, 0.03, 90
USUAL = {OURS: 1.1, TCP: 1.4, **dict(zip(OTHERS, (3, 8))), BARE: 1.1}
WORST = 40


def load(name):
    """Another program of this folder as a module."""
    loader = SourceFileLoader(name, os.path.join(HERE, name))
    module = module_from_spec(spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


peers, levels, run = load("peers"), load("levels"), load("run")


# ---- clusters and wires ----------------------------------------------------------------------------------------------


def cluster(hosts, mbit, more="", others=()):
    """A grid file: so many hosts with a rank each; `others`: what it says of more of them."""
    said = ", ".join([f"'c[1-{hosts}]:1'", *others])
    return f"clusters:\n  - {{name: cluster, hosts: [{said}], ethernet: {{bandwidth: {mbit}, latency: 0.05{more}}}}}\n"


def pieces(n):
    return max(1, -(-n // PIECE))


def wire_us(n, mbit):
    """Microseconds of one copy, in datagrams of our format."""
    whole, rest = divmod(n, PIECE) if n else (0, 0)
    lengths = [PIECE] * whole + [rest] * (rest > 0 or n == 0)
    return sum(max(SHORTEST, length + HEADER + LOWER + ETHERNET) for length in lengths) * 8 / mbit


def size_name(n):
    return levels.name_of(levels.Cell("bcast", n)).partition(" ")[2]


# ---- jobs ------------------------------------------------------------------------------------------------------------


class Rows:
    """What jobs of bench/multicast.c have printed. Times in microseconds, instants in seconds."""

    def __init__(self):
        self.times, self.first, self.frames, self.pongs, self.skews, self.flows, self.counters = {}, {}, {}, {}, {}, [], {}
        self.segments = {}  # of TCP, among the frames

    def add(self, text):
        for words in (line.split() for line in text.splitlines()):
            if len(words) < 3:
                continue
            what, n = words[0], int(words[1]) if words[1].isdigit() else 0
            if what == "frames":
                self.frames.setdefault(n, []).append(int(words[2]))
                self.segments.setdefault(n, []).append(int(words[3]))
            elif what == "pong":
                self.pongs.setdefault(n, {}).setdefault(int(words[2]), []).append(float(words[3]))
            elif what == "skew":
                self.skews.setdefault(n, []).append(float(words[2]))
            elif what in ("begin", "flow"):
                self.flows.append(float(words[2]))
            elif what == "counter":
                key = words[1], int(words[2]), words[3]
                before = self.counters.get(key, (0, 0))
                self.counters[key] = before[0] + int(words[4]), max(before[1], int(words[5]))
            elif len(words) == 4:
                self.times.setdefault((what, n), []).append(float(words[2]))
                self.first.setdefault((what, n), []).append(float(words[3]))

    def time(self, what, n):
        """The median, or None."""
        return statistics.median(self.times[what, n]) if self.times.get((what, n)) else None

    def spread(self, what, n):
        """How much longer the slowest receiver takes than the fastest: the median of the ratios, or None."""
        pairs = list(zip(self.times.get((what, n), []), self.first.get((what, n), [])))
        return statistics.median(slow / fast for slow, fast in pairs) if pairs else None

    def counted(self, what, n, name):
        """Of all ranks, and of the one with most."""
        return self.counters.get((what, n, name), (0, 0))


def word(what, n, count, argument=0):
    return f"{what}:{n}:{count}:{argument:g}"


class Here:
    """The lab of a part on one grid: jobs, and what is said and judged of them."""

    def __init__(self):
        self.inside = peers.Inside()
        self.options, self.lab = self.inside.options, self.inside.lab
        self.quick, self.rounds = self.options["quick"], self.options["rounds"]
        self.hosts, self.mbit = self.inside.grid.hosts, self.options["mbit"]
        self.stories, self.jobs, self.busy = {}, 0, 0
        self.lines, self.missed, self.judged, self.notes = [], [], 0, {}

    def lib(self, name=OURS, settings=()):
        """A column: Tombolo as it is, over TCP alone, or another library."""
        own = self.inside.libs["Tombolo" if name == TCP else name]
        words = [w for setting in [*settings, *(["mcast=off"] * (name == TCP))] for w in ("--set", setting)]
        return {**own, "command": [*own["command"], *words]}

    def columns(self):
        return [OURS, TCP, *(name for name in self.inside.libs if name != OURS)]

    def seconds(self, words, ratio, mbit=None):
        """What the cells of a job take if a call takes so many times the wire time of a copy."""
        total = 0
        for what, n, count, argument in (w.split(":") for w in words):
            calls = (int(count) + 1) * (len(self.hosts) if what == "pong" else 1)
            more = float(argument) * {"stop": 1e-3, "frames": 2e-3, "skew": 1e-6}.get(what, 0)
            total += calls * (ratio * wire_us(int(n), mbit or self.mbit) * 1e-6 + BETWEEN_S + more) + float(argument) * (what == "flow")
        return total

    def job(self, label, lib, words, program="multicast"):
        """What it prints; '' if that does not count."""
        self.busy, self.jobs = self.busy + peers.others_run(), self.jobs + 1
        limit = JOB_S + self.seconds(words, WORST)

        def run():
            text, story = peers.job_text(lib, self.inside.prefix, program, words, limit)
            if story:
                self.stories.setdefault(label, story)
                if label not in OTHERS:
                    self.missed.append(f"{label}: {story}")
            return text

        return self.on_time(label, run)

    def on_time(self, label, run):
        """What `run` gives, again if the lab was late meanwhile; '' if it always was."""
        found, late = peers.on_time(label, lambda: (run(), self.inside.late()))
        if late:
            self.stories[label] = f"VOID: {late}"
        return "" if late else found

    def say(self, text=""):
        self.lines.append(text)
        print(text, flush=True)

    def table(self, heads):
        """Begins one, of markdown."""
        self.say()
        self.row(heads)
        self.say("|" + "|".join(" --- " for _ in heads) + "|")

    def row(self, words):
        self.say("| " + " | ".join(map(str, words)) + " |")

    def judge(self, what, value, bar, met=None):
        """Of a figure that may not be above the bar; None is a figure that is missing."""
        self.judged += 1
        met = value is not None and (value <= bar if met is None else met)
        if not met:
            self.missed.append(f"{what}: {'no figure' if value is None else f'{value:.4g}, not {bar:.4g}'}")
        return "" if met else "missed"

    def finish(self, begin):
        peers.note_noise(self.stories, self.busy, max(self.jobs, 1))
        for name, story in self.stories.items():
            print(f"{name}: {story}")
        print(f"{time.monotonic() - begin:.0f} s", flush=True)
        with open(self.options["result"], "w", encoding="utf-8") as f:
            json.dump({"lines": self.lines, "missed": self.missed, "judged": self.judged, "notes": self.notes,
                       "void": peers.void(self.stories), "facts": labfacts.facts(self.inside.tombolo)}, f)


def figure(value, form="{:.3f}"):
    return "-" if value is None else form.format(value)


def ratio(one, other):
    return one / other if one is not None and other else None
