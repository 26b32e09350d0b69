"""How kernels scale over GPUs, against one GPU in the same run; and that the results are those of one GPU.

    torchrun --nproc-per-node 2 bench/python_scaling.py      # or 4, or 8
    torchrun --nproc-per-node 2 bench/python_scaling.py --small      # for a trial; without a GPU on the emulator

The problem stays the same, and each process has a part of it. Device time is that of the slowest process, collectives
included; the same problem on one GPU is measured before, on the first one, while the others wait. Each process compares
its part with what its GPU computes of the whole.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import krn
import torch
import torch.distributed as dist
from krn import distributed
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

TEXT = """
struct Body { x: f32, y: f32, z: f32, mass: f32 }
struct Vec3 { x: f32, y: f32, z: f32 }
fn pull(at: Body, from: Body) -> Vec3 {
    let dx = from.x - at.x
    let dy = from.y - at.y
    let dz = from.z - at.z
    let r = rsqrt(0.01 + dx * dx + dy * dy + dz * dz)
    let w = from.mass * r * r * r
    Vec3 { x: w * dx, y: w * dy, z: w * dz }
}
kernel gravity(at: Body[m], other: Body[n]) -> a: Vec3[m] { a[i] = sum(j: pull(at[i], other[j])) }
kernel matmul(a: f32[m, k], b: f32[k, n]) -> c: f32[m, n] { c[i, j] = sum(p: a[i, p] * b[p, j]) }
kernel softmax(x: f32[rows, cols]) -> y: f32[rows, cols] {
    let m[r] = max(c: x[r, c])
    let e[r, c] = exp(x[r, c] - m[r])
    let s[r] = sum(c: e[r, c])
    y[r, c] = e[r, c] / s[r]
}
kernel attention(q: f32[t, d], k: f32[s, d], v: f32[s, e]) -> o: f32[t, e] {
    let w[i, j] = sum(c: q[i, c] * k[j, c])
    let m[i] = max(j: w[i, j])
    let p[i, j] = exp(w[i, j] - m[i])
    let z[i] = sum(j: p[i, j])
    o[i, c] = sum(j: p[i, j] * v[j, c]) / z[i]
}
"""
WARM, RUNS = 3, 10
# The sums of a few thousand terms in another order are no further from each other.
LIMIT = 1e-5


@dataclass
class Case:
    """A problem on one GPU and on all."""

    name: str
    alone: Callable[[], torch.Tensor]
    together: Callable[[], torch.Tensor]
    #: The axis along which each process has a part of the result; None where each has all of it.
    axis: int | None = 0


def cases(kernels: krn.Module, mesh: DeviceMesh, kind: str, small: bool) -> list[Callable[[], Case]]:
    """What makes each case: its arrays live as long as it does."""
    bodies_count, matrix, rows, cols, tokens, width = (
        (64, 48, 16, 40, 32, 8) if small else (1 << 18, 8192, 16384, 8192, 8192, 64)
    )

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, device=kind)

    def part(whole: torch.Tensor, axis: int) -> torch.Tensor:
        return distributed.part(whole, axis, mesh)

    def gravity() -> Case:
        bodies = random(bodies_count, 4).abs()
        own = part(bodies, 0)
        step = distributed.shard(kernels.gravity, mesh, "m", gather={"other": 0})
        name = f"n-body step, {bodies_count} bodies, the others gathered"
        return Case(name, lambda: kernels.gravity(bodies, bodies), lambda: step(own, own))

    def matmul_rows() -> Case:
        a, b = random(matrix, matrix), random(matrix, matrix)
        own = part(a, 0)
        split = distributed.shard(kernels.matmul, mesh, "m")
        return Case(f"matmul {matrix}, by rows", lambda: kernels.matmul(a, b), lambda: split(own, b))

    def matmul_terms() -> Case:
        a, b = random(matrix, matrix), random(matrix, matrix)
        a_own, b_own = part(a, 1), part(b, 0)
        split = distributed.shard(kernels.matmul, mesh, "k")
        name = f"matmul {matrix}, by terms, added"
        return Case(name, lambda: kernels.matmul(a, b), lambda: split(a_own, b_own), None)

    def softmax() -> Case:
        x = random(rows, cols)
        own = part(x, 0)
        split = distributed.shard(kernels.softmax, mesh, "rows")
        return Case(f"softmax {rows} × {cols}, by rows", lambda: kernels.softmax(x), lambda: split(own))

    def attention() -> Case:
        q, k, v = (random(tokens, width) / width**0.25 for _ in range(3))
        q_own, k_own, v_own = (part(whole, 0) for whole in (q, k, v))
        split = distributed.shard(kernels.attention, mesh, "t", gather={"k": 0, "v": 0})
        name = f"attention {tokens} × {width}, by queries, keys and values gathered"
        return Case(name, lambda: kernels.attention(q, k, v), lambda: split(q_own, k_own, v_own))

    return [gravity, matmul_rows, matmul_terms, softmax, attention]


def seconds(call: Callable[[], object], kind: str) -> float:
    """Seconds of a call, the device's where there is one: the median."""
    for _ in range(WARM):
        call()
    runs = []
    for _ in range(RUNS):
        if kind == "cuda":
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            call()
            end.record()
            end.synchronize()
            runs.append(start.elapsed_time(end) / 1e3)
        else:
            begun = time.perf_counter()
            call()
            runs.append(time.perf_counter() - begun)
    return statistics.median(runs)


def distance(case: Case, mesh: DeviceMesh) -> float:
    """How far a process' part is from what one GPU computes, as a part of the largest value."""
    whole, given = case.alone(), case.together()
    largest = float(whole.abs().max())
    wanted = whole if case.axis is None else distributed.part(whole, case.axis, mesh)
    assert given.shape == wanted.shape, (given.shape, wanted.shape)
    return float((given - wanted).abs().max()) / largest


def largest(value: float, kind: str) -> float:
    """The largest of all processes' values."""
    held = torch.tensor(value, device=kind, dtype=torch.float64)
    dist.all_reduce(held, op=dist.ReduceOp.MAX)
    return float(held)


def main() -> None:
    options = argparse.ArgumentParser(description="How kernels scale over GPUs.")
    options.add_argument("--small", action="store_true", help="small arrays, for a trial")
    options.add_argument("--json", help="a file for the figures")
    chosen = options.parse_args()
    rank = int(os.environ["LOCAL_RANK"])
    kind = "cuda" if torch.cuda.is_available() else "cpu"
    if kind == "cpu" and not chosen.small:
        raise SystemExit("no GPU here: `--small` runs on the emulator")
    if kind == "cuda":
        torch.cuda.set_device(rank)
        dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    else:
        dist.init_process_group("gloo")
    size = dist.get_world_size()
    mesh = init_device_mesh(kind, (size,))
    kernels = krn.compile(TEXT, name="scaling.krn")
    torch.manual_seed(0)
    if rank == 0:
        what = torch.cuda.get_device_name() if kind == "cuda" else "emulator"
        print(f"{size} × {what}, torch {torch.__version__}\n")
        print(f"| case | one GPU, ms | {size} GPUs, ms | gain | furthest from one GPU's, of the largest value |")
        print("|---|---|---|---|---|", flush=True)
    table, wrong = [], []
    for make in cases(kernels, mesh, kind, chosen.small):
        case = make()
        off = largest(distance(case, mesh), kind)
        one = seconds(case.alone, kind) if rank == 0 else 0.0
        dist.barrier()
        many = largest(seconds(case.together, kind), kind)
        if rank == 0:
            gain = one / many
            print(f"| {case.name} | {one * 1e3:.3f} | {many * 1e3:.3f} | {gain:.2f} | {off:.1e} |", flush=True)
            table.append({"case": case.name, "gpus": size, "one_s": one, "many_s": many, "gain": gain, "off": off})
        if not off <= LIMIT:
            wrong.append(case.name)
    if rank == 0 and chosen.json:
        with open(chosen.json, "w", encoding="utf-8") as file:
            json.dump(table, file, indent=1)
    dist.destroy_process_group()
    if wrong:
        raise SystemExit(f"the results are not one GPU's: {'; '.join(wrong)}")


if __name__ == "__main__":
    main()
