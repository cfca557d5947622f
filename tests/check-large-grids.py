#!/usr/bin/env python3
"""Grids as large as a file may describe: `tombolo grid check` takes seconds, and a job on a few hosts of one starts as on a
small one, but for the time to read the file. A case for each."""
import os
import resource
import subprocess
import sys

import cases

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("BUILD_DIR") or os.path.join(ROOT, "build")
TOMBOLO = os.path.join(BUILD, "bin", "tombolo")
CHECK_SECONDS = 10  # of processor time, so that a busy machine does not matter
START_SECONDS = 1   # of it beyond that of a job on a small grid, and of reading and checking the file


def write(folder, lines):
    path = os.path.join(folder, "grid.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write("clusters:\n" + "".join(lines))
    return path


def run(*words):
    """What it said, and the processor time that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([TOMBOLO, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def checked(path, *texts):
    done, seconds = run("grid", "check", path)
    good = done.returncode == 0 and seconds < CHECK_SECONDS and all(text in done.stdout for text in texts)
    return good or (done.returncode, seconds, done.stdout[:300], done.stdout[-600:], done.stderr[:600])


def star(folder):
    return checked(write(folder, (f"- {{name: c{i}, hosts: ['g{i}', 'h{i}x[1-4]'], gateways: g{i}, nat: true, "
                                  f"uplink: {{bandwidth: {1 + i}}}}}\n" for i in range(10000))),
                   "10000 clusters, 50000 hosts", "the first pair: ")


def chain(folder):
    lines = [f"- {{name: c{i}, hosts: ['h{i}x[1-4]']}}\n" for i in range(10000)]
    lines.append("links:\n")
    lines += (f"- {{from: c{i}, to: c{i + 1}, bandwidth: {1 + i}, latency: 2}}\n" for i in range(9999))
    return checked(write(folder, lines), "9999 links", "every host with slots can connect",
                   f"{10000 * 9999 // 2} pairs of clusters are supposed to be open")


def nest(folder):
    """A hundred clusters with a hundred in each, all closed."""
    lines = []
    for i in range(100):
        lines.append(f"- name: c{i}\n  hosts: [g{i}]\n  gateways: g{i}\n  clusters:\n")
        lines += (f"  - {{name: c{i}x{k}, hosts: ['g{i}x{k}', 'h{i}x{k}x[1-4]'], gateways: g{i}x{k}}}\n" for k in range(100))
    return checked(write(folder, lines), "is right", "10100 clusters", "the first pair: ")


def mesh(folder):
    lines = [f"- {{name: c{i}, hosts: ['h{i}x[1-4]']}}\n" for i in range(32)]
    lines.append("links:\n")
    lines += (f"- {{from: c{i}, to: c{k}, bandwidth: {1 + i}, latency: {1 + k}}}\n" for i in range(32) for k in range(i))
    return checked(write(folder, lines), "496 links", "every host with slots can connect")


def limits(folder):
    return checked(write(folder, (f"- {{name: c{i}, hosts: ['g{i}', 'h{i}x[1-63]:1'], gateways: g{i}, nat: true}}\n"
                                  for i in range(16384))), "16384 clusters, 1048576 hosts")


def job(folder):
    """Two ranks on this host, which is one of fifty thousand; with and without the fifty thousand."""
    rest = [f"- {{name: c{i}, hosts: ['g{i}', 'h{i}x[1-4]'], gateways: g{i}, nat: true, uplink: {{bandwidth: {1 + i}}}}}\n"
            for i in range(10000)]
    times = []
    for lines in (rest[:2], rest):
        path = write(folder, ["- {name: here, hosts: ['localhost:2']}\n", *lines])
        done, seconds = run("run", "--grid", path, "-H", "localhost:2", "echo", "here")
        if done.returncode != 0 or done.stdout.count("here") != 2:
            return done
        times.append(seconds)
    _, reading = run("grid", "check", path)
    return times[1] < times[0] + reading + START_SECONDS or (times, reading)


def main():
    calls = {"star": star, "chain": chain, "nest": nest, "mesh": mesh, "limits": limits, "job": job}
    wanted = {name: call for name, call in calls.items() if not sys.argv[1:] or name in sys.argv[1:]}
    return cases.tell_verdicts(wanted, (OSError, subprocess.SubprocessError))


if __name__ == "__main__":
    sys.exit(main())
