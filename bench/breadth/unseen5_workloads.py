"""Workloads of `breadth.py`, a fifth set: layers and gradients, optimisers, statistics, grids, images, graphs, caches."""

import math

import torch
import torch.nn.functional as F
from unseen3_workloads import F16, INT, LONG, between, integers, places_or_none, shaped, weights
from unseen4_workloads import BYTES, WORKLOADS, lengths, narrow, row_starts
from unseen_workloads import HALF, MN, TINY, Record, add, of


def fifth(name, dims, small, arrays, peer, **more):
    add("unseen_5.krn", name, dims, small, arrays, peer, **more)


# Layers in f32.


def conv_transposed_3d_norm_less_mean(d, x, f, bias, gain, shift):
    t = F.conv_transpose3d(x, f, bias, stride=2, padding=1)
    t = F.batch_norm(t, None, None, gain, shift, training=True)
    return t - t.mean((2, 3, 4), keepdim=True)


def linear_norm_add_multiply(d, x, w, bias, other):
    return (F.layer_norm(F.linear(x, w, bias), (d["n"],)) + other) * other


def barlow_twins_loss(d, a, b):
    def standard(x):
        variance, mean = torch.var_mean(x, 0, correction=0)
        return (x - mean) * torch.rsqrt(variance + 1e-6)

    c = standard(a).T @ standard(b) / d["n"]
    own = c.diagonal()
    return (own - 1).square().sum() + 0.005 * (c.square().sum() - own.square().sum())


def norm_over_two_axes(d, x, gain, shift):
    variance, mean = torch.var_mean(x, (1, 3), correction=0, keepdim=True)
    return (x - mean) * torch.rsqrt(variance + 1e-5) * gain[:, None, None] + shift[:, None, None]


CUBE = of("b c d h w")
fifth("conv_transposed_3d_norm_less_mean", {"b": 14, "c": 16, "o": 30, "d": 17, "h": 31, "w": 33},
      {"b": 2, "c": 3, "o": 5, "d": 3, "h": 4, "w": 6},
      {"x": CUBE, "f": of("c o 3 3 3", weights), "bias": of("o"), "gain": of("o"), "shift": of("o")},
      conv_transposed_3d_norm_less_mean, slack=1e-3)
fifth("conv_gelu_global_mean", {"b": 60, "c": 8, "o": 64, "h": 126, "w": 131}, {"b": 2, "c": 3, "o": 5, "h": 7, "w": 11},
      {"x": of("b c h+2 w+2"), "f": of("o c 3 3", weights), "bias": of("o")},
      lambda d, x, f, bias: F.gelu(F.conv2d(x, f, bias)).mean((2, 3)), slack=1e-3)
fifth("linear_norm_add_multiply", {"m": 1031, "k": 2053, "n": 2039}, {"m": 37, "k": 53, "n": 29},
      {"x": of("m k"), "w": of("n k", weights), "bias": of("n"), "other": of("m n")}, linear_norm_add_multiply, slack=1e-3)
fifth("max_pool_3d_dilated", {"b": 4, "c": 24, "d": 66, "h": 100, "w": 102}, {"b": 2, "c": 3, "d": 8, "h": 9, "w": 12},
      {"x": CUBE}, lambda d, x: F.max_pool3d(x, 3, 2, 1, 3), slack=0.0)
fifth("conv_2d_asymmetric", {"b": 8, "c": 24, "o": 64, "h": 130, "w": 146}, {"b": 2, "c": 3, "o": 5, "h": 11, "w": 27},
      {"x": of("b c h w"), "f": of("o c 5 9", weights)},
      lambda d, x, f: F.conv2d(x, f, padding=(2, 4), dilation=(2, 3)), slack=1e-3)
fifth("barlow_twins_loss", {"n": 1500, "d": 2003}, {"n": 103, "d": 29}, {"a": of("n d"), "b": of("n d")},
      barlow_twins_loss, results=("loss",), values={"weight": 0.005}, slack=1e-3)
fifth("norm_over_two_axes", {"a": 24, "b": 70, "c": 90, "d": 211}, {"a": 3, "b": 5, "c": 7, "d": 13},
      {"x": of("a b c d"), "gain": of("b"), "shift": of("b")}, norm_over_two_axes)

# Training.


def group_norm_backward(d, x, dy, mean, rstd, gain):
    dx, dgain, dshift = torch.ops.aten.native_group_norm_backward(
        dy, x, mean, rstd, gain.flatten(), d["b"], d["g"] * d["c"], d["p"], d["g"], [True, True, True])
    return dx, dgain.view_as(gain), dshift.view_as(gain)


def cross_entropy_backward(d, x, label):
    counts = label >= 0
    share = torch.softmax(x.float(), 1)
    share.scatter_add_(1, label.clamp(min=0)[:, None], -counts.float()[:, None])
    return (share * (counts / counts.sum().clamp(min=1))[:, None]).to(HALF)


def embedding_gradient(d, dw, word, dy):
    learned = torch.where((word != 0)[..., None], dy, 0.0).float()
    return dw.index_add_(0, word.flatten(), learned.flatten(0, 1))


def adafactor_step(d, p, r, c, g):
    square = g * g + 1e-30
    r.mul_(0.8).add_(square.mean(1), alpha=0.2)
    c.mul_(0.8).add_(square.mean(0), alpha=0.2)
    u = g * torch.rsqrt(r[:, None] * c / r.mean())
    p.sub_(0.01 * u / u.square().mean().sqrt().clamp(min=1))
    return p, r, c


def amsgrad_records(d, slot, g):
    p, m, v, top = slot.unbind(1)
    g = g.float()
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    top = torch.maximum(top, v)
    p = p - 0.001 * (m / (top.sqrt() + 1e-6) + 0.01 * p)
    return slot.copy_(torch.stack([p, m, v, top], 1))


def labels_or_none(shape, dims, device):
    return torch.randint(-2, dims["cols"], shape, device=device, dtype=LONG)


CHANNELS = shaped(lambda d: (d["b"], d["g"] * d["c"], d["p"]))
fifth("group_norm_backward", {"b": 32, "g": 32, "c": 10, "p": 48 * 50}, {"b": 3, "g": 2, "c": 5, "p": 77},
      {"x": CHANNELS, "dy": CHANNELS, "mean": of("b g"), "rstd": of("b g", between(0.5, 1.5)), "gain": of("g c")},
      group_norm_backward, results=("dx", "dgain", "dshift"), slack=1e-2)
fifth("cross_entropy_backward", {"rows": 4000, "cols": 32003}, {"rows": 37, "cols": 53},
      {"x": of("rows cols", HALF), "label": of("rows", labels_or_none)}, cross_entropy_backward, results=("dx",))
fifth("embedding_gradient", {"vocabulary": 50257, "b": 24, "t": 1023, "d": 1020},
      {"vocabulary": 29, "b": 3, "t": 37, "d": 13},
      {"dw": of("vocabulary d"), "word": of("b t", (INT, "vocabulary")), "dy": of("b t d", HALF)}, embedding_gradient,
      results=("dw",), slack=1e-3)
fifth("adafactor_step", {"m": 5000, "n": 6007}, MN,
      {"p": of("m n"), "r": of("m", "positive"), "c": of("n", "positive"), "g": of("m n")}, adafactor_step,
      results=("p", "r", "c"), values={"decay": 0.8, "rate": 0.01})
fifth("amsgrad_records", {"n": 12000001}, {"n": 1003},
      {"slot": of("n", Record("p", "m", "v", "top", low=0.0)), "g": of("n", HALF)}, amsgrad_records, results=("slot",),
      values={"rate": 0.001, "decay": 0.01})

# Statistics.


def rolling_correlation(d, x, y):
    means = F.avg_pool2d(torch.stack([x, y, x * y, x * x, y * y])[:, None], (20, 1), 1)[:, 0]
    mx, my, xy, xx, yy = means.unbind(0)
    return (xy - mx * my) * torch.rsqrt((xx - mx * mx) * (yy - my * my) + 1e-12 / 400)


def running_moments(d, x, mean, variance):
    fresh = torch.var_mean(x.float(), (0, 2), correction=0)
    return mean.lerp_(fresh[1], 0.1), variance.lerp_(fresh[0], 0.1)


def barrier_options(d, strike, barrier, volatility):
    z = torch.randn(d["options"], 4096, d["days"], device=strike.device)
    s = 100 * (volatility * (z - 0.5 * volatility)).cumsum(2).exp()
    alive = (s <= barrier[:, None, None]).all(2)
    return torch.where(alive, F.relu(s[..., -1] - strike[:, None]), 0.0).mean(1)


PRICES = shaped(lambda d: (d["t"] + 19, d["assets"]))
fifth("rolling_correlation", {"t": 12000, "assets": 1999}, {"t": 37, "assets": 53}, {"x": PRICES, "y": PRICES},
      rolling_correlation, results=("r",), slack=1e-3)
fifth("running_moments", {"b": 64, "c": 190, "p": 56 * 57}, {"b": 3, "c": 5, "p": 77},
      {"x": of("b c p", F16), "mean": of("c"), "variance": of("c", "positive")}, running_moments,
      results=("mean", "variance"), values={"rate": 0.1})
# The numbers of PyTorch's generator are others: the prices agree as far as so many paths let them.
fifth("barrier_options", {"options": 300, "days": 63}, {"options": 3, "days": 8},
      {"strike": of("options", between(90.0, 110.0)), "barrier": of("options", between(110.0, 150.0)),
       "volatility": of("days", between(0.01, 0.03))}, barrier_options, results=("price",),
      values={"spot": 100.0, "paths": 4096, "seed": 7}, slack=0.8)

# Simulations.


def euler_rusanov(d, u):
    def pressure(s):
        rho, mx, my, e = s.unbind(-1)
        return 0.4 * (e - 0.5 * (mx * mx + my * my) / rho)

    def flux(s):
        rho, mx, my, e = s.unbind(-1)
        v, p = mx / rho, pressure(s)
        return torch.stack([mx, mx * v + p, my * v, (e + p) * v], -1)

    def fastest(s):
        return (s[..., 1] / s[..., 0]).abs() + (1.4 * pressure(s) / s[..., 0]).sqrt()

    def change(s, axis):
        ahead = s.roll(-1, axis)
        face = 0.5 * (flux(s) + flux(ahead) - torch.maximum(fastest(s), fastest(ahead))[..., None] * (ahead - s))
        return face - face.roll(1, axis)

    def turned(s):
        rho, mx, my, e = s.unbind(-1)
        return torch.stack([rho, my, mx, e], -1)

    return u - 0.2 * (change(u, 1) + turned(change(turned(u), 0)))


def wave_open_borders(d, u, before):
    c, k = 0.6, (0.6 - 1) / (0.6 + 1)
    here = u[1:-1, 1:-1]
    bend = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * here
    inner = 2 * here - before[1:-1, 1:-1] + c * c * bend
    top = u[1:2, 1:-1] + k * (inner[:1] - u[:1, 1:-1])
    bottom = u[-2:-1, 1:-1] + k * (inner[-1:] - u[-1:, 1:-1])
    rows = torch.cat([top, inner, bottom], 0)
    left = u[:, 1:2] + k * (rows[:, :1] - u[:, :1])
    right = u[:, -2:-1] + k * (rows[:, -1:] - u[:, -1:])
    return torch.cat([left, rows, right], 1)


def neighbour_forces(d, at, others):
    away = at[:, None] - at[others.clamp(min=0)]
    away = away - 3 * torch.round(away / 3)
    r2 = away.square().sum(-1)
    near = (others >= 0) & (r2 < 1.4 * 1.4)
    s = 1 / (r2 + 0.5)
    s3 = s * s * s
    pull = torch.where(near, 24 * (2 * s3 - 1) * s3 * s, 0.0)
    return (pull[..., None] * away).sum(1), 0.5 * torch.where(near, 4 * (s3 * s3 - s3), 0.0).sum(1)


def gases(shape, dims, device):
    """Density, momentum and energy, of pressures above 0."""
    low = torch.tensor([0.5, -0.5, -0.5, 2.0], device=device)
    return low + torch.rand((*shape, 4), device=device)


gases.fields = [(name, "f4") for name in ("rho", "mx", "my", "e")]


fifth("euler_rusanov", {"h": 2500, "w": 3001}, {"h": 7, "w": 11}, {"u": of("h w", gases)}, euler_rusanov,
      results=("next",), values={"ratio": 0.2}, slack=1e-3)
fifth("wave_open_borders", {"h": 6000, "w": 7001}, TINY, {"u": of("h w"), "before": of("h w")}, wave_open_borders,
      results=("next",), values={"speed": 0.6})
fifth("neighbour_forces", {"n": 400009, "k": 60}, {"n": 103, "k": 9},
      {"at": of("n", Record("x", "y", "z", low=0.0, high=3.0)), "list": of("n k", places_or_none)}, neighbour_forces,
      results=("force", "energy"), values={"box": 3.0, "cutoff": 1.4}, slack=1e-3)

# Images.


def replicated(x):
    return F.pad(x[None, None], (1, 1, 1, 1), mode="replicate")[0, 0]


def median_3x3(d, x):
    def middle(a, b, c):
        return torch.maximum(torch.minimum(a, b), torch.minimum(torch.maximum(a, b), c))

    rows = torch.cat([x[:1], x, x[-1:]], 0)
    across = torch.cat([rows[:, :1], rows, rows[:, -1:]], 1)
    three = across[:, :-2], across[:, 1:-1], across[:, 2:]
    low = torch.minimum(torch.minimum(*three[:2]), three[2])
    high = torch.maximum(torch.maximum(*three[:2]), three[2])
    mid = middle(*three)
    low = torch.maximum(torch.maximum(low[:-2], low[1:-1]), low[2:])
    high = torch.minimum(torch.minimum(high[:-2], high[1:-1]), high[2:])
    return middle(low, middle(mid[:-2], mid[1:-1], mid[2:]), high)


def canny_thin(d, x):
    p = replicated(x)
    across = p[:-2] + 2 * p[1:-1] + p[2:]
    down = p[:, :-2] + 2 * p[:, 1:-1] + p[:, 2:]
    gx, gy = across[:, 2:] - across[:, :-2], down[2:] - down[:-2]
    steep = (gx * gx + gy * gy).sqrt()
    q = F.pad(steep, (1, 1, 1, 1))
    h, w = x.shape

    def pair(di, dj):
        return torch.maximum(q[1 + di : 1 + di + h, 1 + dj : 1 + dj + w], q[1 - di : 1 - di + h, 1 - dj : 1 - dj + w])

    slanted = torch.where(gx * gy < 0, pair(1, -1), pair(1, 1))
    most = torch.where(gx.abs() < 0.41421356 * gy.abs(), pair(1, 0), slanted)
    most = torch.where(gy.abs() < 0.41421356 * gx.abs(), pair(0, 1), most)
    return torch.where((steep >= 0.8) & (steep >= most), steep, 0.0)


def guided_filter(d, x, p):
    mx, mp, xp, xx = F.avg_pool2d(torch.stack([x, p, x * p, x * x])[:, None], 9, 1)[:, 0].unbind(0)
    slope = (xp - mx * mp) / (xx - mx * mx + 0.1)
    slope, offset = F.avg_pool2d(torch.stack([slope, mp - slope * mx])[:, None], 9, 1)[:, 0].unbind(0)
    return slope * x[8:-8, 8:-8] + offset


def wavelet_5_3(d, x):
    even, odd = x[:, ::2], x[:, 1::2]
    high = odd - ((even + torch.cat([even[:, 1:], even[:, -1:]], 1)) >> 1)
    return even + ((torch.cat([high[:, :1], high[:, :-1]], 1) + high + 2) >> 2), high


def stereo_disparity(d, left, right):
    left, right = left.short(), right.short()
    here, wide = left[:, 31:], d["w"] + 6
    costs = [(here - right[:, 31 - s : 31 - s + wide]).abs().float() for s in range(32)]
    return F.avg_pool2d(torch.stack(costs)[:, None], 7, 1)[:, 0].argmin(0).to(torch.uint8)


MARGIN = shaped(lambda d: (d["h"] + 16, d["w"] + 16), "positive")
fifth("median_3x3", {"h": 6000, "w": 8001}, TINY, {"x": of("h w", BYTES)}, median_3x3, slack=0.0)
fifth("canny_thin", {"h": 4000, "w": 6001}, TINY, {"x": of("h w")}, canny_thin, values={"threshold": 0.8})
fifth("guided_filter", {"h": 3000, "w": 4001}, TINY, {"x": MARGIN, "p": MARGIN}, guided_filter, values={"eps": 0.1},
      slack=1e-3)
fifth("wavelet_5_3", {"rows": 5000, "n": 6003}, {"rows": 37, "n": 29},
      {"x": shaped(lambda d: (d["rows"], 2 * d["n"]), integers(-2000, 2000, torch.int16))}, wavelet_5_3,
      results=("low", "high"), slack=0.0)
fifth("stereo_disparity", {"h": 1000, "w": 1201}, TINY, {"left": of("h+6 w+37", BYTES), "right": of("h+6 w+37", BYTES)},
      stereo_disparity, slack=0.0)

# Sparse matrices and graphs.


def rows_in_order(shape, dims, device):
    return torch.randint(0, dims["m"], shape, device=device, dtype=INT).sort().values


def sampled_products(d, row, column, value, a, b):
    return value * (a.index_select(0, row) * b.index_select(0, column)).sum(1)


def rows_of(d, start):
    """The row of each entry."""
    rows = torch.arange(d["n"], device=start.device)
    return torch.repeat_interleave(rows, start.diff(), output_size=d["nnz"])


def graph_attention(d, start, source, own, far, x):
    target = rows_of(d, start)
    e = F.leaky_relu(own.index_select(0, target) + far.index_select(0, source), 0.2)
    each = target[:, None].expand_as(e)
    peak = torch.full_like(own, -math.inf).scatter_reduce_(0, each, e, "amax")
    weight = torch.exp(e - peak.index_select(0, target))
    total = torch.zeros_like(own).index_add_(0, target, weight)
    y = torch.zeros_like(x).index_add_(0, target, weight[..., None] * x.index_select(0, source))
    return torch.where(total > 0, 1 / total, 0.0)[..., None] * y


def least_labels(d, start, column, label):
    least = label.scatter_reduce(0, rows_of(d, start), label.index_select(0, column), "amin")
    after = least.index_select(0, least)
    return after, (after != label).sum()


fifth("sampled_products", {"m": 200000, "n": 150000, "nnz": 3000000, "d": 50}, {"m": 20, "n": 30, "nnz": 203, "d": 7},
      {"row": of("nnz", rows_in_order), "column": of("nnz", (INT, "n")), "value": of("nnz"), "a": of("m d"),
       "b": of("n d")}, sampled_products, slack=1e-3)
fifth("graph_attention", {"n": 100000, "nnz": 1500000, "heads": 4, "c": 16}, {"n": 20, "nnz": 203, "heads": 3, "c": 5},
      {"start": of("n+1", row_starts), "source": of("nnz", (INT, "n")), "own": of("n heads"), "far": of("n heads"),
       "x": of("n heads c")}, graph_attention, slack=1e-3)
fifth("least_labels", {"n": 1000003, "nnz": 12000000}, {"n": 37, "nnz": 203},
      {"start": of("n+1", row_starts), "column": of("nnz", (INT, "n")), "label": of("n", (INT, "n"))}, least_labels,
      results=("next", "changed"), slack=0.0)

# Narrow types.


def int4_linear(d, x, packed, scale, zero):
    q = torch.stack([packed & 15, packed >> 4], -1).flatten(1).unflatten(1, (d["groups"], 128))
    return F.linear(x, ((q.half() - zero[..., None]) * scale[..., None]).flatten(1))


def int8_cache_decode(d, q, k, v, k_scale, v_scale, length):
    k, v = ((x * scale[..., None]).half().transpose(1, 2) for x, scale in ((k, k_scale), (v, v_scale)))
    mask = torch.arange(d["s"], device=q.device) < length[:, None, None, None]
    return F.scaled_dot_product_attention(q[:, :, None], k, v, mask, scale=0.1)[:, :, 0]


def conv_int8(d, x, f, bias, scale):
    whole = F.conv2d(x.permute(0, 3, 1, 2).float(), f.permute(0, 3, 1, 2).float()).permute(0, 2, 3, 1) + bias
    return (torch.round(whole * scale) + 3).clamp(-128, 127).to(torch.int8)


SIGNED = integers(-128, 128, torch.int8)
fifth("int4_linear", {"m": 16, "n": 14000, "groups": 40}, {"m": 5, "n": 29, "groups": 2},
      {"x": shaped(lambda d: (d["m"], 128 * d["groups"]), F16),
       "packed": shaped(lambda d: (d["n"], 64 * d["groups"]), BYTES),
       "scale": of("n groups", narrow(between(0.001, 0.01), F16)), "zero": of("n groups", integers(0, 16, torch.uint8))},
      int4_linear, slack=2e-2)
fifth("int8_cache_decode", {"b": 8, "heads": 30, "s": 3001, "d": 128}, {"b": 2, "heads": 3, "s": 13, "d": 8},
      {"q": of("b heads d", F16), "k": of("b s heads d", SIGNED), "v": of("b s heads d", SIGNED),
       "k_scale": of("b s heads", between(0.005, 0.02)), "v_scale": of("b s heads", between(0.005, 0.02)),
       "length": of("b", lengths("s"))}, int8_cache_decode, results=("o",), values={"scale": 0.1}, slack=5e-3)
fifth("conv_int8", {"b": 32, "h": 56, "w": 58, "c": 64, "o": 72}, {"b": 2, "h": 5, "w": 7, "c": 8, "o": 5},
      {"x": of("b h+2 w+2 c", SIGNED), "f": of("o 3 3 c", SIGNED), "bias": of("o", torch.int32),
       "scale": of("o", between(0.0001, 0.001))}, conv_int8, values={"zero": 3}, slack=1.01)

# Attention, and products of many kinds.


def sliding_window_attention(d, q, k, v):
    i = torch.arange(d["t"], device=q.device)
    back = i[:, None] - i
    return F.scaled_dot_product_attention(q, k, v, (back >= 0) & (back < 200), scale=0.125)


def many_loras(d, x, w, down, up, which):
    return F.linear(x, w) + 0.5 * (x @ down[which].mT) @ up[which].mT


def kalman_step(d, x, cov, z, f, q, h, r):
    ahead = x @ f.T
    p = f @ cov @ f.T + q
    hp = h @ p
    v = hp @ h.T + torch.diag(r)
    det = v[:, 0, 0] * v[:, 1, 1] - v[:, 0, 1] * v[:, 1, 0]
    g0 = (hp[:, 0] * v[:, 1, 1, None] - hp[:, 1] * v[:, 1, 0, None]) / det[:, None]
    g1 = (hp[:, 1] * v[:, 0, 0, None] - hp[:, 0] * v[:, 0, 1, None]) / det[:, None]
    gain = torch.stack([g0, g1], 2)
    off = z - ahead @ h.T
    return ahead + (gain @ off[..., None])[..., 0], p - gain @ hp


def upright(shape, dims, device):
    return torch.eye(*shape, device=device) + 0.1 * torch.randn(shape, device=device)


def covariances(shape, dims, device):
    m = torch.randn(shape, device=device)
    return 0.25 * m @ m.mT + 0.1 * torch.eye(shape[-1], device=device)


HEADS = of("b heads t d", F16)
FIELD = of("n n c")
fifth("sliding_window_attention", {"b": 2, "heads": 12, "t": 2011, "d": 64}, {"b": 2, "heads": 3, "t": 230, "d": 8},
      {"q": HEADS, "k": HEADS, "v": HEADS}, sliding_window_attention, results=("o",), values={"scale": 0.125}, slack=2e-3)
fifth("many_loras", {"b": 8, "t": 500, "k": 2048, "n": 2500, "r": 16, "m": 20},
      {"b": 3, "t": 11, "k": 53, "n": 29, "r": 4, "m": 5},
      {"x": of("b t k", HALF), "w": of("n k", narrow(weights, HALF)), "down": of("m r k", narrow(weights, HALF)),
       "up": of("m n r", narrow(weights, HALF)), "which": of("b", (INT, "m"))}, many_loras,
      values={"scale": 0.5}, slack=5e-2)
fifth("kalman_step", {"n": 1000003}, {"n": 203},
      {"x": of("n 4"), "cov": of("n 4 4", covariances), "z": of("n 2"), "f": of("4 4", upright),
       "q": of("4 4", covariances), "h": of("2 4", upright), "r": of("2", between(0.5, 1.0))}, kalman_step,
      results=("next", "next_cov"), slack=1e-3)
fifth("triangle_update", {"n": 350, "c": 60}, {"n": 29, "c": 7}, {"a": FIELD, "b": FIELD, "gate": FIELD},
      lambda d, a, b, gate: gate * torch.einsum("ikc,jkc->ijc", a, b), results=("z",), slack=1e-3)
fifth("additive_scores", {"b": 4, "t": 397, "s": 503, "c": 128}, {"b": 2, "t": 11, "s": 13, "c": 7},
      {"q": of("b t c"), "k": of("b s c"), "v": of("c")},
      lambda d, q, k, v: torch.tanh(q[:, :, None] + k[:, None]) @ v, results=("score",), slack=1e-3)

# Odd shapes.

fifth("permute_5d", {"a": 13, "b": 31, "c": 29, "d": 17, "e": 211}, {"a": 3, "b": 5, "c": 7, "d": 4, "e": 11},
      {"x": of("a b c d e")}, lambda d, x: x.permute(3, 1, 4, 0, 2).contiguous(), slack=0.0)
fifth("softmax_few_rows", {"rows": 3, "cols": 10000019}, {"rows": 3, "cols": 1003}, {"x": of("rows cols")},
      lambda d, x: x.softmax(1), slack=1e-6)
