#!/usr/bin/env python3
"""Do the programs of bench/ that need a lab run through, from their command line to the last verdict? The lab, the compilers and the
jobs are made up: scripts that print what real ones would. What they predict and bound is the real `tombolo explain`."""
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import cases

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOMBOLO = os.path.join(os.path.abspath(os.environ.get("BUILD_DIR") or os.path.join(ROOT, "build")), "bin", "tombolo")
RUN_S = 120

# Closed is what the grid files that end so say: hosts whose names begin with other letters are not known there.
FAKE_TOMBOLO = f"""#!/bin/sh
case "$1 $2" in
"lab run") case "$3" in *nat3*) export FAKE_CLOSED=1;; esac; shift 4; TOMBOLO_LAB=made-up exec "$@";;
"lab exec") export FAKE_HOST=$3; shift 3; exec sh -c "$*";;
"lab report") echo "lab congestion=cubic queue=65536 port_queue=262144"; echo "late count=9 p50=10 p99=20 max=30"
    echo "pipe a-b frames=5 full=$(cat "$FAKE_FOLDER/full")";;
"lab "*) exit 1;;
*) exec {TOMBOLO} "$@";;
esac
"""
FAKE_GETENT = """#!/bin/sh
[ -z "$FAKE_CLOSED" ] || [ "${2%${2#?}}" = "${FAKE_HOST%${FAKE_HOST#?}}" ]
"""
FAKE_COMPILER = """#!/bin/sh
while [ "$1" != -o ]; do shift; done; : > "$2"
"""
# Prints a row for each cell that is asked for. What a rule forces takes longer the longer its name is; with a plan it is faster, unless
# it is to be slower.
FAKE_MPIEXEC = """#!/usr/bin/env python3
import os, sys
words = sys.argv
with open(os.environ["FAKE_FOLDER"] + "/jobs", "a") as f:
    f.write(f"{os.environ.get('FAKE_HOST', 'console')} {' '.join([os.path.basename(words[0]), *words[1:]])}\\n")
at = next(i for i, word in enumerate(words) if os.path.basename(word) in ("peers", "levels", "multicast"))
rules = [word[6:] for word in words if word.startswith("rules=")]
took = 30000
if rules:
    for line in open(rules[0]):
        operation, size, forced = line.split()
        took += len(forced)
        print(operation, "-", "-", size.split("=")[1], "-", forced, file=sys.stderr)
if "--plan" in words:
    took = int(os.environ.get("FAKE_PLANNED", 20000))
def multicast_cell(what, n, count, argument):
    lossy = any(word.startswith("mcast_fault=") for word in words)
    mine = took * (1.1 if lossy else 2 if "mcast=off" in words else 1)
    if what == "frames":
        print("frames", n, -(-int(n) // 1420), 3)
    elif what == "pong":
        print(*(f"pong {n} {rank} {mine}" for rank in (1, 2, 3)), sep="\\n")
    elif what == "skew":
        print("skew", n, mine)
    else:
        print(*[f"{what} {n} {mine} {mine / 1.01}"] * int(count), sep="\\n")
    needed = -(-int(n) // 1420) * (int(count) + 1)
    for name, value in {"sent": needed + 10 * lossy, "used": 3 * needed, "repaired": 8 * lossy}.items():
        print("counter", what, n, name, value, value)


if words[at].endswith("multicast"):
    for cell in words[at + 1:]:
        multicast_cell(*cell.split(":"))
elif words[at].endswith("levels"):
    for cell in words[at + 1:]:
        operation, n, repetitions, idle, roots = cell.split(":")
        if "explain=1" in words:
            why = "the plan" if "--plan" in words and "FAKE_STRAYS" not in os.environ else "predicted"
            print(f"{operation:22} {12:6} {12:5} {n:>12} {6:9}  {'chain:8k 812.000 us':28} {why:14} -", file=sys.stderr)
        for root in roots.split(","):
            print(operation, n, root, took, *[took] * int(repetitions))
        if float(idle) > 0:
            print("cold", operation, n, 0, 2 * took)
else:
    for name in words[at + 1].split(","):
        operation, *sizes = name.split(":")
        for n in ["0"] if operation == "barrier" else sizes or words[at + 2].split(","):
            print(operation, n, took, took, took, took, 5, 0)
print("done")
"""


class Bench:
    """A build that is made up, and peers."""

    def __init__(self, folder, full=0):
        self.folder, self.bin = folder, os.path.join(folder, "build", "bin")
        os.makedirs(self.bin)
        scripts = {"tombolo": FAKE_TOMBOLO, "getent": FAKE_GETENT}
        scripts.update({name: FAKE_COMPILER for name in ("gcc", "mpicc", "mpicc.mpich", "mpicc.openmpi")})
        scripts.update({name: FAKE_MPIEXEC for name in ("mpiexec", "mpiexec.mpich", "mpiexec.openmpi")})
        for name, text in {**scripts, "../../full": f"{full}\n"}.items():
            with open(os.path.join(self.bin, name), "w", encoding="utf-8") as f:
                f.write(text)
            os.chmod(f.name, 0o755)

    def run(self, *words, codes=(0,), **variables):
        """What it prints; and the commands of the jobs, with where they were started."""
        environment = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}", "FAKE_FOLDER": self.folder, **variables}
        done = subprocess.run([os.path.join(ROOT, "bench", words[0]), *words[1:], "--build", os.path.join(self.folder, "build")],
                              env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=RUN_S)
        if done.returncode not in codes:
            raise RuntimeError(f"{words}: exit code {done.returncode}: {done.stdout[-500:]}{done.stderr[-1500:]}")
        with open(os.path.join(self.folder, "jobs"), encoding="utf-8") as f:
            return done.stdout, f.read().splitlines()


def grid(name):
    return os.path.join(ROOT, "examples", "grids", f"{name}.yaml")


def bench_grid(name):
    return os.path.join(ROOT, "bench", "grids", f"{name}.yaml")


def words_of(text):
    return [line.split() for line in text.splitlines()]


def peers(folder):
    out, jobs = Bench(folder).run("peers", grid("two-clusters"), "--operations", "bcast,barrier,point,mixture", "--sizes", "16k",
                                  "--ways", "blocks,dealt", "--rounds", "2", "--set", "ethernet_overhead=0")
    rows = [row for row in words_of(out) if row[:1] and row[0] in ("bcast", "barrier", "point", "mixture")]
    bounds = [[row[-6] for row in rows if row[0] == name] for name in ("bcast", "barrier", "point", "mixture")]
    started = [(job.split()[0], "--grid" in job, "--map cluster" in job, "ethernet_overhead=0" in job) for job in jobs if " mpiexec " in job]
    hosts = [job.split()[0] for job in jobs if " mpiexec " not in job]
    if bounds != [["17001"] * 2, ["10040"] * 2, ["17001"] * 2, ["-"] * 2]:
        return f"bounds {bounds}: {out}"
    if started != [("console", True, False, True)] * 2 + [("console", True, True, True)] * 2 or hosts != ["e1"] * 8:
        return f"{started} {hosts}"
    return out.count("1.000    1.000-1.000") == 8 or out


def peers_where_only_tombolo_runs(folder):
    out, jobs = Bench(folder).run("peers", bench_grid("nat3-20"), "--operations", "bcast", "--sizes", "8", "--rounds", "1")
    rows = [row for row in words_of(out) if row[:1] == ["bcast"]]
    return (len(jobs) == 1 and rows[0][3:] == ["30000", "cannot", "cannot"] and "a1 does not reach b1" in out) or f"{jobs} {out}"


def here(folder):
    out, jobs = Bench(folder).run("peers", "--here", "-n", "4", "--operations", "bcast", "--sizes", "8", "--rounds", "1")
    return (len(jobs) == 3 and all(" -n 4 " in job for job in jobs) and "bound" not in out) or f"{jobs} {out}"


def model(folder):
    out, jobs = Bench(folder).run("model", bench_grid("star3-20"), "--operations", "bcast", "--sizes", "64k", "--rounds", "1")
    if out.count("no algorithm below") != 2 or out.count("chosen within 1.1 of the fastest: 1 of 1") != 2:
        return out
    return any("--map cluster" in job for job in jobs) and all("console mpiexec --launcher" in job for job in jobs) or jobs


def model_with_lost_frames(folder):
    out, _ = Bench(folder, full=3).run("model", grid("cluster8"), "--operations", "bcast", "--sizes", "64k", "--rounds", "1")
    return ("lost frames: bcast 65536" in out and "of the fastest: 0 of 0, nothing to judge" in out and
            "predicted within 20 %: 0 of 0, nothing to judge" in out) or out


def collectives(folder):
    out, _ = Bench(folder).run("collectives", "--lab", "--grids", grid("cluster8"), "--only", "bcast,barrier", "--rounds", "1")
    return "bcast 1048576: 0.337 of the wire time of one copy" in out or out


def gather_stall(folder):
    out, _ = Bench(folder).run("gather_stall", grid("cluster8"), "--sizes", "8k", "--repetitions", "5")
    return ["Tombolo", "8192", "4.74", "30.00"] in [row[:4] for row in words_of(out)] or out


def cells(line):
    """Of a row of a table, without blanks."""
    return [word.strip() for word in line.strip("|").split("|")]


def levels(folder):
    out, jobs = Bench(folder).run("levels", bench_grid("mesh3-20"), "--operations", "bcast,barrier", "--sizes", "16,64k", "--rounds", "1",
                                  "--idle", "1")
    rows = [cells(line) for line in out.splitlines() if line.startswith("| bcast 16 B")]
    heads = [cells(line) for line in out.splitlines() if line.startswith("|  ") and "bound" in line]
    if heads[0][2:9] != ["bound", "levels", "machine", "site", "flat", "MPICH", "Open MPI"]:
        return f"{heads} {out}"
    if heads[0][9:11] != ["by bound", "worst root"] or any(float(row[10]) < float(row[9]) for row in rows[:2]):
        return f"{heads} {out}"
    if [row[3:9] for row in rows[:2]] != [["30"] * 6, ["30", "-", "-", "30", "30", "30"]] or rows[2][2:] != ["360"] * 6:
        return f"{rows} {out}"
    if not all(10.0 < float(row[2]) < 10.1 for row in rows[:2]):  # a latency of 10 ms, and what a switch adds: ports pass one frame at once
        return f"{rows} {out}"
    cold = [cells(line)[2:] for line in out.split("without a message")[1].splitlines() if line.startswith("| bcast 64 KiB")]
    if cold != [["60", "-", "-", "-", "-", "-"]]:
        return f"{cold} {out}"
    if "NOT MET  bcast 16 B, blocks: 2.98 of the bound, not 1.2" not in out or "2 of 6 cells meet their bars" not in out:
        return out
    return (len(jobs) == 20 and sum("--map cluster" in job for job in jobs) == 4) or f"{jobs} {out}"


def levels_behind_gateways(folder):
    out, jobs = Bench(folder).run("levels", bench_grid("nat3-20"), "--operations", "bcast", "--sizes", "16", "--rounds", "1", "--ways",
                                  "dealt", "--columns", "levels,MPICH")
    if "| bcast 16 B" not in out or "cannot" not in out or "1 of 1 cells meet their bars" not in out:
        return out  # the hops take as much as the rest
    return (len(jobs) == 2 and "point:16:5:0:0 point:4096:5:0:0" in jobs[0]) or jobs


def levels_that_fail(folder):
    """What a job has printed until it failed is told, and that it failed."""
    bench = Bench(folder)
    with open(os.path.join(bench.bin, "mpiexec"), "a", encoding="utf-8") as f:
        f.write("sys.exit(3)\n")
    out, _ = bench.run("levels", bench_grid("mesh3-20"), "--operations", "bcast", "--sizes", "16", "--ways", "blocks", "--columns", "levels")
    return ("| bcast 16 B" in out and "levels, bcast, blocks: exit code 3" in out) or out


def pacx(folder):
    out, jobs = Bench(folder).run("pacx", "--tables", "II", "--operations", "bcast")
    rows = [cells(line) for line in out.splitlines() if line.startswith("| 1+63")]
    if len(jobs) != 12 or not any("levels=none --set bcast=binomial" in job for job in jobs):
        return jobs
    return (rows[-1][2:] == ["30", "30"] and 10 < float(rows[-1][1]) < 11 and "met  bcast: 30 to 30 ms" in out) or out


# Where others run on the machine, what was measured is void, and the status 1.
ANY_STATUS = (0, 1)


def plans_agree(folder):
    out, jobs = Bench(folder).run("planned", "agree", "--sizes", "64k", "--rounds", "2", "--planners", "lpbf,ecef", "--evaluations", "20", "--repetitions", "2",
                                  codes=(1,))
    rows = [cells(line) for line in out.splitlines() if line.startswith("| bcast")]
    if any(len(row) != 8 for row in rows) or "have dropped, all sizes together: " not in out:
        return out
    if [row[:2] + row[4:6] for row in rows] != [["bcast 64 KiB", "lpbf", "20", "0.37"], ["bcast 64 KiB", "ecef", "20", "0.15"]]:
        return out
    if any("bcast:65536:2:0:0" not in job or "--plan" not in job or "explain=1" not in job for job in jobs) or len(jobs) != 4:
        return jobs
    first = [next(name for name in ("lpbf", "ecef") if f"-{name}.plan" in job) for job in jobs]
    wanted = ["lpbf, bcast 64 KiB: 0.37 of what was predicted", "bcast 64 KiB: ecef is not slower than lpbf", "2 cells, 3 bars missed"]
    return (first == ["lpbf", "ecef", "ecef", "lpbf"] and all(text in out for text in wanted) and "congestion cubic" in out) or f"{first} {out}"


def plans_beside_the_choice(folder):
    out, jobs = Bench(folder).run("planned", "choice", "--operations", "bcast", "--sizes", "16,1m", "--rounds", "1", "--evaluations", "20", codes=ANY_STATUS)
    rows = [cells(line) for line in out.splitlines() if line.startswith("| bcast")]
    if len(rows) != 12 or any(row[5:9] != ["30", "20", "0.667", "0.667-0.667"] for row in rows) or [row[1] for row in rows[:4]] != ["blocks"] * 2 + ["dealt"] * 2:
        return out
    dealt = [job for job in jobs if "--map cluster" in job]
    if len(jobs) != 12 or len(dealt) != 6 or sum("-dealt-plan.plan" in job for job in dealt) != 3 or sum("--plan" in job for job in jobs) != 6:
        return jobs
    if [sum(f"{grid}.yaml" in job for job in jobs) for grid in ("mesh3-20", "star3-20", "nat3-20")] != [4, 4, 4]:
        return jobs
    return ("12 cells, 0 bars missed" in out and "bcast:16:5:0:0,1,2,3,4,5,6,7,8,9,10,11 bcast:1048576:5:0:0,4,8" in jobs[0]) or f"{jobs} {out}"


def plans_that_are_slower(folder):
    """They are measured again, with twice the rounds, and then missed; those that were not followed have no figures."""
    bench = Bench(folder)
    words = "planned", "choice", bench_grid("mesh3-20"), "--operations", "bcast", "--sizes", "16", "--ways", "blocks", "--rounds", "2", "--evaluations", "20"
    out, jobs = bench.run(*words, codes=(1,), FAKE_PLANNED="33000")
    if [cells(line)[-1] for line in out.splitlines() if line.startswith("| bcast")] != ["again", "SLOWER"] or len(jobs) != 12:
        return f"{jobs} {out}"
    if "bcast 16 B, blocks: slower than the library's own choice" not in out:
        return out
    out, _ = bench.run(*words, codes=(1,), FAKE_STRAYS="1")
    return ("there are 0 pairs of figures" in out and "the plan was not followed: chain:8k of 16 bytes because of predicted" in out) or out


def plans_that_gain(folder):
    """On a grid on which trees gain much; one cell of it is not enough."""
    grid_file = os.path.join(folder, "unequal.yaml")
    rates = [(5, 5), (20, 5), (50, 200), (50, 200), (5, 5), (50, 5), (50, 200), (1, 200), (20, 20), (1, 50)]
    pairs = [(i, k) for i in range(5) for k in range(i)]
    with open(grid_file, "w", encoding="utf-8") as f:
        f.write("clusters:\n" + "".join(f"  - {{name: c{i}, hosts: ['h{i}a:1', 'h{i}b:2']}}\n" for i in range(5)) + "links:\n" +
                "".join(f"  - {{from: c{i}, to: c{k}, latency: {latency}, bandwidth: {rate}}}\n" for (i, k), (latency, rate) in zip(pairs, rates)))
    bench = Bench(folder)
    words = "planned", "gain", grid_file, "--rounds", "3", "--evaluations", "300", "--operations", "bcast", "--sizes", "64k"
    out, jobs = bench.run(*words, "--cells", "1", codes=(1,))
    rows = [cells(line) for line in out.splitlines() if line.startswith("| bcast")]
    if len(rows) != 1 or rows[0][7:] != ["0.667", "0.667-0.667", "planned", "confirmed"] or float(rows[0][3]) < 1.1 * float(rows[0][4]):
        return out
    root = rows[0][0].rpartition(" ")[2]
    if len(jobs) != 6 or any(not job.endswith(f"levels bcast:65536:5:0:{root}") for job in jobs):
        return jobs
    out, _ = bench.run(*words, "--estimate")
    return ("gain: about" in out and "| bcast" not in out) or out


def multicast(folder):
    out, jobs = Bench(folder).run("multicast", "--quick", "--only", "loss,table,skew", codes=(1,))
    rows = [cells(line) for line in out.splitlines() if line.startswith("| 1 MiB")]
    lossy = [cells(line) for line in out.splitlines() if line.startswith("| 4 |")]
    if [row[2:7] + row[9:13] for row in rows] != [["30", "60", "30", "30", "-", "1.000", "1.010", "1.000", "3"]] * 2:
        return f"{rows} {out}"
    if lossy != [["4", "30", "33", "0.909", "8", "10", "1.250"]] * 2:
        return f"{lossy} {out}"
    if "| 64 KiB | 5.687 | 30 / 30 / 30 | 30 | 60 / 60 / 60 | 60 |" not in out or "loss: 4 bars, 0 missed" not in out:
        return out
    wanted = ["4 KiB on 4 hosts, of the better peer: 1, not 0.6", "1 MiB on 4 hosts, of the wire time beside the bare sender: 0.3302, not 0.03"]
    return (all(f"NOT MET  table: {text}" in out for text in wanted) and len(jobs) == 2 * 5 + 2 * 2 + 4) or f"{jobs} {out}"


def multicast_that_fails(folder):
    bench = Bench(folder)
    with open(os.path.join(bench.bin, "mpiexec"), "a", encoding="utf-8") as f:
        f.write("sys.exit(3)\n")
    out, jobs = bench.run("multicast", "--quick", "--only", "hub", codes=(1,))
    if out.count("NOT MET  hub: Tombolo: exit code 3") != 4 or "| barrier | 30 |" not in out:
        return out
    out, more = bench.run("multicast", "--estimate")
    return (len(more) == len(jobs) and "all: about" in out) or out


def main():
    calls = {call.__name__: call for call in (peers, peers_where_only_tombolo_runs, here, model, model_with_lost_frames, collectives,
                                              gather_stall, levels, levels_behind_gateways, levels_that_fail, pacx, plans_agree,
                                              plans_beside_the_choice, plans_that_are_slower, plans_that_gain, multicast,
                                              multicast_that_fails)}
    return cases.tell_verdicts(calls, (RuntimeError, OSError, IndexError, subprocess.SubprocessError))


if __name__ == "__main__":
    sys.exit(main())
