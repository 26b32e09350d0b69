#!/usr/bin/env bash
# Tile programs written by hand beside what the compiler makes of the same kernels: right, then timed, each after the other.
#
#   bench/tiles/run.sh [path of krn]
set -euo pipefail
cd "$(dirname "$0")"
krn=${1:-krn}
for kernel in copy transpose softmax five_point column_sums; do
    "$krn" run tiles.krn --kernel "$kernel" --ir tiles.kir | tail -2
done
for round in 1 2 3; do
    for work in "copy -D n=268435456" "transpose -D m=16384 -D n=16384" "softmax -D rows=16384 -D cols=16384" \
        "five_point -D m=16384 -D n=16384" "column_sums -D m=16384 -D n=16384"; do
        echo "== $work"
        # shellcheck disable=SC2086 # words
        "$krn" bench tiles.krn --kernel $work
        # shellcheck disable=SC2086
        "$krn" bench tiles.krn --kernel $work --ir tiles.kir
    done
done
