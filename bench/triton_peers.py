"""Triton kernels that peers.py times beside Krn's: one program a row for the row-wise ones, a tile for the transpose.

Each function launches on tensors; the keyword arguments are what a tuner would choose from, and `CONFIGS` what it is
offered.
"""

import triton
import triton.language as tl

CONFIGS = {
    "transpose": [
        {"tile": tile, "warps": warps} for tile in ((32, 32), (64, 64), (32, 128), (128, 32), (128, 64)) for warps in (4, 8)
    ],
    "softmax": [{"warps": warps} for warps in (4, 8, 16, 32)],
    "layer_norm": [{"warps": warps} for warps in (4, 8, 16, 32)],
    "rms_norm": [{"warps": warps} for warps in (4, 8, 16, 32)],
}


@triton.jit
def transpose_kernel(a, b, m, n, M: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(1) * M + tl.arange(0, M)
    j = tl.program_id(0) * N + tl.arange(0, N)
    inside = (i[:, None] < m) & (j[None, :] < n)
    tile = tl.load(a + i[:, None].to(tl.int64) * n + j[None, :], mask=inside)
    tl.store(b + j[:, None].to(tl.int64) * m + i[None, :], tl.trans(tile), mask=tl.trans(inside))


def transpose(a, b, tile, warps):
    m, n = a.shape
    grid = (triton.cdiv(n, tile[1]), triton.cdiv(m, tile[0]))
    transpose_kernel[grid](a, b, m, n, M=tile[0], N=tile[1], num_warps=warps)


@triton.jit
def softmax_kernel(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    c = tl.arange(0, BLOCK)
    values = tl.load(x + row + c, mask=c < cols, other=-float("inf")).to(tl.float32)
    e = tl.exp(values - tl.max(values, 0))
    tl.store(y + row + c, (e / tl.sum(e, 0)).to(y.dtype.element_ty), mask=c < cols)


def softmax(x, y, warps):
    rows, cols = x.shape
    softmax_kernel[(rows,)](x, y, cols, BLOCK=triton.next_power_of_2(cols), num_warps=warps)


@triton.jit
def layer_norm_kernel(x, gain, shift, y, cols, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    c = tl.arange(0, BLOCK)
    inside = c < cols
    values = tl.load(x + row + c, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(values, 0) / cols
    centred = tl.where(inside, values - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, 0) / cols + epsilon)
    g = tl.load(gain + c, mask=inside, other=0.0).to(tl.float32)
    s = tl.load(shift + c, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row + c, (centred * scale * g + s).to(y.dtype.element_ty), mask=inside)


def layer_norm(x, gain, shift, y, epsilon, warps):
    rows, cols = x.shape
    block = triton.next_power_of_2(cols)
    layer_norm_kernel[(rows,)](x, gain, shift, y, cols, epsilon, BLOCK=block, num_warps=warps)


@triton.jit
def rms_norm_kernel(x, gain, y, cols, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    c = tl.arange(0, BLOCK)
    inside = c < cols
    values = tl.load(x + row + c, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(values * values, 0) / cols + epsilon)
    g = tl.load(gain + c, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row + c, (values * scale * g).to(y.dtype.element_ty), mask=inside)


def rms_norm(x, gain, y, epsilon, warps):
    rows, cols = x.shape
    rms_norm_kernel[(rows,)](x, gain, y, cols, epsilon, BLOCK=triton.next_power_of_2(cols), num_warps=warps)


@triton.jit
def matmul_kernel(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i = tl.program_id(0) * M + tl.arange(0, M)
    j = tl.program_id(1) * N + tl.arange(0, N)
    total = tl.zeros((M, N), dtype=tl.float32)
    for first in range(0, k, K):
        p = first + tl.arange(0, K)
        left = tl.load(a + i[:, None] * k + p[None, :], mask=(i[:, None] < m) & (p[None, :] < k), other=0.0)
        right = tl.load(b + p[:, None] * n + j[None, :], mask=(p[:, None] < k) & (j[None, :] < n), other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    tl.store(c + i[:, None] * n + j[None, :], total, mask=(i[:, None] < m) & (j[None, :] < n))


def matmul(a, b, c):
    """A plain product of f32, for the time of its first launch."""
    m, k, n = *a.shape, b.shape[1]
    matmul_kernel[(triton.cdiv(m, 128), triton.cdiv(n, 64))](a, b, c, m, n, k, 128, 64, 32, num_warps=8, num_stages=3)
