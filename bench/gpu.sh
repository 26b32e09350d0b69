#!/usr/bin/env bash
# Runs every example and test kernel on a GPU machine against the reference evaluator: at the awkward sizes of
# `krn test`, at large sizes, past 2^31 elements, and under the four tools of compute-sanitizer.
#
#   bench/gpu.sh KRN OUT      KRN: the built tool; OUT: a folder for the logs and the table (gpu.md)
#
# Needs a CUDA driver; the sanitizer part is left out, and said to be, where compute-sanitizer is not installed.
set -uo pipefail
cd "$(dirname "$0")/.."
krn=$(realpath "${1:?usage: bench/gpu.sh KRN OUT}")
out=${2:?usage: bench/gpu.sh KRN OUT}
mkdir -p "$out"
table=$out/gpu.md
failed=0

row() { printf '| %s | %s | %s |\n' "$1" "$2" "$3" | tee -a "$table"; }

# check NAME LOG COMMAND…: one row; the last line of the log is the detail.
check() {
    local name=$1 log=$out/$2
    shift 2
    if "$@" >"$log" 2>&1; then verdict=ok; else verdict=FAILED; failed=1; fi
    row "$name" "$verdict" "$(grep -v '^$' "$log" | tail -1 | tr '|' '/')"
}

gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1)
printf '# Krn on a GPU\n\n%s. Made by `bench/gpu.sh`.\n\n| what | verdict | detail |\n|---|---|---|\n' "$gpu" >"$table"

check "examples, awkward sizes" examples.log "$krn" test examples/*.krn --device cuda:0
mapfile -t kernels < <(find tests/kernels -name '*.krn' | sort)
check "test kernels, awkward sizes" kernels.log "$krn" test "${kernels[@]}" --device cuda:0

# Large sizes: file, kernel, sizes.
while read -r file kernel sizes; do
    # shellcheck disable=SC2086
    check "$kernel, $sizes" "large-$kernel.log" "$krn" run "$file" --kernel "$kernel" --device cuda:0 $(printf ' -D %s' $sizes)
done <<'LIST'
examples/vector_add.krn vector_add n=100000007
examples/saxpy.krn saxpy n=100000007
examples/transpose.krn transpose m=8191 n=8193
examples/matmul.krn matmul m=1023 k=1025 n=1027
examples/softmax.krn softmax rows=4099 cols=1031
examples/stencil_3d.krn stencil_3d d=257 h=255 w=259
bench/large.krn past_two_gig n=2147496001
bench/large.krn tall rows=200003 cols=17
bench/large.krn turn m=46351 n=46351
bench/large.krn far n=1200000011
LIST

if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck initcheck synccheck; do
        log=sanitizer-$tool.log
        check "compute-sanitizer $tool, examples" "$log" compute-sanitizer --tool "$tool" --error-exitcode 9 \
            "$krn" test examples/*.krn --device cuda:0
    done
else
    row "compute-sanitizer" "not installed" ""
fi
exit "$failed"
