"""Workloads of `breadth.py`, a twenty-first set: heads, rounding, weather, stars, water, nerves, texts, prices."""

import functools
import math

import torch
import torch.nn.functional as F
from unseen3_workloads import F16, INT, LONG, between, integers, shaped
from unseen4_workloads import narrow, row_starts
from unseen5_workloads import BYTES
from unseen20_workloads import WORKLOADS, words  # noqa: F401
from unseen_workloads import HALF, Record, add, of


def twentyfirst(name, dims, small, arrays, peer, **more):
    add("unseen_21.krn", name, dims, small, arrays, peer, **more)


# Attention, quantisation, steps of optimizers, targets.


def talking_heads_softmax(d, score, before, after):
    share = torch.einsum("ag,bgij->baij", before, score.float()).softmax(3)
    return torch.einsum("ag,bgij->baij", after, share).to(HALF)


def talking_heads_softmax_c(d, score, before, after):
    share = (score.float() @ before.T).softmax(2)
    return (share @ after.T).to(HALF)


def gptq_columns(w, u, scale):
    """Columns first: what each of them becomes, and what it loses."""
    rest, codes, lost = w.float(), [], []
    for j in range(128):
        v = rest[0]
        code = (v / scale).round().clamp(-8, 7)
        off = (v - scale * code) / u[j, j]
        rest = rest[1:] - u[j, j + 1 :, None] * off
        codes.append(code)
        lost.append(off)
    return torch.stack(codes).to(torch.int8), torch.stack(lost)


def gptq_block(d, w, u, scale):
    q, lost = gptq_columns(w.T, u, scale)
    return q.T.contiguous(), lost.T.contiguous()


def gptq_block_c(d, w, u, scale):
    return gptq_columns(w, u, scale)


def ademamix_step(d, p, fast, slow, v, g, lr=0.001, alpha=5.0):
    g = g.float()
    fast.lerp_(g, 0.1)
    slow.lerp_(g, 0.0001)
    v.mul_(0.999).addcmul_(g, g, value=0.001)
    step = (fast / 0.19 + alpha * slow) / ((v / 0.002).sqrt() + 1e-8)
    p.sub_(lr * (step + 0.1 * p))
    return p.to(HALF), p, fast, slow, v


def soft_argmax_heatmaps(d, x, sharp=10.0):
    share = (sharp * x.float()).flatten(2).softmax(2).view(x.shape)
    column, row = (torch.arange(size, device=x.device) + 0.5 for size in (d["w"], d["h"]))
    at = torch.stack([(share.sum(2) * column).sum(2), (share.sum(3) * row).sum(2)], 2)
    return at, share.amax((2, 3))


def crps_ensemble(d, x, truth):
    m = d["m"]
    # Of sorted members the differences of all pairs are a weighted sum.
    weight = 2 * torch.arange(m, device=x.device, dtype=torch.float32)[:, None] - m + 1
    apart = 2 * (weight * x.sort(0).values).sum(0)
    return (x - truth).abs().mean(0) - apart / (2 * m * (m - 1))


def c51_projection(d, p, reward, ended, fading=0.99):
    value = -10 + 0.4 * torch.arange(51, device=p.device)
    after = reward[:, None] + torch.where(ended != 0, 0.0, fading)[:, None] * value
    place = (after.clamp(-10, 10) + 10) / 0.4
    low = place.long().clamp(max=49)
    part = place - low
    share = torch.zeros_like(p)
    return share.scatter_add_(1, low, (1 - part) * p).scatter_add_(1, low + 1, part * p)


def relative_shift_scores(d, said, far, scale=0.125):
    n = d["n"]
    # Rows of one more, read as rows of n, are each shifted by one.
    moved = F.pad(far, (1, 0)).view(d["b"], d["h"], n + 1, n)[:, :, 1:]
    past = torch.ones(n, n, dtype=torch.bool, device=said.device).tril()
    return torch.where(past, scale * (said.float() + moved.float()), -30000.0).to(HALF)


def compress_2_4(d, w):
    w = w.view(d["m"], d["g"], 4, 4)
    # The lowest of equal ones come first.
    two = w.abs().sort(dim=3, descending=True, stable=True).indices[..., :2].sort(3).values
    four = two[..., 0] | two[..., 1] << 2
    place = (four << torch.arange(0, 16, 4, device=w.device)).sum(2)
    return w.gather(3, two).flatten(1), place.to(torch.uint16)


SCORES, FEW_SCORES = {"b": 8, "h": 12, "m": 997, "n": 1000}, {"b": 2, "h": 5, "m": 7, "n": 53}
for name in ("talking_heads_softmax", "talking_heads_softmax_b"):
    twentyfirst(
        name,
        SCORES,
        FEW_SCORES,
        {"score": of("b h m n", HALF), "before": of("h h"), "after": of("h h")},
        talking_heads_softmax,
        slack=1e-2,
    )
twentyfirst(
    "talking_heads_softmax_c",
    {"b": 8, "m": 997, "n": 1000},
    {"b": 2, "m": 7, "n": 53},
    {"score": of("b m n 12", HALF), "before": of("12 12"), "after": of("12 12")},
    talking_heads_softmax_c,
    slack=1e-2,
)


def upper(shape, dims, device):
    """The upper triangle of a matrix like those that GPTQ takes: its diagonal outweighs the rest."""
    return torch.eye(shape[0], device=device) + (0.05 * torch.randn(shape, device=device)).triu(1)


for name, w, peer in (
    ("gptq_block", "m 128", gptq_block),
    ("gptq_block_b", "m 128", gptq_block),
    ("gptq_block_c", "128 m", gptq_block_c),
):
    twentyfirst(
        name,
        {"m": 100003},
        {"m": 37},
        {
            "w": of(w, narrow(between(-0.4, 0.4), HALF)),
            "u": of("128 128", upper),
            "scale": of("m", between(0.05, 0.06)),
        },
        peer,
        results=("q", "lost"),
        slack=1.01,
    )
twentyfirst(
    "ademamix_step",
    {"n": 20000003},
    {"n": 1003},
    {"p": of("n"), "fast": of("n"), "slow": of("n"), "v": of("n", "positive"), "g": of("n", HALF)},
    ademamix_step,
    results=("narrow", "p", "fast", "slow", "v"),
    values={"lr": 0.001, "alpha": 5.0},
    slack=1e-3,
)
twentyfirst(
    "soft_argmax_heatmaps",
    {"b": 1000, "k": 17, "h": 96, "w": 72},
    {"b": 3, "k": 5, "h": 12, "w": 9},
    {"x": of("b k h w", F16)},
    soft_argmax_heatmaps,
    results=("at", "sure"),
    values={"sharp": 10.0},
    slack=1e-3,
)
twentyfirst(
    "crps_ensemble",
    {"m": 50, "n": 500009},
    {"m": 7, "n": 203},
    {"x": of("m n"), "truth": of("n")},
    crps_ensemble,
)
twentyfirst(
    "c51_projection",
    {"n": 500009},
    {"n": 203},
    {
        "p": of("n 51", between(0.0, 0.04)),
        "reward": of("n", between(-3.0, 3.0)),
        "ended": of("n", integers(0, 2, torch.uint8)),
    },
    c51_projection,
    values={"fading": 0.99},
)
twentyfirst(
    "relative_shift_scores",
    {"b": 5, "h": 12, "n": 1023},
    {"b": 2, "h": 3, "n": 37},
    {"said": of("b h n n", HALF), "far": of("b h n n", HALF)},
    relative_shift_scores,
    values={"scale": 0.125},
)
for name, flat in (("compress_2_4", True), ("compress_2_4_b", True), ("compress_2_4_c", False)):
    twentyfirst(
        name,
        {"m": 16387, "g": 256},
        {"m": 37, "g": 5},
        {"w": shaped(lambda d: (d["m"], 16 * d["g"]), F16) if flat else of("m g 4 4", F16)},
        compress_2_4,
        results=("value", "place"),
        slack=0.0,
    )


# Statistics, sampling.


def lomb_scargle_of(t, x, w, way):
    """From sums over the samples of each star, for each frequency, whose axis comes first or last."""
    angle = t[..., None] * w if way else w[:, None, None] * t
    x, samples = (x[..., None], 1) if way else (x, 1)
    c, s = angle.cos(), angle.sin()
    xc, xs, cc, ss, cs = (z.sum(samples) for z in (x * c, x * s, c * c, s * s, c * s))
    shift = 0.5 * torch.atan2(2 * cs, cc - ss)
    p, q = shift.cos(), shift.sin()
    a, b = p * xc + q * xs, p * xs - q * xc
    even = p * p * cc + 2 * p * q * cs + q * q * ss
    odd = p * p * ss - 2 * p * q * cs + q * q * cc
    return 0.5 * (a * a / (even + 1e-6) + b * b / (odd + 1e-6))


def lomb_scargle(d, t, x, w):
    return lomb_scargle_of(t, x, w, True)


def lomb_scargle_c(d, t, x, w):
    return lomb_scargle_of(t, x, w, False)


def variogram(d, at, z):
    bin = (45 * torch.hypot(*(at[:, None] - at).unbind(2))).long()
    later = torch.ones_like(bin, dtype=torch.bool).tril(-1)
    bin = torch.where(later & (bin < 64), bin, 64).flatten()
    total = torch.zeros(65, device=z.device).scatter_add_(0, bin, (z[:, None] - z).square().flatten())
    one = torch.ones((), dtype=INT, device=z.device)
    many = torch.zeros(65, dtype=INT, device=z.device).scatter_add_(0, bin, one.expand(bin.shape))
    return 0.5 * total[:64] / many[:64].clamp(min=1), many[:64].view(torch.uint32)


def systematic_resample(d, weight, draw):
    n = d["n"]
    until = weight.cumsum(1)
    mark = (torch.arange(n, device=weight.device) + draw[:, None]) / n * until[:, -1:]
    return torch.searchsorted(until, mark, right=True, out_int32=True).clamp(max=n - 1)


def hmc_logistic(d, at, speed, x, label, step=0.01):
    for _ in range(3):
        speed.sub_(0.5 * step * (at + ((at @ x.T).sigmoid() - label) @ x))
        at.add_(speed, alpha=step)
        speed.sub_(0.5 * step * (at + ((at @ x.T).sigmoid() - label) @ x))
    return at, speed


for name, axes, peer in (
    ("lomb_scargle", "s n", lomb_scargle),
    ("lomb_scargle_b", "s n", lomb_scargle),
    ("lomb_scargle_c", "n s", lomb_scargle_c),
):
    twentyfirst(
        name,
        {"s": 499, "n": 300, "k": 2003},
        {"s": 7, "n": 41, "k": 29},
        {"t": of(axes, between(0.0, 10.0)), "x": of(axes), "w": of("k", between(0.5, 20.0))},
        peer,
        slack=1e-3,
    )
twentyfirst(
    "variogram",
    {"n": 20011},
    {"n": 203},
    {"at": of("n 2", between(0.0, 1.0)), "z": of("n")},
    variogram,
    results=("y", "many"),
    slack=1.01,
)
twentyfirst(
    "systematic_resample",
    {"b": 1009, "n": 20000},
    {"b": 5, "n": 203},
    {"weight": of("b n", between(0.01, 1.0)), "draw": of("b", between(0.0, 1.0))},
    systematic_resample,
    results=("parent",),
    slack=1.01,
)
twentyfirst(
    "hmc_logistic",
    {"c": 1024, "d": 64, "m": 20011},
    {"c": 7, "d": 11, "m": 53},
    {
        "at": of("c d"),
        "speed": of("c d"),
        "x": of("m d", between(-0.2, 0.2)),
        "label": of("m", lambda shape, dims, device: torch.randint(0, 2, shape, device=device).float()),
    },
    hmc_logistic,
    results=("at", "speed"),
    values={"step": 0.01},
    slack=1e-2,
)


# Text and tables.


def adler32_rows(d, x):
    k = x.shape[1]
    far = torch.arange(k, 0, -1, dtype=INT, device=x.device)
    a = (1 + x.sum(1, dtype=INT)) % 65521
    b = (k + (far * x).sum(1, dtype=INT)) % 65521
    return (b.long() << 16 | a).to(torch.uint32)


def adler32_rows_c(d, x):
    return adler32_rows(d, x.view(torch.uint8))


MARKS = (44, 58, 91, 93, 123, 125)


def json_structure(d, x):
    place = torch.arange(x.shape[1], device=x.device)
    slash = x == 92
    last = torch.where(slash, -1, place).cummax(1).values
    # How many backslashes end right before each byte: after an odd number it stands for itself.
    run = F.pad((place - last)[:, :-1], (1, 0))
    free = run % 2 == 0
    inside = ((x == 34) & free).cumsum(1, dtype=INT) % 2 == 1
    mark = functools.reduce(torch.logical_or, [x == v for v in MARKS]) & free & ~inside
    mark = mark.view(d["n"], d["k"], 64)
    bits = (mark.long() << torch.arange(64, device=x.device)).sum(2)
    return bits.view(torch.uint64)


def ones_in(v):
    """How many bits of each of these words of 64 are set."""
    v = v - (v >> 1 & 0x5555555555555555)
    v = (v & 0x3333333333333333) + (v >> 2 & 0x3333333333333333)
    v = v + (v >> 4) & 0x0F0F0F0F0F0F0F0F
    return (v * 0x0101010101010101) >> 56 & 127


def fm_index_search(d, plane, before, first, read):
    plane, read, before = plane.view(LONG), read.long() & 3, before.flatten()

    def rank(letter, i):
        block = i >> 6
        low, high = plane[block].unbind(1)
        same = (low ^ (letter & 1) - 1) & (high ^ (letter >> 1) - 1)
        ahead = (torch.ones_like(i) << (i & 63)) - 1
        return before[4 * block + letter] + ones_in(same & ahead)

    start = torch.zeros(d["n"], dtype=LONG, device=read.device)
    end = start + 64 * d["m"]
    for s in range(19, -1, -1):
        letter = read[:, s]
        go = start < end
        base = first[letter]
        start, end = torch.where(go, base + rank(letter, start), start), torch.where(go, base + rank(letter, end), end)
    return start.to(INT), end.to(INT)


def bases(shape, dims, device):
    """The transformed letters of a genome, a bit of each in a plane of its own."""
    generator = torch.Generator(device).manual_seed(3)
    plane = torch.randint(-(1 << 63), (1 << 63) - 1, shape, device=device, dtype=LONG, generator=generator)
    return plane.view(torch.uint64)


def letters_in_blocks(plane):
    low, high = plane.view(LONG)[:-1].unbind(1)
    return torch.stack([ones_in((low if k & 1 else ~low) & (high if k & 2 else ~high)) for k in range(4)], 1)


def letters_before(shape, dims, device):
    many = letters_in_blocks(bases((shape[0], 2), dims, device))
    return F.pad(many.cumsum(0), (0, 0, 1, 0)).to(INT)


def letters_first(shape, dims, device):
    many = letters_in_blocks(bases((dims["m"] + 1, 2), dims, device)).sum(0)
    return (many.cumsum(0) - many).to(INT)


for name, x, peer in (
    ("adler32_rows", of("n k", BYTES), adler32_rows),
    ("adler32_rows_b", of("n k", BYTES), adler32_rows),
    ("adler32_rows_c", of("n w", words), adler32_rows_c),
):
    axis, long = ("w", 4) if name.endswith("c") else ("k", 1)
    twentyfirst(name, {"n": 200003, axis: 1500 // long}, {"n": 37, axis: 212 // long}, {"x": x}, peer, slack=0.0)


def records(shape, dims, device):
    """Bytes among which those that matter are not rare."""
    letters = torch.tensor([34, 92, 44, 58, 91, 93, 123, 125, *range(97, 121)], dtype=torch.uint8, device=device)
    return letters[torch.randint(0, 32, shape, device=device)]


twentyfirst(
    "json_structure",
    {"n": 400009, "k": 4},
    {"n": 37, "k": 3},
    {"x": shaped(lambda d: (d["n"], 64 * d["k"]), records)},
    json_structure,
    slack=0.0,
)
twentyfirst(
    "fm_index_search",
    {"n": 1000003, "m": 2000003},
    {"n": 403, "m": 53},
    {
        "plane": of("m+1 2", bases),
        "before": of("m+1 4", letters_before),
        "first": of("4", letters_first),
        "read": of("n 20", integers(0, 4, torch.uint8)),
    },
    fm_index_search,
    results=("low", "high"),
    slack=0.0,
)


# Graphs and sparse matrices.


def colour_round(d, start, to, colour):
    n = d["n"]
    place = torch.arange(to.shape[0], dtype=INT, device=to.device)
    owner = torch.searchsorted(start, place, right=True, out_int32=True) - 1
    # The least free of 64: a table of which of them neighbours have.
    there = colour[to]
    used = torch.zeros(n * 64, dtype=torch.bool, device=to.device)
    used = used.index_fill_(0, torch.where(there >= 0, 64 * owner.long() + there, 64 * owner.long() + 63), True)
    used = used.view(n, 64)
    free = used[:, :63].cumprod(1, dtype=torch.uint8).sum(1, dtype=INT)
    tried = torch.where(colour >= 0, colour, free)
    clash = (to < owner) & (tried[to] == tried[owner])
    clashes = torch.zeros(n, dtype=INT, device=to.device).index_add_(0, owner, clash.to(INT))
    after = torch.where((colour < 0) & (clashes > 0), -1, tried)
    return after, (after < 0).sum().to(INT)


def sirt_step(d, start, column, value, seen, of_row, of_column, x):
    a = torch.sparse_csr_tensor(start, column, value, (d["m"], d["n"]))
    off = of_row * (seen - a @ x)
    owner = torch.repeat_interleave(start[1:] - start[:-1], output_size=d["nnz"])
    back = torch.zeros_like(x).index_add_(0, column, value * off[owner])
    return x.addcmul_(of_column, back).clamp_(min=0)


twentyfirst(
    "colour_round",
    {"n": 2000003, "nnz": 16000000},
    {"n": 103, "nnz": 803},
    {"start": of("n+1", row_starts), "to": of("nnz", (INT, "n")), "colour": of("n", integers(-1, 20, INT))},
    colour_round,
    results=("next", "left"),
    slack=0.0,
)
twentyfirst(
    "sirt_step",
    {"m": 500009, "n": 1000003, "nnz": 20000000},
    {"m": 53, "n": 103, "nnz": 803},
    {
        "start": of("m+1", row_starts),
        "column": of("nnz", (INT, "n")),
        "value": of("nnz", between(0.0, 1.0)),
        "seen": of("m", between(0.0, 20.0)),
        "of_row": of("m", between(0.02, 0.05)),
        "of_column": of("n", between(0.02, 0.05)),
        "x": of("n", between(0.0, 1.0)),
    },
    sirt_step,
    results=("x",),
    slack=1e-3,
)


# Pictures, films, sound.


def satd_8x8(d, a, b):
    v = (a.short() - b).view(d["n"], d["h"], 8, d["w"], 8)
    for axis in (2, 4):
        for far in (4, 2, 1):
            p, q = v.unflatten(axis, (-1, 2, far)).unbind(axis + 1)
            v = torch.stack([p + q, p - q], axis + 1).flatten(axis, axis + 2)
    return v.abs().sum((2, 4), dtype=INT) + 2 >> 2


def ciede2000(d, a, b):
    (l1, a1, b1), (l2, a2, b2) = a.unbind(1), b.unbind(1)
    seven = (0.5 * (torch.hypot(a1, b1) + torch.hypot(a2, b2))) ** 7
    more = 1 + 0.5 * (1 - (seven / (seven + 25.0**7)).sqrt())
    a1, a2 = more * a1, more * a2
    c1, c2 = torch.hypot(a1, b1), torch.hypot(a2, b2)
    h1, h2 = torch.atan2(b1, a1), torch.atan2(b2, a2)
    h1, h2 = torch.where(h1 < 0, h1 + 2 * math.pi, h1), torch.where(h2 < 0, h2 + 2 * math.pi, h2)
    dh = h2 - h1
    dh = torch.where(dh > math.pi, dh - 2 * math.pi, torch.where(dh < -math.pi, dh + 2 * math.pi, dh))
    hue = 2 * (c1 * c2).sqrt() * (0.5 * dh).sin()
    l, c, h = 0.5 * (l1 + l2) - 50, 0.5 * (c1 + c2), h1 + 0.5 * dh
    deg = math.pi / 180
    t = 1 - 0.17 * (h - 30 * deg).cos() + 0.24 * (2 * h).cos()
    t = t + 0.32 * (3 * h + 6 * deg).cos() - 0.2 * (4 * h - 63 * deg).cos()
    light = (l2 - l1) / (1 + 0.015 * l * l / (20 + l * l).sqrt())
    chroma = (c2 - c1) / (1 + 0.045 * c)
    angle = hue / (1 + 0.015 * c * t)
    c7 = c**7
    turn = 60 * deg * (-((h / deg - 275) / 25).square()).exp()
    rt = -2 * (c7 / (c7 + 25.0**7)).sqrt() * turn.sin()
    return (light.square() + chroma.square() + angle.square() + rt * chroma * angle).clamp(min=0).sqrt()


@functools.cache
def tent(device):
    return torch.tensor([0.25, 0.5, 0.25], device=device)


def bilateral_grid(d, x):
    h, w = d["h"], d["w"]
    row, column = (torch.arange(16 * size, device=x.device) for size in (h, w))
    k = (16 * x + 1.5).long().clamp(1, 17)
    place = (((row >> 4) + 1)[:, None] * (w + 2) + (column >> 4) + 1) * 19 + k
    size = (h + 2) * (w + 2) * 19
    both = torch.zeros(2, size, device=x.device)
    both[0].scatter_add_(0, place.flatten(), x.flatten())
    both[1].scatter_add_(0, place.flatten(), torch.ones((), device=x.device).expand(x.numel()))
    soft = both.view(2, 1, h + 2, w + 2, 19)
    filter = tent(x.device)
    soft = F.conv3d(soft, filter.view(1, 1, 3, 1, 1), padding=(1, 0, 0))
    soft = F.conv3d(soft, filter.view(1, 1, 1, 3, 1), padding=(0, 1, 0))
    soft = F.conv3d(soft, filter.view(1, 1, 1, 1, 3), padding=(0, 0, 1)).flatten(1)
    u, v, z = (row + 0.5) / 16 + 0.5, (column + 0.5) / 16 + 0.5, (16 * x + 1).clamp(1, 17)
    a, b, c = u.long()[:, None], v.long(), z.long()
    fu, fv, fz = u[:, None] - a, v - b, z - c
    total = many = 0
    for p in range(2):
        for q in range(2):
            for r in range(2):
                at = ((a + p) * (w + 2) + b + q) * 19 + c + r
                share = (fu if p else 1 - fu) * (fv if q else 1 - fv) * (fz if r else 1 - fz)
                total, many = total + share * soft[0][at], many + share * soft[1][at]
    return total / many.clamp(min=1e-6)


def ddsp_harmonics(d, pitch, strength):
    turns = (pitch / 16000).cumsum(1)
    angle = (turns - turns.floor()).view(d["b"], d["k"], 64, 1)
    low, high = strength[:, :-1, None], strength[:, 1:, None]
    part = torch.arange(64, device=pitch.device)[:, None] / 64
    number = torch.arange(1, 61, device=pitch.device)
    loud = torch.where(number * pitch.view(angle.shape) < 8000, torch.lerp(low, high, part), 0)
    return (loud * (2 * math.pi * number * angle).sin()).sum(3).flatten(1)


def monotonic_alignment(d, score, letters, frames):
    b, t, k = score.shape
    best = torch.full((b, k), -1e9, device=score.device)
    best[:, 0] = score[:, 0, 0]
    moves = [torch.zeros((b, k), dtype=torch.bool, device=score.device)]
    for i in range(1, t):
        moved = F.pad(best[:, :-1], (1, 0), value=-1e9)
        moves.append(moved > best)
        best = score[:, i] + torch.maximum(best, moved)
    moves = torch.stack(moves)
    j, at = letters.long().clamp(1, k) - 1, []
    for i in range(t - 1, -1, -1):
        inside = i < frames
        at.append(torch.where(inside, j, -1))
        j = j - (inside & (j > 0) & moves[i].gather(1, j[:, None])[:, 0]).long()
    return torch.stack(at[::-1], 1).to(INT)


def monotonic_alignment_c(d, score, letters, frames):
    return monotonic_alignment(d, score.transpose(0, 1), letters, frames).T


FILMS, FEW_FILMS = {"n": 60, "h": 135, "w": 240}, {"n": 2, "h": 3, "w": 5}
pixels = shaped(lambda d: (d["n"], 8 * d["h"], 8 * d["w"]), BYTES)
for name in ("satd_8x8", "satd_8x8_b", "satd_8x8_c"):
    twentyfirst(name, FILMS, FEW_FILMS, {"a": pixels, "b": pixels}, satd_8x8, slack=0.0)


def colours(shape, dims, device):
    """Lightness from 0 to 100, and two colours on both sides of grey."""
    low, high = torch.tensor([[0.0, -60.0, -60.0], [100.0, 60.0, 60.0]], device=device)
    return low + (high - low) * torch.rand(shape, device=device)


twentyfirst(
    "ciede2000",
    {"n": 8000009},
    {"n": 403},
    {"a": of("n 3", colours), "b": of("n 3", colours)},
    ciede2000,
    slack=1e-2,
)
twentyfirst(
    "bilateral_grid",
    {"h": 250, "w": 375},
    {"h": 3, "w": 5},
    {"x": shaped(lambda d: (16 * d["h"], 16 * d["w"]), between(0.0, 1.0))},
    bilateral_grid,
)
twentyfirst(
    "ddsp_harmonics",
    {"b": 32, "k": 1001},
    {"b": 3, "k": 5},
    {
        "pitch": shaped(lambda d: (d["b"], 64 * d["k"]), between(80.0, 400.0)),
        "strength": of("b k+1 60", between(0.0, 0.1)),
    },
    ddsp_harmonics,
    slack=2e-2,
)


def up_to(size):
    """How many of an axis's elements count: at least half of them."""

    def lengths(shape, dims, device):
        most = size(dims)
        return torch.randint(most // 2, most + 1, shape, device=device, dtype=INT)

    return lengths


for name, letters, score, peer in (
    ("monotonic_alignment", 151, of("b t k"), monotonic_alignment),
    ("monotonic_alignment_b", 151, of("b t k"), monotonic_alignment),
    ("monotonic_alignment_c", 5, shaped(lambda d: (d["t"], d["b"], 32 * d["k"])), monotonic_alignment_c),
):
    wide = (lambda d: 32 * d["k"]) if name.endswith("c") else (lambda d: d["k"])
    twentyfirst(
        name,
        {"b": 256, "t": 800, "k": letters},
        {"b": 5, "t": 97, "k": 2 if name.endswith("c") else 31},
        {"score": score, "letters": of("b", up_to(wide)), "frames": of("b", up_to(lambda d: d["t"]))},
        peer,
        results=("at",),
        slack=0.0,
    )


# Simulation.


def shaken(old, at):
    """Both as three atoms of three coordinates, each of as many molecules as there are."""
    x = [at[a] for a in range(3)]
    for _ in range(8):
        for a, b, square, la, lb in ((0, 1, 1.0, 0.0625, 1.0), (0, 2, 1.0, 0.0625, 1.0), (1, 2, 2.6667, 1.0, 1.0)):
            now, was = x[a] - x[b], old[a] - old[b]
            along = (now * was).sum(0)
            push = 0.5 * (now.square().sum(0) - square) * along / ((la + lb) * (along * along + 0.01)) * was
            x[a], x[b] = x[a] - la * push, x[b] + lb * push
    return torch.stack(x)


def shake_water(d, old, at):
    old, now = (x.view(-1, 3, 3).permute(1, 2, 0) for x in (old, at))
    return at.copy_(shaken(old, now).permute(2, 0, 1).reshape(at.shape))


def shake_water_c(d, old, at):
    return at.copy_(shaken(old, at))


def neo_hookean_forces(d, at, tet, rest, volume, mu=1.0, lam=4.0):
    tet = tet.long()
    base, *ends = (at[tet[:, k]] for k in range(4))
    ends = torch.stack([end - base for end in ends], 1)
    fx, fy, fz = torch.einsum("eka,ekc->aec", rest, ends).unbind(0)
    yz, zx, xy = (torch.linalg.cross(p, q) for p, q in ((fy, fz), (fz, fx), (fx, fy)))
    less = lam * ((fx * yz).sum(1, keepdim=True) - 1 - mu / lam)
    p = torch.stack([mu * fx + less * yz, mu * fy + less * zx, mu * fz + less * xy], 1)
    on = -volume[:, None, None] * torch.einsum("eka,eac->ekc", rest, p)
    on = torch.cat([-on.sum(1, keepdim=True), on], 1)
    return torch.zeros_like(at).index_add_(0, tet.flatten(), on.flatten(0, 1))


def slopes(x):
    """Half the differences of the neighbours along each of the last three axes, and nothing beyond."""
    p = F.pad(x, (1, 1, 1, 1, 1, 1))
    z = 0.5 * (p[..., 2:, 1:-1, 1:-1] - p[..., :-2, 1:-1, 1:-1])
    y = 0.5 * (p[..., 1:-1, 2:, 1:-1] - p[..., 1:-1, :-2, 1:-1])
    return 0.5 * (p[..., 1:-1, 1:-1, 2:] - p[..., 1:-1, 1:-1, :-2]), y, z


def vorticity_confinement(d, v, much=0.3):
    dx, dy, dz = slopes(v)
    a, b, c = dy[2] - dz[1], dz[0] - dx[2], dx[1] - dy[0]
    gx, gy, gz = (2 * g for g in slopes((a * a + b * b + c * c).sqrt()))
    by = much * (gx * gx + gy * gy + gz * gz + 1e-4).rsqrt()
    return v + by * torch.stack([gy * c - gz * b, gz * a - gx * c, gx * b - gy * a])


def hodgkin_huxley(d, v, m, h, k, current, dt=0.01):
    def gate(open, rise, fall):
        rest = rise / (rise + fall)
        return rest + (open - rest) * (-dt * (rise + fall)).exp()

    u, fired = v, torch.zeros_like(v, dtype=torch.bool)
    m0, h0, k0 = m, h, k
    for _ in range(10):
        m = gate(m, 0.1 * (u + 40) / (1 - (-0.1 * (u + 40)).exp()), 4 * (-(u + 65) / 18).exp())
        h = gate(h, 0.07 * (-0.05 * (u + 65)).exp(), (0.1 * (u + 35)).sigmoid())
        k = gate(k, 0.01 * (u + 55) / (1 - (-0.1 * (u + 55)).exp()), 0.125 * (-(u + 65) / 80).exp())
        flow = 120 * m * m * m * h * (u - 50) + 36 * k * k * k * k * (u + 77) + 0.3 * (u + 54.4)
        after = u + dt * (current - flow)
        fired, u = fired | (u < 0) & (after >= 0), after
    return fired.to(torch.uint8), v.copy_(u), m0.copy_(m), h0.copy_(h), k0.copy_(k)


ATOMS = Record(*(f"{atom}.{axis}" for atom in ("o", "h1", "h2") for axis in "xyz"))
POINTS = Record("x", "y", "z", low=-2.0, high=2.0)


def waters(kind):
    """Molecules near their shape, as arrays, planes or structs."""

    def make(shape, dims, device):
        n = dims["n"]
        rest = torch.tensor([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [-0.3333, 0.9428, 0.0]], device=device)
        x = rest + 0.03 * torch.randn((n, 3, 3), device=device)
        return x.permute(1, 2, 0).contiguous() if kind == "planes" else x.reshape(n, 9) if kind == "structs" else x

    return make


class Waters:
    """The same as structs of three places."""

    place = [(axis, "f4") for axis in "xyz"]
    fields = [("o", place), ("h1", place), ("h2", place)]

    def __call__(self, shape, dims, device):
        return waters("structs")(shape, dims, device)


for name, axes, kind, peer in (
    ("shake_water", "n 3 3", waters("arrays"), shake_water),
    ("shake_water_b", "n", Waters(), shake_water),
    ("shake_water_c", "3 3 n", waters("planes"), shake_water_c),
):
    twentyfirst(
        name,
        {"n": 2000003},
        {"n": 203},
        {"old": of(axes, kind), "at": of(axes, kind)},
        peer,
        results=("at",),
        slack=1e-3,
    )
twentyfirst(
    "neo_hookean_forces",
    {"v": 600011, "e": 3000017},
    {"v": 103, "e": 403},
    {
        "at": of("v", POINTS),
        "tet": of("e 4", (INT, "v")),
        "rest": of("e 3 3"),
        "volume": of("e", between(0.0, 0.1)),
    },
    neo_hookean_forces,
    results=("force",),
    values={"mu": 1.0, "lambda": 4.0},
    slack=1e-1,
)
twentyfirst(
    "vorticity_confinement",
    {"d": 251, "h": 256, "w": 260},
    {"d": 7, "h": 9, "w": 11},
    {"v": of("3 d h w")},
    vorticity_confinement,
    results=("next",),
    values={"much": 0.3},
    slack=1e-3,
)
twentyfirst(
    "hodgkin_huxley",
    {"n": 8000009},
    {"n": 403},
    {
        "v": of("n", between(-75.0, 20.0)),
        "m": of("n", between(0.0, 1.0)),
        "h": of("n", between(0.0, 1.0)),
        "k": of("n", between(0.0, 1.0)),
        "current": of("n", between(0.0, 10.0)),
    },
    hodgkin_huxley,
    results=("fires", "v", "m", "h", "k"),
    values={"dt": 0.01},
    slack=5e-3,
)


# Finance.


def merton_jump_calls(d, spot, strike, years, vol, rate=0.03, often=0.8, wide=0.2):
    mean, square, price = often * years, wide * wide, 0
    chance, money, later = (-mean).exp(), (spot / strike).log(), strike * (-rate * years).exp()
    for k in range(16):
        spread = (vol * vol * years + k * square).sqrt()
        drift = rate * years - mean * math.expm1(0.5 * square) + 0.5 * k * square
        far = (money + drift) / spread + 0.5 * spread
        price = price + chance * (
            spot * (drift - rate * years).exp() * torch.special.ndtr(far) - later * torch.special.ndtr(far - spread)
        )
        chance = chance * mean / (k + 1)
    return price


def trailing_stops(d, price, stop):
    inside = torch.ones((d["n"], d["k"]), dtype=torch.bool, device=price.device)
    mark = price[0][:, None].expand(inside.shape)  # the best while inside, the worst while outside
    wealth, many = torch.ones_like(mark), torch.zeros_like(mark, dtype=INT)
    for i in range(1, d["t"]):
        now = price[i][:, None]
        wealth = torch.where(inside, wealth * (now / price[i - 1][:, None]), wealth)
        mark = torch.where(inside, torch.maximum(mark, now), torch.minimum(mark, now))
        turns = torch.where(inside, now < mark * (1 - stop), now > mark * (1 + stop))
        inside, many = inside ^ turns, many + turns
        mark = torch.where(turns, now, mark)
    return wealth - 1, many.to(torch.uint16)


def walks(shape, dims, device):
    """Prices that go up or down by some hundredths a day."""
    return 100 * (0.02 * torch.randn(shape, device=device)).cumsum(0).exp()


twentyfirst(
    "merton_jump_calls",
    {"n": 5000011},
    {"n": 403},
    {
        "spot": of("n", between(80.0, 120.0)),
        "strike": of("n", between(80.0, 120.0)),
        "years": of("n", between(0.1, 2.0)),
        "vol": of("n", between(0.1, 0.4)),
    },
    merton_jump_calls,
    values={"rate": 0.03, "often": 0.8, "wide": 0.2},
    slack=5e-3,
)
twentyfirst(
    "trailing_stops",
    {"t": 252, "n": 100003, "k": 8},
    {"t": 53, "n": 37, "k": 5},
    {"price": of("t n", walks), "stop": of("k", between(0.02, 0.2))},
    trailing_stops,
    results=("gain", "trades"),
    slack=1e-3,
)


# Geometry.


def kabsch_rmsd(d, x, shape):
    k = d["k"]
    shape, x = shape - shape.mean(0), x - x.mean(1, keepdim=True)
    size = x.square().sum((1, 2)) + shape.square().sum()
    s = torch.einsum("nka,kb->nab", x, shape) / size[:, None, None]
    squares = s.square().sum((1, 2))
    det = (s[:, 0] * torch.linalg.cross(s[:, 1], s[:, 2])).sum(1)
    c0 = 2 * (s @ s.mT).square().sum((1, 2)) - squares * squares
    root = torch.full_like(size, 0.5)
    for _ in range(20):
        square = root * root
        value = square * square - 2 * squares * square - 8 * det * root + c0
        root = root - value / (4 * root * square - 4 * squares * root - 8 * det).clamp(min=1e-6)
    return ((size * (1 - 2 * root)).clamp(min=0) / k).sqrt()


def mesh_distance(d, point, face):
    corners = face.view(-1, 3, 3)
    p = point[:, None]

    def dot(a, b):
        return a[..., 0] * b[..., 0] + a[..., 1] * b[..., 1] + a[..., 2] * b[..., 2]

    normal = torch.linalg.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    inside, edges = True, math.inf
    for k in range(3):
        a, b = corners[:, k], corners[:, (k + 1) % 3]
        along, off = b - a, p - a
        inside = (dot(torch.linalg.cross(normal, along), off) > 0) & inside
        t = (dot(off, along) / dot(along, along)).clamp(0, 1)
        edge = off - t[..., None] * along
        edges = dot(edge, edge).clamp(max=edges)
    height = dot(normal, p - corners[:, 0])
    far, which = torch.where(inside, height * height / dot(normal, normal), edges).min(1)
    return far.sqrt(), which.to(INT)


class Triangles:
    """Corners of small triangles anywhere in a box."""

    place = [(axis, "f4") for axis in "xyz"]
    fields = [("a", place), ("b", place), ("c", place)]

    def __call__(self, shape, dims, device):
        middle = 4 * torch.rand((*shape, 1, 3), device=device) - 2
        return (middle + 0.3 * torch.randn((*shape, 3, 3), device=device)).flatten(-2)


twentyfirst(
    "kabsch_rmsd",
    {"n": 20011, "k": 700},
    {"n": 37, "k": 53},
    {"x": of("n k 3"), "shape": of("k 3")},
    kabsch_rmsd,
    slack=1e-3,
)
twentyfirst(
    "mesh_distance",
    {"n": 20011, "m": 3001},
    {"n": 203, "m": 37},
    {"point": of("n", POINTS), "face": of("m", Triangles())},
    mesh_distance,
    results=("y", "which"),
)
