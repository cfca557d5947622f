#!/usr/bin/env python3
"""Does bench/multicast judge rightly? Figures are made up here, and no lab is needed."""
import os
import sys
import types

sys.dont_write_bytecode = True
import cases

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "bench"))
import multicast_lab as lab
import multicast_table as table
import multicast_trouble as trouble

MIB = 1 << 20


def here(hosts=8, mbit=100):
    """A lab in which nothing runs, with all that judges."""
    found = lab.Here.__new__(lab.Here)
    found.hosts, found.mbit, found.stories, found.missed, found.judged, found.lines = [f"c{i}" for i in range(hosts)], mbit, {}, [], 0, []
    return found


def rows(text):
    found = lab.Rows()
    found.add(text)
    return found


def wire_times():
    """Of one copy: 739 datagrams of 1420 bytes, the last one shorter; a short frame takes 84 bytes of the wire."""
    wanted = {MIB: (MIB + 739 * 118) * 8 / 100, 1420: 1538 * 8 / 100, 1421: (1538 + 119) * 8 / 100, 0: 118 * 8 / 100}
    for n, took in wanted.items():
        if abs(lab.wire_us(n, 100) - took) > 1e-6:
            yield f"{n} bytes take {lab.wire_us(n, 100)} us, not {took}"
    if [lab.pieces(n) for n in (0, 1, 1420, 1421, MIB)] != [1, 1, 1, 2, 739]:
        yield "pieces"


def rows_are_read():
    one = rows("bcast 16 30 20\nbcast 16 50 40\nbcast 16 40 10\nframes 65536 47 2\npong 16 3 5.5\nskew 16 7\nbegin 64 1.5\nflow 64 2.5\n"
               "counter bcast 16 sent 10 4\ncounter bcast 16 sent 1 1\ndone\n")
    if (one.time("bcast", 16), one.time("bcast", 32), one.spread("bcast", 16)) != (40, None, 1.5):
        yield f"{one.times} {one.spread('bcast', 16)}"
    if (one.frames, one.segments, one.pongs, one.skews, one.flows) != ({65536: [47]}, {65536: [2]}, {16: {3: [5.5]}}, {16: [7]}, [1.5, 2.5]):
        yield "rows of other kinds"
    if one.counted("bcast", 16, "sent") != (11, 4) or one.counted("bcast", 16, "late") != (0, 0):
        yield f"{one.counters}"


def taken(n, ours, tcp, peer, bare, frames=None, spread=1.0):
    """Columns whose calls take so many times the wire time of one copy."""
    wire = lab.wire_us(n, 100)
    lines = {lab.OURS: ours, lab.TCP: tcp, "MPICH": peer, lab.BARE: bare}
    found = {name: rows(f"bcast {n} {share * wire} {share * wire / spread}\n" * 3) for name, share in lines.items()}
    found[lab.OURS].add(f"frames {n} {frames} 0\n" if frames is not None else "")
    return found


def misses(columns, n, hosts=8):
    place = here(hosts)
    table.misses_of(place, columns, n, lab.wire_us(n, 100), ["MPICH"])
    return [text.partition(", ")[2].partition(":")[0] for text in place.missed], place


def cells_meet_their_bars_or_not():
    small = 1024
    tries = [
        ("as fast as the peer", taken(small, 2, 1, 2, 1), small, 8, []),
        ("slower than the peer", taken(small, 2.2, 1, 2, 1), small, 8, ["of the better peer"]),
        ("0.6 of the peer", taken(4096, 1.2, 1, 2, 1), 4096, 8, []),
        ("0.7 of the peer", taken(4096, 1.4, 1, 2, 1), 4096, 8, ["of the better peer"]),
        ("as the bare sender", taken(MIB, 1.029, 1, 1, 1, 750), MIB, 8, []),
        ("slower than that", taken(MIB, 1.04, 1, 1, 1, 750), MIB, 8, ["of the wire time beside the bare sender"]),
        ("slower than TCP on sixteen", taken(MIB, 1.02, 1, 1, 1, 739), MIB, 16, ["of our schedules over TCP"]),
        ("too many frames", taken(MIB, 1, 2, 1, 1, 755), MIB, 8, ["frames of the root"]),
        ("frames that were not counted", taken(MIB, 1, 2, 1, 1), MIB, 8, ["frames of the root"]),
        ("receivers that differ", taken(MIB, 1, 2, 1, 1, 739, 1.06), MIB, 8, ["slowest by fastest receiver"]),
    ]
    for name, columns, n, hosts, wanted in tries:
        if misses(columns, n, hosts)[0] != wanted:
            yield f"{name}: {misses(columns, n, hosts)[0]}"
    if "VOID" not in misses(taken(MIB, 1.04, 2, 1, 1.04, 739), MIB)[1].stories.get(lab.BARE, ""):
        yield "a bare sender that is slow itself is not void"
    missing = taken(small, 2, 1, 2, 1)
    missing[lab.OURS] = lab.Rows()
    if misses(missing, small)[0] != ["of the better peer"]:
        yield "a figure that is missing is no success"


def growth_is_judged():
    def notes(few, many):
        return {8: {"by wire": {str(MIB): few}}, 16: {}, 32: {"by wire": {str(MIB): many}}}
    if [met for _, met in table.growth(notes(1.01, 1.03))] != [True] or [met for _, met in table.growth(notes(1.0, 1.031))] != [False]:
        yield "3 % more are too much, 2 % are not"
    if table.growth({8: {}}) or table.growth({}):
        yield "what was not measured is not judged"


def what_was_lost():
    one = rows(f"counter bcast {MIB} repaired 30 10\ncounter bcast {MIB} control {2 * lab.PIECE} {2 * lab.PIECE}\n")
    if abs(trouble.mended(one, "bcast", MIB, 2) - 12 / (2 * 739)) > 1e-9:
        yield f"{trouble.mended(one, 'bcast', MIB, 2)}"
    if trouble.flow_rate([1, 2, 3, 4, 9], 100, 1.5, 4.5) != 100 or trouble.flow_rate([1, 2], 100, 0, 9) is not None:
        yield "the rate of a flow"


def failed_jobs_are_missed():
    place, said = here(), lab.peers.job_text
    place.inside = types.SimpleNamespace(prefix=None, late=lambda: "")
    place.jobs = place.busy = 0
    lab.peers.job_text = lambda *_: ("bcast 16 1 1\n", "hangs")
    try:
        texts = [place.job(label, {}, ["bcast:16:1:0"]) for label in (lab.OURS, "MPICH")]
    finally:
        lab.peers.job_text = said
    if place.missed != ["Tombolo: hangs"] or place.stories != {"Tombolo": "hangs", "MPICH": "hangs"} or texts != ["bcast 16 1 1\n"] * 2:
        yield f"{place.missed} {place.stories} {texts}"


def late_jobs_run_again():
    """What went wrong in one that does not count is told, too."""
    for lates, jobs, text, void in (([""], 1, "job 1", False), (["late", ""], 2, "job 2", False), (["late"] * 3, 3, "", True)):
        place, said, seen, trouble = here(), lab.peers.job_text, [], ["hangs"] * (jobs == 2)
        place.inside = types.SimpleNamespace(prefix=None, late=lambda left=lates: left.pop(0))
        place.jobs = place.busy = 0
        lab.peers.job_text = lambda *_, jobs=seen: (jobs.append(1) or f"job {len(jobs)}", trouble.pop() if trouble else "")
        try:
            found = place.job(lab.OURS, {}, ["bcast:16:1:0"])
        finally:
            lab.peers.job_text = said
        if found != text or len(seen) != jobs or ("VOID" in place.stories.get(lab.OURS, "")) != void or len(place.missed) != (jobs == 2):
            yield f"{found!r} of {len(seen)} jobs, {place.stories}"


def leftovers_are_ended():
    """Processes that a launcher leaves behind: one ends by itself, one does not; neither is in its session."""
    job = {"command": ["sh", "-c", "setsid sleep 600 & setsid sleep 0.3 & echo done"], "dir": "", "environment": {}}
    patience, name, kept = lab.peers.LEAVE_S, lab.peers.job_name, []
    lab.peers.LEAVE_S, lab.peers.job_name = 1, lambda: kept.append(name()) or kept[-1]
    try:
        text, story = lab.peers.job_text(job, lambda _, words: words[:3], "", [], 30)
    finally:
        lab.peers.LEAVE_S, lab.peers.job_name = patience, name
    if (text, story) != ("done\n", ""):
        yield f"{text} {story}"
    if len(kept) != 1 or lab.peers.processes_of(kept[0]):
        yield f"left behind: {[lab.peers.processes_of(one) for one in kept]}"


def main():
    finders = {case.__name__: case for case in (wire_times, rows_are_read, cells_meet_their_bars_or_not, growth_is_judged, what_was_lost,
                                                failed_jobs_are_missed, late_jobs_run_again, leftovers_are_ended)}
    return cases.tell_problems(finders, (AttributeError, ValueError, KeyError, ZeroDivisionError))


if __name__ == "__main__":
    sys.exit(main())
