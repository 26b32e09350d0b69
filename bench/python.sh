#!/usr/bin/env bash
# The Python package on a GPU machine: its tests, calls under compute-sanitizer, kernels split among GPUs and how they
# scale, and what a call costs beside Triton.
#
#   bench/python.sh WHEEL OUT [NCCL_EXAMPLE]
#
# WHEEL is the package, or a folder that has it, as `python3 python/pack.py target/release/libkrn_python.so target/wheels`
# makes it; OUT a folder for the results: python.md (a line a step), python.log (all that they say) and scaling-N.json.
# NCCL_EXAMPLE is the built examples/beside_nccl.rs. Needs the `python3` that has torch, and pytest: in that Python, or its
# wheels (pytest, pluggy, iniconfig, packaging, pygments) beside WHEEL. JAX, CuPy and Triton are used where they are. Nothing
# is installed: wheels are unpacked. The environment may set
#   TOTAL   seconds for all of it (default: 250); a step has its own limit, and what is left of these at most
#
# Scaling is measured first, and the overhead last, alone on the GPUs. What lies between runs side by side, the sanitizer
# on the last GPU. Without a GPU all runs small, on the emulator: a trial of this script.
set -uo pipefail
cd "$(dirname "$0")/.."
usage='usage: bench/python.sh WHEEL OUT [NCCL_EXAMPLE]'
wheel=$(realpath "${1:?$usage}")
mkdir -p "${2:?$usage}"
out=$(realpath "$2")
example=${3:+$(realpath "$3")}
[ -d "$wheel" ] || wheel=$(dirname "$wheel")
total=${TOTAL:-250}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for each in "$wheel"/*.whl; do
    python3 -m zipfile -e "$each" "$work/packages" || exit 1
done
export PYTHONPATH=$work/packages KRN_ROOT=$PWD XLA_PYTHON_CLIENT_PREALLOCATE=false OMP_NUM_THREADS=1
log=$out/python.log
table=$out/python.md
: >"$log"
failed=0

# limited SECONDS COMMAND…: within its seconds, and what is left of all.
limited() {
    local left=$((total - SECONDS))
    [ "$1" -lt "$left" ] && left=$1
    shift
    [ "$left" -gt 0 ] || return 124
    timeout -k 5 "$left" "$@" </dev/null
}
# told NAME STATUS FILE SECONDS: what a step said, and its line of the table.
told() {
    local verdict=good
    [ "$2" = 0 ] || verdict="failed ($2)"
    [ "$2" != 124 ] || verdict="stopped: out of time"
    [ "$2" = 0 ] || failed=$((failed + 1))
    { echo "== $1: $verdict, $4 s"; cat "$3"; } >>"$log"
    echo "== $1: $verdict, $4 s"
    case "$verdict $1" in
        "good scaling"* | "good overhead"*) tail -n 12 "$3" ;;
        good*) tail -n 1 "$3" ;;
        *) tail -n 40 "$3" ;;
    esac
    echo "| $1 | $verdict | $4 s | $(tail -n 1 "$3" | tr '|' '/' | cut -c 1-120) |" >>"$table"
}
# step NAME SECONDS COMMAND…
step() {
    local name=$1 limit=$2 begun=$SECONDS
    shift 2
    limited "$limit" "$@" >"$work/said" 2>&1
    told "$name" $? "$work/said" $((SECONDS - begun))
}
# aside NAME SECONDS COMMAND…: the same, beside others. `gather` waits for them.
aside=()
aside() {
    local file="$work/aside-${#aside[@]}" name=$1 limit=$2
    shift 2
    aside+=("$name")
    {
        begun=$SECONDS
        limited "$limit" "$@" >"$file" 2>&1
        echo $? $((SECONDS - begun)) >"$file.status"
    } &
}
gather() {
    wait
    local number status took
    for number in "${!aside[@]}"; do
        read -r status took <"$work/aside-$number.status"
        told "${aside[$number]}" "$status" "$work/aside-$number" "$took"
    done
    aside=()
}

python3 - >"$table" <<'EOF' || exit 1
import platform, krn, torch
gpus = [torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())]
print(f"krn {krn.__version__}, Python {platform.python_version()}, torch {torch.__version__}, GPUs: {', '.join(gpus) or 'none'}\n")
print("| step | verdict | time | last line |\n|---|---|---|---|")
EOF
head -n 1 "$table"
gpus=$(python3 -c 'import torch; print(torch.cuda.device_count())')
torchrun=(python3 -m torch.distributed.run --standalone --nproc-per-node)
case $gpus in
    0) sizes=2 small=--small ;;
    1) sizes=1 small= ;;
    *) sizes=$(for size in 2 4 8; do [ "$size" -gt "$gpus" ] || echo "$size"; done) small= ;;
esac

for size in $sizes; do
    step "scaling on $size" 100 "${torchrun[@]}" "$size" bench/python_scaling.py $small --json "$out/scaling-$size.json"
done

for size in $sizes; do
    aside "sharded on $size" 150 "${torchrun[@]}" "$size" python/tests/sharded.py
done

# With the NCCL that torch has loaded. Where there is none, or no GPU, the example says so and ends well: that is no success.
beside_nccl() {
    local library
    library=$(python3 -c 'import torch; print(next(l.split()[-1] for l in open("/proc/self/maps") if "libnccl.so" in l))') ||
        library=libnccl.so.2
    "$example" "$library" | tee "$work/nccl" && grep -q "split by rows" "$work/nccl"
}
if [ -n "$example" ]; then
    export example work
    export -f beside_nccl
    aside "Rust beside NCCL" 100 bash -o pipefail -c beside_nccl
fi

for file in python/tests/test_*.py; do
    aside "$(basename "$file")" 150 python3 -m pytest -rs -p no:cacheprovider "$file"
done
if ! command -v compute-sanitizer >/dev/null; then
    aside "the sanitizer's calls, without it: compute-sanitizer is not here" 100 python3 python/tests/sanitized.py
else
    CUDA_VISIBLE_DEVICES=$((gpus > 0 ? gpus - 1 : 0)) aside "sanitizer" 150 \
        compute-sanitizer --tool memcheck --error-exitcode 9 python3 python/tests/sanitized.py
fi
gather

if [ "$gpus" -gt 0 ]; then
    step "overhead" 40 python3 bench/python_overhead.py
fi
echo "$failed failed, $SECONDS s; the results are in $out"
[ "$failed" = 0 ]
