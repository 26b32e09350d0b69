"""Workloads of `breadth.py`, a nineteenth set: losses, speech, routers, diffusion, prices, genes, strings, bytes."""

import functools
import math

import torch
import torch.nn.functional as F
from unseen3_workloads import F16, INT, between, integers, shaped, weights
from unseen4_workloads import lengths, narrow, row_starts
from unseen5_workloads import BYTES
from unseen13_workloads import whole_ramp
from unseen17_workloads import WORDS
from unseen18_workloads import WORKLOADS  # noqa: F401
from unseen_workloads import HALF, Record, add, of


def nineteenth(name, dims, small, arrays, peer, **more):
    add("unseen_19.krn", name, dims, small, arrays, peer, **more)


# Losses, layers, steps of optimizers.


def tversky_loss(d, x, label):
    x, label = x.flatten(2), label.flatten(1)
    p = x.softmax(1)
    there = label[:, None] == torch.arange(d["c"], device=x.device)[:, None]
    hit = torch.where(there, p, 0).sum((0, 2))
    return 1 - ((hit + 1) / (0.3 * p.sum((0, 2)) + 0.7 * there.sum((0, 2)) + 1)).mean(), hit


def hypersphere_residual(d, h, said, rate):
    h, said = h.float(), said.float()
    said = said * (said.square().sum(1, keepdim=True) + 1e-12).rsqrt()
    moved = torch.lerp(h, said, rate)
    return (moved * (moved.square().sum(1, keepdim=True) + 1e-12).rsqrt()).to(HALF)


def min_snr_v_loss(d, x, noise, guess, t, alpha, unit=64.0):
    shape = x.shape
    x, noise, guess = x.flatten(1).float(), noise.flatten(1).float(), guess.flatten(1).float()
    a = alpha[t][:, None]
    snr = a / (1 - a)
    weight = snr.clamp(max=5) / (snr + 1) / x.shape[1]
    off = guess - (a.sqrt() * noise - (1 - a).sqrt() * x)
    return weight[:, 0] * off.square().sum(1), (2 * unit * weight * off).to(HALF).view(shape)


def cautious_adamw_step(d, p, m, v, g, lr=0.01):
    g = g.float()
    m.mul_(0.9).add_(g, alpha=0.1)
    v.mul_(0.999).addcmul_(g, g, value=0.001)
    agrees = m * g > 0
    rate = lr / agrees.float().mean().clamp(min=0.001)
    p.mul_(1 - 0.01 * lr).sub_(torch.where(agrees, rate * m / (v.sqrt() + 1e-8), 0))
    return p, m, v


def forgetting_attention(d, q, k, v, gate):
    kept = gate.cumsum(2)
    later = torch.ones(d["t"], d["t"], dtype=torch.bool, device=q.device).triu(1)
    bias = (kept[..., :, None] - kept[..., None, :]).masked_fill(later, -math.inf)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias.to(HALF))


def asymmetric_int8_linear(d, x, w, scale, zero, gain, bias):
    # Bytes less 128, and so their zeros.
    dot = torch._int_mm((x ^ 128).view(torch.int8), w.T)
    off = (zero.to(INT) - 128)[:, None] * w.sum(1, dtype=INT)
    return (scale[:, None] * gain * (dot - off) + bias).to(HALF)


def glu_depthwise_swish(d, x, f, gain, shift):
    z = F.conv1d(F.glu(x, 2).mT, f[:, None].to(HALF), padding=15, groups=d["c"]).mT
    return F.silu(gain * z + shift).to(HALF)


def interest_scores(d, item, past, w, bias, out, length):
    of_item, of_past, of_less, of_both = w.chunk(4)
    z = past @ (of_past - of_less) + (item[:, None] * past) @ of_both + (item @ (of_item + of_less) + bias)[:, None]
    weight = F.leaky_relu(z, 0.25) @ out
    counts = torch.arange(d["t"], device=item.device) < length[:, None]
    return torch.bmm(torch.where(counts, weight, 0)[:, None], past)[:, 0]


def relational_messages(d, x, start, to, kind, norm, mix):
    message = torch.bmm((norm[:, None] * mix[kind])[:, None], x[start])[:, 0]
    return torch.zeros(d["n"], d["d"], device=x.device).index_add_(0, to, message)


def byte_bags(d, row, scale, low, index, start):
    values = row[index] * scale[index].float()[:, None] + low[index].float()[:, None]
    places = torch.arange(d["nnz"], dtype=INT, device=row.device)
    return F.embedding_bag(places, values, start, mode="sum", include_last_offset=True)


def of_length_one(shape, dims, device):
    return F.normalize(torch.randn(shape, device=device), dim=1).to(HALF)


def labels(shape, dims, device):
    return torch.randint(0, dims["c"], shape, device=device, dtype=torch.uint8)


VOLUME, FEW = {"b": 3, "c": 14, "d": 96, "h": 128, "w": 131}, {"b": 2, "c": 5, "d": 3, "h": 7, "w": 11}
LINE, FEW_OF_LINE = {"b": 3, "c": 14, "p": 1609728}, {"b": 2, "c": 5, "p": 231}
for name, dims, small, x, label in (
    ("tversky_loss", VOLUME, FEW, "b c d h w", "b d h w"),
    ("tversky_loss_b", LINE, FEW_OF_LINE, "b c p", "b p"),
    ("tversky_loss_c", LINE, FEW_OF_LINE, "b c p", "b p"),
):
    nineteenth(
        name,
        dims,
        small,
        {"x": of(x), "label": of(label, labels)},
        tversky_loss,
        results=("loss", "hit"),
        slack=1e-3,
    )
for name in ("hypersphere_residual", "hypersphere_residual_b", "hypersphere_residual_c"):
    nineteenth(
        name,
        {"n": 40009, "c": 1536},
        {"n": 37, "c": 53},
        {"h": of("n c", of_length_one), "said": of("n c", HALF), "rate": of("c", between(0.0, 0.2))},
        hypersphere_residual,
        slack=1e-3,
    )
for name, dims, small, x, values in (
    (
        "min_snr_v_loss",
        {"b": 2047, "c": 4, "h": 64, "w": 64},
        {"b": 5, "c": 3, "h": 7, "w": 9},
        of("b c h w", HALF),
        {},
    ),
    ("min_snr_v_loss_b", {"b": 2047, "p": 16384}, {"b": 5, "p": 189}, of("b p", HALF), {}),
    ("min_snr_v_loss_c", {"b": 2047, "c": 4}, {"b": 5, "c": 3}, of("b c 4096", HALF), {"h": 64, "w": 64}),
):
    nineteenth(
        name,
        dims | {"steps": 1000},
        small | {"steps": 1000},
        {"x": x, "noise": x, "guess": x, "t": of("b", (INT, "steps")), "alpha": of("steps", between(0.01, 0.99))},
        min_snr_v_loss,
        results=("loss", "dguess"),
        values={"unit": 64.0} | values,
        slack=1e-3,
    )
nineteenth(
    "cautious_adamw_step",
    {"n": 40000003},
    {"n": 1003},
    {"p": of("n"), "m": of("n"), "v": of("n", "positive"), "g": of("n", HALF)},
    cautious_adamw_step,
    results=("p", "m", "v"),
    values={"lr": 0.01},
    slack=1e-3,
)
nineteenth(
    "forgetting_attention",
    {"b": 4, "h": 16, "t": 1024, "d": 64},
    {"b": 2, "h": 3, "t": 37, "d": 16},
    {
        "q": of("b h t d", HALF),
        "k": of("b h t d", HALF),
        "v": of("b h t d", HALF),
        "gate": of("b h t", between(-0.5, 0.0)),
    },
    forgetting_attention,
    slack=2e-2,
)
nineteenth(
    "asymmetric_int8_linear",
    {"m": 5001, "k": 4096, "n": 4104},
    {"m": 37, "k": 64, "n": 40},
    {
        "x": of("m k", BYTES),
        "w": of("n k", integers(-127, 128, torch.int8)),
        "scale": of("m", between(0.001, 0.004)),
        "zero": of("m", integers(100, 156, torch.uint8)),
        "gain": of("n", between(0.001, 0.004)),
        "bias": of("n"),
    },
    asymmetric_int8_linear,
    slack=2e-2,
)
nineteenth(
    "glu_depthwise_swish",
    {"b": 16, "t": 1501, "c": 512},
    {"b": 2, "t": 37, "c": 12},
    {
        "x": shaped(lambda d: (d["b"], d["t"], 2 * d["c"]), HALF),
        "f": of("c 31", weights),
        "gain": of("c", between(0.5, 1.5)),
        "shift": of("c"),
    },
    glu_depthwise_swish,
    slack=3e-2,
)
nineteenth(
    "interest_scores",
    {"b": 20011, "t": 50, "d": 32, "o": 36},
    {"b": 5, "t": 11, "d": 8, "o": 12},
    {
        "item": of("b d"),
        "past": of("b t d"),
        "w": shaped(
            lambda d: (4 * d["d"], d["o"]),
            lambda shape, dims, device: torch.randn(shape, device=device) / math.sqrt(shape[0]),
        ),
        "bias": of("o"),
        "out": of("o", between(-0.2, 0.2)),
        "length": of("b", lengths("t")),
    },
    interest_scores,
    slack=1e-3,
)
nineteenth(
    "relational_messages",
    {"n": 100003, "m": 1000003, "q": 4, "d": 32, "r": 77},
    {"n": 53, "m": 203, "q": 3, "d": 7, "r": 5},
    {
        "x": of("n q d"),
        "from": of("m", (INT, "n")),
        "to": of("m", (INT, "n")),
        "kind": of("m", (INT, "r")),
        "norm": of("m", between(0.05, 0.2)),
        "mix": of("r q"),
    },
    relational_messages,
    slack=1e-3,
)
nineteenth(
    "byte_bags",
    {"m": 1000003, "d": 64, "nnz": 4000000, "b": 100003},
    {"m": 53, "d": 12, "nnz": 203, "b": 17},
    {
        "row": of("m d", BYTES),
        "scale": of("m", narrow(between(0.005, 0.01), F16)),
        "low": of("m", narrow(between(-1.0, -0.5), F16)),
        "index": of("nnz", (INT, "m")),
        "start": of("b+1", row_starts),
    },
    byte_bags,
    slack=1e-3,
)


# Sampling and routing.


def top_n_sigma(d, x, sigmas=1.5):
    x = x.float()
    deviation, mean = torch.std_mean(x, 1, correction=0, keepdim=True)
    keeps = x >= x.amax(1, keepdim=True) - sigmas * deviation
    return torch.where(keeps, x, -math.inf).softmax(1), keeps.sum(1, dtype=INT)


def grouped_router(d, x, bias):
    score = x.sigmoid()
    biased = score + bias
    best = biased.topk(2, sorted=False).values.sum(2).topk(4, sorted=False).indices
    keeps = torch.zeros(x.shape[:2], dtype=torch.bool, device=x.device).scatter_(1, best, True)
    expert = torch.where(keeps[..., None], biased, -math.inf).flatten(1).topk(8).indices
    gain = score.flatten(1).gather(1, expert)
    return expert.to(INT), 2.5 * gain / gain.sum(1, keepdim=True)


nineteenth(
    "top_n_sigma",
    {"b": 301, "v": 151936},
    {"b": 7, "v": 203},
    {"x": of("b v", HALF)},
    top_n_sigma,
    results=("y", "kept"),
    values={"sigmas": 1.5},
)
nineteenth(
    "grouped_router",
    {"n": 50021},
    {"n": 37},
    {"x": of("n 8 32"), "bias": of("8 32", between(-0.1, 0.1))},
    grouped_router,
    results=("expert", "weight"),
)


# Sound.


def mfcc_deltas(d, mel, dct, lifter):
    c = mel.clamp(min=1e-10).log() @ dct.T * lifter
    t = d["t"]
    p = torch.cat([c[:, :1], c[:, :1], c, c[:, -1:], c[:, -1:]], 1)
    return c, 0.1 * (p[:, 3 : t + 3] - p[:, 1 : t + 1] + 2 * (p[:, 4:] - p[:, :t]))


SPEECH, LITTLE_SPEECH = {"b": 301, "t": 1000, "m": 80, "q": 13}, {"b": 3, "t": 17, "m": 11, "q": 5}
for name, dct in (("mfcc_deltas", "q m"), ("mfcc_deltas_b", "q m"), ("mfcc_deltas_c", "m q")):
    turned = name.endswith("_c")
    nineteenth(
        name,
        SPEECH,
        LITTLE_SPEECH,
        {"mel": of("b t m", "positive"), "dct": of(dct, between(-0.2, 0.2)), "lifter": of("q", between(1.0, 4.0))},
        (lambda d, mel, dct, lifter: torch.cat(mfcc_deltas(d, mel, dct.T, lifter), 2)) if turned else mfcc_deltas,
        results=("y",) if turned else ("c", "delta"),
        slack=1e-3,
    )


# Pictures.


@functools.cache
def harmonics(h, w, device):
    """Nine functions of all directions, as a matrix."""
    height = (torch.arange(h, device=device)[:, None] + 0.5) * (math.pi / h)
    turn = (torch.arange(w, device=device) + 0.5) * (2 * math.pi / w)
    ring, up = height.sin(), height.cos().expand(h, w)
    a, b = ring * turn.cos(), ring * turn.sin()
    basis = (
        torch.full_like(a, 0.282095), 0.488603 * b, 0.488603 * up, 0.488603 * a, 1.092548 * a * b, 1.092548 * b * up,
        0.315392 * (3 * up * up - 1), 1.092548 * a * up, 0.546274 * (a * a - b * b),
    )  # fmt: skip
    return torch.stack(basis).mul_(ring * (2 * math.pi**2 / (h * w))).flatten(1)


def environment_harmonics(d, x):
    return harmonics(d["h"], d["w"], x.device) @ x.flatten(1, 2).float()


@functools.cache
def strides(device):
    return torch.tensor([1089, 33, 1], dtype=INT, device=device)


def tetrahedral_lut(d, x, table):
    step, table = strides(x.device), table.view(-1, 3)
    at = x.float().clamp(0, 1) * 32
    cell = at.to(INT).clamp(max=31)
    f = at - cell
    least, between, most = f.sort(2).values.split(1, 2)
    start = (cell * step).sum(2, dtype=INT)
    near, far = start + step[f.argmax(2)], start + 1123 - step[f.argmin(2)]
    y = (1 - most) * table[start] + (most - between) * table[near]
    return (y + (between - least) * table[far] + least * table[start + 1123]).to(F16)


def recursive_denoise(d, x):
    state, y = x[0].float(), torch.empty_like(x)
    for s in range(d["t"]):
        off = x[s] - state
        state = state + (0.125 + off.abs() / 64).clamp(max=1) * off
        y[s] = (state + 0.5).to(torch.uint8)
    return y


AROUND = (
    (1, 2), (-3, 1), (4, -2), (-1, -5), (6, 3), (-7, 2), (2, -8), (-4, 8), (9, -5), (-9, -6), (5, 10), (-11, 3),
    (12, 1), (-3, 12), (7, -11), (-13, -2),
)  # fmt: skip


def screen_occlusion(d, depth, reach=0.5):
    p = F.pad(depth, (13, 13, 13, 13), value=math.inf)
    hidden = 0
    for i, j in AROUND:
        before = depth - p[13 + i : 13 + i + d["h"], 13 + j : 13 + j + d["w"]]
        hidden = hidden + torch.where(before > 0.02, (2 - before / reach).clamp(0, 1), 0)
    return (1 - hidden / 16).square()


nineteenth(
    "environment_harmonics",
    {"n": 40, "h": 512, "w": 1024},
    {"n": 3, "h": 12, "w": 17},
    {"x": of("n h w 3", narrow(between(0.0, 4.0), F16))},
    environment_harmonics,
    slack=1e-3,
)
nineteenth(
    "tetrahedral_lut",
    {"h": 4320, "w": 7680},
    {"h": 37, "w": 53},
    {"x": of("h w 3", narrow(between(0.0, 1.0), F16)), "table": of("33 33 33 3", "positive")},
    tetrahedral_lut,
    slack=2e-3,
)
for name, dims, small, x in (
    ("recursive_denoise", {"t": 60, "h": 2160, "w": 3840}, {"t": 7, "h": 11, "w": 13}, of("t h w", BYTES)),
    ("recursive_denoise_b", {"t": 60, "h": 2160, "w": 3840}, {"t": 7, "h": 11, "w": 13}, of("t h w", BYTES)),
    ("recursive_denoise_c", {"t": 60, "p": 2073600}, {"t": 7, "p": 35}, shaped(lambda d: (d["t"], 4 * d["p"]), BYTES)),
):
    # A number between two bytes may be rounded either way.
    nineteenth(name, dims, small, {"x": x}, recursive_denoise, slack=1.01)
nineteenth(
    "screen_occlusion",
    {"h": 4320, "w": 7681},
    {"h": 37, "w": 53},
    {"depth": of("h w", between(1.0, 4.0))},
    screen_occlusion,
    values={"reach": 0.5},
    slack=1e-3,
)


# Physics and chemistry.


def tensor_diffusion_3d(d, u, t, dt=0.1):
    p = F.pad(u[None, None], (1, 1, 1, 1, 1, 1), mode="replicate")[0, 0]
    x = 0.5 * (p[1:-1, 1:-1, 2:] - p[1:-1, 1:-1, :-2])
    y = 0.5 * (p[1:-1, 2:, 1:-1] - p[1:-1, :-2, 1:-1])
    z = 0.5 * (p[2:, 1:-1, 1:-1] - p[:-2, 1:-1, 1:-1])
    fx = F.pad(t[0] * x + t[1] * y + t[2] * z, (1, 1))
    fy = F.pad(t[1] * x + t[3] * y + t[4] * z, (0, 0, 1, 1))
    fz = F.pad(t[2] * x + t[4] * y + t[5] * z, (0, 0, 0, 0, 1, 1))
    gained = fx[..., 2:] - fx[..., :-2] + fy[:, 2:] - fy[:, :-2] + fz[2:] - fz[:-2]
    return u + 0.5 * dt * gained


def born_radii(d, p, radius):
    r = ((p[:, None] - p).square().sum(2) + 1e-6).sqrt()
    own, size = radius[:, None], 0.8 * radius
    upper, lower = 1 / (r + size), 1 / torch.maximum(own, (r - size).abs())
    bent = 0.25 * (r - size * size / r) * (upper * upper - lower * lower)
    part = 0.5 * (lower - upper + bent + 0.5 * (upper / lower).log() / r)
    part = torch.where(r + size > own, part, 0).fill_diagonal_(0)
    return 1 / (1 / radius - part.sum(1)).clamp(min=0.01)


FIELD, LITTLE_FIELD = {"d": 256, "h": 300, "w": 333}, {"d": 5, "h": 7, "w": 11}
for name, t in (
    ("tensor_diffusion_3d", of("6 d h w")),
    ("tensor_diffusion_3d_b", of("6 d h w")),
    ("tensor_diffusion_3d_c", of("d h w", Record("xx", "xy", "xz", "yy", "yz", "zz"))),
):
    nineteenth(
        name,
        FIELD,
        LITTLE_FIELD,
        {"u": of("d h w"), "t": t},
        (lambda d, u, t: tensor_diffusion_3d(d, u, t.movedim(-1, 0))) if name.endswith("_c") else tensor_diffusion_3d,
        values={"dt": 0.1},
        slack=1e-3,
    )
nineteenth(
    "born_radii",
    {"n": 10007},
    {"n": 203},
    {"p": of("n 3", between(-30.0, 30.0)), "radius": of("n", between(1.0, 2.0))},
    born_radii,
    slack=1e-2,
)


# Finance and statistics.


def local_volatility_paths(d, z, vol, strike=1.0):
    dt, most = 1 / d["t"], d["k"] - 1
    x = torch.zeros_like(z[0])
    for s in range(d["t"]):
        at = (0.5 * (x + 1) * most).clamp(0, most)
        cell = at.to(INT).clamp(max=most - 1)
        v = torch.lerp(vol[s].index_select(0, cell), vol[s].index_select(0, cell + 1), at - cell)
        x = x + v * (math.sqrt(dt) * z[s] - 0.5 * v * dt)
    last = x.exp()
    return last, (last - strike).clamp(min=0).mean()


def holt_winters(d, x):
    level, trend, total = x[0], torch.zeros_like(x[0]), torch.zeros_like(x[0])
    season, y = [trend] * 12, torch.empty_like(x)
    for s in range(d["t"]):
        month, before = season[s % 12], level
        y[s] = guess = level + trend + month
        total = total + (x[s] - guess).square()
        level = 0.3 * (x[s] - month) + 0.7 * (level + trend)
        trend = 0.1 * (level - before) + 0.9 * trend
        season[s % 12] = 0.2 * (x[s] - level) + 0.8 * month
    return y, total


def welch_t_rows(d, x, group):
    there = torch.stack([group == 0, group == 1], 1).float()
    many = there.sum(0)
    most, fewer = many.clamp(min=1), (many - 1).clamp(min=1)
    mean = x @ there / most
    off = x - torch.where(group == 0, mean[:, :1], mean[:, 1:])
    error = off.square() @ there / (most * fewer)
    both = error.sum(1) + 1e-12
    return (mean[:, 0] - mean[:, 1]) / both.sqrt(), both * both / ((error * error / fewer).sum(1) + 1e-12)


def chi2_features(d, x, label):
    place = torch.arange(0, 64 * d["f"], 64, device=x.device) + (4 * x + label[:, None])
    place = place.flatten()
    many = torch.zeros(64 * d["f"], dtype=INT, device=x.device)
    many = many.scatter_add_(0, place, torch.ones((), dtype=INT, device=x.device).expand(place.shape)).view(-1, 16, 4)
    counts = many.float()
    expected = counts.sum(2, keepdim=True) * counts.sum(1, keepdim=True) / d["n"]
    return many, torch.where(expected > 0, (counts - expected).square() / expected, 0).sum((1, 2))


def profile_join(d, a, b):
    a, b = a.unfold(0, 64, 1), b.unfold(0, 64, 1)
    a, b = a - a.mean(1, keepdim=True), b - b.mean(1, keepdim=True)
    a = a * (a.square().sum(1, keepdim=True) + 1e-6).rsqrt()
    b = b * (b.square().sum(1, keepdim=True) + 1e-6).rsqrt()
    return (128 * (1 - (a @ b.T).amax(1))).clamp(min=0).sqrt()


nineteenth(
    "local_volatility_paths",
    {"t": 100, "n": 1000003, "k": 200},
    {"t": 7, "n": 403, "k": 20},
    {"z": of("t n"), "vol": of("t k", between(0.1, 0.4))},
    local_volatility_paths,
    results=("last", "price"),
    values={"strike": 1.0},
)
nineteenth(
    "holt_winters",
    {"t": 120, "n": 500009},
    {"t": 37, "n": 203},
    {"x": of("t n", between(5.0, 15.0))},
    holt_winters,
    results=("y", "error"),
    slack=1e-2,
)
for name in ("welch_t_rows", "welch_t_rows_b", "welch_t_rows_c"):
    nineteenth(
        name,
        {"g": 20011, "s": 5003},
        {"g": 37, "s": 203},
        {"x": of("g s"), "group": of("s", integers(0, 2, torch.uint8))},
        welch_t_rows,
        results=("t", "freedom"),
        slack=1e-2,
    )
nineteenth(
    "chi2_features",
    {"n": 1000003, "f": 77},
    {"n": 403, "f": 7},
    {"x": of("n f", integers(0, 16, torch.uint8)), "label": of("n", integers(0, 4, torch.uint8))},
    chi2_features,
    results=("many", "chi2"),
    slack=1e-3,
)


def longer(extent):
    """A series of that many windows of 64."""
    return shaped(lambda d: (d[extent] + 63,))


nineteenth(
    "profile_join",
    {"n": 8193, "m": 8191},
    {"n": 37, "m": 53},
    {"a": longer("n"), "b": longer("m")},
    profile_join,
    slack=1e-3,
)


# Tables, strings, molecules, bits.


def sessions(d, user, time, gap=95):
    starts = (user[1:] != user[:-1]) | (time[1:] - time[:-1] > gap)
    session = F.pad(starts, (1, 0)).cumsum(0, dtype=INT)
    return session, session[-1] + 1


def contains_word(d, start, text, word):
    k, m = d["k"], d["m"]
    here = text[: m - k + 1] == word[0]
    for q in range(1, k):
        here = here & (text[q : m - k + 1 + q] == word[q])
    before = F.pad(here.cumsum(0, dtype=INT), (1, 0))
    begin, end = start[:-1], start[1:] - (k - 1)
    found = (end > begin) & (before[end.clamp(min=0)] > before[begin.clamp(max=m - k + 1)])
    return found, found.sum()


def scrambled(key):
    """A hash of 32 bits, in numbers of 64."""
    ones = 0xFFFFFFFF
    key = ((key ^ key >> 16) * 0x85EBCA6B) & ones
    key = ((key ^ key >> 13) * 0xC2B2AE35) & ones
    return key ^ key >> 16


def sketch_distinct(d, key):
    hashed = scrambled(key.long() & 0xFFFFFFFF)
    _, digits = (hashed << 12 & 0xFFFFFFFF | 2048).double().frexp()
    register = torch.zeros(4096, dtype=INT, device=key.device)
    register.scatter_reduce_(0, hashed >> 20, 33 - digits, "amax")
    estimate = 0.7213 / (1 + 1.079 / 4096) * 4096 * 4096 / torch.exp2(-register.float()).sum()
    return register.to(torch.uint8), estimate


def ungapped_extend(d, a, b, at_a, at_b, score, drop=10):
    step = torch.arange(64, dtype=INT, device=a.device)
    x, y = at_a[:, None] + step, at_b[:, None] + step
    inside = (x < d["p"]) & (y < d["q"])
    pair = 24 * a[x.clamp(max=d["p"] - 1)].to(INT) + b[y.clamp(max=d["q"] - 1)]
    total = score.flatten()[pair].cumsum(1, dtype=INT)
    stops = total < total.cummax(1).values.clamp(min=0) - drop
    ended = (F.pad(stops[:, :-1], (1, 0)) | ~inside).cumsum(1, dtype=INT) > 0
    # The first of the best.
    best = torch.where(ended, -1, 64 * total + 63 - step).amax(1)
    return torch.where(best < 64, 0, best >> 6), torch.where(best < 64, 0, 64 - (best & 63))


def bits_of(x):
    return (x[..., None] >> torch.arange(32, dtype=INT, device=x.device) & 1).to(F16).flatten(1)


def tanimoto_nearest(d, a, b):
    # Counts up to 2048 are exact in half precision.
    a, b = bits_of(a), bits_of(b)
    both = (a @ b.T).float()
    like = both / (a.sum(1, dtype=torch.float32)[:, None] + b.sum(1, dtype=torch.float32) - both).clamp(min=1)
    return like.amax(1), (like >= 0.36).sum(1, dtype=INT)


def parity(x, products):
    """Bytes through the tables of products of each result and input, 256 numbers each."""
    rows, place = [], x.to(INT)
    for row in products:
        total = row[0][place[0]]
        for c in range(1, len(x)):
            total = total ^ row[c][place[c]]
        rows.append(total)
    return torch.stack(rows)


def reed_solomon_parity(d, x, matrix, log_of, power):
    value = torch.arange(256, device=x.device)
    product = power[log_of.to(INT) + log_of[matrix.to(INT)].to(INT)[..., None]]
    return parity(x, torch.where((value != 0) & (matrix != 0)[..., None], product, 0))


def reed_solomon_parity_b(d, x, matrix):
    term = torch.arange(256, dtype=torch.uint8, device=x.device)
    products = torch.zeros(*matrix.shape, 256, dtype=torch.uint8, device=x.device)
    for s in range(8):
        products ^= torch.where((matrix >> s & 1 != 0)[..., None], term, 0)
        term = term << 1 ^ torch.where(term & 128 != 0, 0x1D, 0).to(torch.uint8)
    return parity(x, products)


def reed_solomon_parity_c(d, x, half):
    return parity(x, (half[:, :, 0, None, :] ^ half[:, :, 1, :, None]).flatten(2))


def users_in_order(shape, dims, device):
    return (torch.arange(shape[0], device=device) // 1000).to(INT)


def times_in_order(shape, dims, device):
    return torch.randint(0, 100, shape, device=device).cumsum(0).to(INT)


LETTERS = integers(97, 102, torch.uint8)
nineteenth(
    "sessions",
    {"n": 40000001},
    {"n": 4003},
    {"user": of("n", users_in_order), "time": of("n", times_in_order)},
    sessions,
    results=("session", "many"),
    values={"gap": 95},
)
nineteenth(
    "contains_word",
    {"n": 2000003, "m": 77000000, "k": 4},
    {"n": 103, "m": 2003, "k": 3},
    {"start": of("n+1", whole_ramp), "text": of("m", LETTERS), "word": of("k", LETTERS)},
    contains_word,
    results=("found", "many"),
)
nineteenth(
    "sketch_distinct",
    {"n": 50000017},
    {"n": 4003},
    {"key": of("n", WORDS)},
    sketch_distinct,
    results=("register", "estimate"),
)
nineteenth(
    "ungapped_extend",
    {"n": 4000037, "p": 1000003, "q": 20000003},
    {"n": 203, "p": 103, "q": 403},
    {
        "a": of("p", integers(0, 24, torch.uint8)),
        "b": of("q", integers(0, 24, torch.uint8)),
        "at_a": of("n", (INT, "p")),
        "at_b": of("n", (INT, "q")),
        "score": of("24 24", integers(-5, 5, torch.int8)),
    },
    ungapped_extend,
    results=("best", "length"),
    values={"drop": 10},
)
nineteenth(
    "tanimoto_nearest",
    {"n": 3001, "m": 20011, "w": 32},
    {"n": 37, "m": 53, "w": 5},
    {"a": of("n w", WORDS), "b": of("m w", WORDS)},
    tanimoto_nearest,
    results=("best", "near"),
)
STRIPES, FEW_STRIPES = {"k": 10, "n": 20000003, "p": 4}, {"k": 5, "n": 203, "p": 3}
nineteenth(
    "reed_solomon_parity",
    STRIPES,
    FEW_STRIPES,
    {
        "x": of("k n", BYTES),
        "matrix": of("p k", BYTES),
        "log_of": of("256", integers(0, 255, torch.uint8)),
        "power": of("510", BYTES),
    },
    reed_solomon_parity,
)
nineteenth(
    "reed_solomon_parity_b",
    STRIPES,
    FEW_STRIPES,
    {"x": of("k n", BYTES), "matrix": of("p k", BYTES)},
    reed_solomon_parity_b,
)
nineteenth(
    "reed_solomon_parity_c",
    STRIPES,
    FEW_STRIPES,
    {"x": of("k n", BYTES), "half": of("p k 2 16", BYTES)},
    reed_solomon_parity_c,
)
