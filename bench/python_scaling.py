"""How kernels scale over GPUs, against one GPU in the same run.

    torchrun --nproc-per-node 2 bench/python_scaling.py      # or 4, or 8

The problem stays the same, and each process has a part of it. Device time is that of the slowest process, collectives
included; the same problem on one GPU is measured before, on the first one, while the others wait.
"""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Callable

import krn
import torch
import torch.distributed as dist
from krn import distributed
from torch.distributed.device_mesh import init_device_mesh

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
"""
RUNS = 20


def seconds(call: Callable[[], object]) -> float:
    """Device seconds of a call: the median."""
    for _ in range(3):
        call()
    runs = []
    for _ in range(RUNS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        call()
        end.record()
        end.synchronize()
        runs.append(start.elapsed_time(end) / 1e3)
    return statistics.median(runs)


def main() -> None:
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    size = dist.get_world_size()
    mesh = init_device_mesh("cuda", (size,))
    kernels = krn.compile(TEXT, name="scaling.krn")
    torch.manual_seed(0)

    def part(whole: torch.Tensor, axis: int) -> torch.Tensor:
        return distributed.part(whole, axis, mesh)

    bodies = torch.randn(1 << 17, 4, device="cuda")
    own = part(bodies, 0)
    step = distributed.shard(kernels.gravity, mesh, "m", gather={"other": 0})
    a, b = torch.randn(8192, 8192, device="cuda"), torch.randn(8192, 8192, device="cuda")
    a_rows, a_terms, b_terms = part(a, 0), part(a, 1), part(b, 0)
    by_rows = distributed.shard(kernels.matmul, mesh, "m")
    by_terms = distributed.shard(kernels.matmul, mesh, "k")
    x = torch.randn(16384, 8192, device="cuda")
    x_rows = part(x, 0)
    rows = distributed.shard(kernels.softmax, mesh, "rows")
    cases: list[tuple[str, Callable[[], object], Callable[[], object]]] = [
        ("n-body step, 131072 bodies, gathered", lambda: kernels.gravity(bodies, bodies), lambda: step(own, own)),
        ("matmul 8192, by rows", lambda: kernels.matmul(a, b), lambda: by_rows(a_rows, b)),
        ("matmul 8192, by terms, combined", lambda: kernels.matmul(a, b), lambda: by_terms(a_terms, b_terms)),
        ("softmax 16384 × 8192, by rows", lambda: kernels.softmax(x), lambda: rows(x_rows)),
    ]
    table = []
    for name, alone, together in cases:
        one = seconds(alone) if rank == 0 else 0.0
        dist.barrier()
        many = torch.tensor(seconds(together), device="cuda", dtype=torch.float64)
        dist.all_reduce(many, op=dist.ReduceOp.MAX)
        table.append({"case": name, "one_s": one, "many_s": float(many), "gpus": size, "gain": one / float(many)})
        dist.barrier()
    if rank == 0:
        print(f"{size} × {torch.cuda.get_device_name()}, torch {torch.__version__}")
        for row in table:
            one, many = row["one_s"] * 1e3, row["many_s"] * 1e3
            print(f"{row['case']:<40} {one:9.3f} ms on one, {many:9.3f} ms on {size}: {row['gain']:.2f} ×")
        print(json.dumps(table))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
