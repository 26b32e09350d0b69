"""Workloads of `breadth.py` from well-known suites: PolyBench, Rodinia, Parboil, layers, graphs, images, finance."""

import functools
import math

import torch
import torch.nn.functional as F
from more_workloads import HALF, TINY, WORKLOADS, add, of
from workloads import sobel_kernels

SEEN = len(WORKLOADS)


class Record:
    """What an array of structs holds: floats of these names, uniform between two numbers."""

    def __init__(self, *names, low=-1.0, high=1.0):
        self.fields, self.low, self.high = [(name, "f4") for name in names], low, high

    def __call__(self, shape, dims, device):
        return torch.rand((*shape, len(self.fields)), device=device) * (self.high - self.low) + self.low


def unseen(name, dims, small, arrays, peer, **more):
    add("unseen.krn", name, dims, small, arrays, peer, **more)


def gemver(d, a, u1, v1, u2, v2, y, z):
    b = torch.addr(a, u1, v1).addr_(u2, v2)
    x = torch.addmv(z, b.T, y, alpha=1.25)
    return x, 1.5 * (b @ x)


def syr2k(d, a, b, c):
    t = a @ b.T
    lower = torch.ones(d["n"], d["n"], dtype=torch.bool, device=a.device).tril()
    return torch.where(lower, 1.25 * c + 1.5 * (t + t.T), c)


def fdtd_2d(d, ex, ey, hz):
    ey[0] = 0.5
    ey[1:] -= 0.5 * (hz[1:] - hz[:-1])
    ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
    hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return ex, ey, hz


def hotspot_3d(d, t, power):
    p = F.pad(t[None, None], (1, 1, 1, 1, 1, 1), mode="replicate")[0, 0]
    columns = p[1:-1, 1:-1, :-2] + p[1:-1, 1:-1, 2:]
    rows = p[1:-1, :-2, 1:-1] + p[1:-1, 2:, 1:-1]
    layers = p[:-2, 1:-1, 1:-1] + p[2:, 1:-1, 1:-1]
    return 0.28 * t + 0.12 * columns + 0.1 * rows + 0.09 * layers + 0.05 * power + 0.1 * 0.75


def srad(d, img):
    variance, mean = torch.var_mean(img, correction=0)
    q0 = variance / (mean * mean)
    p = F.pad(img[None, None], (1, 1, 1, 1), mode="replicate")[0, 0]
    north, south = p[:-2, 1:-1] - img, p[2:, 1:-1] - img
    west, east = p[1:-1, :-2] - img, p[1:-1, 2:] - img
    g2 = (north * north + south * south + west * west + east * east) / (img * img)
    laplacian = (north + south + west + east) / img
    q = (0.5 * g2 - laplacian * laplacian / 16) / (1 + 0.25 * laplacian) ** 2
    c = (1 / (1 + (q - q0) / (q0 * (1 + q0) + 1e-3))).clamp(0, 1)
    below, right = torch.cat([c[1:], c[-1:]], 0), torch.cat([c[:, 1:], c[:, -1:]], 1)
    return img + 0.25 * 0.5 * (c * (north + west) + below * south + right * east)


def mri_q(d, sample, x, y, z):
    angle = torch.stack([x, y, z], 1) @ (2 * math.pi * sample[:, :3].T)
    phi = sample[:, 3]
    return torch.stack([angle.cos() @ phi, angle.sin() @ phi], 1)


def sad(d, frame, reference):
    blocks = frame.short().unfold(0, 4, 4).unfold(1, 4, 4)[:, :, None, None]
    windows = reference.short().unfold(0, 19, 4).unfold(1, 19, 4).unfold(2, 4, 1).unfold(3, 4, 1)
    return (blocks - windows).abs().sum((-1, -2), dtype=torch.int32)


def lattice_boltzmann(d, f):
    cx, cy = (0, 1, 0, -1, 0, 1, -1, -1, 1), (0, 0, 1, 0, -1, 1, 1, -1, -1)
    weight = [4 / 9] + [1 / 9] * 4 + [1 / 36] * 4
    came = [f[q].roll((cy[q], cx[q]), (0, 1)) for q in range(9)]
    rho = sum(came)
    ux = (came[1] - came[3] + came[5] - came[6] - came[7] + came[8]) / rho
    uy = (came[2] - came[4] + came[5] + came[6] - came[7] - came[8]) / rho
    speed = ux * ux + uy * uy
    along = [cx[q] * ux + cy[q] * uy for q in range(9)]
    rest = [weight[q] * rho * (1 + 3 * along[q] + 4.5 * along[q] * along[q] - 1.5 * speed) for q in range(9)]
    return torch.stack([came[q] + 1.2 * (rest[q] - came[q]) for q in range(9)])


def bilateral(d, x):
    p = F.pad(x[None, None], (2, 2, 2, 2), mode="replicate")[0, 0]
    total, weights = torch.zeros_like(x), torch.zeros_like(x)
    for i in range(5):
        for j in range(5):
            v = p[i : i + d["h"], j : j + d["w"]]
            weight = torch.exp(-0.1 * ((i - 2) ** 2 + (j - 2) ** 2) - 0.5 * (v - x) ** 2)
            total += weight * v
            weights += weight
    return total / weights


def chi2_pairs(d, a, b):
    a, b = a[:, None], b[None]
    return 0.5 * ((a - b) ** 2 / (a + b + 1e-6)).sum(2)


def haversine(d, a, b):
    a, b = torch.deg2rad(a), torch.deg2rad(b)
    lat, lon = torch.sin(0.5 * (b - a)).square().unbind(1)
    t = lat + torch.cos(a[:, 0]) * torch.cos(b[:, 0]) * lon
    return 2 * 6371 * torch.asin(t.sqrt().clamp(max=1))


def murmur3(d, key):
    ones = 0xFFFFFFFF

    def rotated(x, r):
        return ((x << r) | (x >> (32 - r))) & ones

    h = torch.full((d["n"],), 42, dtype=torch.int64, device=key.device)
    for p in range(d["words"]):
        k = ((key[:, p].long() & ones) * 0xCC9E2D51) & ones
        h = h ^ ((rotated(k, 15) * 0x1B873593) & ones)
        h = (rotated(h, 13) * 5 + 0xE6546B64) & ones
    h = h ^ (4 * d["words"])
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & ones
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & ones
    return h ^ (h >> 16)


def linear_pool_sum(d, x, w, bias):
    return F.max_pool1d(F.linear(x, w, bias)[:, None], 2)[:, 0].float().sum(1) * 0.5


def pair(which):
    """One side of all pairs of vectors below the diagonal."""
    return lambda shape, dims, device: torch.tril_indices(dims["n"], dims["n"], -1, device=device)[which].contiguous()


def edge_scores(d, source, target, left, right):
    e = F.leaky_relu(left[source] + right[target], 0.2).exp()
    total = torch.zeros_like(left).index_add_(0, target, e)
    return e / total[target]


def mel_energies(d, spectrum, bank):
    power = spectrum.square().sum(-1)
    return (power @ bank.T).clamp(min=1e-10).log()


def harris(d, x):
    gx, gy = F.conv2d(x[None, None], sobel_kernels(x.device), padding=1)[0]
    xx, yy, xy = 9 * F.avg_pool2d(torch.stack([gx * gx, gy * gy, gx * gy]), 3, 1, 1)
    return xx * yy - xy * xy - 0.05 * (xx + yy) ** 2


MN = {"m": 37, "n": 53}
INDEX = torch.int64
unseen("three_products", {"m": 2048, "k": 2048, "n": 2048, "p": 2048, "q": 2048},
       {"m": 37, "k": 29, "n": 31, "p": 19, "q": 23},
       {"a": of("m k"), "b": of("k n"), "c": of("n p"), "d": of("p q")}, lambda dims, a, b, c, d: (a @ b) @ (c @ d),
       results=("g",), slack=1e-1)
unseen("atax", {"m": 12000, "n": 10000}, MN, {"a": of("m n"), "x": of("n")}, lambda d, a, x: a.T @ (a @ x), slack=1e-2)
unseen("bicg", {"m": 9000, "n": 7000}, MN,
       {"a": of("m n", torch.float64), "p": of("n", torch.float64), "r": of("m", torch.float64)},
       lambda d, a, p, r: (r @ a, a @ p), results=("s", "q"))
unseen("gesummv", {"n": 8000}, {"n": 53}, {"a": of("n n"), "b": of("n n"), "x": of("n")},
       lambda d, a, b, x: torch.addmv(1.25 * (b @ x), a, x, alpha=1.5), values={"alpha": 1.5, "beta": 1.25}, slack=1e-3)
unseen("gemver", {"n": 10000}, {"n": 53},
       {"a": of("n n")} | {name: of("n") for name in ("u1", "v1", "u2", "v2", "y", "z")}, gemver,
       results=("x", "w"), values={"alpha": 1.5, "beta": 1.25}, slack=1e-1)
unseen("syr2k", {"n": 2600, "m": 2000}, {"n": 53, "m": 29}, {"a": of("n m"), "b": of("n m"), "c": of("n n")}, syr2k,
       results=("c",), values={"alpha": 1.5, "beta": 1.25}, slack=1e-2)
unseen("fdtd_2d", {"nx": 6000, "ny": 7200}, {"nx": 37, "ny": 53}, {name: of("nx ny") for name in ("ex", "ey", "hz")},
       fdtd_2d,
       results=("ex", "ey", "hz"), values={"source": 0.5})
unseen("hotspot_3d", {"d": 64, "h": 1024, "w": 1024}, {"d": 5, "h": 7, "w": 11},
       {"t": of("d h w"), "power": of("d h w")},
       hotspot_3d, values={"ambient": 0.75})
unseen("srad", {"h": 5000, "w": 6000}, TINY, {"img": of("h w", "positive")}, srad, values={"rate": 0.5}, slack=1e-3)
unseen("mri_q", {"n": 1 << 17, "k": 2048}, {"n": 203, "k": 37},
       {"sample": of("k", Record("kx", "ky", "kz", "phi")), "x": of("n"), "y": of("n"), "z": of("n")}, mri_q,
       results=("q",), slack=1e-3)
unseen("sad", {"h": 1080, "w": 1920}, {"h": 12, "w": 20},
       {"frame": of("h w", torch.uint8), "reference": of("h+16 w+16", torch.uint8)},
       sad, results=("s",))
unseen("lattice_boltzmann", {"h": 2000, "w": 3000}, TINY, {"f": of("9 h w", "positive")}, lattice_boltzmann,
       results=("g",),
       values={"omega": 1.2})
unseen("bilateral", {"h": 4000, "w": 6000}, TINY, {"x": of("h w")}, bilateral, values={"near": 0.1, "alike": 0.5})
unseen("chi2_pairs", {"m": 1500, "n": 2000, "k": 200}, {"m": 37, "n": 53, "k": 29},
       {"a": of("m k", "positive"), "b": of("n k", "positive")}, chi2_pairs, results=("d",))
unseen("max_pool_places", {"b": 32, "c": 64, "h": 150, "w": 150}, {"b": 2, "c": 3, "h": 13, "w": 17},
       {"x": of("b c h w")},
       lambda d, x: F.max_pool2d(x, 2, return_indices=True), results=("y", "place"))
unseen("haversine", {"n": 1 << 25}, {"n": 1003},
       {"a": of("n", Record("lat", "lon", low=-90, high=90)), "b": of("n", Record("lat", "lon", low=-90, high=90))},
       haversine, results=("km",), slack=1e-1)
unseen("murmur3", {"n": 1 << 24, "words": 4}, {"n": 1003, "words": 3}, {"key": of("n words", torch.int32)}, murmur3,
       results=("hash",), values={"seed": 42}, slack=0.5)
unseen("conv_relu_add_scale", {"b": 32, "c": 64, "o": 128, "h": 62, "w": 62}, {"b": 2, "c": 3, "o": 5, "h": 7, "w": 11},
       {"x": of("b c h+2 w+2"), "f": of("o c 3 3"), "bias": of("o"), "shift": of("o")},
       lambda d, x, f, bias, shift: 0.5 * (F.relu(F.conv2d(x, f, bias)) + shift[:, None, None]),
       values={"scale": 0.5}, slack=1e-2)
unseen("linear_group_norm", {"m": 2000, "k": 2048, "n": 4096}, {"m": 37, "k": 29, "n": 48},
       {"x": of("m k"), "w": of("n k"), "bias": of("n"), "gain": of("n"), "shift": of("n")},
       lambda d, x, w, bias, gain, shift: F.hardtanh(F.group_norm(F.linear(x, w, bias), 16, gain, shift), -2, 2),
       values={"groups": 16}, slack=1e-2)
unseen("linear_pool_sum", {"m": 4000, "k": 2048, "n": 8192}, {"m": 37, "k": 53, "n": 28},
       {"x": of("m k", HALF), "w": of("n k", HALF), "bias": of("n", HALF)}, linear_pool_sum, values={"scale": 0.5},
       slack=2.0)
unseen("weighted_bags", {"vocabulary": 500000, "d": 128, "bags": 16000, "length": 50},
       {"vocabulary": 50, "d": 9, "bags": 17, "length": 5},
       {"table": of("vocabulary d"), "word": of("bags length", (INDEX, "vocabulary")), "weight": of("bags length")},
       lambda d, table, word, weight: F.embedding_bag(word, table, mode="sum", per_sample_weights=weight))
unseen("interactions", {"b": 16000, "n": 27, "d": 128, "pairs": 351}, {"b": 7, "n": 5, "d": 9, "pairs": 10},
       {"x": of("b n d"), "first": of("pairs", pair(0)), "second": of("pairs", pair(1))},
       lambda d, x, first, second: torch.bmm(x, x.mT)[:, first, second], results=("z",), slack=1e-3)
unseen("edge_scores", {"edges": 4000000, "n": 100000, "heads": 8}, {"edges": 403, "n": 29, "heads": 3},
       {"source": of("edges", (INDEX, "n")), "target": of("edges", (INDEX, "n")), "left": of("n heads"),
       "right": of("n heads")},
       edge_scores, results=("alpha",))
unseen("mel_energies", {"frames": 60000, "bins": 513, "mels": 80}, {"frames": 37, "bins": 29, "mels": 11},
       {"spectrum": of("frames bins", "complex"), "bank": of("mels bins", "positive")}, mel_energies)
unseen("harris", {"h": 5000, "w": 6000}, TINY, {"x": of("h w")}, harris, values={"k": 0.05}, slack=1.0)


def more(name, dims, small, arrays, peer, **rest):
    add("unseen_2.krn", name, dims, small, arrays, peer, **rest)


class Boxes(Record):
    """Corners of boxes, the second one beyond the first."""

    def __init__(self):
        super().__init__("x0", "y0", "x1", "y1")

    def __call__(self, shape, dims, device):
        corner = torch.rand((*shape, 2), device=device)
        return torch.cat([corner, corner + 0.1 + torch.rand((*shape, 2), device=device)], -1)


def directions(shape, dims, device):
    return F.normalize(torch.randn(shape, device=device), dim=-1)


def spins(shape, dims, device):
    return torch.randint(0, 2, shape, device=device, dtype=torch.int8) * 2 - 1


def chains(shape, dims, device):
    """Four atoms in a row, from anywhere."""
    first = torch.randint(0, dims["n"], (shape[0], 1), device=device, dtype=torch.int32)
    return (first + torch.arange(4, device=device, dtype=torch.int32)) % dims["n"]


def steps(shape, dims, device):
    return 0.01 + 0.04 * torch.rand(shape, device=device)


def zeros(shape, dims, device):
    return torch.randint(-3, 4, shape, device=device, dtype=torch.int32)


def trmm(d, a, b):
    return torch.addmm(b, a.tril(-1).T, b, beta=1.5, alpha=1.5)


def angles(d, p):
    angle = torch.acos((p @ p.T).clamp(-1, 1))
    twice = torch.ones(d["n"], d["n"], dtype=torch.bool, device=p.device).tril()
    return torch.histc(angle.masked_fill(twice, -1.0), 64, 0, math.pi)


def cutoff_potential(d, atom, v):
    x, y, z = (0.5 * torch.arange(d[name], device=v.device)[:, None] for name in ("w", "h", "d"))
    dx, dy, dz = atom[:, 0] - x, atom[:, 1] - y, atom[:, 2] - z
    r2 = (dz * dz)[:, None, None] + (dy * dy)[None, :, None] + (dx * dx)[None, None]
    term = atom[:, 3] * torch.rsqrt(r2 + 1e-3) * (1 - r2 / 64).clamp(min=0).square()
    return v + term.sum(-1)


def haar(d, x):
    a, b = x.unflatten(1, (-1, 2)).unbind(-1)
    return 0.70710678 * (a + b), 0.70710678 * (a - b)


def suppressed(d, box):
    low, high = box[:, :2], box[:, 2:]
    area = (high - low).prod(1)
    sides = (torch.minimum(high[:, None], high) - torch.maximum(low[:, None], low)).clamp(min=0)
    both = sides[..., 0] * sides[..., 1]
    return (both / (area[:, None] + area - both) > 0.3).triu(1).to(torch.uint8)


def page_rank_step(d, source, target, rank):
    links = torch.zeros_like(rank).index_add_(0, source, torch.ones(d["edges"], device=rank.device))
    share = rank / links.clamp(min=1)
    gathered = torch.zeros_like(rank).index_add_(0, target, share.index_select(0, source))
    return 0.15 / d["n"] + 0.85 * gathered


POINTS = 1 << 20


def sobol(d, direction):
    i = torch.arange(POINTS, device=direction.device)
    grey = i ^ (i >> 1)
    word = torch.zeros(POINTS, d["dims"], dtype=torch.int64, device=direction.device)
    for bit in range(32):
        word ^= ((grey >> bit) & 1)[:, None] * (direction[:, bit].long() & 0xFFFFFFFF)
    return word.float() / 4294967296.0


def normalized_adjacency(d, a):
    scale = torch.rsqrt(1 + a.sum(1))
    return (a + torch.eye(d["n"], device=a.device)) * scale[:, None] * scale


def kernel_density(d, at, sample):
    t = (at[:, None] - sample) / 0.1
    return torch.exp(-0.5 * t * t).sum(1) / (d["n"] * 0.1 * math.sqrt(2 * math.pi))


def mahalanobis(d, x, mean, precision):
    c = x - mean
    return ((c @ precision) * c).sum(1)


def unpack_int4(d, packed, scale):
    q = torch.stack([packed & 15, packed >> 4], -1).flatten(1).half() - 8
    return (q.unflatten(1, (-1, 64)) * scale[..., None]).flatten(1)


def block_scales(d, x):
    h, w = x.shape
    blocks = F.pad(x, (0, -w % 128, 0, -h % 128)).unflatten(1, (-1, 128)).unflatten(0, (-1, 128))
    scale = blocks.abs().amax((1, 3)).clamp(min=1e-6) / 448
    each = scale.repeat_interleave(128, 0)[:h].repeat_interleave(128, 1)[:, :w]
    return scale, (x / each).bfloat16()


def binomial_step(d, value, spot, strike):
    hold = 0.999 * (0.51 * value[:, 1:] + 0.49 * value[:, :-1])
    growth = 1.01 ** torch.arange(1 - d["n"], d["n"], 2, device=value.device, dtype=torch.float32)
    return torch.maximum(hold, strike[:, None] - spot[:, None] * growth)


def basket_payoff(d, z, lower, spot, volatility):
    growth = torch.exp(volatility * (z @ lower.tril().T) - 0.5 * volatility * volatility)
    payoff = F.relu((growth @ spot) / d["assets"] - 0.25)
    return payoff.mean().reshape(1), (payoff.std() / math.sqrt(d["paths"])).reshape(1)


def maxwell_curl(d, e, b):
    x, y, z = e.unbind(-1)

    def along(v, axis):
        return v.roll(-1, axis) - v

    curl = (along(z, 1) - along(y, 0), along(x, 0) - along(z, 2), along(y, 2) - along(x, 1))
    return b - 0.1 * torch.stack(curl, -1)


def ising(d, spin, u):
    p = F.pad(spin, (1, 1, 1, 1))
    around = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]
    i, j = (torch.arange(d[name], device=spin.device) for name in ("h", "w"))
    turns = ((i[:, None] + j) % 2 == 0) & (u < torch.exp(-0.8 * (spin * around)))
    spin.copy_(torch.where(turns, -spin, spin))
    return spin


def dihedrals(d, at, quad):
    a, b, c, e = at[quad].unbind(1)
    u, v, w = b - a, c - b, e - c
    uv, vw = torch.linalg.cross(u, v), torch.linalg.cross(v, w)
    return torch.atan2(torch.linalg.vector_norm(v, dim=1) * (u * vw).sum(1), (uv * vw).sum(1))


def skewness_kurtosis(d, x):
    away = x - x.mean(1, keepdim=True)
    square = away * away
    m2 = square.mean(1) + 1e-6
    return (square * away).mean(1) / m2**1.5, (square * square).mean(1) / (m2 * m2) - 3


@functools.cache
def gauss(device):
    return torch.tensor([1.0, 4.0, 6.0, 4.0, 1.0], device=device) / 16


def unsharp_mask(d, x):
    g = gauss(x.device)[None, None, None]
    blurred = F.conv2d(F.conv2d(x[:, None], g, padding=(0, 2)), g.mT, padding=(2, 0))[:, 0]
    return (x + 0.75 * (x - blurred)).clamp(-2, 2)


XYZ = Record("x", "y", "z")
more("trmm", {"m": 2500, "n": 3000}, MN, {"a": of("m m"), "b": of("m n")}, trmm, results=("c",), values={"alpha": 1.5},
     slack=1e-2)
more("angles", {"n": 16384}, {"n": 203}, {"p": of("n 3", directions)}, angles, results=("h",), slack=3.0)
more("cutoff_potential", {"atoms": 2000, "d": 60, "h": 64, "w": 72}, {"atoms": 37, "d": 5, "h": 7, "w": 11},
     {"atom": of("atoms", Record("x", "y", "z", "q", low=0, high=32)), "v": of("d h w")}, cutoff_potential,
     results=("v",), values={"spacing": 0.5, "cutoff": 8.0}, slack=1e-2)
more("haar", {"rows": 5000, "n": 8000}, {"rows": 37, "n": 53},
     {"x": (lambda d: (d["rows"], 2 * d["n"]), torch.float32)},
     haar, results=("low", "high"))
more("suppressed", {"n": 10000}, {"n": 103}, {"box": of("n", Boxes())}, suppressed, results=("mask",),
     values={"threshold": 0.3})
more("page_rank_step", {"n": 1000000, "edges": 20000000}, {"n": 37, "edges": 403},
     {"source": of("edges", (torch.int32, "n")), "target": of("edges", (torch.int32, "n")),
     "rank": of("n", "positive")},
     page_rank_step, results=("next",))
more("sobol", {"dims": 40}, {"dims": 3}, {"direction": of("dims 32", torch.int32)}, sobol, results=("x",),
     values={"n": POINTS})
more("normalized_adjacency", {"n": 9000}, {"n": 53}, {"a": of("n n", "positive")}, normalized_adjacency)
more("kernel_density", {"m": 30000, "n": 20000}, {"m": 37, "n": 103}, {"at": of("m"), "sample": of("n")},
     kernel_density,
     results=("p",), values={"width": 0.1})
more("mahalanobis", {"n": 1 << 20, "d": 64}, {"n": 203, "d": 13},
     {"x": of("n d"), "mean": of("d"), "precision": of("d d")},
     mahalanobis, slack=1e-2)
more("unpack_int4", {"n": 8192, "groups": 160}, {"n": 37, "groups": 3},
     {"packed": (lambda d: (d["n"], 32 * d["groups"]), torch.uint8), "scale": of("n groups", torch.float16)},
     unpack_int4,
     results=("w",))
more("fake_quantize", {"b": 32, "c": 100, "p": 14000}, {"b": 3, "c": 5, "p": 77},
     {"x": of("b c p"), "scale": of("c", steps), "zero": of("c", zeros)},
     lambda d, x, scale, zero: torch.fake_quantize_per_channel_affine(x, scale, zero.float(), 1, -128, 127))
more("block_scales", {"h": 8000, "w": 7000}, {"h": 137, "w": 259}, {"x": of("h w")}, block_scales,
     results=("scale", "y"),
     slack=2.0)
more("binomial_step", {"options": 30000, "n": 1500}, {"options": 37, "n": 53},
     {"value": of("options n+1"), "spot": of("options", "positive"), "strike": of("options", "positive")},
     binomial_step,
     values={"up": 1.01, "p": 0.51, "discount": 0.999})
more("basket_payoff", {"paths": 1000000, "assets": 60}, {"paths": 403, "assets": 7},
     {"z": of("paths assets"), "lower": (lambda d: (d["assets"], d["assets"]), steps), "spot": of("assets", "positive"),
      "volatility": of("assets", "positive")}, basket_payoff, results=("price", "error"), values={"strike": 0.25})
more("maxwell_curl", {"d": 250, "h": 240, "w": 260}, {"d": 5, "h": 7, "w": 11},
     {"e": of("d h w", XYZ), "b": of("d h w", XYZ)},
     maxwell_curl, results=("next",), values={"dt": 0.1})
more("ising", {"h": 10000, "w": 12000}, TINY, {"spin": of("h w", spins), "u": of("h w", "positive")}, ising,
     results=("spin",), values={"colour": 0, "beta": 0.4}, slack=0.0)
more("dihedrals", {"n": 1000000, "m": 8000000}, {"n": 1000, "m": 203}, {"at": of("n", XYZ), "quad": of("m 4", chains)},
     dihedrals, results=("angle",), slack=1e-3)
more("bootstrap_means", {"n": 50000, "b": 2000, "m": 50000}, {"n": 103, "b": 37, "m": 53},
     {"x": of("n"), "pick": of("b m", (torch.int32, "n"))}, lambda d, x, pick: x[pick].mean(1), results=("mean",))
more("skewness_kurtosis", {"rows": 12000, "cols": 5000}, {"rows": 37, "cols": 53}, {"x": of("rows cols")},
     skewness_kurtosis,
     results=("skewness", "kurtosis"), slack=1e-3)
more("unsharp_mask", {"b": 24, "h": 1080, "w": 1920}, {"b": 2, "h": 7, "w": 11}, {"x": of("b h w")}, unsharp_mask,
     values={"amount": 0.75})
more("windowed_dct", {"t": 100000, "k": 64}, {"t": 5, "k": 7},
     {"signal": (lambda d: (256 * d["t"] + 256,), torch.float32), "window": of("512"), "basis": of("k 512")},
     lambda d, signal, window, basis: (signal.unfold(0, 512, 256) * window) @ basis.T, slack=1e-2)
more("conv_transposed_clamp", {"b": 16, "c": 64, "o": 64, "h": 60, "w": 64}, {"b": 2, "c": 3, "o": 5, "h": 7, "w": 11},
     {"x": of("b c h w"), "f": of("c o 4 4"), "bias": of("o")},
     lambda d, x, f, bias: F.conv_transpose2d(x, f, bias, stride=2, padding=1).clamp(0, 1), slack=1e-3)
more("conv_3d_softmax", {"b": 8, "c": 24, "o": 32, "d": 16, "h": 60, "w": 60},
     {"b": 2, "c": 3, "o": 5, "d": 4, "h": 5, "w": 7},
     {"x": of("b c d+2 h+2 w+2"), "f": of("o c 3 3 3"), "bias": of("o")},
     lambda d, x, f, bias: F.conv3d(x, f, bias).softmax(1), slack=1e-3)
more("linear_log_sum_exp", {"m": 4000, "k": 2048, "n": 8000}, {"m": 37, "k": 53, "n": 29},
     {"x": of("m k", torch.float16), "w": of("n k", torch.float16), "bias": of("n", torch.float16)},
     lambda d, x, w, bias: F.leaky_relu(F.linear(x, w, bias).float().logsumexp(1)), slack=2e-1)

UNSEEN = WORKLOADS[SEEN:]
