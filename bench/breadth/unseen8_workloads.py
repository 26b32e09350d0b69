"""Workloads of `breadth.py`, an eighth set: caches, gradients, images, simulations, meshes, formats, systems."""

import torch
import torch.nn.functional as F
from unseen3_workloads import F16, INT, between, shaped, weights
from unseen4_workloads import lengths, narrow, row_starts
from unseen5_workloads import BYTES
from unseen7_workloads import WORKLOADS
from unseen_workloads import HALF, TINY, Record, add, of


def eighth(name, dims, small, arrays, peer, **more):
    add("unseen_8.krn", name, dims, small, arrays, peer, **more)


class Integers:
    """What an array of structs of integers holds: from 0 up to a dimension or a number."""

    def __init__(self, high, *names):
        self.high, self.fields = high, [(name, "i4") for name in names]

    def __call__(self, shape, dims, device):
        high = dims.get(self.high, self.high)
        return torch.randint(0, high, (*shape, len(self.fields)), device=device, dtype=INT)


def doubled(names, kind=torch.float32):
    """Like `of`, where `2h` is twice a dimension, `4h` four times."""

    def shape(dims):
        def extent(name):
            return int(name) if name.isdigit() else dims[name.lstrip("0123456789")] * int(name[:-1] or 1)

        return tuple(extent(name) for name in names.split())

    return shape, kind


def narrow_weights(kind):
    return narrow(weights, kind)


def ones_at(many, at):
    """How often each of `many` places is named."""
    at = at.flatten().long()
    return torch.zeros(many, dtype=INT, device=at.device).index_add_(0, at, torch.ones_like(at, dtype=INT))


# Chains of layers.


def conv_batch_norm_tanh_max_pool(d, x, f, bias, gain, shift):
    t = F.batch_norm(F.conv2d(x, f, bias), None, None, gain, shift, training=True)
    return F.max_pool2d(torch.tanh(t), 2)


def downsample_block(d, x, f1, f2, short, gain, shift):
    gain, shift = gain[..., None, None], shift[..., None, None]
    t = F.relu(gain[0] * F.conv2d(x, f1, stride=2, padding=1) + shift[0])
    long = gain[1] * F.conv2d(t, f2, padding=1) + shift[1]
    return F.relu(long + gain[2] * F.conv2d(x, short[..., None, None], stride=2) + shift[2])


def shuffle_unit(d, x, f1, depth, f2):
    thin = F.relu(F.conv2d(x, f1.flatten(0, 1)[..., None, None], groups=4))
    mixed = thin.unflatten(1, (4, d["e"])).transpose(1, 2).flatten(1, 2)
    seen = F.conv2d(mixed, depth[:, None], padding=1, groups=4 * d["e"])
    return F.relu(x + F.conv2d(seen, f2.flatten(0, 1)[..., None, None], groups=4))


def patch_stem_norm(d, x, f, bias, gain, shift):
    t = F.conv2d(x.permute(0, 3, 1, 2), f.permute(0, 3, 1, 2), bias, stride=4).permute(0, 2, 3, 1)
    return F.layer_norm(t, (d["o"],), gain, shift, 1e-6)


def wavenet_layer(d, x, f, out, skip):
    padded = F.pad(x, (8, 0))
    signal, gate = (F.conv1d(padded, one, dilation=8) for one in f)
    gated = torch.tanh(signal) * torch.sigmoid(gate)
    return x + F.conv1d(gated, out[..., None]), F.conv1d(gated, skip[..., None])


def depthwise_3d_half(d, x, f, bias):
    t = F.conv3d(x.permute(0, 4, 1, 2, 3), f.permute(3, 0, 1, 2)[:, None], bias, padding=1, groups=d["c"])
    return F.silu(t).permute(0, 2, 3, 4, 1)


PIXELS = doubled("b c 2h 2w")
eighth(
    "conv_batch_norm_tanh_max_pool",
    {"b": 32, "c": 30, "o": 64, "h": 62, "w": 70},
    {"b": 2, "c": 3, "o": 5, "h": 7, "w": 12},
    {"x": of("b c h+2 w+2"), "f": of("o c 3 3", weights), "bias": of("o"), "gain": of("o"), "shift": of("o")},
    conv_batch_norm_tanh_max_pool,
    slack=1e-3,
)
eighth(
    "downsample_block",
    {"b": 16, "c": 64, "o": 128, "h": 27, "w": 29},
    {"b": 2, "c": 3, "o": 5, "h": 4, "w": 7},
    {
        "x": PIXELS,
        "f1": of("o c 3 3", weights),
        "f2": of("o o 3 3", weights),
        "short": of("o c", weights),
        "gain": of("3 o", between(0.5, 1.5)),
        "shift": of("3 o"),
    },
    downsample_block,
    slack=1e-3,
)
eighth(
    "shuffle_unit",
    {"b": 64, "a": 60, "e": 15, "h": 27, "w": 29},
    {"b": 2, "a": 5, "e": 3, "h": 4, "w": 7},
    {
        "x": doubled("b 4a h w"),
        "f1": of("4 e a", weights),
        "depth": doubled("4e 3 3", weights),
        "f2": of("4 a e", weights),
    },
    shuffle_unit,
    slack=1e-3,
)
eighth(
    "patch_stem_norm",
    {"b": 64, "h": 55, "w": 57, "o": 96},
    {"b": 2, "h": 3, "w": 5, "o": 13},
    {
        "x": doubled("b 4h 4w 3", F16),
        "f": of("o 4 4 3", narrow_weights(F16)),
        "bias": of("o", F16),
        "gain": of("o", F16),
        "shift": of("o", F16),
    },
    patch_stem_norm,
    slack=2e-2,
)
eighth(
    "wavenet_layer",
    {"b": 16, "c": 64, "k": 128, "t": 16000},
    {"b": 2, "c": 5, "k": 7, "t": 37},
    {
        "x": of("b c t", F16),
        "f": of("2 c c 2", narrow(between(-0.2, 0.2), F16)),
        "out": of("c c", narrow_weights(F16)),
        "skip": of("k c", narrow_weights(F16)),
    },
    wavenet_layer,
    results=("y", "kept"),
    values={"apart": 8},
    slack=1e-2,
)
eighth(
    "conv_transposed_1d",
    {"b": 16, "c": 128, "o": 64, "t": 2001},
    {"b": 2, "c": 3, "o": 5, "t": 37},
    {"x": of("b c t"), "f": of("c o 8", between(-0.1, 0.1)), "bias": of("o")},
    lambda d, x, f, bias: F.conv_transpose1d(F.leaky_relu(x, 0.1), f, bias, stride=4, padding=2),
    slack=1e-3,
)
eighth(
    "depthwise_3d_half",
    {"b": 8, "d": 16, "h": 55, "w": 57, "c": 96},
    {"b": 2, "d": 3, "h": 4, "w": 5, "c": 13},
    {"x": of("b d h w c", F16), "f": of("3 3 3 c", narrow(between(-0.5, 0.5), F16)), "bias": of("c", F16)},
    depthwise_3d_half,
    slack=1e-2,
)

# Inference.


def bert_embedding(d, word, sentence, words, places, sentences, gain, shift):
    e = F.embedding(word, words) + places[: d["t"]] + F.embedding(sentence.int(), sentences)
    return F.layer_norm(e, (d["d"],), gain, shift, 1e-12)


def norm_qkv_rotary(d, x, gain, w, cosine, sine):
    raw = F.linear(F.rms_norm(x, (d["d"],), gain, 1e-6), w.flatten(0, 2))
    q, k, v = raw.view(d["t"], 3, d["heads"], 2 * d["half"]).permute(1, 2, 0, 3)

    def turned(x):
        a, b = x.float().chunk(2, -1)
        return torch.cat([a * cosine - b * sine, b * cosine + a * sine], -1).to(HALF)

    return turned(q), turned(k), v.contiguous()


def latent_decode(d, q, q_turned, cache, turned, length):
    score = 0.1 * (q @ cache.mT + q_turned @ turned.mT).float()
    live = torch.arange(d["s"], device=q.device) < length[:, None]
    return score.masked_fill(~live[:, None], -torch.inf).softmax(-1).to(HALF) @ cache


def paged_decode(d, q, keys, values, table, length):
    keys, values = (pages[table.long()].flatten(1, 2).transpose(1, 2) for pages in (keys, values))
    live = torch.arange(16 * d["most"], device=q.device) < length[:, None]
    return F.scaled_dot_product_attention(q, keys, values, attn_mask=live[:, None, None], scale=0.1)


def routed_linear(d, x, expert, gate, w):
    everywhere = F.linear(x, w.flatten(0, 1)).view(d["t"], d["experts"], d["n"])
    chosen = everywhere.gather(1, expert.long()[..., None].expand(-1, -1, d["n"]))
    return (gate[..., None] * chosen.float()).sum(1).to(HALF)


def gumbel_sample(d, logit, noise, seen):
    t = logit.float()
    z = torch.where(seen > 0, torch.where(t > 0, t / 1.2, t * 1.2), t) / 0.8
    word = (z - torch.log(-torch.log(noise))).argmax(1)
    return word.int(), z.log_softmax(1).gather(1, word[:, None])[:, 0]


def live_tokens(shape, dims, device):
    return torch.randint(1, 16 * dims["most"] + 1, shape, device=device, dtype=INT)


def bits(shape, dims, device):
    return torch.randint(0, 2, shape, device=device, dtype=torch.uint8)


PAGES = of("pages 16 kv d", F16)
eighth(
    "bert_embedding",
    {"b": 64, "t": 511, "most": 512, "d": 768, "v": 30522},
    {"b": 2, "t": 7, "most": 11, "d": 29, "v": 53},
    {
        "word": of("b t", (INT, "v")),
        "sentence": of("b t", bits),
        "words": of("v d", F16),
        "places": of("most d", F16),
        "sentences": of("2 d", F16),
        "gain": of("d", F16),
        "shift": of("d", F16),
    },
    bert_embedding,
    slack=2e-2,
)
eighth(
    "norm_qkv_rotary",
    {"t": 4096, "d": 2048, "heads": 16, "half": 64},
    {"t": 13, "d": 29, "heads": 3, "half": 5},
    {
        "x": of("t d", HALF),
        "gain": of("d", HALF),
        "w": shaped(lambda d: (3, d["heads"], 2 * d["half"], d["d"]), narrow(between(-0.05, 0.05), HALF)),
        "cosine": of("t half"),
        "sine": of("t half"),
    },
    norm_qkv_rotary,
    results=("q", "k", "v"),
    slack=3e-2,
)
eighth(
    "latent_decode",
    {"b": 32, "heads": 16, "s": 3001, "r": 512, "e": 64},
    {"b": 3, "heads": 4, "s": 37, "r": 13, "e": 6},
    {
        "q": of("b heads r", HALF),
        "q_turned": of("b heads e", HALF),
        "cache": of("b s r", HALF),
        "turned": of("b s e", HALF),
        "length": of("b", lengths("s")),
    },
    latent_decode,
    values={"scale": 0.1},
    slack=3e-2,
)
eighth(
    "paged_decode",
    {"b": 32, "kv": 8, "group": 4, "d": 128, "most": 128, "pages": 5000},
    {"b": 3, "kv": 2, "group": 3, "d": 16, "most": 3, "pages": 20},
    {
        "q": of("b kv group d", F16),
        "keys": PAGES,
        "values": PAGES,
        "table": of("b most", (INT, "pages")),
        "length": of("b", live_tokens),
    },
    paged_decode,
    values={"scale": 0.1},
    slack=5e-3,
)
eighth(
    "routed_linear",
    {"t": 64, "d": 1024, "n": 2048, "experts": 16},
    {"t": 7, "d": 24, "n": 29, "experts": 5},
    {
        "x": of("t d", HALF),
        "expert": of("t 2", (INT, "experts")),
        "gate": of("t 2", between(0.0, 1.0)),
        "w": of("experts n d", narrow(between(-0.05, 0.05), HALF)),
    },
    routed_linear,
    slack=2e-2,
)
eighth(
    "gumbel_sample",
    {"b": 128, "v": 128256},
    {"b": 37, "v": 203},
    {"logit": of("b v", HALF), "noise": of("b v", between(0.001, 0.999)), "seen": of("b v", bits)},
    gumbel_sample,
    results=("word", "log_p"),
    values={"temperature": 0.8, "penalty": 1.2},
)

# Gradients and losses.


def conv_2d_input_gradient(d, dy, f, x):
    return torch.where(x > 0, F.conv_transpose2d(dy, f, stride=2, padding=1, output_padding=1), 0.0)


def attention_backward(d, q, k, v, y, dy, lse):
    t = torch.arange(d["t"], device=q.device)
    p = torch.exp(0.125 * (q @ k.mT).float() - lse[..., None]).masked_fill(t > t[:, None], 0.0)
    delta = (y.float() * dy.float()).sum(-1, keepdim=True)
    ds = (0.125 * p * ((dy @ v.mT).float() - delta)).to(HALF)
    return ds @ k, ds.mT @ q, p.to(HALF).mT @ dy


def warp_backward(d, x, flow, dy):
    h, w = d["h"], d["w"]
    px = torch.arange(w, device=x.device) + flow[:, 0]
    py = torch.arange(h, device=x.device)[:, None] + flow[:, 1]
    grid = torch.stack([2 * px / (w - 1) - 1, 2 * py / (h - 1) - 1], -1)
    dx, dgrid = torch.ops.aten.grid_sampler_2d_backward(dy, x, grid, 0, 0, True, [True, True])
    return dx, torch.stack([dgrid[..., 0] * (2 / (w - 1)), dgrid[..., 1] * (2 / (h - 1))], 1)


def giou_loss(d, guess, want, weight):
    def area(box):
        return (box[:, 2:] - box[:, :2]).prod(1)

    low, high = torch.maximum(guess[:, :2], want[:, :2]), torch.minimum(guess[:, 2:], want[:, 2:])
    common = (high - low).clamp(min=0).prod(1)
    union = area(guess) + area(want) - common
    around = (torch.maximum(guess[:, 2:], want[:, 2:]) - torch.minimum(guess[:, :2], want[:, :2])).prod(1)
    each = weight * (1 - common / union + (around - union) / around)
    return each.sum() / weight.sum().clamp(min=1e-6), each


def switch_balance_loss(d, logit):
    gate, choice = logit.float().softmax(1).max(1)
    load = ones_at(d["e"], choice)
    share = logit.float().softmax(1).mean(0)
    return choice.int(), gate, load, d["e"] * (load / d["t"] * share).sum()


def lora_backward(d, x, a, b, dy, dx):
    dh = 0.5 * (dy @ b)
    da, db = dh.T @ x, 0.5 * (dy.T @ (x @ a.T))
    dx.addmm_(dh, a)
    return da.float(), db.float(), dx


def vector_quantize(d, x, code):
    index = (code.square().sum(1) - 2 * (x @ code.T)).argmin(1)
    y = code[index]
    return index.int(), y, ones_at(d["k"], index), F.mse_loss(x, y)


def boxes(shape, dims, device):
    low = torch.rand((*shape, 2), device=device)
    return torch.cat([low, 1.1 + 0.9 * torch.rand((*shape, 2), device=device)], -1)


boxes.fields = [(name, "f4") for name in ("x0", "y0", "x1", "y1")]
HEADS = of("n t d", narrow(between(-1.0, 1.0), HALF))
PLANES = of("b c h w")
eighth(
    "conv_2d_input_gradient",
    {"b": 32, "o": 128, "c": 64, "h": 27, "w": 29},
    {"b": 2, "o": 3, "c": 5, "h": 4, "w": 7},
    {"dy": of("b o h w"), "f": of("o c 3 3", weights), "x": PIXELS},
    conv_2d_input_gradient,
    results=("dx",),
    slack=1e-3,
)
eighth(
    "attention_backward",
    {"n": 64, "t": 512, "d": 64},
    {"n": 3, "t": 37, "d": 13},
    {"q": HEADS, "k": HEADS, "v": HEADS, "y": HEADS, "dy": HEADS, "lse": of("n t", between(3.0, 4.0))},
    attention_backward,
    results=("dq", "dk", "dv"),
    values={"scale": 0.125},
    slack=3e-2,
)
eighth(
    "warp_backward",
    {"b": 8, "c": 32, "h": 255, "w": 321},
    {"b": 2, "c": 3, "h": 7, "w": 11},
    {"x": PLANES, "flow": of("b 2 h w", between(-3.0, 3.0)), "dy": PLANES},
    warp_backward,
    results=("dx", "dflow"),
    slack=1e-3,
)
eighth(
    "giou_loss",
    {"n": 4000003},
    {"n": 203},
    {"guess": of("n", boxes), "want": of("n", boxes), "weight": of("n", between(0.1, 1.0))},
    giou_loss,
    results=("loss", "each"),
)
eighth(
    "switch_balance_loss",
    {"t": 400003, "e": 64},
    {"t": 203, "e": 13},
    {"logit": of("t e", HALF)},
    switch_balance_loss,
    results=("choice", "gate", "load", "loss"),
)
eighth(
    "lora_backward",
    {"m": 8192, "k": 2048, "n": 2048, "r": 16},
    {"m": 37, "k": 29, "n": 53, "r": 5},
    {
        "x": of("m k", HALF),
        "a": of("r k", narrow_weights(HALF)),
        "b": of("n r", narrow_weights(HALF)),
        "dy": of("m n", HALF),
        "dx": of("m k", HALF),
    },
    lora_backward,
    results=("da", "db", "dx"),
    values={"scale": 0.5},
    slack=1e-1,
)
eighth(
    "vector_quantize",
    {"n": 65537, "d": 64, "k": 1024},
    {"n": 203, "d": 13, "k": 29},
    {"x": of("n d"), "code": of("k d")},
    vector_quantize,
    results=("index", "y", "used", "loss"),
)

# Images and signals.


def richardson_lucy_step(d, u, seen, spread):
    def blurred(x, f):
        return F.conv2d(x[None, None], f[None, None], padding=3)[0, 0]

    ratio = seen / blurred(u, spread).clamp(min=1e-6)
    return u.mul_(blurred(ratio, spread.flip(0, 1)))


def equalize_tiles(d, x):
    tiles = x.view(d["h"], 32, d["w"], 32).transpose(1, 2).flatten(2).flatten(0, 1).long()
    many = torch.zeros(tiles.shape[0], 256, dtype=INT, device=x.device)
    many.scatter_add_(1, tiles, torch.ones_like(tiles, dtype=INT))
    levels = (many.cumsum(1) * 255 // 1024).to(torch.uint8).gather(1, tiles)
    return levels.view(d["h"], d["w"], 32, 32).transpose(1, 2).reshape(x.shape)


def undistort_bicubic(d, x):
    h, w = d["h"], d["w"]
    u = (2 * torch.arange(w, device=x.device) + 1 - w) / w
    v = ((2 * torch.arange(h, device=x.device) + 1 - h) / w)[:, None]
    r2 = u * u + v * v
    bend = 1 + r2 * (0.1 + 0.02 * r2)
    grid = torch.stack([u * bend, v * bend * (w / h)], -1)
    return F.grid_sample(x[None], grid[None], "bicubic", "zeros", False)[0]


def hough_votes(d, edge):
    many = 2 * 2200 + 1
    a = torch.arange(180, device=edge.device)
    angle = a * (torch.pi / 180)
    far = torch.floor(edge[:, :1] * angle.cos() + edge[:, 1:] * angle.sin() + 0.5).long() + 2200
    return ones_at(180 * many, a * many + far).view(180, many)


eighth(
    "richardson_lucy_step",
    {"h": 2160, "w": 3841},
    TINY,
    {"u": of("h w", between(0.1, 1.0)), "seen": of("h w", between(0.1, 1.0)), "spread": of("7 7", between(0.01, 0.03))},
    richardson_lucy_step,
    results=("u",),
)
eighth(
    "equalize_tiles",
    {"h": 67, "w": 121},
    {"h": 2, "w": 3},
    {"x": shaped(lambda d: (32 * d["h"], 32 * d["w"]), BYTES)},
    equalize_tiles,
    slack=0.0,
)
eighth(
    "undistort_bicubic",
    {"c": 3, "h": 2160, "w": 3841},
    {"c": 2, "h": 37, "w": 53},
    {"x": of("c h w")},
    undistort_bicubic,
    values={"k1": 0.1, "k2": 0.02},
    slack=1e-3,
)
eighth(
    "fft_16",
    {"n": 500003},
    {"n": 203},
    {"x": of("n 16", "complex")},
    lambda d, x: torch.view_as_real(torch.fft.fft(torch.view_as_complex(x))),
)
eighth(
    "hough_votes",
    {"n": 100003},
    {"n": 203},
    {"edge": of("n", Integers(1100, "x", "y"))},
    hough_votes,
    results=("votes",),
    values={"reach": 2200},
    slack=2.0,
)

# Simulations.


def cloth_springs(d, at, before):
    force = torch.zeros_like(at)
    force[..., 2] = -9.81

    def sides(step, many):
        """Of those that have a neighbour this way: themselves and the neighbours."""
        return slice(max(-step, 0), many - max(step, 0)), slice(max(step, 0), many - max(-step, 0))

    for di in (-1, 0, 1):
        for dj in (-1, 0, 1):
            if di or dj:
                (i, a), (j, b) = sides(di, d["h"]), sides(dj, d["w"])
                way = at[a, b] - at[i, j]
                long = torch.linalg.vector_norm(way, dim=-1, keepdim=True).clamp(min=1e-6)
                force[i, j] += way * (50.0 * (long - (2**0.5 if di and dj else 1.0)) / long)
    return at + 0.99 * (at - before) + force * (0.01 * 0.01)


def restrict_residual(d, u, f):
    p = F.pad(u, (1, 1, 1, 1))
    around = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]
    residual = f - (4 * u - around) / (0.5 * 0.5)
    line = 0.5 - 0.25 * (torch.arange(3, device=u.device) - 1).abs()
    return F.conv2d(residual[None, None], torch.outer(line, line)[None, None], stride=2)[0, 0]


def composite_rays(d, density, colour):
    step = (6.0 - 2.0) / d["s"]
    keep = torch.exp(-density.float() * step)
    left = keep.cumprod(1)
    weight = torch.cat([torch.ones_like(left[:, :1]), left[:, :-1]], 1) * (1 - keep)
    places = 2.0 + (torch.arange(d["s"], device=density.device) + 0.5) * step
    return (weight[..., None] * colour.float()).sum(1), (weight * places).sum(1), 1 - left[:, -1]


VECTORS = Record("x", "y", "z")
eighth(
    "cloth_springs",
    {"h": 1500, "w": 1601},
    TINY,
    {"at": of("h w", VECTORS), "before": of("h w", VECTORS)},
    cloth_springs,
    results=("next",),
    values={"stiff": 50.0, "dt": 0.01},
)
eighth(
    "restrict_residual",
    {"h": 2003, "w": 2500},
    TINY,
    {"u": shaped(lambda d: (2 * d["h"] + 1, 2 * d["w"] + 1)), "f": shaped(lambda d: (2 * d["h"] + 1, 2 * d["w"] + 1))},
    restrict_residual,
    results=("coarse",),
    values={"spacing": 0.5},
    slack=1e-3,
)
eighth(
    "composite_rays",
    {"n": 200003, "s": 96},
    {"n": 203, "s": 13},
    {"density": of("n s", narrow(between(0.0, 2.0), F16)), "colour": of("n s 3", narrow(between(0.0, 1.0), F16))},
    composite_rays,
    results=("light", "depth", "opacity"),
    values={"near": 2.0, "far": 6.0},
    slack=1e-3,
)

# Meshes and sparse matrices.


def mesh_normals(d, at, face):
    corners = at[face.long()]
    n = torch.linalg.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal = torch.zeros_like(at)
    for corner in range(3):
        normal.index_add_(0, face[:, corner], n)
    return F.normalize(normal, eps=1e-12)


def sparse_transpose_times_dense(d, start, column, value, x, y):
    rows = torch.arange(d["m"], device=start.device)
    rows = torch.repeat_interleave(rows, start.diff(), output_size=d["nnz"])
    return y.index_add_(0, column, value[:, None] * x[rows])


eighth(
    "mesh_normals",
    {"v": 500003, "f": 1000001},
    {"v": 53, "f": 203},
    {"at": of("v", VECTORS), "face": of("f", Integers("v", "a", "b", "c"))},
    mesh_normals,
    results=("normal",),
    slack=1e-3,
)
eighth(
    "sparse_transpose_times_dense",
    {"m": 200003, "n": 150001, "nnz": 2000003, "k": 32},
    {"m": 37, "n": 29, "nnz": 203, "k": 5},
    {
        "start": of("m+1", row_starts),
        "column": of("nnz", (INT, "n")),
        "value": of("nnz"),
        "x": of("m k"),
        "y": of("n k"),
    },
    sparse_transpose_times_dense,
    slack=1e-3,
)

# Statistics.


def mmd_rbf(d, a, b):
    def likeness(a, b):
        square = (a.square().sum(1)[:, None] + b.square().sum(1) - 2 * (a @ b.T)).clamp(min=0)
        return (torch.exp(-square / 32) + torch.exp(-square / 128)).mean()

    return likeness(a, a) + likeness(b, b) - 2 * likeness(a, b)


def attentive_statistics(d, x, score):
    weight = score.softmax(1)
    mean = (weight * x).sum(1)
    return torch.cat([mean, ((weight * x * x).sum(1) - mean * mean).clamp(min=1e-6).sqrt()], 1)


eighth(
    "mmd_rbf",
    {"n": 4001, "m": 3000, "d": 64},
    {"n": 37, "m": 53, "d": 13},
    {"a": of("n d"), "b": of("m d")},
    mmd_rbf,
    values={"width": 4.0},
)
eighth(
    "attentive_statistics",
    {"b": 64, "t": 501, "c": 1000},
    {"b": 3, "t": 37, "c": 53},
    {"x": of("b t c"), "score": of("b t c")},
    attentive_statistics,
    slack=1e-3,
)

# Formats and layouts.


def quantize_mxfp4(d, x):
    x = x.float().view(d["rows"], d["blocks"], 32)
    exponent = ((x.abs().amax(2).view(INT) >> 23) - 2).clamp(min=0)
    x = x * torch.exp2((127 - exponent).float())[..., None]
    k = torch.arange(7, device=x.device)
    middles = torch.where(k < 4, 0.25 + 0.5 * k, torch.where(k < 6, k - 1.5, 5.0))
    code = torch.bucketize(x.abs(), middles) + 8 * (x < 0)
    return (code[..., ::2] | code[..., 1::2] << 4).to(torch.uint8).flatten(1), exponent.to(torch.uint8)


def fold_windows(d, patch):
    return F.fold(patch.flatten(4).flatten(1, 3), (2 * d["h"], 2 * d["w"]), 4, padding=1, stride=2)


eighth(
    "quantize_mxfp4",
    {"rows": 8001, "blocks": 128},
    {"rows": 37, "blocks": 3},
    {"x": shaped(lambda d: (d["rows"], 32 * d["blocks"]), HALF)},
    quantize_mxfp4,
    results=("packed", "scale"),
    slack=0.0,
)
eighth(
    "fold_windows",
    {"b": 16, "c": 64, "h": 55, "w": 57},
    {"b": 2, "c": 3, "h": 5, "w": 7},
    {"patch": of("b c 4 4 h w")},
    fold_windows,
)

# Small systems.


def tridiagonal_columns(d, below, diagonal, above, right):
    c, x = [above[0] / diagonal[0]], [right[0] / diagonal[0]]
    for i in range(1, 32):
        pivot = diagonal[i] - below[i] * c[-1]
        c.append(above[i] / pivot)
        x.append((right[i] - below[i] * x[-1]) / pivot)
    for i in range(30, -1, -1):
        x[i] = x[i] - c[i] * x[i + 1]
    return torch.stack(x)


def qr_small(d, a):
    columns, r = [], torch.zeros(d["n"], 4, 4, device=a.device)
    for j in range(4):
        v = a[..., j]
        for k, earlier in enumerate(columns):
            r[:, k, j] = (earlier * v).sum(1)
            v = v - r[:, k, j, None] * earlier
        r[:, j, j] = torch.linalg.vector_norm(v, dim=1)
        columns.append(v / r[:, j, j, None])
    return torch.stack(columns, 2), r


SYSTEMS = of("32 n", between(-0.4, 0.4))
eighth(
    "tridiagonal_columns",
    {"n": 500003},
    {"n": 203},
    {"below": SYSTEMS, "diagonal": of("32 n", between(1.0, 2.0)), "above": SYSTEMS, "right": of("32 n")},
    tridiagonal_columns,
    slack=1e-3,
)
eighth("qr_small", {"n": 300007}, {"n": 203}, {"a": of("n 8 4")}, qr_small, results=("q", "r"), slack=1e-3)
