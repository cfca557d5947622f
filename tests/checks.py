"""The table of checks that tests/run runs, in this order. To add a test, add a row.

name      what it is called in the output and in build/test-logs/NAME.log
command   words; run from the root of the repository. In its environment BUILD_DIR names the ordinary build, and
          TEST_TIER is quick or all, for those that have more to show when there is time
tier      "quick" is part of `make test`; "all" only of `make test-all`; "long" of `make test-long`, which runs nothing else
timeout   seconds; a generous multiple of what it takes, since the machine may be busy; timeout_all for TEST_TIER=all
needs     names of rows that must have succeeded before
cores     how many cores it keeps busy; rows that take one run side by side
alone     nothing runs beside it, however many cores there are: it measures, or starts more ranks than there are cores
cases     it reports `case: NAME ok|failed|skipped` lines (see tests/run), and none at all is a failure
builds    it only builds: --repeat runs it once
"""
import os
from typing import NamedTuple, Sequence

BUILD = os.environ.get("BUILD_DIR") or "build"


class Check(NamedTuple):
    name: str
    command: Sequence[str]
    tier: str = "quick"
    timeout: int = 120
    timeout_all: int = 0
    needs: Sequence[str] = ()
    cores: int = 2
    alone: bool = False
    cases: bool = False
    builds: bool = False


def build(name, *options, targets="all", tier="quick"):
    """A build in a directory of its own, from which warnings and sanitizers are judged."""
    return Check(f"build-{name}", ["tests/unit/build", f"{BUILD}/variants/{name}", targets, *options],
                 tier=tier, timeout=600, builds=True)


def unit(name, *words, tier="quick"):
    return Check("-".join(["unit", name, *words]), ["tests/unit/run", f"{BUILD}/variants/{name}", *words], tier=tier, timeout=600, timeout_all=3600,
                 needs=[f"build-{name}"], cases=True)


CHECKS = [
    # What the sources look like.
    Check("layers", ["tests/check-layers.py"], cores=1, timeout=30),
    Check("layers-can-fail", ["tests/check-layers.py", "--self-test"], cores=1, timeout=30, cases=True),
    Check("structure", ["tests/check-structure.py"], cores=1, timeout=30),
    Check("structure-can-fail", ["tests/check-structure.py", "--self-test"], cores=1, timeout=30, cases=True),
    Check("runner-can-fail", ["tests/check-runner.py"], cores=1, timeout=60, cases=True),
    Check("bench-multicast-judges", ["tests/check-bench-multicast.py"], cores=1, timeout=60, cases=True),
    Check("setup", ["tests/check-setup.sh"], cores=1, timeout=30, cases=True),
    Check("format", ["tools/format", "--check"], cores=1, timeout=60),

    # Warnings are errors under both compilers; the unit tests, plain and under the sanitizers. Clang and the sanitizers, whose
    # builds take minutes, are for the tier "all"; the analyzer, and the address sanitizer with all tests and watching stack
    # frames, which take as long as everything else, for the tier "long".
    build("gcc", "-Dwerror=true"),
    build("clang", "-Dwerror=true", "CC=clang-14", "CXX=clang++-14", tier="all"),
    Check("lint", ["tools/lint", "--quick", f"{BUILD}/variants/clang"], tier="all", timeout=600, needs=["build-clang"]),
    Check("analyse", ["tools/lint", "--shipped", f"{BUILD}/variants/clang"], tier="long", timeout=3600, needs=["build-clang"]),
    unit("gcc"),
    build("asan", "-Db_sanitize=address,undefined", "-Db_lundef=false", "-Doptimization=1", targets="unit", tier="all"),
    unit("asan", tier="all"),
    unit("asan", "long", tier="long"),
    build("tsan", "-Db_sanitize=thread", "-Db_lundef=false", "-Doptimization=1", targets="unit", tier="all"),
    unit("tsan", tier="all"),

    # What the library shows.
    Check("header", ["tests/check-header.sh"], cores=1, timeout=120),
    Check("exports", ["tests/check-exports.py"], cores=1, timeout=60),
    Check("arguments", ["tests/check-arguments.py"], timeout=300),
    Check("wrappers", ["tests/check-wrappers.sh"], cores=1, timeout=120),
    Check("found", ["tests/check-found.sh"], cores=1, timeout=240, cases=True),
    Check("install", ["tests/check-install.sh", f"{BUILD}/variants/gcc"], timeout=120, needs=["build-gcc"]),  # alone: it changes the build
    Check("grid", ["tests/check-grid.py"], cores=1, timeout=120, cases=True),
    Check("large-grids", ["tests/check-large-grids.py"], tier="all", cores=1, timeout=600, cases=True),
    Check("explain", ["tests/check-explain.py"], cores=1, timeout=120, cases=True),
    Check("plan", ["tests/check-plan.py"], cores=1, timeout=600, cases=True),
    Check("sim", ["tests/check-sim.py"], cores=1, timeout=120, cases=True),
    Check("simgrid", ["tests/check-simgrid.sh"], tier="all", cores=1, timeout=3600, needs=["build-gcc"], cases=True),
    Check("route", ["tests/check-route.py"], cores=1, timeout=120, cases=True),
    Check("manual", ["tests/check-manual.py"], cores=1, timeout=60, cases=True),
    Check("docs", ["tests/check-docs.py"], cores=1, timeout=60, cases=True),
    Check("bench-judges", ["tests/check-bench.py"], cores=1, timeout=120, cases=True),
    Check("bench-runs", ["tests/check-bench-runs.py"], tier="all", cores=1, timeout=600, cases=True),

    # Whole jobs.
    Check("examples", ["tests/check-examples.sh"], timeout=120, cases=True),
    Check("mpi", ["tests/mpi/run", "--jobs", "3"], alone=True, timeout=400, timeout_all=7200, cases=True),
    Check("lab", ["tests/lab/run"], timeout=300, timeout_all=3600, cases=True),
    Check("places", ["tests/lab/places"], cores=1, timeout=300, cases=True),
    Check("links", ["tests/lab/links"], tier="all", timeout=240, cases=True),
    Check("wires", ["tests/lab/wires"], cores=1, timeout=120, timeout_all=1200, cases=True),
    Check("families", ["tests/lab/families"], tier="all", cores=1, timeout=300, cases=True),
    Check("groups", ["tests/lab/groups"], tier="all", cores=1, timeout=300, cases=True),
    Check("gateways", ["tests/lab/gateways"], cores=1, timeout=600, timeout_all=3600, cases=True),
    Check("cuts", ["tests/lab/cuts"], tier="all", cores=1, timeout=600, cases=True),
    Check("borders", ["tests/lab/borders"], tier="all", cores=1, timeout=300, cases=True),
    Check("direct", ["tests/lab/direct"], tier="all", cores=1, timeout=600, cases=True),
    Check("computes", ["tests/lab/computes"], tier="all", cores=1, timeout=300, cases=True),
    Check("crossings", ["tests/lab/crossings"], tier="all", cores=1, timeout=600, cases=True),
    Check("trees", ["tests/lab/trees"], tier="all", cores=1, timeout=900, cases=True),
    Check("far", ["tests/lab/far"], tier="all", cores=1, timeout=300, cases=True),
    Check("lab-grids", ["tests/lab/grid-run"], cores=1, timeout=400, timeout_all=3600, cases=True),
    Check("lab-launch", ["tests/lab/grid-launch"], cores=1, timeout=400, timeout_all=800, cases=True),
    Check("casts", ["tests/lab/casts"], cores=1, timeout=600, timeout_all=3600, cases=True),
    Check("plans", ["tests/lab/plans"], tier="all", cores=1, timeout=1200, cases=True),
    Check("probe", ["tests/lab/probe"], tier="all", alone=True, timeout=1800, cases=True),
    Check("fault", ["tests/fault/run"], timeout=300, timeout_all=3600, cases=True),
    Check("fault-trials", ["tests/fault/trials", "--quick", "--jobs", "2"], tier="all", timeout=1800, cases=True),
    Check("fault-trials-can-fail", ["tests/fault/trials", "--self-test", "--jobs", "2"], tier="all", timeout=1800, cases=True),
    Check("changed-bytes", ["tests/fault/changed-bytes"], cores=1, tier="all", timeout=3600, cases=True),
    Check("control-ways", ["tests/lab/control-ways"], cores=1, tier="all", timeout=600, cases=True),
    Check("silence", ["tests/fault/silence"], cores=1, tier="all", timeout=400, cases=True),
    Check("output", ["tests/fault/output"], timeout=300, cases=True),
    Check("foreign", ["tests/fault/foreign"], timeout=300, cases=True),
    Check("options", ["tests/fault/options"], timeout=300, cases=True),
    Check("remedies", ["tests/fault/remedies"], timeout=300, cases=True),
    Check("waits", ["tests/fault/waits"], timeout=120, cases=True),
    Check("apart", ["tests/fault/apart"], cores=1, timeout=300, timeout_all=600, cases=True),
    Check("guests", ["tests/fault/guests"], cores=1, timeout=300, timeout_all=1200, cases=True),
    Check("vain", ["tests/fault/vain"], tier="all", cores=1, timeout=200, cases=True),
    Check("machines", ["tests/fault/machines"], cores=1, tier="all", timeout=120, cases=True),
    Check("cores", ["tests/fault/cores"], tier="all", timeout=600, cases=True),
    Check("strangers", ["tests/fault/strangers"], tier="all", timeout=600, cases=True),
    Check("silent", ["tests/lab/silent"], tier="all", cores=1, timeout=600, cases=True),
    Check("packets", ["tests/lab/packets"], tier="all", cores=1, timeout=600, cases=True),
    Check("parted", ["tests/fault/parted"], tier="all", cores=1, timeout=600, cases=True),
    build("walk", "-Dc_args=-finstrument-functions", "-Doptimization=0", "-Dtests=disabled")._replace(tier="all"),
    Check("walk", ["tests/walk/run"], tier="all", cores=1, timeout=240, needs=["build-walk"], cases=True),
    Check("x86-64", ["tests/check-x86-64.sh"], tier="all", timeout=3600, cases=True),
]
