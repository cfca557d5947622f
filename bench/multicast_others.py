"""Broadcasts beside a tool that is made for it, messages to chosen ranks, and whole programs: the parts `udpcast`, `chosen` and `examples`
of bench/multicast."""
import os
import statistics
import subprocess
import time

from multicast_lab import BETWEEN_S, KIB, MIB, OURS, START_S, TCP, Rows, figure, levels, load, peers, ratio, size_name, wire_us, word

HANG_S = 240
PORT = 9000  # of udpcast, and the next one
SETTLE_S = 1  # until receivers have begun to listen


# ---- udpcast ---------------------------------------------------------------------------------------------------------


def file_bytes(quick):
    return 4 * MIB if quick else 64 * MIB


def udpcast_once(here, path):
    """Seconds from the sender's start until the last receiver has ended; raises RuntimeError."""
    root, *others = here.hosts
    interface = ["--interface", here.options["interface"], "--portbase", str(PORT), "--nokbd"]
    ears = [here.lab.start(host, "udp-receiver", *interface, "--no-progress", stdout=subprocess.DEVNULL) for host in others]
    time.sleep(SETTLE_S)
    begin = time.monotonic()
    sender = here.lab.start(root, "udp-sender", *interface, "--full-duplex", "--no-progress", "--min-receivers", str(len(others)), "--file", path,
                            stdout=subprocess.DEVNULL)
    try:
        for process in (sender, *ears):
            _, err = process.communicate(timeout=max(1, begin + HANG_S - time.monotonic()))
            if process.returncode != 0:
                raise RuntimeError(f"udpcast: exit code {process.returncode}: {err.strip()[-300:]}")
    except subprocess.TimeoutExpired:
        raise RuntimeError("udpcast hangs") from None
    finally:
        for process in (sender, *ears):
            if process.poll() is None:
                process.kill()
                process.communicate()
    return time.monotonic() - begin


def udpcast(here):
    """The tool's time of a file less that of an empty one, which starting and ending take."""
    n, rows, tool = file_bytes(here.quick), Rows(), []
    files = {length: os.path.join(here.options["folder"], f"multicast-{length}") for length in (1, n)}
    for length, path in files.items():
        with open(path, "wb") as f:
            f.write(os.urandom(length))
    for _ in range(here.rounds):
        rows.add(here.job(OURS, here.lib(), [word("bcast", n, 1)]))
        try:
            start, whole = (udpcast_once(here, files[length]) for length in (1, n))
            tool.append((whole - start) * 1e6)
        except RuntimeError as problem:
            here.stories.setdefault("udpcast", str(problem))
    for path in files.values():
        os.unlink(path)
    ours, theirs = rows.time("bcast", n), statistics.median(tool) if tool else None
    here.table([f"{size_name(n)} to {len(here.hosts) - 1} hosts", "seconds", "Mbit/s", "by one copy"])
    for name, took in (("MPI_Bcast", ours), ("udpcast", theirs)):
        here.row([name, figure(took and took / 1e6), figure(took and n * 8 / took, "{:.1f}"), figure(ratio(took, wire_us(n, here.mbit)))])
    here.judge("MPI_Bcast by udpcast", ratio(ours, theirs), 1)


def udpcast_estimate(mbit, _hosts, options):
    return options["rounds"] * (15 + 3.5 * wire_us(file_bytes(options["quick"]), mbit) * 1e-6)


# ---- one message to chosen ranks -------------------------------------------------------------------------------------

CHOSEN_BAR = 1.1


def chosen_words(quick):
    n, count = (256 * KIB, 2) if quick else (MIB, 10)
    return n, [word(what, n, count) for what in ("chosen", "bcast")]


def chosen(here):
    n, words = chosen_words(here.quick)
    rows = Rows()
    for _ in range(here.rounds):
        rows.add(here.job(OURS, here.lib(), words))
    here.table([f"{size_name(n)} to {len(here.hosts) - 1} hosts, {here.mbit} Mbit/s", "ms", "longest, ms", "by one copy", "slowest by fastest", ""])
    for what, name in (("chosen", "Tombolo_Multicast"), ("bcast", "MPI_Bcast")):
        share = ratio(rows.time(what, n), wire_us(n, here.mbit))
        here.row([name, levels.ms(rows.time(what, n)), levels.ms(max(rows.times.get((what, n), [0]))), figure(share), figure(rows.spread(what, n)),
                  here.judge(f"{name} of {size_name(n)} to {len(here.hosts) - 1} hosts, by one copy", share, CHOSEN_BAR)
                  if what == "chosen" else ""])
    here.judge("datagrams of messages to chosen ranks", rows.counted("chosen", n, "sent")[0], 1, rows.counted("chosen", n, "sent")[0] > 0)


def chosen_estimate(mbit, _hosts, options):
    n, words = chosen_words(options["quick"])
    return options["rounds"] * (START_S + sum((int(w.split(":")[2]) + 1) * (1.2 * wire_us(n, mbit) * 1e-6 + BETWEEN_S) for w in words))


# ---- programs --------------------------------------------------------------------------------------------------------

PROGRAMS = ("matmul", "gauss")
PROGRAM_S = 8


def examples(here):
    """No bar but that all come to the same result. Debian's MPICH sometimes does not end; what it told before counts."""
    bench = load("examples")
    names = here.columns()
    here.say(f"\n{len(here.hosts)} hosts, {here.mbit} Mbit/s; seconds; median of {here.rounds} interleaved rounds")
    here.table(["", *names, f"{OURS} by {TCP}", "by the better peer", "same result"])
    for program in PROGRAMS:
        times, results = {name: [] for name in names}, set()
        for _ in range(here.rounds):
            for name, taken in times.items():
                here.jobs, here.busy = here.jobs + 1, here.busy + peers.others_run()
                lib = {**here.lib(name), **({"last": "result:"} if name == "MPICH" else {})}
                lib["dir"] = os.path.join(lib["dir"], "examples")
                try:
                    seconds, result = bench.run_example(peers, here.inside, program, lib)
                    taken.append(seconds)
                    results.add(result)
                except RuntimeError as problem:
                    here.stories.setdefault(f"{program}, {name}", str(problem))
        medians = {name: statistics.median(taken) if taken else None for name, taken in times.items()}
        rivals = [medians[name] for name in names if name not in (OURS, TCP) and medians[name]]
        here.row([f"{program} {' '.join(bench.EXAMPLES[program])}", *(figure(m) for m in medians.values()), figure(ratio(medians[OURS], medians[TCP])),
                  figure(ratio(medians[OURS], min(rivals) if rivals else None)), "yes" if len(results) == 1 else "NO"])
        here.judge(f"different results of {program}", len(results) or None, 1)


def examples_estimate(_mbit, _hosts, options):
    return options["rounds"] * len(PROGRAMS) * 4 * PROGRAM_S


def compile_examples(libs):
    """Into a folder beside the other programs of each library."""
    for lib in libs.values():
        folder = os.path.join(lib["dir"], "examples")
        os.makedirs(folder, exist_ok=True)
        for program in PROGRAMS:
            source = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "examples", f"{program}.c")
            subprocess.run([*lib["cc"], "-O2", "-w", source, "-o", os.path.join(folder, program), "-lm"], check=True)
