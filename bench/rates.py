#!/usr/bin/env python3
"""Measures what compiler/src/analysis/rates.rs says of a multiprocessor, on the GPU at hand, beside what stands there:

    bench/rates.py [--nvcc NVCC]

One line a rate: its name, what was measured, what the file has, and the quotient. Cycles are those of the multiprocessor's
clock in the run. LAUNCH is measured in a graph; launches one by one take longer, by what the driver does for each. Of the
others there is no line: how much of a rate code reaches (KEPT, TWO_LAUNCHES) and how many iterations fill a multiprocessor
(THREADS_AT_ONCE, ROWS_AT_ONCE) is not what a small program of its own can tell.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
FILE = HERE.parent / "compiler/src/analysis/rates.rs"


def constants(text):
    """The rates that a file of the compiler has, by name."""
    found = re.findall(r"^pub const (\w+): i64 = ([\d_]+);$", text, re.MULTILINE)
    return {name: int(number) for name, number in found}


def table(measured, known):
    """Lines of what was measured beside what is known; a rate that the file does not have is an error."""
    lines = [f"{'rate':20} {'measured':>10} {'the file':>10} {'quotient':>10}"]
    for line in measured.splitlines():
        name, number = line.split()
        lines.append(f"{name:20} {float(number):10.1f} {known[name]:10} {float(number) / known[name]:10.2f}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nvcc", default="nvcc")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "rates"
        source = HERE / "rates.cu"
        subprocess.run([options.nvcc, "-O2", "-std=c++17", "-arch=native", "-o", program, source], check=True)
        measured = subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout
    print(table(measured, constants(FILE.read_text())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
