#!/usr/bin/env bash
# The tests of the Python package on a GPU machine, what a call costs beside Triton, and how kernels scale over GPUs.
#
#   bench/python.sh WHEEL OUT
#
# WHEEL is the package as `python3 python/pack.py target/release/libkrn_python.so target/wheels` makes it, OUT a folder for the
# logs. Needs the `python3` that has torch, and pytest: in that Python, or its wheels (pytest, pluggy, iniconfig, packaging,
# pygments) beside WHEEL. JAX, CuPy and Triton are used where they are. Nothing is installed: wheels are unpacked.
set -uo pipefail
cd "$(dirname "$0")/.."
wheel=$(realpath "${1:?usage: bench/python.sh WHEEL OUT}")
mkdir -p "${2:?usage: bench/python.sh WHEEL OUT}"
out=$(realpath "$2")
packages=$(mktemp -d)
for each in "$(dirname "$wheel")"/*.whl; do
    python3 -m zipfile -e "$each" "$packages" || exit 1
done
export PYTHONPATH=$packages KRN_ROOT=$PWD XLA_PYTHON_CLIENT_PREALLOCATE=false
python3 -c 'import krn; print("krn", krn.__version__, krn.gpus())' || exit 1
gpus=$(python3 -c 'import torch; print(torch.cuda.device_count())')
failed=0
# Runs a command, writes down what it says, and counts its failure.
log() {
    echo "== $1"
    shift
    "$@" 2>&1 | tee -a "$out/python.log" | tail -40
    [ "${PIPESTATUS[0]}" = 0 ] || failed=$((failed + 1))
}
: >"$out/python.log"
log "tests" python3 -m pytest -rs -p no:cacheprovider python/tests
log "overhead" python3 bench/python_overhead.py
for size in 1 2 4 8; do
    [ "$size" -le "$gpus" ] || continue
    log "sharded on $size" python3 -m torch.distributed.run --nproc-per-node "$size" python/tests/sharded.py
    log "scaling on $size" python3 -m torch.distributed.run --nproc-per-node "$size" bench/python_scaling.py
done
if command -v compute-sanitizer >/dev/null; then
    log "sanitizer" compute-sanitizer --tool memcheck --error-exitcode 9 python3 python/tests/sanitized.py
else
    echo "== sanitizer: left out, compute-sanitizer is not here"
fi
echo "$failed failed; the log is $out/python.log"
[ "$failed" = 0 ]
