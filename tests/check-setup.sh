#!/bin/sh
# Checks tools/setup on pretended machines: a PATH of stubs decides what is there, who we are and what apt-get can do.
# shellcheck disable=SC2016  # conditions and stubs are expanded where they run, not here
set -eu
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

# machine: a machine where every tool is there, we are root, and apt-get writes down how it is called
machine() {
    rm -rf "${scratch:?}/bin" "$scratch/calls"
    mkdir "$scratch/bin"
    : >"$scratch/calls"
    for tool in sh env cat grep; do
        ln -s "$(command -v $tool)" "$scratch/bin/$tool"
    done
    for tool in gcc g++ make meson ninja pkg-config python3 clang-14 clang-format-14 clang-tidy-14 cmake ip setarch \
        unshare iperf3 ping mpicc.mpich mpiexec.mpich mpicc.openmpi mpiexec.openmpi; do
        stub $tool 'exit 0'
    done
    stub mpicc.mpich 'echo gcc'
    stub mpicc.openmpi 'echo gcc'
    stub id 'echo 0'
    stub uname 'echo x86_64'
    stub dpkg 'echo "dpkg $*" >>"$CALLS"; [ "$1" != --print-architecture ] || echo arm64'
    stub apt-get 'echo "apt-get $*" >>"$CALLS"; [ "$DEBIAN_FRONTEND" = noninteractive ]'
}

stub() {
    printf '#!/bin/sh\n%s\n' "$2" >"$scratch/bin/$1"
    chmod +x "$scratch/bin/$1"
}

# setup TIER: runs it there; its exit code in $code, what it says in $scratch/out, calls of apt-get in $scratch/calls
setup() {
    code=0
    env -i PATH="$scratch/bin" CALLS="$scratch/calls" "$scratch/bin/sh" tools/setup "$1" \
        </dev/null >"$scratch/out" 2>&1 || code=$?
}

# verdict NAME CONDITION: one case
verdict() {
    if eval "$2"; then
        echo "case: $1 ok"
    else
        echo "case: $1 failed"
        echo "exit code $code; said:"
        cat "$scratch/out"
        echo "calls:"
        cat "$scratch/calls"
        failures=$((failures + 1))
    fi
}

calls() {
    grep -qx -- "$1" "$scratch/calls"
}

says() {
    grep -q -- "$1" "$scratch/out"
}

machine
setup test
verdict complete '[ $code -eq 0 ] && [ ! -s "$scratch/calls" ] && [ ! -s "$scratch/out" ]'

machine
rm "$scratch/bin/meson" "$scratch/bin/ninja" "$scratch/bin/clang-14"
setup build
verdict installs '[ $code -eq 0 ] && calls "apt-get update -qq" && calls "apt-get install .* meson ninja-build"'
setup test
verdict tier '[ $code -eq 0 ] && calls "apt-get install .* meson ninja-build clang-14"'

machine
rm "$scratch/bin/meson"
stub id 'echo 1000'
setup build
verdict no-sudo '[ $code -eq 1 ] && says "no sudo" && says "^    meson$" && says "apt-get install .*meson" &&
    [ ! -s "$scratch/calls" ]'
stub sudo '[ "$1" = -n ] || exit 1; shift; [ "$1" = true ] || exec "$@"'
setup build
verdict sudo '[ $code -eq 0 ] && calls "apt-get install .* meson"'
stub sudo 'exit 1'
setup build
verdict sudo-password '[ $code -eq 1 ] && says "wants a password" && says "^    meson$"'

machine
rm "$scratch/bin/gcc" "$scratch/bin/apt-get"
setup build
verdict no-apt '[ $code -eq 1 ] && says "no apt-get" && says "^    gcc libc6-dev$"'

machine
rm "$scratch/bin/ninja"
stub apt-get 'echo "apt-get $*" >>"$CALLS"; exit 100'
setup build
verdict no-network '[ $code -eq 1 ] && says "could not install" && says "^    ninja-build$"'

machine
stub pkg-config '[ "$2" != hwloc ]'
setup build
verdict library '[ $code -eq 0 ] && calls "apt-get install .* libhwloc-dev"'

# Another kind of machine, without anything for x86-64.
foreign() {
    machine
    stub uname 'echo aarch64'
    stub pkg-config '[ -z "${PKG_CONFIG_LIBDIR-}" ]'
}
machine
setup test-all
verdict no-cross-needed '[ $code -eq 0 ] && [ ! -s "$scratch/calls" ]'
foreign
setup test-all
verdict cross '[ $code -eq 0 ] && calls "dpkg --add-architecture amd64" && calls "apt-get install .* gcc-x86-64-linux-gnu .*" &&
    calls "apt-get install .* qemu-user libssl-dev:amd64 .*" && ! calls "dpkg --remove-architecture.*"'
foreign
stub dpkg 'echo "dpkg $*" >>"$CALLS"; case $1 in --print-architecture) echo arm64 ;; --print-foreign*) echo amd64 ;; esac'
setup test-all
verdict known-architecture '[ $code -eq 0 ] && calls "apt-get install .*" && ! calls "dpkg --add-architecture.*"'
foreign
stub apt-get 'echo "apt-get $*" >>"$CALLS"; exit 100'
setup test-all
verdict cross-cannot '[ $code -eq 0 ] && says "are skipped" && says "dpkg --add-architecture amd64 && apt-get update" &&
    calls "dpkg --remove-architecture amd64"'
rm "$scratch/bin/meson"
setup test-all
verdict test-all-needs-test '[ $code -eq 1 ] && says "^    meson$"'
foreign
rm "$scratch/bin/mpiexec.mpich"
setup test-all
verdict peers '[ $code -eq 0 ] && calls "apt-get install .* mpich"'

machine
stub pkg-config '[ "$2" != simgrid ]'
setup test
verdict test-without-simgrid '[ $code -eq 0 ] && [ ! -s "$scratch/calls" ]'
setup test-all
verdict simgrid '[ $code -eq 0 ] && calls "apt-get install .* libsimgrid-dev"'
stub apt-get 'echo "apt-get $*" >>"$CALLS"; exit 100'
setup test-all
verdict simgrid-cannot '[ $code -eq 0 ] && says "are skipped" && says "^    libsimgrid-dev$"'

setup nonsense
verdict usage '[ $code -eq 2 ] && says usage'

[ "$failures" -eq 0 ]
