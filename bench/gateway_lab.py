"""What the sections of bench/gateways share: jobs in the lab of a section, what they print, and the lines of the table."""
import importlib.machinery
import importlib.util
import os
import signal
import statistics
import subprocess
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
JOB_S = 240


def load(name):
    """Another program of this folder as a module."""
    loader = importlib.machinery.SourceFileLoader(name, os.path.join(HERE, name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


bench = load("lab")


def tell(name, text, met, bar, void=""):
    verdict = f"VOID: {void}" if void else "" if met is None else "met" if met else "NOT MET"
    print(f"{name:46}{text:>50}   {bar:34} {verdict}", flush=True)


class Job:
    """A job through gateways, started on the console."""

    def __init__(self, here, words, settings=(), grid=None):
        command = [os.path.join(here.bin, "mpiexec"), "--grid", grid or here.grid, "--launcher", f"{here.tombolo} lab exec",
                   "--timeout", str(JOB_S)]
        for setting in settings:
            command += ["--set", setting]
        self.lines, self.errors = [], []
        self.process = subprocess.Popen([*command, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.readers = [threading.Thread(target=self.read, args=pair, daemon=True)
                        for pair in ((self.process.stdout, self.lines), (self.process.stderr, self.errors))]
        for reader in self.readers:
            reader.start()

    @staticmethod
    def read(stream, lines):
        for line in stream:
            lines.append(line.rstrip("\n"))

    def wait_for(self, start, count=1):
        while len([line for line in self.lines if line.startswith(start)]) < count:
            if self.process.poll() is not None:
                raise RuntimeError(f"ended with {self.process.returncode} before it said {start}: {self.errors}")
            time.sleep(0.01)

    def end(self):
        """What it has printed. It may have been aborted with 0, which is how the long ones end."""
        try:
            self.process.wait(JOB_S + 10)
        except BaseException:
            os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait(10)
            raise
        for reader in self.readers:
            reader.join(5)
        if self.process.returncode != 0 and not any("MPI_Abort with code 0" in line for line in self.errors):
            raise RuntimeError(f"exit code {self.process.returncode}: {self.errors[-5:]}")
        return self.lines


class Here:
    """What a section needs: the lab in which it runs, the programs, how many rounds."""

    def __init__(self, options):
        self.lab, self.tombolo = bench.Lab(options["tombolo"]), options["tombolo"]
        self.bin = options.get("bin") or os.path.dirname(options["tombolo"])  # of the jobs, the lab's own if not given
        self.folder = options["folder"]
        self.rounds, self.grid = options["rounds"], options["grid"]
        self.late = ""

    def program(self, name):
        return os.path.join(self.folder, name)

    def job(self, *words, settings=(), grid=None):
        """Lines that the measuring program prints, as lists of words. Remembers if the lab was late."""
        self.lab.ask("report", "--reset")
        lines = Job(self, [self.program("gateways"), *map(str, words)], settings, grid).end()
        self.late = bench.is_late(self.lab.report()) or self.late
        return [line.split() for line in lines]

    def mbits(self, size, source="random", settings=(), grid=None, to=2):
        """Mbit/s of one message from the first rank to another, the first that a job sends: iperf3 has one try, too."""
        found = [float(words[1]) for words in self.job("long", 0, to, size, source, 1, settings=settings, grid=grid)
                 if words[0] == "long"]
        return size * 8e-6 / found[0]

    def void(self):
        said, self.late = self.late, ""
        return said

    def agents(self):
        """Processes of agents, by what they are called; this process sees all of the lab."""
        found = []
        for entry in os.listdir("/proc"):
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as f:
                    if f.read().split(b"\0")[1:2] == [b"agent"]:
                        found.append(int(entry))
            except (OSError, ValueError):
                pass
        return found


def medians(rounds, **measures):
    """{name: median}; they take turns."""
    found = {name: [] for name in measures}
    for _ in range(rounds):
        for name, measure in measures.items():
            found[name].append(measure())
    return {name: statistics.median(values) for name, values in found.items()}
