#!/usr/bin/env python3
"""Checks `tombolo explain`: few rows unless all are asked for, one that runs, the bound, ranks in blocks and
dealt, in a lab and without common memory, sizes that nobody knows, singular and plural; who sends what to whom, and the picture of it.
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
CALLS = [("bcast", "--bytes", "1m", "--ranks", "32", "--hosts", "32"), ("allreduce", "--bytes", "8"),
         ("alltoall", "--ranks", "16", "--hosts", "4"), ("barrier",)]


def explain(*words):
    done = subprocess.run([TOMBOLO, "explain", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60, check=True)
    return done.stdout


def rows_of(text):
    return re.findall(r"^([* ]) ([a-z][\w-]*)(?::\d+(?:/\d+)?)? +[\d.]+ us$", text, re.M)


def few_rows():
    for words in CALLS:
        text, whole = explain(*words), explain(*words, "--all")
        rows, all_rows = rows_of(text), rows_of(whole)
        best = [name for mark, name in rows if mark == " " or rows.index((mark, name)) == 0]
        if len(text.splitlines()) > 18 or len(set(best)) != len(best):
            yield f"{words}: should be short, with the best of each algorithm and what runs: {text}"
        if [mark for mark, _ in rows].count("*") != 1 or [mark for mark, _ in all_rows].count("*") != 1:
            yield f"{words}: one should run: {text}"
        left = re.search(r"^  (\d+) rows? more: --all$", text, re.M)
        if len(rows) + (int(left.group(1)) if left else 0) != len(all_rows):
            yield f"{words}: what is left out should be counted: {text}"


def not_the_cheapest():
    """Where something cheaper than what runs stands in the table, it is said why."""
    star = os.path.join(ROOT, "examples", "grids", "star3.yaml")
    for words in [*CALLS, ("bcast", "--grid", star, "--bytes", "64k"), ("bcast", "--grid", star, "--bytes", "1m", "--deal")]:
        text = explain(*words)
        if (rows_of(text)[0][0] == "*") == ("What runs is not the cheapest" in text):
            yield f"{words}: {text}"


def forced():
    """Who forces what stands in the table, as it stands there, sees that row run."""
    words = ("reduce", "--bytes", "16", "--grid", os.path.join(ROOT, "bench", "grids", "mesh3-20.yaml"), "--lab")
    for row in json.loads(explain(*words, "--json"))["candidates"]:
        if "wide" in row:
            continue
        wanted = row["algorithm"], row.get("argument", 0)
        rule = f"reduce={wanted[0]}:{wanted[1]}" if wanted[1] else f"reduce={wanted[0]}"
        runs = [(one["algorithm"], one.get("argument", 0)) for one in json.loads(explain(*words, "--set", rule, "--json"))["candidates"] if one["runs"]]
        if runs != [wanted]:
            yield f"{rule}: runs {runs}"


def whole_for_programs():
    for words in CALLS:
        if len(json.loads(explain(*words, "--json"))["candidates"]) != len(rows_of(explain(*words, "--all"))):
            yield f"{words}: --json should have everything"


def dealt():
    """Ranks in blocks cross to another cluster once, in a chain; those that are dealt cross with every step."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as grid:
        grid.write("clusters:\n" + "".join(f"- {{name: {name}, hosts: '{name}[1-4]:1'}}\n" for name in "ab") +
                   "links:\n- {from: a, to: b, bandwidth: 100, latency: 10}\n")
        grid.flush()
        times = {}
        for way in ((), ("--deal",)):
            times[way] = seconds(("bcast", "--bytes", "8", "--grid", grid.name, *way), "chain")
    if not (0.01 <= times[()] < 0.02 and 0.07 <= times["--deal",] < 0.08):
        yield f"a chain should cross 10 ms once, and seven times if ranks are dealt: {times}"


def bounds():
    """Nothing is predicted below what is possible at all, and the bound of a shared uplink is its rate."""
    for words in CALLS:
        told = json.loads(explain(*words, "--json"))
        best = min(row["seconds"] for row in told["candidates"])
        if not 0 < told["bound"]["seconds"] <= best:
            yield f"{words}: the bound should be above 0 and at most {best}, not {told['bound']}"
        if f"{told['bound']['seconds'] * 1e6:.3f} us, by" not in explain(*words):
            yield f"{words}: the bound should be printed"
    karonis = os.path.join(ROOT, "examples", "grids", "karonis.yaml")
    for size in ("4k", "8k"):
        told = json.loads(explain("gather", "--bytes", size, "--grid", karonis, "--deal", "--json"))
        best = min(row["seconds"] for row in told["candidates"])
        if told["bound"]["seconds"] > best:
            yield f"short messages that overtake long ones should take their time from them: {best} and {told['bound']}"
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as grid:
        grid.write("clusters:\n" + "".join(f"- {{name: {name}, hosts: [{name}1, {name}2], uplink: {{bandwidth: 8, latency: 1}}}}\n"
                                           for name in "ab"))
        grid.flush()
        bound = json.loads(explain("bcast", "--bytes", "1m", "--grid", grid.name, "--json"))["bound"]
        if not 1.04 < bound["seconds"] < 1.2 or bound["decided_by"] not in "ab":
            yield f"1 MiB over 8 Mbit/s should take a second and something, decided by a cluster: {bound}"
    if "not known" not in explain("neighbor_alltoall") or json.loads(explain("neighbor_alltoall", "--json"))["bound"] is not None:
        yield "who is whose neighbour nobody knows, so the bound should be said not to be known"


def many_clusters():
    """More places than can be looked at in pairs: what passes an uplink, and how far the farthest are."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as grid:
        grid.write("clusters:\n" + "".join(f"- {{name: c{i}, hosts: c{i}n1, uplink: {{bandwidth: 8, latency: {1 + i % 7}}}}}\n"
                                           for i in range(400)))
        grid.flush()
        for size, least, most, by in (("1m", 1.04, 1.2, "c"), ("1", 0.008, 0.012, "")):
            told = json.loads(explain("bcast", "--bytes", size, "--grid", grid.name, "--json"))
            best = min(row["seconds"] for row in told["candidates"] if "seconds" in row)
            if not least < told["bound"]["seconds"] < min(most, best) or not told["bound"]["decided_by"].startswith(by):
                yield f"bcast of {size} on 400 clusters should take {least} to {most} seconds, and at most {best}: {told['bound']}"


def seconds(words, name):
    """Of an algorithm with its best argument."""
    return min(row["seconds"] for row in json.loads(explain(*words, "--json"))["candidates"] if row["algorithm"] == name)


def in_a_lab():
    """Hosts wait for cores there, more messages fit in front of a port than is assumed elsewhere, and short ones pass it
    at once."""
    words = ("allgather", "--bytes", "1k", "--ranks", "64", "--hosts", "64")
    alone, lab = seconds(words, "ring"), seconds((*words, "--set", "shared_cores=2"), "ring")
    if lab < 2 * alone:
        yield f"64 hosts on two cores should take longer than {alone}, not {lab}"
    words = ("gather", "--bytes", "16k", "--grid", os.path.join(ROOT, "examples", "grids", "cluster16.yaml"))
    elsewhere, lab, told = (seconds((*words, *more), "linear") for more in ((), ("--lab",), ("--lab", "--set", "switch_queue=64k")))
    if not lab < 0.1 < min(elsewhere, told):
        yield f"15 messages should fit a port's queue in a lab, unless it is told otherwise: {elsewhere}, {lab}, {told}"
    words = ("bcast", "--bytes", "1k", "--grid", os.path.join(ROOT, "examples", "grids", "cluster8.yaml"))
    elsewhere, lab, told = (seconds((*words, *more), "binomial") for more in ((), ("--lab",), ("--lab", "--set", "port_burst=0")))
    if not lab < 0.6 * min(elsewhere, told):
        yield f"a short message should take no time on a port of a lab, unless it is told otherwise: {elsewhere}, {lab}, {told}"
    lab, told = (seconds((*words, *more), "chain") for more in (("--lab",), ("--lab", "--set", "lab_latency=50us")))
    if not 7 * 39e-6 < told - lab < 7 * 41e-6:
        yield f"a switch of a lab should take 10 us, unless it is told otherwise: {lab}, {told}"


def apart():
    """Ranks that have no memory in common are as far from each other as those of different hosts, and nothing uses it."""
    grid = os.path.join(ROOT, "examples", "grids", "karonis.yaml")
    for words in (("bcast", "--ranks", "4"), ("bcast", "--ranks", "4", "--hosts", "2", "--deal"), ("bcast", "--grid", grid)):
        told = json.loads(explain(*words, "--set", "transports=tcp,relay", "--json"))
        names = {row["algorithm"] for row in told["candidates"]}
        if told["hosts"] != told["ranks"] or names & {"shm", "hosts"} or not names & {"binomial"}:
            yield f"{words}: without shm nothing should use common memory: {told['hosts']} hosts, {names}"
        if not {row["algorithm"] for row in json.loads(explain(*words, "--json"))["candidates"]} & {"shm", "hosts"}:
            yield f"{words}: with it, something should"


def sizes_nobody_knows():
    """Where ranks do not know each other's sizes, `--bytes` is what a job assumes, and that is said; nothing takes no time."""
    place = ("--ranks", "8", "--hosts", "8")
    for operation in ("gatherv", "scatterv", "alltoallv", "alltoallw"):
        told = json.loads(explain(operation, "--bytes", "1m", *place, "--json"))
        assumed = json.loads(explain(operation, "--set", "assumed_block=1m", *place, "--json"))
        usual = json.loads(explain(operation, *place, "--json"))
        if told != assumed or told["assumed"] is not True or told["bytes"] != 1 << 20 or usual["bytes"] != 4096:
            yield f"{operation}: a block of 1 MiB should be assumed, and 4 KiB unless it is said: {told['bytes']}, {usual['bytes']}"
        text = explain(operation, "--bytes", "1m", *place)
        if "every block is taken for 1048576 bytes" not in text or "assumed_block" not in text:
            yield f"{operation}: it should be said that the size is assumed: {text}"
    for operation in ("gather", "scatter", "alltoall", "allgather", "bcast"):
        told = json.loads(explain(operation, "--bytes", "0", *place, "--json"))
        runs = [row["seconds"] for row in told["candidates"] if row["runs"]]
        if told["assumed"] is not False or told["bound"]["seconds"] != 0 or runs != [0]:
            yield f"{operation} of nothing should take no time: {told['bound']}, {runs}"
    refused = subprocess.run([TOMBOLO, "explain", "gatherv", "--bytes", "0"], stdin=subprocess.DEVNULL, capture_output=True,
                             text=True, timeout=60, check=False)
    if refused.returncode != 2 or "assumed_block" not in refused.stderr:
        yield f"a block of nothing cannot be assumed: {refused.returncode}, {refused.stderr}"


def reproducible():
    """Only algorithms that follow the fixed tree, and what that costs beside the best of all."""
    follow = {"binomial", "doubling", "halving", "butterfly", "shm"}
    star = os.path.join(ROOT, "examples", "grids", "star3.yaml")
    for words in (("allreduce", "--bytes", "1m", "--ranks", "9", "--hosts", "9"), ("reduce", "--bytes", "64k", "--grid", star),
                  ("scan", "--bytes", "1m", "--ranks", "16", "--hosts", "16"), ("reduce_scatter", "--bytes", "1k", "--ranks", "5")):
        any_way = json.loads(explain(*words, "--json"))
        told = json.loads(explain(*words, "--set", "reproducible=1", "--json"))
        names, text = {row["algorithm"] for row in told["candidates"]}, explain(*words, "--set", "reproducible=1")
        price, best = told["reproducible"], min(row["seconds"] for row in any_way["candidates"])
        runs, = (row["seconds"] for row in told["candidates"] if row["runs"])
        if not names <= follow or "reproducible" in any_way or "price" in explain(*words):
            yield f"{words}: {names} should be of {follow}, and a price be told only then"
        if price["seconds"] != runs or price["seconds_without"] > runs or abs(price["seconds_without"] - min(best, runs)) > best / 100:
            yield f"{words}: what runs takes {runs}, without the parameter {best}: {price}"
        if f"{price['seconds_without'] * 1e6:.3f} us" not in text or f"{price['price']:.2f} times" not in text:
            yield f"{words}: the price should be printed: {text}"
    if explain("bcast") != explain("bcast", "--set", "reproducible=1"):
        yield "a broadcast combines nothing, and costs what it costs"
    refused = subprocess.run([TOMBOLO, "explain", "allreduce", "--set", "reproducible=1", "--set", "allreduce=ring"],
                             stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    if refused.returncode != 1 or "doubling" not in refused.stderr or "reproducible" not in refused.stderr:
        yield f"a ring should be refused, and what goes be named: {refused.returncode}, {refused.stderr}"


def plurals():
    for words, said in ((("bcast", "--bytes", "1", "--ranks", "1"), "bcast of 1 byte, 1 rank on 1 host in 1 cluster;"),
                        (("bcast", "--bytes", "2", "--ranks", "4", "--hosts", "2"), "2 bytes, 4 ranks on 2 hosts in 1 cluster;"),
                        (("barrier", "--ranks", "4"), "barrier, 4 ranks on 1 host in 1 cluster;")):
        if said not in explain(*words):
            yield f"{words}: should say {said}"


TWO_CLUSTERS = ("clusters:\n" + "".join(f"- {{name: {name}, hosts: '{name}[1-4]:1'}}\n" for name in "ab") +
                "links:\n- {from: a, to: b, bandwidth: 100, latency: 10}\n")


def tree(*words):
    return json.loads(explain(*words, "--tree", "--json"))


def counts(told):
    return {level["level"]: level["messages"] for level in told["tree"]["levels"]}


def chosen_levels():
    """TOMBOLO_LEVELS says between which places a call distinguishes: what crosses where follows it, and a wrong word is told."""
    grid_text = ("sites:\n- {name: A, clusters: [{name: a, hosts: 'a[1-4]:2'}, {name: b, hosts: 'b[1-4]:2'}]}\n"
                 "- {name: B, clusters: [{name: c, hosts: 'c[1-4]:2'}, {name: d, hosts: 'd[1-4]:2'}]}\nlinks:\n" +
                 "".join(f"- {{from: {a}, to: {b}, latency: {1 if a + b in ('ab', 'cd') else 10}, bandwidth: 20}}\n" for a, b in ("ab", "cd", "ac", "ad", "bc", "bd")))
    # Messages between sites, clusters of one, hosts of one, and within hosts. 32 ranks on 16 hosts in 4 clusters at 2 sites.
    wanted = {"all": (1, 2, 12, 0), "site,cluster,host": (1, 2, 12, 0), "host,site,cluster": (1, 2, 12, 0), "site,host": (1, 8, 6, 0),
              "site": (1, 16, 6, 8), "host": (4, 8, 3, 0)}
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as grid:
        grid.write(grid_text)
        grid.flush()
        words = [TOMBOLO, "explain", "bcast", "--bytes", "1k", "--grid", grid.name, "--deal", "--tree", "--json"]

        def run(levels, *more):
            environment = {name: value for name, value in os.environ.items() if name != "TOMBOLO_LEVELS"}
            return subprocess.run([*words, *more], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
                                  env=environment if levels is None else {**environment, "TOMBOLO_LEVELS": levels})

        if run(None).stdout != run("all").stdout:
            yield "all levels should be the default"
        for levels, crossing in wanted.items():
            found = counts(json.loads(run(levels, "--set", "bcast=levels-flat-binomial").stdout))
            if tuple(found.get(name, 0) for name in ("between sites", "between clusters of one site", "between hosts of one cluster", "within hosts")) != crossing:
                yield f"{levels}: {found}, not {crossing}"
        flat = json.loads(run("none").stdout)
        if any(one["algorithm"].startswith("levels") for one in flat["candidates"]):
            yield f"none: there should be no algorithms by levels: {flat['candidates']}"
        for levels in ("sites", "site,,host", "site,none", "all,host", "site host", "Site"):
            done = run(levels)
            if done.returncode == 0 or "parameter levels: " not in done.stderr or "all, none, or some of site, cluster and host" not in done.stderr:
                yield f"{levels!r} should be refused: {done.returncode}, {done.stderr} {done.stdout[:200]}"


def known_trees():
    """What is known of an algorithm is what is counted, as text and for programs."""
    place = ("--ranks", "8", "--hosts", "8")
    told = tree("bcast", "--bytes", "1000", *place, "--set", "bcast=binomial:1m")
    flows = told["tree"]["levels"][0]["flows"]
    if counts(told) != {"between hosts": 7} or {row["to"] for row in flows} != set(range(1, 8)) or flows[0]["to"] != 4 or \
            any(row["bytes"] != 1000 for row in flows):
        yield f"a binomial tree of 8 ranks should have 7 messages of 1000 bytes, the first one to 4: {told['tree']}"
    text = explain("bcast", "--bytes", "1000", *place, "--set", "bcast=binomial:1m", "--tree")
    for line in ("between hosts: 7 messages, 7000 bytes", "  0 (host 0) to 4 (host 4), 2 (host 2), 1 (host 1): 1000 bytes each",
                 "      6 (host 6) to 7 (host 7): 1000 bytes"):
        if line + "\n" not in text:
            yield f"a binomial tree should show {line!r}: {text}"
    told = tree("gather", "--bytes", "100", *place, "--root", "3", "--set", "gather=linear")
    if {(row["from"], row["to"], row["bytes"]) for row in told["tree"]["levels"][0]["flows"]} != {(i, 3, 100) for i in range(8) if i != 3}:
        yield f"everyone should send its block to the root: {told['tree']}"
    if "3 (host 3) from " not in explain("gather", "--bytes", "100", *place, "--root", "3", "--set", "gather=linear", "--tree"):
        yield "what comes together should be listed at the root"


def crossings():
    """Ranks in blocks cross between clusters once in a chain, those that are dealt with every message."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as grid:
        grid.write(TWO_CLUSTERS)
        grid.flush()
        words = ("bcast", "--bytes", "8", "--grid", grid.name, "--set", "bcast=chain:8")
        for way, wanted in (((), {"between clusters": 1, "between hosts of one cluster": 6}), (("--deal",), {"between clusters": 7})):
            told = tree(*words, *way)
            if counts(told) != wanted:
                yield f"{way}: {counts(told)}, and should be {wanted}"
            if sum(pair["messages"] for pair in told["tree"]["levels"][0]["places"]) != wanted["between clusters"]:
                yield f"{way}: places should have all that crosses: {told['tree']['levels'][0]['places']}"
            late = [row["first"] for row in told["tree"]["ranks"] if row["host"].startswith("b")]
            if min(late) < 0.01 or told["tree"]["seconds"] < told["bound"]["seconds"]:
                yield f"{way}: nobody in b can have anything before 10 ms, nor all before the bound: {told['tree']}"


def multicast():
    """Where one datagram reaches all hosts of a cluster, an algorithm uses it, and the root's port carries the data once; not
    where the grid file, the number of hosts or a parameter says otherwise."""
    place = ("--ranks", "16", "--hosts", "16")
    words = ("bcast", "--bytes", "64k", *place)
    told = tree(*words)
    casts = told["tree"]["multicast"]
    if "multicast" not in told["tree"]["algorithm"] or counts(told) or len(casts) != 1 or \
            (casts[0]["sends"], casts[0]["sent_bytes"], casts[0]["receives"], casts[0]["received_bytes"], casts[0]["hosts"]) != \
            (1, 65536, 15, 15 * 65536, 16):
        yield f"64 KiB should leave the root once and reach 15 hosts: {told['tree']}"
    text = explain(*words, "--tree")
    if "by multicast: 1 step\n  0 (host 0) to 15 other hosts: 65536 bytes, sent once\n" not in text or "share" in text:
        yield f"a multicast should be shown as one, and not as common memory: {text}"
    for more in (("--set", "mcast=off"), ("--set", "encrypt=all"), ("--set", "mcast_hosts=17"), ("--set", "transports=tcp,relay")):
        names = {row["algorithm"] for row in json.loads(explain(*words, *more, "--json"))["candidates"]}
        if any("multicast" in name for name in names) or "binomial" not in names:
            yield f"{more}: there should be no multicast: {names}"
    off = subprocess.run([TOMBOLO, "explain", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=True,
                         env=dict(os.environ, TOMBOLO_MCAST="off")).stdout
    if "multicast" in off:
        yield f"TOMBOLO_MCAST=off should hold here, too: {off}"
    for said, casts in ((("mcast_priority=20",), False), (("mcast_priority=500",), True), (("mcast_largest=64k",), True),
                        (("mcast_largest=65535",), False), (("bcast=levels-flat-multicast", "mcast_priority=1"), True)):
        told = json.loads(explain(*words, "--json", *(word for name in said for word in ("--set", name))))
        if casts != ("multicast" in [row["algorithm"] for row in told["candidates"] if row["runs"]][0]):
            yield f"{said}: multicast should {'' if casts else 'not '}run: {told}"
    if "multicast counts for 20 % as much (mcast_priority)" not in explain(*words, "--set", "mcast_priority=20"):
        yield "it should be said why something cheaper does not run"
    for wrong in ("mcast=on", "mcast_check=crc", "mcast_priority=0", "mcast_delay=2s", "mcast_largest=x"):
        done = subprocess.run([TOMBOLO, "explain", *words, "--set", wrong], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=60, check=False)
        if done.returncode == 0 or wrong.split("=")[0] not in done.stderr:
            yield f"{wrong} should be refused: {done.returncode}, {done.stderr}"
    link = "links:\n- {from: a, to: b, bandwidth: 1000, latency: 1}\n"
    clusters = "clusters:\n- {name: a, hosts: 'a[1-4]:2'%s}\n- {name: b, hosts: 'b[1-4]:2'%s}\n" + link
    quiet = ", ethernet: {multicast: false}"
    for says, casting in ((("", ""), {"a", "b"}), ((quiet, ""), {"b"}), ((quiet, quiet), set())):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as grid:
            grid.write(clusters % says)
            grid.flush()
            words = ("bcast", "--bytes", "256k", "--grid", grid.name)
            names = {row["algorithm"] for row in json.loads(explain(*words, "--json"))["candidates"]}
            if bool(casting) != any("multicast" in name for name in names):
                yield f"{says}: multicast in {casting}: {names}"
            if casting:
                told = tree(*words, "--set", "bcast=levels-flat-multicast")
                if {cast["place"] for cast in told["tree"]["multicast"]} != casting or counts(told)["between clusters"] < 1:
                    yield f"{says}: multicast should be inside {casting}: {told['tree']}"
            few = explain(*words, "--ranks", "4") # on two hosts
            if "multicast" in few:
                yield f"two hosts with ranks have no group: {few}"


def every_tree():
    """Every operation that is predicted and each of its algorithms can be shown and drawn, whatever the numbers."""
    karonis = os.path.join(ROOT, "examples", "grids", "karonis.yaml")
    for operation in ("barrier", "bcast", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv", "alltoall", "alltoallv",
                      "alltoallw", "reduce", "allreduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan"):
        places = [("--ranks", "1"), ("--ranks", "7", "--hosts", "3"), ("--grid", karonis, "--deal")]
        for name in sorted({row["algorithm"] for row in json.loads(explain(operation, *places[1], "--json"))["candidates"]}):
            for place in places:
                told = tree(operation, *place, "--set", f"{operation}={name}")
                rows = [row for level in told["tree"]["levels"] for row in level["flows"]]
                if len(told["tree"]["ranks"]) != told["ranks"] or (told["ranks"] > 1) != (len(rows) + len(told["tree"]["common"]) + len(told["tree"]["multicast"]) > 0):
                    yield f"{operation} {name} {place}: ranks that are not alone should do something: {told['tree']}"
                if place == places[1] and told["tree"]["algorithm"] != name:
                    yield f"{operation}: {name} should be shown, not {told['tree']['algorithm']}"
                xml.etree.ElementTree.fromstring(explain(operation, *place, "--set", f"{operation}={name}", "--svg", "-"))
        if operation not in ("barrier", "gatherv", "scatterv", "alltoallv", "alltoallw"):
            told = tree(operation, "--bytes", "0", *places[1])
            if told["tree"]["seconds"] != 0 or any(level["messages"] for level in told["tree"]["levels"]):
                yield f"{operation} of nothing should send nothing: {told['tree']}"


def short_trees():
    """Of many ranks that do alike a few are shown, and all only if that is asked for."""
    for words in (("bcast", "--bytes", "64k"), ("alltoall", "--bytes", "16"), ("scatter",), ("allreduce", "--bytes", "8")):
        words = (*words, "--ranks", "256", "--hosts", "64", "--tree")
        text, whole = explain(*words), explain(*words, "--all")
        if len(text.splitlines()) > 70 or max(map(len, text.splitlines())) > 400 or not re.search(r"and \d+ more(?: like|,) ", text):
            yield f"{words}: should be short: {text}"
        if " more like " in whole or len(re.findall(r"^ +\d+ host \d+ .* us$", whole, re.M)) != 256:
            yield f"{words}: --all should show all: {len(whole.splitlines())} lines"


def not_to_be_shown():
    for words, said in ((("neighbor_allgather", "--tree"), "neighbours"), (("neighbor_alltoallw", "--svg", "-"), "neighbours"),
                        (("bcast", "--ranks", "100000", "--hosts", "10", "--tree"), "65536 ranks"),
                        (("bcast", "--svg", "/nowhere/x.svg"), "/nowhere/x.svg")):
        done = subprocess.run([TOMBOLO, "explain", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                              check=False)
        if done.returncode != 1 or said not in done.stderr:
            yield f"{words}: should fail and name {said}: {done.returncode}, {done.stderr}"


def pictures():
    """They are XML, the same each time, with all ranks and arrows if these are few, and not too long if they are many."""
    with tempfile.TemporaryDirectory() as folder:
        grid, file = os.path.join(folder, "grid.yaml"), os.path.join(folder, "a.svg")
        with open(grid, "w", encoding="utf-8") as f:
            f.write("sites:\n" + "".join(f"- {{name: '{site}', clusters: [{{name: {name}, hosts: '{name}[1-4]:1'}}]}}\n"
                                         for site, name in (('R&D <lab> "x"', "a"), ("B", "b"), ("C", "c"))) +
                    "links:\n- {from: a, to: b, latency: 10}\n- {from: b, to: c, latency: 10}\n- {from: a, to: c, latency: 10}\n")
        words = ("bcast", "--grid", grid, "--set", "bcast=binomial")
        if "at least" not in explain(*words, "--svg", file):
            yield "the table should be printed beside a picture in a file"
        with open(file, encoding="utf-8") as f:
            text = f.read()
        picture = xml.etree.ElementTree.fromstring(text)
        kinds = [part.get("class", "") for part in picture.iter()]
        words_in = {part.text for part in picture.iter() if part.tag.endswith("text")}
        wanted = {"rank": 12, "host": 12, "site": 3, "cluster": 3, "number": 11, "h0": 2, "h2": 9}
        if {name: kinds.count(name) for name in wanted} != wanted or not {'R&D <lab> "x"', "a1", "c4", "11"} <= words_in or \
                not any(text.startswith("predicted ") and ", at least " in text for text in words_in if text):
            yield f"12 ranks on three sites: {sorted(kinds)}, {words_in}"
        if explain(*words, "--svg", "-") != text:
            yield "a picture should be the same each time, and alone on standard output"
    for operation in ("bcast", "alltoall"):
        text = explain(operation, "--bytes", "64", "--ranks", "1024", "--hosts", "128", "--svg", "-")
        xml.etree.ElementTree.fromstring(text)
        if len(text) > 400000 or "of 1024 ranks" not in text:
            yield f"{operation} of 1024 ranks should be drawn in part: {len(text)} characters"


def odd_names():
    """What programs are told is JSON in UTF-8, and pictures are XML, whatever sites and files are called."""
    sites = ['R&D "x" \\\\', "été\u2028", "'"]
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(os.fsencode(folder), b"g\xff\"\xc3.yaml")
        with open(file, "w", encoding="utf-8") as f:
            f.write("sites:\n")
            for i, site in enumerate(sites):
                f.write(f"- name: {json.dumps(site)}\n  uplink: {{bandwidth: {100 if i else 1}, latency: 5}}\n"
                        f"  clusters: [{{name: c{i}, hosts: 'h{i}[1-2]:2'}}]\n")
        words = [TOMBOLO, "explain", "bcast", "--bytes", "1m", "--grid", file, "--set", "bcast=levels-flat-binomial", "--tree"]
        for more in (["--json"], ["--svg", "-"]):
            done = subprocess.run([*words, *more], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=True)
            try:
                if more[0] == "--svg":
                    xml.etree.ElementTree.fromstring(done.stdout)
                    continue
                told = json.loads(done.stdout.decode("utf-8"))
                places = {pair[end] for level in told["tree"]["levels"] for pair in level["places"] for end in ("from", "to")}
                if told["bound"]["decided_by"] != sites[0] or not places & {*sites, "c0", "c1", "c2"}:
                    yield f"sites are called {sites}: {told['bound']}, {places}"
            except (ValueError, xml.etree.ElementTree.ParseError) as error:
                yield f"{more}: {error}: {done.stdout}, {done.stderr}"


def planning():
    """How long calls take to plan: the first one, and with other roots; of operations that have none nothing is said of them."""
    mesh = os.path.join(ROOT, "bench", "grids", "mesh3-20.yaml")
    for words, roots in ((("bcast", "--grid", mesh, "--deal"), 22), (("allreduce", "--grid", mesh), 0), (("reduce", "--ranks", "1"), 0)):
        told = json.loads(explain(*words, "--planning", "--json"))["planning"]
        if told["other_roots"] + told["unlike_roots"] != roots or not 0 < told["first"] < 10 or told["median"] > told["most"]:
            yield f"{words}: {told}"
        text = explain(*words, "--planning")
        if "The first call takes" not in text or ("with another root" in text) != (told["other_roots"] > 0) or "at least" in text:
            yield f"{words}: {text}"


def guide():
    """The example of the guide is what is printed."""
    with open(os.path.join(ROOT, "docs", "guide", "collectives.md"), encoding="utf-8") as f:
        words, shown = re.search(r"^    \$ tombolo explain ([^\n]* --tree)\n    \.\.\.\n(.*?)    \.\.\.\n", f.read(), re.M | re.S).groups()
    words = [os.path.join(ROOT, word) if word.startswith("examples/") else word for word in words.split()]
    lines = re.sub(r"^    ", "", shown, flags=re.M)
    if lines not in explain(*words):
        yield f"docs/guide/collectives.md should show what {words} prints: {explain(*words)}"


if __name__ == "__main__":
    sys.exit(cases.tell_problems({"few-rows": few_rows, "forced": forced, "not-the-cheapest": not_the_cheapest, "json": whole_for_programs, "bound": bounds, "many-clusters": many_clusters, "dealt": dealt,
                                  "lab": in_a_lab, "apart": apart, "sizes": sizes_nobody_knows, "plurals": plurals,
                                  "levels": chosen_levels, "known-trees": known_trees, "crossings": crossings, "multicast": multicast, "every-tree": every_tree, "short-trees": short_trees,
                                  "not-to-be-shown": not_to_be_shown, "pictures": pictures, "odd-names": odd_names, "guide": guide, "planning": planning, "reproducible": reproducible},
                                 (OSError, ValueError, KeyError, subprocess.SubprocessError)))
