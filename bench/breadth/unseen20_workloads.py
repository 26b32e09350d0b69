"""Workloads of `breadth.py`, a twentieth set: memories, losses, formats, stars, relief, robots, bases, names, waves."""

import functools
import math

import torch
import torch.nn.functional as F
from unseen3_workloads import INT, between, integers, shaped, weights
from unseen4_workloads import narrow, row_starts
from unseen5_workloads import BYTES
from unseen13_workloads import whole_ramp
from unseen17_workloads import WORDS
from unseen19_workloads import WORKLOADS, of_length_one  # noqa: F401
from unseen_workloads import HALF, Record, add, of

LONG = torch.int64
ONES = 0xFFFFFFFF


def twentieth(name, dims, small, arrays, peer, **more):
    add("unseen_20.krn", name, dims, small, arrays, peer, **more)


def words(shape, dims, device):
    """Any 32 bits, without a sign."""
    return WORDS(shape, dims, device).view(torch.uint32)


# Layers, losses, steps of optimizers.


def hyper_connections(d, x, layer, mix, read, write):
    m = mix.exp()
    for _ in range(5):
        m = m / m.sum(2, keepdim=True)
        m = m / m.sum(1, keepdim=True)
    after = write[..., None] * layer[:, None].float()
    for b in range(4):
        after = after + m[:, :, b, None] * x[:, b, None].float()
    after = after.to(HALF)
    return after, (read[..., None] * after).sum(1).to(HALF)


def hyper_connections_c(d, x, layer, mix, read, write):
    after, y = hyper_connections(d, x.movedim(0, 1), layer, mix, read, write)
    return after.movedim(1, 0), y


def mlstm_step(d, q, k, v, enter, keep, memory, norm, level):
    q, k, v = q.float(), k.float(), v.float()
    kept = level + F.logsigmoid(keep)
    level = torch.maximum(kept, enter)
    old, new = (kept - level).exp(), (enter - level).exp() / math.sqrt(d["d"])
    memory = memory.mul_(old[..., None, None]).add_((new[..., None] * v)[..., None] * k[..., None, :])
    norm = norm.mul_(old[..., None]).add_(new[..., None] * k)
    size = torch.maximum((norm * q).sum(2).abs(), (-level).exp())
    return (memory * q[..., None, :]).sum(3).div(size[..., None]).to(HALF), memory, norm, level


def q6_k_matvec(d, w, x):
    low, high, scale, most = w.split([128, 64, 16, 2], 2)
    low, high = low.unflatten(2, (2, 1, 2, 32)), high.unflatten(2, (2, 1, 1, 32))
    nibble = torch.arange(0, 8, 4, dtype=torch.uint8, device=w.device)[:, None, None]
    pair = torch.arange(0, 8, 2, dtype=torch.uint8, device=w.device).view(2, 2, 1)
    value = ((low >> nibble & 15) | (high >> pair & 3) << 4).view(d["m"], d["k"], 16, 16).float() - 32
    value = value * scale.view(torch.int8)[..., None].float() * most.contiguous().view(torch.float16)[..., None].float()
    return (value.flatten(1) * x).sum(1)


def dino_loss(d, student, teacher, centre):
    share = ((teacher - centre) / 0.04).softmax(2)
    told = (student.float() / 0.1).log_softmax(2)
    all_pairs = -(share.sum(0) * told.sum(0)).sum() + (share * told[:2]).sum()
    centre.mul_(0.9).add_(teacher.float().mean((0, 1)), alpha=0.1)
    return all_pairs / (2 * (d["v"] - 1) * d["n"]), centre


def guided_ddim_step(d, x, with_text, without, guidance=7.5, alpha=0.5, after=0.6):
    x, with_text, without = x.float(), with_text.float(), without.float()
    guided = torch.lerp(without, with_text, guidance)
    spread_text, spread = (z.var((1, 2, 3), correction=0, keepdim=True) for z in (with_text, guided))
    noise = guided * (0.7 * (spread_text / (spread + 1e-9)).sqrt() + 0.3)
    clean = (x - math.sqrt(1 - alpha) * noise) / math.sqrt(alpha)
    return (math.sqrt(after) * clean + math.sqrt(1 - after) * noise).to(HALF)


def distortion_loss(d, weight, edge):
    # The middles never fall, so sums of all in front are enough.
    middle, long = 0.5 * (edge[:, 1:] + edge[:, :-1]), edge[:, 1:] - edge[:, :-1]
    moment = weight * middle
    before, moment_before = weight.cumsum(1) - weight, moment.cumsum(1) - moment
    return 2 * (moment * before - weight * moment_before).sum(1) + (weight.square() * long).sum(1) / 3


def fape_loss(d, turn, at, x, true_turn, true_at, true_x):
    def seen(turn, at, x, c):
        return sum(turn[:, :, None, a, c] * (x[:, None, :, a] - at[:, :, None, a]) for a in range(3))

    square = 1e-4
    for c in range(3):
        square = square + (seen(turn, at, x, c) - seen(true_turn, true_at, true_x, c)).square()
    return square.sqrt().clamp(max=10).mean((1, 2)) / 10


def fape_loss_b(d, frame, x, true_frame, true_x):
    (turn, at), (true_turn, true_at) = frame.split([9, 3], 2), true_frame.split([9, 3], 2)
    return fape_loss(d, turn.unflatten(2, (3, 3)), at, x, true_turn.unflatten(2, (3, 3)), true_at, true_x)


def cross_layer(d, first, x, w, bias):
    return (first * (x @ w.T + bias) + x).to(HALF)


def circle_loss(d, x, label):
    alike = (x @ x.T).float()
    same = label[:, None] == label
    far = torch.where(same, 0, (16 * (alike + 0.25).clamp(min=0) * (alike - 0.25)).exp()).sum(1)
    near = (-16 * (1.25 - alike).clamp(min=0) * (alike - 0.75)).exp()
    near = torch.where(same, near, 0).fill_diagonal_(0).sum(1)
    return (far * near).log1p().mean()


def mars_adamw_step(d, p, m, v, last, g, lr=0.01):
    wide = g.float()
    on = wide + 0.475 * (wide - last)
    c = on / on.square().sum().sqrt().clamp(min=1)
    m.mul_(0.95).add_(c, alpha=0.05)
    v.mul_(0.99).addcmul_(c, c, value=0.01)
    p.sub_(lr * (m / (v.sqrt() + 1e-8) + 0.01 * p))
    last.copy_(g)
    return p, m, v, last


def fno_modes(d, x, weight):
    x, weight = torch.view_as_complex(x), torch.view_as_complex(weight)
    return torch.view_as_real(torch.einsum("bchw,cohw->bohw", x, weight))


def swiglu_mxfp8(d, x):
    a, b = x.float().chunk(2, 1)
    z = (F.silu(a) * b).unflatten(1, (-1, 32))
    power = ((z.abs().amax(2).view(INT) >> 23) - 8).clamp(min=1)
    scaled = z * torch.exp2((127 - power).float())[..., None]
    return scaled.clamp(-448, 448).to(torch.float8_e4m3fn).view(torch.uint8).flatten(1), power.to(torch.uint8)


class Blocks:
    """Blocks of the format Q6_K: bytes, whose last two are a small number."""

    fields = [("low", "u1", (128,)), ("high", "u1", (64,)), ("scale", "i1", (16,)), ("d", "f2")]

    def __call__(self, shape, dims, device):
        scale = (0.001 * torch.rand((*shape, 1), device=device)).half().view(torch.uint8)
        return torch.cat([BYTES((*shape, 208), dims, device), scale], -1)


class Frames:
    """Matrices of nine numbers, and places of three."""

    fields = [("turn", "f4", (9,)), ("at", "f4", (3,))]

    def __call__(self, shape, dims, device):
        return torch.randn((*shape, 12), device=device)


def edges_along(shape, dims, device):
    """Numbers that rise along each row, from near 0 to near 1."""
    return torch.rand(shape, device=device).cumsum(1) / shape[1]


TOKENS, FEW_TOKENS = {"t": 16385, "c": 1280}, {"t": 37, "c": 53}
for name, x, peer in (
    ("hyper_connections", "t 4 c", hyper_connections),
    ("hyper_connections_b", "t 4 c", hyper_connections),
    ("hyper_connections_c", "4 t c", hyper_connections_c),
):
    twentieth(
        name,
        TOKENS,
        FEW_TOKENS,
        {
            "x": of(x, HALF),
            "layer": of("t c", HALF),
            "mix": of("t 4 4"),
            "read": of("t 4", between(0.0, 0.5)),
            "write": of("t 4", between(0.0, 2.0)),
        },
        peer,
        results=("next", "y"),
        slack=5e-2,
    )
for name in ("mlstm_step", "mlstm_step_b", "mlstm_step_c"):
    vector = of("b h d", HALF)
    twentieth(
        name,
        {"b": 96, "h": 8, "d": 256},
        {"b": 3, "h": 2, "d": 24},
        {
            "q": vector,
            "k": vector,
            "v": vector,
            "enter": of("b h"),
            "keep": of("b h", between(1.0, 5.0)),
            "memory": of("b h d d"),
            "norm": of("b h d"),
            "level": of("b h", between(-1.0, 1.0)),
        },
        mlstm_step,
        results=("y", "memory", "norm", "level"),
        slack=2e-2,
    )
twentieth(
    "q6_k_matvec",
    {"m": 28672, "k": 32},
    {"m": 37, "k": 3},
    {"w": of("m k", Blocks()), "x": shaped(lambda d: (256 * d["k"],))},
    q6_k_matvec,
    slack=1e-1,
)
twentieth(
    "dino_loss",
    {"v": 8, "n": 64, "k": 65536},
    {"v": 4, "n": 5, "k": 203},
    {
        "student": of("v n k", HALF),
        "teacher": of("2 n k", narrow(between(-0.2, 0.2), HALF)),
        "centre": of("k", between(-0.1, 0.1)),
    },
    dino_loss,
    results=("loss", "centre"),
    slack=1e-2,
)
twentieth(
    "guided_ddim_step",
    {"b": 125, "c": 16, "h": 128, "w": 120},
    {"b": 3, "c": 4, "h": 7, "w": 9},
    {"x": of("b c h w", HALF), "with_text": of("b c h w", HALF), "without": of("b c h w", HALF)},
    guided_ddim_step,
    values={"guidance": 7.5, "alpha": 0.5, "next": 0.6},
    slack=2e-2,
)
twentieth(
    "distortion_loss",
    {"r": 400009, "s": 64},
    {"r": 37, "s": 13},
    {"weight": of("r s", between(0.0, 0.1)), "edge": of("r s+1", edges_along)},
    distortion_loss,
    slack=1e-4,
)
COMPLEX, LITTLE_COMPLEX = {"b": 32, "n": 500, "m": 3003}, {"b": 3, "n": 11, "m": 37}
for name in ("fape_loss", "fape_loss_c"):
    turn, place, points = of("b n 3 3"), of("b n 3"), of("b m 3")
    twentieth(
        name,
        COMPLEX,
        LITTLE_COMPLEX,
        {"turn": turn, "at": place, "x": points, "true_turn": turn, "true_at": place, "true_x": points},
        fape_loss,
        slack=1e-3,
    )
frame, points = of("b n", Frames()), of("b m", Record("x", "y", "z", low=-2.0, high=2.0))
twentieth(
    "fape_loss_b",
    COMPLEX,
    LITTLE_COMPLEX,
    {"frame": frame, "x": points, "true_frame": frame, "true_x": points},
    fape_loss_b,
    slack=1e-3,
)
twentieth(
    "cross_layer",
    {"m": 40009, "d": 1000},
    {"m": 37, "d": 53},
    {"first": of("m d", HALF), "x": of("m d", HALF), "w": of("d d", narrow(weights, HALF)), "bias": of("d")},
    cross_layer,
    slack=5e-2,
)
twentieth(
    "circle_loss",
    {"n": 6007, "d": 512},
    {"n": 61, "d": 40},
    {"x": of("n d", of_length_one), "label": of("n", integers(0, 200, INT))},
    circle_loss,
    results=("loss",),
    slack=2e-2,
)
twentieth(
    "mars_adamw_step",
    {"n": 30000001},
    {"n": 1003},
    {"p": of("n"), "m": of("n"), "v": of("n", "positive"), "last": of("n", HALF), "g": of("n", HALF)},
    mars_adamw_step,
    results=("p", "m", "v", "last"),
    values={"lr": 0.01},
    slack=1e-3,
)
twentieth(
    "fno_modes",
    {"b": 64, "c": 64, "o": 60, "h": 48, "w": 25},
    {"b": 3, "c": 5, "o": 7, "h": 4, "w": 3},
    {"x": of("b c h w", "complex"), "weight": of("c o h w", "complex")},
    fno_modes,
    slack=1e-3,
)
twentieth(
    "swiglu_mxfp8",
    {"m": 16385, "g": 88},
    {"m": 37, "g": 5},
    {"x": shaped(lambda d: (d["m"], 64 * d["g"]), HALF)},
    swiglu_mxfp8,
    results=("q", "scale"),
    slack=1.01,
)


# The sky and the earth.


def sigma_clipped_stack(d, x):
    keeps = torch.ones_like(x, dtype=torch.bool)
    for _ in range(3):
        many = keeps.sum(0).clamp(min=1)
        mean = torch.where(keeps, x, 0).sum(0) / many
        spread = torch.where(keeps, (x - mean).square(), 0).sum(0) / many
        keeps = (x - mean).abs() <= 2.5 * spread.sqrt()
    many = keeps.sum(0)
    return torch.where(keeps, x, 0).sum(0) / many.clamp(min=1), many.to(torch.uint8)


def hillshade(d, height, size=30.0, lx=0.5, ly=0.5, lz=0.70710678):
    p = F.pad(height[None].float(), (1, 1, 1, 1), mode="replicate")[0]
    column = p[:-2] + 2 * p[1:-1] + p[2:]
    row = p[:, :-2] + 2 * p[:, 1:-1] + p[:, 2:]
    dx, dy = (column[:, 2:] - column[:, :-2]) / (8 * size), (row[2:] - row[:-2]) / (8 * size)
    light = (lz - lx * dx - ly * dy) * (1 + dx * dx + dy * dy).rsqrt()
    return (255 * light.clamp(0, 1) + 0.5).to(torch.uint8)


def dedisperse(d, x, delay, reach=2000):
    # Of each channel all windows of so many samples, of which each trial takes one.
    windows = x.unfold(1, d["s"] - reach, 1)
    channel = torch.arange(d["c"], device=x.device)
    return windows[channel, delay].sum(1, dtype=torch.float32) / d["c"]


def sky(shape, dims, device):
    """Exposures, of which some pixels are far too bright."""
    return torch.randn(shape, device=device) + 40 * (torch.rand(shape, device=device) < 0.05)


TWICE = {"t": 31, "h": 1500, "w": 2049}, {"t": 13, "h": 7, "w": 11}
for name, x in (
    ("sigma_clipped_stack", "t h w"),
    ("sigma_clipped_stack_b", "t h w"),
    ("sigma_clipped_stack_c", "h w t"),
):
    peer = (lambda d, x: sigma_clipped_stack(d, x.movedim(2, 0))) if name.endswith("_c") else sigma_clipped_stack
    twentieth(name, *TWICE, {"x": of(x, sky)}, peer, results=("y", "kept"), slack=1e-3)
for name in ("hillshade", "hillshade_b", "hillshade_c"):
    twentieth(
        name,
        {"h": 10000, "w": 12001},
        {"h": 37, "w": 53},
        {"height": of("h w", integers(0, 60, torch.int16))},
        hillshade,
        values={"size": 30.0, "lx": 0.5, "ly": 0.5, "lz": 0.70710678},
        slack=1.01,
    )
twentieth(
    "dedisperse",
    {"c": 256, "s": 34768, "m": 200},
    {"c": 11, "s": 2037, "m": 5},
    {"x": of("c s", BYTES), "delay": of("m c", integers(0, 2001, INT))},
    dedisperse,
    values={"reach": 2000},
    slack=1e-2,
)


# Robots.


def cross(a, b):
    (ax, ay, az), (bx, by, bz) = a, b
    return [ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx]


def forward_kinematics(d, q, arm):
    zero, one = torch.zeros_like(q[:, 0]), torch.ones_like(q[:, 0])
    x, y, z, at = [one, zero, zero], [zero, one, zero], [zero, zero, one], [zero] * 3
    origins, axes = [], []
    angle = q + arm[:, 3]
    sine, cosine, sine_twist, cosine_twist = angle.sin(), angle.cos(), arm[:, 1].sin(), arm[:, 1].cos()
    for k in range(7):
        origins.append(at)
        axes.append(z)
        c, s, ca, sa = cosine[:, k], sine[:, k], cosine_twist[k], sine_twist[k]
        x, turned = [c * x[a] + s * y[a] for a in range(3)], [c * y[a] - s * x[a] for a in range(3)]
        at = [at[a] + arm[k, 2] * z[a] + arm[k, 0] * x[a] for a in range(3)]
        y, z = [ca * turned[a] + sa * z[a] for a in range(3)], [ca * z[a] - sa * turned[a] for a in range(3)]
    pose = torch.stack([w[a] for a in range(3) for w in (x, y, z, at)], 1)
    columns = [cross(axes[k], [at[a] - origins[k][a] for a in range(3)]) for k in range(7)]
    return pose.view(-1, 3, 4), torch.stack([columns[k][a] for a in range(3) for k in range(7)], 1).view(-1, 3, 7)


def mppi_rollouts(d, noise, plan, obstacle, goal_x=3.0, goal_y=1.0):
    push = (plan[:, None, 0] + noise[..., 0]).clamp(-2, 2)
    steer = (plan[:, None, 1] + noise[..., 1]).clamp(-0.6, 0.6)
    turn, effort = steer.tan() / 2.5, 0.01 * (push * push + steer * steer)
    x = y = heading = total = torch.zeros_like(push[0])
    speed = torch.ones_like(x)
    for s in range(d["t"]):
        x, y = x + 0.05 * speed * heading.cos(), y + 0.05 * speed * heading.sin()
        heading = heading + 0.05 * speed * turn[s]
        speed = speed + 0.05 * push[s]
        for k in range(8):
            total = total + (-2 * ((x - obstacle[k, 0]).square() + (y - obstacle[k, 1]).square())).exp()
        total = total + 0.01 * ((x - goal_x).square() + (y - goal_y).square()) + effort[s]
    return total, plan + ((-total).softmax(0)[:, None] * noise).sum(1)


for name in ("forward_kinematics", "forward_kinematics_b", "forward_kinematics_c"):
    twentieth(
        name,
        {"n": 1000003},
        {"n": 203},
        {"q": of("n 7", between(-3.0, 3.0)), "arm": of("7 4")},
        forward_kinematics,
        results=("pose", "jacobian"),
        slack=1e-3,
    )
twentieth(
    "mppi_rollouts",
    {"t": 50, "n": 400009},
    {"t": 7, "n": 203},
    {"noise": of("t n 2", between(-0.5, 0.5)), "plan": of("t 2", between(-0.2, 0.2)), "obstacle": of("8 2")},
    mppi_rollouts,
    results=("cost", "next"),
    values={"goal_x": 3.0, "goal_y": 1.0},
    slack=1e-3,
)


# Formats and text.


def lifted(v, axis):
    x, y, z, w = v.unbind(axis)
    x = x + w >> 1
    w = w - x
    z = z + y >> 1
    y = y - z
    x = x + z >> 1
    z = z - x
    w = w + y >> 1
    y = y - w
    w = w + (y >> 1)
    y = y - (w >> 1)
    return torch.stack([x, y, z, w], axis)


def zfp_lift(d, x):
    x = x.view(d["d"], 4, d["h"], 4, d["w"], 4).permute(0, 2, 4, 1, 3, 5)
    e = ((x.abs().amax((3, 4, 5)).view(INT) >> 23) - 126).clamp(min=-90)
    v = (x * torch.exp2((30 - e).float())[..., None, None, None]).to(INT)
    v = lifted(lifted(lifted(v, 5), 4), 3)
    mask = 0xAAAAAAAA - (1 << 32)
    return (v + mask ^ mask).view(torch.uint32).flatten(3), e.to(torch.int16)


def hashed(key):
    """A hash of 32 bits, in numbers of 64."""
    key = ((key ^ key >> 16) * 0x7FEB352D) & ONES
    key = ((key ^ key >> 15) * 0x846CA68B) & ONES
    return key ^ key >> 16


def minimizers(d, base):
    n = d["n"] + 9
    there = back = 0
    for s in range(15):
        letter = base[s : s + n].long()
        there, back = there | letter << 28 - 2 * s, back | 3 - letter << 2 * s
    least = (hashed(torch.minimum(there, back)) << 4).unfold(0, 10, 1) + torch.arange(10, device=base.device)
    least = least.amin(1)
    return least >> 4, ((least & 15) + torch.arange(d["n"], device=base.device)).to(INT)


def bm25_scores(d, term, start, document, many, length):
    begin, end = start[term], start[term + 1]
    holds = (end - begin).float()
    rare = ((d["m"] - holds + 0.5) / (holds + 0.5)).log1p()
    # No list is longer than twice the mean.
    place = begin[..., None] + torch.arange(2 * d["nnz"] // d["v"] + 2, dtype=INT, device=term.device)
    there = place < end[..., None]
    place = torch.where(there, place, 0)
    which, tf = document[place], many[place].float()
    long = (length / length.float().mean())[which]
    score = torch.where(there, rare[..., None] * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * long)), 0)
    at = (which.long() + d["m"] * torch.arange(d["q"], device=term.device)[:, None, None]).flatten()
    return torch.zeros(d["q"] * d["m"], device=term.device).index_add_(0, at, score.flatten()).view(d["q"], d["m"])


def jaro_winkler(d, a, b, length_a, length_b):
    at = torch.arange(16, device=a.device)
    m, k = length_a.long(), length_b.long()
    reach = (torch.maximum(m, k) // 2 - 1).clamp(min=0)[:, None]
    inside_b = at < k[:, None]
    found, free = [], inside_b
    for i in range(16):
        may = free & (a[:, i, None] == b) & ((at - i).abs() <= reach) & (m > i)[:, None]
        first = may & (may.cumsum(1) == 1)
        found.append(may.any(1))
        free = free & ~first
    found, used = torch.stack(found, 1), inside_b & ~free
    rank_a, rank_b = torch.where(found, found.cumsum(1), -1), torch.where(used, used.cumsum(1), -2)
    pairs = rank_a[:, :, None] == rank_b[:, None]
    wrong = 0.5 * (pairs & (a[:, :, None] != b[:, None])).sum((1, 2))
    same = found.sum(1).float()
    jaro = torch.where(same > 0, (same / m + same / k + (same - wrong) / same.clamp(min=1)) / 3, 0)
    start = (a[:, :4] == b[:, :4]) & (at[:4] < torch.minimum(m, k)[:, None])
    return jaro + 0.1 * start.cumprod(1).sum(1) * (1 - jaro)


BLOCKS, FEW_BLOCKS = {"d": 100, "h": 100, "w": 101}, {"d": 2, "h": 3, "w": 5}
for name in ("zfp_lift", "zfp_lift_b", "zfp_lift_c"):
    twentieth(
        name,
        BLOCKS,
        FEW_BLOCKS,
        {"x": shaped(lambda d: (4 * d["d"], 4 * d["h"], 4 * d["w"]))},
        zfp_lift,
        results=("code", "power"),
        slack=0.0,
    )
for name in ("minimizers", "minimizers_b", "minimizers_c"):
    twentieth(
        name,
        {"n": 20000003},
        {"n": 2003},
        {"base": shaped(lambda d: (d["n"] + 23,), integers(0, 4, torch.uint8))},
        minimizers,
        results=("y", "at"),
        slack=0.0,
    )
twentieth(
    "bm25_scores",
    {"q": 64, "v": 2000, "nnz": 40000000, "m": 1000003},
    {"q": 3, "v": 20, "nnz": 203, "m": 53},
    {
        "term": of("q 8", (INT, "v")),
        "start": of("v+1", row_starts),
        "document": of("nnz", (INT, "m")),
        "many": of("nnz", integers(1, 20, torch.uint8)),
        "length": of("m", integers(10, 200, INT)),
    },
    bm25_scores,
    slack=1e-3,
)
NAMES = integers(97, 101, torch.uint8)
twentieth(
    "jaro_winkler",
    {"n": 4000037},
    {"n": 403},
    {
        "a": of("n 16", NAMES),
        "b": of("n 16", NAMES),
        "length_a": of("n", integers(1, 17, torch.uint8)),
        "length_b": of("n", integers(1, 17, torch.uint8)),
    },
    jaro_winkler,
    slack=1e-4,
)


# Graphs and tables.


def wl_refine(d, start, to, colour):
    colour = colour.view(INT).long() & ONES
    for _ in range(2):
        before = F.pad(hashed(colour)[to].cumsum(0), (1, 0))[start]
        colour = hashed(3 * colour + before[1:] - before[:-1] & ONES)
    return colour


def shares_of_quotes(d, start):
    return torch.searchsorted(start, torch.arange(d["m"], dtype=INT, device=start.device), right=True) - 1


def asof_join(d, share, time, start, quoted, bid, ask):
    key = shares_of_quotes(d, start) << 32 | quoted
    last = torch.searchsorted(key, share.long() << 32 | time, right=True) - 1
    there = last >= start[share]
    last = last.clamp(min=0)
    return torch.where(there, 0.5 * (bid[last] + ask[last]), 0), torch.where(there, time - quoted[last], -1)


PRIMES = (
    0x428A2F98, 0x71374491, 0xB5C0FBCF, 0xE9B5DBA5, 0x3956C25B, 0x59F111F1, 0x923F82A4, 0xAB1C5ED5, 0xD807AA98,
    0x12835B01, 0x243185BE, 0x550C7DC3, 0x72BE5D74, 0x80DEB1FE, 0x9BDC06A7, 0xC19BF174, 0xE49B69C1, 0xEFBE4786,
    0x0FC19DC6, 0x240CA1CC, 0x2DE92C6F, 0x4A7484AA, 0x5CB0A9DC, 0x76F988DA, 0x983E5152, 0xA831C66D, 0xB00327C8,
    0xBF597FC7, 0xC6E00BF3, 0xD5A79147, 0x06CA6351, 0x14292967, 0x27B70A85, 0x2E1B2138, 0x4D2C6DFC, 0x53380D13,
    0x650A7354, 0x766A0ABB, 0x81C2C92E, 0x92722C85, 0xA2BFE8A1, 0xA81A664B, 0xC24B8B70, 0xC76C51A3, 0xD192E819,
    0xD6990624, 0xF40E3585, 0x106AA070, 0x19A4C116, 0x1E376C08, 0x2748774C, 0x34B0BCB5, 0x391C0CB3, 0x4ED8AA4A,
    0x5B9CCA4F, 0x682E6FF3, 0x748F82EE, 0x78A5636F, 0x84C87814, 0x8CC70208, 0x90BEFFFA, 0xA4506CEB, 0xBEF9A3F7,
    0xC67178F2,
)  # fmt: skip
BEGIN = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19)


def signed(v):
    return v - (1 << 32) if v >> 31 else v


def shifted(x, by):
    """To the right, zeros from the left."""
    return x >> by & (1 << 32 - by) - 1


def turned(x, by):
    return shifted(x, by) | x << 32 - by


def sha256_round(state, w):
    a, b, c, d, e, f, g, h = state
    for t in range(64):
        if t >= 16:
            x, y = w[t - 15], w[t - 2]
            small = turned(x, 7) ^ turned(x, 18) ^ shifted(x, 3)
            w.append(w[t - 16] + small + w[t - 7] + (turned(y, 17) ^ turned(y, 19) ^ shifted(y, 10)))
        one = h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + (e & f ^ ~e & g) + signed(PRIMES[t]) + w[t]
        two = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + (a & b ^ a & c ^ b & c)
        a, b, c, d, e, f, g, h = one + two, a, b, c, d + one, e, f, g
    return [before + after for before, after in zip(state, (a, b, c, d, e, f, g, h), strict=True)]


def sha256_pairs(d, x):
    x = list(x.view(INT).unbind(1))
    zero = torch.zeros_like(x[0])
    state = sha256_round([zero + signed(v) for v in BEGIN], x)
    state = sha256_round(state, [zero + signed(0x80000000), *[zero] * 14, zero + 512])
    return torch.stack(state, 1).view(torch.uint32)


def quote_times(shape, dims, device):
    """Times that rise within each share's quotes, by three in the mean."""
    start = whole_ramp((dims["s"] + 1,), dims, device)
    place = torch.arange(shape[0], dtype=INT, device=device)
    return (3 * (place - start[shares_of_quotes(dims, start)]) + torch.randint(0, 3, shape, device=device)).to(INT)


def trade_times(shape, dims, device):
    return torch.randint(0, 3 * dims["m"] // dims["s"], shape, device=device, dtype=INT)


twentieth(
    "wl_refine",
    {"n": 1000003, "nnz": 16000000},
    {"n": 103, "nnz": 1003},
    {"start": of("n+1", row_starts), "to": of("nnz", (INT, "n")), "colour": of("n", words)},
    wl_refine,
    slack=0.0,
)
twentieth(
    "asof_join",
    {"n": 10000019, "s": 1000, "m": 20000003},
    {"n": 403, "s": 7, "m": 203},
    {
        "share": of("n", (INT, "s")),
        "time": of("n", trade_times),
        "start": of("s+1", whole_ramp),
        "quoted": of("m", quote_times),
        "bid": of("m", between(9.0, 10.0)),
        "ask": of("m", between(10.0, 11.0)),
    },
    asof_join,
    results=("middle", "age"),
)
twentieth("sha256_pairs", {"n": 1000003}, {"n": 103}, {"x": of("n 16", words)}, sha256_pairs, slack=0.0)


# Sound and pictures.


def lookahead_limiter(d, x, level=0.5):
    peak = F.pad(x.abs().amax(2), (0, 63))
    gain = (level / F.max_pool1d(peak, 64, 1).clamp(min=1e-9)).clamp(max=1)
    return x * F.avg_pool1d(F.pad(gain, (63, 0), value=1.0), 64, 1)[..., None]


@functools.cache
def apart(device):
    grey = torch.arange(16, device=device)
    return (grey[:, None] - grey).square().float()


def glcm_features(d, x):
    h, w = d["h"], d["w"]
    grey = (x >> 4).view(h, 32, w, 32).to(LONG)
    tile = 256 * torch.arange(h * w, device=x.device).view(h, 1, w, 1)
    pair = (tile + 16 * grey[..., :-1] + grey[..., 1:]).flatten()
    many = torch.zeros(256 * h * w, dtype=INT, device=x.device)
    many.scatter_add_(0, pair, torch.ones((), dtype=INT, device=x.device).expand(pair.shape))
    many = many.view(h, w, 16, 16)
    p, off = (many + many.mT) / 1984.0, apart(x.device)
    return (off * p).sum((2, 3)), (p / (1 + off)).sum((2, 3)), p.square().sum((2, 3))


def without_edges(p1, p0, q0, q1, alpha, beta):
    smooth = ((p0 - q0).abs() < alpha) & ((p1 - p0).abs() < beta) & ((q1 - q0).abs() < beta)
    by = torch.where(smooth, (4 * (q0 - p0) + p1 - q1 + 4 >> 3).clamp(-6, 6), 0)
    return (p0 + by).clamp(0, 255).to(torch.uint8), (q0 - by).clamp(0, 255).to(torch.uint8)


def deblock_edges(d, x, alpha=20, beta=12):
    z = x.short()
    p, q = without_edges(z[..., 6:-8:8], z[..., 7:-8:8], z[..., 8::8], z[..., 9::8], alpha, beta)
    x[..., 7:-8:8], x[..., 8::8] = p, q
    z = x.short()
    p, q = without_edges(z[:, 6:-8:8], z[:, 7:-8:8], z[:, 8::8], z[:, 9::8], alpha, beta)
    x[:, 7:-8:8], x[:, 8::8] = p, q
    return x


twentieth(
    "lookahead_limiter",
    {"b": 16, "t": 1000003},
    {"b": 2, "t": 203},
    {"x": of("b t 2")},
    lookahead_limiter,
    values={"level": 0.5},
    slack=1e-3,
)
twentieth(
    "glcm_features",
    {"h": 256, "w": 250},
    {"h": 3, "w": 5},
    {"x": shaped(lambda d: (32 * d["h"], 32 * d["w"]), BYTES)},
    glcm_features,
    results=("contrast", "homogeneity", "energy"),
    slack=1e-3,
)
twentieth(
    "deblock_edges",
    {"n": 40, "h": 135, "w": 240},
    {"n": 3, "h": 4, "w": 5},
    {"x": shaped(lambda d: (d["n"], 8 * d["h"], 8 * d["w"]), integers(100, 116, torch.uint8))},
    deblock_edges,
    results=("x",),
    values={"alpha": 20, "beta": 12},
    slack=0.0,
)


# Finance, physics.


def libor_paths(d, z, rate, vol, strike=0.045):
    n = z.shape[1]
    kept = rate[:, None].expand(40, n)
    for s in range(20):
        later, v = kept[s + 1 :], vol[: 39 - s, None]
        drift = (0.25 * v * later / (1 + 0.25 * later)).cumsum(0)
        later = later * (0.25 * v * drift + v * (0.5 * z[s] - 0.125 * v)).exp()
        kept = torch.cat([kept[: s + 1], later])
    bond = (1 / (1 + 0.25 * kept[20:])).cumprod(0)
    payoff = (1 - bond[-1] - strike * 0.25 * bond.sum(0)).clamp(min=0)
    return payoff, payoff.mean()


def macro_cross_sections(d, energy, material, grid, section, many, nuclide, density):
    low = (torch.searchsorted(grid, energy, right=True) - 1).clamp(0, d["g"] - 2)
    f = (energy - grid[low]) / (grid[low + 1] - grid[low]).clamp(min=1e-9)
    counts = torch.arange(24, device=energy.device) < many[:, None]
    share, at = torch.where(counts, density, 0)[material], nuclide[material].long() * d["g"] + low[:, None]
    section = section.view(-1, 5)
    return (share[..., None] * torch.lerp(section[at], section[at + 1], f[:, None, None])).sum(1)


def ewald_reciprocal(d, at, charge, wave, weight):
    phase = wave @ at.T
    sine, cosine = phase.sin(), phase.cos()
    re, im = cosine @ charge, sine @ charge
    force = 2 * charge[:, None] * (sine.T @ ((weight * re)[:, None] * wave) - cosine.T @ ((weight * im)[:, None] * wave))
    return (weight * (re * re + im * im)).sum(), force


def even_grid(shape, dims, device):
    """Energies that rise by a little more or less each."""
    at = torch.arange(shape[0], device=device, dtype=torch.float64)
    return ((at + 0.5 * torch.rand(shape, device=device, dtype=torch.float64)) / shape[0]).float()


twentieth(
    "libor_paths",
    {"n": 400009},
    {"n": 203},
    {"z": of("20 n"), "rate": of("40", between(0.03, 0.06)), "vol": of("40", between(0.1, 0.3))},
    libor_paths,
    results=("payoff", "price"),
    values={"strike": 0.045},
)
twentieth(
    "macro_cross_sections",
    {"n": 1000003, "g": 20011, "c": 68, "m": 12},
    {"n": 203, "g": 53, "c": 7, "m": 3},
    {
        "energy": of("n", between(0.0, 1.0)),
        "material": of("n", (INT, "m")),
        "grid": of("g", even_grid),
        "section": of("c g", Record("total", "elastic", "absorbed", "fission", "released", low=0.0)),
        "many": of("m", integers(4, 25, INT)),
        "nuclide": of("m 24", (INT, "c")),
        "density": of("m 24", between(0.0, 1.0)),
    },
    macro_cross_sections,
    slack=1e-3,
)
twentieth(
    "ewald_reciprocal",
    {"n": 20011, "m": 2003},
    {"n": 103, "m": 37},
    {
        "at": of("n 3"),
        "charge": of("n", between(-1.0, 1.0)),
        "wave": of("m 3", between(-5.0, 5.0)),
        "weight": of("m", between(0.0, 0.001)),
    },
    ewald_reciprocal,
    results=("energy", "force"),
    slack=1e-2,
)
