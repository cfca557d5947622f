"""How long a message takes that crosses a long and slow link: sections of bench/gateways.

64 KiB one way over 10 ms and 20 Mbit/s, between ranks that connect across the link themselves, and behind gateways whose clusters
have ports of 100 Mbit/s. The floor is latency and wire time, as bytes of the wire. Agents pass a frame on when it is whole, which
takes a frame's time on each hop inside of a cluster."""
import statistics

from gateway_lab import tell

BYTES, COUNT = 64 << 10, 30
LINK_MBIT, LINK_MS = 20, 10
PORT_MBIT = 100
SEGMENT, ON_WIRE = 1448, 1538  # data of a full TCP segment; with headers, preamble, check sequence and gap
FRAME = 4992  # bytes of a message in a frame on such a way: 2 ms of the link
HOPS = 2  # in the two clusters
FACTOR = 1.05
WAYS = {"bcast": "MPI_Bcast", "send": "MPI_Send"}


def grid(cluster, link):
    clusters = "".join(f"  - {{name: {name}, ethernet: {{bandwidth: {PORT_MBIT}}}, {cluster.replace('X', name[0])}}}\n"
                       for name in ("west", "east"))
    return f"clusters:\n{clusters}links:\n  - {{from: west, to: east, bandwidth: {LINK_MBIT}, latency: {LINK_MS}{link}}}\n"


DIRECT = grid('hosts: ["X1:1"]', ", direct: yes")
BEHIND = grid('gateways: [X0], nat: true, hosts: ["X1:1", "X0:0"]', "")


def wire_ms(length, mbit):
    segments = -(-length // SEGMENT)
    return (length + segments * (ON_WIRE - SEGMENT)) * 8e-3 / mbit


def far(here, how):
    """Milliseconds on connections in use, and after a rest."""
    return next([float(word) * 1e3 for word in words[1:]] for words in here.job("far", BYTES, COUNT, how) if words[0] == "far")


def tell_far(here, name, hops):
    floor = LINK_MS + wire_ms(BYTES, LINK_MBIT)
    bar = FACTOR * floor + hops * wire_ms(FRAME, PORT_MBIT)
    for how, label in WAYS.items():
        warm, cold = map(statistics.median, zip(*(far(here, how) for _ in range(here.rounds))))
        tell(f"64 KiB {name}, {label}", f"{warm:.2f} ms, {warm / floor:.3f} of {floor:.2f}; cold {cold:.1f}", warm <= bar,
             f"<= {bar:.2f} ms", here.void())


def section_far(here):
    tell_far(here, "far", 0)


def section_behind(here):
    tell_far(here, "behind gateways", HOPS)
