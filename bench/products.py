#!/usr/bin/env python3
"""Times products of all kinds beside PyTorch, at sizes that nobody chose: small, odd, tall and wide ones.

    bench/products.py --krn NEW [--parent OLD] [--count 12] [--seed 1] [--kernel NAME ...]

One line for each kernel and sizes: medians in microseconds of a build of `krn`, of another one if it is given, and of
PyTorch, ten calls as one CUDA graph; then geometric means. TF32 is off, but for `product_tf32` on. Nothing but time is
looked at here: whether results are right `krn test bench/products.krn` finds out.
"""

import argparse
import json
import math
import pathlib
import random
import subprocess
import sys

import torch
from timing import geometric_mean

FILE = str(pathlib.Path(__file__).with_name("products.krn"))
HALVES = ["halves", "halves_f16", "halves_to_f32", "halves_at", "halves_linear", "halves_batched"]
KERNELS = ["product", "product_tf32", "linear", "gram", *HALVES, "doubles", "distances", "batched"]
FIXED = [
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (1920, 2048, 1024),
    (256, 256, 16384),
    (16, 4096, 4096),
    (784, 10, 60000),
]
# What matrix instructions are for: large ones, odd ones, few rows.
FIXED_OF_HALVES = [
    (2048, 2048, 2048),
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (4095, 4093, 4097),
    (1024, 1024, 1024),
    (16, 8192, 8192),
]
# Of sixteen at once.
FIXED_OF_BATCHES = [(512, 512, 512), (1024, 1024, 1024), (1000, 1004, 1001)]


def size(rng):
    """Log-uniform from 6 to 6000, more than half of them multiples of 8."""
    number = int(2 ** rng.uniform(2.5, 12.5))
    return max(8, number // 8 * 8) if rng.random() < 0.6 else number


def krn(program, kernel, m, n, k):
    command = [program, "bench", FILE, "--kernel", kernel, "--runs", "15", "--json", "-D", f"m={m}", f"n={n}", f"k={k}"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=120)
        return json.loads(run.stdout)["median_s"] * 1e6
    except (subprocess.TimeoutExpired, ValueError, KeyError, TypeError) as error:
        print(f"{kernel} {m} {n} {k}: {error}", file=sys.stderr)
        return math.nan


def peer(kernel, m, n, k):
    kind = {"halves_f16": torch.float16, "doubles": torch.float64}.get(kernel, torch.float32)
    kind = torch.bfloat16 if kernel in HALVES and kernel != "halves_f16" else kind
    batch = (16,) if kernel in ("batched", "halves_batched") else ()
    first = (k, m) if kernel in ("gram", "halves_at") else (m, k)
    second = (n, k) if kernel in ("linear", "halves_linear", "distances") else (k, n)
    a = torch.randn(*batch, *first, device="cuda", dtype=kind)
    b = torch.randn(*batch, *second, device="cuda", dtype=kind)
    d = torch.randn(n, device="cuda", dtype=kind)
    call = {
        "gram": lambda: a.t() @ b,
        "halves_at": lambda: a.t() @ b,
        "linear": lambda: torch.relu(torch.nn.functional.linear(a, b, d)),
        "halves_linear": lambda: torch.relu(torch.nn.functional.linear(a, b, d)),
        "distances": lambda: torch.cdist(a, b).square(),
    }.get(kernel, lambda: a @ b)
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(10):
            call()
    times = []
    for _ in range(7):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 100)
    return sorted(times)[3]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--krn", required=True)
    parser.add_argument("--parent")
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kernel", nargs="*", default=KERNELS, choices=KERNELS)
    options = parser.parse_args()
    print(f"{'kernel':14} {'m':>6} {'n':>6} {'k':>6} {'parent':>10} {'krn':>10} {'torch':>10}   torch / krn")
    for kernel in options.kernel:
        torch.backends.cuda.matmul.allow_tf32 = kernel == "product_tf32"
        rng = random.Random(options.seed)
        fixed = FIXED_OF_HALVES if kernel in (*HALVES, "product_tf32") else FIXED
        fixed = FIXED_OF_BATCHES if kernel == "halves_batched" else fixed
        sizes = fixed + [(size(rng), size(rng), size(rng)) for _ in range(options.count)]
        of_peer, of_parent = [], []
        for m, n, k in sizes:
            old = krn(options.parent, kernel, m, n, k) if options.parent else math.nan
            new, torch_time = krn(options.krn, kernel, m, n, k), peer(kernel, m, n, k)
            of_peer.append(torch_time / new)
            of_parent.append(old / new)
            times = f"{old:10.1f} {new:10.1f} {torch_time:10.1f}   {torch_time / new:.2f}"
            print(f"{kernel:14} {m:6} {n:6} {k:6} {times}", flush=True)
        means = f"torch / krn {geometric_mean(of_peer):.3f}, parent / krn {geometric_mean(of_parent):.3f}"
        print(f"{kernel:14} geometric means: {means}", flush=True)


if __name__ == "__main__":
    main()
