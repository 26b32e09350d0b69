#!/usr/bin/env python3
"""Holds the emulator's matrix instructions against those of a GPU, bit by bit, on a million hard sums of each type.

On a machine with Rust:      cargo run --release -p krn-runtime --example mma_values -- values.bin
On the machine with the GPU: bench/mma.py values.bin

The rule that the emulator follows is that of compute capability 9.0 (compiler/src/atoms/numerics.rs).
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("values", type=pathlib.Path, help="what the example `mma_values` wrote")
    parser.add_argument("--nvcc", default="nvcc")
    options = parser.parse_args()
    source = pathlib.Path(__file__).with_name("mma.cu")
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "mma"
        subprocess.run([options.nvcc, "-O2", "-arch=native", "-o", program, source], check=True)
        return subprocess.run([program, options.values]).returncode


if __name__ == "__main__":
    sys.exit(main())
