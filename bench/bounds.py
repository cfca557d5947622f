"""The time below which no algorithm at all can get: that of src/planner, as `tombolo explain` tells it."""
import json
import subprocess
from collections import namedtuple

EXPLAIN_S = 120
# What bench/peers.c measures beside the operations of MPI, and forms that need as much as another one if all counts are equal.
SAME = {"gatherv": "gather", "scatterv": "scatter", "allgatherv": "allgather", "alltoallv": "alltoall"}
PARTS = {"messages": ("gather", "scatter")}  # one after the other
NONE = {"mixture"}  # ranks are in different parts of it at one time

Bound = namedtuple("Bound", "seconds latency")  # and how much of it is not the wires' time


def explain(tombolo, operation, n, grid, way, settings, root=0, text=None):
    """All that is told of a call on a grid in a lab: its file, or the text of one."""
    words = [tombolo, "explain", operation, "--bytes", str(n), "--root", str(root), "--grid", "/dev/stdin" if text else grid.path,
             "--lab", "--json"]
    words += ["--deal"] * (way == "dealt") + [word for setting in settings for word in ("--set", setting)]
    done = subprocess.run(words, input=text or "", capture_output=True, text=True, check=False, timeout=EXPLAIN_S)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


class Bounds:
    """Of a grid; each is asked for once."""

    def __init__(self, tombolo, grid, settings=()):
        self.tombolo, self.grid, self.settings, self.known = tombolo, grid, settings, {}

    def ask(self, operation, n, way, root=0):
        text = None
        if operation == "point":  # a broadcast between the root and the rank before it, of the first rank the last
            ranks = self.grid.ranks(way)
            operation, way, text = "bcast", "blocks", self.grid.pair(ranks[root], ranks[root - 1])
            root = 0
        said = explain(self.tombolo, SAME.get(operation, operation), n, self.grid, way, self.settings, root, text)["bound"]
        return Bound(said["seconds"], said["latency"])

    def of(self, operation, n, way="blocks", root=0):
        """A Bound; None where there is none."""
        if operation in NONE:
            return None
        key = operation, n, way, root
        if key not in self.known:
            parts = [self.ask(part, n, way, root) for part in PARTS.get(operation, (operation,))]
            self.known[key] = Bound(*map(sum, zip(*parts)))
        return self.known[key]
