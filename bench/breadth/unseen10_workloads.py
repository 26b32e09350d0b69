"""Workloads of `breadth.py`, a tenth set: inference, training, vision, simulation, signals, learning, graphs."""

import functools
import math

import torch
import torch.nn.functional as F
from unseen3_workloads import F16, INT, between, integers, shaped
from unseen4_workloads import lengths, narrow, row_starts
from unseen5_workloads import BYTES
from unseen8_workloads import VECTORS, bits, doubled, narrow_weights
from unseen9_workloads import WORKLOADS
from unseen_workloads import HALF, Record, add, of


def tenth(name, dims, small, arrays, peer, **more):
    add("unseen_10.krn", name, dims, small, arrays, peer, **more)


@functools.cache
def table(values, dtype, device):
    """A tensor of literals, which a captured graph may not copy to the device."""
    return torch.tensor(values, dtype=dtype, device=device)


# Inference.


def top_p_sample(d, logit, noise):
    x = logit.float()
    p = ((x - x.amax(1, keepdim=True)) / 0.8).exp()
    wanted = 0.9 * p.sum(1, keepdim=True)
    low, high = torch.zeros_like(wanted), torch.ones_like(wanted)
    for _ in range(24):
        middle = 0.5 * (low + high)
        enough = torch.where(p >= middle, p, 0.0).sum(1, keepdim=True) >= wanted
        low, high = torch.where(enough, middle, low), torch.where(enough, high, middle)
    kept = p >= low
    return torch.where(kept, p / noise, 0.0).argmax(1).int(), kept.sum(1).int()


def chunked_prefill_attention(d, q, k, v):
    past = d["n"] - d["t"]
    q, k, v = (x.transpose(0, 1)[None] for x in (q, k, v))
    mask = torch.ones(d["t"], d["n"], dtype=torch.bool, device=q.device).tril(past)
    return F.scaled_dot_product_attention(q, k, v, mask, scale=0.125, enable_gqa=True)[0].transpose(0, 1)


def expert_swiglu(d, x, token, expert, w):
    rows = torch.where(token[..., None] >= 0, x[token.clamp(min=0)], 0.0)
    gate, up = torch.bmm(rows, w[expert].mT).float().chunk(2, -1)
    return (F.silu(gate) * up).to(HALF)


def nvfp4_linear(d, x, packed, scale):
    values = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
    value = table(values + tuple(-v for v in values), F16, x.device)
    codes = torch.stack([packed & 15, packed >> 4], -1).flatten(2)
    w = value[codes.long()] * scale.view(torch.float8_e4m3fn).to(F16)[..., None]
    return (0.5 * F.linear(x, w.flatten(1)).float()).to(F16)


def block_tokens(shape, dims, device):
    """Which token each row of a block has; about one row in eight has none."""
    token = torch.randint(0, dims["t"], shape, device=device, dtype=INT)
    return torch.where(torch.rand(shape, device=device) < 0.125, -1, token)


tenth(
    "top_p_sample",
    {"b": 128, "v": 50257},
    {"b": 7, "v": 203},
    {"logit": of("b v", narrow(between(-5.0, 5.0), F16)), "noise": of("b v", between(0.01, 4.0))},
    top_p_sample,
    results=("word", "kept"),
    values={"temperature": 0.8, "share": 0.9},
    slack=0.0,
)
tenth(
    "chunked_prefill_attention",
    {"t": 500, "n": 6000, "kv": 8, "d": 128},
    {"t": 7, "n": 53, "kv": 2, "d": 13},
    {
        "q": shaped(lambda d: (d["t"], 4 * d["kv"], d["d"]), HALF),
        "k": of("n kv d", HALF),
        "v": of("n kv d", HALF),
    },
    chunked_prefill_attention,
    values={"scale": 0.125},
    slack=2e-2,
)
tenth(
    "expert_swiglu",
    {"t": 4000, "k": 2048, "blocks": 250, "experts": 32, "n": 768},
    {"t": 29, "k": 37, "blocks": 3, "experts": 4, "n": 13},
    {
        "x": of("t k", HALF),
        "token": of("blocks 64", block_tokens),
        "expert": of("blocks", (INT, "experts")),
        "w": shaped(lambda d: (d["experts"], 2 * d["n"], d["k"]), narrow(between(-0.05, 0.05), HALF)),
    },
    expert_swiglu,
    slack=3e-2,
)
tenth(
    "nvfp4_linear",
    {"m": 32, "n": 14336, "g": 256},
    {"m": 5, "n": 29, "g": 7},
    {
        "x": shaped(lambda d: (d["m"], 16 * d["g"]), F16),
        "packed": of("n g 8", BYTES),
        "scale": of("n g", integers(8, 56, torch.uint8)),
    },
    nvfp4_linear,
    values={"factor": 0.5},
    slack=1e-1,
)

# Training.


def group_policy_loss(d, reward, log_p, old, reference, length):
    deviation, mean = torch.std_mean(reward, 1, correction=0, keepdim=True)
    advantage = ((reward - mean) / (deviation + 1e-4))[..., None]
    many = length[..., None]
    seen = torch.arange(d["t"], device=reward.device) < many
    ratio, away = (log_p - old).exp(), reference - log_p
    plain, clipped = ratio * advantage, ratio.clamp(0.8, 1.2) * advantage
    share = seen / (many * (d["n"] * d["g"]))
    loss = (share * (0.04 * (away.exp() - away - 1) - torch.minimum(plain, clipped))).sum()
    return loss, share * (0.04 * (1 - away.exp()) - torch.where(plain <= clipped, plain, 0.0))


def adan_clipped_step(d, p, m, v, s, last, g):
    slope = g.float() * (1 / (g.float().norm() + 1e-6)).clamp(max=1)
    change = slope - last.float()
    m.lerp_(slope, 0.02)
    v.lerp_(change, 0.08)
    both = slope + 0.92 * change
    s.mul_(0.99).addcmul_(both, both, value=0.01)
    p.sub_(0.001 * (m + 0.92 * v) / (s.sqrt() + 1e-8)).div_(1 + 0.02 * 0.001)
    last.copy_(slope)
    return p, m, v, s, last


def causal_conv_silu_backward(d, x, w, bias, dy):
    x, dy, t = x.float().mT, dy.float().mT, d["t"]
    padded = F.pad(x, (3, 0))
    z = F.conv1d(padded, w[:, None], bias, groups=d["c"])
    a = torch.sigmoid(z)
    dz = dy * a * (1 + z * (1 - a))
    dx = F.conv1d(F.pad(dz, (0, 3)), w.flip(1)[:, None], groups=d["c"])
    dw = torch.stack([(dz * padded[..., q : q + t]).sum((0, 2)) for q in range(4)], 1)
    return dx.mT.to(F16), dw, dz.sum((0, 2))


TOKENS = of("n g t", between(-2.0, -1.0))
tenth(
    "group_policy_loss",
    {"n": 256, "g": 16, "t": 2047},
    {"n": 3, "g": 5, "t": 37},
    {"reward": of("n g"), "log_p": TOKENS, "old": TOKENS, "reference": TOKENS, "length": of("n g", lengths("t"))},
    group_policy_loss,
    results=("loss", "gradient"),
    values={"clip": 0.2, "beta": 0.04},
)
tenth(
    "adan_clipped_step",
    {"n": 20000003},
    {"n": 1003},
    {"p": of("n"), "m": of("n"), "v": of("n"), "s": of("n", "positive"), "last": of("n", HALF), "g": of("n", HALF)},
    adan_clipped_step,
    results=("p", "m", "v", "s", "last"),
    values={"rate": 0.001, "most": 1.0},
)
tenth(
    "causal_conv_silu_backward",
    {"b": 8, "t": 2047, "c": 3072},
    {"b": 2, "t": 23, "c": 13},
    {"x": of("b t c", F16), "w": of("c 4"), "bias": of("c"), "dy": of("b t c", F16)},
    causal_conv_silu_backward,
    results=("dx", "dw", "dbias"),
    slack=1e-2,
)

# Vision.


def grey(x):
    return 0.299 * x[..., 0] + 0.587 * x[..., 1] + 0.114 * x[..., 2]


def augment_images(d, x, corner, flip, factor):
    h, w = d["h"] - 16, d["w"] - 16
    i, j = torch.arange(h, device=x.device), torch.arange(w, device=x.device)
    j = torch.where(flip[:, None] == 1, w - 1 - j, j)
    s = torch.arange(d["b"], device=x.device)[:, None, None]
    seen = x[s, (corner[:, :1] + i)[:, :, None], (corner[:, 1:] + j)[:, None]]
    brighter, contrast, colour = factor[..., None, None, None].unbind(1)
    t = (brighter * seen / 255).clamp(max=1)
    middle = grey(t).mean((1, 2))[:, None, None, None]
    t = (middle + contrast * (t - middle)).clamp(0, 1)
    own = grey(t)[..., None]
    t = (own + colour * (t - own)).clamp(0, 1)
    mean, spread = (table(v, torch.float32, x.device) for v in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    return ((t - mean) / spread).permute(0, 3, 1, 2).to(F16)


def decode_detections(d, x, shape):
    x = x.float()
    i, j = torch.arange(d["h"], device=x.device)[:, None], torch.arange(d["w"], device=x.device)
    t = torch.sigmoid(x[:, :, :5])
    px, py = (2 * t[:, :, 0] - 0.5 + j) * 8, (2 * t[:, :, 1] - 0.5 + i) * 8
    half_w, half_h = (2 * t[:, :, 2 + a] ** 2 * shape[:, a, None, None] for a in range(2))
    best, kind = x[:, :, 5:].max(2)
    box = torch.stack([px - half_w, py - half_h, px + half_w, py + half_h], -1)
    return box, t[:, :, 4] * torch.sigmoid(best), kind.int()


def segmentation_confusion(d, logit, label):
    classes = d["classes"]
    found = F.interpolate(logit.float(), scale_factor=4, mode="bilinear").argmax(1)
    place = torch.where(label < classes, label.long() * classes + found, classes * classes).flatten()
    many = torch.zeros(classes * classes + 1, dtype=INT, device=label.device)
    return many.index_add_(0, place, torch.ones_like(place, dtype=INT))[:-1]


def splat_depth(d, depth, pose):
    h, w, focal = d["h"], d["w"], 500.0
    i, j = torch.arange(h, device=depth.device)[:, None], torch.arange(w, device=depth.device)
    at = torch.stack([(j - 0.5 * w) * depth / focal, (i - 0.5 * h) * depth / focal, depth])
    x, y, z = at + torch.tensordot(pose[:, :3], at, 1) + pose[:, 3, None, None]
    u = (focal * x / z + (0.5 * w + 0.5)).floor().long()
    v = (focal * y / z + (0.5 * h + 0.5)).floor().long()
    seen = (depth > 0) & (z > 0.1) & (u >= 0) & (u < w) & (v >= 0) & (v < h)
    place = torch.where(seen, v * w + u, h * w).flatten()
    return torch.full((h * w + 1,), torch.inf, device=z.device).scatter_reduce(0, place, z.flatten(), "amin")[:-1]


def lanczos_resize(d, x):
    def matrix(many):
        out = torch.arange(2 * many // 5, device=x.device)[:, None]
        t = (torch.arange(many, device=x.device) - (2.5 * (out + 0.5) - 0.5)) / 2.5
        weight = torch.where(t.abs() < 3, torch.sinc(t) * torch.sinc(t / 3), 0.0)
        return weight / weight.sum(1, keepdim=True)

    y = torch.einsum("ph,hwc,qw->pqc", matrix(d["h"]), x.float(), matrix(d["w"]))
    return y.round().clamp(0, 255).to(torch.uint8)


def classes_or_none(shape, dims, device):
    label = torch.randint(0, dims["classes"], shape, device=device)
    return torch.where(torch.rand(shape, device=device) < 0.1, 255, label).to(torch.uint8)


tenth(
    "augment_images",
    {"b": 128, "h": 240, "w": 241},
    {"b": 3, "h": 29, "w": 37},
    {
        "x": of("b h w 3", BYTES),
        "corner": of("b 2", integers(0, 17, INT)),
        "flip": of("b", bits),
        "factor": of("b 3", between(0.6, 1.4)),
    },
    augment_images,
    slack=4e-3,
)
tenth(
    "decode_detections",
    {"b": 32, "kinds": 80, "h": 80, "w": 81},
    {"b": 2, "kinds": 7, "h": 5, "w": 11},
    {
        "x": shaped(lambda d: (d["b"], 3, 5 + d["kinds"], d["h"], d["w"]), F16),
        "shape": of("3 2", between(5.0, 60.0)),
    },
    decode_detections,
    results=("box", "score", "kind"),
    values={"stride": 8.0},
    slack=1e-3,
)
tenth(
    "segmentation_confusion",
    {"b": 8, "classes": 19, "h": 128, "w": 255},
    {"b": 2, "classes": 5, "h": 7, "w": 11},
    {"logit": of("b classes h w", F16), "label": doubled("b 4h 4w", classes_or_none)},
    segmentation_confusion,
    results=("many",),
    slack=0.0,
)
tenth(
    "splat_depth",
    {"h": 2160, "w": 3841},
    {"h": 37, "w": 53},
    {"depth": of("h w", between(0.5, 5.0)), "pose": of("3 4", between(-0.03, 0.03))},
    splat_depth,
    values={"focal": 500.0},
    slack=1e-3,
)
tenth(
    "lanczos_resize",
    {"h": 3000, "w": 4005},
    {"h": 37, "w": 53},
    {"x": of("h w 3", BYTES)},
    lanczos_resize,
    slack=1.0,
)

# Simulations.


def lattice_bgk_3d(d, f, wall):
    cx = [0, 1, -1, 0, 0, 0, 0, 1, -1, 1, -1, 1, -1, 1, -1, 0, 0, 0, 0]
    cy = [0, 0, 0, 1, -1, 0, 0, 1, -1, -1, 1, 0, 0, 0, 0, 1, -1, 1, -1]
    cz = [0, 0, 0, 0, 0, 1, -1, 0, 0, 0, 0, 1, -1, -1, 1, 1, -1, -1, 1]
    weight = [1 / 3] + [1 / 18] * 6 + [1 / 36] * 12
    came = [f[q].roll((cz[q], cy[q], cx[q]), (0, 1, 2)) for q in range(19)]
    rho = sum(came)
    ux, uy, uz = (sum(c[q] * came[q] for q in range(19) if c[q]) / rho for c in (cx, cy, cz))
    square, out = ux * ux + uy * uy + uz * uz, []
    for q in range(19):
        along = cx[q] * ux + cy[q] * uy + cz[q] * uz
        rest = weight[q] * rho * (1 + 3 * along + 4.5 * along * along - 1.5 * square)
        back = 0 if q == 0 else q + 1 if q % 2 else q - 1
        out.append(torch.where(wall == 1, came[back], came[q] + 1.2 * (rest - came[q])))
    return torch.stack(out)


def constrained_transport(d, v, b):
    def down(x, *axes):
        return x.roll((1,) * len(axes), axes)

    def around(x, one, two):
        return 0.25 * (x + down(x, one) + down(x, two) + down(x, one, two))

    def half(x, axis):
        return 0.5 * (x + down(x, axis))

    (bx, by, bz), z, y, x = b.unbind(-1), 0, 1, 2
    vx, vy, vz = around(v, z, y), around(v, z, x), around(v, y, x)
    ex = vx[..., 2] * half(by, z) - vx[..., 1] * half(bz, y)
    ey = vy[..., 0] * half(bz, x) - vy[..., 2] * half(bx, z)
    ez = vz[..., 1] * half(bx, y) - vz[..., 0] * half(by, x)

    def change(e, axis):
        return e.roll(-1, axis) - e

    curl = [change(ez, y) - change(ey, z), change(ex, z) - change(ez, x), change(ey, x) - change(ex, y)]
    return b.sub_(torch.stack(curl, -1), alpha=0.1)


def boris_push(d, at, speed, e, b):
    m, low = d["m"], at.floor()
    part, electric, magnetic = at - low, 0.0, 0.0
    low = low.long()
    for corner in range(8):
        step = table((corner & 1, corner >> 1 & 1, corner >> 2), torch.int64, at.device)
        x, y, z = ((low + step) % m).unbind(1)
        weight = torch.where(step == 1, part, 1 - part).prod(1, keepdim=True)
        electric, magnetic = electric + weight * e[z, y, x], magnetic + weight * b[z, y, x]
    minus, t = speed + 0.025 * electric, 0.025 * magnetic
    s = 2 * t / (1 + t.square().sum(1, keepdim=True))
    turned = torch.linalg.cross(minus + torch.linalg.cross(minus, t), s)
    speed.copy_(minus + turned + 0.025 * electric)
    at.add_(speed, alpha=0.1)
    at.sub_(m * (at / m).floor())
    return at, speed


def heisenberg_overrelax(d, spin):
    i, j, k = (torch.arange(d[name], device=spin.device) for name in "dhw")
    color = (i[:, None, None] + j[:, None] + k) % 2
    for turn in range(2):
        p = F.pad(spin, (0, 0, 1, 1, 1, 1, 1, 1))
        field = p[:-2, 1:-1, 1:-1] + p[2:, 1:-1, 1:-1] + p[1:-1, :-2, 1:-1]
        field = field + p[1:-1, 2:, 1:-1] + p[1:-1, 1:-1, :-2] + p[1:-1, 1:-1, 2:]
        length = field.square().sum(-1)
        turned = (2 * (spin * field).sum(-1) / length)[..., None] * field - spin
        spin.copy_(torch.where(((color == turn) & (length > 1e-9))[..., None], turned, spin))
    return spin


def in_grid(shape, dims, device):
    return dims["m"] * torch.rand((*shape, 3), device=device)


in_grid.fields = VECTORS.fields
tenth(
    "lattice_bgk_3d",
    {"d": 100, "h": 127, "w": 129},
    {"d": 5, "h": 7, "w": 11},
    {"f": of("19 d h w", between(0.03, 0.07)), "wall": of("d h w", bits)},
    lattice_bgk_3d,
    results=("g",),
    values={"omega": 1.2},
)
tenth(
    "constrained_transport",
    {"d": 150, "h": 161, "w": 163},
    {"d": 5, "h": 7, "w": 11},
    {"v": of("d h w", VECTORS), "b": of("d h w", VECTORS)},
    constrained_transport,
    results=("b",),
    values={"dt": 0.1},
)
tenth(
    "boris_push",
    {"n": 3000001, "m": 61},
    {"n": 203, "m": 7},
    {"at": of("n", in_grid), "speed": of("n", VECTORS), "e": of("m m m", VECTORS), "b": of("m m m", VECTORS)},
    boris_push,
    results=("at", "speed"),
    values={"charge": 0.5, "dt": 0.1},
)
tenth(
    "heisenberg_overrelax",
    {"d": 200, "h": 201, "w": 203},
    {"d": 5, "h": 7, "w": 11},
    {"spin": of("d h w", VECTORS)},
    heisenberg_overrelax,
    results=("spin",),
    slack=5e-3,
)

# Signals.


def biquad_cascade(d, x, coef):
    """`torch.compile` would unroll the time for minutes."""
    z1, z2, y = torch.zeros(2, 4, d["channels"], device=x.device).unbind()[0].unbind(), [0.0] * 4, []
    z1 = list(z1)
    for v in x:
        for s in range(4):
            b0, b1, b2, a1, a2 = coef[s]
            out = b0 * v + z1[s]
            z1[s], z2[s], v = b1 * v - a1 * out + z2[s], b2 * v - a2 * out, out
        y.append(v)
    return torch.stack(y)


def yin_pitch(d, x):
    frames = x.unfold(0, 511, 256)
    differ = (frames.unfold(1, 256, 1) - frames[:, None, :256]).square().sum(-1)
    lag = torch.arange(256, device=x.device)
    even = torch.where(lag == 0, 1.0, differ * lag / (differ[:, 1:].cumsum(1)[:, lag.clamp(min=1) - 1] + 1e-9))
    dips = (even[:, 32:255] < 0.15) & (even[:, 33:] >= even[:, 32:255])
    best = 32 + torch.where(dips.any(1), dips.int().argmax(1), even[:, 32:].argmin(1))
    return best.int(), even.gather(1, best[:, None])[:, 0]


def voices(shape, dims, device):
    """A tone that slides from a short to a long period, with a little noise."""
    period = torch.linspace(60, 180, shape[0], device=device, dtype=torch.float64)
    angle = (2 * math.pi / period).cumsum(0)
    return (angle.sin() + 0.4 * (2 * angle).sin()).float() + 0.02 * torch.randn(shape, device=device)


tenth(
    "biquad_cascade",
    {"t": 500, "channels": 30011},
    {"t": 37, "channels": 53},
    {"x": of("t channels"), "coef": of("4 5", between(-0.3, 0.3))},
    biquad_cascade,
)
tenth(
    "yin_pitch",
    {"n": 10000},
    {"n": 13},
    {"x": shaped(lambda d: (256 * d["n"] + 256,), voices)},
    yin_pitch,
    results=("period", "quality"),
    values={"threshold": 0.15},
    slack=1e-3,
)

# Learning.


def matern_times_vectors(d, x, z, length, v):
    r = math.sqrt(5) * torch.cdist(x / length, z / length)
    return ((1 + r + r * r / 3) * torch.exp(-r)) @ v


def boosting_splits(d, bins, node, g, h):
    nodes, features = 8, d["features"]
    place = (node[:, None] * features + torch.arange(features, device=g.device)) * 256 + bins

    def sums(x):
        much = torch.zeros(nodes * features * 256, device=x.device)
        much.index_add_(0, place.flatten(), x[:, None].expand(-1, features).flatten())
        return much.view(nodes, features, 256)

    slope, curve = sums(g), sums(h)
    left_g, left_h = slope.cumsum(2), curve.cumsum(2)
    all_g, all_h = left_g[..., -1:], left_h[..., -1:]
    right = (all_g - left_g) ** 2 / (all_h - left_h + 1)
    score = left_g**2 / (left_h + 1) + right - all_g**2 / (all_h + 1)
    gain, at = score[..., :-1].max(2)
    return slope, curve, gain.clamp(min=0), torch.where(gain > 0, at, -1).int()


def nearest_eight(d, at):
    far = (at[:, :, None] - at[:, None]).square().sum(-1)
    far.diagonal(0, 1, 2).fill_(torch.inf)
    far, who = far.topk(8, 2, largest=False)
    return who.int(), far.sqrt()


def column_quantiles(d, x):
    places = (d["n"] - 1) * torch.arange(1, 4, device=x.device) // 4
    return x.sort(0).values[places].T


tenth(
    "matern_times_vectors",
    {"n": 8009, "m": 8191, "d": 9},
    {"n": 37, "m": 53, "d": 5},
    {"x": of("n d"), "z": of("m d"), "length": of("d", between(0.5, 2.0)), "v": of("m 8")},
    matern_times_vectors,
    slack=2e-2,
)
tenth(
    "boosting_splits",
    {"n": 1000003, "features": 28},
    {"n": 503, "features": 3},
    {
        "bin": of("n features", BYTES),
        "node": of("n", integers(0, 8, INT)),
        "g": of("n"),
        "h": of("n", between(0.1, 1.0)),
    },
    boosting_splits,
    results=("slope", "curve", "gain", "at"),
    values={"nodes": 8, "ridge": 1.0},
    slack=1e-3,
)
tenth(
    "nearest_eight",
    {"b": 32, "n": 2047},
    {"b": 3, "n": 53},
    {"at": of("b n", VECTORS)},
    nearest_eight,
    results=("who", "far"),
)
tenth(
    "column_quantiles",
    {"n": 200003, "c": 64},
    {"n": 203, "c": 7},
    {"x": of("n c")},
    column_quantiles,
    results=("q",),
    slack=1e-5,
)

# Graphs.


def sliced_ell_times_vector(d, start, column, value, x):
    rows = torch.where(column >= 0, value * x[column.clamp(min=0)], 0.0).view(-1, 32)
    at = torch.arange(rows.shape[0], device=x.device)
    at = torch.searchsorted(start, at, right=True) - 1
    return torch.zeros(d["slices"], 32, device=x.device).index_add_(0, at, rows)


def label_spreading(d, start, target, seed):
    degree = start.diff()
    inverse = degree.clamp(min=1).float().rsqrt()
    row = torch.repeat_interleave(torch.arange(d["n"], device=seed.device), degree, output_size=d["nnz"])
    value, y = inverse[row] * inverse[target], seed
    for _ in range(5):
        y = 0.1 * seed + 0.9 * torch.zeros_like(seed).index_add_(0, row, value[:, None] * y[target])
    return y, y.argmax(1).int()


def slice_starts(shape, dims, device):
    share = torch.linspace(0, 1, shape[0], device=device, dtype=torch.float64)
    return (dims["rows"] * (0.5 * share + 0.5 * share * share)).round().to(INT)


def columns_or_none(shape, dims, device):
    column = torch.randint(0, dims["n"], shape, device=device, dtype=INT)
    return torch.where(torch.rand(shape, device=device) < 0.1, -1, column)


tenth(
    "sliced_ell_times_vector",
    {"slices": 20000, "rows": 500000, "n": 640000},
    {"slices": 5, "rows": 37, "n": 203},
    {
        "start": of("slices+1", slice_starts),
        "column": shaped(lambda d: (32 * d["rows"],), columns_or_none),
        "value": shaped(lambda d: (32 * d["rows"],)),
        "x": of("n"),
    },
    sliced_ell_times_vector,
    slack=1e-3,
)
tenth(
    "label_spreading",
    {"n": 100003, "nnz": 2000003, "c": 16},
    {"n": 37, "nnz": 203, "c": 5},
    {"start": of("n+1", row_starts), "target": of("nnz", (INT, "n")), "seed": of("n c", between(0.0, 1.0))},
    label_spreading,
    results=("y", "label"),
    values={"alpha": 0.9, "turns": 5},
)

# Formats.


def delta_decode_blocks(d, word, start, width, first):
    width = width.long()[:, None]
    place = torch.arange(128, device=word.device) * width
    unsigned = F.pad(word, (0, 2)).long() & 0xFFFFFFFF
    at = start[:, None] + (place >> 5)
    low, high, shift = unsigned[at], unsigned[at + 1], place & 31
    code = (low >> shift | high << 32 - shift) & ((1 << width) - 1)
    return (first[:, None] + ((code >> 1) ^ -(code & 1)).cumsum(1)).int()


def varint_decode(d, byte):
    n = d["n"]
    ends = byte < 128
    number = ends.cumsum(1) - ends.int()
    places = torch.arange(40, device=byte.device).expand(n, -1)
    first = torch.where(ends, places + 1, 0).cummax(1).values
    first = F.pad(first[:, :-1], (1, 0))
    whole = number < ends.sum(1, keepdim=True)
    part = torch.where(whole, (byte & 127).long() << 7 * (places - first), 0)
    value = torch.zeros(n, 41, dtype=torch.int64, device=byte.device).scatter_add_(1, number, part)
    return value[:, :16] & 0xFFFFFFFF, ends.sum(1).clamp(max=16).int()


def minhash_signatures(d, word, factor, more):
    ones = 0xFFFFFFFF
    factor, more = (factor.long() | 1) & ones, more.long() & ones
    h = ((word[..., None].long() & ones) * factor + more) & ones
    h = ((h ^ h >> 16) * 0x85EBCA6B) & ones
    return (h ^ h >> 13).amin(1)


def levenshtein_pairs(d, a, b, a_length, b_length):
    n, j = d["n"], torch.arange(33, device=a.device, dtype=INT)
    row = j.expand(n, -1)
    for i in range(32):
        change = row[:, :-1] + (a[:, i, None] != b)
        best = torch.cat([row[:, :1] + 1, torch.minimum(change, row[:, 1:] + 1)], 1)
        best = (best - j).cummin(1).values + j
        row = torch.where(i < a_length[:, None], best, row)
    return row.gather(1, b_length.long()[:, None])[:, 0].int()


def block_starts(shape, dims, device):
    """Each block has room for 128 numbers of 32 bits at most."""
    return torch.arange(dims["blocks"], device=device, dtype=INT) * (dims["words"] // dims["blocks"])


def seven_bits(shape, dims, device):
    """Numbers of one to five bytes."""
    goes_on = 128 * (torch.rand(shape, device=device) < 0.6).int()
    goes_on[:, 4::5] = 0
    return (torch.randint(0, 128, shape, device=device) + goes_on).to(torch.uint8)


LETTERS, SIZES = of("n 32", integers(97, 101, torch.uint8)), of("n", integers(0, 33, torch.uint8))
tenth(
    "delta_decode_blocks",
    {"blocks": 150000, "words": 9600000},
    {"blocks": 13, "words": 1664},
    {
        "word": of("words", integers(-(2**31), 2**31, INT)),
        "start": of("blocks", block_starts),
        "width": of("blocks", integers(1, 17, torch.uint8)),
        "first": of("blocks", INT),
    },
    delta_decode_blocks,
    slack=0.0,
)
tenth(
    "varint_decode",
    {"n": 1000003},
    {"n": 203},
    {"byte": of("n 40", seven_bits)},
    varint_decode,
    results=("value", "many"),
    slack=0.0,
)
tenth(
    "minhash_signatures",
    {"n": 20011, "words": 128},
    {"n": 37, "words": 13},
    {"word": of("n words", integers(-(2**31), 2**31, INT)), "factor": of("64", integers(-(2**31), 2**31, INT)),
     "more": of("64", integers(-(2**31), 2**31, INT))},
    minhash_signatures,
    slack=0.0,
)
tenth(
    "levenshtein_pairs",
    {"n": 1000003},
    {"n": 203},
    {"a": LETTERS, "b": LETTERS, "a_length": SIZES, "b_length": SIZES},
    levenshtein_pairs,
    slack=0.0,
)
