"""Workloads of `breadth.py`, a seventeenth set: labels, gradients, sound, pictures, piles, columns, rays, keys."""

import math

import torch
import torch.nn.functional as F
from unseen3_workloads import F16, INT, between, integers, shaped, weights
from unseen4_workloads import narrow
from unseen5_workloads import BYTES
from unseen13_workloads import whole_ramp
from unseen16_workloads import DOUBLE, WORKLOADS  # noqa: F401
from unseen_workloads import HALF, add, of


def seventeenth(name, dims, small, arrays, peer, **more):
    add("unseen_17.krn", name, dims, small, arrays, peer, **more)


LONG = torch.int64
WORDS = integers(-(1 << 31), 1 << 31, INT)


# Losses, compressed gradients, sampling, caches, a layer.


def many_labels_backward(d, x, target, weight, unit=1.5):
    x, t = x.float(), target.float()
    share = 1 + (weight - 1) * t
    loss = ((1 - t) * x + share * F.softplus(-x)).mean(0)
    return (unit * (share * x.sigmoid() - weight * t)).to(HALF), loss


def one_bit_gradient(d, g, lost):
    v = (g + lost).view(d["n"], d["w"], 32)
    scale = v.abs().mean((1, 2))
    up = v >= 0
    shift = torch.arange(32, dtype=INT, device=g.device)
    bits = (up.to(INT) << shift).sum(2, dtype=INT)
    unit = scale[:, None, None]
    lost.copy_((v - torch.where(up, unit, -unit)).view(lost.shape))
    return bits, scale, lost


def penalize_repeats(d, x, said, repeated=1.3, often=0.2):
    said = said.long()
    seen = torch.zeros(x.shape, dtype=INT, device=x.device)
    seen.scatter_add_(1, said, torch.ones_like(said, dtype=INT))
    lower = torch.where(x > 0, x / repeated, x * repeated) - often * seen
    return torch.where(seen > 0, lower, x)


def entmax_rows(d, x):
    z = 0.5 * (x - x.amax(1, keepdim=True))
    low = torch.full_like(z[:, :1], -1.0)
    high = torch.full_like(low, -1 / math.sqrt(d["v"]))
    for _ in range(20):
        middle = 0.5 * (low + high)
        enough = (z - middle).clamp(min=0).square().sum(1, keepdim=True) >= 1
        low, high = torch.where(enough, middle, low), torch.where(enough, high, middle)
    e = (z - low).clamp(min=0).square()
    return e / e.sum(1, keepdim=True)


def squared_relu_linear(d, x, w):
    z = F.linear(x, w).relu_()
    return z * z, (z > 0).sum(0, dtype=INT)


def calibration_error(d, x, label):
    x = x.float()
    peak = x.amax(1)
    confidence = 1 / (x - peak[:, None]).exp().sum(1)
    right = (x.gather(1, label.long()[:, None])[:, 0] == peak).float()
    place = (15 * confidence).to(INT).clamp(max=14)
    size = torch.zeros(15, dtype=INT, device=x.device).index_add_(0, place, torch.ones_like(place))
    gap = torch.zeros(15, device=x.device).index_add_(0, place, confidence - right)
    return size, gap.abs().sum() / d["n"]


def spread_logits(shape, dims, device):
    """Logits of which some rows are sure of a class and others are not."""
    return (torch.randn(shape, device=device) * (6 * torch.rand(shape[0], 1, device=device))).to(HALF)


for name in ("many_labels_backward", "many_labels_backward_b", "many_labels_backward_c"):
    seventeenth(
        name,
        {"n": 100003, "c": 527},
        {"n": 203, "c": 37},
        {
            "x": of("n c", HALF),
            "target": of("n c", integers(0, 2, torch.uint8)),
            "weight": of("c", between(0.5, 4.0)),
        },
        many_labels_backward,
        results=("dx", "loss"),
        values={"unit": 1.5},
        slack=1e-3,
    )
for name in ("one_bit_gradient", "one_bit_gradient_b", "one_bit_gradient_c"):
    if name.endswith("_c"):
        numbers = of("n w 32")
    else:
        numbers = shaped(lambda d: (d["n"], 32 * d["w"]))
    seventeenth(
        name,
        {"n": 6001, "w": 125},
        {"n": 37, "w": 5},
        {"g": numbers, "lost": numbers},
        one_bit_gradient,
        results=("bits", "scale", "lost"),
    )
for name in ("penalize_repeats", "penalize_repeats_b", "penalize_repeats_c"):
    seventeenth(
        name,
        {"b": 400, "v": 50257, "t": 300},
        {"b": 7, "v": 203, "t": 61},
        {"x": of("b v"), "said": of("b t", (INT, "v"))},
        penalize_repeats,
        values={"repeated": 1.3, "often": 0.2},
        slack=1e-3,
    )
seventeenth("entmax_rows", {"n": 30000, "v": 1000}, {"n": 53, "v": 203}, {"x": of("n v")}, entmax_rows)
seventeenth(
    "reorder_beams",
    {"l": 6, "b": 24, "h": 8, "t": 777, "d": 128, "m": 24},
    {"l": 2, "b": 5, "h": 3, "t": 7, "d": 16, "m": 6},
    {"cache": of("l 2 b h t d", HALF), "parent": of("m", (INT, "b"))},
    lambda d, cache, parent: cache.index_select(2, parent),
)
seventeenth(
    "squared_relu_linear",
    {"n": 6000, "k": 2304, "m": 9216},
    {"n": 67, "k": 48, "m": 72},
    {"x": of("n k", HALF), "w": of("m k", narrow(weights, HALF))},
    squared_relu_linear,
    results=("y", "firing"),
    slack=2e-2,
)
seventeenth(
    "calibration_error",
    {"n": 100003, "c": 1000},
    {"n": 203, "c": 37},
    {"x": of("n c", spread_logits), "label": of("n", (INT, "c"))},
    calibration_error,
    results=("size", "error"),
    slack=1e-3,
)


# Sound.


def spatial_covariance(d, x, mask):
    z = torch.view_as_complex(x).transpose(1, 2)
    total = mask.sum(2)[..., None, None]
    return torch.view_as_real(((z * mask[:, :, None]) @ z.mH) / total)


def mu_law_encode(d, x):
    v = x.int()
    size = v.abs().clamp(max=32635) + 132
    segment = (size.float().view(INT) >> 23) - 134
    sign = (v < 0).to(INT) << 7
    return (~(sign | segment << 4 | size >> segment + 3 & 15) & 255).to(torch.uint8)


def gated_loudness(d, x):
    power = x.square().sum((1, 3)) / 4800
    block = power.unfold(1, 4, 1).mean(2)
    heard = block > 1.17e-7
    mean = torch.where(heard, block, 0).sum(1) / heard.sum(1).clamp(min=1)
    stays = block > (0.1 * mean).clamp(min=1.17e-7)[:, None]
    rest = torch.where(stays, block, 0).sum(1) / stays.sum(1).clamp(min=1)
    return 10 * rest.clamp(min=1e-10).log10() - 0.691


def swelling(shape, dims, device):
    """Noise that is loud in some hops and low in others."""
    volume = torch.rand(shape[0], 1, shape[2], 1, device=device).square()
    return torch.randn(shape, device=device).mul_(volume)


for name in ("spatial_covariance", "spatial_covariance_b", "spatial_covariance_c"):
    seventeenth(
        name,
        {"b": 12, "m": 7, "f": 513, "t": 601},
        {"b": 2, "m": 3, "f": 5, "t": 37},
        {
            "x": of("b m f t", "complex") if name.endswith("_b") else of("b m f t 2"),
            "mask": of("b f t", between(0.1, 1.0)),
        },
        spatial_covariance,
        slack=1e-3,
    )
for name in ("mu_law_encode", "mu_law_encode_b", "mu_law_encode_c"):
    seventeenth(
        name,
        {"n": 100000003},
        {"n": 4003},
        {"x": of("n", integers(-32768, 32768, torch.int16))},
        mu_law_encode,
    )
seventeenth(
    "gated_loudness",
    {"n": 30, "c": 2, "h": 300},
    {"n": 3, "c": 2, "h": 21},
    {"x": of("n c h+3 4800", swelling)},
    gated_loudness,
    slack=1e-2,
)


# Images and video.


def merge_exposures(d, x, time):
    v = x.float()
    weight = torch.minimum(v, 255 - v) + 1
    light = 2.2 * ((v + 0.5) / 255).log() - time.log().view(-1, *[1] * (x.dim() - 1))
    return ((weight * light).sum(0) / weight.sum(0)).exp()


def composite_over(d, front, back):
    front, back = front.int(), back.int()
    t = back * (255 - front[..., 3:]) + 128
    return (front + ((t + (t >> 8)) >> 8)).clamp(max=255).to(torch.uint8)


def composite_over_words(d, front, back):
    y = composite_over(d, front.view(torch.uint8).view(-1, 4), back.view(torch.uint8).view(-1, 4))
    return y.view(-1).view(INT)


def dark_channel(d, x):
    # Bytes up to 255 are exact in half precision.
    low = -x.amin(3).to(F16)
    low = F.max_pool2d(low, (1, 15), 1, (0, 7))
    return (-F.max_pool2d(low, (15, 1), 1, (7, 0))).to(torch.uint8)


def motion_compensate(d, x, vector):
    n, h, w = x.shape
    vector = vector.int().repeat_interleave(16, 1).repeat_interleave(16, 2)
    down, right = vector.unbind(3)
    i = torch.arange(h, dtype=INT, device=x.device)[:, None]
    j = torch.arange(w, dtype=INT, device=x.device)
    i0, i1 = (i + (down >> 1)).clamp(0, h - 1), (i + ((down + 1) >> 1)).clamp(0, h - 1)
    j0, j1 = (j + (right >> 1)).clamp(0, w - 1), (j + ((right + 1) >> 1)).clamp(0, w - 1)
    flat = x.view(n, h * w)

    def pixel(row, col):
        return flat.gather(1, (row * w + col).long().view(n, h * w)).int()

    total = pixel(i0, j0) + pixel(i0, j1) + pixel(i1, j0) + pixel(i1, j1) + 2
    return (total >> 2).to(torch.uint8).view(n, h, w)


for name, dims, small, x in (
    ("merge_exposures", {"e": 5, "h": 2160, "w": 3840}, {"e": 3, "h": 17, "w": 21}, "e h w 3"),
    ("merge_exposures_b", {"e": 5, "h": 2160, "w": 3840}, {"e": 3, "h": 17, "w": 21}, "e h w 3"),
    ("merge_exposures_c", {"e": 5, "m": 24883200}, {"e": 3, "m": 1071}, "e m"),
):
    seventeenth(
        name,
        dims,
        small,
        {"x": of(x, BYTES), "time": of("e", between(0.01, 1.0))},
        merge_exposures,
        slack=1e-3,
    )
for name in ("composite_over", "composite_over_b"):
    seventeenth(
        name,
        {"h": 4320, "w": 7680},
        {"h": 37, "w": 53},
        {"front": of("h w 4", BYTES), "back": of("h w 4", BYTES)},
        composite_over,
    )
seventeenth(
    "composite_over_c",
    {"p": 33177600},
    {"p": 1961},
    {"front": of("p", WORDS), "back": of("p", WORDS)},
    composite_over_words,
)
seventeenth(
    "dark_channel",
    {"n": 10, "h": 1080, "w": 1920},
    {"n": 2, "h": 37, "w": 53},
    {"x": of("n h w 3", BYTES)},
    dark_channel,
)
seventeenth(
    "motion_compensate",
    {"n": 40, "h": 68, "w": 120},
    {"n": 2, "h": 3, "w": 5},
    {
        "x": shaped(lambda d: (d["n"], 16 * d["h"], 16 * d["w"]), BYTES),
        "vector": of("n h w 2", integers(-128, 128, torch.int8)),
    },
    motion_compensate,
)


# Simulation.


def sandpile_round(d, x):
    gift = F.pad(x >> 2, (1, 1, 1, 1))
    y = (x & 3) + gift[:-2, 1:-1] + gift[2:, 1:-1] + gift[1:-1, :-2] + gift[1:-1, 2:]
    return y, (x >= 4).sum()


def vortex_velocities(d, p, spin, core=0.1):
    x, y, z = [a[:, None] - a[None] for a in p.unbind(1)]
    near = (x * x + y * y + z * z + core * core).rsqrt()
    near = near * near * near / (4 * math.pi)
    a, b, c = spin.unbind(1)
    u = (near * (b * z - c * y)).sum(1)
    v = (near * (c * x - a * z)).sum(1)
    w = (near * (a * y - b * x)).sum(1)
    return torch.stack([u, v, w], 1)


def bond_forces(d, p, bond, stiff, rest):
    a, b = bond.unbind(1)
    away = p.index_select(0, b) - p.index_select(0, a)
    length = away.square().sum(1).sqrt()
    stretch = length - rest
    pull = (stiff * stretch / length.clamp(min=1e-6))[:, None] * away
    force = torch.zeros_like(p).index_add_(0, a, pull).index_add_(0, b, pull, alpha=-1)
    return force, 0.5 * (stiff * stretch * stretch).sum()


for name in ("sandpile_round", "sandpile_round_b", "sandpile_round_c"):
    seventeenth(
        name,
        {"h": 7001, "w": 9001},
        {"h": 37, "w": 53},
        {"x": of("h w", integers(0, 12, INT))},
        sandpile_round,
        results=("y", "toppled"),
    )
seventeenth(
    "vortex_velocities",
    {"n": 12007},
    {"n": 203},
    {"p": of("n 3"), "spin": of("n 3")},
    vortex_velocities,
    results=("u",),
    values={"core": 0.1},
    slack=1e-2,
)
seventeenth(
    "bond_forces",
    {"n": 1000003, "m": 3000001},
    {"n": 53, "m": 203},
    {
        "p": of("n 3"),
        "bond": of("m 2", (INT, "n")),
        "stiff": of("m", between(0.5, 2.0)),
        "rest": of("m", between(0.5, 1.5)),
    },
    bond_forces,
    results=("force", "energy"),
    slack=1e-2,
)


# Finance.


def relative_strength(d, price):
    # Smoothing is a product by a triangle of powers.
    move = price.diff(dim=0)
    s = torch.arange(d["t"], dtype=torch.float32, device=price.device)
    age = s[:, None] - s
    smooth = torch.where(age >= 0, (13 / 14) ** age.clamp(min=0) / 14, 0)
    up, both = smooth @ move.clamp(min=0), smooth @ move.abs()
    return torch.where(both > 0, 100 * up / both, 50)


def risk_contributions(d, weight, covariance):
    share = weight * (weight @ covariance)
    variance = share.sum(1)
    return share / variance[:, None], variance.sqrt()


def sabr_volatility(d, forward, strike, years, alpha, rho, nu):
    middle = (forward * strike).sqrt()
    root, away = middle.sqrt(), (forward / strike).log()
    z = nu / alpha * root * away
    bend = (((1 - 2 * rho * z + z * z).sqrt() + z - rho) / (1 - rho)).log()
    ratio = torch.where(z.abs() < 1e-7, 1.0, z / bend)
    square = away * away
    wide = root * (1 + square / 96 + square * square / 30720)
    drift = alpha * alpha / (96 * middle) + rho * nu * alpha / (8 * root) + (2 - 3 * rho * rho) * nu * nu / 24
    return alpha / wide * ratio * (1 + drift * years)


def covariances(shape, dims, device):
    """A positive definite matrix."""
    a = torch.randn(shape, device=device) / math.sqrt(shape[0])
    return a @ a.T + torch.eye(shape[0], device=device)


def doubles(low, high):
    return narrow(between(low, high), DOUBLE)


seventeenth(
    "relative_strength",
    {"t": 100, "n": 300001},
    {"t": 37, "n": 53},
    {"price": of("t+1 n", between(10.0, 20.0))},
    relative_strength,
    slack=2e-2,
)
seventeenth(
    "risk_contributions",
    {"b": 5003, "n": 1000},
    {"b": 37, "n": 53},
    {"weight": of("b n", between(0.1, 1.0)), "covariance": of("n n", covariances)},
    risk_contributions,
    results=("share", "deviation"),
)
seventeenth(
    "sabr_volatility",
    {"n": 5000001},
    {"n": 403},
    {
        "forward": of("n", doubles(0.5, 2.0)),
        "strike": of("n", doubles(0.5, 2.0)),
        "years": of("n", doubles(0.1, 5.0)),
        "alpha": of("n", doubles(0.1, 0.5)),
        "rho": of("n", doubles(-0.8, 0.8)),
        "nu": of("n", doubles(0.1, 1.0)),
    },
    sabr_volatility,
)


# Columns of a database.


def mixed(z, right, factor):
    """A step of SplitMix64, in numbers with a sign."""
    z = z ^ (z >> right & (1 << 64 - right) - 1)
    return z * factor if factor else z


def bloom_probe(d, key, filter):
    z = mixed(key + (0x9E3779B97F4A7C15 - (1 << 64)), 30, 0xBF58476D1CE4E5B9 - (1 << 64))
    z = mixed(mixed(z, 27, 0x94D049BB133111EB - (1 << 64)), 31, 0)
    first, step = z & 0xFFFFFFFF, z >> 32 & 0xFFFFFFFF
    hit = torch.ones(key.shape, dtype=INT, device=key.device)
    for k in range(4):
        bit = (first + k * step) % (32 * d["m"])
        hit &= filter[bit >> 5] >> (bit & 31).to(INT)
    return (hit & 1).to(torch.uint8)


def expand_nulls(d, value, valid, gap=-1.0):
    shift = torch.arange(32, dtype=INT, device=valid.device)
    there = (valid[:, None] >> shift & 1).flatten()
    place = (there.cumsum(0, dtype=INT) - 1).clamp(min=0)
    return torch.where(there != 0, value.index_select(0, place), gap)


def take_run_ends(d, ends, value, row):
    return value[torch.searchsorted(ends, row, right=True)]


def run_ends(shape, dims, device):
    """Ends of runs of 20 to 30 rows."""
    return torch.randint(20, 31, shape, device=device).cumsum(0).to(INT)


def rows_of_runs(shape, dims, device):
    """Rows in no order, none behind the last run."""
    return torch.randint(0, 20 * dims["m"], shape, device=device, dtype=INT)


seventeenth(
    "bloom_probe",
    {"n": 20000003, "m": 6000001},
    {"n": 4003, "m": 53},
    {"key": of("n", integers(-(1 << 62), 1 << 62, LONG)), "filter": of("m", WORDS)},
    bloom_probe,
    results=("hit",),
)
seventeenth(
    "expand_nulls",
    {"w": 1500001},
    {"w": 53},
    {"value": shaped(lambda d: (32 * d["w"],)), "valid": of("w", WORDS)},
    expand_nulls,
    values={"gap": -1.0},
)
seventeenth(
    "take_run_ends",
    {"n": 30000001, "m": 1000003},
    {"n": 803, "m": 53},
    {
        "ends": of("m", run_ends),
        "value": of("m", integers(-1000, 1000, torch.int16)),
        "row": of("n", rows_of_runs),
    },
    take_run_ends,
)


# Graphs.


def independent_set_round(d, start, col, number, state):
    offsets = start.long()
    open_numbers = torch.where(state == 0, number, -1.0)
    most = torch.segment_reduce(open_numbers.index_select(0, col), "max", offsets=offsets, initial=-1.0, unsafe=True)
    joins = (state == 0) & (number > most)
    near = joins.float().index_select(0, col)
    beside = torch.segment_reduce(near, "max", offsets=offsets, initial=0.0, unsafe=True) > 0
    return torch.where(joins, 1, torch.where((state == 0) & beside, 2, state)).to(torch.uint8)


def modularity(d, a, b, weight, community):
    one, other = community.index_select(0, a), community.index_select(0, b)
    degree = torch.zeros(1000, device=weight.device).index_add_(0, one, weight).index_add_(0, other, weight)
    total = weight.sum()
    return torch.where(one == other, weight, 0).sum() / total - degree.square().sum() / (4 * total * total)


seventeenth(
    "independent_set_round",
    {"n": 2000000, "m": 30000000},
    {"n": 103, "m": 403},
    {
        "start": of("n+1", whole_ramp),
        "col": of("m", (INT, "n")),
        "number": of("n", between(0.0, 1.0)),
        "state": of("n", integers(0, 3, torch.uint8)),
    },
    independent_set_round,
    results=("next",),
)
seventeenth(
    "modularity",
    {"m": 16000003, "n": 1000003},
    {"m": 4003, "n": 503},
    {
        "a": of("m", (INT, "n")),
        "b": of("m", (INT, "n")),
        "weight": of("m", between(0.1, 1.0)),
        "community": of("n", integers(0, 1000, INT)),
    },
    modularity,
    values={"c": 1000},
    slack=1e-3,
)


# Geometry.


def ray_triangles(d, start, along, corner):
    a, b, c = corner.unbind(1)
    e, f = b - a, c - a

    def dot(u, v):
        return u[0] * v[0] + u[1] * v[1] + u[2] * v[2]

    def cross(u, v):
        return u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]

    ray = [v[:, None] for v in along.unbind(1)]
    e, f = e.unbind(1), f.unbind(1)
    away = [s[:, None] - v for s, v in zip(start.unbind(1), a.unbind(1))]
    across = cross(ray, f)
    scale = 1 / dot(e, across)
    u = scale * dot(away, across)
    lifted = cross(away, e)
    v = scale * dot(ray, lifted)
    t = scale * dot(f, lifted)
    t = torch.where((u >= 0) & (v >= 0) & (u + v <= 1) & (t > 0), t, math.inf)
    best, at = t.min(1)
    return best, torch.where(best < math.inf, at, -1).to(INT)


def skin_vertices(d, p, bone, weight, pose):
    bone = bone.long()
    blended = 0
    for q in range(4):
        blended = blended + weight[:, q, None, None] * pose[:, bone[:, q]]
    return (blended[..., :3] * p[:, None]).sum(3) + blended[..., 3]


seventeenth(
    "ray_triangles",
    {"n": 200001, "m": 600},
    {"n": 203, "m": 53},
    {"from": of("n 3"), "along": of("n 3"), "corner": of("m 3 3")},
    ray_triangles,
    results=("t", "hit"),
    slack=1e-3,
)
seventeenth(
    "skin_vertices",
    {"n": 100003, "f": 60, "j": 127},
    {"n": 203, "f": 3, "j": 17},
    {
        "p": of("n 3"),
        "bone": shaped(
            lambda d: (d["n"], 4),
            lambda shape, dims, device: torch.randint(0, dims["j"], shape, device=device, dtype=torch.uint8),
        ),
        "weight": of("n 4", between(0.0, 1.0)),
        "pose": of("f j 3 4"),
    },
    skin_vertices,
    slack=1e-3,
)


# Genomes, the ground, bytes.


def letters(x):
    """Bases of two bits as ones among zeros, 4 for each of 32."""
    shift = torch.arange(0, 64, 2, device=x.device)
    base = x[:, None] >> shift & 3
    return (base[..., None] == torch.arange(4, device=x.device)).to(F16).flatten(1)


def barcode_match(d, read, barcode):
    # The most matches; among equals the first barcode.
    same = letters(read) @ letters(barcode).T
    key = (same.float() * 1024 - torch.arange(d["m"], device=read.device)).amax(1).to(INT)
    same = (key + 1023) >> 10
    return same * 1024 - key, 32 - same


def moveout_stack(d, x, offset, velocity, step=0.004):
    b, o, t = x.shape
    start = torch.arange(t, dtype=torch.float32, device=x.device) * step
    late = offset[:, None] / velocity[:, None]
    at = (start * start + late * late).sqrt() / step
    before = at.to(INT)
    part = at - before
    live = before + 1 < t
    place = before.clamp(max=t - 2).long()
    v = (1 - part) * x.gather(2, place) + part * x.gather(2, place + 1)
    return torch.where(live, v, 0).sum(1) / live.sum(1).clamp(min=1)


def siphash_rows(d, x):
    def turned(v, by):
        return v << by | (v >> 64 - by & (1 << by) - 1)

    def rounds(a, b, c, e, many):
        for _ in range(many):
            a, c = a + b, c + e
            b, e = turned(b, 13) ^ a, turned(e, 16) ^ c
            a = turned(a, 32)
            a, c = a + e, c + b
            b, e = turned(b, 17) ^ c, turned(e, 21) ^ a
            c = turned(c, 32)
        return a, b, c, e

    keys = (0x7469686173716475, 0x6B617F6D656E6665, 0x6B7F62616D677361, 0x7B6B696E727E6C7B)
    a, b, c, e = (torch.full_like(x[:, 0], key) for key in keys)
    for word in (*x.unbind(1), 0x2000000000000000):
        a, b, c, e = rounds(a, b, c, e ^ word, 2)
        a = a ^ word
    a, b, c, e = rounds(a, b, c ^ 0xFF, e, 4)
    return a ^ b ^ c ^ e


seventeenth(
    "barcode_match",
    {"n": 500001, "m": 737},
    {"n": 203, "m": 53},
    {
        "read": of("n", integers(-(1 << 62), 1 << 62, LONG)),
        "barcode": of("m", integers(-(1 << 62), 1 << 62, LONG)),
    },
    barcode_match,
    results=("best", "distance"),
)
seventeenth(
    "moveout_stack",
    {"b": 500, "o": 60, "t": 1501},
    {"b": 3, "o": 7, "t": 203},
    {"x": of("b o t"), "offset": of("o", between(0.0, 3.0)), "velocity": of("b t", between(1.5, 4.0))},
    moveout_stack,
    values={"step": 0.004},
    slack=1e-2,
)
seventeenth(
    "siphash_rows",
    {"n": 5000003},
    {"n": 403},
    {"x": of("n 4", integers(-(1 << 62), 1 << 62, LONG))},
    siphash_rows,
)
