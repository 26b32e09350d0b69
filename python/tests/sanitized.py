"""Calls of each kind on a GPU, for compute-sanitizer (`bench/python.sh`); without a GPU they run on the emulator."""

from __future__ import annotations

import krn
import torch

TEXT = """
kernel scale(x: f32[n], by: f32) -> y: f32[n] { y[i] = by * x[i] }
kernel total(x: f32[n]) -> s: f32 { s = sum(i: x[i]) }
kernel histogram(x: i32[n], h: inout i32[16]) { forall i in n { h[x[i]] += 1 } }
"""


def main() -> None:
    kernels = krn.compile(TEXT)
    kind = "cuda" if torch.cuda.is_available() else "cpu"
    for n in (1, 1000, 70_001):
        x = torch.ones(n, device=kind)
        assert float(kernels.total(kernels.scale(x, 2.0))) == 2 * n
        h = torch.zeros(16, dtype=torch.int32, device=kind)
        kernels.histogram(torch.arange(n, dtype=torch.int32, device=kind) % 16, h)
        assert int(h.sum()) == n
    krn.synchronize()
    print(f"no errors on {kind}")


if __name__ == "__main__":
    main()
