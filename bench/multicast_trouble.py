"""Broadcasts where something is in the way: the parts `loss`, `rate`, `hub` and `flood` of bench/multicast."""
import json
import os
import re
import statistics
import subprocess
import time

from multicast_lab import BETWEEN_S, KIB, MIB, OURS, PIECE, Rows, figure, levels, peers, pieces, ratio, size_name, wire_us, word
from multicast_table import BARE, BARE_BARS, bare_job

TCP_SHARE = 1448 / 1538  # of the wire that is data of TCP
HANG_S = 120


def mended(rows, what, n, calls):
    """Share of the fragments that a receiver, the one with most of them, did not get at once: by a repair, or over TCP."""
    return (rows.counted(what, n, "repaired")[1] + rows.counted(what, n, "control")[0] / PIECE) / (pieces(n) * calls)


# ---- loss ------------------------------------------------------------------------------------------------------------

LOSS, GOODPUT_BAR, REPAIR_BAR, JUDGED_HOSTS = "1%", 0.8, 2, 8


def loss(here):
    n, count = MIB, 2 if here.quick else 10
    taken = {"none": Rows(), LOSS: Rows()}
    for turn in range(here.rounds):
        for name, rows in taken.items():
            settings = [f"mcast_fault=loss={LOSS},seed={turn + 1}"] if name != "none" else []
            rows.add(here.job(f"loss {name}", here.lib(settings=settings), [word("bcast", n, count)]))
    rows = taken[LOSS]
    calls, needed = here.rounds * (count + 1), pieces(n)
    sent, repaired, control = (rows.counted("bcast", n, name)[0] for name in ("sent", "repaired", "control"))
    lost, more = repaired + control / PIECE, sent - calls * needed + control / PIECE
    share = ratio(taken["none"].time("bcast", n), rows.time("bcast", n))
    here.table(["hosts", "no loss, ms", f"loss of {LOSS}, ms", "goodput", "datagrams lost", "repair traffic", "repair by lost"])
    here.row([len(here.hosts), *(levels.ms(one.time("bcast", n)) for one in taken.values()), figure(share), f"{lost:.0f}", f"{more:.0f}",
              figure(ratio(more, lost))])
    if len(here.hosts) <= JUDGED_HOSTS:
        here.judge("goodput of 1 MiB with a loss of 1 %, by that without", share, GOODPUT_BAR, share is not None and share >= GOODPUT_BAR)
    here.judge(f"repair traffic on {len(here.hosts)} hosts by datagrams lost", ratio(more, lost), REPAIR_BAR)


def loss_estimate(mbit, _hosts, options):
    count = 2 if options["quick"] else 10
    return options["rounds"] * 2 * (5 + (count + 1) * (1.3 * wire_us(MIB, mbit) * 1e-6 + BETWEEN_S))


# ---- rate ------------------------------------------------------------------------------------------------------------

SLOWEST_BAR, LOST_BAR, STOP_MS, SHARE_BAR, FLOW_S = 0.9, 0.02, 500, 1 / 3, 20


def rate_bytes(quick):
    return MIB if quick else 8 * MIB


def unequal(here):
    """A root whose port is ten and a hundred times as fast as its receivers' ports. `mbit` is the slowest's."""
    n, count, rows = rate_bytes(here.quick), 2, Rows()
    for _ in range(here.rounds):
        rows.add(here.job("unequal ports", here.lib(), [word("bcast", n, count)]))
    share, lost = ratio(wire_us(n, here.mbit), rows.time("bcast", n)), mended(rows, "bcast", n, here.rounds * (count + 1))
    here.table(["unequal ports", "ms", "share of the slowest port", "datagrams lost there"])
    here.row([size_name(n), levels.ms(rows.time("bcast", n)), figure(share), f"{100 * lost:.2f} %"])
    here.judge("share of the slowest port", share, SLOWEST_BAR, share is not None and share >= SLOWEST_BAR)
    here.judge("datagrams lost on unequal ports", lost if rows.times else None, LOST_BAR)


def stopped(here):
    n, count, rows = rate_bytes(here.quick), 2, Rows()
    for _ in range(here.rounds):
        rows.add(here.job("a stopped receiver", here.lib(), [word("bcast", n, count), word("stop", n, count, STOP_MS)]))
    plain, took = rows.time("bcast", n), rows.time("stop", n)
    here.table(["a receiver stopped for 500 ms", "ms", "without, ms", "first receiver, ms"])
    here.row([size_name(n), levels.ms(took), levels.ms(plain),
              levels.ms(statistics.median(rows.first["stop", n]) if rows.first.get(("stop", n)) else None)])
    here.judge("a receiver stopped for 500 ms, milliseconds", took and took / 1e3, STOP_MS + (plain or 0) / 1e3 / SLOWEST_BAR)


def flow_rate(instants, n, begin, end):
    """Bytes a second of messages that came between two instants, or None."""
    inside = [t for t in instants if begin <= t <= end]
    return n * (len(inside) - 1) / (inside[-1] - inside[0]) if len(inside) > 2 else None


class Running:
    """A job that goes on while something else happens; what it says is read from files."""

    def __init__(self, here, lib, words):
        self.files = [os.path.join(here.options["folder"], f"multicast-{name}") for name in ("out", "err")]
        command = here.inside.prefix(lib, [*lib["command"], os.path.join(lib["dir"], "multicast"), *words])
        with open(self.files[0], "w", encoding="utf-8") as out, open(self.files[1], "w", encoding="utf-8") as err:
            self.process = subprocess.Popen(command, env={**os.environ, **lib["environment"]}, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                            start_new_session=True)

    def text(self, which):
        with open(self.files[which], encoding="utf-8", errors="replace") as f:
            return f.read()

    def wait_for(self, which, pattern):
        """The match, or None if it ended or said nothing."""
        over = time.monotonic() + HANG_S
        while time.monotonic() < over:
            ended, found = self.process.poll() is not None, re.search(pattern, self.text(which), re.M)
            if found or ended:
                return found
            time.sleep(0.05)
        return None

    def finish(self, seconds):
        """'' if it ended well, else how it did not."""
        try:
            code = self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            peers.end_session(self.process)
            return "hangs"
        except BaseException:
            peers.end_session(self.process)
            raise
        return "" if code == 0 else f"exit code {code}: {self.text(1).strip()[-400:]}"


def tcp_rate(here, one, other, seconds):
    """Bits a second of iperf3, without its first second, and the instants between which that was; raises RuntimeError."""
    server = here.lab.start(other, "iperf3", "-s", "-1")
    time.sleep(0.5)
    begin = time.monotonic()
    client = here.lab.start(one, "iperf3", "-c", other, "-t", str(seconds), "-O", "1", "-J")
    try:
        said = json.loads(client.communicate(timeout=seconds + HANG_S)[0])
        return said["end"]["sum_received"]["bits_per_second"], begin + 1.5, time.monotonic() - 0.5
    except (KeyError, ValueError, subprocess.TimeoutExpired) as problem:
        raise RuntimeError(f"iperf3: {problem!r}") from None
    finally:
        for process in (client, server):
            if process.poll() is None:
                process.kill()
                process.communicate()


def shares_beside_tcp(here, n, seconds):
    """Of the port: those of broadcasts after each other and of TCP. Raises RuntimeError."""
    here.jobs, here.busy = here.jobs + 1, here.busy + peers.others_run()
    job, rows = Running(here, here.lib(), [word("flow", n, 1, seconds + 8)]), Rows()
    try:
        began = job.wait_for(0, "^begin")
        bits, begin, end = tcp_rate(here, here.hosts[0], here.hosts[1], seconds) if began else (0, 0, 0)
    finally:
        story = job.finish(seconds + HANG_S)
    late = here.inside.late()
    if story or late:
        raise RuntimeError(story or f"VOID: {late}")
    rows.add(job.text(0))
    flow = flow_rate(rows.flows[1:], n, begin, end)
    return (flow or 0) * wire_us(n, here.mbit) * 1e-6 / n, bits / 1e6 / TCP_SHARE / here.mbit


def beside_tcp(here):
    n, seconds, shares = MIB, 4 if here.quick else FLOW_S, []
    for _ in range(here.rounds):
        try:
            shares.append(shares_beside_tcp(here, n, seconds))
        except RuntimeError as problem:
            here.stories["beside TCP"] = str(problem)
    mine, tcp = (statistics.median(values) for values in zip(*shares)) if shares else (None, None)
    here.table(["beside one TCP stream", "broadcasts", "TCP"])
    here.row(["share of the port", figure(mine), figure(tcp)])
    for name, share in (("broadcasts", mine), ("TCP", tcp)):
        here.judge(f"share of {name} beside each other", share, SHARE_BAR, share is not None and share >= SHARE_BAR)


def rate(here):
    if here.options["grid_name"] == "unequal":
        unequal(here)
    else:
        stopped(here)
        beside_tcp(here)


def rate_estimate(mbit, hosts, options):
    wire = wire_us(rate_bytes(options["quick"]), mbit) * 1e-6
    if mbit < 100:
        return options["rounds"] * (5 + 3 * 1.2 * wire)
    return options["rounds"] * (20 + 6 * 1.2 * wire + FLOW_S)


# ---- hub and half-duplex ports ---------------------------------------------------------------------------------------

COPY_BAR, LONGEST_BAR_MS, OFTEN = 1.1, 100, 500


def hub_words(mbit, quick):
    sizes = [64 * KIB] if quick else [64 * KIB, MIB]
    often = 5 if quick else OFTEN
    return sizes, [*(word("bcast", n, 2 if quick else 10 if n < MIB else 3) for n in sizes), word("barrier", 0, often), word("gather", KIB, often)]


def hub(here):
    sizes, words = hub_words(here.mbit, here.quick)
    rows, bare, slow = Rows(), Rows(), here.mbit < 100
    for _ in range(here.rounds):
        rows.add(here.job(OURS, here.lib(), words))
        bare.add(here.on_time(BARE, lambda: bare_job(here, sizes)))
    here.table([f"{here.options['grid_name']}, {len(here.hosts)} hosts", "median, ms", "longest, ms", "by one copy", "bare by one copy", ""])
    for n in sizes:
        wire = wire_us(n, here.mbit)
        share, other = ratio(rows.time("bcast", n), wire), ratio(bare.time("bcast", n), wire)
        bar = COPY_BAR if slow else (other or 0) + BARE_BARS[n]
        here.row([f"bcast {size_name(n)}", levels.ms(rows.time("bcast", n)), levels.ms(max(rows.times.get(("bcast", n), [0]))), figure(share), figure(other),
                  here.judge(f"bcast {size_name(n)} on {here.options['grid_name']} with {len(here.hosts)} hosts, by one copy", share, bar)])
    for what, n in (("barrier", 0), ("gather", KIB)):
        times = rows.times.get((what, n))
        longest = max(times) / 1e3 if times else None
        here.row([what, levels.ms(rows.time(what, n)), figure(longest), "-", "-",
                  here.judge(f"longest {what} on {here.options['grid_name']} with {len(here.hosts)} hosts, ms", longest, LONGEST_BAR_MS)])


def hub_estimate(mbit, hosts, options):
    sizes, _ = hub_words(mbit, options["quick"])
    wire = sum(wire_us(n, mbit) * 1e-6 for n in sizes)
    often = 5 if options["quick"] else OFTEN
    return options["rounds"] * (10 + 25 * wire + 2 * often * (BETWEEN_S + hosts * wire_us(KIB, mbit) * 1e-6))


# ---- flood -----------------------------------------------------------------------------------------------------------

FLOOD_COUNT, FLOOD_S, STRANGER = 10_000_000, 120, "stranger"
GROUP = r"\(group ([\d.]+):(\d+), "


def flood_seconds(quick):
    return 5 if quick else FLOOD_S


def flood(here):
    n, seconds = 64 * KIB, flood_seconds(here.quick)
    rows, said, others = Rows(), None, peers.others_run()
    here.jobs, here.busy = here.jobs + 1, here.busy + others
    job = Running(here, here.lib(settings=["explain=yes"]), [word("flow", n, 1, seconds + 5)])
    group = job.wait_for(1, GROUP)
    if group and job.wait_for(0, "^begin"):
        said = here.lab.start(STRANGER, here.options["flood"], here.options["interface"], *group.groups(), str(FLOOD_COUNT),
                              str(seconds)).communicate(timeout=seconds + HANG_S)[0].split()
    story = job.finish(seconds + HANG_S)
    rows.add(job.text(0))
    here.judge(f"a job under a flood goes wrong ({story or 'it does not'})", 1 if story else 0, 0)
    if not said or said[0] != "flood":
        here.judge("a flood", None, 0)
        return
    sent, replayed, took, messages = int(said[1]), int(said[2]), float(said[3]), len(rows.flows) - 1
    used, rejected, repeated = (rows.counted("flow", n, name)[0] for name in ("used", "rejected", "late"))
    most = messages * pieces(n) * (len(here.hosts) - 1)
    here.table(["flood", "datagrams", "a second", "of them replayed", "rejected", "late", "broadcasts meanwhile, every byte right", "fragments used of those needed"])
    here.row(["64 KiB", sent, f"{sent / took:.0f}", replayed, rejected, repeated, messages, figure(ratio(used, most))])
    here.judge("fragments used, by those that there were", ratio(used, most), 1)
    here.judge("forged datagrams that were counted as such", rejected, 0, rejected > 0)
    here.judge("broadcasts under a flood", messages, 1, messages > 0)


def flood_estimate(_mbit, _hosts, options):
    return 20 + flood_seconds(options["quick"])
