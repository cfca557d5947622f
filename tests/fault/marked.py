"""Jobs whose processes carry a variable in their environment, by which whatever is left of them is found; for tests that kill
processes of a job at any moment."""
import glob
import os
import signal
import subprocess

MARK = "TB_KILL_MARK"


def read(pid, what):
    try:
        with open(f"/proc/{pid}/{what}", "rb") as f:
            return f.read()
    except OSError:
        return b""


def words_of(pid):
    return read(pid, "cmdline").decode(errors="replace").split("\0")[:-1]


def environment_of(pid):
    return read(pid, "environ").decode(errors="replace").split("\0")


def parent_of(pid):
    """0 if it is gone."""
    fields = read(pid, "stat").decode(errors="replace").rpartition(")")[2].split()
    return int(fields[1]) if fields else 0


def processes(mark):
    """pid -> words of every living process that carries the mark."""
    wanted, found = f"{MARK}={mark}", {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid() and wanted in environment_of(entry) and (words := words_of(entry)):
            found[int(entry)] = words
    return found


def kind_of(words, program):
    name = os.path.basename(words[0]) if words else ""
    if words[:1] == [program]:
        return "rank"
    if name == "mpiexec":
        return "launcher"
    if name == "tombolo" and words[1:] in (["agent"], ["guard"]):
        return {"agent": "agent", "guard": "guardian"}[words[1]]
    return "shell"


def kinds(mark, program):
    """kind -> pids; a process that has not yet become what it was forked for is of the kind `fork`."""
    found = {}
    for pid, words in sorted(processes(mark).items()):
        kind = kind_of(words, program)
        if kind != "shell" and kind_of(words_of(parent_of(pid)), program) == kind:
            kind = "fork"
        found.setdefault(kind, []).append(pid)
    return found


def signal_all(mark, number=signal.SIGKILL):
    for pid in processes(mark):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def sockets(namespaces):
    """Listening TCP ports and abstract sockets of ours, in each of these network namespaces; "" is our own."""
    left = []
    for name in namespaces:
        enter = ["nsenter", f"--net=/run/netns/{name}"] if name else []
        tcp = subprocess.run([*enter, "cat", "/proc/net/tcp", "/proc/net/tcp6"], capture_output=True, text=True, check=False).stdout
        unix = subprocess.run([*enter, "cat", "/proc/net/unix"], capture_output=True, text=True, check=False).stdout
        left += [f"{name}: {line.strip()}" for line in tcp.splitlines() if " 0A " in line]
        left += [f"{name}: {line.strip()}" for line in unix.splitlines() if "@tombolo-" in line]
    return left


def shared_files():
    return set(glob.glob("/dev/shm/*tombolo*") + glob.glob("/tmp/*tombolo-*"))
