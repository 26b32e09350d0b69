"""One of several processes: kernels split among them, against one process' results. Run by `test_distributed.py`, and by
`torchrun` on GPUs (`bench/python.sh`)."""

from __future__ import annotations

import math
import os
import pathlib
import runpy
import sys
from collections.abc import Callable
from typing import Any

import krn
import torch
import torch.distributed as dist
from krn import distributed
from krn.torch import register
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

TEXT = """
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
kernel largest(x: f32[n]) -> y: f32 { y = max(i: x[i]) }
kernel smallest(x: f32[n]) -> y: f32 { y = min(i: x[i]) }
kernel smallest_narrow(x: f16[n, m]) -> y: f16[m] { y[j] = min(i: x[i, j]) }
kernel any_above(x: f32[n], limit: f32) -> y: bool { y = any(i: x[i] > limit) }
kernel all_above(x: f32[n], limit: f32) -> y: bool { y = all(i: x[i] > limit) }
kernel parity(x: i32[n, m]) -> y: i32[m] { y[j] = xor(i: x[i, j]) }
"""


class Counted:
    """Counts collectives."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        for name in ("all_reduce", "all_gather_into_tensor", "all_gather"):
            self._wrap(name)

    def _wrap(self, name: str) -> None:
        call = getattr(dist, name)

        def counted(*args: object, **kwargs: object) -> object:
            self.calls.append(name)
            return call(*args, **kwargs)

        setattr(dist, name, counted)

    def take(self) -> list[str]:
        calls, self.calls = self.calls, []
        return calls


def one_of(rank: int, size: int, port: int, said: pathlib.Path, script: tuple[str, ...] = ()) -> None:
    """One of some processes without GPUs on this machine: of this program, or of a script with its arguments. What it says
    goes into a file."""
    file = os.open(said, os.O_WRONLY | os.O_CREAT)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.environ |= {
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": str(rank),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "KRN_DEVICE": "cpu",
    }
    torch.set_num_threads(1)
    if script:
        sys.argv = list(script)
        runpy.run_path(script[0], run_name="__main__")
    else:
        main()
    sys.stdout.flush()


def dtensors(kernels: krn.Module, mesh: DeviceMesh, random: Callable[..., torch.Tensor]) -> None:
    """The same by DTensor, which finds the way: its results, where they lie, and what was communicated."""
    from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor
    from torch.distributed.tensor.debug import CommDebugMode

    operators = {}
    for name in ("matmul", "softmax", "attention", "gravity", "largest"):
        operators[name] = register(kernels[name], f"krn_sharded::{name}")
        distributed.register_sharding(operators[name])
    is_split = mesh.size() > 1

    def same(name: str, arrays: list[torch.Tensor], places: list[Any], lies: Any, collectives: int) -> None:
        given = [distribute_tensor(array, mesh, [place]) for array, place in zip(arrays, places, strict=True)]
        with CommDebugMode() as counted:
            made = operators[name](*given)
        if is_split:
            assert made.placements == (lies,), (name, places, made.placements)
            assert counted.get_total_counts() == collectives, (name, places, counted.get_comm_counts())
        assert torch.allclose(made.full_tensor(), kernels[name](*arrays), rtol=1e-4, atol=1e-4), (name, places)

    a, b = random(16, 24), random(24, 8)
    same("matmul", [a, b], [Shard(0), Replicate()], Shard(0), 0)
    same("matmul", [a, b], [Replicate(), Shard(1)], Shard(1), 0)
    same("matmul", [a, b], [Shard(1), Shard(0)], Partial("sum"), 0)
    same("matmul", [a, b], [Replicate(), Replicate()], Replicate(), 0)
    x = random(16, 40)
    same("softmax", [x], [Shard(0)], Shard(0), 0)
    q, k, v = random(16, 8), random(24, 8), random(24, 4)
    same("attention", [q, k, v], [Shard(0), Replicate(), Replicate()], Shard(0), 0)
    same("attention", [q, k, v], [Shard(0), Shard(0), Shard(0)], Shard(0), 2)
    bodies = random(32, 4)
    same("gravity", [bodies, bodies], [Shard(0), Replicate()], Shard(0), 0)
    same("gravity", [bodies, bodies], [Shard(0), Shard(0)], Shard(0), 1)
    same("gravity", [bodies, bodies], [Replicate(), Shard(0)], Partial("sum"), 0)
    # DTensor's own `max` of partial results would lose NaN: it gathers what is reduced.
    same("largest", [random(64)], [Shard(0)], Replicate(), 1)


def main() -> None:
    on_gpu = torch.cuda.is_available() and os.environ.get("KRN_DEVICE") != "cpu"
    kind = "cuda" if on_gpu else "cpu"
    dist.init_process_group("nccl" if on_gpu else "gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    if on_gpu:
        torch.cuda.set_device(rank)
    torch.manual_seed(0)
    mesh = init_device_mesh(kind, (size,))
    kernels = krn.compile(TEXT, name="sharded.krn")
    counted = Counted()

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(shape).to(kind)

    def part(whole: torch.Tensor, axis: int) -> torch.Tensor:
        return distributed.part(whole, axis, mesh)

    def same(given: torch.Tensor, wanted: torch.Tensor, collectives: list[str]) -> None:
        took = counted.take()
        assert took == (collectives if size > 1 or collectives == ["all_reduce"] else []), took
        assert torch.allclose(given, wanted, rtol=1e-4, atol=1e-4), (given - wanted).abs().max()

    a, b = random(16, 24), random(24, 8)
    whole = kernels.matmul(a, b)
    by_rows = distributed.shard(kernels.matmul, mesh, "m")
    same(by_rows(part(a, 0), b), part(whole, 0), [])
    by_columns = distributed.shard(kernels.matmul, mesh, "n")
    same(by_columns(a, part(b, 1)), part(whole, 1), [])
    by_terms = distributed.shard(kernels.matmul, mesh, "k")
    same(by_terms(part(a, 1), part(b, 0)), whole, ["all_reduce"])

    x = random(16, 40)
    same(distributed.shard(kernels.softmax, mesh, "rows")(part(x, 0)), part(kernels.softmax(x), 0), [])

    q, k, v = random(16, 8), random(24, 8), random(24, 4)
    whole = kernels.attention(q, k, v)
    by_queries = distributed.shard(kernels.attention, mesh, "t", gather={"k": 0, "v": 0})
    gathers = ["all_gather_into_tensor"] * 2
    same(by_queries(part(q, 0), k=part(k, 0), v=part(v, 0)), part(whole, 0), gathers)

    bodies = random(32, 4)
    step = distributed.shard(kernels.gravity, mesh, "m", gather={"other": 0})
    own = part(bodies, 0)
    same(step(own, own), part(kernels.gravity(bodies, bodies), 0), ["all_gather_into_tensor"])
    terms = distributed.shard(kernels.gravity, mesh, "n")
    same(terms(bodies, own), kernels.gravity(bodies, bodies), ["all_reduce"])

    y = random(64)
    same(distributed.shard(kernels.largest, mesh, "n")(part(y, 0)), y.max(), ["all_reduce"])
    for name in ("largest", "smallest"):
        extreme = distributed.shard(kernels[name], mesh, "n")
        for place in (0, 9, 63):
            for value in (float("nan"), -float("nan"), float("inf"), -float("inf")):
                y_odd = y.clone()
                y_odd[place] = value
                given, wanted = float(extreme(part(y_odd, 0))), float(kernels[name](y_odd))
                assert given == wanted or (math.isnan(given) and math.isnan(wanted)), (name, place, value, given)
            zeros = torch.full((64,), 0.0 if name == "smallest" else -0.0, device=kind)
            zeros[place] *= -1
            assert math.copysign(1, float(extreme(part(zeros, 0)))) == math.copysign(1, float(zeros[place]))
    counted.take()
    rows = random(16, 4).half()
    rows[11, 2] = float("nan")
    given = distributed.shard(kernels.smallest_narrow, mesh, "n")(part(rows, 0))
    counted.take()
    assert given.dtype == torch.float16 and torch.equal(given.isnan().cpu(), torch.tensor([False, False, True, False]))
    assert torch.equal(given.nan_to_num(), rows.amin(0).nan_to_num())
    above = distributed.shard(kernels.any_above, mesh, "n")(part(y, 0), float(y.max()) - 1e-3)
    assert above.dtype == torch.bool and bool(above)
    below = distributed.shard(kernels.all_above, mesh, "n")
    assert bool(below(part(y, 0), float(y.min()) - 1e-3)) and not bool(below(part(y, 0), float(y.max()) - 1e-3))
    counted.take()
    bits = torch.arange(64, dtype=torch.int32).mul(2654435).reshape(16, 4).to(kind)
    same(distributed.shard(kernels.parity, mesh, "n")(part(bits, 0)), kernels.parity(bits), ["all_gather"])

    dtensors(kernels, mesh, random)
    if rank == 0:
        print(f"{size} processes on {kind}: all results are one process' own", flush=True)
    dist.barrier()
    dist.destroy_process_group()
    sys.stdout.flush()


if __name__ == "__main__":
    main()
