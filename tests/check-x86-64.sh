#!/bin/sh
# On a machine of another kind: builds for x86-64 with Debian's cross compiler and runs the unit tests and the multi-rank
# programs under qemu-user, the launcher and the agents being native. Skipped where the tools are missing, which
# `tools/setup test-all` installs.
# Left out are tests of what qemu-user does not do: exact descriptors after fork, seccomp, the end of a vfork, packet
# sockets, joining multicast groups and choosing by which interface one sends to them, the reaper of orphans, a process that
# dumps core, TCP's own figures (packet_size, tcp-pulse), a signal that arrives between fork and exec (local_ranks: qemu takes
# it for the guest, which then is gone); and what judges the process's memory, in which qemu's translations count.
#
# usage: check-x86-64.sh                  prints a line `case: NAME ok|failed` for each program
#        check-x86-64.sh --unit PROGRAM   runs one unit test that has been built
set -eu
build=${BUILD_DIR:-build}
cross=$build/variants/x86-64
# usage: try NAME SECONDS TEXT COMMAND...: it must succeed, or, if a text is given, fail and say that.
try() {
    name=$1 seconds=$2 text=$3 status=0
    shift 3
    timeout "$seconds" "$@" >"$cross/$name.log" 2>&1 || status=$?
    if [ -n "$text" ]; then
        if [ $status != 0 ] && grep -q "$text" "$cross/$name.log"; then status=0; else status=1; fi
    fi
    if [ $status = 0 ]; then
        echo "case: $name ok"
    else
        echo "$(tail -n 5 "$cross/$name.log")
case: $name failed"
        return 1
    fi
}
if [ "${1:-}" = --unit ]; then
    try "$(basename "$2")" 1800 "" env -u TEST_TIER qemu-x86_64 "$2" # every changed byte is tried on the machine itself
    exit
fi
machine=$(uname -m)
[ "$machine" != x86_64 ] || { echo "skipped: this machine is x86-64"; exit 77; }
for tool in x86_64-linux-gnu-gcc qemu-x86_64; do
    command -v $tool >/dev/null || { echo "skipped: there is no $tool"; exit 77; }
done
PKG_CONFIG_LIBDIR=/usr/lib/x86_64-linux-gnu/pkgconfig pkg-config --exists libcrypto hwloc cmocka yaml-0.1 ||
    { echo "skipped: there are no libraries for x86-64"; exit 77; }

mkdir -p "$cross"
cat >"$cross.ini" <<'INI'
[binaries]
c = 'x86_64-linux-gnu-gcc'
cpp = 'x86_64-linux-gnu-g++'
ar = 'x86_64-linux-gnu-ar'
strip = 'x86_64-linux-gnu-strip'
pkgconfig = 'pkg-config'
exe_wrapper = ['qemu-x86_64']
[properties]
pkg_config_libdir = '/usr/lib/x86_64-linux-gnu/pkgconfig:/usr/share/pkgconfig'
[host_machine]
system = 'linux'
cpu_family = 'x86_64'
cpu = 'x86_64'
endian = 'little'
INI
[ -f "$cross/build.ninja" ] || meson setup "$cross" . --cross-file "$cross.ini" -Dtests=enabled
ninja -C "$cross"

failed=0
for test in "$cross"/src/unit-* "$cross"/src/mpi/unit-*; do
    case $test in
    *.p | */unit-remote | */unit-shm* | */unit-emulator | */unit-guardian | */unit-ranks) continue ;;
    */unit-packet_size | */unit-tcp-pulse | */unit-local_ranks | */unit-mcast-group* | */unit-mcast-membership | \
        */unit-group_port) continue ;;
    esac
    echo "$test"
done | xargs -P 2 -n 1 "$0" --unit || failed=1
mkdir -p "$cross/programs"
# What tests/mpi/run knows of them: the settings and words that each is run with, and how it has to fail.
cat >"$cross/programs.py" <<'PYTHON'
import importlib.machinery, importlib.util, sys
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("mpi_run", "tests/mpi/run")
table = importlib.util.module_from_spec(importlib.util.spec_from_loader("mpi_run", loader))
loader.exec_module(table)
for name, program in sorted(table.PROGRAMS.items()):
    settings = " ".join(f"--set {setting}" for setting in program.settings)
    if not program.source:
        print(name, settings, " ".join(program.arguments("tcp", "quick")), program.fails, sep=":")
PYTHON
python3 "$cross/programs.py" >"$cross/programs.list"
while IFS=: read -r name settings words fails <&3; do
    case $name in
    communicators | fork | large | largest | strided) continue ;;
    spawn* | ports | groups_later | groups_unborn) continue ;; # what a rank starts is not run by qemu
    esac
    program=$cross/programs/$name
    x86_64-linux-gnu-gcc -O1 -w -D_GNU_SOURCE -Iinclude -Itests/mpi "tests/mpi/$name.c" -o "$program" -L"$cross/src/mpi" -lmpi_abi -lm \
        -lpthread -Wl,-rpath,"$cross/src/mpi"
    # shellcheck disable=SC2086 # they are words
    try "$name" 300 "$fails" "$build/bin/mpiexec" -n 3 $settings qemu-x86_64 "$program" $words || failed=1
done 3<"$cross/programs.list"
exit $failed
