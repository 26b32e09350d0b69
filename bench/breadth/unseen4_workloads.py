"""Workloads of `breadth.py`, a fourth set: chains of layers, narrow types, losses, grids, tables, small systems."""

import math

import torch
import torch.nn.functional as F
from unseen3_workloads import F16, INT, LONG, WORKLOADS, between, integers, shaped, weights
from unseen_workloads import HALF, MN, TINY, Record, add, of


def fourth(name, dims, small, arrays, peer, **more):
    add("unseen_4.krn", name, dims, small, arrays, peer, **more)


def narrow(make, kind):
    """The same numbers in another type."""
    return lambda shape, dims, device: make(shape, dims, device).to(kind)


def directions(shape, dims, device):
    """Vectors of length 1 along the last axis."""
    return F.normalize(torch.randn(shape, device=device), dim=-1)


def lengths(extent):
    """How many of an axis's elements count, at least one."""
    return lambda shape, dims, device: torch.randint(1, dims[extent] + 1, shape, device=device, dtype=INT)


# Layers in f32.


def conv_group_norm_pool_clamp(d, x, f, bias, gain, shift, scale):
    t = F.group_norm(F.conv2d(x, f, bias), 8, gain, shift) * scale[:, None, None]
    return F.max_pool2d(t, 2).clamp(0, 1)


def linear_swish_clamp_tanh(d, x, w, bias):
    return (F.silu(F.linear(x, w, bias)) / 2).clamp(-1, 1).tanh().clamp(-1, 1)


def conv_3d_min_softmax(d, x, f, bias):
    return F.conv3d(x, f, bias).amin(2).softmax(1)


def conv_transposed_mean_log_sum_exp(d, x, f, bias):
    return 10 * torch.logsumexp(F.conv_transpose2d(x, f).mean((2, 3)) + bias, 1)


def linear_mean_gelu_residual(d, x, w, bias, less):
    return x + F.gelu((F.linear(x, w, bias) - less).mean(1, keepdim=True))


def separable_block(d, x, depth, gain1, shift1, point, gain2, shift2):
    t = F.conv2d(x, depth[:, None], padding=1, groups=d["c"])
    t = F.relu6(gain1[:, None, None] * t + shift1[:, None, None])
    return x + gain2[:, None, None] * F.conv2d(t, point[:, :, None, None]) + shift2[:, None, None]


def eight(d):
    return (8 * d["size"],)


fourth("conv_group_norm_pool_clamp", {"b": 32, "c": 24, "size": 8, "h": 62, "w": 74},
       {"b": 2, "c": 3, "size": 2, "h": 8, "w": 12},
       {"x": of("b c h+2 w+2"), "f": shaped(lambda d: (8 * d["size"], d["c"], 3, 3), weights), "bias": shaped(eight),
        "gain": shaped(eight), "shift": shaped(eight), "scale": shaped(eight)}, conv_group_norm_pool_clamp, slack=1e-3)
fourth("linear_swish_clamp_tanh", {"m": 1100, "k": 2000, "n": 1900}, {"m": 37, "k": 53, "n": 29},
       {"x": of("m k"), "w": of("n k", weights), "bias": of("n")}, linear_swish_clamp_tanh, slack=1e-3)
fourth("conv_3d_min_softmax", {"b": 24, "c": 4, "o": 24, "d": 18, "h": 30, "w": 34},
       {"b": 2, "c": 3, "o": 5, "d": 4, "h": 7, "w": 11},
       {"x": of("b c d+2 h+2 w+2"), "f": of("o c 3 3 3", weights), "bias": of("o")}, conv_3d_min_softmax, slack=1e-3)
fourth("conv_transposed_mean_log_sum_exp", {"b": 32, "c": 32, "o": 48, "h": 63, "w": 61},
       {"b": 3, "c": 3, "o": 5, "h": 7, "w": 11}, {"x": of("b c h w"), "f": of("c o 3 3", weights), "bias": of("o")},
       conv_transposed_mean_log_sum_exp, slack=1e-3)
fourth("linear_mean_gelu_residual", {"m": 2000, "k": 1300, "n": 1500}, {"m": 37, "k": 53, "n": 29},
       {"x": of("m k"), "w": of("n k", weights), "bias": of("n"), "less": of("n")}, linear_mean_gelu_residual,
       slack=1e-3)
fourth("separable_block", {"b": 48, "c": 60, "h": 57, "w": 59}, {"b": 2, "c": 5, "h": 7, "w": 11},
       {"x": of("b c h w"), "depth": of("c 3 3", weights), "gain1": of("c"), "shift1": of("c"),
        "point": of("c c", weights), "gain2": of("c"), "shift2": of("c")}, separable_block, slack=1e-3)

# Narrow types.


def geglu_packed(d, x, w, bias):
    value, gate = F.linear(x, w, bias).chunk(2, 1)
    return value * F.gelu(gate, approximate="tanh")


def alibi_weights(d, q, k, slope, length):
    i, j = torch.arange(d["t"], device=q.device)[:, None], torch.arange(d["s"], device=q.device)
    score = 0.125 * (q @ k.mT).float() - slope[:, None, None] * (i - j).abs()
    return score.masked_fill(j >= length[:, None, None, None], -math.inf).softmax(-1).half()


def rms_norm_linear(d, x, gain, w):
    return F.linear(F.rms_norm(x, (d["k"],), gain, 1e-6), w)


def layer_scale_residual(d, stream, x, w, bias, gamma):
    return stream.addcmul_(gamma, F.linear(x, w) + bias)


def grouped_decode(d, q, k, v, length):
    mask = torch.arange(d["s"], device=q.device) < length[:, None, None, None]
    return F.scaled_dot_product_attention(q, k.transpose(1, 2), v.transpose(1, 2), mask, scale=0.1)


fourth("geglu_packed", {"m": 4000, "k": 2000, "n": 2700}, {"m": 37, "k": 53, "n": 29},
       {"x": of("m k", HALF), "w": shaped(lambda d: (2 * d["n"], d["k"]), narrow(weights, HALF)),
        "bias": shaped(lambda d: (2 * d["n"],), HALF)}, geglu_packed, slack=5e-2)
fourth("alibi_weights", {"b": 4, "heads": 12, "t": 700, "s": 750, "d": 64},
       {"b": 2, "heads": 3, "t": 11, "s": 13, "d": 5},
       {"q": of("b heads t d", F16), "k": of("b heads s d", F16), "slope": of("heads", between(0.01, 0.5)),
        "length": of("b", lengths("s"))}, alibi_weights, results=("p",), values={"scale": 0.125}, slack=2e-3)
fourth("rms_norm_linear", {"m": 3000, "k": 2560, "n": 3100}, {"m": 37, "k": 53, "n": 29},
       {"x": of("m k", HALF), "gain": of("k", HALF), "w": of("n k", narrow(weights, HALF))}, rms_norm_linear,
       slack=5e-2)
fourth("layer_scale_residual", {"m": 5000, "k": 1400, "n": 2800}, {"m": 37, "k": 53, "n": 29},
       {"stream": of("m n"), "x": of("m k", F16), "w": of("n k", narrow(weights, F16)), "bias": of("n"),
        "gamma": of("n", between(0.01, 0.1))}, layer_scale_residual, results=("stream",), slack=2e-3)
fourth("grouped_decode", {"b": 14, "heads": 4, "group": 6, "s": 3000, "d": 128},
       {"b": 2, "heads": 3, "group": 2, "s": 13, "d": 8},
       {"q": of("b heads group d", HALF), "k": of("b s heads d", HALF), "v": of("b s heads d", HALF),
        "length": of("b", lengths("s"))}, grouped_decode, results=("o",), values={"scale": 0.1}, slack=2e-2)

# Rows and columns.


def capped_softmax(d, x, bias):
    return (30 * torch.tanh((x + bias) / 30)).softmax(1)


def weight_norm_columns(d, v, g):
    return v * (g / torch.linalg.vector_norm(v, dim=0))


def top_two(d, x):
    value, place = x.topk(2, 1)
    return value[:, 0], value[:, 1], place[:, 0]


def clip_loss(d, a, b):
    score = F.normalize(a, dim=1) @ F.normalize(b, dim=1).T / 0.1
    both = torch.logsumexp(score, 1) + torch.logsumexp(score, 0)
    return (0.5 * both - score.diagonal()).mean()


def dice_loss(d, x, label):
    share = x.softmax(1)
    here = (label[:, None] == torch.arange(d["c"], device=x.device)[:, None]).float()
    hit, mass, many = (share * here).sum((0, 2)), share.sum((0, 2)), here.sum((0, 2))
    return 1 - ((2 * hit + 1) / (mass + many + 1)).mean()


fourth("capped_softmax", {"rows": 9000, "cols": 3001}, {"rows": 37, "cols": 53},
       {"x": of("rows cols"), "bias": of("cols")}, capped_softmax, values={"cap": 30.0})
fourth("weight_norm_columns", {"m": 5000, "n": 7003}, MN, {"v": of("m n"), "g": of("n")}, weight_norm_columns,
       results=("w",))
fourth("top_two", {"rows": 40000, "cols": 1009}, {"rows": 37, "cols": 53}, {"x": of("rows cols")}, top_two,
       results=("first", "second", "place"))
fourth("clip_loss", {"n": 4001, "d": 200}, {"n": 103, "d": 29}, {"a": of("n d"), "b": of("n d")}, clip_loss,
       results=("loss",), values={"temperature": 0.1}, slack=1e-3)
fourth("dice_loss", {"b": 8, "c": 19, "p": 300 * 401}, {"b": 2, "c": 5, "p": 203},
       {"x": of("b c p"), "label": of("b p", (LONG, "c"))}, dice_loss, results=("loss",))

# Grids.


def perona_malik_3d(d, u):
    p = F.pad(u[None, None], (1, 1, 1, 1, 1, 1), mode="replicate")[0, 0]
    flow = torch.zeros_like(u)
    for axis in range(3):
        for first in (0, 2):
            place = [slice(1, -1)] * 3
            place[axis] = slice(first, first + u.shape[axis])
            away = p[tuple(place)] - u
            flow = flow + away * torch.exp(-((away / 0.8) ** 2))
    return u + 0.1 * flow


def burgers_mac_cormack(d, u, v):
    def bend(x):
        return x.roll(1, 0) + x.roll(-1, 0) + x.roll(1, 1) + x.roll(-1, 1) - 4 * x

    def forward(x):
        return u * (x.roll(-1, 1) - x) + v * (x.roll(-1, 0) - x)

    bend_u, bend_v = bend(u), bend(v)
    a, b = u - 0.2 * forward(u) + 0.05 * bend_u, v - 0.2 * forward(v) + 0.05 * bend_v

    def backward(x):
        return a * (x - x.roll(1, 1)) + b * (x - x.roll(1, 0))

    return 0.5 * (u + a - 0.2 * backward(a) + 0.05 * bend_u), 0.5 * (v + b - 0.2 * backward(b) + 0.05 * bend_v)


def ssim_map(d, x, y):
    mx, my, sx, sy, both = F.avg_pool2d(torch.stack([x, y, x * x, y * y, x * y], 1), 7, 1).unbind(1)
    above = (2 * mx * my + 1e-4) * (2 * (both - mx * my) + 9e-4)
    return above / ((mx * mx + my * my + 1e-4) * (sx - mx * mx + sy - my * my + 9e-4))


def morphological_gradient(d, x):
    x = x.half()[None, None]
    return (F.max_pool2d(x, 5, 1, 2) + F.max_pool2d(-x, 5, 1, 2))[0, 0].to(torch.uint8)


def pressure_step(d, p, divergence, solid):
    wide, walls = F.pad(p, (1, 1, 1, 1, 1, 1)), F.pad(solid, (1, 1, 1, 1, 1, 1), value=1) != 0
    around = torch.zeros_like(p)
    for axis in range(3):
        for first in (0, 2):
            place = [slice(1, -1)] * 3
            place[axis] = slice(first, first + p.shape[axis])
            around = around + torch.where(walls[tuple(place)], p, wide[tuple(place)])
    return torch.where(solid != 0, 0.0, (around - divergence) / 6)


def mostly_open(shape, dims, device):
    return (torch.rand(shape, device=device) < 0.1).to(torch.uint8)


fourth("perona_malik_3d", {"d": 200, "h": 210, "w": 230}, {"d": 5, "h": 7, "w": 11}, {"u": of("d h w")},
       perona_malik_3d, results=("next",), values={"kappa": 0.8, "rate": 0.1})
fourth("burgers_mac_cormack", {"h": 3001, "w": 3500}, TINY, {"u": of("h w"), "v": of("h w")}, burgers_mac_cormack,
       results=("next_u", "next_v"), values={"ratio": 0.2, "nu": 0.05})
fourth("ssim_map", {"b": 6, "h": 1000, "w": 1301}, {"b": 2, "h": 7, "w": 11},
       {"x": of("b h+6 w+6", "positive"), "y": of("b h+6 w+6", "positive")}, ssim_map, results=("alike",), slack=1e-3)
fourth("morphological_gradient", {"h": 5000, "w": 7001}, TINY, {"x": of("h w", integers(0, 256, torch.uint8))},
       morphological_gradient, slack=0.0)
fourth("pressure_step", {"d": 180, "h": 200, "w": 257}, {"d": 5, "h": 7, "w": 11},
       {"p": of("d h w"), "divergence": of("d h w"), "solid": of("d h w", mostly_open)}, pressure_step,
       results=("next",))

# Sparse matrices, graphs, tables.


def row_starts(shape, dims, device):
    """Rows of different lengths: where they begin, from 0 to all entries."""
    share = torch.linspace(0, 1, shape[0], device=device, dtype=torch.float64)
    return (dims["nnz"] * (0.5 * share + 0.5 * share * share)).round().to(INT)


def csr_times_dense(d, start, column, value, x):
    return torch.sparse_csr_tensor(start, column, value, (d["m"], d["n"])) @ x


def graphs_in_order(shape, dims, device):
    return (torch.arange(dims["n"], device=device) * dims["graphs"] // dims["n"]).to(INT)


def graph_sizes(shape, dims, device):
    return torch.bincount(graphs_in_order((), dims, device), minlength=dims["graphs"]).to(INT)


def graph_norm(d, x, graph, size, part, gain, shift):
    nothing = torch.zeros(d["graphs"], d["c"], device=x.device)
    mean = nothing.index_add(0, graph, x) / size[:, None]
    away = x - part * mean.index_select(0, graph)
    variance = nothing.index_add(0, graph, away * away) / size[:, None]
    return gain * away * torch.rsqrt(variance + 1e-5).index_select(0, graph) + shift


def colour_table(d, x, table):
    at = (2 * x - 1).permute(1, 2, 0)[None, None]
    return F.grid_sample(table[None], at, padding_mode="border", align_corners=True)[0, :, 0]


def cloud_in_cell(d, at, density):
    h, w = d["h"], d["w"]
    x, y, q = at[:, 0] * w, at[:, 1] * h, at[:, 2]
    j, i = x.long(), y.long()
    fx, fy = x - j, y - i
    flat = density.view(-1)
    for di, dj, share in ((0, 0, (1 - fy) * (1 - fx)), (0, 1, (1 - fy) * fx), (1, 0, fy * (1 - fx)), (1, 1, fy * fx)):
        flat.index_add_(0, (i + di) % h * w + (j + dj) % w, q * share)
    return density


fourth("csr_times_dense", {"m": 200000, "n": 150000, "nnz": 3000000, "c": 40}, {"m": 20, "n": 30, "nnz": 203, "c": 7},
       {"start": of("m+1", row_starts), "column": of("nnz", (INT, "n")), "value": of("nnz"), "x": of("n c")},
       csr_times_dense, slack=1e-3)
fourth("graph_norm", {"n": 800000, "graphs": 5000, "c": 40}, {"n": 203, "graphs": 11, "c": 7},
       {"x": of("n c"), "graph": of("n", graphs_in_order), "size": of("graphs", graph_sizes), "part": of("c"),
        "gain": of("c"), "shift": of("c")}, graph_norm, slack=1e-3)
fourth("colour_table", {"h": 2160, "w": 3840, "s": 33}, {"h": 7, "w": 11, "s": 5},
       {"x": of("3 h w", between(0.0, 1.0)), "table": of("3 s s s", between(0.0, 1.0))}, colour_table, slack=1e-3)
fourth("cloud_in_cell", {"n": 5000000, "h": 900, "w": 1100}, {"n": 403, "h": 7, "w": 11},
       {"at": of("n", Record("x", "y", "q", low=0.0, high=1.0)), "density": of("h w")}, cloud_in_cell,
       results=("density",), slack=1e-3)

# Layouts.


def shifted_windows(d, x):
    windows = x.roll((-3, -3), (1, 2)).unflatten(2, (-1, 7)).unflatten(1, (-1, 7)).transpose(2, 3)
    return windows.to(F16).reshape(-1, 49, d["c"])


def rgb_of_yuv420(d, luma, u, v):
    cb, cr = (F.interpolate(c[None, None].float() - 128, scale_factor=2.0, mode="nearest")[0, 0] for c in (u, v))
    y = 1.164 * (luma.float() - 16)
    rgb = torch.stack([y + 1.596 * cr, y - 0.392 * cb - 0.813 * cr, y + 2.017 * cb], -1)
    return (rgb.clamp(0, 255) + 0.5).to(torch.uint8)


def split_heads(d, qkv):
    q, k, v = qkv.unbind(2)
    q, v = (0.125 * q).transpose(1, 2).contiguous(), v.transpose(1, 2).float().contiguous()
    return q, k.permute(0, 2, 3, 1).contiguous(), v


BYTES = integers(0, 256, torch.uint8)
fourth("shifted_windows", {"b": 60, "rows": 8, "cols": 9, "c": 180}, {"b": 2, "rows": 2, "cols": 3, "c": 5},
       {"x": shaped(lambda d: (d["b"], 7 * d["rows"], 7 * d["cols"], d["c"]))}, shifted_windows)
fourth("rgb_of_yuv420", {"h": 2100, "w": 3700}, {"h": 7, "w": 11},
       {"luma": shaped(lambda d: (2 * d["h"], 2 * d["w"]), BYTES), "u": of("h w", BYTES), "v": of("h w", BYTES)},
       rgb_of_yuv420, results=("rgb",), slack=1.01)
fourth("split_heads", {"b": 12, "t": 1500, "heads": 14, "d": 72}, {"b": 2, "t": 11, "heads": 3, "d": 5},
       {"qkv": of("b t 3 heads d", HALF)}, split_heads, results=("q", "k", "v"), values={"scale": 0.125})

# Linear algebra.


def solve_3x3(d, a, b):
    xx, xy, xz, yy, yz, zz = a.unbind(1)
    r = b.unbind(1)
    l00 = xx.sqrt()
    l10, l20 = xy / l00, xz / l00
    l11 = (yy - l10 * l10).sqrt()
    l21 = (yz - l20 * l10) / l11
    l22 = (zz - l20 * l20 - l21 * l21).sqrt()
    u = r[0] / l00
    v = (r[1] - l10 * u) / l11
    z = (r[2] - l20 * u - l21 * v) / l22 / l22
    y = (v - l21 * z) / l11
    return torch.stack([(u - l10 * y - l20 * z) / l00, y, z], 1)


def positive_definite(shape, dims, device):
    """Upper halves, by rows, of M Mᵀ + 1."""
    m = torch.rand((*shape, 3, 3), device=device)
    a = m @ m.mT + torch.eye(3, device=device)
    i, j = torch.triu_indices(3, 3, device=device)
    return a[..., i, j].contiguous()


positive_definite.fields = [(name, "f4") for name in ("xx", "xy", "xz", "yy", "yz", "zz")]


def delta_rule_step(d, state, q, k, v, beta):
    recalled = (k[:, :, None] @ state)[:, :, 0]
    state += k[..., None] * (beta[..., None] * (v - recalled))[:, :, None]
    return (q[:, :, None] @ state)[:, :, 0], state


def newton_schulz(d, x):
    g = x @ x.T
    return torch.addmm(x, torch.addmm(g, g, g, beta=-4.775, alpha=2.0315), x, beta=3.4445)


fourth("solve_3x3", {"n": 4000001}, {"n": 1003},
       {"a": of("n", positive_definite), "b": of("n", Record("x", "y", "z"))}, solve_3x3, results=("x",), slack=1e-3)
fourth("delta_rule_step", {"b": 120, "heads": 24, "dk": 64, "dv": 120}, {"b": 2, "heads": 3, "dk": 7, "dv": 11},
       {"state": of("b heads dk dv"), "q": of("b heads dk", directions), "k": of("b heads dk", directions),
        "v": of("b heads dv"), "beta": of("b heads", "positive")}, delta_rule_step, results=("o", "state"), slack=1e-3)
fourth("triple_product", {"b": 6000, "n": 60, "k": 12}, {"b": 11, "n": 13, "k": 5},
       {"a": of("b n n"), "p": of("b n k")}, lambda d, a, p: p.mT @ (a @ p), results=("c",), slack=1e-2)
fourth("newton_schulz", {"m": 900, "n": 2100}, {"m": 29, "n": 53}, {"x": of("m n", weights)}, newton_schulz,
       slack=1e-2)

# Numbers.


def asian_option(d, z):
    price = 100 * (0.0002 + 0.02 * z).cumsum(1).exp()
    variance, mean = torch.var_mean(F.relu(price.mean(1) - 100), correction=0)
    return mean, (variance / d["paths"]).sqrt()


def call_greeks(d, spot, strike, years, volatility):
    root = years.sqrt()
    width = volatility * root
    d1 = (torch.log(spot / strike) + (0.03 + 0.5 * volatility * volatility) * years) / width
    cdf1, cdf2 = torch.special.ndtr(d1), torch.special.ndtr(d1 - width)
    density = torch.exp(-0.5 * d1 * d1) / math.sqrt(2 * math.pi)
    discounted = strike * torch.exp(-0.03 * years)
    theta = -0.5 * spot * density * volatility / root - 0.03 * discounted * cdf2
    return spot * cdf1 - discounted * cdf2, cdf1, density / (spot * width), spot * density * root, theta


def spherical_harmonics(d, at, sh):
    x, y, z = F.normalize(at, dim=1).unbind(1)
    xx, yy, zz = x * x, y * y, z * z
    basis = torch.stack([
        torch.full_like(x, 0.2820948), -0.4886025 * y, 0.4886025 * z, -0.4886025 * x, 1.0925484 * x * y,
        -1.0925484 * y * z, 0.3153916 * (2 * zz - xx - yy), -1.0925484 * x * z, 0.5462742 * (xx - yy),
        -0.5900436 * y * (3 * xx - yy), 2.8906114 * x * y * z, -0.4570458 * y * (4 * zz - xx - yy),
        0.3731763 * z * (2 * zz - 3 * xx - 3 * yy), -0.4570458 * x * (4 * zz - xx - yy), 1.4453057 * z * (xx - yy),
        -0.5900436 * x * (xx - 3 * yy)], 1)
    return F.relu(torch.einsum("nk,nkc->nc", basis, sh) + 0.5)


def chamfer_distance(d, a, b):
    far = torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")
    return far.amin(1).square().mean() + far.amin(0).square().mean()


fourth("asian_option", {"paths": 600001, "days": 52}, {"paths": 203, "days": 11}, {"z": of("paths days")}, asian_option,
       results=("price", "error"), values={"spot": 100.0, "strike": 100.0, "drift": 0.0002, "volatility": 0.02},
       slack=1e-3)
fourth("call_greeks", {"n": 6000001}, {"n": 1003},
       {"spot": of("n", between(5.0, 30.0)), "strike": of("n", between(5.0, 30.0)),
        "years": of("n", between(0.25, 5.0)), "volatility": of("n", between(0.1, 0.6))},
       call_greeks, results=("price", "delta", "gamma", "vega", "theta"), values={"rate": 0.03}, slack=1e-3)
fourth("spherical_harmonics", {"n": 700001}, {"n": 403}, {"at": of("n", Record("x", "y", "z")), "sh": of("n 16 3")},
       spherical_harmonics, slack=1e-3)
fourth("chamfer_distance", {"n": 12011, "m": 10007}, {"n": 103, "m": 77},
       {"a": of("n", Record("x", "y", "z")), "b": of("m", Record("x", "y", "z"))}, chamfer_distance,
       results=("distance",), slack=1e-3)
