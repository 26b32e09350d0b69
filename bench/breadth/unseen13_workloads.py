"""Workloads of `breadth.py`, a thirteenth set: images, simulation, graphs, statistics, signals, layers, packing."""

import torch
import torch.nn.functional as F
from unseen3_workloads import F16, INT, between, integers, shaped
from unseen4_workloads import narrow
from unseen5_workloads import BYTES
from unseen8_workloads import VECTORS, doubled
from unseen12_workloads import WORKLOADS
from unseen_workloads import HALF, Record, add, of


def thirteenth(name, dims, small, arrays, peer, **more):
    add("unseen_13.krn", name, dims, small, arrays, peer, **more)


SMALL_HALF = narrow(between(-0.05, 0.05), HALF)

# Images.


def lbp_cells(d, x):
    h, w = 16 * d["h"], 16 * d["w"]
    p = F.pad(x, (1, 1, 1, 1))
    ways = ((0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (2, 0), (1, 0))
    code = torch.zeros(x.shape, dtype=INT, device=x.device)
    for bit, (i, j) in enumerate(ways):
        code = code + ((p[:, i : i + h, j : j + w] >= x).int() << bit)
    n, i, j = (torch.arange(size, device=x.device) for size in x.shape)
    cell = (n[:, None, None] * d["h"] + i[:, None] // 16) * d["w"] + j // 16
    place = (cell * 256 + code).flatten()
    hist = torch.zeros(d["n"] * d["h"] * d["w"] * 256, dtype=INT, device=x.device)
    return hist.scatter_add_(0, place, torch.ones(1, dtype=INT, device=x.device).expand_as(place))


def laplacian_residual(d, x, small):
    def doubled_rows(v):
        even = (v[:, :-2] + 6 * v[:, 1:-1] + v[:, 2:]) / 8
        odd = (v[:, 1:-1] + v[:, 2:]) / 2
        return torch.stack([even, odd], 2).flatten(1, 2)

    p = F.pad(small[:, None], (1, 1, 1, 1), mode="replicate")[:, 0]
    return x - doubled_rows(doubled_rows(p).mT).mT


def perspective_warp(d, x, map):
    u = torch.arange(d["w"], device=x.device, dtype=torch.float32)
    v = torch.arange(d["h"], device=x.device, dtype=torch.float32)[:, None]
    a, b, c = map[..., None, None].unbind(2)
    px, py, z = (a * u + b * v + c).unbind(1)
    grid = torch.stack([2 * (px / z) / (d["w"] - 1) - 1, 2 * (py / z) / (d["h"] - 1) - 1], -1)
    y = F.grid_sample(x.permute(0, 3, 1, 2).float(), grid, padding_mode="zeros", align_corners=True)
    return (y + 0.5).to(torch.uint8).permute(0, 2, 3, 1).contiguous()


def hue_histogram(d, x):
    r, g, b = x.int().unbind(-1)
    high = torch.maximum(torch.maximum(r, g), b)
    span = high - torch.minimum(torch.minimum(r, g), b)
    low = torch.where(high == g, 12 * span + 6 * (b - r), 24 * span + 6 * (r - g))
    sixth = torch.where(high == r, 6 * (g - b), low)
    bin = (sixth + 36 * span) // span.clamp(min=1) % 36
    return torch.zeros(d["n"], 36, dtype=INT, device=x.device).scatter_add_(1, bin.long(), span)


def horn_schunck_step(d, ex, ey, et, u, v):
    def around(f):
        p = F.pad(f[None, None], (1, 1, 1, 1), mode="replicate")[0, 0]
        sides = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]
        return sides / 6 + (p[:-2, :-2] + p[:-2, 2:] + p[2:, :-2] + p[2:, 2:]) / 12

    mu, mv = around(u), around(v)
    t = (ex * mu + ey * mv + et) / (0.25 + ex * ex + ey * ey)
    return mu - ex * t, mv - ey * t


def gabor_strongest(d, x, bank):
    best, which = F.conv2d(x[:, None], bank[:, None], padding=5).abs().max(1)
    return best, which.to(torch.uint8)


def seam_costs(d, energy):
    gain = -energy
    rows = [gain[:, 0]]
    for i in range(1, d["h"]):
        rows.append(gain[:, i] + F.max_pool1d(rows[-1], 3, 1, 1))
    return -torch.stack(rows, 1)


def homographies(shape, dims, device):
    away = torch.rand(shape, device=device) - 0.5
    scale = torch.tensor([[0.2, 0.2, 20.0], [0.2, 0.2, 20.0], [1e-4, 1e-4, 0.1]], device=device)
    return (torch.eye(3, device=device) + away * scale).contiguous()


thirteenth(
    "lbp_cells",
    {"n": 32, "h": 67, "w": 120},
    {"n": 2, "h": 3, "w": 5},
    {"x": doubled("n 16h 16w", BYTES)},
    lbp_cells,
    results=("hist",),
)
thirteenth(
    "laplacian_residual",
    {"n": 48, "h": 540, "w": 960},
    {"n": 2, "h": 7, "w": 11},
    {"x": doubled("n 2h 2w"), "small": of("n h w")},
    laplacian_residual,
)
thirteenth(
    "perspective_warp",
    {"n": 32, "h": 1080, "w": 1920},
    {"n": 2, "h": 37, "w": 53},
    {"x": of("n h w 3", BYTES), "map": of("n 3 3", homographies)},
    perspective_warp,
    slack=1.01,
)
thirteenth(
    "hue_histogram",
    {"n": 64, "p": 2073600},
    {"n": 3, "p": 1009},
    {"x": of("n p", "pixel")},
    hue_histogram,
    results=("hist",),
)
thirteenth(
    "horn_schunck_step",
    {"h": 8001, "w": 9000},
    {"h": 37, "w": 53},
    {"ex": of("h w"), "ey": of("h w"), "et": of("h w"), "u": of("h w"), "v": of("h w")},
    horn_schunck_step,
    results=("un", "vn"),
    values={"alpha": 0.5},
)
thirteenth(
    "gabor_strongest",
    {"n": 16, "h": 720, "w": 1280},
    {"n": 2, "h": 37, "w": 53},
    {"x": of("n h w"), "bank": of("12 11 11")},
    gabor_strongest,
    results=("best",),
    slack=1e-3,
)
thirteenth(
    "seam_costs",
    {"n": 64, "h": 200, "w": 4001},
    {"n": 3, "h": 17, "w": 53},
    {"energy": of("n h w", between(0.0, 1.0))},
    seam_costs,
    results=("cost",),
    slack=1e-3,
)

# Simulation.


def robertson_newton(d, mix):
    a, b, c = mix.unbind(1)
    dt = 0.01
    for _ in range(10):
        a0, b0 = a, b
        total = a + b + c
        for _ in range(3):
            slow, quick, pair = 0.04 * a, 1e4 * b * c, 3e3 * b * b
            fa, fb = a - a0 - dt * (quick - slow), b - b0 - dt * (slow - quick - pair)
            ja, jb = 1 + dt * (0.04 + 1e4 * b), -dt * 1e4 * (c - b)
            ka, kb = -dt * (0.04 + 1e4 * b), 1 + dt * (1e4 * (c - b) + 6e3 * b)
            det = ja * kb - jb * ka
            a, b = a - (fa * kb - fb * jb) / det, b - (fb * ja - fa * ka) / det
            c = total - a - b
    return mix.copy_(torch.stack([a, b, c], 1))


def arakawa_jacobian(d, psi, zeta):
    def at(f, i, j):
        return f.roll((-i, -j), (0, 1))

    p = {(i, j): at(psi, i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)}
    z = {(i, j): at(zeta, i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)}
    plus = (p[0, 1] - p[0, -1]) * (z[1, 0] - z[-1, 0]) - (p[1, 0] - p[-1, 0]) * (z[0, 1] - z[0, -1])
    across = p[0, 1] * (z[1, 1] - z[-1, 1]) - p[0, -1] * (z[1, -1] - z[-1, -1])
    across = across - p[1, 0] * (z[1, 1] - z[1, -1]) + p[-1, 0] * (z[-1, 1] - z[-1, -1])
    other = z[1, 0] * (p[1, 1] - p[1, -1]) - z[-1, 0] * (p[-1, 1] - p[-1, -1])
    other = other - z[0, 1] * (p[1, 1] - p[-1, 1]) + z[0, -1] * (p[1, -1] - p[-1, -1])
    return 0.5 * (plus + across + other) / 12


def embedded_atoms(d, at, list):
    list = list.long()
    away = at[list] - at[:, None]
    r = (away.square().sum(-1) + 1e-6).sqrt()
    density = torch.exp(-2 * r).sum(1)
    pull = density.rsqrt()
    slope = torch.exp(-2 * r) * (pull[:, None] + pull[list]) - 3 * torch.exp(-3 * r)
    force = ((slope / r)[..., None] * away).sum(1)
    return force, -density.sqrt() + 0.5 * torch.exp(-3 * r).sum(1)


def dendrite_step(d, phase, heat):
    def sides(f):
        p = F.pad(f, (1, 1, 1, 1))
        return p[:-2, 1:-1], p[2:, 1:-1], p[1:-1, :-2], p[1:-1, 2:]

    dt = 1e-4
    up, down, left, right = sides(phase)
    gx, gy = 0.5 * (right - left), 0.5 * (down - up)
    angle = 6 * torch.atan2(gy, gx)
    eps = 0.01 * (1 + 0.02 * angle.cos())
    turn = -0.01 * 0.12 * angle.sin()
    fx, fy = sides(eps * turn * gx), sides(eps * turn * gy)
    bend = 0.5 * (fx[1] - fx[0] - fy[3] + fy[2])
    drive = 0.9 / 3.14159265 * torch.atan(10 * (1 - heat))
    around = up + down + left + right - 4 * phase
    change = dt * 3000 * (bend + eps * eps * around + phase * (1 - phase) * (phase - 0.5 + drive))
    warmer = heat + 1.8 * change + dt * (sum(sides(heat)) - 4 * heat)
    phase.add_(change)
    heat.copy_(warmer)
    return phase, heat


def hermite_jerk(d, at, speed, mass):
    pulls, jerks = [], []
    square, both = at.square().sum(1), (at * speed).sum(1)
    for low in range(0, d["n"], 4096):
        a, v = at[low : low + 4096], speed[low : low + 4096]
        r = torch.rsqrt((square[low : low + 4096, None] + square - 2 * (a @ at.T)).clamp(min=0) + 1e-2)
        w = mass * r * r * r
        pulls.append(w @ at - w.sum(1, keepdim=True) * a)
        k = w * 3 * r * r * (both[low : low + 4096, None] + both - v @ at.T - a @ speed.T)
        jerks.append(w @ speed - w.sum(1, keepdim=True) * v - k @ at + k.sum(1, keepdim=True) * a)
    return torch.cat(pulls), torch.cat(jerks)


thirteenth(
    "robertson_newton",
    {"n": 4000001},
    {"n": 203},
    {"mix": of("n", Record("a", "b", "c", low=0.1, high=1.0))},
    robertson_newton,
    results=("mix",),
    values={"dt": 0.01},
    slack=1e-2,
)
thirteenth(
    "arakawa_jacobian",
    {"h": 7000, "w": 7003},
    {"h": 37, "w": 53},
    {"psi": of("h w"), "zeta": of("h w")},
    arakawa_jacobian,
    results=("rate",),
    values={"scale": 0.5},
)
thirteenth(
    "embedded_atoms",
    {"n": 1000003, "k": 24},
    {"n": 203, "k": 7},
    {"at": of("n", Record("x", "y", "z", low=0.0, high=3.0)), "list": of("n k", (INT, "n"))},
    embedded_atoms,
    results=("force", "energy"),
    slack=1e-3,
)
thirteenth(
    "dendrite_step",
    {"h": 5001, "w": 6000},
    {"h": 37, "w": 53},
    {"phase": of("h w", between(0.0, 1.0)), "heat": of("h w", between(0.0, 1.0))},
    dendrite_step,
    results=("phase", "heat"),
    values={"dt": 1e-4},
)
thirteenth(
    "hermite_jerk",
    {"n": 40001},
    {"n": 203},
    {"at": of("n", VECTORS), "speed": of("n", VECTORS), "mass": of("n", "positive")},
    hermite_jerk,
    results=("pull", "jerk"),
    slack=5e-2,
)

# Graphs and sparse matrices.


def entries_times_dense(d, row, col, value, x):
    y = torch.zeros(500000, 64, device=x.device)
    return y.index_add_(0, row, value[:, None] * x.index_select(0, col))


def triangles_of_bits(d, bits):
    a = ((bits[..., None] >> torch.arange(32, dtype=INT, device=bits.device)) & 1).to(torch.int8).flatten(1)
    return (torch._int_mm(a, a.T) * a.tril(-1)).sum()


def gatv2_layer(d, start, source, left, right, a):
    n, m = d["n"], d["m"]
    to = torch.repeat_interleave(torch.arange(n, device=start.device), start.diff(), output_size=m)
    sent = left[source.long()]
    score = (a * F.leaky_relu(sent + right[to], 0.2)).sum(-1)
    peak = torch.full((n, 4), -torch.inf, device=left.device)
    peak.scatter_reduce_(0, to[:, None].expand(-1, 4), score, "amax")
    share = torch.exp(score - peak[to])
    total = torch.zeros(n, 4, device=left.device).index_add_(0, to, share)
    y = torch.zeros_like(left).index_add_(0, to, share[..., None] * sent)
    return y / total.clamp(min=1e-20)[..., None]


def chebyshev_filter(d, list, weight, x, theta):
    list = list.long()

    def around(f):
        return (weight[..., None] * f[list]).sum(1)

    before, now = x, around(x)
    y = theta[0] * before + theta[1] * now
    for k in range(2, 6):
        before, now = now, 2 * around(now) - before
        y = y + theta[k] * now
    return y


def whole_ramp(shape, dims, device):
    """Row starts that take all `m` elements."""
    return torch.linspace(0, dims["m"], shape[0], device=device, dtype=torch.float64).round().to(INT)


thirteenth(
    "entries_times_dense",
    {"e": 8000000, "n": 500000},
    {"e": 403, "n": 53},
    {"row": of("e", integers(0, 500000, INT)), "col": of("e", (INT, "n")), "value": of("e"), "x": of("n 64")},
    entries_times_dense,
    values={"m": 500000},
    slack=1e-3,
)
thirteenth(
    "triangles_of_bits",
    {"w": 313},
    {"w": 3},
    {"bits": shaped(lambda d: (32 * d["w"], d["w"]), integers(-(2**31), 2**31 - 1, INT))},
    triangles_of_bits,
    results=("triangles",),
)
thirteenth(
    "gatv2_layer",
    {"n": 300000, "m": 4000000},
    {"n": 53, "m": 403},
    {
        "start": of("n+1", whole_ramp),
        "from": of("m", (INT, "n")),
        "left": of("n 4 32"),
        "right": of("n 4 32"),
        "a": of("4 32", between(-0.5, 0.5)),
    },
    gatv2_layer,
    slack=1e-3,
)
thirteenth(
    "chebyshev_filter",
    {"n": 1000001},
    {"n": 203},
    {"list": of("n 12", (INT, "n")), "weight": of("n 12", between(-0.1, 0.1)), "x": of("n 32"), "theta": of("6")},
    chebyshev_filter,
    slack=1e-3,
)

# Statistics.


def silhouettes(d, x, label, size):
    own = label[:, None] == torch.arange(d["k"], device=x.device)
    total = torch.cdist(x, x) @ own.float()
    a = (total * own).sum(1) / (size - 1).clamp(min=1)[label.long()]
    b = (total / size.clamp(min=1)).masked_fill(own, torch.inf).amin(1)
    return (b - a) / torch.maximum(a, b).clamp(min=1e-12)


def dbscan_cores(d, x):
    norm = x.square().sum(1)
    inside = norm[:, None] + norm - 2 * (x @ x.T) <= 4.5 * 4.5
    near = inside.sum(1, dtype=INT)
    place = torch.where(near >= 10, torch.arange(d["n"], dtype=INT, device=x.device), 2147483647)
    return near, torch.where(inside, place, 2147483647).amin(1)


def outlier_factors(d, list, away):
    list = list.long()
    reach = 20 / torch.maximum(away, away[:, 19][list]).sum(1)
    return reach[list].sum(1) / (20 * reach)


def hmm_forward(d, obs, first, move, emit):
    seen = emit[obs.long()]
    alpha = first * seen[:, 0]
    totals = [alpha.sum(1, keepdim=True)]
    for u in range(1, d["t"]):
        alpha = ((alpha / totals[-1]) @ move) * seen[:, u]
        totals.append(alpha.sum(1, keepdim=True))
    return torch.cat(totals, 1).log().sum(1)


def lowess(d, x, y, at):
    fits = []
    for some in at.split(2000):
        u = (x - some[:, None]) / 0.05
        w = (1 - u.abs() ** 3).clamp(min=0) ** 3
        s0, s1, s2 = w.sum(1), (w * u).sum(1), (w * u * u).sum(1)
        t0, t1 = (w * y).sum(1), (w * u * y).sum(1)
        fits.append((s2 * t0 - s1 * t1 + 1e-3 * t0) / (s0 * s2 - s1 * s1 + 1e-3 * s0 + 1e-12))
    return torch.cat(fits)


thirteenth(
    "silhouettes",
    {"n": 20000, "d": 32, "k": 37},
    {"n": 203, "d": 13, "k": 5},
    {"x": of("n d"), "label": of("n", (INT, "k")), "size": of("k", integers(50, 700, INT))},
    silhouettes,
    results=("s",),
    slack=1e-2,
)
thirteenth(
    "dbscan_cores",
    {"n": 40000, "d": 24},
    {"n": 203, "d": 24},
    {"x": of("n d")},
    dbscan_cores,
    results=("near", "leader"),
    values={"radius": 4.5, "least": 10},
)
thirteenth(
    "outlier_factors",
    {"n": 3000001},
    {"n": 203},
    {"list": of("n 20", (INT, "n")), "away": of("n 20", between(0.1, 2.0))},
    outlier_factors,
    results=("factor",),
)
thirteenth(
    "hmm_forward",
    {"b": 1000, "t": 200, "s": 64, "v": 300},
    {"b": 5, "t": 17, "s": 13, "v": 11},
    {
        "obs": of("b t", (INT, "v")),
        "first": of("s", "positive"),
        "move": of("s s", "positive"),
        "emit": of("v s", "positive"),
    },
    hmm_forward,
    results=("ll",),
    slack=1e-2,
)
thirteenth(
    "lowess",
    {"n": 100001, "m": 20000},
    {"n": 403, "m": 53},
    {"x": of("n", between(0.0, 1.0)), "y": of("n"), "at": of("m", between(0.0, 1.0))},
    lowess,
    results=("fit",),
    values={"width": 0.05},
    slack=1e-2,
)

# Signals.


def beam_power(d, w, x):
    y = torch.view_as_complex(x) @ torch.view_as_complex(w).conj().T
    return torch.view_as_real(y).square().sum(-1).mean(0)


def lag_correlations(d, x):
    size = 1 << (d["t"] + 127).bit_length()
    f = torch.fft.rfft(x, size)
    r = torch.fft.irfft(f[:, :-1].conj() * f[:, 1:], size)
    return torch.cat([r[..., -64:], r[..., :65]], -1)


def hilbert_envelope(d, x, tap):
    return torch.hypot(x, F.conv1d(x[:, None], tap[None, None], padding=31, dilation=2)[:, 0])


thirteenth(
    "beam_power",
    {"beams": 96, "t": 500000, "a": 48},
    {"beams": 17, "t": 203, "a": 13},
    {"w": of("beams a", "complex"), "x": of("t a", "complex")},
    beam_power,
    results=("power",),
    slack=1e-2,
)
thirteenth(
    "lag_correlations",
    {"b": 300, "m": 8, "t": 16000},
    {"b": 2, "m": 3, "t": 403},
    {"x": of("b m t")},
    lag_correlations,
    results=("r",),
    slack=5e-2,
)
thirteenth(
    "hilbert_envelope",
    {"c": 64, "n": 1000003},
    {"c": 3, "n": 403},
    {"x": of("c n"), "tap": of("32")},
    hilbert_envelope,
    slack=1e-3,
)

# Layers and losses.


def dilated_branches(d, x, filter, bias):
    x = x.permute(0, 3, 1, 2)
    ys = []
    for r in range(3):
        weight = filter[r].permute(3, 2, 0, 1)
        ys.append(F.conv2d(x, weight, bias[r].to(HALF), padding=6 * r + 6, dilation=6 * r + 6).permute(0, 2, 3, 1))
    return F.relu(torch.stack(ys, 3))


def patch_merging(d, x, gain, shift, weight):
    parts = [x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]]
    z = F.layer_norm(torch.cat(parts, -1), (4 * d["c"],), gain.to(HALF), shift.to(HALF))
    return F.linear(z, weight)


def gate_backward(d, x, gate, dy, dmean):
    dgate = gate * (1 - gate) * (x.float() * dy.float()).sum((1, 2))
    dx = gate[:, None, None] * dy + dmean[:, None, None] / (d["h"] * d["w"])
    return dx.to(HALF), dgate


def moco_loss(d, x, key, queue):
    own = (x.float() * key.float()).sum(1, keepdim=True) / 0.1
    other = (x @ queue.T).float() / 0.1
    lse = torch.logaddexp(own, other.logsumexp(1, keepdim=True))
    p = torch.exp(other - lse).to(HALF)
    dx = (torch.exp(own - lse) - 1) * key + (p @ queue).float()
    return (lse - own).mean(), dx / (0.1 * d["b"])


def maxout_linear(d, x, w, bias):
    z = F.linear(x, w.flatten(0, 1)).float().unflatten(1, (4, d["n"])) + bias
    y, which = z.max(1)
    return y.to(HALF), which.to(torch.uint8)


def global_response_norm(d, x, gain, shift):
    wide = x.float()
    length = torch.linalg.vector_norm(wide, dim=1, keepdim=True)
    return (gain * (wide * (length / (length.mean(2, keepdim=True) + 1e-6))) + shift + wide).to(HALF)


def kan_layer(d, x, w, plain):
    at = torch.arange(8, device=x.device) * 0.5 - 1.75
    bent = torch.exp(-(((x[..., None] - at) * 2) ** 2)).flatten(1)
    return torch.addmm(F.silu(x) @ plain.float(), bent, w.flatten(0, 1).float())


def vicreg_loss(d, x, y):
    n, wide = d["n"], d["d"]

    def terms(v):
        v = v - v.mean(0)
        c = v.T @ v / (n - 1)
        own = c.diagonal()
        return F.relu(1 - (own + 1e-4).sqrt()).sum() / wide, (c.square().sum() - own.square().sum()) / wide

    (vary_x, mixed_x), (vary_y, mixed_y) = terms(x), terms(y)
    return 25 * F.mse_loss(x, y) + 12.5 * (vary_x + vary_y) + mixed_x + mixed_y


def units(shape, dims, device):
    return F.normalize(torch.randn(shape, device=device), dim=1).to(HALF)


thirteenth(
    "dilated_branches",
    {"b": 8, "h": 65, "w": 65, "c": 256, "o": 256},
    {"b": 2, "h": 21, "w": 23, "c": 16, "o": 24},
    {"x": of("b h w c", HALF), "filter": of("3 3 3 c o", SMALL_HALF), "bias": of("3 o")},
    dilated_branches,
    slack=5e-2,
)
thirteenth(
    "patch_merging",
    {"b": 64, "h": 28, "w": 28, "c": 192},
    {"b": 2, "h": 5, "w": 7, "c": 16},
    {
        "x": doubled("b 2h 2w c", HALF),
        "gain": doubled("4c"),
        "shift": doubled("4c"),
        "weight": doubled("2c 4c", SMALL_HALF),
    },
    patch_merging,
    slack=5e-2,
)
thirteenth(
    "gate_backward",
    {"b": 64, "h": 56, "w": 56, "c": 240},
    {"b": 2, "h": 7, "w": 9, "c": 13},
    {"x": of("b h w c", HALF), "gate": of("b c", between(0.0, 1.0)), "dy": of("b h w c", HALF), "dmean": of("b c")},
    gate_backward,
    results=("dx", "dgate"),
    slack=2e-2,
)
thirteenth(
    "moco_loss",
    {"b": 1024, "d": 128, "q": 65536},
    {"b": 17, "d": 16, "q": 203},
    {"x": of("b d", units), "key": of("b d", units), "queue": of("q d", units)},
    moco_loss,
    results=("loss", "dx"),
    values={"heat": 0.1},
    slack=5e-2,
)
thirteenth(
    "maxout_linear",
    {"m": 4096, "k": 1500, "n": 1200},
    {"m": 17, "k": 30, "n": 13},
    {"x": of("m k", HALF), "w": of("4 n k", SMALL_HALF), "bias": of("4 n")},
    maxout_linear,
    slack=5e-2,
)
thirteenth(
    "global_response_norm",
    {"b": 64, "p": 784, "c": 768},
    {"b": 2, "p": 53, "c": 13},
    {"x": of("b p c", HALF), "gain": of("c"), "shift": of("c")},
    global_response_norm,
    slack=2e-2,
)
thirteenth(
    "kan_layer",
    {"m": 8192, "k": 300, "n": 512},
    {"m": 17, "k": 13, "n": 11},
    {"x": of("m k"), "w": of("k 8 n", SMALL_HALF), "plain": of("k n", SMALL_HALF)},
    kan_layer,
    slack=1e-2,
)
thirteenth(
    "vicreg_loss",
    {"n": 2048, "d": 3000},
    {"n": 53, "d": 37},
    {"x": of("n d"), "y": of("n d")},
    vicreg_loss,
    results=("loss",),
    slack=1e-2,
)

# Packed numbers and layouts.


def pack_nchwc32(d, x, scale):
    q = (x / scale[:, None, None]).round().clamp(-127, 127).to(torch.int8)
    q = F.pad(q, (0, 0, 0, 0, 0, 96 - d["c"]))
    return q.unflatten(1, (3, 32)).permute(0, 1, 3, 4, 2).contiguous()


def nibbles(x):
    x = x.to(torch.int16)
    return torch.stack([(x & 15) - 8, (x >> 4) - 8], -1).to(torch.int8).flatten(1)


def w4a4_linear(d, x, w, sx, sw):
    return (torch._int_mm(nibbles(x), nibbles(w).T) * sx[:, None] * sw).to(F16)


def fp6_unpack(d, code, scale):
    three = code.unflatten(1, (-1, 3)).int()
    word = three[..., 0] | three[..., 1] << 8 | three[..., 2] << 16
    six = word[..., None] >> torch.tensor([0, 6, 12, 18], dtype=INT, device=code.device) & 63
    exponent, mantissa = six >> 2 & 7, (six & 3) * 0.25
    size = torch.where(exponent == 0, mantissa * 0.25, torch.exp2((exponent - 3).float()) * (1 + mantissa))
    value = torch.where(six >= 32, -size, size)
    return (value.flatten(1).unflatten(1, (d["g"], 32)) * scale[..., None]).to(HALF).flatten(1)


thirteenth(
    "pack_nchwc32",
    {"n": 64, "c": 75, "h": 104, "w": 104},
    {"n": 2, "c": 75, "h": 7, "w": 11},
    {"x": of("n c h w"), "scale": of("c", between(0.01, 0.03))},
    pack_nchwc32,
    values={"blocks": 3},
    slack=1.01,
)
thirteenth(
    "w4a4_linear",
    {"m": 2048, "n": 4096, "k": 2048},
    {"m": 24, "n": 40, "k": 16},
    {
        "x": of("m k", BYTES),
        "w": of("n k", BYTES),
        "sx": of("m", between(0.01, 0.02)),
        "sw": of("n", between(0.01, 0.02)),
    },
    w4a4_linear,
    slack=2e-3,
)
thirteenth(
    "fp6_unpack",
    {"n": 4096, "g": 500},
    {"n": 13, "g": 5},
    {"code": doubled("n 24g", BYTES), "scale": of("n g", between(0.5, 2.0))},
    fp6_unpack,
    slack=5e-2,
)
