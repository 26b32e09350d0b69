"""Workloads of `breadth.py`, a fifteenth set: norms, pools, softmaxes, layers, images, bodies, statistics, genomes."""

import math

import torch
import torch.nn.functional as F
from unseen3_workloads import F16, INT, LONG, between, integers, weights
from unseen4_workloads import lengths, narrow
from unseen5_workloads import BYTES
from unseen13_workloads import whole_ramp
from unseen14_workloads import SMALL_F16, WORKLOADS
from unseen_workloads import HALF, Record, add, of


def fifteenth(name, dims, small, arrays, peer, **more):
    add("unseen_15.krn", name, dims, small, arrays, peer, **more)


FLAGS = integers(0, 2, torch.uint8)


# Norms, pools, softmaxes, layouts.


def layer_norm_channels(d, x, gain, shift):
    y = F.layer_norm(x.movedim(1, -1), (d["c"],), gain.to(F16), shift.to(F16), 1e-6)
    return y.movedim(-1, 1).contiguous()


def batch_norm_running(d, x, gain, shift, running_mean, running_var):
    y = F.batch_norm(x.movedim(-1, 1), running_mean, running_var, gain, shift, training=True, momentum=0.1, eps=1e-5)
    return y.movedim(1, -1), running_mean, running_var


def causal_padded_softmax(d, x, length):
    place = torch.arange(d["t"], dtype=INT, device=x.device)
    seen = (place <= place[:, None]) & (place < length[:, None, None])
    return (0.125 * x).masked_fill(~seen[:, None], -math.inf).softmax(-1)


def keys_transposed_to_half(d, x):
    x = x.permute(0, 2, 3, 1)
    return torch.mul(x, 0.125, out=torch.empty(x.shape, dtype=HALF, device=x.device))


def keys_transposed_flat(d, x):
    x = x.mT
    return torch.mul(x, 0.125, out=torch.empty(x.shape, dtype=HALF, device=x.device))


def linear_dropout_residual(d, x, weight, bias, mask, residual):
    return torch.addcmul(residual, torch.addmm(bias.to(F16), x, weight), mask.to(F16), value=1 / 0.9)


def embedding_backward_padded(d, id, g):
    v = 30000
    seen = torch.zeros(v, dtype=INT, device=g.device).index_add_(0, id, torch.ones_like(id))
    share = torch.where(id == 0, 0.0, 1 / seen.index_select(0, id).float())
    return torch.zeros(v, d["d"], device=g.device).index_add_(0, id, g.float() * share[:, None]), seen


def top_four_rows(d, x):
    best, at = x.topk(4)
    return best, at.to(INT)


def maximum_drawdown(d, price):
    peak, at = price.cummax(1)
    longest = (torch.arange(d["t"], device=price.device) - at).amax(1)
    return (1 - price / peak).amax(1), longest.to(INT)


def mean_pool_backward(d, dy):
    x = torch.empty(d["b"], d["c"], 2 * d["p"], 2 * d["q"], device=dy.device)
    return torch.ops.aten.avg_pool2d_backward(dy, x, [3, 3], [2, 2], [1, 1], False, False, None)


def locally_connected(d, x, f, bias):
    windows = F.unfold(x, 3, padding=1).permute(2, 1, 0)
    y = torch.baddbmm(bias[None, :, None], f.flatten(3).flatten(0, 1), windows)
    return y.permute(2, 1, 0).reshape(d["b"], d["o"], d["h"], d["w"])


IMAGES = {"b": 24, "c": 192, "h": 90, "w": 98}
for name, dims, small, x in (
    ("layer_norm_channels", IMAGES, {"b": 2, "c": 21, "h": 9, "w": 11}, "b c h w"),
    ("layer_norm_channels_b", {"b": 24, "c": 192, "p": 90 * 98}, {"b": 2, "c": 21, "p": 99}, "b c p"),
    ("layer_norm_channels_c", IMAGES, {"b": 2, "c": 21, "h": 9, "w": 11}, "b c h w"),
):
    fifteenth(
        name,
        dims,
        small,
        {"x": of(x, F16), "gain": of("c"), "shift": of("c")},
        layer_norm_channels,
        slack=2e-2,
    )
LAST = {"b": 48, "h": 56, "w": 60, "c": 200}
for name, dims, small, x in (
    ("batch_norm_running", LAST, {"b": 2, "h": 9, "w": 11, "c": 21}, "b h w c"),
    ("batch_norm_running_b", {"n": 48 * 56 * 60, "c": 200}, {"n": 198, "c": 21}, "n c"),
    ("batch_norm_running_c", LAST, {"b": 2, "h": 9, "w": 11, "c": 21}, "b h w c"),
):
    fifteenth(
        name,
        dims,
        small,
        {
            "x": of(x),
            "gain": of("c"),
            "shift": of("c"),
            "running_mean": of("c"),
            "running_var": of("c", "positive"),
        },
        batch_norm_running,
        results=("y", "running_mean", "running_var"),
        slack=1e-3,
    )
fifteenth(
    "adaptive_mean_pool",
    {"b": 64, "c": 256, "h": 50, "w": 62},
    {"b": 2, "c": 5, "h": 11, "w": 17},
    {"x": of("b c h w")},
    lambda d, x: F.adaptive_avg_pool2d(x, 7),
)
for name in ("causal_padded_softmax", "causal_padded_softmax_b", "causal_padded_softmax_c"):
    fifteenth(
        name,
        {"b": 6, "h": 12, "t": 1100},
        {"b": 3, "h": 2, "t": 53},
        {"x": of("b h t t", HALF), "length": of("b", lengths("t"))},
        causal_padded_softmax,
        values={"scale": 0.125},
        slack=1e-2,
    )
for name in ("log_sum_exp_middle", "log_sum_exp_middle_b", "log_sum_exp_middle_c"):
    fifteenth(
        name,
        {"a": 120, "m": 700, "c": 900},
        {"a": 3, "m": 37, "c": 53},
        {"x": of("a m c")},
        lambda d, x: x.logsumexp(1),
    )
KEYS, FEW_KEYS = {"b": 16, "t": 2000, "h": 16, "d": 96}, {"b": 2, "t": 37, "h": 3, "d": 24}
for name in ("keys_transposed_to_half", "keys_transposed_to_half_b"):
    fifteenth(
        name,
        KEYS,
        FEW_KEYS,
        {"x": of("b t h d")},
        keys_transposed_to_half,
        values={"scale": 0.125},
        slack=1e-2,
    )
fifteenth(
    "keys_transposed_to_half_c",
    {"b": 16, "t": 2000, "e": 1536},
    {"b": 2, "t": 37, "e": 72},
    {"x": of("b t e")},
    keys_transposed_flat,
    values={"scale": 0.125},
    slack=1e-2,
)
fifteenth(
    "take_along_last",
    {"b": 8, "t": 4000, "n": 3000, "m": 500},
    {"b": 2, "t": 17, "n": 53, "m": 21},
    {"x": of("b t n"), "at": of("b t m", (LONG, "n"))},
    lambda d, x, at: x.gather(2, at),
)
fifteenth(
    "conv_2d_dilated_prelu",
    {"b": 8, "c": 96, "h": 100, "w": 90, "o": 128},
    {"b": 2, "c": 7, "h": 9, "w": 11, "o": 13},
    {"x": of("b c h w"), "f": of("o c 3 3", weights), "bias": of("o"), "slope": of("o", between(0.1, 0.4))},
    lambda d, x, f, bias, slope: F.prelu(F.conv2d(x, f, bias, padding=2, dilation=2), slope),
    slack=1e-3,
)
for name in ("linear_dropout_residual", "linear_dropout_residual_b", "linear_dropout_residual_c"):
    fifteenth(
        name,
        {"n": 8000, "k": 2560, "o": 2304},
        {"n": 53, "k": 40, "o": 72},
        {
            "x": of("n k", F16),
            "weight": of("k o", SMALL_F16),
            "bias": of("o"),
            "mask": of("n o", FLAGS),
            "residual": of("n o", F16),
        },
        linear_dropout_residual,
        values={"keep": 0.9},
        slack=2e-2,
    )
fifteenth(
    "embedding_backward_padded",
    {"n": 60000, "d": 1024},
    {"n": 403, "d": 24},
    {"id": of("n", integers(0, 30000, INT)), "g": of("n d", HALF)},
    embedding_backward_padded,
    values={"v": 30000},
    results=("dw", "seen"),
    slack=1e-2,
)
fifteenth(
    "top_four_rows",
    {"rows": 60001, "cols": 520},
    {"rows": 53, "cols": 37},
    {"x": of("rows cols")},
    top_four_rows,
    results=("best", "at"),
)
fifteenth(
    "maximum_drawdown",
    {"n": 100000, "t": 500},
    {"n": 53, "t": 37},
    {"price": of("n t", between(0.5, 2.0))},
    maximum_drawdown,
    results=("worst", "longest"),
)
fifteenth(
    "mean_pool_backward",
    {"b": 32, "c": 128, "p": 56, "q": 60},
    {"b": 2, "c": 5, "p": 9, "q": 11},
    {"dy": of("b c p q")},
    mean_pool_backward,
    results=("dx",),
)
fifteenth(
    "locally_connected",
    {"b": 32, "c": 48, "h": 28, "w": 30, "o": 64},
    {"b": 3, "c": 5, "h": 9, "w": 11, "o": 7},
    {"x": of("b c h w"), "f": of("h w o c 3 3", between(-0.1, 0.1)), "bias": of("o")},
    locally_connected,
    slack=1e-3,
)


# Losses, optimisers, formats, speech.


def asymmetric_multilabel_loss(d, logit, target):
    p = logit.sigmoid()
    m = (p - 0.05).clamp(min=0)
    weight, here = m.square().square(), target.bool()
    loss = torch.where(here, -(1 - p) * p.clamp(min=1e-8).log(), -weight * (1 - m).log())
    grad = torch.where(here, -(1 - p).square(), weight * p * (1 - p) / (1 - m))
    return loss.sum() / d["n"], grad / d["n"]


def radam_master_step(d, master, m, v, g):
    t, lr = 1000, 0.001
    g = g.float()
    m.mul_(0.9).add_(g, alpha=0.1)
    v.mul_(0.999).addcmul_(g, g, value=0.001)
    top, power = 2 / (1 - 0.999) - 1, 0.999**t
    rho = top - 2 * t * power / (1 - power)
    rectified = math.sqrt((rho - 4) * (rho - 2) * top / ((top - 4) * (top - 2) * rho))
    step = rectified * math.sqrt(1 - power) / (1 - 0.9**t)
    master.mul_(1 - lr * 0.01).addcdiv_(m, v.sqrt().add_(1e-8), value=-lr * step)
    return master.to(HALF), master, m, v


def quantize_uint4_zero_points(d, x):
    x = x.float()
    low, high = x.amin(-1).clamp(max=0), x.amax(-1).clamp(min=0)
    unit = ((high - low) / 15).clamp(min=1e-6)
    origin = (0.5 - low / unit).floor().clamp(0, 15)
    code = ((x / unit[..., None] + 0.5).floor() + origin[..., None]).clamp(0, 15).to(INT)
    shift = torch.arange(0, 32, 4, dtype=INT, device=x.device)
    return (code.unflatten(-1, (16, 8)) << shift).sum(-1, dtype=INT), unit, origin.to(torch.uint8)


def decision_directed_gain(d, power, noise):
    before, gains = torch.zeros_like(noise), []
    for posterior in (power / noise[:, None]).unbind(1):
        prior = 0.98 * before + 0.02 * (posterior - 1).clamp(min=0)
        gain = (prior / (1 + prior)).clamp(min=0.1)
        gains.append(gain)
        before = gain * gain * posterior
    return torch.stack(gains, 1)


fifteenth(
    "asymmetric_multilabel_loss",
    {"n": 20000, "k": 1203},
    {"n": 53, "k": 37},
    {"logit": of("n k"), "target": of("n k", FLAGS)},
    asymmetric_multilabel_loss,
    results=("loss", "grad"),
    slack=1e-5,
)
fifteenth(
    "radam_master_step",
    {"n": 40000001},
    {"n": 1003},
    {"master": of("n"), "m": of("n"), "v": of("n", "positive"), "g": of("n", HALF)},
    radam_master_step,
    results=("p", "master", "m", "v"),
    values={"step": 1000, "lr": 0.001},
)
fifteenth(
    "quantize_uint4_zero_points",
    {"n": 8192, "g": 56},
    {"n": 17, "g": 3},
    {"x": of("n g 128", HALF)},
    quantize_uint4_zero_points,
    results=("packed", "step", "zero"),
)
fifteenth(
    "decision_directed_gain",
    {"c": 160, "t": 500, "k": 513},
    {"c": 3, "t": 17, "k": 53},
    {"power": of("c t k", between(0.0, 4.0)), "noise": of("c k", between(0.5, 1.5))},
    decision_directed_gain,
    results=("gain",),
)


# Images.


def grey_world_balance(d, x):
    mean = x.mean((1, 2), dtype=torch.float32)
    factor = mean.mean(1, keepdim=True) / mean.clamp(min=1)
    return (x * factor[:, None, None] + 0.5).clamp(max=255).to(torch.uint8)


def ridge_filter(d, x):
    place = torch.arange(7.0, device=x.device)
    # The taps without a copy from the host, which a graph cannot capture.
    taps = torch.zeros_like(place)
    for at, tap in enumerate((0.0305, 0.1111, 0.2163, 0.2842, 0.2163, 0.1111, 0.0305)):
        taps = torch.where(place == at, tap, taps)
    z = F.conv2d(F.pad(x[:, None], (3, 3, 0, 0), mode="replicate"), taps.view(1, 1, 1, 7))
    z = F.conv2d(F.pad(z, (0, 0, 3, 3), mode="replicate"), taps.view(1, 1, 7, 1))
    p = F.pad(z, (1, 1, 1, 1), mode="replicate")[:, 0]
    middle = p[:, 1:-1, 1:-1]
    xx = p[:, 1:-1, :-2] - 2 * middle + p[:, 1:-1, 2:]
    yy = p[:, :-2, 1:-1] - 2 * middle + p[:, 2:, 1:-1]
    xy = 0.25 * (p[:, :-2, :-2] + p[:, 2:, 2:] - p[:, :-2, 2:] - p[:, 2:, :-2])
    mean = 0.5 * (xx + yy)
    away = (0.25 * (xx - yy).square() + xy.square()).sqrt()
    away = torch.where(mean >= 0, away, -away)
    large, small = mean + away, mean - away
    y = torch.exp(-2 * (small / large).square()) * (1 - torch.exp(-2 * (large.square() + small.square())))
    return torch.where(large < 0, y, 0.0)


fifteenth(
    "grey_world_balance",
    {"b": 16, "h": 1080, "w": 1920},
    {"b": 2, "h": 37, "w": 53},
    {"x": of("b h w 3", BYTES)},
    grey_world_balance,
    slack=1.01,
)
fifteenth(
    "ridge_filter",
    {"b": 4, "h": 2000, "w": 2100},
    {"b": 2, "h": 37, "w": 53},
    {"x": of("b h w")},
    ridge_filter,
    slack=1e-3,
)


# Simulation.


def lorenz_slope(x):
    return (x.roll(-1, 1) - x.roll(2, 1)) * x.roll(1, 1) - x + 8


def lorenz_96_step(d, x):
    dt = 0.01
    k1 = lorenz_slope(x)
    k2 = lorenz_slope(x + 0.5 * dt * k1)
    k3 = lorenz_slope(x + 0.5 * dt * k2)
    k4 = lorenz_slope(x + dt * k3)
    return x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def rigid_parts(d, p, v, w, q, force, torque, inertia):
    dt = 0.01
    v.add_(force, alpha=dt)
    p.add_(v, alpha=dt)
    w.add_((torque - torch.linalg.cross(w, inertia * w)) / inertia, alpha=dt)
    real, rest = q[:, :1], q[:, 1:]
    turned = torch.cat([-(rest * w).sum(1, keepdim=True), real * w + torch.linalg.cross(rest, w)], 1)
    q.copy_(F.normalize(q + 0.5 * dt * turned, dim=1))
    return p, v, w, q


def rigid_bodies_step(d, body, force, torque, inertia):
    rigid_parts(d, body[:, :3], body[:, 3:6], body[:, 6:9], body[:, 9:], force, torque, inertia)
    return body


BODY = Record("px", "py", "pz", "vx", "vy", "vz", "wx", "wy", "wz", "qw", "qx", "qy", "qz", low=0.2, high=1.0)
VECTOR = Record("x", "y", "z")
INERTIA = Record("x", "y", "z", low=0.5, high=1.5)

for name in ("lorenz_96_step", "lorenz_96_step_b", "lorenz_96_step_c"):
    fifteenth(
        name,
        {"e": 500000, "n": 40},
        {"e": 53, "n": 40},
        {"x": of("e n")},
        lorenz_96_step,
        values={"dt": 0.01},
        slack=1e-3,
    )
for name in ("rigid_bodies_step", "rigid_bodies_step_b"):
    fifteenth(
        name,
        {"n": 2000001},
        {"n": 403},
        {"body": of("n", BODY), "force": of("n", VECTOR), "torque": of("n", VECTOR), "inertia": of("n", INERTIA)},
        rigid_bodies_step,
        results=("body",),
        values={"dt": 0.01},
    )
fifteenth(
    "rigid_bodies_step_c",
    {"n": 2000001},
    {"n": 403},
    {
        "p": of("n 3"),
        "v": of("n 3"),
        "w": of("n 3"),
        "q": of("n 4", between(0.2, 1.0)),
        "force": of("n 3"),
        "torque": of("n 3"),
        "inertia": of("n 3", between(0.5, 1.5)),
    },
    rigid_parts,
    results=("p", "v", "w", "q"),
    values={"dt": 0.01},
)


# Graphs, statistics, finance, genomes.


def shared_neighbours(d, near):
    other = near.index_select(0, near.flatten()).view(d["n"], d["k"], 1, d["k"])
    common = (near[:, None, :, None] == other).sum((2, 3))
    return common / (2 * d["k"] - common)


def csr_softmax_aggregate(d, start, col, x):
    n, m, sharp = d["n"], d["m"], 0.75
    row = torch.arange(n, device=x.device).repeat_interleave(start.diff(), output_size=m)
    near = x.index_select(0, col)
    peak = torch.full_like(x, -torch.inf).index_reduce_(0, row, sharp * near, "amax")
    e = torch.exp(sharp * near - peak.index_select(0, row))
    total = torch.zeros_like(x).index_add_(0, row, e)
    weighted = torch.zeros_like(x).index_add_(0, row, e * near)
    return torch.where(total > 0, weighted / total, 0.0)


def anova_f(d, x, label):
    n = d["n"]
    within_group = (label[:, None] == torch.arange(12, device=x.device)).float()
    size = within_group.sum(0)
    mean = x @ within_group / size.clamp(min=1)
    between_groups = (size * (mean - x.mean(1, keepdim=True)).square()).sum(1)
    within = (x - mean.index_select(1, label.to(INT))).square().sum(1)
    return (between_groups / 11) / (within / (n - 12))


def garch_log_likelihood(d, r, omega, alpha, beta):
    variance, total = r.square().mean(0) + 1e-6, torch.zeros_like(omega)
    for square in r.square().unbind(0):
        total = total - 0.5 * (math.log(2 * math.pi) + variance.log() + square / variance)
        variance = omega + alpha * square + beta * variance
    return total, variance


def genotype_kinship(d, dosage):
    known = dosage < 3
    g = torch.where(known, dosage, 0).float()
    share = g.sum(1, keepdim=True) / (2.0 * known.sum(1, keepdim=True)).clamp(min=1)
    z = torch.where(known, (g - 2 * share) / (2 * share * (1 - share)).clamp(min=1e-3).sqrt(), 0.0)
    return z.T @ z / d["m"]


def smith_waterman_affine(d, a, b):
    # Along a row a gap is a running maximum, since a gap behind a gap never pays.
    place = torch.arange(d["l"], dtype=INT, device=a.device)
    above = torch.zeros(d["n"], d["l"], dtype=INT, device=a.device)
    down, top = torch.full_like(above, -1000), above
    for p in range(d["k"]):
        down = torch.maximum(down - 1, above - 3)
        score = torch.where(a[:, p, None] == b, 2, -3).to(INT)
        open = torch.maximum(F.pad(above[:, :-1], (1, 0)) + score, down).clamp(min=0)
        across = (open + place).cummax(1)[0][:, :-1] - place[1:] - 2
        above = torch.maximum(open, F.pad(across, (1, 0)))
        top = torch.maximum(top, above)
    return top.amax(1)


fifteenth(
    "shared_neighbours",
    {"n": 50000, "k": 20},
    {"n": 53, "k": 7},
    {"near": of("n k", (INT, "n"))},
    shared_neighbours,
)
fifteenth(
    "csr_softmax_aggregate",
    {"n": 200000, "m": 2000000, "d": 64},
    {"n": 53, "m": 403, "d": 24},
    {"start": of("n+1", whole_ramp), "col": of("m", (INT, "n")), "x": of("n d")},
    csr_softmax_aggregate,
    values={"sharp": 0.75},
)
fifteenth(
    "anova_f",
    {"g": 5000, "n": 20011},
    {"g": 17, "n": 203},
    {"x": of("g n"), "label": of("n", integers(0, 12, torch.uint8))},
    anova_f,
    results=("f",),
    slack=1e-3,
)
fifteenth(
    "garch_log_likelihood",
    {"t": 252, "n": 200001},
    {"t": 37, "n": 53},
    {
        "r": of("t n"),
        "omega": of("n", between(0.01, 0.1)),
        "alpha": of("n", between(0.05, 0.15)),
        "beta": of("n", between(0.5, 0.8)),
    },
    garch_log_likelihood,
    results=("likelihood", "last"),
    slack=1e-2,
)
fifteenth(
    "genotype_kinship",
    {"m": 8000, "n": 2504},
    {"m": 103, "n": 53},
    {"dosage": of("m n", integers(0, 4, torch.uint8))},
    genotype_kinship,
    results=("kinship",),
    slack=1e-3,
)
fifteenth(
    "smith_waterman_affine",
    {"n": 50000, "k": 100, "l": 96},
    {"n": 53, "k": 17, "l": 21},
    {"a": of("n k", integers(0, 4, torch.uint8)), "b": of("n l", integers(0, 4, torch.uint8))},
    smith_waterman_affine,
    results=("best",),
)
