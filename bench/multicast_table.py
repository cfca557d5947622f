"""How long a broadcast takes: the parts `table` and `skew` of bench/multicast."""
import random
import statistics
import subprocess

from multicast_lab import (BARE, BETWEEN_S, HEADER, JOB_S, KIB, LOWER, MIB, MTU, OURS, PIECE, START_S, TCP, USUAL, WORST, Rows, figure, pieces, ratio, run, size_name,
                           wire_us, word)
from multicast_lab import levels

SIZES = [16, 256, KIB, 4 * KIB, 64 * KIB, MIB, 8 * MIB]
QUICK_SIZES = [16, 4 * KIB, 64 * KIB, MIB]
PEER_BARS = {16: 1.03, 256: 1.03, KIB: 1.03, 4 * KIB: 0.6}  # up to 1 KiB no slower: the interval does not lie wholly above
BARE_BARS = {64 * KIB: 0.05, MIB: 0.03, 8 * MIB: 0.02}  # times the wire time, beyond the bare sender
BARE_VOID = 1.03  # of the wire time at 1 MiB: then it says nothing
SPREAD_BAR, FRAMES_BAR, HEADER_BAR, GROWTH_BAR = 1.05, 1.02, 0.04, 1.03
MANY = 16  # on so many hosts faster than the best schedule over TCP
CONTROL = 7700


def counts(n, quick):
    """Calls of a cell in a round."""
    return 2 if quick else 50 if n <= 4 * KIB else 20 if n <= 64 * KIB else 5 if n <= MIB else 2


def sizes_of(quick):
    return QUICK_SIZES if quick else SIZES


def words_of(sizes, quick):
    return [word("bcast", n, counts(n, quick)) for n in sizes]


def quiet_ms(n, mbit):
    return 2e-3 * wire_us(n, mbit) + 100


# ---- the bare sender -------------------------------------------------------------------------------------------------


def bare_job(here, sizes):
    """What bench/datagrams.c prints, as rows of broadcasts."""
    root, *others = here.hosts
    program, group = here.options["datagrams"], f"239.66.{random.randrange(1, 255)}.{random.randrange(1, 255)}"
    port, control = str(random.randrange(20000, 30000)), str(CONTROL + random.randrange(200))
    count = str(max(counts(n, here.quick) for n in sizes))
    limit = JOB_S + sum((int(count) + 1) * (WORST * wire_us(n, here.mbit) * 1e-6 + BETWEEN_S) for n in sizes)
    here.inside.lab.ask("report", "--reset")
    ears = [here.lab.start(host, program, "hear", group, port, root, control, stdout=subprocess.DEVNULL) for host in others]
    sender = here.lab.start(root, program, "send", group, port, control, str(len(others)), str(PIECE), count, *map(str, sizes))
    try:
        out, err = sender.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        out, err = "", "hangs"
    for process in [sender, *ears]:
        if process.poll() is None:
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
        process.communicate()
    if not out.endswith("done\n"):
        here.stories.setdefault(BARE, err.strip() or "failed")
    rows = [line.split() for line in out.splitlines()]
    if any(len(row) == 4 and row[3] != "0" for row in rows):
        here.stories.setdefault(BARE, "datagrams were lost; such rounds do not count")
    return "".join(f"bcast {row[0]} {row[1]} {row[2]}\n" for row in rows if len(row) == 4 and row[3] == "0")


def measured(here, names, sizes):
    """{column: Rows} of interleaved rounds, a job for each; of ours also the frames."""
    taken = {name: Rows() for name in names}
    for _ in range(here.rounds):
        for name in names:
            if name == BARE:
                taken[name].add(here.on_time(BARE, lambda: bare_job(here, sizes)))
            else:
                taken[name].add(here.job(name, here.lib(name), words_of(sizes, here.quick)))
        long_ones = [n for n in sizes if n >= 64 * KIB]
        taken[OURS].add(here.job("frames", here.lib(), [word("frames", n, 2, quiet_ms(n, here.mbit)) for n in long_ones]))
    return taken


def against(taken, n, names):
    """(ratio, low, high) of ours by the best of these, or None."""
    ours, others = taken[OURS].times.get(("bcast", n)), [taken[name].times.get(("bcast", n)) for name in names]
    others = [values for values in others if values]
    return run.ratio_interval(ours, others, False) if ours and others else None


# ---- judging ---------------------------------------------------------------------------------------------------------


def misses_of(here, taken, n, wire, rivals):
    """What a size misses, as words of a row."""
    ours, found = taken[OURS].time("bcast", n), []
    share, where = ratio(ours, wire), f"{size_name(n)} on {len(here.hosts)} hosts"
    peer, tcp = against(taken, n, rivals), against(taken, n, [TCP]) if TCP in taken else None
    if n in PEER_BARS and rivals:
        met = None if not peer else peer[1] <= PEER_BARS[n] if n <= KIB else peer[0] <= PEER_BARS[n]
        found.append(here.judge(f"{where}, of the better peer", peer and peer[0], PEER_BARS[n], met))
    if n in BARE_BARS:
        bare, bare_long = (ratio(taken[BARE].time("bcast", size), wire_us(size, here.mbit)) for size in (n, MIB))
        if bare_long is not None and bare_long > BARE_VOID:
            here.stories.setdefault(BARE, f"VOID: at 1 MiB it takes {bare_long:.3f} of the wire time itself")
        found.append(here.judge(f"{where}, of the wire time beside the bare sender", share, (bare or 0) + BARE_BARS[n]))
        frames = taken[OURS].frames.get(n)
        found.append(here.judge(f"{where}, frames of the root", statistics.median(frames) / pieces(n) if frames else None, FRAMES_BAR))
        if len(here.hosts) >= MANY and tcp:
            found.append(here.judge(f"{where}, of our schedules over TCP", tcp[0], 1))
    if n == MIB:
        found.append(here.judge(f"{where}, slowest by fastest receiver", taken[OURS].spread("bcast", n), SPREAD_BAR))
    return "; ".join(dict.fromkeys(filter(None, found)))


def tell(here, taken, sizes):
    rivals = [name for name in taken if name not in (OURS, TCP, BARE)]
    here.say(f"\n{len(here.hosts)} hosts, {here.mbit} Mbit/s; milliseconds; median of {here.rounds} interleaved rounds")
    here.table(["", "wire", *taken, "by wire", "bare by wire", "by peer", "slowest by fastest", "frames by need", "of them TCP", ""])
    for n in sizes:
        wire, peer = wire_us(n, here.mbit), against(taken, n, rivals)
        share, bare = ratio(taken[OURS].time("bcast", n), wire), ratio(taken[BARE].time("bcast", n), wire) if BARE in taken else None
        frames, segments = taken[OURS].frames.get(n), taken[OURS].segments.get(n)
        here.row([size_name(n), levels.ms(wire), *(levels.ms(rows.time("bcast", n)) for rows in taken.values()), figure(share), figure(bare),
                  figure(peer and peer[0]), figure(taken[OURS].spread("bcast", n)),
                  figure(statistics.median(frames) / pieces(n) if frames else None), figure(statistics.median(segments) if segments else None, "{:.0f}"),
                  misses_of(here, taken, n, wire, rivals)])
        if share is not None:
            here.notes.setdefault("by wire", {})[str(n)] = share
    here.say()
    here.judge("share of our header in the payload of UDP", HEADER / (HEADER + PIECE), HEADER_BAR)
    here.judge("bytes of a datagram", HEADER + PIECE + LOWER, MTU)


def table(here):
    sizes = sizes_of(here.quick)
    tell(here, measured(here, [*here.columns(), BARE], sizes), sizes)


def growth(notes):
    """What the ratio to the wire time grows by with the number of hosts, as (text, whether the bar is met). `notes`: {hosts: notes}."""
    found = []
    if len(notes) < 2:
        return found
    few, many = min(notes), max(notes)
    for n in (MIB, 8 * MIB):
        one, other = (notes[hosts].get("by wire", {}).get(str(n)) for hosts in (few, many))
        if one and other:
            found.append((f"{size_name(n)}: by wire {one:.3f} on {few} hosts, {other:.3f} on {many}, below {GROWTH_BAR} times as much",
                          other / one < GROWTH_BAR))
    return found


def estimate(mbit, hosts, options):
    """Seconds."""
    total = 0
    for n in sizes_of(options["quick"]):
        calls = counts(n, options["quick"]) + 1
        total += sum(calls * (share * wire_us(n, mbit) * 1e-6 + BETWEEN_S) for share in USUAL.values())
        total += 3 * (2 * quiet_ms(n, mbit) * 1e-3 + BETWEEN_S) * (n >= 64 * KIB)
    return options["rounds"] * (total + (len(USUAL) + 1) * (START_S + hosts / 8))


# ---- the ways of the ipmc thesis -------------------------------------------------------------------------------------

PONG_SIZES, SPREAD_US = [16, KIB, 64 * KIB, MIB], 5000


def skew(here):
    """Durations of each node by broadcast-pong, and from the last arrival where ranks come at random."""
    sizes, names = PONG_SIZES[::2] if here.quick else PONG_SIZES, here.columns()
    count, arrivals = (2, 3) if here.quick else (5, 30)
    taken = {name: Rows() for name in names}
    for _ in range(here.rounds):
        for name in names:
            words = [w for n in sizes for w in (word("pong", n, count), word("skew", n, arrivals if n < MIB else count, SPREAD_US))]
            taken[name].add(here.job(name, here.lib(name), words))
    here.say(f"\n{len(here.hosts)} hosts, {here.mbit} Mbit/s; milliseconds. Of the nodes: the fastest, the mean and the slowest, the answer subtracted; "
             f"of arrivals at random within {SPREAD_US / 1000:g} ms: from the last one to the last end")
    here.table(["", "wire", *(f"{name}, {what}" for name in names for what in ("nodes", "arrivals"))])
    for n in sizes:
        words = []
        for rows in taken.values():
            nodes = [statistics.median(values) for values in rows.pongs.get(n, {}).values()]
            words.append(" / ".join(map(levels.ms, (min(nodes), statistics.fmean(nodes), max(nodes)))) if nodes else "-")
            words.append(levels.ms(statistics.median(rows.skews[n])) if rows.skews.get(n) else "-")
        here.row([size_name(n), levels.ms(wire_us(n, here.mbit)), *words])
        here.judge(f"{size_name(n)}, nodes measured by broadcast-pong, that are missing", len(here.hosts) - 1 - len(taken[OURS].pongs.get(n, {})), 0)
        here.judge(f"{size_name(n)}, calls with arrivals at random, that are missing", 0 if taken[OURS].skews.get(n) else 1, 0)


def skew_estimate(mbit, hosts, options):
    sizes = PONG_SIZES[::2] if options["quick"] else PONG_SIZES
    count, arrivals = (2, 3) if options["quick"] else (5, 30)
    calls = {n: (count + 1) * hosts + (arrivals if n < MIB else count) for n in sizes}
    shares = [USUAL[name] for name in USUAL if name != BARE]
    return options["rounds"] * sum(START_S + hosts / 8 + sum(calls[n] * (share * wire_us(n, mbit) * 1e-6 + BETWEEN_S) for n in sizes) for share in shares)
