#!/bin/sh
# Builds a small project in each of the ways in which build systems look for an MPI library, and runs it. Another MPI may
# be installed, and on a developer's machine often is: what was built must still be linked with ours.
#
#     tests/check-found.sh [BUILD_DIRECTORY]      default: BUILD_DIR (or build)
set -u
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
build=$(cd "${1:-${BUILD_DIR:-$root/build}}" && pwd) || exit 1
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
cd "$scratch" || exit 1
unset LD_LIBRARY_PATH TOMBOLO_CC TOMBOLO_CXX MPI_HOME MPICC MPICXX CC CXX CFLAGS CXXFLAGS LDFLAGS PKG_CONFIG_PATH
plain_path=$PATH
failed=0

mkdir project
cat >project/who.c <<'C'
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length, rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_library_version(version, &length);
    if (rank == size - 1)
        printf("%d ranks of %s\n", size, version);
    MPI_Finalize();
    return 0;
}
C
cp project/who.c project/whoxx.cpp
cat >project/CMakeLists.txt <<'C'
cmake_minimum_required(VERSION 3.16)
project(who C CXX)
find_package(MPI REQUIRED COMPONENTS C CXX)
add_executable(who who.c)
target_link_libraries(who MPI::MPI_C)
add_executable(whoxx whoxx.cpp)
target_link_libraries(whoxx MPI::MPI_CXX)
file(WRITE ${CMAKE_BINARY_DIR}/mpiexec "${MPIEXEC_EXECUTABLE}")
C
cat >project/meson.build <<'C'
project('who', 'c', 'cpp')
method = get_option('how')
executable('who', 'who.c', dependencies: dependency('mpi', language: 'c', method: method))
executable('whoxx', 'whoxx.cpp', dependencies: dependency('mpi', language: 'cpp', method: method))
C
echo "option('how', type: 'string', value: 'auto')" >project/meson_options.txt

runs() { # program: it must be ours, and find our library by itself
    PATH=$plain_path timeout 60 "$build/bin/mpiexec" -n 2 "$1" >out 2>&1 && grep -q '^2 ranks of Tombolo' out && return
    echo "$1 is not a program of Tombolo:"
    head -5 out
    return 1
}

report() { # name command...: one case
    name=$1
    shift
    if "$@" >"log-$name" 2>&1; then
        echo "case: $name ok"
    else
        echo "case: $name failed"
        sed 's/^/    /' "log-$name" | tail -30
        failed=1
    fi
}

skip() { # what is missing, names
    missing=$1
    shift
    for name; do
        echo "case: $name skipped  there is no $missing"
    done
}

with_cmake() { # folder, words for env
    folder=$1
    shift
    env "$@" cmake -S project -B "$folder" && cmake --build "$folder" && runs "$folder/who" && runs "$folder/whoxx" &&
        [ "$(cat "$folder/mpiexec")" = "$build/bin/mpiexec" ]
}

with_cmake_option() {
    cmake -S project -B cmake-option "-DMPI_HOME=$build" && cmake --build cmake-option && runs cmake-option/who
}

with_meson() { # folder, how, words for env
    folder=$1 how=$2
    shift 2
    env "$@" meson setup "$folder" project "-Dhow=$how" && ninja -C "$folder" && runs "$folder/who" &&
        runs "$folder/whoxx"
}

with_pkg_config() { # module
    flags=$(PKG_CONFIG_PATH=$build/lib/pkgconfig pkg-config --cflags --libs "$1") || return
    # shellcheck disable=SC2086  # they are words
    cc project/who.c -o "who-$1" $flags && runs "./who-$1"
}

if command -v cmake >/dev/null; then
    report cmake-path with_cmake cmake-path "PATH=$build/bin:$plain_path"
    report cmake-home with_cmake cmake-home "MPI_HOME=$build"
    report cmake-option with_cmake_option
else
    skip cmake cmake-path cmake-home cmake-option
fi
if command -v meson >/dev/null; then
    report meson with_meson meson auto "PATH=$build/bin:$plain_path" "PKG_CONFIG_PATH=$build/lib/pkgconfig"
    report meson-wrapper with_meson meson-wrapper config-tool "PATH=$build/bin:$plain_path"
else
    skip meson meson meson-wrapper
fi
if command -v pkg-config >/dev/null; then
    report pkg-config-mpi-c with_pkg_config mpi-c
    report pkg-config-tombolo with_pkg_config tombolo
else
    skip pkg-config pkg-config-mpi-c pkg-config-tombolo
fi
exit $failed
