"""What it costs that ranks of two clusters of a grid file exchange frames through the agents of their hosts: sections of
bench/gateways. The same jobs run with a file whose link says `direct: yes`, and take turns with the others."""
import os
import statistics
import time

from gateway_lab import Job, bench, medians, tell

PORT = '{name: %s, ethernet: {bandwidth: 1000}, hosts: ["%s:1"]}'
MANY = '{name: %s, hosts: ["%s:8"]}'  # and ports without a rate
DIRECT = "links:\n  - {from: west, to: east, direct: yes}\n"
RANKS = 8  # of one of many
MIB = 1 << 20
LONG, COUNT = 64 * MIB, 5
PIECE, PIECES = 16 * MIB, 4
SHORT, SHORT_S = 8, 1
SEGMENT, ON_WIRE = 1448, 1538  # data of a full TCP segment; with headers, preamble, check sequence and gap
PORT_MBIT = 1000


def grid(cluster, direct=False):
    clusters = [cluster % names for names in (("west", "w1"), ("east", "e1"))]
    return "clusters:\n" + "".join(f"  - {text}\n" for text in clusters) + (DIRECT if direct else "")


def direct_grid(here, cluster):
    path = here.grid + ".direct"
    with open(path, "w", encoding="utf-8") as f:
        f.write(grid(cluster, direct=True))
    return path


def ping(here, path=None):
    """Half a round trip, in microseconds."""
    return next(float(words[1]) for words in here.job("ping", 0, 1, SHORT, SHORT_S, grid=path) if words[0] == "ping")


def mbits(here, path=None):
    return LONG * 8e-6 / statistics.median(float(words[1]) for words in here.job("long", 0, 1, LONG, "random", COUNT, grid=path)
                                           if words[0] == "long")


def section_border(here):
    direct = direct_grid(here, PORT)
    floor = PORT_MBIT * SEGMENT / ON_WIRE
    got = medians(2 * here.rounds + 1, agents=lambda: ping(here), direct=lambda: ping(here, direct))
    more = got["agents"] - got["direct"]
    tell("8 bytes, half round trip, by agents and direct", f"{got['agents']:.1f}, {got['direct']:.1f} us: {more:+.1f}", more <= 60,
         "<= 60 us more", here.void())
    got = medians(here.rounds, agents=lambda: mbits(here), direct=lambda: mbits(here, direct))
    ratio = got["agents"] / got["direct"]
    tell("64 MiB, 1 Gbit/s, by agents, direct: Mbit/s", f"{got['agents']:.1f}, {got['direct']:.1f}: {ratio:.3f}", ratio >= 0.95,
         ">= 0.95 of direct", here.void())
    print(f"    the wire carries {floor:.1f} Mbit/s of data in full segments: {got['agents'] / floor:.3f} and "
          f"{got['direct'] / floor:.3f} of that", flush=True)


def time_of(pid):
    """Seconds of a processor that a process has had."""
    try:
        with open(f"/proc/{pid}/schedstat", encoding="ascii") as f:
            return int(f.read().split()[0]) * 1e-9
    except (OSError, ValueError, IndexError):
        return 0.0


def watched(here, *words, path=None):
    """Lines of a job, as lists of words, and the seconds of a processor that its agents had."""
    here.lab.ask("report", "--reset")
    job, times = Job(here, [here.program("gateways"), *map(str, words)], grid=path), {}
    while job.process.poll() is None:
        for pid in here.agents():
            times[pid] = max(times.get(pid, 0.0), time_of(pid))
        time.sleep(0.02)
    lines = [line.split() for line in job.end()]
    here.late = bench.is_late(here.lab.report()) or here.late
    return lines, sum(times.values())


def crowd_mbits(here, ways, path=None):
    """Of all pairs together, until the last has it; and milliseconds of agents for a MiB."""
    lines, seconds = watched(here, "pairs", PIECE, ways, PIECES, path=path)
    took = statistics.median(float(words[1]) for words in lines if words[0] == "pairs")
    return ways * RANKS * PIECE * 8e-6 / took, seconds * 1e3 / (ways * RANKS * PIECE * PIECES / MIB)


def crowd_pings(here, path=None):
    """Half round trips in a second of all pairs together, and the median of the slowest pair in microseconds."""
    return next(tuple(map(float, words[1:])) for words in here.job("pings", SHORT, SHORT_S, grid=path) if words[0] == "pings")


def by_both(here, measure, path):
    """{name: the median of each figure}; they take turns."""
    found = {"agents": [], "direct": []}
    for _ in range(here.rounds):
        found["agents"].append(measure(None))
        found["direct"].append(measure(path))
    return {name: [statistics.median(values) for values in zip(*rows)] for name, rows in found.items()}


def section_crowd(here):
    """Reported, without a bar: how many processors there are for two agents and 16 ranks decides."""
    direct = direct_grid(here, MANY)
    print(f"    {RANKS} ranks a host, ports without a rate, {os.cpu_count()} processors for all of it", flush=True)
    for ways, name in ((1, "one way"), (2, "both ways at once")):
        got = by_both(here, lambda path, ways=ways: crowd_mbits(here, ways, path), direct)
        (ours, cost), (theirs, _) = got["agents"], got["direct"]
        tell(f"{RANKS} pairs, 16 MiB {name}: Mbit/s of all", f"{ours:.0f}, {theirs:.0f}: {ours / theirs:.3f}; agents {cost:.2f} ms/MiB",
             None, "", here.void())
    got = by_both(here, lambda path: crowd_pings(here, path), direct)
    (ours, slow), (theirs, quick) = got["agents"], got["direct"]
    tell(f"{RANKS} pairs, 8 bytes: a second, of all", f"{ours:.0f}, {theirs:.0f}; slowest pair {slow:.0f}, {quick:.0f} us", None, "",
         here.void())
