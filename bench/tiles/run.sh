#!/usr/bin/env bash
# Tile programs written by hand beside what the compiler makes of the same kernels: right, then timed, each after the other.
#
#   bench/tiles/run.sh [path of krn [kernel]…]
set -euo pipefail
cd "$(dirname "$0")"
krn=${1:-krn}
only=" ${*:2} "
# Whether a kernel is among those asked for: all, where none is.
wanted() { [[ $only == "  " || $only == *" $1 "* ]]; }
for kernel in copy transpose softmax five_point column_sums product; do
    wanted "$kernel" || continue
    sizes=()
    # More tiles than there are multiprocessors.
    [[ $kernel == product ]] && sizes=(-D m=1408 n=3328 k=64)
    "$krn" run tiles.krn --kernel "$kernel" --ir tiles.kir "${sizes[@]}" | tail -2
done
for round in 1 2 3; do
    for work in "copy -D n=268435456" "transpose -D m=16384 -D n=16384" "softmax -D rows=16384 -D cols=16384" \
        "five_point -D m=16384 -D n=16384" "column_sums -D m=16384 -D n=16384" \
        "product -D m=8192 -D n=8192 -D k=8192" "product -D m=4096 -D n=4096 -D k=4096"; do
        wanted "${work%% *}" || continue
        echo "== $work"
        # shellcheck disable=SC2086 # words
        "$krn" bench tiles.krn --kernel $work
        # shellcheck disable=SC2086
        "$krn" bench tiles.krn --kernel $work --ir tiles.kir
    done
done
