#!/usr/bin/env bash
# Reads the hardware's counters for what the emulator counts: every example at the sizes of counters.txt, Krn's own PTX,
# and the access patterns of access_patterns.py, each one launch.
#
#   bench/counters.sh KRN OUT
#
# KRN is the built tool, OUT a folder for the readings: counters.csv, which bench/counters.py puts beside what
# `krn profile` says, and patterns.txt with patterns.csv. Needs a CUDA driver and ncu; nvcc too for the patterns. The
# environment may set JOBS, how many programs are profiled at a time (default 4), LIMIT, seconds for each of the two
# parts (default 300), and CHIP, the chip's name for ncu (default gh100, which the H100 and the H200 have).
set -uo pipefail
cd "$(dirname "$0")/.."
krn=$(realpath "${1:?usage: bench/counters.sh KRN OUT}")
mkdir -p "${2:?usage: bench/counters.sh KRN OUT}"
out=$(realpath "$2")
export krn out

# The metrics that this ncu has of those wanted: names change between versions.
ncu --query-metrics --chips "${CHIP:-gh100}" 2>/dev/null | awk '{print $1}' | sort -u >"$out/known.txt"
metrics=
while read -r metric; do
    if grep -qx "${metric%.sum}" "$out/known.txt"; then metrics+="${metrics:+,}$metric"; else echo "no $metric"; fi
done <bench/counters.metrics
profile=(timeout -s INT "${LIMIT:-300}" ncu --csv --page raw --print-units base --clock-control none
    --cache-control all --target-processes all --metrics "$metrics")

if [ -n "${NO_PATTERNS:-}" ]; then
    echo "the patterns are left out"
elif nvcc -O1 -arch=native -o "$out/access_patterns" bench/access_patterns.cu; then
    python3 bench/access_patterns.py >"$out/patterns.txt"
    "${profile[@]}" --log-file "$out/patterns.csv" "$out/access_patterns" "$out/patterns.txt"
    rm -f "$out/access_patterns"
else
    echo "no nvcc: the patterns are left out"
fi

# Every line a process; its number leads from the readings back to the line.
python3 bench/counters.py launches >"$out/launches.txt"
: >"$out/processes.txt"
"${profile[@]}" --log-file "$out/counters.csv" \
    xargs -a "$out/launches.txt" -d '\n' -P "${JOBS:-4}" -I{} bash -c \
    'echo "$$ $1" >>"$2/processes.txt"; exec "$0" run $1 --device cuda:0 --no-check >/dev/null' "$krn" {} "$out"
ls -l "$out"
