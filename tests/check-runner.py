#!/usr/bin/env python3
"""Checks that tests/run itself can fail: a small table of checks that misbehave, each with the verdict it must get."""
import os
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import cases

HERE = os.path.dirname(os.path.abspath(__file__))

TABLE = '''
import sys
sys.path.insert(0, {here!r})
from checks import Check
BUILD = {scratch!r}
CHECKS = [
    Check("good", ["true"], cores=1),
    Check("bad", ["false"], cores=1),
    Check("absent", ["./no-such-program"], cores=1),
    Check("skips", ["sh", "-c", "echo skipped: not today; exit 77"], cores=1),
    Check("slow", ["sleep", "60"], timeout=1, cores=1),
    Check("crash", ["sh", "-c", "kill -SEGV $$"], cores=1),
    Check("after-bad", ["true"], needs=["bad"], cores=1),
    Check("mixed", ["printf", "case: a ok\\nrain\\ncase: b failed\\n  hail\\ncase: c skipped (no moon) (0.1 s)\\ncase: d ok\\n"],
          cases=True, cores=1),
    Check("above", ["printf", "skipped: no sun\\ncase: a skipped (0.1 s)\\ncase: b ok\\n"], cases=True, cores=1),
    Check("mute", ["sh", "-c", "exit 77"], cores=1),
    Check("mute-case", ["printf", "case: a ok\\ncase: b skipped (0.1 s)\\n"], cases=True, cores=1),
    Check("empty", ["true"], cases=True, cores=1),
    Check("litter", ["setsid", "-f", "sleep", "{nap}"], cores=1),
    Check("stuck", ["sh", "-c", "setsid -f sleep {nap}; sleep {nap}"], timeout=1, cores=1),
    Check("environment", ["sh", "-c", "test -n \\"$BUILD_DIR\\" && test $TEST_TIER = quick && ! test -t 0"], cores=1),
    Check("later", ["false"], tier="all", cores=1),
    Check("build-bad", ["false"], tier="long", cores=1),
    Check("build-odd", ["true"], tier="long", cores=1),
    Check("beside", ["sh", "-c", "touch {scratch}/busy; sleep 0.5; rm {scratch}/busy"], tier="long", cores=1),
    Check("lonely", ["sh", "-c", "sleep 0.2; test ! -e {scratch}/busy"], tier="long", cores=1, alone=True),
    Check("looks", ["sh", "-c", "test $BUILD_DIR = {scratch}/variants/odd"], tier="long", cores=1),
]
'''
NAP = f"61.{os.getpid()}"


def alive():
    """Processes of the table that still live, recognised by their odd argument."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if f.read() == b"sleep\0" + NAP.encode() + b"\0":
                    found.append(pid)
        except OSError:
            pass
    return found


def run(table, *arguments):
    return subprocess.run([os.path.join(HERE, "run"), "--table", table, *arguments], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)


def interrupt(table):
    """Ends a runner in the middle of its work and says whether its processes are gone."""
    runner = subprocess.Popen([os.path.join(HERE, "run"), "--table", table, "--only", "stuck", "--only", "litter"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 10
    while not alive() and time.monotonic() < deadline:
        time.sleep(0.02)
    started = bool(alive())
    runner.terminate()
    output = runner.communicate(timeout=20)[0]
    return started and not alive() and runner.returncode == 1 and " failed" in output.splitlines()[-1]


def main():
    results = {}
    with tempfile.TemporaryDirectory() as scratch:
        table = os.path.join(scratch, "table.py")
        with open(table, "w") as f:
            f.write(TABLE.format(here=HERE, scratch=scratch, nap=NAP))
        done = run(table)
        print(done.stdout, done.stderr)
        lines = done.stdout.splitlines()
        rows = [line.split() for line in lines if line.startswith(("ok ", "failed ", "skipped "))]
        verdict = {row[1]: row[0] for row in rows}
        expected = {"good": "ok", "bad": "failed", "absent": "failed", "skips": "skipped", "slow": "failed",
                    "crash": "failed", "after-bad": "failed", "mixed": "failed", "empty": "failed", "litter": "failed",
                    "stuck": "failed", "environment": "ok", "above": "ok", "mute": "failed", "mute-case": "failed"}
        for name, verdict_expected in expected.items():
            results[name] = verdict.get(name) == verdict_expected
        results["tier"] = "later" not in verdict
        results["summary"] = lines[-1] == "6 passed, 11 failed, 3 skipped"
        results["reasons"] = {"skipped: skips: not today", "skipped: mixed: c: no moon", "skipped: above: a: no sun"} <= set(lines)
        results["failures"] = ("failed: mixed: b\n    rain\n    case: b failed\n      hail\n" in done.stdout and
                               "failed: after-bad: not run, since bad did not succeed\n" in done.stdout)
        results["exit-code"] = done.returncode == 1
        results["nothing-left"] = not alive()
        repeated = run(table, "--only", "good", "--repeat", "5", "--load")
        results["repeat"] = repeated.returncode == 0 and repeated.stdout.endswith("\n5 passed, 0 failed, 0 skipped\n")
        looks = {name: run(table, "--only", "looks", "--only", "good", *words).stdout.splitlines()
                 for name, words in (("none", ()), ("odd", ("--variant", "odd")), ("bad", ("--variant", "bad")), ("new", ("--variant", "new")))}
        results["no-variant"] = looks["none"][-1] == "1 passed, 1 failed, 0 skipped"
        results["variant"] = looks["odd"][-1] == "3 passed, 0 failed, 0 skipped"
        results["variant-fails"] = "failed: looks: not run, since build-bad did not succeed" in looks["bad"]
        results["variant-unknown"] = not looks["new"]
        results["alone"] = run(table, "--only", "beside", "--only", "lonely").stdout.endswith("\n2 passed, 0 failed, 0 skipped\n")
        results["interrupt"] = interrupt(table)
    return cases.tell(results)


if __name__ == "__main__":
    sys.exit(main())
