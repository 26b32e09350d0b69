"""Workloads of `breadth.py`, a fourteenth set: layers, images, simulation, graphs, statistics, bits, genomes."""

import math

import torch
import torch.nn.functional as F
from unseen3_workloads import F16, INT, between, integers, shaped
from unseen4_workloads import narrow
from unseen5_workloads import BYTES
from unseen8_workloads import doubled
from unseen13_workloads import WORKLOADS, whole_ramp
from unseen_workloads import HALF, Record, add, of


def fourteenth(name, dims, small, arrays, peer, **more):
    add("unseen_14.krn", name, dims, small, arrays, peer, **more)


SMALL_HALF = narrow(between(-0.05, 0.05), HALF)
SMALL_F16 = narrow(between(-0.05, 0.05), F16)


def different(extent):
    """Different numbers below a dimension, in any order."""

    def make(shape, dims, device):
        return torch.randperm(dims[extent], device=device)[: math.prod(shape)].view(shape).to(INT)

    return make


# Layers, losses and optimisers.


def modulated_conv(d, x, style, filter, noise, bias):
    even = torch.rsqrt(style.square() @ filter.float().square().sum((0, 1)) + 1e-8)
    styled = (x * style[:, None, None]).to(HALF)
    z = F.conv2d(styled.permute(0, 3, 1, 2), filter.permute(3, 2, 0, 1), padding=1).permute(0, 2, 3, 1)
    v = z * even[:, None, None] + noise[..., None] + bias
    return (1.4142135 * F.leaky_relu(v, 0.2)).to(HALF)


def partial_conv(d, x, mask, weight, bias):
    here = mask[:, None].to(F16)
    seen = F.conv2d(here, torch.ones(1, 1, 3, 3, dtype=F16, device=x.device), padding=1).float()
    s = F.conv2d(x * here, weight, padding=1)
    y = torch.where(seen > 0, s * (9 / seen.clamp(min=1)) + bias[:, None, None], 0.0)
    return y.to(F16), (seen > 0)[:, 0].to(torch.uint8)


def involution(d, x, weight):
    windows = F.unfold(x.flatten(1, 2), 7, padding=3).view(d["b"], d["g"], d["c"], 49, d["h"], d["w"])
    return (weight.flatten(2, 3)[:, :, None] * windows).sum(3)


def nerf_encoding_linear(d, x, w, bias):
    angle = x[:, None] * torch.exp2(torch.arange(10.0, device=x.device))[:, None]
    e = torch.cat([x, torch.stack([angle.sin(), angle.cos()], 2).flatten(1)], 1).to(F16)
    return F.relu(torch.addmm(bias.to(F16), e, w))


def adaptive_norm_backward(d, x, scale, dy, mean, rstd):
    away = (x.float() - mean[..., None]) * rstd[..., None]
    dy = dy.float()
    g = dy * (1 + scale[:, None])
    dx = rstd[..., None] * (g - g.mean(-1, keepdim=True) - away * (g * away).mean(-1, keepdim=True))
    return dx.to(HALF), (dy * away).sum(1), dy.sum(1)


def snake_backward(d, x, alpha, dy):
    v, dy, a = x.float(), dy.float(), alpha[:, None]
    s, double = torch.sin(a * v), torch.sin(2 * a * v)
    return (dy * (1 + double)).to(F16), (dy * (v * double / a - s * s / (a * a))).sum((0, 2))


def moe_combine_backward(d, dy, slot, gate, answer):
    slot = slot.long()
    dgate = (dy[:, None].float() * answer[slot]).sum(-1)
    back = (gate[..., None] * dy[:, None]).to(HALF)
    return torch.zeros_like(answer).index_copy_(0, slot.flatten(), back.flatten(0, 1)), dgate


def soft_moe_dispatch(d, x, phi):
    logit = (x @ phi).float()
    return logit.softmax(1).to(HALF).mT @ x, logit.softmax(2).to(HALF)


def prodigy_step(d, p, first, g, m, v, s, state):
    lr = 0.01
    old = state[0]
    top = 0.97 * state[1] + old * old * lr * (g * (first - p)).sum()
    s.mul_(0.97).add_(old * old * lr * g)
    now = torch.maximum(old, top / s.abs().sum().clamp(min=1e-20))
    m.mul_(0.9).add_(0.1 * old * g)
    v.mul_(0.999).add_(0.001 * old * old * g * g)
    p.sub_(now * lr * m / (v.sqrt() + now * 1e-8))
    state.copy_(torch.stack([now, top]))
    return p, m, v, s, state


def rowwise_adagrad(d, table, moment, id, g):
    id = id.long()
    now = moment[id] + g.square().mean(1)
    moment.index_copy_(0, id, now)
    table.index_add_(0, id, -(0.1 / (now.sqrt() + 1e-8))[:, None] * g)
    return table, moment


fourteenth(
    "modulated_conv",
    {"b": 8, "h": 96, "w": 72, "c": 320, "o": 320},
    {"b": 2, "h": 9, "w": 11, "c": 16, "o": 24},
    {
        "x": of("b h w c", HALF),
        "style": of("b c", between(0.5, 1.5)),
        "filter": of("3 3 c o", SMALL_HALF),
        "noise": of("h w"),
        "bias": of("o"),
    },
    modulated_conv,
    slack=5e-2,
)
fourteenth(
    "partial_conv",
    {"b": 16, "c": 64, "h": 250, "w": 252, "o": 96},
    {"b": 2, "c": 16, "h": 9, "w": 11, "o": 24},
    {
        "x": of("b c h w", F16),
        "mask": of("b h w", integers(0, 2, torch.uint8)),
        "weight": of("o c 3 3", SMALL_F16),
        "bias": of("o"),
    },
    partial_conv,
    results=("y", "known"),
    slack=2e-2,
)
fourteenth(
    "involution",
    {"b": 16, "g": 12, "c": 16, "h": 56, "w": 60},
    {"b": 2, "g": 2, "c": 5, "h": 9, "w": 11},
    {"x": of("b g c h w", HALF), "weight": of("b g 7 7 h w", HALF)},
    involution,
    slack=0.2,
)
fourteenth(
    "nerf_encoding_linear",
    {"n": 1000001, "o": 256},
    {"n": 53, "o": 24},
    {"x": of("n 3", between(-1.0, 1.0)), "w": of("63 o", narrow(between(-0.3, 0.3), F16)), "bias": of("o")},
    nerf_encoding_linear,
    slack=2e-2,
)
fourteenth(
    "adaptive_norm_backward",
    {"b": 32, "t": 1000, "c": 1152},
    {"b": 2, "t": 17, "c": 53},
    {
        "x": of("b t c", HALF),
        "scale": of("b c"),
        "dy": of("b t c", HALF),
        "mean": of("b t", between(-0.1, 0.1)),
        "rstd": of("b t", between(0.9, 1.1)),
    },
    adaptive_norm_backward,
    results=("dx", "dscale", "dshift"),
    slack=2e-2,
)
fourteenth(
    "snake_backward",
    {"b": 16, "c": 192, "t": 16003},
    {"b": 2, "c": 5, "t": 203},
    {"x": of("b c t", F16), "alpha": of("c", between(0.5, 2.0)), "dy": of("b c t", F16)},
    snake_backward,
    results=("dx", "dalpha"),
    slack=2e-2,
)
fourteenth(
    "moe_combine_backward",
    {"t": 8192, "k": 6, "s": 50000, "d": 2560},
    {"t": 17, "k": 3, "s": 60, "d": 53},
    {
        "dy": of("t d", HALF),
        "slot": of("t k", different("s")),
        "gate": of("t k", between(0.0, 1.0)),
        "answer": of("s d", HALF),
    },
    moe_combine_backward,
    results=("danswer", "dgate"),
    slack=2e-2,
)
fourteenth(
    "soft_moe_dispatch",
    {"b": 64, "t": 576, "d": 768, "s": 320},
    {"b": 2, "t": 17, "d": 16, "s": 21},
    {"x": of("b t d", HALF), "phi": of("d s", SMALL_HALF)},
    soft_moe_dispatch,
    results=("slot", "combine"),
    slack=2e-2,
)
fourteenth(
    "prodigy_step",
    {"n": 40000001},
    {"n": 1003},
    {
        "p": of("n"),
        "first": of("n"),
        "g": of("n"),
        "m": of("n"),
        "v": of("n", "positive"),
        "s": of("n"),
        "state": of("2", between(0.1, 1.0)),
    },
    prodigy_step,
    results=("p", "m", "v", "s", "state"),
    values={"lr": 0.01},
    slack=1e-3,
)
fourteenth(
    "rowwise_adagrad",
    {"rows": 2000000, "m": 500001, "d": 64},
    {"rows": 403, "m": 53, "d": 24},
    {"table": of("rows d"), "moment": of("rows", "positive"), "id": of("m", different("rows")), "g": of("m d")},
    rowwise_adagrad,
    results=("table", "moment"),
    values={"lr": 0.1},
)


def style_loss(d, x, target):
    gram = (x @ x.mT).float() / d["p"]
    return (gram - target).square().mean((1, 2))


def token_merging_match(d, x):
    unit = F.normalize(x.float(), dim=-1).to(HALF)
    best, node = (unit[:, ::2] @ unit[:, 1::2].mT).max(-1)
    best = best.float()
    best[:, 0] = -torch.inf
    return best, node.to(INT)


def convex_upsample(d, flow, mask):
    b, h, w = d["b"], d["h"], d["w"]
    share = mask[:, None].float().softmax(2)
    around = F.unfold(8 * flow, 3, padding=1).view(b, 2, 9, 1, 1, h, w)
    return (share * around).sum(2).permute(0, 1, 4, 2, 5, 3).reshape(b, 2, 8 * h, 8 * w)


def submanifold_conv_3d(d, x, near, weight, bias):
    padded = F.pad(x, (0, 0, 0, 1))
    # No neighbour is -1, the row of zeros at the end.
    return F.relu(torch.addmm(bias.to(F16), padded[near.long()].flatten(1), weight.flatten(0, 1)))


def schnet_interaction(d, x, list, away, w1, b1, w2, b2):
    at = 0.1 * torch.arange(50, device=x.device)
    basis = torch.exp(-10 * (away[..., None] - at) ** 2)
    hidden = F.softplus(basis @ w1 + b1) - math.log(2)
    fade = 0.5 * (torch.cos(math.pi / 5 * away) + 1)
    return ((hidden @ w2 + b2) * fade[..., None] * x[list.long()]).sum(1)


def xnor_conv(d, x, weight, level):
    place = torch.arange(32, dtype=INT, device=x.device)

    def signs(words):
        bits = (words[..., None] >> place) & 1
        return (2 * bits - 1).to(F16).flatten(3).permute(0, 3, 1, 2)

    z = F.conv2d(F.pad(signs(x), (1, 1, 1, 1), value=-1.0), signs(weight))
    bits = (z >= level[:, None, None]).int().unflatten(1, (d["m"], 32)) << place[:, None, None]
    return bits.sum(2, dtype=INT).permute(0, 2, 3, 1).contiguous()


def pq_nearest(d, table, code):
    cost = torch.zeros(d["q"], d["n"], device=table.device)
    for s in range(16):
        cost = cost + table[:, s].index_select(1, code[:, s].int())
    best, at = cost.min(1)
    return best, at.to(INT)


def hadamard_quantize(d, x):
    h = torch.ones(1, 1, dtype=HALF, device=x.device)
    for _ in range(7):
        h = torch.cat([torch.cat([h, h], 1), torch.cat([h, -h], 1)], 0)
    turned = (x.unflatten(1, (d["g"], 128)) @ h).float() / math.sqrt(128)
    step = (turned.abs().amax(-1) / 7).clamp(min=1e-12)
    q = (turned / step[..., None]).round().clamp(-8, 7).int() + 8
    return step, (q[..., 0::2] | q[..., 1::2] << 4).to(torch.uint8)


def permutation_counts(d, sign, x, seen):
    return ((sign.float() @ x).abs() >= seen.abs()).sum(0, dtype=INT)


def nearby(shape, dims, device):
    """Neighbours of each row, not far from it; half of them are not there."""
    at = torch.arange(shape[0], device=device)[:, None] + torch.randint(-500, 501, shape, device=device)
    return torch.where(torch.rand(shape, device=device) < 0.5, -1, at.clamp(-1, shape[0] - 1)).to(INT)


WORDS = integers(-(2**31), 2**31 - 1, INT)
fourteenth(
    "style_loss",
    {"b": 16, "c": 256, "p": 12500},
    {"b": 2, "c": 24, "p": 203},
    {"x": of("b c p", HALF), "target": of("b c c", between(0.0, 1.0))},
    style_loss,
    results=("loss",),
    slack=1e-2,
)
fourteenth(
    "token_merging_match",
    {"b": 64, "h": 2000, "d": 64},
    {"b": 2, "h": 21, "d": 16},
    {"x": doubled("b 2h d", HALF)},
    token_merging_match,
    results=("best",),
    slack=1e-2,
)
fourteenth(
    "convex_upsample",
    {"b": 16, "h": 90, "w": 160},
    {"b": 2, "h": 7, "w": 11},
    {"flow": of("b 2 h w"), "mask": of("b 9 8 8 h w", F16)},
    convex_upsample,
    slack=1e-3,
)
fourteenth(
    "submanifold_conv_3d",
    {"n": 300001, "c": 64, "o": 64},
    {"n": 203, "c": 16, "o": 24},
    {"x": of("n c", F16), "near": of("n 27", nearby), "weight": of("27 c o", SMALL_F16), "bias": of("o")},
    submanifold_conv_3d,
    slack=2e-2,
)
fourteenth(
    "schnet_interaction",
    {"n": 20001, "k": 32},
    {"n": 53, "k": 7},
    {
        "x": of("n 64"),
        "list": of("n k", (INT, "n")),
        "away": of("n k", between(0.5, 5.0)),
        "w1": of("50 64", between(-0.3, 0.3)),
        "b1": of("64"),
        "w2": of("64 64", between(-0.3, 0.3)),
        "b2": of("64"),
    },
    schnet_interaction,
    slack=1e-3,
)
fourteenth(
    "xnor_conv",
    {"b": 32, "h": 56, "w": 60, "c": 8, "m": 8},
    {"b": 2, "h": 7, "w": 9, "c": 2, "m": 2},
    {
        "x": of("b h w c", WORDS),
        "weight": shaped(lambda d: (32 * d["m"], 3, 3, d["c"]), WORDS),
        "level": shaped(lambda d: (32 * d["m"],), integers(-30, 31, INT)),
    },
    xnor_conv,
)
fourteenth(
    "pq_nearest",
    {"q": 60, "n": 1000003},
    {"q": 5, "n": 203},
    {"table": of("q 16 256", between(0.0, 1.0)), "code": of("n 16", BYTES)},
    pq_nearest,
    results=("best", "at"),
)
fourteenth(
    "hadamard_quantize",
    {"n": 16000, "g": 28},
    {"n": 13, "g": 3},
    {"x": doubled("n 128g", HALF)},
    hadamard_quantize,
    results=("scale",),
    slack=1e-3,
)
fourteenth(
    "permutation_counts",
    {"p": 2000, "n": 300, "g": 20001},
    {"p": 203, "n": 13, "g": 53},
    {"sign": of("p n", integers(-1, 2, torch.int8)), "x": of("n g"), "seen": of("g", between(1.0, 9.0))},
    permutation_counts,
    results=("extreme",),
    slack=1.01,
)

# Images.


def fast_corners(d, x):
    h, w = d["h"], d["w"]
    wide, p = x.int(), F.pad(x, (3, 3, 3, 3)).int()
    down = (-3, -3, -2, -1, 0, 1, 2, 3, 3, 3, 2, 1, 0, -1, -2, -3)
    right = (0, 1, 2, 3, 3, 3, 2, 1, 0, -1, -2, -3, -3, -3, -2, -1)
    brighter, darker = torch.zeros_like(wide), torch.zeros_like(wide)
    for bit, (i, j) in enumerate(zip(down, right)):
        v = p[:, 3 + i : 3 + i + h, 3 + j : 3 + j + w]
        brighter = brighter | (v > wide + 20).int() << bit
        darker = darker | (v < wide - 20).int() << bit

    def nine_in_a_row(bits):
        twice = bits | bits << 16
        two = twice & (twice >> 1)
        four = two & (two >> 2)
        eight = four & (four >> 4)
        return eight & (twice >> 8) & 0xFFFF

    corner = ((nine_in_a_row(brighter) | nine_in_a_row(darker)) != 0).to(torch.uint8)
    return F.pad(corner[:, 3 : h - 3, 3 : w - 3], (3, 3, 3, 3))


def ordered_dither(d, x):
    bayer = torch.zeros(1, 1, dtype=INT, device=x.device)
    for _ in range(3):
        b = 4 * bayer
        bayer = torch.cat([torch.cat([b, b + 2], 1), torch.cat([b + 3, b + 1], 1)], 0)
    level = (4 * bayer + 1)[torch.arange(d["h"], device=x.device) % 8]
    r, g, b = x.int().unbind(-1)
    grey = (77 * r + 150 * g + 29 * b) >> 8
    bits = (grey.unflatten(2, (d["w"], 8)) > level[:, None]).int()
    place = torch.arange(7, -1, -1, dtype=INT, device=x.device)
    return (bits << place).sum(-1).to(torch.uint8)


fourteenth(
    "fast_corners",
    {"n": 32, "h": 1080, "w": 1920},
    {"n": 2, "h": 37, "w": 53},
    {"x": of("n h w", BYTES)},
    fast_corners,
    results=("corner",),
    values={"t": 20},
)
fourteenth(
    "ordered_dither",
    {"n": 16, "h": 2004, "w": 375},
    {"n": 2, "h": 19, "w": 7},
    {"x": doubled("n h 8w", "pixel")},
    ordered_dither,
)

# Simulation and finance.


def boids_step(d, boid):
    place = torch.arange(d["n"], device=boid.device)
    rows = []
    for mine, at in zip(boid.split(2048), place.split(2048)):
        dx, dy = boid[:, 0] - mine[:, 0, None], boid[:, 1] - mine[:, 1, None]
        square = dx * dx + dy * dy
        inside = (square < 0.01) & (place != at[:, None])
        w, close = inside.float(), (inside & (square < 0.001)).float()
        near = w.sum(1, keepdim=True)
        middle = torch.stack([(w * dx).sum(1), (w * dy).sum(1)], 1)
        push = torch.stack([(close * dx).sum(1), (close * dy).sum(1)], 1)
        mean = (w @ boid[:, 2:]) / near.clamp(min=1)
        speed = mine[:, 2:]
        speed = speed + 0.01 * middle / near.clamp(min=1) + 0.125 * (near > 0) * (mean - speed) - 0.05 * push
        speed = speed / torch.linalg.vector_norm(speed, dim=1, keepdim=True).clamp(min=1)
        rows.append(torch.cat([mine[:, :2] + 0.01 * speed, speed], 1))
    return torch.cat(rows)


def staggered_dslash(d, link, psi):
    u, v = torch.view_as_complex(link), torch.view_as_complex(psi)
    total, sign = 0, torch.ones(1, 1, 1, 1, 1, device=psi.device)
    for axis, name in enumerate("tzyx"):
        ahead = (u[axis] * v.roll(-1, axis)[..., None, :]).sum(-1)
        behind = (u[axis].conj() * v[..., None]).sum(-2).roll(1, axis)
        total = total + sign * (ahead - behind)
        place = torch.arange(d[name], device=psi.device)
        sign = sign * (1 - 2 * (place % 2)).view([-1 if one == axis else 1 for one in range(5)])
    return torch.view_as_real(0.5 * total)


def reinitialize(d, phi, first):
    p = F.pad(phi[None, None], (1, 1, 1, 1, 1, 1), mode="replicate")[0, 0]
    outside, total = first > 0, 0
    for axis in range(3):
        line = p
        for other in {0, 1, 2} - {axis}:
            line = line.narrow(other, 1, line.shape[other] - 2)
        slope = line.diff(dim=axis)
        back, ahead = slope.narrow(axis, 0, phi.shape[axis]), slope.narrow(axis, 1, phi.shape[axis])
        a = torch.where(outside, back.clamp(min=0), back.clamp(max=0))
        b = torch.where(outside, ahead.clamp(max=0), ahead.clamp(min=0))
        total = total + torch.maximum(a * a, b * b)
    return phi - 0.3 * first / (first * first + 1).sqrt() * (total.sqrt() - 1)


def implied_volatility(d, quote):
    strike, years, price = quote.unbind(-1)
    root, far = years.sqrt(), -strike.log()
    s = torch.full_like(strike, 0.5)
    for _ in range(8):
        d1 = (far + 0.5 * s * s * years) / (s * root)
        d2 = d1 - s * root
        now = torch.special.ndtr(d1) - strike * torch.special.ndtr(d2)
        vega = 0.39894228 * torch.exp(-0.5 * d1 * d1) * root
        s = (s - (now - price) / vega.clamp(min=1e-6)).clamp(0.01, 4.0)
    return s


class Quotes(Record):
    """Strikes by the price of the stock, years to go, and prices that some volatility explains."""

    def __call__(self, shape, dims, device):
        low, span = ((0.9, 0.5, 0.15), (0.2, 1.0, 0.1))
        fields = [a + b * torch.rand(shape, device=device) for a, b in zip(low, span)]
        return torch.stack(fields, -1)


fourteenth(
    "boids_step",
    {"n": 30011},
    {"n": 203},
    {"boid": of("n", Record("x", "y", "vx", "vy"))},
    boids_step,
    results=("next",),
    values={"dt": 0.01},
    slack=1e-3,
)
fourteenth(
    "staggered_dslash",
    {"t": 48, "z": 24, "y": 24, "x": 24},
    {"t": 6, "z": 2, "y": 4, "x": 8},
    {"link": of("4 t z y x 3 3", "complex"), "psi": of("t z y x 3", "complex")},
    staggered_dslash,
    results=("out",),
    slack=1e-3,
)
fourteenth(
    "reinitialize",
    {"d": 384, "h": 400, "w": 333},
    {"d": 5, "h": 9, "w": 13},
    {"phi": of("d h w"), "first": of("d h w")},
    reinitialize,
    results=("next",),
    values={"dt": 0.3},
)
fourteenth(
    "implied_volatility",
    {"n": 10000001},
    {"n": 403},
    {"quote": of("n", Quotes("strike", "years", "price"))},
    implied_volatility,
    results=("sigma",),
    slack=1e-3,
)

# Statistics, signals, graphs.


def nmf_round(d, v, w, h):
    h.mul_((w.T @ v) / ((w.T @ w) @ h + 1e-9))
    w.mul_((v @ h.T) / (w @ (h @ h.T) + 1e-9))
    return w, h


def pareto_ranks(d, x):
    ranks = []
    for some in x.split(1000):
        none_worse = (x <= some[:, None]).all(-1)
        one_better = (x < some[:, None]).any(-1)
        ranks.append((none_worse & one_better).sum(1, dtype=INT))
    return torch.cat(ranks)


def ambiguity_map(d, x, sent):
    t, delays, shifts = d["t"], 128, 201
    x, sent = torch.view_as_complex(x), torch.view_as_complex(sent)
    late = torch.cat([torch.zeros_like(sent[: delays - 1]), sent]).unfold(0, t, 1).flip(0)
    b = torch.arange(shifts, device=x.device) - shifts // 2
    angle = -2 * math.pi / t * (b[:, None] * torch.arange(t, device=x.device) % t).float()
    turn = torch.polar(torch.ones_like(angle), angle)
    return torch.view_as_real((x * late.conj()) @ turn.T).square().sum(-1)


def random_walks(d, start, to, draw):
    at = torch.arange(d["walks"], device=to.device) % d["n"]
    path = [at]
    for s in range(d["steps"]):
        low = start[at]
        degree = start[at + 1] - low
        pick = torch.minimum((draw[:, s] * degree).int(), degree - 1)
        at = torch.where(degree > 0, to[(low + pick).clamp(0, d["m"] - 1).long()].long(), at)
        path.append(at)
    return torch.stack(path, 1).int()


fourteenth(
    "nmf_round",
    {"n": 8000, "m": 6001, "r": 50},
    {"n": 53, "m": 37, "r": 7},
    {"v": of("n m", between(0.0, 1.0)), "w": of("n r", between(0.1, 1.0)), "h": of("r m", between(0.1, 1.0))},
    nmf_round,
    results=("w", "h"),
    slack=1e-3,
)
fourteenth(
    "pareto_ranks",
    {"n": 30001},
    {"n": 203},
    {"x": of("n 6")},
    pareto_ranks,
    results=("rank",),
)
fourteenth(
    "ambiguity_map",
    {"t": 100003},
    {"t": 403},
    {"x": of("t", "complex"), "sent": of("t", "complex")},
    ambiguity_map,
    results=("power",),
    values={"delays": 128, "shifts": 201},
    slack=0.5,
)
fourteenth(
    "random_walks",
    {"n": 1000000, "m": 16000000, "walks": 1000003, "steps": 40},
    {"n": 53, "m": 403, "walks": 203, "steps": 7},
    {"start": of("n+1", whole_ramp), "to": of("m", (INT, "n")), "draw": of("walks steps", between(0.0, 1.0))},
    random_walks,
    results=("path",),
)

# Bits, layouts, genomes.


def chacha20(d, key, nonce, first, x):
    constants = (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574)
    words = [torch.full((), word, dtype=INT, device=x.device) for word in constants]
    count = torch.arange(d["n"], dtype=INT, device=x.device) + first
    start = torch.broadcast_tensors(*words, *key.unbind(), count, *nonce.unbind())
    s = list(start)

    def turned(v, by):
        return v << by | v >> (32 - by) & (1 << by) - 1

    def quarter(a, b, c, d):
        s[a] = s[a] + s[b]
        s[d] = turned(s[d] ^ s[a], 16)
        s[c] = s[c] + s[d]
        s[b] = turned(s[b] ^ s[c], 12)
        s[a] = s[a] + s[b]
        s[d] = turned(s[d] ^ s[a], 8)
        s[c] = s[c] + s[d]
        s[b] = turned(s[b] ^ s[c], 7)

    for _ in range(10):
        for q in range(4):
            quarter(q, q + 4, q + 8, q + 12)
        for q in range(4):
            quarter(q, (q + 1) % 4 + 4, (q + 2) % 4 + 8, (q + 3) % 4 + 12)
    return x ^ torch.stack([a + b for a, b in zip(s, start)], 1)


def motif_scan(d, dna, motif, level):
    known = (dna == torch.arange(4, dtype=torch.uint8, device=dna.device)[:, None]).float()[None]
    score = torch.maximum(F.conv1d(known, motif.mT), F.conv1d(known, motif.flip(1, 2).mT))[0]
    return score.amax(1), (score >= level[:, None]).sum(1, dtype=INT)


def pack_fragments(d, w):
    parts = w.view(d["k"], 2, 4, 2, d["n"], 8)
    return parts.permute(0, 4, 5, 2, 1, 3).reshape(d["k"], d["n"], 32, 4)


fourteenth(
    "chacha20",
    {"n": 4000001},
    {"n": 203},
    {"key": of("8", WORDS), "nonce": of("3", WORDS), "x": of("n 16", WORDS)},
    lambda d, key, nonce, x: chacha20(d, key, nonce, 7, x),
    values={"first": 7},
)
fourteenth(
    "motif_scan",
    {"n": 2000003, "m": 48},
    {"n": 403, "m": 7},
    {"dna": of("n", integers(0, 4, torch.uint8)), "motif": of("m 16 4"), "level": of("m", between(4.0, 9.0))},
    motif_scan,
    results=("best", "hits"),
)
fourteenth(
    "pack_fragments",
    {"k": 900, "n": 520},
    {"k": 3, "n": 5},
    {"w": doubled("16k 8n", HALF)},
    pack_fragments,
)
