#!/usr/bin/env bash
# The driver's cache of compiled kernels under ill treatment: programs that are killed while they fill it, entries that are
# cut short or overwritten, several programs at once. Every run after it must give right results, and the last one be
# served from the cache again.
#
#   bench/cache.sh KRN
#
# KRN is the built tool. Needs a CUDA driver. Uses a cache of its own, which it removes.
set -uo pipefail
cd "$(dirname "$0")/.."
krn=$(realpath "${1:?usage: bench/cache.sh KRN}")
CUDA_CACHE_PATH=$(mktemp -d)
export CUDA_CACHE_PATH
trap 'rm -rf "$CUDA_CACHE_PATH"' EXIT
# A file of many variants: a second of the driver's compiler.
program=("$krn" run examples/softmax.krn -D rows=33 -D cols=1001 --device cuda:0)

fail() {
    echo "the driver's cache: $1"
    exit 1
}
# run WHEN: a checked run; its time in milliseconds in `took`.
run() {
    local start
    start=$(date +%s%N)
    "${program[@]}" >"$CUDA_CACHE_PATH.log" 2>&1 ||
        fail "$1: $(grep -v '^$' "$CUDA_CACHE_PATH.log" | tail -1)"
    took=$((($(date +%s%N) - start) / 1000000))
    rm -f "$CUDA_CACHE_PATH.log"
}
# least WHEN: the quickest of three runs, in `took`: what else the machine does only adds to a time.
least() {
    local best=
    for _ in 1 2 3; do
        [ "$1" != "with an empty cache" ] || rm -rf "${CUDA_CACHE_PATH:?}"/*
        run "$1"
        [ -n "$best" ] && [ "$best" -le "$took" ] || best=$took
    done
    took=$best
}
# Whether `took` is what a run takes that the cache serves: a third less than `empty` at least.
served() { [ "$((took * 3))" -lt "$((empty * 2))" ]; }
entries() { find "$CUDA_CACHE_PATH" -type f; }

# Killed at ten times, from before the first byte to after the last.
for seconds in 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1.1; do
    rm -rf "${CUDA_CACHE_PATH:?}"/*
    "${program[@]}" >/dev/null 2>&1 &
    sleep "$seconds"
    kill -9 $! 2>/dev/null
    wait $! 2>/dev/null
    run "after a program that was killed"
done

least "with an empty cache"
empty=$took
least "with a full cache"
full=$took
[ "$(entries | wc -l)" -gt 0 ] || fail "nothing is written to $CUDA_CACHE_PATH"
served || fail "it is not used: $empty ms without, $full ms with it"

while read -r entry; do truncate -s "$(($(stat -c %s "$entry") / 2))" "$entry"; done < <(entries)
run "with entries cut short"
while read -r entry; do head -c "$(stat -c %s "$entry")" /dev/urandom >"$entry"; done < <(entries)
run "with entries overwritten"
while read -r entry; do : >"$entry"; done < <(entries)
run "with empty entries"

rm -rf "${CUDA_CACHE_PATH:?}"/*
running=()
for _ in 1 2 3 4 5 6 7 8; do
    "${program[@]}" >/dev/null 2>&1 &
    running+=($!)
done
for process in "${running[@]}"; do wait "$process" || fail "one of eight programs at once"; done
# Once: the first of three would fill it for the others.
run "after eight programs at once"
served || fail "it is not used after eight programs at once: $took ms"
echo "the driver's cache: $empty ms without, $full ms with it; killed, cut, overwritten, shared: all good"
