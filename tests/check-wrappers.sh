#!/bin/sh
# Checks the compiler wrappers: what they print, what they pass on, and that what they compile runs as it is.
#
#     tests/check-wrappers.sh [BIN]        default: bin of BUILD_DIR (or of build)

root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
bin=$(cd "${1:-${BUILD_DIR:-$root/build}/bin}" && pwd) || exit 1
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
cd "$scratch" || exit 1
unset LD_LIBRARY_PATH TOMBOLO_CC TOMBOLO_CXX
failed=0

complain() {
    echo "$*"
    failed=1
}

same() { # what expected found
    [ "$2" = "$3" ] || complain "$1: expected '$2', got '$3'"
}

has() { # what pattern found
    case " $3 " in
    *$2*) ;;
    *) complain "$1: no '$2' in '$3'" ;;
    esac
}

lacks() { # what pattern found
    case " $3 " in
    *$2*) complain "$1: '$2' does not belong in '$3'" ;;
    esac
}

check_questions() { # wrapper
    wrapper=$bin/$1
    include=$("$wrapper" -showme:incdirs)
    lib=$("$wrapper" -showme:libdirs)
    [ -f "$include/mpi.h" ] || complain "$1 -showme:incdirs: no mpi.h in '$include'"
    [ -f "$include/tombolo.h" ] || complain "$1 -showme:incdirs: no tombolo.h in '$include'"
    [ -e "$lib/libmpi.so" ] || complain "$1 -showme:libdirs: no libmpi.so in '$lib'"
    same "$1 -showme:libs" mpi "$("$wrapper" -showme:libs)"
    has "$1 -showme:compile" " -I$include " "$("$wrapper" -showme:compile)"
    lacks "$1 -showme:compile" " -l" "$("$wrapper" -showme:compile)"
    has "$1 -showme:link" " -L$lib -Wl,-rpath,$lib -lmpi " "$("$wrapper" -showme:link)"
    lacks "$1 -showme:link" " -I" "$("$wrapper" -showme:link)"
    has "$1 -showme:version" "Tombolo " "$("$wrapper" -showme:version)"
    compiler=$("$wrapper" -showme:command)
    [ -n "$compiler" ] || complain "$1 -showme:command prints nothing"
    for option in -show --show -showme --showme; do
        shown=$("$wrapper" $option)
        has "$1 $option" " $compiler " "$shown"
        has "$1 $option" " -I$include " "$shown"
        has "$1 $option" " -lmpi " "$shown"
    done
    for option in -compile-info -compile_info --compile-info -show-compile-info; do
        has "$1 $option" " -I$include " "$("$wrapper" $option)"
        lacks "$1 $option" " -l" "$("$wrapper" $option)"
    done
    for option in -link-info -link_info --link_info -show-link-info; do
        has "$1 $option" " -lmpi " "$("$wrapper" $option)"
    done
    if "$wrapper" -showme:nonsense 2>/dev/null; then
        complain "$1 -showme:nonsense succeeds"
    fi
}

check_passing() { # wrapper
    wrapper=$bin/$1
    for option in -c -E -S -M -MM -fsyntax-only; do
        lacks "$1 $option" " -lmpi " "$("$wrapper" -show $option x.c)"
        has "$1 $option" " $option x.c " "$("$wrapper" -show $option x.c)"
    done
    has "$1 quoting" " '-DNAME=\"a b\"' 'it'\\\\''s.c' " "$("$wrapper" -show '-DNAME="a b"' "it's.c")"
    has "$1 -MD" " -lmpi " "$("$wrapper" -show -MD x.c)"
    "$wrapper" --version >version 2>&1 || complain "$1 --version: $(cat version)"
    "$wrapper" -v >version 2>&1 || complain "$1 -v: $(cat version)"
    if "$wrapper" no-such-file.c -o none 2>/dev/null; then
        complain "$1 succeeds without its input"
    fi
}

check_program() { # wrapper source
    wrapper=$bin/$1
    if ! "$wrapper" -Wall -Wextra -Werror -DSAID='"a b"' "$2" -o "$1-at-once"; then
        complain "$1 cannot compile and link $2"
        return
    fi
    if ! "$wrapper" -Werror -DSAID='"a b"' -c "$2" -o "$1.o" || ! "$wrapper" "$1.o" -o "$1-in-steps"; then
        complain "$1 cannot compile and link $2 in two steps"
        return
    fi
    for program in "$1-at-once" "$1-in-steps"; do
        said=$("./$program") || complain "$program ends with $?"
        same "$program" "a b 5.0 wrapped" "$said"
    done
}

cat >program.c <<'EOF'
#include <stdio.h>
#include <mpi.h>
#include <tombolo.h>

/* A profiling library's way: the program's own MPI_Wtick stands before the library's, which keeps its other name. */
double MPI_Wtick(void)
{
    return -1;
}

int main(void)
{
    double (*original)(void) = PMPI_Wtick;
    int major = MPI_VERSION, minor = MPI_SUBVERSION;
    if (Tombolo_version()[0] == 0 || original == MPI_Wtick)
        return 1;
    printf("%s %d.%d %s\n", SAID, major, minor, MPI_Wtick() < 0 ? "wrapped" : "not wrapped");
    return 0;
}
EOF
cp program.c program.cc

for name in mpicc mpicxx mpic++ mpiCC; do
    if [ -x "$bin/$name" ]; then
        check_questions "$name"
        check_passing "$name"
    else
        complain "$bin/$name is not there"
    fi
done
check_program mpicc program.c
check_program mpicxx program.cc

same "TOMBOLO_CC" "my-cc -m64" "$(TOMBOLO_CC='my-cc -m64' "$bin/mpicc" -showme:command)"
same "TOMBOLO_CXX" "my-c++" "$(TOMBOLO_CXX=my-c++ "$bin/mpicxx" -showme:command)"
if command -v clang >/dev/null; then
    TOMBOLO_CC=clang "$bin/mpicc" -Werror -c program.c -DSAID='""' -o clang.o ||
        complain "clang -c complains about the wrapper's options"
fi

# Called through a link from elsewhere, and in a shell that stands elsewhere.
ln -s "$bin/mpicc" linked
same "through a link" "$("$bin/mpicc" -show x.c)" "$(./linked -show x.c)"
exit $failed
