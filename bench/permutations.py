#!/usr/bin/env python3
"""Times permuted copies beside PyTorch and the copy floor: two to five axes of 3 to 4096 elements, 1 to 8 bytes each.

    bench/permutations.py --krn NEW [--parent OLD] [--part 1/2] [--list]

One line for each copy: medians in microseconds of a build of `krn`, of another one if it is given, of
`x.permute(…).contiguous()`, and of a copy of as many bytes without a permutation; then how much of the floor the first build
reaches, and geometric means. Copies of which each side has runs of 32 bytes are marked by `*`. Nothing but time is looked at
here: whether results are right `krn test` finds out, of the kernels that `--list` prints.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile

from timing import geometric_mean

BYTES = {"u8": 1, "bf16": 2, "f32": 4, "f64": 8}

# Extents, the axes in the order of the result, and the element.
CASES = [
    ((8192, 8192), (1, 0), "f32"),
    ((4096, 4096), (1, 0), "f32"),
    ((8192, 8192), (1, 0), "f64"),
    ((8192, 16384), (1, 0), "bf16"),
    ((16384, 16384), (1, 0), "u8"),
    ((4095, 4093), (1, 0), "f32"),
    ((8191, 8193), (1, 0), "bf16"),
    ((16385, 8191), (1, 0), "u8"),
    ((1000003, 28), (1, 0), "f32"),
    ((28, 1000003), (1, 0), "f32"),
    ((4000000, 3), (1, 0), "f32"),
    ((3, 4000000), (1, 0), "f32"),
    ((16000000, 3), (1, 0), "u8"),
    ((3, 16000000), (1, 0), "u8"),
    ((2000000, 5), (1, 0), "f64"),
    ((64, 1024, 1024), (0, 2, 1), "f32"),
    ((64, 1024, 1024), (0, 2, 1), "bf16"),
    ((1024, 256, 256), (2, 1, 0), "f32"),
    ((1024, 256, 256), (1, 2, 0), "f32"),
    ((256, 1024, 256), (2, 0, 1), "f32"),
    ((256, 1024, 256), (1, 0, 2), "f32"),
    ((512, 512, 256), (2, 1, 0), "f64"),
    ((512, 512, 256), (2, 1, 0), "u8"),
    ((333, 444, 555), (2, 1, 0), "f32"),
    ((333, 444, 555), (1, 2, 0), "bf16"),
    ((4096, 4096, 3), (2, 0, 1), "f32"),
    ((3, 4096, 4096), (1, 2, 0), "f32"),
    ((4096, 4096, 3), (2, 0, 1), "u8"),
    ((3, 4096, 4096), (1, 2, 0), "u8"),
    ((4096, 28, 512), (0, 2, 1), "f32"),
    ((4096, 512, 28), (0, 2, 1), "f32"),
    ((200000, 28, 7), (0, 2, 1), "f32"),
    ((200000, 16, 16), (0, 2, 1), "f32"),
    ((100000, 17, 33), (0, 2, 1), "bf16"),
    ((32, 256, 64, 64), (0, 2, 3, 1), "f32"),
    ((32, 64, 64, 256), (0, 3, 1, 2), "f32"),
    ((32, 256, 64, 64), (0, 2, 3, 1), "bf16"),
    ((16, 2048, 16, 64), (0, 2, 1, 3), "bf16"),
    ((16, 16, 2048, 64), (0, 1, 3, 2), "bf16"),
    ((64, 96, 80, 112), (3, 2, 1, 0), "f32"),
    ((64, 96, 80, 112), (2, 3, 0, 1), "f32"),
    ((64, 96, 80, 112), (1, 3, 2, 0), "f64"),
    ((64, 96, 80, 112), (3, 1, 2, 0), "u8"),
    ((4096, 3, 28, 28), (0, 2, 3, 1), "f32"),
    ((4096, 28, 28, 3), (0, 3, 1, 2), "u8"),
    ((24, 32, 40, 28, 36), (4, 3, 2, 1, 0), "f32"),
    ((24, 32, 40, 28, 36), (2, 4, 1, 0, 3), "f32"),
    ((24, 32, 40, 28, 36), (0, 3, 4, 2, 1), "bf16"),
    ((8, 64, 64, 8, 128), (0, 3, 1, 4, 2), "f32"),
    ((128, 8, 7, 8, 512), (0, 4, 2, 1, 3), "u8"),
]


def name(case):
    extents, order, kind = case
    return f"{'x'.join(map(str, extents))}_{''.join(map(str, order))}_{kind}"


def kernel(case):
    """The kernel of a copy, for all extents."""
    extents, order, kind = case
    axes = [f"i{at}" for at in range(len(extents))]
    sizes = [f"n{at}" for at in range(len(extents))]
    title = f"permute_{''.join(map(str, order))}_{kind}"
    permuted = [[names[at] for at in order] for names in (sizes, axes)]
    head = f"kernel {title}(x: {kind}[{', '.join(sizes)}]) -> y: {kind}[{', '.join(permuted[0])}]"
    return title, f"{head} {{\n    y[{', '.join(permuted[1])}] = x[{', '.join(axes)}]\n}}\n"


def run_of(case, axes):
    """Bytes that lie side by side on both sides while `axes`, from the last on, are walked."""
    extents, order, kind = case
    last = [len(extents) - 1, order[-1]][axes]
    return extents[last] * BYTES[kind]


def krn(program, file, case):
    title, _ = kernel(case)
    sizes = [f"n{at}={extent}" for at, extent in enumerate(case[0])]
    command = [program, "bench", file, "--kernel", title, "--runs", "11", "--warmup", "3", "--batch", "3", "--json"]
    run = subprocess.run([*command, "-D", *sizes], capture_output=True, text=True, timeout=60)
    try:
        return json.loads(run.stdout)["median_s"] * 1e6
    except (ValueError, KeyError) as error:
        print(f"{name(case)}: {error}: {run.stderr.strip()[:300]}", file=sys.stderr)
        return math.nan


def timed(torch, call):
    for _ in range(3):
        call()
    times = []
    for _ in range(11):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(3):
            call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1000 / 3)
    return sorted(times)[5]


def peers(torch, case):
    """PyTorch's permuted copy, and a plain one."""
    extents, order, kind = case
    kinds = {"u8": torch.uint8, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}
    x = torch.zeros(extents, device="cuda", dtype=kinds[kind])
    permuted = x.permute(order)
    y = torch.empty(permuted.shape, device="cuda", dtype=kinds[kind])
    plain = torch.empty_like(x)
    return timed(torch, lambda: y.copy_(permuted)), timed(torch, lambda: plain.copy_(x))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--krn")
    parser.add_argument("--parent")
    parser.add_argument("--part", default="1/1", help="which of how many parts of the copies")
    parser.add_argument("--list", action="store_true", help="print the kernels")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    cases = CASES[part - 1 :: parts]
    text = "\n".join(dict(kernel(case) for case in cases).values())
    if options.list:
        print(text, end="")
        return
    import torch

    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}; microseconds")
    print(f"{'copy':36} {'krn':>8} {'parent':>8} {'torch':>8} {'floor':>8}  of the floor, torch / krn, parent / krn")
    rows = []
    with tempfile.NamedTemporaryFile("w", suffix=".krn") as file:
        file.write(text)
        file.flush()
        for case in cases:
            torch_time, floor = peers(torch, case)
            new = krn(options.krn, file.name, case)
            old = krn(options.parent, file.name, case) if options.parent else math.nan
            has_runs = min(run_of(case, 0), run_of(case, 1)) >= 32
            rows.append((has_runs, floor / new, torch_time / new, old / new))
            mark = "*" if has_runs else " "
            print(
                f"{name(case):35}{mark} {new:8.1f} {old:8.1f} {torch_time:8.1f} {floor:8.1f}"
                f"  {floor / new:5.2f} {torch_time / new:6.2f} {old / new:6.2f}",
                flush=True,
            )
    for what, of in [("runs of 32 bytes on each side", True), ("others", False)]:
        ratios = [row for row in rows if row[0] == of]
        if ratios:
            means = " ".join(f"{geometric_mean([row[at] for row in ratios]):6.2f}" for at in (1, 2, 3))
            least = min(row[1] for row in ratios)
            print(f"{what}: {len(ratios)} copies, geometric means {means}; least of the floor {least:.2f}")


if __name__ == "__main__":
    main()
