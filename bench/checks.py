#!/usr/bin/env python3
"""Times what bounds checks cost when none fails: each kernel of bench/checks.krn beside itself without checks, beside its
clamped spelling, and, where there is nvcc, the histogram beside one in plain CUDA.

usage: checks.py --krn KRN [--only gather,…] [--rounds 5] [--json FILE]

Fails where a kernel takes more than 2 % longer than without checks, embedding and gathered rows reach less than 0.95 of
their clamped spelling, or the histogram less than 0.95 of CUDA's.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import changed

HERE = pathlib.Path(__file__).resolve().parent
FILE = HERE / "checks.krn"
MOST_OVERHEAD = 0.02
LEAST_SHARE = 0.95

SIZES = {
    "gather": {"n": 1 << 20, "m": 1 << 26},
    "scatter_add": {"n": 1 << 20, "m": 1 << 25},
    "look_up": {"m": 1 << 26},
    "look_up_pairs": {"m": 1 << 26},
    "embedding": {"vocabulary": 50_000, "t": 1 << 17, "d": 512},
    "embedding_bf16": {"vocabulary": 50_000, "t": 1 << 17, "d": 1024},
    "gathered_rows": {"rows": 50_000, "m": 1 << 17, "d": 512},
    "gathered_dot": {"n": 1 << 20, "m": 1 << 26},
    "histogram": {"n": 1 << 26},
    "histogram_256": {"n": 1 << 26},
    "spmv": {"ends": (1 << 20) + 1, "nonzeros": 1 << 24, "cols": 1 << 20},
    "spmv_ell": {"rows": 1 << 20, "width": 16, "cols": 1 << 20},
}
# Those that have to reach their clamped spelling.
AS_CLAMPED = ("embedding", "embedding_bf16", "gathered_rows")


def cuda_histogram(n):
    """Seconds of a histogram in plain CUDA, and None where there is no nvcc."""
    nvcc = shutil.which("nvcc") or next((p for p in ("/usr/local/cuda/bin/nvcc",) if os.path.exists(p)), None)
    if nvcc is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "histogram")
        source = str(HERE / "histogram_peer.cu")
        subprocess.run([nvcc, "-O3", "-arch=native", source, "-o", program], check=True)
        done = subprocess.run([program, str(n)], check=True, capture_output=True, text=True)
    return float(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--krn", required=True, help="the built tool")
    parser.add_argument("--only", help="kernels, comma-separated")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--json", help="a file for the times")
    options = parser.parse_args()
    only = options.only.split(",") if options.only else list(SIZES)
    source = FILE.read_text()
    built = changed.built(options.krn, str(FILE), options.target)
    if built is None:
        return 1
    manifest, failed, report = built[1], [], {}
    print("| kernel | checked | without checks | overhead | clamped | clamped / checked |")
    print("|---|---|---|---|---|---|")
    for kernel in only:
        sizes = SIZES[kernel]

        def call(name, *more):
            row = (str(FILE), name, sizes)
            return changed.command(options.krn, row, manifest, source, options.target) + list(more)

        pairs = [(call(kernel, "--unchecked"), call(kernel)), (call(f"{kernel}_clamped"), call(kernel))]
        times = [changed.interleaved(lambda which: changed.measured(pair[which]), options.rounds) for pair in pairs]
        if None in times:
            failed.append(f"{kernel}: no time")
            continue
        (unchecked, checked), (clamped, beside) = times
        report[kernel] = {"checked": checked, "unchecked": unchecked, "clamped": clamped}
        overhead, share = checked / unchecked - 1, clamped / beside
        if overhead > MOST_OVERHEAD:
            failed.append(f"{kernel}: {overhead:+.1%} for its checks")
        if kernel in AS_CLAMPED and share < LEAST_SHARE:
            failed.append(f"{kernel}: {share:.3f} of its clamped spelling")
        micro = [f"{time * 1e6:.1f} us" for time in (checked, unchecked, clamped)]
        print(f"| {kernel} | {micro[0]} | {micro[1]} | {overhead:+.1%} | {micro[2]} | {share:.3f} |", flush=True)
    if "histogram" in report:
        cuda = cuda_histogram(SIZES["histogram"]["n"])
        if cuda is None:
            print("\nno nvcc: the histogram stands beside nothing")
        else:
            report["histogram"]["cuda"] = cuda
            share = cuda / report["histogram"]["checked"]
            print(f"\nhistogram in plain CUDA: {cuda * 1e6:.1f} us; ours is {share:.3f} as fast")
            if share < LEAST_SHARE:
                failed.append(f"histogram: {share:.3f} of plain CUDA")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(report, indent=1))
    for line in failed:
        print(line, file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
