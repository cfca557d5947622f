#!/usr/bin/env python3
"""Checks `tombolo sim`: the table and the same for programs, every operation, models, trees and matrices written by hand
(the thesis's figures 17 to 19 and 23 to 25), random grids, pictures, and what is wrong in files and on the command line.
A case for each."""
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

sys.dont_write_bytecode = True
import cases

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOMBOLO = os.path.join(os.environ.get("BUILD_DIR") or os.path.join(ROOT, "build"), "bin", "tombolo")
THREE = os.path.join(ROOT, "examples", "grids", "three-sites.yaml")
PLANNERS = ["binomial", "ecef", "ecef-clusters", "lpbf", "gadt", "gadt-clusters", "optimum", "own"]
QUICK = ("--planner", "binomial,ecef,ecef-clusters,lpbf")
TREES = ["bcast", "reduce", "allreduce", "barrier", "gather", "scatter"]


def run(*words, standard_input=""):
    return subprocess.run([TOMBOLO, "sim", *words], input=standard_input, capture_output=True, text=True, timeout=60, check=False)


def sim(*words):
    done = run(*words)
    if done.returncode != 0:
        raise ValueError(f"{words}: {done.returncode}, {done.stderr}")
    return done.stdout


def told(*words):
    return json.loads(sim(*words, "--json"))


def rows_of(answer):
    return {row.get("planner") or row["algorithm"]: row for row in answer["rows"]}


def table():
    """A line for each planner and one for the library; the best has a star and ratio 1, and none is below the bound."""
    text = sim(THREE, "--bytes", "64k", "--evaluations", "200")
    rows = re.findall(r"^([* ]) ([a-z][\w-]*(?::\S+)?) +([\d.]+) us +([\d.]+) +([\d.]+) +(?:\d+|-)  ", text, re.M)
    names = [name for _, name, *_ in rows]
    if names[:8] != PLANNERS and "optimum" in names:
        yield f"planners should stand in their order: {text}"
    if [mark for mark, *_ in rows].count("*") != 1 or any((mark == "*") != (best == "1.000") and mark == "*" for mark, _, _, best, _ in rows):
        yield f"one is the best: {text}"
    if any(float(bound) < 1 for *_, bound in rows) or "at least" not in text:
        yield f"nothing is below the bound: {text}"
    if "The library itself would run " not in text or "model grid" not in text:
        yield f"the library should be there: {text}"


def for_programs():
    """The same figures, with the trees."""
    answer = told(THREE, "--bytes", "64k", *QUICK)
    rows = rows_of(answer)
    best = min(row["seconds"] for row in answer["rows"])
    if not set(QUICK[1].split(",")) < rows.keys() or sum(row.get("runs", False) for row in answer["rows"]) != 1:
        yield f"four planners and the library: {rows.keys()}"
    for name, row in rows.items():
        if abs(row["to_best"] - row["seconds"] / best) > 1e-4 or row["seconds"] < answer["bound"]["seconds"] * 0.999999:
            yield f"{name}: {row} beside {answer['bound']}"
        for tree in row.get("trees", []):
            served = sorted(child for children in tree["serves"].values() for child in children)
            if served != [i for i in range(answer["nodes"]) if i != answer["root"]]:
                yield f"{name}: everyone but the root should be served once: {tree}"
    if any(not 0 < row["processor_seconds"] < 2 * row["planning_seconds"] + 0.01 for row in answer["rows"] if row.get("evaluations")):
        yield f"how long each planner took: {rows}"
    if len(answer["names"]) != answer["nodes"] or answer["peak_bytes"] < 1 << 20:
        yield f"names and memory: {answer['names']}, {answer['peak_bytes']}"


def rated_again():
    """A tree of whole messages that a planner has found takes as long if it is given by hand."""
    with tempfile.TemporaryDirectory() as folder:
        schedule = os.path.join(folder, "schedule")
        for words in ((THREE, "--bytes", "64k"), (THREE, "--op", "reduce", "--root", "j2", "--bytes", "100k"), (THREE, "--op", "gather", "--bytes", "3k")):
            for name, row in rows_of(told(*words, "--evaluations", "150")).items():
                if row.get("piece", 1) != 0 or len(row["trees"]) != 1:
                    continue
                with open(schedule, "w", encoding="utf-8") as f:
                    f.writelines(f"{sender}: {' '.join(map(str, served))}\n" for sender, served in row["trees"][0]["serves"].items())
                again = rows_of(told(*words, "--schedule", schedule, "--planner", "lpbf"))[schedule]["seconds"]
                if again != row["seconds"]:
                    yield f"{words}, {name}: {row['seconds']}, and by hand {again}"


def operations():
    """Trees of six operations; the algorithms of all others, beside the bound."""
    for operation in TREES:
        rows = rows_of(told(THREE, "--op", operation, "--bytes", "1k", "--planner", "lpbf,own", "--evaluations", "30"))
        if not {"lpbf", "own"} < rows.keys() or rows["own"]["seconds"] > rows["lpbf"]["seconds"]:
            yield f"{operation}: own should be there and never above lpbf: {rows}"
    for operation in ("allgather", "alltoall", "alltoallw", "gatherv", "reduce_scatter", "scan", "exscan"):
        answer = told(THREE, "--op", operation, "--bytes", "1k")
        if any("planner" in row for row in answer["rows"]) or [row["runs"] for row in answer["rows"]].count(True) != 1:
            yield f"{operation}: only algorithms, of which one runs: {answer['rows']}"


def odd_sizes():
    """One host, few of them, no bytes."""
    with tempfile.TemporaryDirectory() as folder:
        for hosts in (1, 3, 7):
            grid = os.path.join(folder, f"{hosts}.yaml")
            with open(grid, "w", encoding="utf-8") as f:
                f.write(f"clusters: [{{name: a, hosts: 'a[1-{hosts}]:2'}}]\n")
            for words in (("--bytes", "0"), ("--op", "barrier"), ("--op", "scatter", "--bytes", "7"), ("--model", "thesis"), ("--model", "postal")):
                answer = told(grid, *words, *QUICK)
                if (hosts > 1 and len(answer["rows"]) < 4) or not answer["rows"] or any(row["seconds"] < answer["bound"]["seconds"] for row in answer["rows"] if "seconds" in row):
                    yield f"{hosts} hosts, {words}: {answer}"


def models():
    """What each model knows of: without latencies a byte takes next to nothing, and whoever is free early is done early."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as grid:
        grid.write("clusters:\n" + "".join(f"- {{name: {name}, hosts: '{name}1'}}\n" for name in "abc") + "links:\n" +
                   "".join(f"- {{from: {a}, to: {b}, bandwidth: 8, latency: 100}}\n" for a, b in ("ab", "ac", "bc")))
        grid.flush()
        times = {model: rows_of(told(grid.name, "--bytes", "100000", "--model", model, "--planner", "lpbf"))["lpbf"]["seconds"]
                 for model in ("thesis", "latency", "postal", "grid")}
    if not (abs(times["thesis"] - 0.2) < 0.002 and abs(times["latency"] - 0.4) < 0.01 and abs(times["postal"] - 0.3) < 0.01 and
            0.2 < times["grid"] < 0.25):
        yield f"100 ms each, twice, and a latency of 100 ms; on a grid with two links at the same time: {times}"


def matrix_text(times, fill=1000):
    """Mbit/s of a message of 125 MB that takes so many seconds from node to node."""
    nodes = 1 + max(max(pair) for pair in times)
    return "\n".join(" ".join("-" if a == b else f"{1000 / times.get((a, b), fill):.12g}" for b in range(nodes)) for a in range(nodes)) + "\n"


def by_hand():
    """Figures 17 to 19: the tree and order of the GADT example, each link taking one unit. Figures 23 to 25: what LPBF makes of a
    tree, whose links the text gives, and those that it does not as in treesim_test.c: 10 (to node 4) and 1 (to node 5)."""
    with tempfile.TemporaryDirectory() as folder:
        matrix, schedule = os.path.join(folder, "matrix"), os.path.join(folder, "schedule")

        def rate(times, text):
            for path, content in ((matrix, matrix_text(times)), (schedule, text)):
                with open(path, "w", encoding="utf-8") as f:
                    f.write(content)
            return rows_of(told("--matrix", matrix, "--schedule", schedule, "--bytes", "125000000", "--planner", "optimum"))

        ones = {(a, b): 1 for a in range(8) for b in range(8) if a != b}
        rows = rate(ones, "0: 7 1 4   # figure 17\n\n7: 3\n1: 2\n2: 5 6\n")
        # 7 at 1, 1 and 3 at 2, 4 and 2 at 3, 5 at 4, 6 at 5
        if round(rows[schedule]["seconds"], 4) != 5 or rows[schedule]["trees"][0]["serves"] != {"0": [7, 1, 4], "7": [3], "1": [2], "2": [5, 6]}:
            yield f"figures 17 to 19: {rows[schedule]}"
        if "seconds" in rows["optimum"] and round(rows["optimum"]["seconds"], 4) != 3:
            yield f"eight nodes need three rounds: {rows['optimum']}"
        links = {(0, 5): 1, (0, 4): 10, (5, 1): 1, (4, 2): 30, (4, 6): 1, (2, 3): 1, (2, 7): 1}
        for text, seconds in (("0: 4 5\n5: 1\n4: 2 6\n2: 3 7\n", 42), ("0: 5 4\n5: 1\n4: 2 6\n2: 3 7\n", 43), ("0: 5 4\n5: 1\n4: 6 2\n2: 3 7\n", 44)):
            rows = rate(links, text)
            if round(rows[schedule]["seconds"], 4) != seconds:
                yield f"figures 23 to 25: {text!r} should take {seconds}: {rows[schedule]}"


def seeds():
    """The same seed gives the same, another one other grids; that they are drawn, and how, is said."""
    words = ("--random", "6", "--grids", "3", *QUICK)
    one, again, other = (told(*words, "--seed", seed)["series"] for seed in ("1", "1", "2"))

    def times(series):
        return [[row["mean_seconds"] for row in s["planners"]] for s in series]

    if times(one) != times(again) or times(one) == times(other) or len(one) != 10:
        yield f"{times(one)}, {times(again)}, {times(other)}"
    text = sim(*words)
    for said in ("table 6", "from 1 to 1000", "symmetric, ratio of mean times", "asymmetric, ratio of mean times", "deviation"):
        if said not in text:
            yield f"random grids should say {said!r}: {text}"
    rows = re.findall(r"^  (\S+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) +[\d.]+ ms$", text, re.M)
    wanted = [(row["planner"], symmetric) for symmetric in (True, False) for row in one[0]["planners"]]
    if "mean ratio to the bound" not in text or [row[0] for row in rows] != [name for name, _ in wanted]:
        yield f"a row of each planner and kind, with its ratio to the bound: {text}"
    for row, (name, symmetric) in zip(rows, wanted):
        some = [r["to_bound"] for s in one if s["symmetric"] == symmetric for r in s["planners"] if r["planner"] == name]
        if abs(float(row[4]) - sum(some) / len(some)) > 0.001 or float(row[4]) < float(row[1]) - 0.001:
            yield f"{name}: the ratio to the bound is {row[4]}, of series {some}"
    for series in one:  # both are means, so that one can be drawn beside the other
        if not 0 < series["mean_bound_seconds"] <= min(row["mean_seconds"] for row in series["planners"]) * 1.000001:
            yield f"the mean of bounds should not be above that of times: {series}"
    grid = told(*words[:2], "--clusters", "8", "--symmetric", *QUICK)
    single, = told(*words[:2], "--clusters", "8", "--symmetric", "--asymmetric", "--grids", "1", *QUICK)["series"][:1]
    if abs(single["mean_bound_seconds"] - grid["bound"]["seconds"]) > 1e-9 or grid["bound"]["seconds"] <= 0:
        yield f"of one grid it is the bound: {single}, {grid['bound']}"
    if "more than" not in sim("--random", "40", "--clusters", "4", "--symmetric", "--planner", "lpbf,optimum"):
        yield "the optimum of 40 nodes should not be tried"


def to_the_optimum():
    """Of eight nodes: nothing beats the optimum, nothing is below the bound, and ratios are to it."""
    answer = told("--random", "7", "--grids", "4", "--clusters", "2,8,32", "--planner", "lpbf,ecef,optimum,own", "--time", "20ms")
    for series in answer["series"]:
        rows = {row["planner"]: row for row in series["planners"]}
        if series["bound_above"] or any(row["ratio_of_means"] < 1 or row["worst"] < row["mean_ratio"] - 1e-6 for row in rows.values()):
            yield f"{series}"
        if rows["own"]["mean_ratio"] > rows["lpbf"]["mean_ratio"] + 1e-9:
            yield f"own should not be worse than lpbf: {rows}"


def pictures():
    """XML, with all nodes of a small grid, of which each but the root is served by somebody; part of a large one."""
    with tempfile.TemporaryDirectory() as folder:
        prefix = os.path.join(folder, "p")
        for words, nodes in (((THREE, "--bytes", "64k", "--planner", "lpbf"), None), (("--random", "12", "--clusters", "8", "--symmetric", *QUICK), 12),
                             (("--random", "600", "--clusters", "8", "--symmetric", "--planner", "lpbf"), 600)):
            answer = told(*words, "--draw", prefix)
            nodes = nodes or answer["nodes"]
            for kind in ("tree", "timeline"):
                path = f"{prefix}-{kind}.svg"
                picture = xml.etree.ElementTree.parse(path)
                texts = [part.text or "" for part in picture.iter()]
                kinds = [part.get("class", "") for part in picture.iter()]
                if any(text.startswith("drawn are") for text in texts) != (nodes > 96):
                    yield f"{words}, {kind}: a part of {nodes} nodes"
                if nodes <= 96 and kind == "tree" and kinds.count("node") != nodes - 1:
                    yield f"{words}: {kinds.count('node')} nodes beside the root of {nodes}"
                if nodes <= 96 and kind == "timeline" and sum("begins after" in text for text in texts) < 2 * (nodes - 1):
                    yield f"{words}: everyone should be sent to: {texts}"
                if os.path.getsize(path) > 1 << 20:
                    yield f"{words}, {kind}: {os.path.getsize(path)} bytes"


def plots():
    """What bench/planning draws: a mark for each point, the same scale in both panels."""
    sys.path.insert(0, os.path.join(ROOT, "bench"))
    import plots as drawn
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.svg")
        drawn.write(path, "a < b", "nodes", [("one", {"x & y": {8: 1e-3, 16: 2e-3}}), ("two", {"x & y": {8: 5.0}, "z": {8: 0}})], "a note")
        parts = [part.tag.rpartition("}")[2] for part in xml.etree.ElementTree.parse(path).iter()]
        with open(path, encoding="utf-8") as f:
            text = f.read()
    if parts.count("circle") != 3 or text.count(">1 ms<") != 2 or text.count(">10 s<") != 2 or "a note" not in text:
        yield f"{parts}, {text}"


def odd_names():
    """What programs are told is JSON in UTF-8, and pictures are XML, whatever a file is called, also where a name is too long to be told."""
    with tempfile.TemporaryDirectory() as folder:
        for name in (b"m\xff\"\n\xc3.txt", "é".encode() * 100, b"d" * 101 + "é".encode() * 70, b"\xed\xa0\x80\xf0\x9f\x8c\x8d"):
            path = os.path.join(os.fsencode(folder), name)
            with open(path, "wb") as f:
                f.write(b"- 2\n2 -\n")
            done = subprocess.run([TOMBOLO, "sim", "--matrix", path, "--planner", "lpbf", "--json", "--draw", os.path.join(folder, "p")],
                                  capture_output=True, timeout=60, check=False)
            try:
                xml.etree.ElementTree.parse(os.path.join(folder, "p-tree.svg"))
                if json.loads(done.stdout.decode("utf-8"))["nodes"] != 2:
                    yield f"{name}: {done.stdout}"
            except (ValueError, xml.etree.ElementTree.ParseError) as error:
                yield f"{name}: {error}: {done.stdout}, {done.stderr}"


def read_once():
    """A schedule comes from standard input as well, and its root is that of the call, on a matrix and on a grid."""
    with tempfile.TemporaryDirectory() as folder:
        matrix, grid = os.path.join(folder, "matrix"), os.path.join(folder, "grid.yaml")
        with open(matrix, "w", encoding="utf-8") as f:
            f.write("- 1 2\n1 - 3\n2 3 -\n")
        with open(grid, "w", encoding="utf-8") as f:
            f.write("clusters:\n- {name: a, hosts: 'a[1-3]:2'}\n")
        for words in (("--matrix", matrix), (grid,), (grid, "--model", "thesis")):
            done = run(*words, "--schedule", "-", "--planner", "lpbf", "--json", standard_input="1: 0 2\n")
            answer = json.loads(done.stdout) if done.returncode == 0 else {}
            if answer.get("root") != 1 or rows_of(answer)["-"]["trees"][0]["serves"] != {"1": [0, 2]}:
                yield f"{words}: {answer}, {done.stderr}"


def wishes():
    """What the library would run goes by parameters."""
    rows = told(THREE, "--planner", "lpbf", "--set", "bcast=chain:4096")["rows"]
    if [(row["algorithm"], row["because"]) for row in rows if row.get("runs")] != [("chain:4096", "a parameter")]:
        yield f"{rows}"


def slow_links():
    """What takes longer than can be counted is not taken for programs that wait for each other; a planner whose trees all do says so."""
    with tempfile.TemporaryDirectory() as folder:
        grid = os.path.join(folder, "slow.yaml")
        with open(grid, "w", encoding="utf-8") as f:
            f.write("clusters:\n- {name: a, hosts: 'a[1-2]', ethernet: {bandwidth: 1000}}\n- {name: b, hosts: 'b[1-2]', ethernet: {bandwidth: 0.001}}\n"
                    "links:\n- {from: a, to: b, bandwidth: 0.001, latency: 100}\n")
        for operation in TREES:
            rows = rows_of(told(grid, "--op", operation, "--bytes", "1024g", "--evaluations", "20"))
            why = "64 MiB" if operation in ("gather", "scatter") else "can be counted"
            if operation != "barrier" and why not in rows["lpbf"].get("not_run", ""):
                yield f"{operation}: {rows}"
        done = run(grid, "--bytes", "1024g", "--model", "thesis")
        if done.returncode != 1 or "too long to count" not in done.stderr:
            yield f"{done.stdout}, {done.stderr}"


def unfit():
    """Where a call cannot go along trees, each planner says so, as does the tree of --schedule, and the rest of the table is there."""
    # Of 16 ranks on 8 hosts the 14 on others than the root have a share of 64 MiB each that is no more than 4793490 bytes.
    two = os.path.join(ROOT, "examples", "grids", "two-clusters.yaml")
    star = "0: 1 2 3 4 5 6 7\n"
    for words, why in ((("--op", "gather", "--bytes", "5m"), "more than 64 MiB"), (("--op", "scatter", "--bytes", "1g"), "more than 64 MiB"),
                       (("--op", "reduce", "--set", "reproducible=yes"), "in order"), (("--op", "gather", "--bytes", "4m"), "")):
        done = run(two, *words, "--evaluations", "5", "--schedule", "-", "--json", standard_input=star)
        answer = json.loads(done.stdout) if done.returncode == 0 else {"rows": []}
        said = [row["not_run"] for row in answer["rows"] if "not_run" in row]
        times = [row["seconds"] for row in answer["rows"] if "algorithm" in row]
        if done.returncode != 0 or len(answer["rows"]) != len(PLANNERS) + 2 or len(times) != 1 or times[0] < answer["bound"]["seconds"]:
            yield f"{words}: a row for each planner, the schedule and the library: {done}"
        if len(said) != (len(PLANNERS) + 1 if why else 0) or not all(why in text for text in said):
            yield f"{words}: {answer['rows']}"
        if not why:
            continue
        with tempfile.TemporaryDirectory() as folder:
            done = run(two, *words, "--planner", "lpbf", "--draw", os.path.join(folder, "p"))
            if done.returncode != 1 or "has found a tree" not in done.stderr or "The library itself would run" not in done.stdout or os.listdir(folder):
                yield f"{words}: nothing can be drawn: {done}"


def limits():
    """No planner rates more trees than it is allowed to; one more if none of those was one."""
    for words in ((THREE, "--bytes", "64k"), ("--random", "8", "--clusters", "8", "--symmetric")):
        for most in (1, 5, 101):
            for row in told(*words, "--evaluations", str(most))["rows"]:
                if row.get("evaluations", 0) > most + 1:
                    yield f"{words}, {most}: {row}"
        rows = rows_of(told(*words, "--planner", "gadt,own:7trees", "--evaluations", "101"))
        if not 7 <= rows["own"]["evaluations"] <= 8 or rows["gadt"]["evaluations"] < 100:
            yield f"{words}: one planner has a limit of its own: {rows}"


def unproven():
    """On a grid the search of the optimum ends by itself also where there are too many trees, and says so."""
    with tempfile.TemporaryDirectory() as folder:
        grid = os.path.join(folder, "grid.yaml")
        for hosts, proven in ((5, True), (8, False)):
            with open(grid, "w", encoding="utf-8") as f:
                f.write(f"clusters:\n- {{name: a, hosts: 'a[1-{hosts - 2}]'}}\n- {{name: b, hosts: 'b[1-2]'}}\nlinks:\n- {{from: a, to: b, bandwidth: 20, latency: 5}}\n")
            words = (grid, "--bytes", "1k", "--planner", "lpbf,optimum")
            row, text = rows_of(told(*words))["optimum"], sim(*words)
            if row["complete"] != proven or not (proven or 100000 <= row["evaluations"] <= 200000):
                yield f"{hosts} hosts: {row}"
            if ("the optimum is not proven" in text) == proven or (re.search(r" optimum .*, limit$", text, re.M) is None) != proven:
                yield f"{hosts} hosts: {text}"
        if "the optimum is not proven" in sim(grid, "--planner", "lpbf,own", "--evaluations", "10"):
            yield "nobody has looked for the optimum"


def many_hosts():
    """From 32,768 hosts on nobody is moved one by one, but messages are still cut into pieces: better than any tree of whole ones."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as grid:
        grid.write("sites:\n" + "".join(f"- {{name: s{s}, uplink: {{bandwidth: 1000, latency: {5 + s}}}, clusters: [" + ", ".join(
            f"{{name: s{s}c{c}, hosts: 's{s}c{c}n[1-820]', ethernet: {{bandwidth: 1000, latency: 0.05}}}}" for c in range(4)) + "]}\n" for s in range(10)))
        grid.flush()
        words = (grid.name, "--bytes", "1m", "--planner", "lpbf,own:5trees")
        whole, cut = (rows_of(told(*words, *more)) for more in (("--whole",), ()))
    if cut["own"]["seconds"] > 0.9 * whole["own"]["seconds"] or whole["own"]["seconds"] > whole["lpbf"]["seconds"] or cut["own"]["evaluations"] > 6:
        yield f"{whole['own']}, {cut['own']}"


def wrong_files():
    """Each is told by its file and line, or by what is wrong with it."""
    with tempfile.TemporaryDirectory() as folder:
        bad = os.path.join(folder, "bad")
        matrix = os.path.join(folder, "matrix")
        with open(matrix, "w", encoding="utf-8") as f:
            f.write("- 1 2\n1 - 3\n2 3 -\n")
        for text, option, said in (("1 2 3\n1 2\n1 2 3\n", "--matrix", f"{bad}:2: "), ("1 2\n2 1\n1 1\n", "--matrix", f"{bad}:3: not square"),
                                   ("1 2\n", "--matrix", "not square"), ("1 x\n1 1\n", "--matrix", f"{bad}:1: 'x'"), ("1 0\n1 1\n", "--matrix", f"{bad}:1: "),
                                   ("1 -5\n1 1\n", "--matrix", f"{bad}:1: "), ("", "--matrix", bad), ("1 nan\n1 1\n", "--matrix", f"{bad}:1: 'nan'"), ("clusters: 0 0\n", "--matrix", "no bandwidths"), ("", "--schedule", "no tree"),
                                   ("clusters: 0 3\n1 1\n1 1\n", "--matrix", f"{bad}:1: "), ("0: 1\n1: 2\n2: 1\n", "--schedule", f"{bad}:3: node 1"),
                                   ("0: 1\n2: 0\n1: 2\n", "--schedule", "circle"), ("0: 1\n", "--schedule", "nobody sends to node"),
                                   ("0: 1 2 3\n", "--schedule", f"{bad}:1: "), ("0 1 2\n", "--schedule", f"{bad}:1: "),
                                   ("1: 0 2\n", "--root", "its root is node 1"), ("1 2\n\x1b[31m 1\n", "--matrix", f"{bad}:2: this is no text"),
                                   ("0: 1 2\n# \x7f\n", "--schedule", f"{bad}:2: this is no text")):
            with open(bad, "w", encoding="utf-8") as f:
                f.write(text)
            words = ("--matrix", bad) if option == "--matrix" else ("--matrix", matrix, "--schedule", bad)
            done = run(*words, *(("--root", "2") if option == "--root" else ()))
            if done.returncode != 1 or said not in done.stderr:
                yield f"{text!r}: should fail with {said}: {done.returncode}, {done.stderr}"
        with open(bad, "w", encoding="utf-8") as f:
            f.write("clusters:\n- {name: a, hosts: a1}\nlinks:\n- {from: a, to: b, bandwidth: 10}\n")
        alone = os.path.join(folder, "alone.yaml")
        with open(alone, "w", encoding="utf-8") as f:
            f.write("clusters:\n- {name: a, hosts: 'a1:4'}\n")
        crowd, apart, many = (os.path.join(folder, name) for name in ("crowd.yaml", "apart.yaml", "many.yaml"))
        with open(crowd, "w", encoding="utf-8") as f:
            f.write("clusters:\n- {name: a, hosts: ['a1:1024', 'a2:1025']}\n")
        with open(apart, "w", encoding="utf-8") as f:
            f.write("clusters:\n- {name: a, hosts: a1}\n- {name: b, hosts: b1}\nlinks:\n- {from: a, to: b, blocked: yes}\n")
        with open(many, "w", encoding="utf-8") as f:
            f.write("clusters:\n- {name: a, hosts: 'a[1-1025]:1024'}\n")
        for words, said in (((crowd,), f"{crowd}:2: host a2 has 1025 slots"), ((apart,), f"{apart}:3: hosts a1 and b1 both have ranks, but there is no way"),
                            ((many,), f"{many}: there are 1049600 slots"), ((bad,), f"{bad}:4: "), ((os.path.join(folder, "none.yaml"),), "none.yaml"), (("--matrix", os.path.join(folder, "none")), "none"),
                            ((THREE, "--root", "nobody"), "nobody"), (("--matrix", matrix, "--root", "9"), "nodes 0 to 2"),
                            ((THREE, "--draw", os.path.join(folder, "no", "x"), "--planner", "lpbf"), "x-tree.svg"),
                            (("--matrix", matrix, "--schedule", os.path.join(folder, "none")), "none"),
                            (("--random", "2000", "--clusters", "2", "--symmetric"), "2000 nodes"), (("--random", "4", "--draw", "x"), "--draw"),
                            ((alone, "--draw", "x"), "one host")):
            done = run(*words)
            if done.returncode != 1 or said not in done.stderr:
                yield f"{words}: should fail with {said}: {done.returncode}, {done.stderr}"


def wrong_words():
    for words, said in (((), "on what"), ((THREE, "--random", "4"), "only one"), ((THREE, "--planner", "lpbf,best"), '"best"'), ((THREE, "--op", "send"), '"send"'), ((THREE, THREE), "is too much: the grid is"),
                        ((THREE, "--model", "real"), "real"), ((THREE, "--bytes", "many"), "--bytes"), ((THREE, "--time", "0"), "--time"), ((THREE, "--time"), "missing"),
                        (("--random", "4", "--clusters", "3"), "2, 4, 8, 16 and 32"), (("--random", "4", "--model", "postal"), "latencies"),
                        ((THREE, "--op", "alltoall", "--draw", "x"), "--draw"), ((THREE, "--op", "alltoall", "--model", "thesis"), "trees are searched"),
                        ((THREE, "--grids", "3"), "--random"), ((THREE, "--fast"), '"--fast" is no option'), ((THREE, "--planner", "all:1s"), "--time 1s"),
                        ((THREE, "--time", "1e-12"), "1us"), ((THREE, "--planner", "own:x"), '"x"'), ((THREE, "--planner", "own:0trees"), '--planner'), ((THREE, "--planner", "own:trees"), '--planner'), ((THREE, "--set", "bcast=best"), '"best"'),
                        (("--random", "4", "--deal"), "grid file"), (("--matrix", "-", "--schedule", "-"), "standard input")):
        done = run(*words)
        if done.returncode != 2 or said not in done.stderr or "Usage: tombolo sim" not in done.stderr:
            yield f"{words}: should fail with {said}: {done.returncode}, {done.stderr[:300]}"


if __name__ == "__main__":
    sys.exit(cases.tell_problems({"table": table, "json": for_programs, "rated-again": rated_again, "operations": operations, "odd-sizes": odd_sizes, "models": models,
                                  "by-hand": by_hand, "seeds": seeds, "to-the-optimum": to_the_optimum, "pictures": pictures, "plots": plots, "odd-names": odd_names,
                                  "read-once": read_once, "wishes": wishes, "slow-links": slow_links, "unfit": unfit, "limits": limits, "unproven": unproven, "many-hosts": many_hosts,
                                  "wrong-files": wrong_files, "wrong-words": wrong_words},
                                 (OSError, ValueError, KeyError, subprocess.SubprocessError)))
