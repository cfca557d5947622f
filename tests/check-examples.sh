#!/bin/sh
# Compiles each example the way the README tells users to, and runs it at several sizes.
set -eu
build=${BUILD_DIR:-$(dirname "$0")/../build}
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

# verdict NAME COMMAND...: one case
verdict() {
    name=$1
    shift
    if "$@"; then
        echo "case: $name ok"
    else
        echo "case: $name failed"
        failures=$((failures + 1))
    fi
}

compile() {
    "$build/bin/mpicc" -O2 -Wall -Wextra -Werror "examples/$1.c" -o "$scratch/$1" -lm
}

# Every rank speaks once, and the token has gone all the way round.
hello() {
    timeout 30 "$build/bin/mpiexec" -n "$1" "$scratch/hello" >"$scratch/out" || return 1
    cat "$scratch/out"
    rank=0
    while [ "$rank" -lt "$1" ]; do
        grep -q "^rank $rank of $1 on ." "$scratch/out" || return 1
        rank=$((rank + 1))
    done
    lines=$1
    if [ "$1" -gt 1 ]; then
        lines=$(($1 + 1))
        grep -q "^the token came back after $1 hops$" "$scratch/out" || return 1
    fi
    [ "$(wc -l <"$scratch/out")" -eq "$lines" ]
}

# The picture does not depend on who draws it: apart from the margin it is the same at every size.
mandelbrot() {
    timeout 60 "$build/bin/mpiexec" -n "$1" "$scratch/mandelbrot" >"$scratch/out" || return 1
    sed -n 's/ |[0-9]*$//p' "$scratch/out" >"$scratch/picture-$1"
    cat "$scratch/out"
    [ "$(wc -l <"$scratch/picture-$1")" -eq 38 ] && cmp "$scratch/picture-1" "$scratch/picture-$1" &&
        grep -q "^$1 ranks, " "$scratch/out" && ! grep -q "$(printf '\033')" "$scratch/out"
}

for example in hello mandelbrot; do
    verdict "compile-$example" compile $example
    for size in 1 2 5; do
        verdict "$example-$size" $example $size
    done
done
[ "$failures" -eq 0 ]
