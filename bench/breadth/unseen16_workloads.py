"""Workloads of `breadth.py`, a sixteenth set: losses, sampling, formats, video, signals, tables, grids, bytes."""

import math

import torch
import torch.nn.functional as F
from unseen3_workloads import F16, INT, between, integers, shaped
from unseen4_workloads import narrow
from unseen5_workloads import BYTES
from unseen13_workloads import whole_ramp
from unseen15_workloads import WORKLOADS  # noqa: F401
from unseen_workloads import HALF, add, of


def sixteenth(name, dims, small, arrays, peer, **more):
    add("unseen_16.krn", name, dims, small, arrays, peer, **more)


DOUBLE = torch.float64


# Losses, norms, optimisers and gradients.


def token_entropy(d, x, label):
    logp = torch.log_softmax(x, 1, dtype=torch.float32)
    return logp.gather(1, label.long()[:, None])[:, 0], -(logp.exp() * logp).sum(1)


def group_norm_last(d, x, gain, shift):
    y = F.group_norm(x.flatten(2).mT, d["g"], gain.flatten().to(F16), shift.flatten().to(F16), 1e-5)
    return y.mT.contiguous()


def group_norm_last_images(d, x, gain, shift):
    y = F.group_norm(x.movedim(-1, 1), 32, gain.to(F16), shift.to(F16), 1e-5)
    return y.movedim(1, -1).contiguous()


def prelu_backward(d, x, dy, slope):
    wide = slope.view(1, -1, *[1] * (x.dim() - 2))
    dx, dslope = torch.ops.aten._prelu_kernel_backward(dy, x, wide)
    return dx, dslope.sum([0, *range(2, x.dim())])


def schedule_free_step(d, y, z, v, g):
    lr, share, correction = 0.001, 0.05, 0.9
    g = g.float()
    v.mul_(0.999).addcmul_(g, g, value=0.001)
    move = g / ((v / correction).sqrt_() + 1e-8) + 0.01 * y
    y.lerp_(z, share).sub_(move, alpha=lr * (1 - 0.9 * (1 - share)))
    z.sub_(move, alpha=lr)
    return y.to(HALF), y, z, v


TOKENS, FEW_TOKENS = {"n": 6000, "v": 50257}, {"n": 37, "v": 203}
for name in ("token_entropy", "token_entropy_b", "token_entropy_c"):
    sixteenth(
        name,
        TOKENS,
        FEW_TOKENS,
        {"x": of("n v", HALF), "label": of("n", (INT, "v"))},
        token_entropy,
        results=("logp", "entropy"),
        slack=1e-3,
    )
for name in ("group_norm_last", "group_norm_last_c"):
    sixteenth(
        name,
        {"b": 64, "p": 3360, "g": 32, "c": 10},
        {"b": 2, "p": 99, "g": 5, "c": 3},
        {"x": of("b p g c", F16), "gain": of("g c"), "shift": of("g c")},
        group_norm_last,
        slack=2e-2,
    )
sixteenth(
    "group_norm_last_b",
    {"b": 64, "h": 56, "w": 60, "c": 10},
    {"b": 2, "h": 9, "w": 11, "c": 3},
    {
        "x": shaped(lambda d: (d["b"], d["h"], d["w"], 32 * d["c"]), F16),
        "gain": shaped(lambda d: (32 * d["c"],)),
        "shift": shaped(lambda d: (32 * d["c"],)),
    },
    group_norm_last_images,
    slack=2e-2,
)
for name, dims, small, x in (
    ("prelu_backward", {"b": 64, "c": 200, "p": 3136}, {"b": 3, "c": 7, "p": 203}, "b c p"),
    ("prelu_backward_b", {"b": 64, "c": 200, "p": 3136}, {"b": 3, "c": 7, "p": 203}, "b c p"),
    ("prelu_backward_c", {"b": 64, "c": 200, "h": 56, "w": 56}, {"b": 3, "c": 7, "h": 9, "w": 11}, "b c h w"),
):
    sixteenth(
        name,
        dims,
        small,
        {"x": of(x), "dy": of(x), "slope": of("c")},
        prelu_backward,
        results=("dx", "dslope"),
        slack=1e-3,
    )
sixteenth(
    "schedule_free_step",
    {"n": 30000001},
    {"n": 1003},
    {"y": of("n"), "z": of("n"), "v": of("n", "positive"), "g": of("n", HALF)},
    schedule_free_step,
    results=("p", "y", "z", "v"),
    values={"lr": 0.001, "share": 0.05, "correction": 0.9},
)


# Inference: positions, sampling, formats.


def sectioned(position, table):
    text, height, width = F.embedding(position, table).unbind(0)
    return torch.cat([text[..., :16], height[..., 16:40], width[..., 40:]], -1)[:, :, None]


def sectioned_rotary(d, x, position, cosine, sine):
    co, si = sectioned(position, cosine), sectioned(position, sine)
    a, b = x.flatten(3).chunk(2, -1)
    return torch.cat([a * co - b * si, b * co + a * si], -1).to(HALF)


def min_p_probabilities(d, x):
    level = (x - x.amax(1, keepdim=True)) * 1.5
    keeps = level >= -3.0
    return level.masked_fill(~keeps, -math.inf).softmax(1), keeps.sum(1, dtype=INT)


def dequantize_five_bits(d, low, high, scale):
    shift = torch.arange(32, dtype=INT, device=low.device)
    code = torch.cat([low & 15, low >> 4], 1) | ((high[:, None] >> shift & 1) << 4).to(torch.uint8)
    return ((code.float() - 16) * scale[:, None]).to(HALF)


def gather_quantize_rows(d, x, at):
    rows = x.index_select(0, at).float()
    unit = rows.abs().amax(1).clamp(min=1e-5) / 127
    return (rows / unit[:, None] + 0.5).floor().to(torch.int8), unit


for name, x in (
    ("sectioned_rotary", "b t h 128"),
    ("sectioned_rotary_b", "b t h 128"),
    ("sectioned_rotary_c", "b t h 2 64"),
):
    sixteenth(
        name,
        {"b": 8, "t": 3000, "h": 28, "l": 4096},
        {"b": 2, "t": 17, "h": 3, "l": 53},
        {
            "x": of(x, HALF),
            "position": of("3 b t", (INT, "l")),
            "cosine": of("l 64", between(-1.0, 1.0)),
            "sine": of("l 64", between(-1.0, 1.0)),
        },
        sectioned_rotary,
        slack=2e-2,
    )
for name in ("min_p_probabilities", "min_p_probabilities_b", "min_p_probabilities_c"):
    sixteenth(
        name,
        {"b": 300, "v": 128256},
        {"b": 17, "v": 203},
        {"x": of("b v")},
        min_p_probabilities,
        results=("y", "kept"),
        values={"heat": 1.5, "floor": -3.0},
    )
sixteenth(
    "dequantize_five_bits",
    {"n": 2000003},
    {"n": 103},
    {"low": of("n 16", BYTES), "high": of("n", integers(-(1 << 31), 1 << 31, INT)), "d": of("n", F16)},
    dequantize_five_bits,
    slack=1e-2,
)
sixteenth(
    "gather_quantize_rows",
    {"n": 30000, "d": 2880, "m": 60000},
    {"n": 53, "d": 72, "m": 103},
    {"x": of("n d", F16), "at": of("m", (INT, "n"))},
    gather_quantize_rows,
    results=("q", "scale"),
    slack=1e-5,
)


# Images and video.


def raw10_unpack(d, x):
    x = x.view(-1, d["g"], 5)
    shift = torch.arange(0, 8, 2, dtype=torch.uint8, device=x.device)
    return x[..., :4].short() << 2 | (x[..., 4:] >> shift & 3)


def frame_psnr(d, a, b):
    error = (a.short() - b.short()).flatten(1).float().square_().mean(1)
    return 10 * (65025 / error.clamp(min=1e-10)).log10()


def deinterlace_edges(d, x):
    def before(v):
        return torch.cat([v[..., :1], v[..., :-1]], -1)

    def behind(v):
        return torch.cat([v[..., 1:], v[..., -1:]], -1)

    h = d["h"]
    above = x[:, : h // 2 * 2 : 2].short()
    below = torch.cat([above[:, 1:], x[:, -1:].short() if h % 2 else above[:, -1:]], 1)
    c, e, f, g = before(above), behind(below), behind(above), before(below)
    straight, down, up = (above - below).abs(), (c - e).abs(), (f - g).abs()
    slanted = torch.where(down <= up, c + e, f + g)
    total = torch.where((straight <= down) & (straight <= up), above + below, slanted)
    y = x.clone()
    y[:, 1::2] = ((total + 1) >> 1).to(torch.uint8)
    return y


def temporal_median(d, x):
    p, t = torch.cat([x[:1], x[:1], x, x[-1:], x[-1:]]), d["t"]
    a, b, e, f = p[:t], p[1 : t + 1], p[3 : t + 3], p[4 : t + 4]
    low = torch.maximum(torch.minimum(a, b), torch.minimum(e, f))
    high = torch.minimum(torch.maximum(a, b), torch.maximum(e, f))
    return torch.maximum(torch.minimum(low, high), torch.minimum(torch.maximum(low, high), x))


sixteenth("raw10_unpack", {"h": 6000, "g": 2000}, {"h": 17, "g": 13}, {"x": of("h g 5", BYTES)}, raw10_unpack)
sixteenth(
    "raw10_unpack_b",
    {"g": 12000000},
    {"g": 203},
    {"x": shaped(lambda d: (5 * d["g"],), BYTES)},
    raw10_unpack,
)
sixteenth(
    "raw10_unpack_c",
    {"h": 6000, "g": 2000},
    {"h": 17, "g": 13},
    {"x": shaped(lambda d: (d["h"], 5 * d["g"]), BYTES)},
    raw10_unpack,
)
for name, dims, small, x in (
    ("frame_psnr", {"n": 40, "h": 1080, "w": 1920}, {"n": 3, "h": 17, "w": 21}, "n h w 3"),
    ("frame_psnr_b", {"n": 40, "h": 1080, "w": 1920}, {"n": 3, "h": 17, "w": 21}, "n h w 3"),
    ("frame_psnr_c", {"n": 40, "m": 6220800}, {"n": 3, "m": 1071}, "n m"),
):
    sixteenth(name, dims, small, {"a": of(x, BYTES), "b": of(x, BYTES)}, frame_psnr, slack=1e-3)
sixteenth(
    "deinterlace_edges",
    {"n": 60, "h": 1080, "w": 1920},
    {"n": 2, "h": 37, "w": 53},
    {"x": of("n h w", BYTES)},
    deinterlace_edges,
)
sixteenth(
    "temporal_median",
    {"t": 50, "h": 1080, "w": 1920},
    {"t": 7, "h": 17, "w": 21},
    {"x": of("t h w", BYTES)},
    temporal_median,
)


# Signals.


def polyphase_filter_bank(d, x, tap):
    y = x[:, : d["f"]] * tap[0, :, None]
    for p in range(1, 8):
        y.addcmul_(x[:, p : p + d["f"]], tap[p, :, None])
    return y


def pcm24_to_planes(d, x):
    low, middle, high = x.int().unbind(-1)
    bits = low << 8 | middle << 16 | high << 24
    return torch.mul((bits >> 8).T, 1 / 8388608, out=torch.empty(d["c"], d["n"], device=x.device))


def spectral_flatness(d, power):
    return power.clamp(min=1e-10).log_().mean(1).exp() / power.mean(1).clamp(min=1e-10)


sixteenth(
    "polyphase_filter_bank",
    {"b": 16, "f": 2000, "c": 600},
    {"b": 2, "f": 17, "c": 21},
    {"x": of("b f+7 c 2"), "tap": of("8 c")},
    polyphase_filter_bank,
)
sixteenth(
    "pcm24_to_planes",
    {"n": 10000000, "c": 6},
    {"n": 203, "c": 6},
    {"x": of("n c 3", BYTES)},
    pcm24_to_planes,
)
sixteenth(
    "spectral_flatness",
    {"n": 200001, "k": 257},
    {"n": 53, "k": 37},
    {"power": of("n k", between(0.01, 1.0))},
    spectral_flatness,
)


# Statistics.


def with_gaps(shape, dims, device):
    """Numbers of which a tenth is not known."""
    return torch.randn(shape, device=device).masked_fill_(torch.rand(shape, device=device) < 0.1, math.nan)


def known_moments(d, x):
    size, mean = (~x.isnan()).sum(0), x.nanmean(0)
    squares = (x - mean).square_().nansum(0)
    return mean, (squares / (size - 1).clamp(min=1)).sqrt(), size.to(INT)


def row_ranks(d, x):
    ordered = x.sort(1)[0]
    below = torch.searchsorted(ordered, x, out_int32=True)
    return 0.5 * (below + torch.searchsorted(ordered, x, out_int32=True, right=True) + 1)


def weighted_fit_seven(d, x, weight, target):
    weighed = x * weight[:, None]
    return weighed.T @ x, weighed.T @ target


for name in ("known_moments", "known_moments_b", "known_moments_c"):
    sixteenth(
        name,
        {"n": 1500000, "c": 30},
        {"n": 403, "c": 7},
        {"x": of("n c", with_gaps)},
        known_moments,
        results=("mean", "deviation", "known"),
        slack=1e-3,
    )
sixteenth("row_ranks", {"n": 200001, "k": 100}, {"n": 53, "k": 37}, {"x": of("n k")}, row_ranks)
sixteenth(
    "weighted_fit_seven",
    {"n": 3000000},
    {"n": 403},
    {"x": of("n 7", DOUBLE), "weight": of("n", narrow(between(0.1, 1.0), DOUBLE)), "target": of("n", DOUBLE)},
    weighted_fit_seven,
    results=("a", "b"),
    slack=1e-6,
)


# Tables of a database.


def group_by_summary(d, key, v):
    g, first = 1000, v[:, 0].contiguous()
    rows = torch.zeros(g, dtype=INT, device=v.device).index_add_(0, key, torch.ones_like(key))
    total = torch.zeros(g, 3, device=v.device).index_add_(0, key, v)
    ends = torch.full((2, g), math.inf, device=v.device)
    least = ends[0].index_reduce_(0, key, first, "amin")
    return rows, total, least, (-ends[1]).index_reduce_(0, key, first, "amax")


def star_join_sum(d, customer, part, quantity, cents, region, category):
    # Each group has 512 places, so that few rows meet on one at a time.
    group = region.index_select(0, customer).int() * 7 + category.index_select(0, part)
    small = quantity < 25
    place = group * 512 + torch.arange(d["n"], dtype=INT, device=cents.device) % 512
    revenue = torch.zeros(35 * 512, dtype=torch.int64, device=cents.device)
    revenue.index_add_(0, place, torch.where(small, cents, 0).long())
    orders = torch.zeros(35 * 512, dtype=INT, device=cents.device).index_add_(0, place, small.int())
    return revenue.view(5, 7, 512).sum(2), orders.view(5, 7, 512).sum(2, dtype=INT)


def filter_bitmap(d, price, day, kind):
    passes = (price >= 20) & (price < 60) & (day > 1000) & (kind != 3)
    shift = torch.arange(32, dtype=INT, device=price.device)
    return (passes.int() << shift).sum(1, dtype=INT), passes.sum()


sixteenth(
    "group_by_summary",
    {"n": 8000000},
    {"n": 4003},
    {"key": of("n", integers(0, 1000, INT)), "v": of("n 3")},
    group_by_summary,
    results=("rows", "total", "least", "most"),
    values={"g": 1000},
    slack=1e-2,
)
sixteenth(
    "star_join_sum",
    {"n": 20000000, "c": 300000, "p": 200000},
    {"n": 4003, "c": 53, "p": 37},
    {
        "customer": of("n", (INT, "c")),
        "part": of("n", (INT, "p")),
        "quantity": of("n", integers(1, 51, torch.uint8)),
        "cents": of("n", integers(100, 1000000, INT)),
        "region": of("c", integers(0, 5, torch.uint8)),
        "category": of("p", integers(0, 7, torch.uint8)),
    },
    star_join_sum,
    results=("revenue", "orders"),
)
sixteenth(
    "filter_bitmap",
    {"w": 1500000},
    {"w": 53},
    {
        "price": of("w 32", between(0.0, 100.0)),
        "day": of("w 32", integers(0, 3000, torch.int16)),
        "kind": of("w 32", integers(0, 8, torch.uint8)),
    },
    filter_bitmap,
    results=("bits", "passed"),
)


# Simulation.


def semi_lagrangian_3d(d, q, u, v, s):
    sizes = q.shape
    axes = [torch.arange(size, dtype=torch.float32, device=q.device) for size in sizes]
    z = (axes[0][:, None, None] - 0.7 * s) * (2 / (sizes[0] - 1)) - 1
    r = (axes[1][:, None] - 0.7 * v) * (2 / (sizes[1] - 1)) - 1
    c = (axes[2] - 0.7 * u) * (2 / (sizes[2] - 1)) - 1
    grid = torch.stack([c, r, z], -1)
    return F.grid_sample(q[None, None], grid[None], padding_mode="border", align_corners=True)[0, 0]


def potts_half_sweep(d, spin, propose, coin):
    p = F.pad(spin, (1, 1, 1, 1), value=255)
    near = (p[:-2, 1:-1], p[2:, 1:-1], p[1:-1, :-2], p[1:-1, 2:])
    gain = torch.zeros(spin.shape, dtype=torch.int8, device=spin.device)
    for other in near:
        gain += (other == propose).to(torch.int8) - (other == spin).to(torch.int8)
    i, j = (torch.arange(size, device=spin.device) for size in spin.shape)
    takes = ((i[:, None] + j) % 2 == 1) & (coin < torch.exp(0.9 * gain.float()))
    return spin.copy_(torch.where(takes, propose, spin))


def prolong_add_3d(d, coarse, fine):
    return fine.add_(F.interpolate(coarse[None, None], scale_factor=2, mode="trilinear")[0, 0])


sixteenth(
    "semi_lagrangian_3d",
    {"d": 200, "h": 220, "w": 230},
    {"d": 9, "h": 11, "w": 13},
    {"q": of("d h w"), "u": of("d h w"), "v": of("d h w"), "s": of("d h w")},
    semi_lagrangian_3d,
    values={"dt": 0.7},
    slack=1e-3,
)
sixteenth(
    "potts_half_sweep",
    {"h": 6000, "w": 8000},
    {"h": 37, "w": 53},
    {
        "spin": of("h w", integers(0, 5, torch.uint8)),
        "propose": of("h w", integers(0, 5, torch.uint8)),
        "coin": of("h w", between(0.0, 1.0)),
    },
    potts_half_sweep,
    results=("spin",),
    values={"color": 1, "beta": 0.9},
)
sixteenth(
    "prolong_add_3d",
    {"d": 140, "h": 150, "w": 170},
    {"d": 7, "h": 9, "w": 11},
    {"coarse": of("d h w"), "fine": shaped(lambda d: (2 * d["d"], 2 * d["h"], 2 * d["w"]))},
    prolong_add_3d,
    results=("fine",),
)


# Geometry.


def points_in_polygon(d, p, corner):
    x, y = p.unbind(1)
    inside = torch.zeros(x.shape, dtype=torch.bool, device=x.device)
    for a, b in zip(corner, corner.roll(-1, 0)):
        edge = (b[0] - a[0]) * (y - a[1]) / (b[1] - a[1]) + a[0]
        inside = inside ^ (((a[1] > y) != (b[1] > y)) & (x < edge))
    return inside.to(torch.uint8)


sixteenth(
    "points_in_polygon",
    {"n": 4000001, "m": 100},
    {"n": 403, "m": 17},
    {"p": of("n 2"), "corner": of("m 2")},
    points_in_polygon,
    results=("inside",),
)
sixteenth(
    "transform_clouds",
    {"b": 400, "n": 20001},
    {"b": 3, "n": 203},
    {"p": of("b n 3"), "pose": of("b 3 4")},
    lambda d, p, pose: torch.baddbmm(pose[:, None, :, 3], p, pose[:, :, :3].mT),
)


# Graphs and sparse matrices.

DIAGONALS = (-60000, -300, -1, 0, 1, 300, 60000)


def diagonals(shape, dims, device):
    return torch.tensor(DIAGONALS, dtype=INT, device=device)


def diagonals_times_vector(d, data, offset, x):
    n, far = d["n"], DIAGONALS[-1]
    x = F.pad(x, (far, far))
    y = data[0] * x[:n]
    for k in range(1, 7):
        y.addcmul_(data[k], x[far + DIAGONALS[k] :][:n])
    return y


def core_round(d, start, col, alive, k=8):
    near = torch.segment_reduce(alive.index_select(0, col).float(), "sum", offsets=start.long(), unsafe=True)
    stays = (alive != 0) & (near >= k)
    return stays.to(torch.uint8), (alive.ne(0) & ~stays).sum(dtype=INT)


sixteenth(
    "diagonals_times_vector",
    {"n": 5000001},
    {"n": 403},
    {"data": of("7 n", DOUBLE), "offset": of("7", diagonals), "x": of("n", DOUBLE)},
    diagonals_times_vector,
)
sixteenth(
    "core_round",
    {"n": 2000000, "m": 30000000},
    {"n": 53, "m": 803},
    {
        "start": of("n+1", whole_ramp),
        "col": of("m", (INT, "n")),
        "alive": of("n", integers(0, 2, torch.uint8)),
    },
    core_round,
    results=("next", "removed"),
    values={"k": 8},
)


# Genomes, prices, bytes.


def quality_trim(d, quality):
    q = quality.short()
    low = q[:, :-3] + q[:, 1:-2] + q[:, 2:-1] + q[:, 3:] < 212
    return torch.where(low.any(1), low.to(torch.uint8).argmax(1), d["t"]).to(INT)


def bollinger_bands(d, price):
    variance, mean = torch.var_mean(price.unfold(0, 20, 1), -1, correction=0)
    wide = 2 * variance.sqrt()
    return mean, mean + wide, mean - wide


def weight_byte_planes(d, x):
    low, high = x.view(torch.uint8).view(-1, 2).unbind(1)
    low, high = low.contiguous(), high.contiguous()
    return high, low, torch.histc(high.float(), 256, 0, 256).to(INT)


sixteenth(
    "quality_trim",
    {"n": 600000, "t": 151},
    {"n": 203, "t": 37},
    {"quality": of("n t", integers(40, 75, torch.uint8))},
    quality_trim,
    results=("length",),
)
sixteenth(
    "bollinger_bands",
    {"t": 1000, "n": 30000},
    {"t": 37, "n": 53},
    {"price": of("t+19 n", between(0.5, 2.0))},
    bollinger_bands,
    results=("middle", "upper", "lower"),
    slack=1e-3,
)
sixteenth(
    "weight_byte_planes",
    {"n": 80000001},
    {"n": 1003},
    {"x": of("n", HALF)},
    weight_byte_planes,
    results=("high", "low", "seen"),
)
