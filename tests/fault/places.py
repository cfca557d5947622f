"""Where trials of faults run their jobs, and the jobs: this machine, hosts of tests/lab/with-hosts, emulated grids. The process
that uses this is alone in namespaces of its own."""
import contextlib
import itertools
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time

import marked

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("BUILD_DIR") or os.path.join(ROOT, "build"))
TOMBOLO = os.path.join(BUILD, "bin", "tombolo")
FOLDER = os.path.join(BUILD, "tests", "fault")  # what is compiled and made here
WORKER, TRAFFIC = os.path.join(FOLDER, "worker"), os.path.join(FOLDER, "traffic")
GRIDS = os.path.join(ROOT, "examples", "grids")
NSH = os.path.join(ROOT, "tests", "lab", "nsh")
FAR_SHELL = os.path.join(ROOT, "tests", "fault", "far-shell")
PORT, PROXY_PORT = 7777, 7780
counter = itertools.count()

# Two clusters behind NAT; the gateway of one carries a rank, that of the other does not.
PAIR = f"""\
clusters:
  - name: west
    gateways: [w0]
    nat: true
    port: {PORT}
    hosts: [w1:1, w2:1, w0:0]
  - name: east
    gateways: [e0]
    nat: true
    port: {PORT}
    hosts: [e1:1, e0:1]
links:
  - {{from: west, to: east, latency: 2, bandwidth: 100}}
"""

# As examples/grids/two-gateways.yaml, with fewer hosts.
GATES = """\
clusters:
  - name: office
    hosts: [o1:1, o2:1]
  - name: farm
    gateways: [gate1, gate2]
    nat: true
    hosts: [gate1:0, gate2:0, f1:1, f2:1]
links:
  - {from: gate1, to: office, bandwidth: 50, latency: 4}
  - {from: gate2, to: office, bandwidth: 5, latency: 20}
"""

# The same, with a port that a proxy can stand in front of.
GATES_WITH_PORT = GATES.replace("nat: true\n", f"nat: true\n    port: {PORT}\n")

# Ranks connect to each other across the link.
DIRECT = """\
clusters:
  - name: west
    hosts: [w1:1, w2:1]
  - name: east
    hosts: [e1:1, e2:1]
links:
  - {from: west, to: east, latency: 2, bandwidth: 100, direct: yes}
"""

# Carries the connections that it gets to the port for which they were meant.
PROXY = f"""
import socket, threading
def carry(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data)
        b.shutdown(socket.SHUT_WR)
    except OSError:
        a.close(), b.close()
door = socket.create_server(("", {PROXY_PORT}))
while True:
    a, _ = door.accept()
    try:
        b = socket.create_connection((a.getsockname()[0], {PORT}))
    except OSError:
        a.close()
        continue
    for pair in (a, b), (b, a):
        pair[0].setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=carry, args=pair, daemon=True).start()
"""


class Wrong(Exception):
    pass


def expect(good, what):
    if not good:
        raise Wrong(what)


def tool(*words, check=True):
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
    expect(done.returncode == 0 or not check, f"{' '.join(words)}: {done.stderr}")
    return done.stdout


class Place:
    """words: what mpiexec is told of the hosts; networks: host -> its network; machine: where mpiexec runs in a lab."""

    def __init__(self, words, ranks, networks, machine=None):
        self.words, self.ranks, self.networks, self.machine = words, ranks, networks, machine
        self.proxies = []

    def host_of(self, pid):
        with contextlib.suppress(OSError):
            network = os.readlink(f"/proc/{pid}/ns/net")
            return next((host for host, its in self.networks.items() if its == network), None)
        return None

    def command(self, words):
        return [TOMBOLO, "lab", "exec", "--lab", "trial", self.machine, "exec " + shlex.join(words)] if self.machine else words


@contextlib.contextmanager
def one():
    yield Place(["-n", "4"], 4, {})


def three_hosts(shell):
    networks = {f"h{i}": tool("nsenter", f"--net=/run/netns/h{i}", "readlink", "/proc/self/ns/net").strip() for i in (1, 2, 3)}
    return Place(["--launcher", shell, "-H", "h1:2,h2:2,h3:1"], 5, networks)


@contextlib.contextmanager
def hosts():
    yield three_hosts(NSH)


@contextlib.contextmanager
def far():
    """Control crosses the network, as that of ssh does."""
    yield three_hosts(FAR_SHELL)


def lab(text, machine, ranks, shell=f"{TOMBOLO} lab exec"):
    @contextlib.contextmanager
    def place():
        path = text
        if not os.path.isabs(text):
            path = "/tmp/grid.yaml"  # nobody else sees it there
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        tool(TOMBOLO, "lab", "up", path, "--name", "trial")
        try:
            names = re.findall(r"\b(?:mercury|venus|jupiter|gate|[weof])\d\b", open(path, encoding="utf-8").read())
            networks = {name: on(name, "readlink /proc/self/ns/net").strip() for name in sorted(set(names))}
            yield Place(["--grid", path, "--launcher", shell], ranks, networks, machine)
        finally:
            tool(TOMBOLO, "lab", "down", "trial", check=False)
    return place


def on(host, command):
    return tool(TOMBOLO, "lab", "exec", "--lab", "trial", host, command)


@contextlib.contextmanager
def proxied(text=PAIR, gates=("w0", "e0")):
    """Whatever reaches these gateways from outside goes through a process of its own."""
    with lab(text, "console", 4)() as place:
        shells = []
        try:
            for gate in gates:
                shells.append(subprocess.Popen([TOMBOLO, "lab", "exec", "--lab", "trial", gate,
                                                "exec " + shlex.join([sys.executable, "-c", PROXY])]))
                outside = on(gate, "ip -o -4 addr show | grep 198.18. | awk '{print $2}'").strip()
                on(gate, "nft add table ip trial && nft 'add chain ip trial in { type nat hook prerouting priority -150; }' && "
                         f"nft 'add rule ip trial in iifname \"{outside}\" tcp dport {PORT} redirect to :{PROXY_PORT}'")
                on(gate, f"for i in 1 2 3 4 5 6 7 8 9; do ss -Hltn | grep -q :{PROXY_PORT} && exit 0; sleep 1; done; exit 1")
            place.proxies = [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and marked.words_of(entry)[1:] == ["-c", PROXY]]
            yield place
        finally:
            for pid in place.proxies:
                os.kill(pid, signal.SIGKILL)
            for shell in shells:  # which has stopped itself along with what it runs
                shell.kill()
                shell.wait(30)


# Inside: mpiexec runs in one of the clusters, and its control crosses the links.
PLACES = {
    "one": one,
    "hosts": hosts,
    "far": far,
    "pair": lab(PAIR, "console", 4),
    "direct": lab(DIRECT, "console", 4),
    "gates": lab(GATES, "console", 4),
    "gates-inside": lab(GATES, "o1", 4, f"{FAR_SHELL} --lab {TOMBOLO}"),
    "three": lab(os.path.join(GRIDS, "three-clusters.yaml"), "console", 9),
    "three-inside": lab(os.path.join(GRIDS, "three-clusters.yaml"), "mercury1", 9, f"{FAR_SHELL} --lab {TOMBOLO}"),
    "proxied": proxied,
    "proxied-gates": lambda: proxied(GATES_WITH_PORT, ("gate1",)),
}


class Job:
    """A job and what it says, with the time of each line."""

    def __init__(self, mpiexec, place, program, options=()):
        self.place, self.program, self.mark = place, program[0], f"{os.getpid()}-{next(counter)}"
        self.out, self.err, self.begin = [], [], time.monotonic()
        self.process = subprocess.Popen(place.command([mpiexec, *place.words, *options, *program]), cwd=ROOT,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        errors="replace", env=dict(os.environ, **{marked.MARK: self.mark}), start_new_session=True)
        self.readers = [threading.Thread(target=self.read, args=pair, daemon=True)
                        for pair in ((self.process.stdout, self.out), (self.process.stderr, self.err))]
        for reader in self.readers:
            reader.start()

    @staticmethod
    def read(stream, lines):
        for line in stream:
            lines.append((time.monotonic(), line.rstrip("\n")))

    def errors(self):
        return "\n".join(line for _, line in self.err)

    def output(self):
        return [line for _, line in self.out]

    def told(self):
        return f"{time.monotonic() - self.begin:.1f} s after its start, exit code {self.process.poll()}, output {self.output()}, errors {self.errors()!r}"

    def first_error(self, pattern):
        """When a line of the errors had this in it; None while there is none."""
        return next((when for when, line in self.err if re.search(pattern, line)), None)

    def find(self, kind, host=None):
        """Processes of this kind, in the order of ranks or pids."""
        found = marked.kinds(self.mark, self.program).get(kind, [])
        found = [pid for pid in found if host in (None, self.place.host_of(pid))]
        return sorted(found, key=lambda pid: (rank_of(pid), pid))

    def wait(self, deadline):
        """The code with which mpiexec has ended."""
        try:
            self.process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise Wrong(f"mpiexec has not ended after {time.monotonic() - self.begin:.1f} s\n{self.where()}") from None
        for reader in self.readers:
            reader.join(2)
        return self.process.returncode

    def wait_gone(self, deadline):
        """Until mpiexec has ended and nothing of the job is left."""
        self.wait(deadline)
        while marked.processes(self.mark):
            if time.monotonic() > deadline:
                raise Wrong(f"left behind\n{self.where()}")
            time.sleep(0.02)
        return time.monotonic()

    def where(self):
        """What is left of it, and where each of those waits."""
        text = []
        for pid, words in marked.processes(self.mark).items():
            state = re.search(r"State:\s+(\S)", marked.read(pid, "status").decode(errors="replace"))
            text.append(f"    {pid} on {self.place.host_of(pid)} {' '.join(words)[:200]}: {state[1] if state else 'gone'} in "
                        f"{marked.read(pid, 'wchan').decode() or '?'}, rank {rank_of(pid)}")
            if marked.kind_of(words, self.program) != "shell" and len(text) < 300:
                with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                    stack = subprocess.run(["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all backtrace 12"], timeout=20,
                                           capture_output=True, text=True, check=False).stdout
                    text += [f"        {line}" for line in stack.splitlines() if line.startswith("#")]
        return "\n".join(text)

    def end(self):
        marked.signal_all(self.mark)
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def own_pid(pid):
    """The number by which it knows itself, in its own namespace."""
    found = re.search(r"^NSpid:.*?(\d+)$", marked.read(pid, "status").decode(errors="replace"), re.M)
    return int(found[1]) if found else pid


def rank_of(pid):
    return next((int(value[13:]) for value in marked.environment_of(pid) if value.startswith("TOMBOLO_RANK=")), -1)
