"""Workloads of `breadth.py`, a sixth set: layers, attention, experts, gradients, formats, images, graphs, tensors."""

import functools
import math

import torch
import torch.nn.functional as F
from unseen3_workloads import F16, INT, LONG, between, integers, shaped, weights
from unseen4_workloads import BYTES, narrow
from unseen5_workloads import SIGNED, WORKLOADS, rows_of
from unseen_workloads import HALF, TINY, Record, add, of


def sixth(name, dims, small, arrays, peer, **more):
    add("unseen_6.krn", name, dims, small, arrays, peer, **more)


# Chains of layers.


def conv_3d_hard_swish_group_norm_mean(d, x, f, bias, gain, shift):
    t = F.hardswish(F.conv3d(x, f, bias))
    return F.group_norm(t, d["g"], gain.flatten(), shift.flatten()).mean((2, 3, 4))


def transposed_conv_softmax_sigmoid(d, x, f, bias, shift):
    t = F.conv_transpose2d(x, f, bias, stride=2, padding=1).softmax(1)
    return torch.sigmoid(2 * (t + shift[:, None, None]))


def squeeze_excite(d, x, down, up):
    gate = torch.sigmoid(F.linear(F.relu(F.linear(x.mean((1, 2)), down)), up))
    return x * gate[:, None, None]


def convnext_block(d, x, depth, gain, shift, up, down, gamma):
    t = F.conv2d(x.permute(0, 3, 1, 2), depth.permute(2, 0, 1)[:, None], padding=3, groups=d["c"]).permute(0, 2, 3, 1)
    t = F.layer_norm(t, (d["c"],), gain, shift, 1e-6)
    return x + gamma * F.linear(F.gelu(F.linear(t, up)), down)


sixth("conv_3d_hard_swish_group_norm_mean", {"b": 8, "c": 12, "g": 4, "e": 6, "d": 14, "h": 62, "w": 66},
      {"b": 2, "c": 3, "g": 2, "e": 3, "d": 3, "h": 5, "w": 7},
      {"x": of("b c d+2 h+2 w+2"), "f": shaped(lambda d: (d["g"] * d["e"], d["c"], 3, 3, 3), weights),
       "bias": shaped(lambda d: (d["g"] * d["e"],)), "gain": of("g e"), "shift": of("g e")},
      conv_3d_hard_swish_group_norm_mean, slack=1e-3)
sixth("transposed_conv_softmax_sigmoid", {"b": 32, "c": 48, "o": 29, "h": 62, "w": 67},
      {"b": 2, "c": 3, "o": 5, "h": 7, "w": 11},
      {"x": of("b c h w"), "f": of("c o 4 4", weights), "bias": of("o"), "shift": of("o")},
      transposed_conv_softmax_sigmoid, values={"scale": 2.0})
sixth("squeeze_excite", {"b": 96, "h": 56, "w": 58, "c": 190, "r": 24}, {"b": 2, "h": 5, "w": 7, "c": 13, "r": 3},
      {"x": of("b h w c", F16), "down": of("r c", narrow(weights, F16)), "up": of("c r", narrow(weights, F16))},
      squeeze_excite, slack=1e-2)
sixth("convnext_block", {"b": 40, "h": 28, "w": 30, "c": 190, "e": 760}, {"b": 2, "h": 5, "w": 9, "c": 13, "e": 29},
      {"x": of("b h w c", F16), "depth": of("7 7 c", narrow(between(-0.2, 0.2), F16)),
       "gain": of("c", narrow(between(0.5, 1.5), F16)), "shift": of("c", narrow(between(-0.5, 0.5), F16)),
       "up": of("e c", narrow(weights, F16)), "down": of("c e", narrow(weights, F16)), "gamma": of("c", F16)},
      convnext_block, slack=2e-2)

# Attention, states and experts.


@functools.cache
def relative_places(device):
    """For two pixels of a window of 7 x 7, where a table holds the way between them."""
    i = torch.arange(49, device=device)
    down, right = i[:, None] // 7 - i // 7, i[:, None] % 7 - i % 7
    return (down + 6) * 13 + right + 6


def window_attention(d, q, k, v, bias):
    mask = bias[relative_places(q.device)].permute(2, 0, 1)
    return F.scaled_dot_product_attention(q, k, v, mask, scale=0.17).transpose(1, 2).contiguous()


def sink_attention(d, q, k, v, sink):
    e = 0.125 * torch.einsum("bihrd,bjhd->bhrij", q, k).float()
    e = e.masked_fill(torch.ones(d["t"], d["t"], dtype=torch.bool, device=q.device).triu(1), -math.inf)
    rest = sink[None, :, :, None, None].expand(*e.shape[:-1], 1)
    p = torch.cat([e, rest], -1).softmax(-1)[..., :-1].to(HALF)
    return torch.einsum("bhrij,bjhd->bihrd", p, v)


def gated_state_norm(d, state, x, z, skip, gain):
    t = (state + skip * x) * F.silu(z.float())
    return (gain * F.rms_norm(t, (d["c"],), eps=1e-5)).to(HALF)


def route_tokens(d, x, bias):
    score = torch.sigmoid(x)
    expert = (score + bias).topk(4, 1).indices
    weight = score.gather(1, expert)
    one = torch.ones_like(expert.flatten(), dtype=INT)
    load = torch.zeros(d["e"], dtype=INT, device=x.device).index_add_(0, expert.flatten(), one)
    return expert.int(), weight / weight.sum(1, keepdim=True), load


WINDOWS = of("n heads 49 d", F16)
sixth("window_attention", {"n": 4001, "heads": 6, "d": 32}, {"n": 3, "heads": 2, "d": 8},
      {"q": WINDOWS, "k": WINDOWS, "v": WINDOWS, "bias": of("169 heads", F16)}, window_attention, results=("o",),
      values={"scale": 0.17}, slack=5e-3)
sixth("sink_attention", {"b": 2, "t": 1531, "hk": 4, "g": 5, "d": 64}, {"b": 2, "t": 37, "hk": 2, "g": 3, "d": 8},
      {"q": of("b t hk g d", HALF), "k": of("b t hk d", HALF), "v": of("b t hk d", HALF), "sink": of("hk g")},
      sink_attention, results=("o",), values={"scale": 0.125}, slack=2e-2)
STATES = of("rows g c", HALF)
sixth("gated_state_norm", {"rows": 8009, "g": 8, "c": 640}, {"rows": 37, "g": 3, "c": 29},
      {"state": STATES, "x": STATES, "z": STATES, "skip": of("g c"), "gain": of("g c")}, gated_state_norm, slack=2e-2)
sixth("route_tokens", {"t": 300007, "e": 160}, {"t": 103, "e": 29},
      {"x": of("t e"), "bias": of("e", between(0.0, 0.1))}, route_tokens, results=("expert", "weight", "load"))

# Gradients, losses and optimisers.


def rms_norm_backward(d, x, dy, gain, rstd):
    normal = x.float() * rstd[:, None]
    slope = dy.float() * gain
    dx = rstd[:, None] * (slope - normal * (slope * normal).mean(1, keepdim=True))
    return dx.to(HALF), (dy * normal).sum(0)


def max_pool_backward(d, x, dy):
    place = F.max_pool2d(x, 3, 2, 1, return_indices=True)[1]
    return torch.ops.aten.max_pool2d_with_indices_backward(dy, x, [3, 3], [2, 2], [1, 1], [1, 1], False, place)


def distillation_loss(d, student, teacher, label):
    student, teacher = student.float(), teacher.float()
    soft = F.kl_div((student / 2).log_softmax(1), (teacher / 2).log_softmax(1), reduction="batchmean", log_target=True)
    return 0.7 * 2 * 2 * soft + 0.3 * F.cross_entropy(student, label)


def supervised_contrastive_loss(d, z, label):
    z = F.normalize(z, dim=1)
    s = z @ z.T / 0.2
    own = torch.eye(d["n"], dtype=torch.bool, device=z.device)
    total = s.masked_fill(own, -math.inf).logsumexp(1, keepdim=True)
    friend = (label[:, None] == label) & ~own
    near = torch.where(friend, s - total, 0.0).sum(1)
    return -(near / friend.sum(1).clamp(min=1)).mean()


def lamb_step(d, p, m, v, g):
    m.lerp_(g, 0.1)
    v.mul_(0.999).addcmul_(g, g, value=0.001)
    u = m / (v.sqrt() + 1e-6) + 0.01 * p
    length, step = torch.linalg.vector_norm(p, dim=1), torch.linalg.vector_norm(u, dim=1)
    ratio = torch.where((length > 0) & (step > 0), length / step, 1.0)
    p.sub_(0.01 * ratio[:, None] * u)
    return p, m, v


def sophia_step(d, master, m, h, g):
    m.mul_(0.965).add_(g, alpha=0.035)
    step = (m / (0.04 * h).clamp(min=1e-12)).clamp(-1, 1)
    master.mul_(1 - 0.001 * 0.1).sub_(step, alpha=0.001)
    return master, m, master.to(HALF)


WIDE = of("rows cols", HALF)
LAYERS = of("layers n")
sixth("rms_norm_backward", {"rows": 12007, "cols": 4100}, {"rows": 37, "cols": 53},
      {"x": WIDE, "dy": WIDE, "gain": of("cols", HALF), "rstd": of("rows", between(0.5, 1.5))}, rms_norm_backward,
      results=("dx", "dgain"), slack=2e-2)
sixth("max_pool_backward", {"b": 48, "c": 60, "h": 112, "w": 115}, {"b": 2, "c": 3, "h": 7, "w": 12},
      {"x": of("b c h w"), "dy": shaped(lambda d: (d["b"], d["c"], (d["h"] + 1) // 2, (d["w"] + 1) // 2))},
      max_pool_backward, results=("dx",))
sixth("distillation_loss", {"n": 4001, "classes": 32003}, {"n": 37, "classes": 53},
      {"student": of("n classes", HALF), "teacher": of("n classes", HALF), "label": of("n", (LONG, "classes"))},
      distillation_loss, results=("loss",), values={"heat": 2.0, "share": 0.7})
sixth("supervised_contrastive_loss", {"n": 4001, "d": 190}, {"n": 53, "d": 29},
      {"z": of("n d"), "label": of("n", integers(0, 10, INT))}, supervised_contrastive_loss, results=("loss",),
      values={"temperature": 0.2}, slack=1e-3)
sixth("lamb_step", {"layers": 24, "n": 1200007}, {"layers": 3, "n": 1003},
      {"p": LAYERS, "m": LAYERS, "v": of("layers n", "positive"), "g": LAYERS}, lamb_step, results=("p", "m", "v"),
      values={"rate": 0.01, "decay": 0.01})
sixth("sophia_step", {"n": 30000001}, {"n": 1003},
      {"master": of("n"), "m": of("n"), "h": of("n", "positive"), "g": of("n", HALF)}, sophia_step,
      results=("master", "m", "p"), values={"rate": 0.001, "rho": 0.04, "decay": 0.1})

# Narrow types.


def fp8_block_linear(d, x, w, scale):
    n, k = w.shape
    each = scale.repeat_interleave(128, 0)[:n].repeat_interleave(128, 1)[:, :k]
    return F.linear(x, (w.view(torch.float8_e4m3fn).float() * each).to(HALF))


@functools.cache
def quantiles(device):
    """The sixteen values of NF4, and where the nearest of them changes."""
    low = [-1.0, -0.6961928, -0.52507305, -0.3949175, -0.28444138, -0.18477343, -0.091050036, 0.0]
    high = [0.0795803, 0.1609302, 0.2461123, 0.33791524, 0.44070983, 0.562617, 0.72295684, 1.0]
    values = torch.tensor(low + high, device=device)
    return (values[1:] + values[:-1]) / 2


def quantize_nf4(d, x):
    blocks = x.float().unflatten(1, (-1, 64))
    peak = blocks.abs().amax(2)
    inverse = torch.where(peak > 0, 1 / peak, 0.0)
    q = torch.bucketize((blocks * inverse[..., None]).flatten(1), quantiles(x.device), out_int32=True)
    return (q[:, ::2] | q[:, 1::2] << 4).to(torch.uint8), peak


def dynamic_int8_linear(d, x, w, scale, bias):
    x = x.float()
    peak = x.abs().amax(1).clamp(min=1e-6)
    q = torch.round(x * (127 / peak)[:, None]).to(torch.int8)
    return (bias + torch._int_mm(q, w.T) * (peak / 127)[:, None] * scale).to(HALF)


def fp8_bytes(shape, dims, device):
    """Numbers of eight bits with a sign, none of them NaN."""
    size, sign = (torch.randint(0, end, shape, device=device) for end in (120, 2))
    return (128 * sign + size).to(torch.uint8)


sixth("fp8_block_linear", {"m": 120, "n": 7001, "k": 4100}, {"m": 7, "n": 131, "k": 150},
      {"x": of("m k", HALF), "w": of("n k", fp8_bytes),
       "scale": shaped(lambda d: ((d["n"] + 127) // 128, (d["k"] + 127) // 128), between(0.001, 0.002))},
      fp8_block_linear, slack=2e-2)
sixth("quantize_nf4", {"rows": 8001, "blocks": 65}, {"rows": 37, "blocks": 3},
      {"x": shaped(lambda d: (d["rows"], 64 * d["blocks"]), HALF)}, quantize_nf4, results=("q", "scale"), slack=0.0)
sixth("dynamic_int8_linear", {"m": 2003, "k": 2056, "n": 3000}, {"m": 37, "k": 56, "n": 40},
      {"x": of("m k", HALF), "w": of("n k", SIGNED), "scale": of("n", between(0.0005, 0.005)), "bias": of("n", HALF)},
      dynamic_int8_linear, slack=5e-2)

# Images.


def non_local_means(d, x):
    h, w = d["h"], d["w"]
    centre, total, weights = x[3:-3, 3:-3], 0.0, 0.0
    for di in range(7):
        for dj in range(7):
            there = x[di : di + h + 4, dj : dj + w + 4]
            apart = 25 * F.avg_pool2d((centre - there).square()[None], 5, 1)[0]
            weight = torch.exp(-0.1 * apart)
            weights = weights + weight
            total = total + weight * there[2:-2, 2:-2]
    return total / weights


def shrink_by_three(d, x, taps):
    down = F.conv2d(x[:, None].float(), taps[:, None][None, None], stride=(3, 1))
    return F.conv2d(down, taps[None, None, None], stride=(1, 3))[:, 0].round().clamp(0, 255).to(torch.uint8)


def hsv_of_rgb(d, rgb):
    c = rgb.float() / 255
    r, g, b = c.unbind(-1)
    most = c.amax(-1)
    width = most - c.amin(-1)
    some = torch.where(width > 0, width, 1.0)
    hue = torch.where(most == g, (b - r) / some + 2, (r - g) / some + 4)
    hue = torch.where(most == r, ((g - b) / some) % 6, hue)
    return torch.stack([60 * torch.where(width > 0, hue, 0.0), width / most.clamp(min=1e-6), most], -1)


sixth("non_local_means", {"h": 901, "w": 1103}, TINY, {"x": of("h+10 w+10")}, non_local_means, values={"strength": 0.1})
sixth("shrink_by_three", {"c": 12, "h": 1001, "w": 1333}, {"c": 3, "h": 7, "w": 11},
      {"x": shaped(lambda d: (d["c"], 3 * d["h"] + 9, 3 * d["w"] + 9), BYTES), "taps": of("12", between(0.0, 0.15))},
      shrink_by_three, slack=0.0)
sixth("hsv_of_rgb", {"h": 4001, "w": 6001}, TINY, {"rgb": of("h w", "pixel")}, hsv_of_rgb, results=("hsv",), slack=1e-3)

# Simulations.


def smoothed_particles(d, at):
    place, mass = at[:, :3], at[:, 3]
    away = place[:, None] - place
    r2 = away.square().sum(-1)
    density = F.relu(0.16 - r2) ** 3 @ mass
    pressure = 2 * (density - 1)
    r = r2.sqrt()
    push = mass * (pressure[:, None] + pressure) / (2 * density) * (0.4 - r) ** 2 / r
    push = torch.where((r < 0.4) & (r > 0), push, 0.0)
    return density, (push[..., None] * away).sum(1)


def cahn_hilliard(d, u):
    def curvature(x):
        return x.roll(1, 0) + x.roll(-1, 0) + x.roll(1, 1) + x.roll(-1, 1) - 4 * x

    for _ in range(4):
        u = u + 0.01 * curvature(u * u * u - u - 0.5 * curvature(u))
    return u


sixth("smoothed_particles", {"n": 12007}, {"n": 203}, {"at": of("n", Record("x", "y", "z", "m", low=0.0))},
      smoothed_particles, results=("density", "force"), values={"reach": 0.4, "stiffness": 2.0, "rest": 1.0},
      slack=1e-3)
sixth("cahn_hilliard", {"h": 3001, "w": 4003}, TINY, {"u": of("h w")}, cahn_hilliard, results=("u",),
      values={"rate": 0.01, "gamma": 0.5, "steps": 4})

# Sparse matrices and graphs.


def starts(extent):
    """Pieces of different lengths: where they begin, from 0 to the end of an axis."""

    def make(shape, dims, device):
        share = torch.linspace(0, 1, shape[0], device=device, dtype=torch.float64)
        return (dims[extent] * (0.5 * share + 0.5 * share * share)).round().to(INT)

    return make


def neighbour_statistics(d, start, column, x):
    target, there = rows_of(d, start), x.index_select(0, column)
    many = start.diff().clamp(min=1)[:, None]
    mean = torch.zeros_like(x).index_add_(0, target, there) / many
    square = torch.zeros_like(x).index_add_(0, target, there * there) / many
    most = torch.zeros_like(x).scatter_reduce_(0, target[:, None].expand_as(there), there, "amax", include_self=False)
    return mean, most, (F.relu(square - mean * mean) + 1e-5).sqrt()


def graph_convolution(d, source, target, x):
    degree = torch.ones(d["n"], device=x.device).index_add_(0, target, torch.ones_like(target, dtype=torch.float32))
    norm = degree.rsqrt()
    weight = norm.index_select(0, source) * norm.index_select(0, target)
    return ((norm * norm)[:, None] * x).index_add_(0, target, weight[:, None] * x.index_select(0, source))


def block_rows_times_vectors(d, start, column, block, x):
    rows = torch.repeat_interleave(torch.arange(d["rows"], device=x.device), start.diff(), output_size=d["blocks"])
    y = torch.zeros((d["rows"], 8, d["k"]), device=x.device)
    return y.index_add_(0, rows, torch.bmm(block, x.index_select(0, column)))


sixth("neighbour_statistics", {"n": 150001, "nnz": 2000003, "c": 50}, {"n": 20, "nnz": 203, "c": 7},
      {"start": of("n+1", starts("nnz")), "column": of("nnz", (INT, "n")), "x": of("n c")}, neighbour_statistics,
      results=("mean", "most", "deviation"), slack=1e-3)
sixth("graph_convolution", {"n": 150001, "edges": 2000003, "c": 50}, {"n": 20, "edges": 203, "c": 7},
      {"source": of("edges", (INT, "n")), "target": of("edges", (INT, "n")), "x": of("n c")}, graph_convolution,
      slack=1e-3)
sixth("block_rows_times_vectors", {"rows": 20001, "cols": 15013, "blocks": 400003, "k": 6},
      {"rows": 7, "cols": 9, "blocks": 40, "k": 3},
      {"start": of("rows+1", starts("blocks")), "column": of("blocks", (INT, "cols")), "block": of("blocks 8 8"),
       "x": of("cols 8 k")}, block_rows_times_vectors, slack=1e-3)

# Statistics and signals.


def goertzel_tones(d, x, tone):
    angle = 2 * math.pi * torch.arange(205, device=x.device)[:, None] * tone
    return (x @ angle.cos()).square() + (x @ angle.sin()).square()


def mutual_information(d, a, b):
    joint = torch.histc(((a >> 3).int() * 32 + (b >> 3)).float(), 1024, -0.5, 1023.5).view(32, 32)
    p = joint / d["n"]
    apart = p * torch.log2(p / (p.sum(1, keepdim=True) * p.sum(0)))
    return joint.int(), torch.where(p > 0, apart, 0.0).sum()


def kendall_tau(d, x, y):
    return ((x[:, None] - x).sign() * (y[:, None] - y).sign()).mean() * (d["n"] / (d["n"] - 1))


sixth("goertzel_tones", {"frames": 200003, "tones": 8}, {"frames": 37, "tones": 5},
      {"x": of("frames 205"), "tone": of("tones", between(0.05, 0.45))}, goertzel_tones, results=("power",), slack=2e-2)
sixth("mutual_information", {"n": 40000003}, {"n": 5003}, {"a": of("n", BYTES), "b": of("n", BYTES)},
      mutual_information, results=("joint", "bits"))
sixth("kendall_tau", {"n": 16007}, {"n": 203}, {"x": of("n"), "y": of("n")}, kendall_tau, results=("tau",))

# Linear algebra.


def syrk_half(d, x, c):
    lower = torch.ones(d["n"], d["n"], dtype=torch.bool, device=c.device).tril()
    return torch.where(lower, 0.5 * (x @ x.T).float() + 0.25 * c, c)


def cholesky_solve(d, a, ridge, b):
    lower = [[None] * 6 for _ in range(6)]
    for j in range(6):
        for i in range(j, 6):
            rest = a[:, i, j] - sum(lower[i][k] * lower[j][k] for k in range(j))
            lower[i][j] = (rest + ridge).sqrt() if i == j else rest / lower[j][j]
    y = list(b.unbind(1))
    for i in range(6):
        y[i] = (y[i] - sum(lower[i][k] * y[k] for k in range(i))) / lower[i][i]
    for i in reversed(range(6)):
        y[i] = (y[i] - sum(lower[k][i] * y[k] for k in range(i + 1, 6))) / lower[i][i]
    return torch.stack(y, 1)


def long_convolution(d, x, filter, skip):
    spectrum = torch.fft.rfft(x, 2 * d["t"], 1) * torch.fft.rfft(filter, 2 * d["t"], 0)
    return skip * x + torch.fft.irfft(spectrum, 2 * d["t"], 1)[:, : d["t"]]


sixth("syrk_half", {"n": 3001, "k": 1500}, {"n": 53, "k": 37}, {"x": of("n k", narrow(weights, F16)), "c": of("n n")},
      syrk_half, results=("c",), values={"alpha": 0.5, "beta": 0.25}, slack=2e-3)
sixth("khatri_rao", {"m": 1201, "n": 803, "r": 50}, {"m": 11, "n": 7, "r": 5}, {"a": of("m r"), "b": of("n r")},
      lambda d, a, b: (a[:, None] * b).flatten(0, 1))
sixth("contract_crossed", {"a": 40, "b": 45, "c": 37, "d": 29, "e": 35, "f": 41},
      {"a": 3, "b": 4, "c": 5, "d": 6, "e": 7, "f": 2}, {"x": of("a c b d"), "y": of("d f c e")},
      lambda d, x, y: torch.einsum("acbd,dfce->aebf", x, y), results=("z",), slack=1e-3)
sixth("cholesky_solve", {"n": 1000003}, {"n": 203},
      {"a": of("n 6 6", between(0.0, 0.1)), "ridge": of("n", between(1.0, 2.0)), "b": of("n 6")}, cholesky_solve,
      results=("x",))
sixth("long_convolution", {"b": 8, "t": 2003, "c": 130}, {"b": 2, "t": 37, "c": 7},
      {"x": of("b t c"), "filter": of("t c", weights), "skip": of("c")}, long_convolution, slack=1e-3)

# Layouts.


def space_to_depth(d, x):
    squares = x.unflatten(1, (-1, 2)).unflatten(3, (-1, 2)).permute(0, 2, 4, 5, 1, 3)
    return (squares.flatten(1, 3).float() / 127.5 - 1).half()


def pad_sequences(d, x, start, position):
    i = torch.arange(d["t"], device=x.device)
    at = start[:-1, None] + i
    mask = at < start[1:, None]
    rows = x[at.clamp(max=d["total"] - 1)] + position
    return torch.where(mask[..., None], rows, 0.0), mask.to(torch.uint8)


def bit_planes(d, x):
    word = torch.arange(32, device=x.device)
    return torch.stack([(x >> p & 1).unflatten(1, (-1, 32)).long().bitwise_left_shift(word).sum(2) for p in range(8)])


sixth("space_to_depth", {"b": 128, "h": 241, "w": 250, "c": 3}, {"b": 2, "h": 5, "w": 7, "c": 3},
      {"x": shaped(lambda d: (d["b"], 2 * d["h"], 2 * d["w"], d["c"]), BYTES)}, space_to_depth, slack=1e-3)
sixth("pad_sequences", {"total": 90001, "b": 300, "t": 500, "d": 520}, {"total": 103, "b": 5, "t": 37, "d": 13},
      {"x": of("total d", F16), "start": of("b+1", starts("total")), "position": of("t d", F16)}, pad_sequences,
      results=("y", "mask"), slack=2e-3)
sixth("bit_planes", {"h": 8001, "words": 301}, {"h": 37, "words": 3},
      {"x": shaped(lambda d: (d["h"], 32 * d["words"]), BYTES)}, bit_planes, results=("plane",), slack=0.5)
