#!/usr/bin/env python3
"""Times kernels in plain Krn, automatic schedule, beside PyTorch: workloads of many fields at sizes that nobody tuned for.

    bench/breadth/breadth.py --krn KRN [--only NAME ...] [--compile] [--check] [--json FILE]

One line a workload: medians in microseconds of `krn bench`, of PyTorch as it is and, with `--compile`, of what
`torch.compile` makes of the same; the ratio is the best peer's time by ours. PyTorch's calls are ten in a CUDA graph, over
inputs that are together larger than the cache where one set is not. TF32 is off. With `--check` nothing is timed: each
kernel runs at small sizes on the same inputs as PyTorch, and the results are compared.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy
import torch

# The folder above has workloads of its own, so it comes last.
sys.path.append(str(pathlib.Path(__file__).parent.parent))
from timing import geometric_mean  # noqa: E402
from unseen23_workloads import WORKLOADS  # noqa: E402

HERE = pathlib.Path(__file__).parent


def krn(program, workload, dims):
    sizes = [f"{name}={size}" for name, size in dims.items()]
    command = [program, "bench", str(HERE / workload.file), "--kernel", workload.name, "--runs", "15", "--json", "-D", *sizes]
    for name, value in workload.values.items():
        command += ["--set", f"{name}={value}"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=100)
        return json.loads(run.stdout)["median_s"] * 1e6
    except (subprocess.TimeoutExpired, ValueError, KeyError, TypeError) as error:
        print(f"{workload.name}: {error}", file=sys.stderr)
        return math.nan


def graph_time(call, sets):
    for inputs in sets:
        call(*inputs)
        call(*inputs)
    torch.cuda.synchronize()
    graph, calls = torch.cuda.CUDAGraph(), 0
    with torch.cuda.graph(graph):
        while calls < 10:
            for inputs in sets:
                call(*inputs)
                calls += 1
    times = []
    for _ in range(7):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / calls)
    return sorted(times)[3]


def peers(workload, dims, compiled):
    inputs = workload.inputs(dims, "cuda")
    size = sum(tensor.numel() * tensor.element_size() for tensor in inputs)
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    sets = [inputs] + [workload.inputs(dims, "cuda") for _ in range(min(2 * cache // max(size, 1), 9))]
    call = lambda *given: workload.peer(dims, *given)  # noqa: E731
    times = []
    for name, make in (("torch", lambda: call), ("torch.compile", lambda: torch.compile(call, dynamic=False))):
        if name == "torch" or compiled:
            try:
                torch._dynamo.reset()
                times.append(graph_time(make(), sets))
            except Exception as error:
                print(f"{workload.name}: {name}: {str(error).splitlines()[:1]}", file=sys.stderr)
                times.append(math.nan)
    return times if compiled else (*times, math.nan)


def agrees(program, workload, folder):
    """Whether Krn and PyTorch give the same numbers, at small sizes."""
    dims = workload.small
    inputs = workload.inputs(dims, "cuda")
    command = [program, "run", str(HERE / workload.file), "--kernel", workload.name, "--device", "cuda", "--no-check"]
    command += ["-D", *(f"{name}={size}" for name, size in dims.items())]
    for name, value in workload.values.items():
        command += ["--set", f"{name}={value}"]
    for name, tensor in zip(workload.arrays, inputs):
        path = f"{folder}/{name}.npy"
        host = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
        numpy.save(path, workload.host(name, host.cpu().numpy()))
        command += ["--in", f"{name}={path}" + (" as bf16" if tensor.dtype == torch.bfloat16 else "")]
    for name in workload.results:
        command += ["--out", f"{name}={folder}/{name}.out.npy"]
    expected = workload.peer(dims, *inputs)
    expected = expected if isinstance(expected, tuple) else (expected,)
    run = subprocess.run(command, capture_output=True, text=True, timeout=100)
    if run.returncode:
        return f"exit code {run.returncode}: {run.stderr[-300:]}"
    for name, want in zip(workload.results, expected):
        array = numpy.load(f"{folder}/{name}.out.npy")
        if array.dtype.names:  # a struct of floats
            array = array.view("f4")
        if array.dtype.kind == "V":  # bf16, which NumPy does not know
            array = (array.view(numpy.uint16).astype(numpy.uint32) << 16).view(numpy.float32)
        got = torch.from_numpy(array.astype(numpy.float64)).flatten()
        want = want.detach().double().cpu().flatten()
        tolerance = 2e-2 if any(tensor.dtype == torch.bfloat16 for tensor in inputs) else 2e-4
        if got.shape != want.shape or not torch.allclose(got, want, rtol=tolerance, atol=workload.slack):
            return f"`{name}` differs: {got[:4].tolist()} instead of {want[:4].tolist()}"
    return "agrees"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--krn", required=True)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    chosen = [one for one in WORKLOADS if not options.only or one.name in options.only]
    if options.check:
        wrong = 0
        for workload in chosen:
            with tempfile.TemporaryDirectory() as folder:
                verdict = agrees(options.krn, workload, folder)
            wrong += verdict != "agrees"
            print(f"{workload.name:28} {verdict}", flush=True)
        sys.exit(f"{wrong} of {len(chosen)} differ" if wrong else 0)
    rows = []
    print(f"{'workload':28} {'krn':>10} {'torch':>10} {'compiled':>10}   best peer / krn")
    for workload in chosen:
        torch.cuda.empty_cache()
        ours = krn(options.krn, workload, workload.dims)
        eager, compiled = peers(workload, workload.dims, options.compile)
        best = min((time for time in (eager, compiled) if not math.isnan(time)), default=math.nan)
        rows.append({"workload": workload.name, "krn": ours, "torch": eager, "compiled": compiled, "ratio": best / ours})
        print(f"{workload.name:28} {ours:10.1f} {eager:10.1f} {compiled:10.1f}   {best / ours:.2f}", flush=True)
    ratios = [row["ratio"] for row in rows if not math.isnan(row["ratio"])]
    low = sorted(row["workload"] for row in rows if not row["ratio"] >= 0.9)
    print(f"geometric mean {geometric_mean(ratios):.3f} of {len(rows)}; below 0.9: {len(low)}: {' '.join(low)}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
