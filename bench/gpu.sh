#!/usr/bin/env bash
# Runs every example and test kernel on a GPU machine against the reference evaluator: at the awkward sizes of
# `krn test`, at large sizes, past 2^31 elements, for an old target, without passes, and under the four tools of
# compute-sanitizer.
#
#   bench/gpu.sh KRN OUT [RANDOM]
#
# KRN is the built tool, OUT a folder for the table (gpu.md) and the logs (OUT/logs), RANDOM a folder of further .krn
# files as `cargo run -p krn-generator --example show` prints them (their first line names the sizes). The
# environment may set
#   JOBS    checks at a time (default: the processors less two, at least one)
#   LIMIT   seconds that one check (one file, one tool) may take (default: 300)
#   TOTAL   seconds for all of them; what has not ended by then is counted as not run (default: no limit)
#   ONLY    a regular expression: only the rows whose name matches
#   TESTS   the built program of the runtime's tests: those that run on a device, a row for each module (docs/gpu.md)
#
# Needs a CUDA driver; the sanitizer part is left out, and said to be, where compute-sanitizer is not installed.
set -uo pipefail
cd "$(dirname "$0")/.."
krn=$(realpath "${1:?usage: bench/gpu.sh KRN OUT [RANDOM]}")
mkdir -p "${2:?usage: bench/gpu.sh KRN OUT [RANDOM]}"
out=$(realpath "$2")
random=${3:-}
cpus=$(nproc)
export LIMIT=${LIMIT:-300}
JOBS=${JOBS:-$((cpus > 3 ? cpus - 2 : 1))}
table=$out/gpu.md
logs=$out/logs
mkdir -p "$logs"
export logs

# The checks, one a line: row, label, command, parted by tabs. A row of the table is one or many checks.
checks=$out/checks.tsv
: >"$checks"
rows=()

# row NAME: the checks that follow belong to it.
row() { rows+=("$1"); }
# check LABEL COMMAND…: no word of it has a space.
check() {
    local label=$1
    shift
    printf '%s\t%s\t%s\n' "$((${#rows[@]} - 1))" "$label" "$*" >>"$checks"
}

# One check: its log, and a line of row, status, seconds, label.
one() {
    IFS=$'\t' read -r row label command <<<"$1"
    local log status start end
    log=$logs/$row-${label//[^A-Za-z0-9_.=-]/_}.log
    start=$(date +%s%N)
    # shellcheck disable=SC2086
    timeout -k 5 "$LIMIT" $command >"$log" 2>&1 </dev/null
    status=$?
    end=$(date +%s%N)
    printf '%s\t%s\t%s\t%s\t%s\n' "$row" "$status" "$(((end - start) / 1000000))" "$label" "$log" >>"$logs/results.tsv"
}
export -f one

mapfile -t examples < <(find examples -maxdepth 1 -name '*.krn' | sort)
mapfile -t kernels < <(find tests/kernels -name '*.krn' | sort)

# The longest first: a check that starts last and takes long is waited for alone.
row "past 2^31 elements and past the grid's limit in y"
while read -r kernel sizes; do
    # shellcheck disable=SC2046,SC2086
    check "$kernel $sizes" "$krn" run bench/large.krn --kernel "$kernel" --device cuda:0 $(printf ' -D %s' $sizes)
done <<'LIST'
total n=2147496001
far n=1200000011
past_two_gig n=2147496001
turn m=46351 n=46351
tall rows=200003 cols=17
LIST

row "large sizes"
while read -r file kernel sizes; do
    # shellcheck disable=SC2046,SC2086
    check "$kernel $sizes" "$krn" run "examples/$file.krn" --kernel "$kernel" --device cuda:0 $(printf ' -D %s' $sizes)
done <<'LIST'
vector_add vector_add n=100000007
saxpy saxpy n=100000007
sum total n=100000007
sum column_sums rows=8191 cols=1031
dot dot n=50000017
dot dot_f16 n=50000017
max largest n=50000017
argmax argmax rows=4099 cols=4111
argmax whole rows=4099 cols=4111
histogram histogram n=20000003
prefix_sum prefix_sum n=1000003
transpose transpose m=8191 n=8193
matmul matmul m=1023 k=1025 n=1027
batched_matmul batched_matmul batch=7 m=257 k=259 n=263
linear_gelu linear_gelu rows=515 k=1027 n=519
softmax softmax rows=4099 cols=1031
layer_norm layer_norm rows=4099 cols=1031
rms_norm rms_norm rows=4099 cols=1031
attention attention heads=3 t=129 s=259 d=65
convolution convolution h=2049 w=2053
game_of_life game_of_life h=2049 w=2053
stencil_2d stencil_2d h=4097 w=4099
stencil_3d stencil_3d d=257 h=255 w=259
n_body gravity n=4099
struct_update both_fields_soa n=5000011
black_scholes black_scholes n=1000003
LIST

row "examples, awkward sizes"
for file in "${examples[@]}"; do check "$file" "$krn" test "$file" --device cuda:0; done
row "test kernels, awkward sizes"
for file in "${kernels[@]}"; do check "$file" "$krn" test "$file" --device cuda:0; done

# The oldest target that the compiler knows, and code that no pass has improved: both run on a newer GPU as well.
row "examples and test kernels, compiled for sm_75"
for file in "${examples[@]}" "${kernels[@]}"; do check "$file" "$krn" test "$file" --device cuda:0 --target sm_75; done
row "examples and test kernels, passes left out"
without=$(printf ' --without %s' fold collapse reduce_atomics soa licm cse fuse_multiply_add dce)
for file in "${examples[@]}" "${kernels[@]}"; do check "$file" "$krn" test "$file" --device cuda:0 "$without"; done

if [ -n "$random" ]; then
    row "random kernels"
    while read -r file; do
        sizes=$(head -1 "$file" | sed -E 's/"(\w+)", ([0-9]+)/\n-D \1=\2\n/g; s/seed ([0-9]+)/\n--seed \1\n/' | grep '^-')
        # shellcheck disable=SC2086
        check "$file" "$krn" run "$file" --device cuda:0 $sizes
    done < <(find "$random" -name '*.krn' | sort)
fi

# Tests of the runtime that take their device from the environment, with cargo's hash in their names or without.
if [ -n "${TESTS:-}" ]; then
    [ -x "$TESTS" ] || { echo "TESTS=$TESTS: no program" >&2; exit 2; }
    for module in interop layouts prints streams stress while_loops; do
        row "tests of the runtime: $module"
        check "$module" env KRN_DEVICE=cuda "$(realpath "$TESTS")" "$module::"
    done
fi

# The documents that a host in Python launches by itself.
if python3 -c 'import cupy' 2>/dev/null; then
    mkdir -p "$out/python"
    row "host in Python"
    for file in matmul sum softmax gather_scatter; do
        "$krn" build "examples/$file.krn" --emit fat --target sm_80,sm_90 -o "$out/python/$file.json" 2>/dev/null
    done
    check products python3 examples/python/products.py "$out/python"
fi

row "the driver's cache: killed, corrupt, shared"
check cache bench/cache.sh "$krn"

# sanitize WHAT FILE…: a row for each tool.
sanitize() {
    local what=$1 tool
    shift
    for tool in memcheck racecheck initcheck synccheck; do
        row "compute-sanitizer $tool, $what"
        for file in "$@"; do
            check "$file" compute-sanitizer --tool "$tool" --error-exitcode 9 "$krn" test "$file" --device cuda:0
        done
    done
}
if command -v compute-sanitizer >/dev/null; then
    sanitize examples "${examples[@]}"
    sanitize "test kernels" "${kernels[@]}"
fi

if [ -n "${ONLY:-}" ]; then
    for number in "${!rows[@]}"; do
        [[ ${rows[number]} =~ $ONLY ]] && grep -P "^$number\t" "$checks"
    done >"$checks.only"
    mv "$checks.only" "$checks"
fi

: >"$logs/results.tsv"
began=$(date +%s)
# xargs starts the checks in order, so many at a time.
timeout -k 10 "${TOTAL:-0}" xargs -d '\n' -P "$JOBS" -I '{}' bash -c 'one "$1"' _ '{}' <"$checks"

{
    printf '# Krn on a GPU\n\n'
    printf '%s, driver %s. ' "$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1)" \
        "$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -1)"
    printf 'Made by `bench/gpu.sh` in %s s, %s checks at a time.\n\n' "$(($(date +%s) - began))" "$JOBS"
    printf '| what | checks | kernels | verdict | slowest check |\n|---|---|---|---|---|\n'
} >"$table"
for number in "${!rows[@]}"; do
    mapfile -t results < <(grep -P "^$number\t" "$logs/results.tsv")
    asked=$(grep -cP "^$number\t" "$checks")
    [ "$asked" -eq 0 ] && continue
    good=0
    ran=0
    bad=""
    slowest=0
    which=""
    for result in "${results[@]}"; do
        IFS=$'\t' read -r _ status milliseconds label log <<<"$result"
        case $status in
        0) good=$((good + 1)) ;;
        124 | 137) bad+="; $label: over $LIMIT s" ;;
        *) bad+="; $label: $(grep -v '^$' "$log" | tail -1 | tr '|' '/')" ;;
        esac
        count=$(grep -oP '^\d+(?= kernels passed)' "$log" | tail -1)
        ran=$((ran + ${count:-1}))
        if ((milliseconds >= slowest)); then slowest=$milliseconds which=$label; fi
    done
    missing=$((asked - ${#results[@]}))
    [ "$missing" -gt 0 ] && bad+="; $missing not run"
    verdict="all good"
    [ -n "$bad" ] && verdict="$good good$bad"
    printf '| %s | %s | %s | %s | %s: %s.%03d s |\n' "${rows[number]}" "$asked" "$ran" "$verdict" "$which" \
        $((slowest / 1000)) $((slowest % 1000))
done | tee -a "$table"
command -v compute-sanitizer >/dev/null || echo '| compute-sanitizer | | | not installed | |' | tee -a "$table"
# Good only where every check ran and ended with 0.
[ "$(grep -cP '^\d+\t0\t' "$logs/results.tsv")" -eq "$(wc -l <"$checks")" ]
