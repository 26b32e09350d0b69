#!/usr/bin/env python3
"""Times the spellings of each function of tests/spellings/ on a GPU, with automatic schedules, and says how many times as
long as the fastest one each takes.

usage: spellings.py --krn KRN [--only softmax,batch_norm,…] [--runs 20] [--without PASS …] [--json FILE]

Sizes are those of the files' `krn-test: cost` directives, with a first axis sixteen times as long. Kernels without one run
at the tool's own sizes: of a function of which some spellings have none, times are not compared.
"""

import argparse
import json
import pathlib
import re
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
FILES = HERE.parent / "tests" / "spellings"
LONGER = 16


def kernels():
    """Of each kernel: its file, its name, its sizes."""
    for path in sorted(FILES.glob("*.krn")):
        sizes = {}
        for line in path.read_text().splitlines():
            if found := re.match(r"// krn-test: cost (.*)", line):
                pairs = (pair.split("=") for pair in found[1].split(";"))
                sizes = {name.strip(): int(size) for name, size in pairs}
                sizes[next(iter(sizes))] *= LONGER
            elif found := re.match(r"kernel (\w+)__(\w+)", line):
                yield path, found[1], found[2], sizes
                sizes = {}


def seconds(krn, path, name, sizes, runs, without):
    """The median of one kernel's runs; None where it failed."""
    command = [krn, "bench", str(path), "--kernel", name, "--runs", str(runs), "--json"]
    command += [word for item in sizes.items() for word in ("-D", "=".join(map(str, item)))]
    command += [word for name in without for word in ("--without", name)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{name}: {done.stderr.strip().splitlines()[-1:]}")
        return None
    return json.loads(done.stdout)["median_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--krn", required=True, help="the built tool")
    parser.add_argument("--only", default="", help="functions, separated by commas")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--without", action="append", default=[], help="a pass to leave out")
    parser.add_argument("--json", help="where to write all times")
    options = parser.parse_args()
    only = [name for name in options.only.split(",") if name]
    times = {}
    for path, function, spelling, sizes in kernels():
        if only and function not in only:
            continue
        name = f"{function}__{spelling}"
        found = seconds(options.krn, path, name, sizes, options.runs, options.without)
        if found is not None:
            times.setdefault(function, {})[spelling] = found
    for function, found in times.items():
        least = min(found.values())
        ratios = ", ".join(f"{spelling} {time / least:.2f}" for spelling, time in found.items())
        print(f"{function} | {least * 1e6:.2f} us | {ratios}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(times, indent=1) + "\n")


if __name__ == "__main__":
    main()
