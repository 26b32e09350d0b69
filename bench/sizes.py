#!/usr/bin/env python3
"""Times the kernels of a file at sizes that nobody chose: small, odd, tall and wide ones.

    bench/sizes.py --krn NEW [--parent OLD] [--file bench/workloads.krn] [--count 4] [--seed 1] [--kernel NAME]

One line for each kernel and sizes: the median time of its code in microseconds, that of the general plan beside it
(`krn bench --general`), and that of another build of `krn`, if one is given; then geometric means and the worst. Runs
that a build refuses are told and left out of the means.
"""

import argparse
import json
import random
import subprocess
import sys

from timing import geometric_mean


def dims_of(krn, file):
    """The dimensions of each kernel of a file, by name."""
    text = subprocess.run([krn, "build", file, "--emit", "manifest"], check=True, capture_output=True, text=True).stdout
    kernels = json.loads(text)["kernels"]
    return {k["name"]: [s["name"] for s in k["symbols"] if "dim" in s["kind"]] for k in kernels}


def size(rng, bits):
    """Log-uniform up to 2^bits; half of them multiples of a power of two."""
    number = int(2 ** rng.uniform(5, bits))
    if rng.random() < 0.5:
        unit = 2 ** rng.randrange(2, 8)
        number = max(unit, number // unit * unit)
    return number


def sizes_for(rng, dims):
    bits = {1: 25, 2: 14, 3: 12}.get(len(dims), 9)
    return [f"{name}={size(rng, bits)}" for name in dims]


def median(krn, file, kernel, sizes, *more):
    """In microseconds; None where it is refused, with the reason on standard error."""
    command = [krn, "bench", file, "--kernel", kernel, "--runs", "20", "--json", *more, "-D", *sizes]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=120)
        return json.loads(run.stdout)["median_s"] * 1e6
    except (subprocess.TimeoutExpired, ValueError, KeyError, TypeError) as error:
        print(f"{kernel} {' '.join(sizes)}: {error}", file=sys.stderr)
        return None


def told(name, rows):
    """`rows`: ratios with what they are of."""
    if rows:
        worst = sorted(rows)[:5]
        listed = "; ".join(f"{ratio:.2f} {what}" for ratio, what in worst)
        print(f"{name}: geometric mean {geometric_mean([ratio for ratio, _ in rows]):.3f} of {len(rows)}; worst: {listed}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--krn", required=True)
    parser.add_argument("--parent")
    parser.add_argument("--file", default="bench/workloads.krn")
    parser.add_argument("--kernel")
    parser.add_argument("--count", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    against_parent, against_general = [], []
    for kernel, dims in dims_of(options.krn, options.file).items():
        for _ in range(options.count):
            sizes = sizes_for(rng, dims)
            if options.kernel not in (None, kernel):
                continue
            what = f"{kernel} {' '.join(sizes)}"
            own = median(options.krn, options.file, kernel, sizes)
            general = median(options.krn, options.file, kernel, sizes, "--general")
            parent = median(options.parent, options.file, kernel, sizes) if options.parent else None
            print(what, *(f"{time:.2f}" if time else "-" for time in (own, general, parent)), flush=True)
            if own and parent:
                against_parent.append((parent / own, what))
            if own and general:
                against_general.append((own / general, what))
    told("parent / own", against_parent)
    told("own / general", against_general)


if __name__ == "__main__":
    main()
