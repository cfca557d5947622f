#!/usr/bin/env python3
"""Checks `tombolo plan` and `mpiexec --plan`: what is written, that it is the same again, what is wrong in plans and grids;
jobs that follow a plan, on hosts that are all this machine, and say so; jobs for which a plan is not made; plans that were
damaged. A case for each."""
import os
import pty
import random
import re
import resource
import stat
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import cases

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BIN = os.path.join(os.environ.get("BUILD_DIR") or os.path.join(ROOT, "build"), "bin")
THREE = os.path.join(ROOT, "examples", "grids", "three-clusters.yaml")
HANG_S = 60

# All hosts are this machine: what leads to them is a shell that stays here.
GRID = """
clusters:
  - {name: a, hosts: ['a1:2']}
  - {name: b, hosts: ['b1:1']}
  - {name: c, hosts: ['c1:1']}
links:
  - {from: a, to: b, latency: 5, bandwidth: 10}
  - {from: b, to: c, latency: 1, bandwidth: 100}
  - {from: a, to: c, latency: 1, bandwidth: 100}
"""
SHELL = """#!/bin/sh
shift
exec sh -c "$*"
"""
HOSTS = "tombolo-plan 1\nhost a1 slots 2 in a\nhost b1 slots 1 in b\nhost c1 slots 1 in c\n"
PLAN = HOSTS + """
bcast bytes 1k..80k root a1   # with trees
  piece 512
  tree share 2
    a1: c1 b1
  tree
    a1: b1
    b1: c1
bcast bytes 1k..2k root b1
  use chain:256
reduce bytes 16..2k root a1
  tree
    a1: c1
    c1: b1
allreduce bytes 1k..2k
  tree
    b1: a1
    a1: c1
barrier
  tree
    c1: a1 b1
"""


def run(*words, variables=None, good=True):
    """What a command prints, its errors, and its exit code."""
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=HANG_S,
                          env={**os.environ, **(variables or {})})
    if good and done.returncode != 0:
        raise ValueError(f"{words}: exit code {done.returncode}, {done.stderr}")
    return done.stdout, done.stderr, done.returncode


def plan(*words, good=True):
    return run(os.path.join(BIN, "tombolo"), "plan", *words, good=good)


def made(folder, name, text, mode=0o644):
    path = os.path.join(folder, name)
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


def written(folder):
    out, _, _ = plan(THREE, "-o", "-", "--op", "bcast,reduce,barrier", "--bytes", "1k,64k", "--evaluations", "50", "--roots", "clusters")
    again, _, _ = plan(THREE, "-o", "-", "--op", "barrier,reduce,bcast", "--bytes", "64k,1k,1k", "--evaluations", "50")
    if out != again:
        return f"twice is not the same:\n{out}\n{again}"
    found = re.findall(r"^(?:(?:bcast|reduce) bytes \S+ root \S+|barrier)$", out, re.M)
    if len(found) != 2 * 2 * 3 + 1 or len(set(found)) != len(found):
        return f"should have 13 entries: {found}"
    if not re.search(r"^# predicted [\d.]+ us; nothing takes less than [\d.]+ us\nbcast ", out, re.M):
        return f"should say what is predicted: {out}"
    if not re.search(r"^digest [0-9a-f]{16}$", out, re.M) or "host " not in out:
        return out
    return True


def named_roots(folder):
    out, _, _ = plan(THREE, "-o", "-", "--op", "bcast", "--bytes", "1k", "--roots", "all", "--evaluations", "10")
    hosts = re.findall(r"^host (\S+)", out, re.M)
    if re.findall(r"^bcast bytes \S+ root (\S+)$", out, re.M) != hosts:
        return f"each host should be a root: {out}"
    path = os.path.join(folder, "x.plan")
    plan(THREE, "-o", path, "--op", "bcast", "--bytes", "1k", "--roots", hosts[-1], "--evaluations", "10")
    with open(path) as f:
        text = f.read()
    if re.findall(r"^bcast bytes \S+ root (\S+)$", text, re.M) != [hosts[-1]] or os.listdir(folder) != ["x.plan"]:
        return f"{os.listdir(folder)}: {text}"
    shown, _, _ = run(os.path.join(BIN, "tombolo"), "explain", "bcast", "--grid", THREE, "--bytes", "1k", "--set", f"plan={path}",
                      "--root", str(len(hosts) and sum(int(n) for n in re.findall(r"slots (\d+)", text)) - 1))
    if "* runs (the plan)" not in shown:
        return shown
    _, err, _ = run(os.path.join(BIN, "tombolo"), "explain", "bcast", "--bytes", "1k", "--set", f"plan={path}")
    return err.count("is not followed") == 1 or f"without a grid there are no such hosts: {err}"


def one_planner(folder):
    """Trees of the planner that is named, predicted as `tombolo sim` predicts them, though the library has better; no bytes have none."""
    texts = {}
    for name in ("binomial", "ecef", "lpbf", "gadt-clusters", "own"):
        out, _, _ = plan(THREE, "-o", "-", "--planner", name, "--op", "bcast,barrier", "--bytes", "0,64k", "--roots", "venus2", "--evaluations", "40")
        found = re.findall(r"^# predicted ([\d.]+) us.*\n(bcast bytes 48k..64k root venus2|barrier)\n(?:  piece \S+\n)?  tree", out, re.M)
        if len(found) != 2 or "use " in out or "bytes 0" in out:
            return f"{name}: {out}"
        shown, _, _ = run(os.path.join(BIN, "tombolo"), "sim", THREE, "--op", "bcast", "--bytes", "64k", "--root", "venus2", "--planner", name, "--evaluations", "40")
        if not re.search(rf"^[* ] {name} +{re.escape(dict((b, a) for a, b in found)['bcast bytes 48k..64k root venus2'])} us", shown, re.M):
            return f"{name}: {out}{shown}"
        texts[name] = out
    if len(set(texts.values())) < 4:
        return f"they are all the same: {texts}"
    for words, say, code in [(("nobody",), "no planner", 2), (("lpbf", "--op", "alltoall"), "lpbf has no trees for MPI_Alltoall", 1),
                             (("lpbf", "--op", "gather", "--bytes", "1g"), "has no trees", 1)]:
        _, err, got = plan(THREE, "-o", "-", "--evaluations", "5", "--planner", *words, good=False)
        if got != code or say not in err:
            return f"{words}: exit code {got}, {err}"
    many = made(folder, "many.yaml", "clusters:\n- {name: a, hosts: 'a[1-50]'}\n")
    _, err, got = plan(many, "-o", "-", "--planner", "optimum", "--op", "bcast", "--bytes", "1k", good=False)
    return (got == 1 and "50 hosts are too many for optimum" in err) or err


def dealt(folder):
    """Hosts are named as ranks come to them, trees are the same, and the digest is."""
    words = THREE, "-o", "-", "--planner", "lpbf", "--op", "bcast", "--bytes", "64k", "--roots", "venus2"
    blocks, turned = plan(*words)[0], plan(*words, "--deal")[0]
    hosts = [re.findall(r"^host (\S+)", text, re.M) for text in (blocks, turned)]
    if hosts[0] == hosts[1] or sorted(hosts[0]) != sorted(hosts[1]) or hosts[1][:3] != ["mercury1", "venus1", "jupiter1"]:
        return f"{hosts}"
    if [re.findall(r"^digest .*", text, re.M) for text in (blocks, turned)] != [re.findall(r"^digest .*", blocks, re.M)] * 2:
        return f"{blocks}{turned}"
    file = made(folder, "x.plan", turned)
    for options in ((), ("--deal",)):
        where = hosts[len(options)].index("venus2")
        shown, err, _ = run(os.path.join(BIN, "tombolo"), "explain", "bcast", "--grid", THREE, "--bytes", "64k", "--set", f"plan={file}", "--root", str(where), *options)
        time = re.search(r"predicted ([\d.]+) us", turned).group(1)
        if "* runs (the plan)" not in shown or "not followed" in err or (options and f"{time} us" not in shown):
            return f"{options}: {time} us are expected: {shown}{err}"
    return True


def wrong_words(folder):
    grid = made(folder, "bad.yaml", "clusters: 3\n")
    for words, say, code in [(("-o", "x"), "for which grid", 2), ((THREE,), "-o", 2), ((THREE, "-o"), "value is missing", 2),
                             ((THREE, "-o", "-", "--op", "cast"), "no operation", 2), ((THREE, "-o", "-", "--bytes", "x"), "--bytes", 2),
                             ((THREE, "-o", "-", "--time", "soon"), "--time", 2), ((THREE, "-o", "-", "--roots", "nobody"), "no host", 1),
                             ((THREE, "-o", "-", "--seed", "x"), "--seed", 2), ((THREE, "-o", "-", "--gain", "-1"), "--gain", 2),
                             ((THREE, "-o", "-", "--gain", "1001"), "--gain", 2), ((grid, "-o", "-"), "bad.yaml:1", 1),
                             ((THREE, "-o", "-", "--evaluations", "0"), "--evaluations", 2), ((THREE, THREE), "too much", 2),
                             ((THREE, "--bogus"), '"--bogus" is no option', 2), ((grid, "-o", grid), "bad.yaml:1", 1),
                             ((THREE, "-o", "-", "--time", "1e-12"), "1us", 2), ((THREE, "-o", "-", "--set", "bcast=best"), '"best"', 2),
                             ((THREE, "-o", "/nowhere/x", "--time", "1h"), "cannot write", 1), ((THREE, "-o", folder, "--time", "1h"), "cannot write", 1)]:
        out, err, got = plan(*words, good=False)
        if got != code or say not in err or out:
            return f"{words}: exit code {got}, {out} {err}"
    if os.listdir(folder) != ["bad.yaml"]:
        return f"{os.listdir(folder)}"
    good = made(folder, "good.yaml", "clusters:\n- {name: a, hosts: 'a[1-2]'}\n")
    os.symlink(good, os.path.join(folder, "link"))
    for name in "good.yaml", "link":
        _, err, got = plan(good, "-o", os.path.join(folder, name), "--op", "barrier", good=False)
        with open(good) as f:
            if got != 1 or "it is the grid" not in err or not f.read().startswith("clusters"):
                return f"{name}: exit code {got}, {err}"
    return True


def odd_names(folder):
    """A plan is a text whatever the grid is called."""
    grid = made(folder, "g\x1b[31m\nbarrier\r\x7f.yaml", "clusters:\n- {name: a, hosts: 'a[1-2]'}\n")
    file = os.path.join(folder, "x.plan")
    plan(grid, "-o", file, "--op", "barrier", "--evaluations", "5")
    run(os.path.join(BIN, "mpiexec"), "-n", "1", "--do-not-launch", "--plan", file, "true")
    with open(file, newline="") as f:
        text = f.read()
    return not re.search("[\x00-\x08\x0e-\x1f\x7f]", text) or text


def no_trees(folder):
    """Blocks too long for any tree of hosts, and links too slow to count: such entries have an algorithm, and the others what they would have."""
    text, _, _ = plan(THREE, "-o", "-", "--op", "gather,scatter", "--bytes", "16,1g", "--roots", "mercury1", "--evaluations", "50")
    if len(re.findall(r"^(?:gather|scatter) bytes .*1g root mercury1\n  use ", text, re.M)) != 2 or text.count("\ngather ") != 2:
        return text
    slow = made(folder, "slow.yaml", "clusters:\n- {name: a, hosts: 'a[1-2]'}\n- {name: b, hosts: 'b[1-2]', ethernet: {bandwidth: 0.001}}\n"
                "links:\n- {from: a, to: b, bandwidth: 0.001, latency: 100}\n")
    text, _, _ = plan(slow, "-o", "-", "--bytes", "1k,1024g", "--roots", "a1", "--evaluations", "5")
    return len(re.findall(r"^(?:bcast|reduce) bytes .*1024g root a1\n  use ", text, re.M)) == 2 or text


def time_ends(folder):
    """The time that is told ends a single entry as well, which in short pieces would take minutes to simulate; what is not reached is
    counted, and what there is then is a plan."""
    grid = made(folder, "g.yaml", "clusters:\n" + "".join(f"  - {{name: c{i}, hosts: 'c{i}n[1-128]:1', ethernet: {{bandwidth: 1000, latency: 0.05}}, "
                                                          "uplink: {bandwidth: 100, latency: 5}}\n" for i in range(16)))
    file = os.path.join(folder, "x.plan")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    plan(grid, "-o", file, "--op", "allreduce", "--bytes", "1g", "--time", "1s")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if took > 10:
        return f"one second was allowed, and {took} of a processor were taken"
    for time, asked in (("1us", 8 + 2 * 16 * 4), ("300ms", 8 + 2 * 16 * 4), ("1us", 1)):
        words = ("--op", "scan,allreduce,bcast,reduce", "--bytes", "16,1k,64k,1m") if asked > 1 else ("--op", "barrier")
        _, err, _ = plan(grid, "-o", file, *words, "--time", time)
        with open(file) as f:
            text = f.read()
        said = re.search(r"no time for (\d+) of (\d+) entries, which are not in the plan", err)
        there = len(re.findall(r"^(?:scan|allreduce|bcast|reduce|barrier)\b", text, re.M))
        if not said or int(said.group(2)) != asked or there + int(said.group(1)) != asked or (time == "1us" and there > 0):
            return f"{time}: {there} of {asked} entries are there: {err}"
        run(os.path.join(BIN, "mpiexec"), "-n", "1", "--do-not-launch", "--plan", file, "true")
    return True


def progress(folder):
    """A terminal is shown how far it is: one line, written over and over, and gone in the end. Others are told nothing of it."""
    words = [os.path.join(BIN, "tombolo"), "plan", THREE, "-o", os.path.join(folder, "x.plan"), "--op", "bcast,reduce", "--bytes", "64k,1m", "--time", "2s"]
    terminal, inside = pty.openpty()
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=inside) as process:
        os.close(inside)
        seen = b""
        try:
            while data := os.read(terminal, 4096):
                seen += data
        except OSError:  # nobody has it open any more
            pass
        code = process.wait(HANG_S)
    os.close(terminal)
    lines = seen.decode().split("\r\033[K")
    shown = re.compile(r"tombolo plan: (algorithms|trees), (\d+) of (\d+): (bcast|reduce) of (64k|1m) bytes, root \w+(: [\d.]+ us)?")
    found = [shown.fullmatch(line) for line in lines[1:-1]]
    if code != 0 or len(lines) < 4 or lines[0] or lines[-1] or not all(found):
        return f"exit code {code}, {lines}"
    if {one[1] for one in found} != {"algorithms", "trees"} or any(not 1 <= int(one[2]) <= int(one[3]) for one in found) or len({one[3] for one in found}) != 1:
        return f"both parts, and which of how many entries: {lines}"
    if not any(one[6] for one in found if one[1] == "trees"):
        return f"what the best takes so far: {lines}"
    _, err, _ = plan(*words[2:])
    return ("\r" not in err and "trees" not in err) or f"no terminal, but: {err}"


def outputs(folder):
    """A file is replaced as a whole; what is no file stays what it is, and is written to."""
    words = THREE, "--op", "barrier", "--evaluations", "1", "-o"
    text, _, _ = plan(*words, "-")
    file, link, pipe = made(folder, "x.plan", "old\n" * 5000), os.path.join(folder, "link"), os.path.join(folder, "pipe")
    plan(*words, file)
    os.symlink(made(folder, "y.plan", "old\n"), link)
    plan(*words, link)
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True)
    plan(*words, pipe)
    piped = reader.communicate(timeout=HANG_S)[0]
    for path in file, os.path.join(folder, "y.plan"):
        with open(path) as f:
            if f.read() != text:
                return f"{path} is not the plan"
    good = os.path.islink(link) and stat.S_ISFIFO(os.lstat(pipe).st_mode) and piped == text
    return (good and sorted(os.listdir(folder)) == ["link", "pipe", "x.plan", "y.plan"]) or f"{os.listdir(folder)}, {piped}"


def unequal(folder):
    """A grid whose links are."""
    dice = [(5, 5), (20, 5), (50, 200), (50, 200), (5, 5), (50, 5), (50, 200), (1, 200), (20, 20), (1, 50)]
    pairs = [(i, k) for i in range(5) for k in range(i)]
    return made(folder, "g.yaml", "clusters:\n" + "".join(f"  - {{name: c{i}, hosts: ['h{i}a:1', 'h{i}b:2']}}\n" for i in range(5)) +
                "links:\n" + "".join(f"  - {{from: c{i}, to: c{k}, latency: {latency}, bandwidth: {bandwidth}}}\n"
                                     for (i, k), (latency, bandwidth) in zip(pairs, dice)))


def trees(folder):
    """Where links are unequal trees are found that the library does not have, the same again; and what is written of them is
    what `explain` predicts of the plan."""
    grid = unequal(folder)
    words = grid, "--op", "bcast,reduce,allreduce,barrier,gather,scatter", "--bytes", "64k", "--roots", "h0a", "--evaluations", "300"
    file = os.path.join(folder, "x.plan")
    plan(*words, "-o", file)
    with open(file) as f:
        text = f.read()
    if plan(*words, "-o", "-")[0] != text or plan(*words, "-o", "-", "--seed", "2")[0] == "":
        return f"not the same again: {text}"
    found = re.findall(r"^# predicted ([\d.]+) us.*\n(\w+).*\n(  use|  piece|  tree)", text, re.M)
    if len(found) != 6 or not any(name in ("bcast", "reduce") and what != "  use" for _, name, what in found):
        return f"there should be trees: {text}"
    for time, name, _ in found:
        shown, _, _ = run(os.path.join(BIN, "tombolo"), "explain", name, "--grid", grid, "--bytes", "64k", "--set", f"plan={file}")
        if "* runs (the plan)" not in shown or not re.search(rf"^\* \S+ +{re.escape(time)} us$", shown, re.M):
            return f"{name}: {time} us are expected: {shown}"
    return True


def gains(folder):
    """The library's own choice stays where nothing is predicted to be better by more than is asked for."""
    grid, operations, sizes = unequal(folder), ("bcast", "reduce", "allreduce", "gather"), ("1k", "64k", "1m")
    own = {}
    for name in operations:
        for size in sizes:
            shown, _, _ = run(os.path.join(BIN, "tombolo"), "explain", name, "--grid", grid, "--bytes", size)
            own[name, size] = float(re.search(r"^\* \S+ +([\d.]+) us$", shown, re.M).group(1))
    planned = {}
    for gain in 0, 10, 1000:
        text, _, _ = plan(grid, "-o", "-", "--op", ",".join(operations), "--bytes", ",".join(sizes), "--roots", "h0a", "--evaluations", "150", "--gain", str(gain))
        planned[gain] = {(name, size): (float(time), what) for time, name, size, what in
                         re.findall(r"^# predicted ([\d.]+) us.*\n(\w+) bytes [^.]+\.\.(\w+).*\n  (use|piece|tree)", text, re.M)}
        if planned[gain].keys() != own.keys():
            return f"{gain}: {text}"
    for cell, time in own.items():
        any_, tenth, none = (planned[gain][cell] for gain in (0, 10, 1000))
        if abs(none[0] - time) > 0.01 or none[1] != "use":
            return f"{cell}: {none}, though the own choice takes {time} us"
        if abs(tenth[0] - time) > 0.01 and tenth[0] * 1.1 > time + 0.01:
            return f"{cell}: {tenth} is not a tenth better than {time} us"
        if any_[0] > tenth[0] + 0.01:
            return f"{cell}: {any_} is worse than {tenth}"
    better = [sum(time < own[cell] - 0.01 for cell, (time, _) in cells.items()) for cells in planned.values()]
    return better[0] > better[1] > better[2] == 0 or f"something else is better for {better} cells: {planned}, {own}"


class Job:
    """Of a program on hosts that are all this machine."""
    def __init__(self, folder):
        self.grid = made(folder, "g.yaml", GRID)
        self.shell = made(folder, "here", SHELL, 0o755)
        self.program = os.path.join(folder, "planned")
        run(os.path.join(BIN, "mpicc"), "-o", self.program, os.path.join(ROOT, "tests", "lab", "planned.c"))

    def run(self, plan_file, *options, words=(), **more):
        return run(os.path.join(BIN, "mpiexec"), "--grid", self.grid, "--launcher", self.shell, "--tombolo", os.path.join(BIN, "tombolo"),
                   *(["--plan", plan_file] if plan_file else []), *options, self.program, *words, **more)


def rows_of(err):
    """(operation, bytes from, algorithm, because) of the table that rank 0 prints at the end."""
    return re.findall(r"^(\w+) +\d+ +\d+ +(\d+) +\d+  (\S+)(?: [\d.]+ us)? +(the plan|[a-z ]+?)  ", err, re.M)


def followed(folder):
    job, file = Job(folder), made(folder, "x.plan", PLAN)
    for options in [(), ("--map", "cluster")]:
        out, err, _ = job.run(file, *options, variables={"TOMBOLO_EXPLAIN": "1"})
        planned = {(o, int(b), a) for o, b, a, why in rows_of(err) if why == "the plan"}
        for row in [("bcast", 1024, "planned"), ("bcast", 1024, "chain:256"), ("bcast", 65536, "planned"), ("reduce", 16, "planned"),
                    ("allreduce", 1024, "planned"), ("barrier", 0, "planned")]:
            if row not in planned:
                return f"{options}: {row} is missing: {err}"
        if any(o == "bcast" and b < 1024 for o, b, _ in planned) or out != "0 wrong\n" or "not followed" in err:
            return f"{options}: {out} {err}"
    _, err, _ = job.run(None, variables={"TOMBOLO_EXPLAIN": "1", "TOMBOLO_PLAN": file, "TOMBOLO_BCAST": "binomial"})
    why = {(o, why) for o, _, _, why in rows_of(err)}
    if ("bcast", "the plan") in why or ("bcast", "a parameter") not in why or ("reduce", "the plan") not in why:
        return f"parameters should go first: {err}"
    return True


def any_site(folder):
    """The name of a site is any line, and clusters nest. Nothing of no bytes is planned: it takes no time."""
    job, file = Job(folder), os.path.join(folder, "x.plan")
    made(folder, "g.yaml", "sites:\n  - {name: 'TU Delft, # 1', clusters: [{name: o, clusters: [{name: a, hosts: ['a1:2']}, {name: b, hosts: ['b1:1']}]}]}\n"
         "clusters: [{name: c, hosts: ['c1:1']}]\n")
    plan(job.grid, "-o", file, "--op", "bcast,gather", "--bytes", "0,1k", "--roots", "all", "--evaluations", "20")
    with open(file) as f:
        text = f.read()
    if "host b1 slots 1 in TU_Delft,___1/o/b\n" not in text or re.search(r"^\w+ bytes 0 root \S+\n  (piece|tree)", text, re.M):
        return text
    out, err, _ = job.run(file, variables={"TOMBOLO_EXPLAIN": "1"})
    return (out == "0 wrong\n" and "not followed" not in err and any(why == "the plan" for *_, why in rows_of(err))) or f"{text} {out} {err}"


def not_for_this_job(folder):
    """Other slots, fewer ranks, other places: one warning, and right results."""
    job = Job(folder)
    for text, options in [(PLAN.replace("a1 slots 2", "a1 slots 3"), ()), (PLAN, ("-n", "3")), (PLAN.replace("in b\n", "in d\n"), ())]:
        out, err, _ = job.run(made(folder, "x.plan", text), *options, variables={"TOMBOLO_EXPLAIN": "1"})
        if out != "0 wrong\n" or err.count("is not followed") != 1 or "the plan  " in err:
            return f"{options}: {out} {err}"
    return True


def does_not_fit(folder):
    """A tree cannot carry an operation that is not commutative; that is said once."""
    job = Job(folder)
    out, err, _ = job.run(made(folder, "x.plan", PLAN), words=["ordered"])
    return (out == "0 wrong\n" and err.count("does not fit the call") == 1) or f"{out} {err}"


def large(folder):
    """A plan of several megabytes reaches the ranks."""
    job = Job(folder)
    tree = "  tree\n    a1: c1 b1\n" * 16
    text = PLAN + "".join(f"gather bytes {2 * i + 1} root a1\n{tree}" for i in range(20000))
    out, err, _ = job.run(made(folder, "x.plan", text), variables={"TOMBOLO_EXPLAIN": "1"})
    return (out == "0 wrong\n" and "the plan" in err) or f"{out} {err}"


def one_host(folder):
    """Without a grid the host is called by its name."""
    job = Job(folder)
    name = os.uname().nodename
    file = made(folder, "x.plan", f"tombolo-plan 1\nhost {name} slots 3\nbcast bytes 1k..2k\n  use chain:128\n")
    out, err, _ = run(os.path.join(BIN, "mpiexec"), "-n", "3", "--plan", file, job.program, variables={"TOMBOLO_EXPLAIN": "1"})
    rows = [row for row in rows_of(err) if row[3] == "the plan"]
    return (out == "0 wrong\n" and rows == [("bcast", "1024", "chain:128", "the plan")]) or f"{out} {err}"


def bad_files(folder):
    job = Job(folder)
    for text, say in [("hello\n", "x.plan:1: this is no plan"), ("tombolo-plan 1\n", "x.plan:1: the hosts are missing"), (HOSTS + "bcast bytes 1 root d1\n  use chain\n", "x.plan:5: root: \"d1\""),
                      (HOSTS + "bcast bytes 1 root a1\n  tree\n    a1: b1\n", "x.plan:6: tree: host c1 is missing"),
                      (HOSTS + "\x1b]0;mine\x07\n", "x.plan:5: this is no text")]:
        out, err, code = job.run(made(folder, "x.plan", text), good=False)
        if code != 2 or say not in err or out:
            return f"{text}: exit code {code}, {out} {err}"
    _, err, code = job.run(os.path.join(folder, "nothing"), good=False)
    return (code == 2 and "cannot read the plan" in err) or f"{code} {err}"


def alone(folder):
    """A program that was not started by mpiexec says that it follows no plan, in one line, and without one says nothing."""
    job, file = Job(folder), made(folder, "x.plan", PLAN)
    for variables, count in (({"TOMBOLO_PLAN": file}, 1), ({"TOMBOLO_PLAN": ""}, 0)):
        out, err, _ = run(job.program, variables=variables)
        if out != "0 wrong\n" or len(err.splitlines()) != count or err.count(f"the plan {file} is not followed: this program was not started by mpiexec") != count:
            return f"{variables}: {out} {err}"
    return True


ON = {1: ["a1:1"], 3: ["a1:2", "b1:1"], 7: ["a1:3", "b1:2", "c1:1", "c2:1"]}  # ranks, and their hosts; the letter is the cluster


def grid_of(folder, hosts):
    clusters = sorted({host[0] for host in hosts})
    return made(folder, "g.yaml", "clusters:\n" + "".join(f"- {{name: {c}, hosts: [{', '.join(repr(h) for h in hosts if h[0] == c)}]}}\n" for c in clusters) +
                ("links:\n" + "".join(f"- {{from: a, to: {c}, latency: {len(c)}, bandwidth: 50}}\n" for c in clusters[1:]) if len(clusters) > 1 else ""))


def damaged(text, draw):
    """Cut off somewhere, with some bits turned round, without a line, with two lines at each other's place, or with a line twice."""
    data, lines = bytearray(text.encode()), text.splitlines(True)
    kind, here, there = draw.randrange(6), draw.randrange(len(lines)), draw.randrange(len(lines))
    if kind == 0:
        return bytes(data[:draw.randrange(len(data))])
    if kind <= 2:
        for _ in range(kind):
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        return bytes(data)
    if kind == 3:
        del lines[here]
    elif kind == 4:
        lines[here], lines[there] = lines[there], lines[here]
    else:
        lines.insert(there, lines[here])
    return "".join(lines).encode()


def broken(folder):
    """Plans that were damaged, with and without their digest: what is wrong is told with the line before anything starts, or what is
    left is a plan, with which all results are right. So are those of another version and of other hosts."""
    job, draw, outcomes = Job(folder), random.Random(17), {}
    texts = {}
    for ranks, hosts in ON.items():
        job.grid = grid_of(folder, hosts)
        texts[ranks], _, _ = plan(job.grid, "-o", "-", "--op", "bcast,reduce,allreduce,barrier,gather,scatter", "--bytes", "16,1k,80000", "--evaluations", "20",
                                  *(["--planner", "own"] if ranks > 1 else []))
    for ranks, hosts in ON.items():
        job.grid, other = grid_of(folder, hosts), texts[3 if ranks == 1 else 1]
        text = re.sub(r"^#.*\n", "", texts[ranks], flags=re.M)
        tried = [text.replace("tombolo-plan 1", "tombolo-plan 2").encode(), b"", text.replace("slots ", "slots 1").encode(), other.encode()]
        tried += [damaged(text if i % 2 else re.sub(r"^digest.*\n", "", text, flags=re.M), draw) for i in range(40)]
        jobs = 0
        for i, data in enumerate(tried):
            file = os.path.join(folder, "x.plan")
            with open(file, "wb") as f:
                f.write(data)
            out, err, code = run(os.path.join(BIN, "mpiexec"), "--grid", job.grid, "--do-not-launch", "--plan", file, "true", good=False)
            if code == 0 and jobs < 3:
                jobs += 1
                out, err, code = job.run(file, good=False)
                if out != "0 wrong\n" or err.count("is not followed") > 1:
                    return f"{ranks} ranks, {i}: exit code {code}, {out} {err}\n{data}"
                outcomes["not followed" if "is not followed" in err else "followed"] = True
            elif code != 0:
                outcomes["refused"] = True
            if code not in (0, 2) or (code == 2 and not re.search(r"x\.plan:\d+: ", err)):
                return f"{ranks} ranks, {i}: exit code {code}, {err}\n{data}"
    return outcomes.keys() == {"refused", "followed", "not followed"} or f"{outcomes}"


def guide(folder):
    """The example of the guide is a plan."""
    with open(os.path.join(ROOT, "docs", "guide", "planning.md")) as f:
        text = re.search(r"^    # A plan for three hosts.*?(?=^- )", f.read(), re.M | re.S).group()
    file = made(folder, "x.plan", "".join(line[4:] + "\n" for line in text.splitlines()))
    run(os.path.join(BIN, "mpiexec"), "-n", "1", "--do-not-launch", "--plan", file, "true")
    return True


if __name__ == "__main__":
    CASES = {f.__name__.replace("_", "-"): f for f in [written, named_roots, one_planner, dealt, wrong_words, odd_names, no_trees, time_ends, progress, outputs, trees, gains, followed, any_site, not_for_this_job, does_not_fit, large,
                                                       one_host, bad_files, alone, broken, guide]}
    chosen = {name: case for name, case in CASES.items() if not sys.argv[1:] or name in sys.argv[1:]}
    sys.exit(cases.tell_verdicts(chosen, (OSError, ValueError, subprocess.SubprocessError)))
