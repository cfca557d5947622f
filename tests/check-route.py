#!/usr/bin/env python3
"""Checks `tombolo route`: the virtual clusters, tables 2-4 and the routing example of the MPITH thesis come out of its
figure 5; ways through chains and by several gateways; what has no route is named; pictures. A case for each."""
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import cases

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOMBOLO = os.path.join(os.environ.get("BUILD_DIR") or os.path.join(ROOT, "build"), "bin", "tombolo")
GRIDS = os.path.join(ROOT, "examples", "grids")
THESIS = os.path.join(GRIDS, "three-clusters.yaml")

# The thesis: table 2 is {from: {to: next}}; table 4 says in which virtual clusters a host is.
TABLE_2 = {1: {1: 1, 2: 3, 3: 3}, 2: {1: 3, 2: 2, 3: 3}, 3: {1: 1, 2: 2, 3: 3}}
TABLE_4 = {"jupiter1": {2, 3}, "jupiter2": {2}, "venus1": {1, 3}, "venus2": {1}, "mercury1": {3}, "mercury2": {3}}

ISLANDS = """clusters:
- {name: a, hosts: [a1, a2]}
- {name: b, hosts: [b1], gateways: []}
- {name: c, hosts: [c1], nat: true}
"""


def tombolo(*words):
    return subprocess.run([TOMBOLO, "route", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                          check=False)


def write(folder, text):
    path = os.path.join(folder, "grid.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def clusters(text):
    return {int(n): names.split() for n, names in re.findall(r"^  VC(\d+): \d+ hosts?: (.*)$", text, re.M)}


def homes(text):
    found = re.findall(r"^  (\w+): (?:ranks? ([\d-]+)|no ranks);((?: VC\d+)+)$", text, re.M)
    return {name: (ranks, {int(n) for n in re.findall(r"VC(\d+)", where)}) for name, ranks, where in found}


def table(text):
    part = text.partition("routing table")[2].partition("hosts (")[0].splitlines()[1:]
    columns = [int(n) for n in re.findall(r"VC(\d+)", part[0])]
    rows = [[int(n) for n in re.findall(r"VC(\d+)", line)] for line in part[1:]]
    return {row[0]: dict(zip(columns, row[1:])) for row in rows}


def hops(*words):
    """The hosts of a way."""
    done = tombolo(*words)
    found = re.findall(r"^  (\w+) to (\w+)", done.stdout, re.M)
    return [a for a, _ in found] + [found[-1][1]] if done.returncode == 0 and found else done


def numbering(text):
    """Which of our virtual clusters is which of the thesis's, by their hosts."""
    ours = clusters(text)
    theirs = {n: {h for h, where in TABLE_4.items() if n in where} for n in (1, 2, 3)}
    return {t: o for t, hosts in theirs.items() for o, names in ours.items() if hosts <= set(names)}


def thesis_clusters(_):
    """Figure 10, with three hosts a cluster."""
    done = tombolo(THESIS)
    expected = [{"mercury1", "mercury2", "mercury3", "venus1", "jupiter1"}, {"venus1", "venus2", "venus3"},
                {"jupiter1", "jupiter2", "jupiter3"}]
    return (done.returncode == 0 and [set(names) for names in clusters(done.stdout).values()] == expected) or done


def thesis_graph(_):
    """Figure 14: the two closed clusters are neighbours of the third by their gateways, not of each other."""
    text = tombolo(THESIS).stdout
    edges = {(frozenset((int(a), int(b))), by) for a, b, by in re.findall(r"^  VC(\d+) - VC(\d+) by (.*)$", text, re.M)}
    n = numbering(text)
    return edges == {(frozenset((n[1], n[3])), "venus1"), (frozenset((n[2], n[3])), "jupiter1")} or edges


def thesis_table_2(_):
    text = tombolo(THESIS).stdout
    n = numbering(text)
    expected = {n[a]: {n[b]: n[c] for b, c in row.items()} for a, row in TABLE_2.items()}
    return table(text) == expected or text


def thesis_table_3(_):
    """The process mapping: each rank has one host, in the order of the file."""
    found = [(name, ranks) for name, (ranks, _) in homes(tombolo(THESIS).stdout).items()]
    names = [f"{cluster}{i}" for cluster in ("mercury", "venus", "jupiter") for i in (1, 2, 3)]
    return found == [(name, str(i)) for i, name in enumerate(names)] or found


def thesis_table_4(_):
    text = tombolo(THESIS).stdout
    n, found = numbering(text), homes(text)
    return all(found[name][1] == {n[v] for v in where} for name, where in TABLE_4.items()) or found


def thesis_example(_):
    """Jupiter2 hands what is meant for Venus1 to Jupiter1, which is in both virtual clusters."""
    found = hops(THESIS, "jupiter2", "venus1")
    by_rank = hops(THESIS, "7", "3")
    return found == by_rank == ["jupiter2", "jupiter1", "venus1"] or (found, by_rank)


def thesis_far(_):
    found = hops(THESIS, "venus2", "jupiter3")
    return found == ["venus2", "venus1", "jupiter1", "jupiter3"] or found


def chain(_):
    path = os.path.join(GRIDS, "chain.yaml")
    there, back = hops(path, "a1", "d2"), hops(path, "d2", "a1")
    return (there == ["a1", "ab", "bc", "cd", "d2"] and back == there[::-1]) or (there, back)


def two_gateways(folder):
    """The better line is taken; without lines of their own both gateways are equally good."""
    path = os.path.join(GRIDS, "two-gateways.yaml")
    with open(path, encoding="utf-8") as f:
        equal = write(folder, f.read().partition("links:")[0])
    done = tombolo(equal, "f1", "o1")
    return (hops(path, "f1", "o1") == ["f1", "gate1", "o1"] and "f1 to gate1 in VC2" in done.stdout and
            "; or gate2, equally good" in done.stdout) or done


def islands(folder):
    path = write(folder, ISLANDS)
    done, pair, one_way = tombolo(path), tombolo(path, "b1", "c1"), tombolo(path, "a2", "c1")
    return (done.returncode == 1 and "the first pair is a1 and b1" in done.stdout and "  3 hosts: a1 a2 c1\n" in done.stdout and
            "  1 host: b1\n" in done.stdout and "one way only: c1 to a1 and those like it" in done.stdout and
            pair.returncode == 1 and "b1 to c1: no route" in pair.stdout and one_way.returncode == 0 and
            "a2 to c1, which only c1 can open" in one_way.stdout) or (done, pair, one_way)


def large(folder):
    """Long lists are cut short unless asked for."""
    path = write(folder, "clusters:\n" + "".join(
        f"- {{name: c{i}, hosts: ['h{i}x[1-100]'], gateways: [h{i}x1], nat: true}}\n" for i in range(100)))
    done, full = tombolo(path), tombolo(path, "--table")
    return (done.returncode == 0 and "10000 hosts of 200 kinds, 101 virtual clusters" in done.stdout and
            "and 88 more" in done.stdout and len(done.stdout) < 30000 and len(homes(full.stdout)) == 10000 and
            len(table(full.stdout)) == 101) or (done.stdout[:2000], full.returncode)


def picture(folder):
    svg = os.path.join(folder, "picture.svg")
    done, piped = tombolo(THESIS, "venus2", "jupiter2", "--svg", svg), tombolo(THESIS, "--svg", "-")
    texts = {e.text for e in ElementTree.parse(svg).iter("{http://www.w3.org/2000/svg}text")}
    ElementTree.fromstring(piped.stdout.encode())
    wanted = {"VC1", "VC2", "VC3", "venus1", "from venus2 to jupiter2 in 3 hops", "Virtual clusters of three-clusters.yaml"}
    return (done.returncode == 0 and "3 hops" in done.stdout and wanted <= texts and piped.returncode == 0) or texts


def points_of(path):
    """Many points of a line that goes straight from point to point."""
    ends = [tuple(map(float, pair)) for pair in re.findall(r"(-?[\d.]+),(-?[\d.]+)", path)]
    return [(x1 + (x2 - x1) * t / 50, y1 + (y2 - y1) * t / 50) for (x1, y1), (x2, y2) in zip(ends, ends[1:]) for t in range(51)]


def inside(rect, point, by=0.5):
    x, y, w, h = rect
    return x + by < point[0] < x + w - by and y + by < point[1] < y + h - by


def lines_in_gaps(folder):
    """No line goes through a box in which it neither begins nor ends, nor through a chip."""
    ways = {"three-clusters": ("venus2", "jupiter2"), "chain": ("a1", "d2"), "two-gateways": ("f1", "o1"), "laptop-relay": ("w2", "e2")}
    for name in sorted(os.listdir(GRIDS)):
        svg = os.path.join(folder, "picture.svg")
        tombolo(os.path.join(GRIDS, name), *ways.get(name[:-5], ()), "--svg", svg)
        tree = ElementTree.parse(svg).getroot()
        rects = [(e.get("class"), [float(e.get(k)) for k in ("x", "y", "width", "height")]) for e in tree.iter("{http://www.w3.org/2000/svg}rect")
                 if e.get("class") in ("box", "host", "gate")]
        for line in tree.iter("{http://www.w3.org/2000/svg}path"):
            points = points_of(line.get("d"))
            for kind, rect in rects:
                touched = any(inside(rect, point) for point in points)
                ends_there = kind == "box" and any(inside(rect, end) for end in (points[0], points[-1]))
                if touched and not ends_there:
                    return f"{name}: {line.get('d')} goes through the {kind} at {rect}"
    return True


def legend(folder):
    svg = os.path.join(folder, "picture.svg")
    tombolo(THESIS, "--svg", svg)
    texts = {e.text for e in ElementTree.parse(svg).iter("{http://www.w3.org/2000/svg}text")}
    return {"the same hosts", "a way", "in several: passes messages on"} <= texts or texts


def usage(folder):
    bad = write(folder, "clusters: 7\n")
    codes = [tombolo(*words).returncode for words in
             ((), ("--help",), ("-x",), (THESIS, "venus1"), (THESIS, "a", "b", "c"), (THESIS, "--svg"), (THESIS, "venus1", "no"),
              (THESIS, "venus1", "9"), (THESIS, "venus1", "-1"), (bad,), ("/nonexistent",), (THESIS, "--svg", "/nonexistent/x"),
              (THESIS, "venus1", "venus1"))]
    return codes == [2, 0, 2, 2, 2, 2, 1, 1, 2, 1, 1, 1, 0] or codes


def main():
    calls = {"thesis-clusters": thesis_clusters, "thesis-graph": thesis_graph, "thesis-table-2": thesis_table_2,
             "thesis-table-3": thesis_table_3, "thesis-table-4": thesis_table_4, "thesis-example": thesis_example,
             "thesis-far": thesis_far, "chain": chain, "two-gateways": two_gateways, "islands": islands, "large": large,
             "picture": picture, "lines-in-gaps": lines_in_gaps, "legend": legend, "usage": usage}
    if "built without libyaml" in tombolo(THESIS).stderr:
        print("skipped: this build has no libyaml")
        return 77
    return cases.tell_verdicts(calls, (OSError, KeyError, IndexError, ElementTree.ParseError, subprocess.SubprocessError))


if __name__ == "__main__":
    sys.exit(main())
