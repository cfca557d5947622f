"""What tests of whole jobs have in common: a folder for what they make, running mpiexec, and cases. A test decorates its
cases with @case and ends with sys.exit(main())."""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("BUILD_DIR") or os.path.join(ROOT, "build"))
MPIEXEC = os.path.join(BUILD, "bin", "mpiexec")
MPICC = os.path.join(BUILD, "bin", "mpicc")
HERE = ["--launcher", os.path.join(ROOT, "tests", "fault", "here")]
HANG_S = 30  # longer than anything here should take, also on a busy machine
CASES = []
folder = None


class Wrong(Exception):
    pass


class Skipped(Exception):
    pass


def case(function):
    CASES.append(function)
    return function


def slow_case(function):
    """One that is left out when there is little time."""
    return function if os.environ.get("TEST_TIER") == "quick" else case(function)


def check(good, what, result=None):
    if not good:
        raise Wrong(what if result is None else f"{what}\n  exit code {result.returncode}\n  output: {result.stdout!r}\n  errors: {result.stderr!r}")


def run(*words, env=None, **rest):
    """Runs mpiexec, or another command if it is named with its path."""
    command = [MPIEXEC, *words] if not os.path.isabs(words[0]) else list(words)
    if "input" not in rest:
        rest.setdefault("stdin", subprocess.DEVNULL)
    rest.setdefault("text", True)
    return subprocess.run(command, capture_output=True, timeout=HANG_S, check=False, env=dict(os.environ, **(env or {})), **rest)


def said(result):
    """What mpiexec says itself."""
    return [line for line in result.stderr.splitlines() if line.startswith("mpiexec: ")]


def fails(code, *patterns, words, **rest):
    """Ends with this code and one message that has all the patterns."""
    result = run(*words, **rest)
    check(result.returncode == code, f"{' '.join(words)}: should end with {code}", result)
    check(len(said(result)) == 1, f"{' '.join(words)}: should say one thing", result)
    for pattern in patterns:
        check(re.search(pattern, said(result)[0]), f"{' '.join(words)}: should say {pattern}", result)
    return result


def made(name, content, mode=0o755):
    """A file of the folder, of text or bytes."""
    path = os.path.join(folder, name)
    with open(path, "wb") as f:
        f.write(content.encode() if isinstance(content, str) else content)
    os.chmod(path, mode)
    return path


def compiled(name, *words, compiler=MPICC):
    """A program of the folder, made once; `words` are what the compiler is told."""
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        subprocess.run([compiler, "-O1", "-o", path, *words], check=True, capture_output=True, timeout=HANG_S)
    return path


def program(name):
    """tests/fault/NAME.c, compiled."""
    return compiled(name, os.path.join(ROOT, "tests", "fault", f"{name}.c"))


def verdict_of(function):
    try:
        function()
        return "ok"
    except Skipped as why:
        print(f"skipped: {why}")
        return "skipped"
    except (Wrong, OSError, subprocess.TimeoutExpired, subprocess.CalledProcessError) as e:
        print(e)
        return "failed"


def main():
    global folder
    verdicts, wanted = [], sys.argv[1:]
    for number in (signal.SIGINT, signal.SIGQUIT):  # ignored where we are run in the background, and mpiexec would be too
        signal.signal(number, signal.SIG_DFL)
    with tempfile.TemporaryDirectory() as folder:
        for function in CASES:
            if wanted and function.__name__ not in wanted:
                continue
            start = time.monotonic()
            verdicts.append(verdict_of(function))
            print(f"case: {function.__name__} {verdicts[-1]} ({time.monotonic() - start:.1f} s)", flush=True)
    return 1 if "failed" in verdicts else 0
