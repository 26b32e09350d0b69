#!/usr/bin/env python3
"""Times the tile programs of bf16 products (tiles.kir, by `mma.sync`) beside cuBLAS, as PyTorch calls it.

    bench/tiles/tensor.py [--krn KRN] [--sizes 4096 8192] [--rounds 3]

First each program is run and held against the reference at the sizes that tiles.krn names. Then the two sides take turns,
with pauses between, so that both have the same clocks: medians of a round's calls, the best round of each. cuBLAS stores
bf16, so it stands beside both programs.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time

import torch

HERE = pathlib.Path(__file__).parent
FILE, PROGRAMS = str(HERE / "tiles.krn"), str(HERE / "tiles.kir")
KERNELS = ["tensor_f32", "tensor_bf16"]

sys.path.insert(0, str(HERE.parent))
from timing import Events, measure, quantiles  # noqa: E402


def right(krn, kernel):
    command = [krn, "run", FILE, "--kernel", kernel, "--ir", PROGRAMS]
    run = subprocess.run(command, capture_output=True, text=True)
    print("\n".join((run.stdout + run.stderr).strip().splitlines()[-2:]))
    return run.returncode == 0


def ours(krn, kernel, size):
    sizes = [f"m={size}", f"n={size}", f"k={size}"]
    command = [krn, "bench", FILE, "--kernel", kernel, "--ir", PROGRAMS, "--json", "-D", *sizes]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(run.stdout + run.stderr)
    return json.loads(run.stdout)["median_s"]


def peer(size):
    a, b = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    out = torch.empty(size, size, device="cuda", dtype=torch.bfloat16)
    return quantiles(measure(Events(), [lambda: torch.mm(a, b, out=out)]))["median_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--krn", default="krn")
    parser.add_argument("--sizes", type=int, nargs="+", default=[4096, 8192])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    wrong = [kernel for kernel in KERNELS if not right(options.krn, kernel)]
    if wrong:
        sys.exit(f"wrong: {', '.join(wrong)}")
    print(torch.cuda.get_device_name(), torch.__version__)
    for size in options.sizes:
        best = {}
        for _ in range(options.rounds):
            turns = [("cuBLAS", lambda: peer(size))]
            turns += [(kernel, lambda kernel=kernel: ours(options.krn, kernel, size)) for kernel in KERNELS]
            for name, turn in turns:
                time.sleep(1)
                best[name] = min(best.get(name, float("inf")), turn())
        for name, seconds in best.items():
            rate, ratio = 2e-12 * size**3 / seconds, best["cuBLAS"] / seconds
            print(f"{size}^3 {name:12} {seconds * 1e6:9.1f} us {rate:7.1f} TFLOP/s {ratio:6.3f} of cuBLAS")


if __name__ == "__main__":
    main()
