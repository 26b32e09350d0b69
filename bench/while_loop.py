#!/usr/bin/env python3
"""Times a `while` at kernel level beside a loop of the host in CUDA: conjugate gradients on a grid of n * n points, the same
number of turns. The host in CUDA reads one word back a turn; Krn's condition stays on the device where the driver has
conditional nodes (CUDA 12.3).

    bench/while_loop.py --krn target/release/krn [--sizes 64 256 1024 2048] [--turns 200] [--rounds 3] [--json FILE]

One line a size: microseconds of a turn of Krn, of CUDA with as many launches a turn as Krn has at n = 1024 (13), and of CUDA as
an author would write it (8 launches); medians of the rounds, which take turns. Behind them the two of CUDA divided by Krn's: 1
where both are as fast. Krn is timed by `krn bench`, CUDA by the clock around a solution. Needs a GPU and nvcc (of the CUDA
toolkit; --nvcc says where). First both are tried on a small grid. Ends with 1 where a size of Krn takes more than 1.05 times as
long as CUDA with as many launches.
"""
import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
FILE = str(HERE / "while_loop.krn")
MOST = 1.05


def krn_seconds(krn, n, turns):
    """Seconds of a solution by `krn bench`, whose tolerance nothing reaches: `limit` ends it."""
    words = [krn, "bench", FILE, "--kernel", "conjugate_gradient", "--device", "cuda", "--json", "-D", f"n={n}"]
    words += ["--set", "tolerance=0", "--set", f"limit={turns}", "--in", "b=random(0, 1)"]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{' '.join(words)}: {done.stderr.strip()}", file=sys.stderr)
        return None
    return json.loads(done.stdout)["median_s"]


def cuda_seconds(program, n, turns, *runs):
    """Seconds of a solution with as many launches as Krn, and with few."""
    done = subprocess.run([program, str(n), str(turns), *runs], capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{program}: {done.stderr.strip()}", file=sys.stderr)
        return None
    return [float(number) for number in done.stdout.split()[:2]]


def are_right(krn, program):
    """Whether both solve a small problem: Krn by its reference, CUDA by the residual that is left."""
    test = [krn, "test", FILE, "--device", "cuda"]
    return subprocess.run(test, stdout=sys.stderr).returncode == 0 and cuda_seconds(program, 64, 400, "1") is not None


def compared(ours, theirs, rounds):
    """Medians of Krn's and of both of CUDA's seconds, which take turns; None where one fails."""
    times = ([], [], [])
    for turn in range(rounds):
        for measure in (ours, theirs) if turn % 2 == 0 else (theirs, ours):
            found = measure()
            if found is None:
                return None
            for into, time in zip(times[:1] if measure is ours else times[1:], [found] if measure is ours else found):
                into.append(time)
    return [statistics.median(of) for of in times]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--krn", required=True, help="the built tool")
    parser.add_argument("--sizes", type=int, nargs="*", default=[64, 256, 1024, 2048])
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nvcc", default=shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc")
    parser.add_argument("--json", help="a file for the times")
    options = parser.parse_args()
    failed, report = [], {}
    with tempfile.TemporaryDirectory() as folder:
        program = str(pathlib.Path(folder) / "while_peer")
        subprocess.run([options.nvcc, "-O3", "-arch=native", str(HERE / "while_peer.cu"), "-o", program], check=True)
        if not are_right(options.krn, program):
            print("a small problem is not solved", file=sys.stderr)
            return 1
        print("| n | us a turn, Krn | CUDA, 13 launches | CUDA, 8 launches | 13 / Krn | 8 / Krn |")
        print("|---|---|---|---|---|---|")
        for n in options.sizes:
            ours = lambda: krn_seconds(options.krn, n, options.turns)
            theirs = lambda: cuda_seconds(program, n, options.turns)
            times = compared(ours, theirs, options.rounds)
            if times is None:
                failed.append(f"n = {n}: no time")
                continue
            krn, same, few = (time / options.turns * 1e6 for time in times)
            report[n] = {"krn_us": krn, "cuda_us": same, "cuda_few_us": few}
            print(f"| {n} | {krn:.2f} | {same:.2f} | {few:.2f} | {same / krn:.3f} | {few / krn:.3f} |", flush=True)
            if krn > MOST * same:
                failed.append(f"n = {n}: {krn / same:.3f} times as long as CUDA with as many launches")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(report, indent=1))
    for line in failed:
        print(line, file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
