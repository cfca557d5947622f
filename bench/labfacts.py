"""What decides how fast TCP is, said before each table: which congestion control the hosts have, and how long queues are."""
import os
import subprocess

KIB = 1024
DROPS = ("full", "exhausted", "overrun")  # in the lab's report: frames that were lost for want of room


def size(text):
    """"65536..250000" as "64 to 244 KiB"."""
    parts = [f"{int(part) / KIB:.4g}" for part in text.split("..")]
    return " to ".join(parts) + " KiB"


def of_lab(line):
    """From the first line of `tombolo lab report --raw`."""
    said = dict(word.split("=", 1) for word in line.split() if "=" in word)
    queues = [f"{size(said[key])} ({what})" for key, what in (("queue", "links"), ("port_queue", "ports")) if said[key] != "0"]
    return f"congestion {said['congestion']}, queue {' '.join(queues) or 'without limit'}"


def facts(tombolo=None):
    """In a lab of this tombolo, or of this machine, where nothing is emulated."""
    if tombolo and os.environ.get("TOMBOLO_LAB"):
        done = subprocess.run([tombolo, "lab", "report", "--raw"], capture_output=True, text=True, check=True, timeout=60)
        return of_lab(done.stdout.splitlines()[0])
    with open("/proc/sys/net/ipv4/tcp_congestion_control", encoding="ascii") as f:
        return f"congestion {f.read().strip()}, queue none (one machine)"


def dropped(report):
    """Frames that the lab has lost for want of room, by its report (bench/lab)."""
    return sum(value for row in report.values() for key, value in row.items() if key in DROPS and isinstance(value, int))
