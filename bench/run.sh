#!/usr/bin/env bash
# Times every workload of bench/workloads.py on one GPU, Krn beside its peers, and writes a table.
#
#   bench/run.sh KRN OUT [--only NAME,…] [--quick] [--no-peers] [--device cuda:0]
#
# KRN: the built tool; OUT: a folder for results.json, table.md and the log. Needs a CUDA driver and Python 3; the peers
# need torch, triton, cupy and nvcc, and what is missing is said in the table. With `--device emulator` it runs
# anywhere, counts instructions and times nothing.
set -uo pipefail
if [ $# -lt 2 ]; then
    echo "usage: bench/run.sh KRN OUT [--only NAME,…] [--quick] [--no-peers] [--device cuda:0]" >&2
    exit 2
fi
krn=$(realpath "$1")
mkdir -p "$2" && out=$(realpath "$2") || exit 5
shift 2
cd "$(dirname "$0")/.."
python3 bench/compare.py "$krn" "$out" "$@" 2> >(tee "$out/log.txt" >&2)
code=$?
if [ -f "$out/results.json" ]; then
    python3 bench/table.py "$out/results.json" | tee "$out/table.md"
fi
exit "$code"
