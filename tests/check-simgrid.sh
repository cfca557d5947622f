#!/bin/sh
# Compares the simulator of src/planner with SimGrid (tests/simgrid/compare.c), a case for each grid. Skipped where there is no
# libsimgrid, which `tools/setup test-all` installs.
#
# usage: check-simgrid.sh [LAST [FIRST]]
set -eu
cd "$(dirname "$0")/.."
pkg-config --exists simgrid || { echo "skipped: there is no libsimgrid"; exit 77; }
build=${BUILD_DIR:-build}/variants/gcc
program=tests/simgrid/simgrid-compare
if [ ! -x "$build/$program" ]; then
    # The build was configured before SimGrid came.
    [ ! -f "$build/build.ninja" ] || meson setup --reconfigure "$build" >&2
    tests/unit/build "$build" all -Dwerror=true >&2
fi
exec "$build/$program" "$@"
