"""What a call from Python costs the host, beside Triton's cached launch and torch's own operator.

    python3 bench/python_overhead.py

Needs a GPU, torch, Triton and the package `krn`. Each row is the median of 200 batches of 100 calls, taken in turns, with
kernels that take less device time than host time; nothing waits within a batch.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable

import krn
import torch
import triton
import triton.language as tl

TEXT = """
kernel add(x: f32[n], y: f32[n]) -> z: f32[n] { z[i] = x[i] + y[i] }
kernel matmul(a: f32[m, k], b: f32[k, n]) -> c: f32[m, n] { c[i, j] = sum(p: a[i, p] * b[p, j]) }
kernel total(x: f32[n]) -> s: f32 { s = sum(i: x[i]) }
"""
BATCHES, CALLS = 200, 100


@triton.jit
def add(x, y, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(z + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


def measure(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Host microseconds a call of each, taken in turns."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        for _ in range(1000):
            call()
    torch.cuda.synchronize()
    for _ in range(BATCHES):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(CALLS):
                call()
            times[name].append((time.perf_counter() - start) / CALLS * 1e6)
            torch.cuda.synchronize()
    return {name: statistics.median(runs) for name, runs in times.items()}


def main() -> None:
    kernels = krn.compile(TEXT)
    n = 1024
    x, y, z = (torch.randn(n, device="cuda") for _ in range(3))
    a, b, c = (torch.randn(32, 32, device="cuda") for _ in range(3))
    grid = (triton.cdiv(n, 1024),)
    krn_add, krn_matmul, krn_total = kernels.add, kernels.matmul, kernels.total
    compiled = add[grid](x, y, z, n, BLOCK=1024)
    calls: dict[str, Callable[[], object]] = {
        "triton add, z given": lambda: add[grid](x, y, z, n, BLOCK=1024),
        "krn add, z given": lambda: krn_add(x, y, z),
        "krn add, z given by name": lambda: krn_add(x=x, y=y, z=z),
        "krn add, z made": lambda: krn_add(x, y),
        "triton add, z by torch.empty_like": lambda: add[grid](x, y, torch.empty_like(x), n, BLOCK=1024),
        "torch add, z given": lambda: torch.add(x, y, out=z),
        "torch add, z made": lambda: x + y,
        "krn matmul, c given": lambda: krn_matmul(a, b, c),
        "torch matmul, c given": lambda: torch.mm(a, b, out=c),
        "krn total (two launches, scratch memory)": lambda: krn_total(x),
    }
    if hasattr(compiled, "run"):
        # Without Triton's own look at the arguments: its launcher alone.
        calls["triton add, launcher alone"] = lambda: compiled[grid](x, y, z, n, 1024)
    found = {}
    for name, call in list(calls.items()):
        try:
            call()
        except Exception as error:  # What a version of Triton does not have is left out, and said.
            print(f"{name}: left out: {error}", file=sys.stderr)
            del calls[name]
    found = measure(calls)
    base = found["triton add, z given"]
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, triton {triton.__version__}, krn {krn.__version__}")
    print(f"{'call':<44} {'µs':>8} {'of Triton':>10}")
    for name, microseconds in found.items():
        print(f"{name:<44} {microseconds:8.2f} {microseconds / base:10.2f}")
    print(json.dumps({"us": found, "ratio": found["krn add, z given"] / base}))


if __name__ == "__main__":
    main()
