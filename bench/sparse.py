#!/usr/bin/env python3
"""Times products of a sparse matrix in rows (CSR) and a vector beside cuSPARSE, for rows of several mean lengths.

    bench/sparse.py --krn NEW [--parent OLD] [--mean 4 16 32 256] [--nonzeros 24]

One line for each mean length: medians in microseconds of a build of `krn`, with and without checks, of another build if it
is given, and of cuSPARSE through PyTorch. Rows have lengths from 0 to twice the mean, columns are random in a square
matrix, and all is the same for all. Needs PyTorch and NumPy.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy
import timing
import torch

FILE = str(pathlib.Path(__file__).with_name("checks.krn"))


def matrix(rows, mean, seed):
    """The beginnings of rows, and the columns of their elements."""
    rng = numpy.random.default_rng(seed)
    lengths = rng.integers(0, 2 * mean + 1, rows)
    start = numpy.zeros(rows + 1, dtype=numpy.int32)
    numpy.cumsum(lengths, out=start[1:])
    return start, rng.integers(0, rows, start[-1]).astype(numpy.int32)


def krn(program, folder, rows, nonzeros, *more):
    files = [f"--in=start={folder}/start.npy", f"--in=column={folder}/column.npy"]
    sizes = ["-D", f"ends={rows + 1}", "-D", f"nonzeros={nonzeros}", "-D", f"cols={rows}"]
    command = [program, "bench", FILE, "--kernel", "spmv", "--runs", "15", "--json", *files, *sizes, *more]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=120)
        return json.loads(run.stdout)["median_s"] * 1e6
    except (subprocess.TimeoutExpired, ValueError, KeyError, TypeError) as error:
        print(f"{program}: {error} {run.stderr[-300:]}", file=sys.stderr)
        return math.nan


def peer(rows, start, column):
    value, x = torch.randn(len(column), device="cuda"), torch.randn(rows, device="cuda")
    parts = [torch.from_numpy(part).cuda() for part in (start, column)]
    product = torch.sparse_csr_tensor(*parts, value, (rows, rows))
    times = timing.measure(timing.Events(), [lambda: product @ x], total=0.2)
    return sorted(times)[len(times) // 2] * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--krn", required=True)
    parser.add_argument("--parent")
    parser.add_argument("--mean", nargs="*", type=int, default=[2, 4, 8, 16, 32, 64, 256])
    parser.add_argument("--nonzeros", type=int, default=24, help="elements of a matrix, about, as a power of two")
    options = parser.parse_args()
    print(f"{'mean':>6} {'parent':>10} {'krn':>10} {'unchecked':>10} {'cuSPARSE':>10}   cuSPARSE / krn")
    for mean in options.mean:
        rows = (1 << options.nonzeros) // mean
        start, column = matrix(rows, mean, mean)
        with tempfile.TemporaryDirectory() as folder:
            numpy.save(f"{folder}/start.npy", start)
            numpy.save(f"{folder}/column.npy", column)
            old = krn(options.parent, folder, rows, len(column)) if options.parent else math.nan
            new = krn(options.krn, folder, rows, len(column))
            unchecked = krn(options.krn, folder, rows, len(column), "--unchecked")
        cuda = peer(rows, start, column)
        print(f"{mean:6} {old:10.1f} {new:10.1f} {unchecked:10.1f} {cuda:10.1f}   {cuda / new:.2f}", flush=True)


if __name__ == "__main__":
    main()
