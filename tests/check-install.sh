#!/bin/sh
# Installs a build in two ways, and compiles and runs a program with what was installed.
#   tests/check-install.sh BUILD_DIRECTORY
# The directory is one of the test builds, since installing elsewhere changes its configured prefix.
set -eu
build=$(realpath "$1")
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# is_complete ROOT: whether everything that a user needs is below ROOT
is_complete() {
    for file in bin/mpicc bin/mpicxx bin/mpiexec bin/mpirun bin/tombolo; do
        [ -x "$1/$file" ] || { echo "$1/$file is missing or cannot be run"; return 1; }
    done
    for file in include/mpi.h include/mpi_fortran.h include/mpi_removed.h lib/libmpi_abi.so.1 lib/libmpi.so \
        lib/pkgconfig/mpi-c.pc lib/pkgconfig/tombolo.pc; do
        [ -e "$1/$file" ] || { echo "$1/$file is missing"; return 1; }
    done
    for page in "$build"/docs/man/*.1; do
        [ -s "$1/share/man/man1/$(basename "$page")" ] || { echo "$1: the page $(basename "$page") is missing"; return 1; }
    done
    for command in "$1"/bin/*; do
        [ -s "$1/share/man/man1/$(basename "$command").1" ] || { echo "$1: $(basename "$command") has no page"; return 1; }
    done
}

# can_compile BIN: whether the installed commands compile and run a program
can_compile() {
    "$1/mpicc" examples/hello.c -o "$scratch/hello"
    (unset LD_LIBRARY_PATH && timeout 30 "$1/mpiexec" -n 3 "$scratch/hello") | tee "$scratch/out"
    grep -q '^the token came back after 3 hops$' "$scratch/out"
}

make -s install BUILD="$build" PREFIX="$scratch/prefix"
is_complete "$scratch/prefix"
can_compile "$scratch/prefix/bin"

# Below DESTDIR, as those who make packages do it: nothing may land outside.
make -s install BUILD="$build" PREFIX=/opt/tombolo-test DESTDIR="$scratch/destdir"
is_complete "$scratch/destdir/opt/tombolo-test"
if [ -e /opt/tombolo-test ]; then
    echo "/opt/tombolo-test was written despite DESTDIR"
    exit 1
fi
[ "$(ls "$scratch/destdir")" = opt ]
