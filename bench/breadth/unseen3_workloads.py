"""Workloads of `breadth.py`, a third set: fused layers, small systems, grids, graphs, formats, losses and gradients."""

import functools
import math

import torch
import torch.nn.functional as F
from unseen_workloads import HALF, MN, TINY, WORKLOADS, Record, add, of

F16 = torch.float16
INT = torch.int32
LONG = torch.int64


def third(name, dims, small, arrays, peer, **more):
    add("unseen_3.krn", name, dims, small, arrays, peer, **more)


def shaped(shape, kind=torch.float32):
    """An array whose shape is any function of the dimensions."""
    return shape, kind


def between(low, high):
    return lambda shape, dims, device: low + (high - low) * torch.rand(shape, device=device)


def integers(low, high, kind):
    return lambda shape, dims, device: torch.randint(low, high, shape, device=device, dtype=kind)


def weights(shape, dims, device):
    """Filters and matrices in proportion to what they sum over."""
    return torch.randn(shape, device=device) / math.sqrt(math.prod(shape[1:]))


def nearly_upright(shape, dims, device):
    """Matrices that turn and shift an image a little."""
    return torch.eye(2, 3, device=device) + 0.2 * torch.randn(shape, device=device)


def places_or_none(shape, dims, device):
    return torch.randint(-1, dims["n"], shape, device=device, dtype=INT)


def cosines(shape, dims, device):
    k, t = torch.arange(8, device=device)[:, None], torch.arange(8, device=device)
    basis = 0.5 * torch.cos(math.pi / 16 * (2 * t + 1) * k)
    return torch.where(k == 0, basis * math.sqrt(0.5), basis).contiguous()


# Layers.


def linear_residual_layer_norm(d, x, w, bias, residual, gain, shift):
    return F.layer_norm(residual + F.linear(x, w, bias), (d["n"],), gain, shift)


def linear_batch_norm_gelu(d, x, w, bias, gain, shift):
    return F.relu(F.gelu(F.batch_norm(F.linear(x, w, bias), None, None, gain, shift, training=True)))


third("linear_residual_layer_norm", {"m": 6000, "k": 3000, "n": 1536}, {"m": 37, "k": 53, "n": 29},
      {"x": of("m k", F16), "w": of("n k", F16), "bias": of("n", F16), "residual": of("m n", F16), "gain": of("n", F16),
       "shift": of("n", F16)}, linear_residual_layer_norm, slack=2e-2)
third("conv_min_tanh", {"b": 32, "c": 32, "o": 48, "h": 100, "w": 120}, {"b": 2, "c": 3, "o": 5, "h": 7, "w": 11},
      {"x": of("b c h+2 w+2"), "f": of("o c 3 3", weights), "bias": of("o")},
      lambda d, x, f, bias: F.conv2d(x, f, bias).amin(1).tanh().tanh(), slack=1e-3)
third("transposed_conv_tanh", {"b": 16, "c": 64, "o": 48, "h": 60, "w": 70}, {"b": 2, "c": 3, "o": 5, "h": 7, "w": 11},
      {"x": of("b c h w"), "f": of("c o 3 3", weights), "bias": of("o")},
      lambda d, x, f, bias: torch.tanh(
          F.conv_transpose2d(x, f, stride=2, padding=1, output_padding=1) - bias[:, None, None]), slack=1e-3)
third("conv_hard_swish_pool_mish", {"b": 32, "c": 32, "o": 64, "h": 92, "w": 92},
      {"b": 2, "c": 3, "o": 5, "h": 8, "w": 12},
      {"x": of("b c h+2 w+2"), "f": of("o c 3 3", weights), "bias": of("o")},
      lambda d, x, f, bias: F.mish(F.max_pool2d(F.hardswish(F.conv2d(x, f, bias) - 0.5), 2)), values={"less": 0.5},
      slack=1e-3)
third("linear_batch_norm_gelu", {"m": 3000, "k": 1536, "n": 2000}, {"m": 37, "k": 53, "n": 29},
      {"x": of("m k"), "w": of("n k"), "bias": of("n"), "gain": of("n"), "shift": of("n")}, linear_batch_norm_gelu,
      slack=1e-2)

# Dense linear algebra.


def householder(d, a, v):
    return a.addr_(v, v @ a, alpha=-0.1)


def damped_least_squares(d, jac, e):
    """The method of Cholesky by columns, over all problems at once."""
    h = (jac.mT @ jac).permute(1, 2, 0)
    g = (jac.mT @ e[..., None])[..., 0].T
    low = {}
    for k in range(6):
        for p in range(k, 6):
            t = h[p, k] + (2.0 if p == k else 0.0)
            for q in range(k):
                t = t - low[p, q] * low[k, q]
            low[p, k] = torch.sqrt(t) if p == k else t / low[k, k]
    z = []
    for p in range(6):
        t = g[p]
        for q in range(p):
            t = t - low[p, q] * z[q]
        z.append(t / low[p, p])
    for p in reversed(range(6)):
        t = z[p]
        for q in range(p + 1, 6):
            t = t - low[q, p] * z[q]
        z[p] = t / low[p, p]
    return torch.stack(z, 1)


third("quadratic_forms", {"b": 20000, "n": 100}, {"b": 37, "n": 29}, {"a": of("b n n"), "x": of("b n")},
      lambda d, a, x: (torch.bmm(a, x[:, :, None])[:, :, 0] * x).sum(1), results=("q",), slack=1e-2)
third("kronecker", {"m": 120, "n": 100, "p": 90, "q": 60}, {"m": 3, "n": 5, "p": 7, "q": 4},
      {"a": of("m n"), "b": of("p q")}, lambda d, a, b: torch.kron(a, b))
third("householder", {"m": 9000, "n": 7000}, MN, {"a": of("m n"), "v": of("m")}, householder, results=("a",),
      values={"tau": 0.1}, slack=1e-2)
third("damped_least_squares", {"b": 200000, "r": 20}, {"b": 53, "r": 9}, {"jac": of("b r 6"), "e": of("b r")},
      damped_least_squares, results=("x",), values={"damping": 2.0}, slack=1e-3)
third("mttkrp", {"m": 300, "n": 280, "p": 260, "r": 32}, {"m": 11, "n": 13, "p": 17, "r": 5},
      {"x": of("m n p"), "b": of("n r"), "c": of("p r")},
      lambda d, x, b, c: torch.einsum("ijk,jr,kr->ir", x, b, c), slack=1e-2)

# Statistics.


def shrunk_group_moments(d, x, weight, group, prior):
    nothing = torch.zeros_like(prior)
    total = 2 + nothing.index_add(0, group, weight)
    mean = (2 * prior + nothing.index_add(0, group, weight * x)) / total
    away = x - mean.index_select(0, group)
    return mean, nothing.index_add(0, group, weight * away * away) / total


def mixture_log_likelihood(d, x, mean, precision, log_weight):
    square = (x * x) @ precision.T - 2 * (x @ (precision * mean).T) + (precision * mean * mean).sum(1)
    offset = log_weight + 0.5 * precision.log().sum(1) - 0.5 * math.log(2 * math.pi) * d["d"]
    return torch.logsumexp(offset - 0.5 * square, 1)


def distance_covariance(d, x, y):
    def centred(v):
        a = torch.cdist(v, v, compute_mode="donot_use_mm_for_euclid_dist")
        rows = a.mean(1)
        return a - rows[:, None] - rows + rows.mean()

    return (centred(x) * centred(y)).mean()


third("shrunk_group_moments", {"n": 20000000, "groups": 5000}, {"n": 403, "groups": 11},
      {"x": of("n"), "weight": of("n", "positive"), "group": of("n", (INT, "groups")), "prior": of("groups")},
      shrunk_group_moments, results=("mean", "variance"), values={"strength": 2.0}, slack=1e-3)
third("mixture_log_likelihood", {"n": 500000, "d": 24, "k": 60}, {"n": 203, "d": 5, "k": 7},
      {"x": of("n d"), "mean": of("k d"), "precision": of("k d", "positive"), "log_weight": of("k")},
      mixture_log_likelihood, results=("score",), slack=1e-2)
third("distance_covariance", {"n": 6000, "d": 8, "e": 5}, {"n": 103, "d": 4, "e": 3}, {"x": of("n d"), "y": of("n e")},
      distance_covariance, results=("covariance",), slack=1e-3)

# Images.


def affine_warp(d, x, m):
    return F.grid_sample(x, F.affine_grid(m, x.shape, align_corners=True), align_corners=True)


@functools.cache
def mosaic(h, w, device):
    """Where a sensor sees red, green and blue, and what spreads each colour."""
    i, j = torch.arange(h, device=device)[:, None] % 2, torch.arange(w, device=device) % 2
    sees = torch.stack([(i == 0) & (j == 0), i != j, (i == 1) & (j == 1)]).float()
    sides = torch.tensor([[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]], device=device) / 4
    cross = torch.tensor([[0.0, 1.0, 0.0], [1.0, 4.0, 1.0], [0.0, 1.0, 0.0]], device=device) / 4
    return sees, torch.stack([sides, cross, sides])[:, None]


def demosaic(d, raw):
    sees, spread = mosaic(d["h"], d["w"], raw.device)
    return F.conv2d((raw * sees)[None], spread, padding=1, groups=3)[0]


def colour_histogram(d, x):
    r, g, b = (x >> 5).int().unbind(-1)
    return torch.histc(((r * 8 + g) * 8 + b).float(), 512, 0, 512)


def census(d, x):
    p = F.pad(x.float()[None, None], (2, 2, 2, 2), mode="replicate")[0, 0].to(torch.uint8)
    word = torch.zeros(x.shape, dtype=INT, device=x.device)
    for i in range(5):
        for j in range(5):
            word = (word << 1) | (p[i : i + d["h"], j : j + d["w"]] < x)
    return word


third("affine_warp", {"b": 16, "c": 3, "h": 720, "w": 1000}, {"b": 3, "c": 2, "h": 9, "w": 13},
      {"x": of("b c h w"), "m": of("b 2 3", nearly_upright)}, affine_warp, slack=1e-3)
third("demosaic", {"h": 6000, "w": 8000}, TINY, {"raw": of("h w")}, demosaic)
third("colour_histogram", {"n": 24000000}, {"n": 1003}, {"x": of("n", "pixel")}, colour_histogram, results=("h",),
      slack=0.5)
third("resize_area", {"b": 24, "h": 1080, "w": 1920}, {"b": 2, "h": 7, "w": 11}, {"x": of("b h w")},
      lambda d, x: F.adaptive_avg_pool2d(x, (450, 700)), values={"rows": 450, "cols": 700})
third("census", {"h": 4000, "w": 6000}, TINY, {"x": of("h w", integers(0, 256, torch.uint8))}, census, slack=0.0)

# Simulations.


def cell_density(d, at):
    g = d["g"]
    p = F.pad(at, (0, 0, 0, 0, 1, 1, 1, 1, 1, 1))
    x, y, z, _ = (at[..., None, c] for c in range(4))
    density = torch.zeros_like(at[..., 0])
    for k in range(3):
        for i in range(3):
            for j in range(3):
                other = p[k : k + g, i : i + g, j : j + g, None]
                dx, dy, dz = other[..., 0] + (j - 1) - x, other[..., 1] + (i - 1) - y, other[..., 2] + (k - 1) - z
                near = (0.8 - dx * dx - dy * dy - dz * dz).clamp(min=0)
                density += (other[..., 3] * near**3).sum(-1)
    return density


def wave_3d(d, now, before, speed):
    p = F.pad(now, (4, 4, 4, 4, 4, 4))
    c = (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560)
    bend = 3 * c[0] * now
    for r in range(1, 5):
        for axis in range(3):
            for first in (4 - r, 4 + r):
                place = [slice(4, -4)] * 3
                place[axis] = slice(first, first + now.shape[axis])
                bend = bend + c[r] * p[tuple(place)]
    return 2 * now - before + speed * bend


def shallow_water(d, s):
    def along(s, this):
        depth, there = s[..., 0], s[..., 1 + this]
        flux = [there, there * s[..., 1] / depth, there * s[..., 2] / depth]
        flux[1 + this] = flux[1 + this] + 0.5 * depth * depth
        return torch.stack(flux, -1)

    north, south, west, east = s.roll(1, 0), s.roll(-1, 0), s.roll(1, 1), s.roll(-1, 1)
    change = along(east, 0) - along(west, 0) + along(south, 1) - along(north, 1)
    return 0.25 * (north + south + west + east) - 0.5 * 0.2 * change


def weno_advection(d, u):
    a, b, c, e, f = (u.roll(shift, 1) for shift in (2, 1, 0, -1, -2))
    rough = (13 / 12 * (a - 2 * b + c) ** 2 + 0.25 * (a - 4 * b + 3 * c) ** 2,
             13 / 12 * (b - 2 * c + e) ** 2 + 0.25 * (b - e) ** 2,
             13 / 12 * (c - 2 * e + f) ** 2 + 0.25 * (3 * c - 4 * e + f) ** 2)
    w0, w1, w2 = (share / (1e-3 + r) ** 2 for share, r in zip((0.1, 0.6, 0.3), rough))
    total = w0 * (2 * a - 7 * b + 11 * c) + w1 * (-b + 5 * c + 2 * e) + w2 * (2 * c + 5 * e - f)
    flux = total / (6 * (w0 + w1 + w2))
    return u - 0.4 * (flux - flux.roll(1, 1))


def gray_scott(d, u, v):
    def spread(x):
        return x.roll(1, 0) + x.roll(-1, 0) + x.roll(1, 1) + x.roll(-1, 1) - 4 * x

    a, b = u, v
    for _ in range(4):
        react = a * b * b
        a, b = (a + 0.16 * spread(a) - react + 0.035 * (1 - a), b + 0.08 * spread(b) + react - (0.035 + 0.06) * b)
    u.copy_(a)
    v.copy_(b)
    return u, v


third("cell_density", {"g": 40, "s": 10}, {"g": 4, "s": 5},
      {"at": of("g g g s", Record("x", "y", "z", "m", low=0.0, high=1.0))}, cell_density, results=("density",),
      values={"radius2": 0.8}, slack=1e-3)
third("wave_3d", {"d": 300, "h": 320, "w": 350}, {"d": 5, "h": 7, "w": 11},
      {name: of("d h w") for name in ("now", "before", "speed")}, wave_3d, results=("next",), slack=1e-3)
third("shallow_water", {"rows": 3000, "cols": 4000}, {"rows": 7, "cols": 11},
      {"s": of("rows cols", Record("h", "hu", "hv", low=0.5, high=1.5))}, shallow_water, results=("next",),
      values={"ratio": 0.2})
third("weno_advection", {"rings": 5000, "n": 6000}, {"rings": 5, "n": 29}, {"u": of("rings n")}, weno_advection,
      results=("next",), values={"courant": 0.4}, slack=1e-3)
third("gray_scott", {"h": 2000, "w": 2400}, TINY, {"u": of("h w", "positive"), "v": of("h w", "positive")}, gray_scott,
      results=("u", "v"), values={"feed": 0.035, "kill": 0.06, "steps": 4}, slack=1e-3)

# Signals.


@functools.cache
def taps(device):
    """Which of a frame's 171 samples each phase's filter begins with, and its taps behind that."""
    phase = torch.arange(160, device=device)[:, None]
    return phase * 147 // 160 + torch.arange(24, device=device)


def resample_polyphase(d, x, bank):
    filters = torch.zeros(160, 171, device=x.device).scatter_(1, taps(x.device), bank)
    return F.conv1d(x[:, None], filters[:, None], stride=147).mT.flatten(1)


def block_dct(d, x, basis, table):
    blocks = x.unflatten(1, (-1, 8)).unflatten(0, (-1, 8)).transpose(1, 2)
    whole = torch.round(basis @ blocks @ basis.T / table)
    return whole.transpose(1, 2).reshape(x.shape).to(torch.int16)


third("resample_polyphase", {"c": 64, "frames": 2000}, {"c": 2, "frames": 5},
      {"x": shaped(lambda d: (d["c"], 147 * d["frames"] + 24)), "bank": of("160 24")}, resample_polyphase, slack=1e-3)
third("block_dct", {"h": 4000, "w": 6000}, {"h": 16, "w": 40},
      {"x": of("h w", between(-128.0, 127.0)), "basis": of("8 8", cosines), "table": of("8 8", between(4.0, 60.0))},
      block_dct, slack=1.01)

# Sparse matrices and graphs.


def ell_jacobi(d, at, value, diagonal, right, x):
    gathered = x[at.clamp(min=0)].masked_fill(at < 0, 0.0)
    return (right - (value * gathered).sum(1)) / diagonal


def block_sparse_product(d, block, at, x):
    rows = block.transpose(1, 2).flatten(2)
    return torch.bmm(rows, x[at].flatten(1, 2))


def neighbour_max(d, source, target, x):
    each = target[:, None].expand(-1, d["c"])
    return torch.zeros_like(x).scatter_reduce_(0, each, x.index_select(0, source), "amax", include_self=False)


def ones_in(v):
    v = v - ((v >> 1) & 0x55555555)
    v = (v & 0x33333333) + ((v >> 2) & 0x33333333)
    return (((v + (v >> 4)) & 0x0F0F0F0F) * 0x01010101) >> 24


def edge_triangles(d, bits, a, b):
    common = ones_in(bits[a] & bits[b]).sum(1, dtype=INT)
    return common, common.sum(dtype=INT) // 3


third("ell_jacobi", {"n": 2000000, "k": 9}, {"n": 103, "k": 5},
      {"at": of("n k", places_or_none), "value": of("n k"), "diagonal": of("n", between(4.0, 6.0)), "right": of("n"),
       "x": of("n")}, ell_jacobi, results=("next",))
third("block_sparse_product", {"rows": 400, "k": 16, "columns": 500, "n": 500},
      {"rows": 5, "k": 3, "columns": 7, "n": 19},
      {"block": of("rows k 32 32"), "at": of("rows k", (INT, "columns")), "x": of("columns 32 n")},
      block_sparse_product, slack=1e-2)
third("neighbour_max", {"n": 200000, "c": 32, "edges": 2000000}, {"n": 103, "c": 9, "edges": 203},
      {"source": of("edges", (LONG, "n")), "target": of("edges", (LONG, "n")), "x": of("n c")}, neighbour_max)
third("edge_triangles", {"n": 50000, "words": 60, "edges": 1000000}, {"n": 37, "words": 3, "edges": 203},
      {"bits": of("n words", integers(-(1 << 31), 1 << 31, INT)), "a": of("edges", (INT, "n")),
       "b": of("edges", (INT, "n"))},
      edge_triangles, results=("common", "total"), slack=0.5)

# Formats.


def int8_group_linear(d, x, w, x_scale, w_scale):
    x, w = (v.float().unflatten(1, (-1, 128)) * scale[..., None] for v, scale in ((x, x_scale), (w, w_scale)))
    return x.flatten(1) @ w.flatten(1).T


def fp8_rows(d, x):
    scale = x.abs().amax(1).clamp(min=1e-12) / 448
    return (x / scale[:, None]).clamp(-448, 448).to(torch.float8_e4m3fn).half(), scale


def pack_bits(d, x, threshold):
    bits = (x > threshold[:, None]).unflatten(1, (-1, 32)).long()
    return (bits << torch.arange(32, device=x.device)).sum(-1)


third("int8_group_linear", {"m": 500, "n": 3000, "groups": 32}, {"m": 17, "n": 29, "groups": 3},
      {"x": shaped(lambda d: (d["m"], 128 * d["groups"]), integers(-128, 128, torch.int8)),
       "w": shaped(lambda d: (d["n"], 128 * d["groups"]), integers(-128, 128, torch.int8)),
       "x_scale": of("m groups", between(0.001, 0.01)), "w_scale": of("n groups", between(0.001, 0.01))},
      int8_group_linear, slack=1e-2)
third("fp8_rows", {"rows": 8000, "cols": 6000}, {"rows": 37, "cols": 53}, {"x": of("rows cols")}, fp8_rows,
      results=("y", "scale"))
third("pack_bits", {"rows": 10000, "words": 250}, {"rows": 37, "words": 3},
      {"x": shaped(lambda d: (d["rows"], 32 * d["words"])), "threshold": of("rows")}, pack_bits, results=("bits",),
      slack=0.5)

# Finance.


def bond_yields(d, price, coupon, periods):
    rate = torch.full_like(price, 0.02)
    for _ in range(5):
        factor = 1 / (1 + rate)
        discount = torch.ones_like(price)
        value, slope = torch.zeros_like(price), torch.zeros_like(price)
        for t in range(1, 41):
            runs = t <= periods
            discount = torch.where(runs, discount * factor, discount)
            paid = torch.where(runs, coupon * discount, 0.0)
            value = value + paid
            slope = slope - t * paid * factor
        value = value + 100 * discount
        slope = slope - 100 * periods * discount * factor
        rate = (rate - (value - price) / slope).clamp(-0.5, 2)
    return rate


def expected_shortfall(d, r, weight):
    loss = -(r.expm1() @ weight)
    beyond = loss > 0.1
    hits = beyond.sum()
    return torch.where(beyond, loss, 0.0).sum() / hits.clamp(min=1), hits / d["scenarios"]


third("bond_yields", {"n": 1000000}, {"n": 1003},
      {"price": of("n", between(80.0, 120.0)), "coupon": of("n", between(1.0, 5.0)),
       "periods": of("n", integers(1, 41, INT))},
      bond_yields)
third("expected_shortfall", {"scenarios": 1000000, "assets": 100}, {"scenarios": 403, "assets": 7},
      {"r": of("scenarios assets", between(-0.2, 0.2)), "weight": of("assets")}, expected_shortfall,
      results=("tail", "share"), values={"threshold": 0.1})

# Losses and gradients.


def all_triplets(d, x, label):
    far = torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist")
    alike = label[:, None] == label
    other = ~torch.eye(d["n"], dtype=torch.bool, device=x.device)
    counts = (alike & other)[:, :, None] & ~alike[:, None]
    terms = torch.where(counts, F.relu(far[:, :, None] - far[:, None] + 0.5), 0.0)
    return terms.sum() / (terms > 0).sum().clamp(min=1)


def batch_norm_backward(d, x, dy, mean, rstd, gain):
    return torch.ops.aten.native_batch_norm_backward(
        dy, x, gain, None, None, mean, rstd, True, 1e-5, [True, True, True])


def embedding_step(d, w, word, dy):
    times = torch.zeros(d["vocabulary"], device=w.device).index_add_(0, word, torch.ones(d["m"], device=w.device))
    return w.index_add_(0, word, dy / times[word][:, None], alpha=-0.1)


third("all_triplets", {"n": 400, "d": 100}, {"n": 37, "d": 11},
      {"x": of("n d"), "label": of("n", integers(0, 8, INT))}, all_triplets, results=("loss",), values={"margin": 0.5},
      slack=1e-3)
third("batch_norm_backward", {"b": 32, "c": 96, "p": 3500}, {"b": 3, "c": 5, "p": 77},
      {"x": of("b c p"), "dy": of("b c p"), "mean": of("c"), "rstd": of("c", between(0.5, 1.5)), "gain": of("c")},
      batch_norm_backward, results=("dx", "dgain", "dshift"), slack=1e-2)
third("embedding_step", {"vocabulary": 50000, "d": 250, "m": 100000}, {"vocabulary": 29, "d": 13, "m": 103},
      {"w": of("vocabulary d"), "word": of("m", (INT, "vocabulary")), "dy": of("m d")}, embedding_step,
      results=("w",), values={"rate": 0.1})
third("depthwise_weight_gradient", {"b": 32, "c": 120, "h": 56, "w": 60}, {"b": 3, "c": 5, "h": 7, "w": 11},
      {"x": of("b c h+2 w+2"), "dy": of("b c h w")},
      lambda d, x, dy: torch.nn.grad.conv2d_weight(x, (d["c"], 1, 3, 3), dy, groups=d["c"]), results=("df",),
      slack=1e-3)

# Layouts.


@functools.cache
def colours(device):
    return torch.tensor([0.485, 0.456, 0.406], device=device), torch.tensor([0.229, 0.224, 0.225], device=device)


def patch_tokens(d, x):
    centre, width = colours(x.device)
    y = ((x / 255.0 - centre) / width).to(HALF)
    return y.unflatten(2, (-1, 16)).unflatten(1, (-1, 16)).permute(0, 1, 3, 5, 2, 4).contiguous()


third("patch_tokens", {"b": 400, "h": 14, "w": 21}, {"b": 2, "h": 2, "w": 3},
      {"x": shaped(lambda d: (d["b"], 16 * d["h"], 16 * d["w"]), "pixel")}, patch_tokens, slack=2e-2)
third("interleave_channels", {"b": 8, "c": 6, "n": 1500000}, {"b": 2, "c": 6, "n": 103},
      {"x": of("b c n"), "gain": of("c", between(0.1, 0.5))},
      lambda d, x, gain: (x * gain[:, None] * 32767).round().clamp(-32768, 32767).mT.contiguous().to(torch.int16),
      slack=1.01)
