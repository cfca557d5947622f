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

# The four larger examples check themselves. Beyond that, all of their last line before "ranks=" must be the same at every
# size, and only a terminal gets colours.
calculation() {
    size=$1
    example=$2
    shift 2
    timeout 60 "$build/bin/mpiexec" -n "$size" "$scratch/$example" "$@" >"$scratch/out" || return 1
    cat "$scratch/out"
    tail -n 1 "$scratch/out" >"$scratch/last"
    sed -n "s/^\(result: example=$example .* ok=yes\) ranks=$size .*/\1/p" "$scratch/last" >"$scratch/$example-$size"
    [ -s "$scratch/$example-$size" ] && cmp "$scratch/$example-1" "$scratch/$example-$size" &&
        grep -q " seconds=[0-9.]* " "$scratch/last" && ! grep -q "$(printf '\033')" "$scratch/out"
}

# --quiet leaves the result line alone, and a spoiled result is noticed: the check could not pass otherwise.
spoiled() {
    example=$1
    shift
    status=0
    timeout 60 "$build/bin/mpiexec" -n 2 "$scratch/$example" "$@" --quiet --spoil >"$scratch/out" || status=$?
    cat "$scratch/out"
    [ "$status" -eq 1 ] && [ "$(wc -l <"$scratch/out")" -eq 1 ] && grep -q "^result: .* ok=no " "$scratch/out"
}

# Fewer rows than ranks: some have nothing to do, and must not mind.
idle() {
    timeout 60 "$build/bin/mpiexec" -n 5 "$scratch/$1" --size 3 >"$scratch/out" || return 1
    cat "$scratch/out"
    grep -q "^result: .* ok=yes ranks=5 " "$scratch/out"
}

# --help is no error and names every option that the program knows; a wrong option is one, and nothing runs.
options() {
    timeout 60 "$build/bin/mpiexec" -n 2 "$scratch/$1" --help >"$scratch/out" || return 1
    cat "$scratch/out"
    grep -o '{"[a-z]*", [01], NULL' "examples/$1.c" | cut -d '"' -f 2 >"$scratch/names"
    while read -r option; do
        [ "$option" = help ] || grep -q "^  --$option " "$scratch/out" || return 1
    done <"$scratch/names"
    [ "$(grep -c '^  --' "$scratch/out")" -ge 5 ] || return 1
    ! timeout 60 "$build/bin/mpiexec" -n 2 "$scratch/$1" --sise 3 >"$scratch/out" && ! grep -q result "$scratch/out"
}

# calculations EXAMPLE ARGUMENTS...: all cases of an example, with arguments that make it small and its shares uneven
calculations() {
    verdict "compile-$1" compile "$1"
    verdict "$1-1" calculation 1 "$@"
    verdict "$1-3" calculation 3 "$@"
    verdict "$1-4" calculation 4 "$@"
    verdict "$1-spoiled" spoiled "$@"
    verdict "$1-options" options "$1"
}

for example in hello mandelbrot; do
    verdict "compile-$example" compile $example
    for size in 1 2 5; do
        verdict "$example-$size" $example $size
    done
done
calculations heat --rows 37 --columns 53 --steps 250
calculations gauss --size 110
calculations var --scenarios 50003
calculations matmul --size 123 --panel 25
verdict gauss-idle idle gauss
verdict matmul-idle idle matmul
[ "$failures" -eq 0 ]
