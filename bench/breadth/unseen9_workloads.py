"""Workloads of `breadth.py`, a ninth set: inference, training, vision, signals, simulations, learning, formats."""

import math

import torch
import torch.nn.functional as F
from unseen3_workloads import F16, INT, between, integers, shaped, weights
from unseen4_workloads import lengths, narrow
from unseen5_workloads import BYTES
from unseen8_workloads import VECTORS, WORKLOADS, bits, boxes, doubled, narrow_weights
from unseen_workloads import HALF, TINY, add, of


def ninth(name, dims, small, arrays, peer, **more):
    add("unseen_9.krn", name, dims, small, arrays, peer, **more)


# Inference.


def softcap_alibi_attention(d, q, k, v, slope):
    i = torch.arange(d["t"], device=q.device)
    away = i[:, None] - i
    score = 0.125 * (q @ k[:, None].mT).float()
    score = 5 * torch.tanh(score / 5) - slope[:, None, None] * away
    return score.masked_fill(away < 0, -torch.inf).softmax(-1).to(F16) @ v[:, None]


def rms_norm_residual_quantize(d, x, stream, gain):
    stream.add_(x)
    normal = F.rms_norm(stream.float(), (d["d"],), gain.float(), 1e-6)
    peak = normal.abs().amax(1).clamp(min=1e-10)
    return (normal * (127 / peak)[:, None]).round().to(torch.int8), peak / 127, stream


def quantized_cache_write(d, k, v, cosine, sine, place, slot, keys, values, scales):
    first, second = k.float().chunk(2, -1)
    c, s = cosine[place][:, None], sine[place][:, None]
    turned = torch.cat([first * c - second * s, second * c + first * s], -1)
    k_scale = turned.abs().amax(-1).clamp(min=1e-6) / 127
    v_scale = v.float().abs().amax(-1).clamp(min=1e-6) / 127
    keys[slot] = (turned / k_scale[..., None]).round().to(torch.int8)
    values[slot] = (v.float() / v_scale[..., None]).round().to(torch.int8)
    scales[slot] = torch.stack([k_scale, v_scale], -1)
    return keys, values, scales


def speculative_verify(d, p, q, draft, u, noise):
    at = draft.long()[..., None]
    taken = u * q.gather(2, at)[..., 0] <= p[:, :-1].gather(2, at)[..., 0]
    n = taken.int().cumprod(1).sum(1)
    row = n[:, None, None].expand(-1, 1, d["v"])
    left = p.gather(1, row)[:, 0]
    drafted = q.gather(1, row.clamp(max=d["k"] - 1))[:, 0]
    left = torch.where((n < d["k"])[:, None], (left - drafted).clamp(min=0), left)
    return n.int(), (left / noise).argmax(1).int()


def selective_scan(d, x, step, a, into, out, skip):
    h, y = torch.zeros_like(x[:, 0, :, None]), []
    for i in range(d["t"]):
        dt = step[:, i, :, None]
        h = torch.exp(dt * a) * h + dt * into[:, i, None] * x[:, i, :, None]
        y.append((h * out[:, i, None]).sum(-1))
    return torch.stack(y, 1) + skip * x


def rwkv_time_mix(d, k, v, gate, decay, bonus):
    k, v, y = k.float(), v.float(), []
    above, below, peak = torch.zeros_like(k[:, 0]), torch.zeros_like(k[:, 0]), torch.full_like(k[:, 0], -1e30)
    for key, value in zip(k.unbind(1), v.unbind(1)):
        high = torch.maximum(peak, bonus + key)
        old, new = torch.exp(peak - high), torch.exp(bonus + key - high)
        y.append((old * above + new * value) / (old * below + new))
        high = torch.maximum(peak + decay, key)
        kept, fresh = torch.exp(peak + decay - high), torch.exp(key - high)
        above, below, peak = kept * above + fresh * value, kept * below + fresh, high
    return (torch.sigmoid(gate.float()) * torch.stack(y, 1)).to(HALF)


def retention_chunk(d, q, k, v, state, decay):
    i = torch.arange(d["l"], device=q.device)
    away, decay = i[:, None] - i, decay[:, None, None]
    score = ((q @ k.mT).float() * torch.where(away >= 0, decay ** away.clamp(min=0), 0.0)).to(F16)
    y = (score @ v).float() + decay ** (i[:, None] + 1) * (q @ state.to(F16)).float()
    faded = (decay ** (d["l"] - 1 - i[:, None]) * k).to(F16)
    state.mul_(decay ** d["l"]).add_(faded.mT @ v)
    return y.to(F16), state


def moe_combine(d, answer, slot, weight, shared, stream):
    weight = torch.where(slot >= 0, weight, 0.0)
    routed = torch.einsum("te,tec->tc", weight, answer[slot.clamp(min=0)].float())
    stream.copy_(stream.float() + shared.float() + 2.5 * routed)
    return stream


def sparse_2_4_linear(d, x, value, place, bias):
    at = torch.stack([place & 3, place >> 2], -1).long()
    w = torch.zeros(d["n"], d["g"], 4, dtype=F16, device=x.device).scatter_(2, at, value)
    return F.relu(F.linear(x, w.flatten(1), bias))


def codebook_linear(d, x, packed, book):
    codes = torch.stack([packed & 15, packed >> 4], -1).flatten(1)
    return F.linear(x, book.gather(1, codes.long()))


def dora_linear(d, x, w, a, b, length):
    changed = w + 0.5 * (b @ a)
    gain = length / changed.float().norm(dim=1)
    return (gain * F.linear(x, changed)).to(HALF)


def different_slots(extent, among):
    def make(shape, dims, device):
        return torch.randperm(dims[among], device=device)[: dims[extent]].to(INT).view(shape)

    return make


def slots_or_none(shape, dims, device):
    return torch.randint(-1, dims["slots"], shape, device=device, dtype=INT)


def two_of_four(shape, dims, device):
    """Two different places of four, the lower one in the lower bits."""
    pairs = torch.tensor([0 | 1 << 2, 0 | 2 << 2, 0 | 3 << 2, 1 | 2 << 2, 1 | 3 << 2, 2 | 3 << 2], device=device)
    return pairs[torch.randint(0, 6, shape, device=device)].to(torch.uint8)


HEADS = of("n l d", narrow(between(-1.0, 1.0), F16))
TURNED = shaped(lambda d: (d["t"], d["kv"], 2 * d["half"]), HALF)
CACHE = shaped(lambda d: (d["slots"], d["kv"], 2 * d["half"]), integers(-127, 128, torch.int8))
ninth(
    "softcap_alibi_attention",
    {"b": 2, "heads": 16, "t": 1500, "d": 64},
    {"b": 2, "heads": 3, "t": 37, "d": 13},
    {"q": of("b heads t d", F16), "k": of("b t d", F16), "v": of("b t d", F16), "slope": of("heads", between(0.01, 0.5))},
    softcap_alibi_attention,
    values={"scale": 0.125, "cap": 5.0},
    slack=1e-2,
)
ninth(
    "rms_norm_residual_quantize",
    {"t": 4097, "d": 4096},
    {"t": 7, "d": 203},
    {"x": of("t d", HALF), "stream": of("t d", HALF), "gain": of("d", HALF)},
    rms_norm_residual_quantize,
    results=("q", "scale", "stream"),
    slack=1.0,
)
ninth(
    "quantized_cache_write",
    {"t": 8000, "kv": 8, "half": 64, "most": 8192, "slots": 20000},
    {"t": 13, "kv": 2, "half": 5, "most": 53, "slots": 29},
    {
        "k": TURNED,
        "v": TURNED,
        "cosine": of("most half"),
        "sine": of("most half"),
        "place": of("t", (INT, "most")),
        "slot": of("t", different_slots("t", "slots")),
        "keys": CACHE,
        "values": CACHE,
        "scales": of("slots kv 2"),
    },
    quantized_cache_write,
    results=("keys", "values", "scales"),
    slack=1.0,
)
ninth(
    "speculative_verify",
    {"b": 128, "k": 4, "v": 50257},
    {"b": 29, "k": 3, "v": 203},
    {
        "p": of("b k+1 v", between(0.001, 1.0)),
        "q": of("b k v", between(0.001, 1.0)),
        "draft": of("b k", (INT, "v")),
        "u": of("b k", between(0.0, 1.0)),
        "noise": of("b v", between(0.01, 4.0)),
    },
    speculative_verify,
    results=("accepted", "next"),
    slack=0.0,
)
ninth(
    "selective_scan",
    {"b": 16, "t": 128, "c": 1536},
    {"b": 2, "t": 13, "c": 29},
    {
        "x": of("b t c"),
        "step": of("b t c", between(0.01, 0.2)),
        "a": of("c 16", between(-4.0, -0.5)),
        "into": of("b t 16"),
        "out": of("b t 16"),
        "skip": of("c"),
    },
    selective_scan,
    slack=1e-3,
)
ninth(
    "rwkv_time_mix",
    {"b": 24, "t": 100, "c": 2048},
    {"b": 2, "t": 13, "c": 29},
    {
        "k": of("b t c", HALF),
        "v": of("b t c", HALF),
        "gate": of("b t c", HALF),
        "decay": of("c", between(-1.0, -0.01)),
        "bonus": of("c"),
    },
    rwkv_time_mix,
    slack=1e-2,
)
ninth(
    "retention_chunk",
    {"n": 256, "l": 250, "d": 64},
    {"n": 3, "l": 37, "d": 13},
    {"q": HEADS, "k": HEADS, "v": HEADS, "state": of("n d d"), "decay": of("n", between(0.9, 0.99))},
    retention_chunk,
    results=("y", "state"),
    slack=5e-2,
)
ninth(
    "moe_combine",
    {"t": 4099, "slots": 24600, "d": 2048},
    {"t": 13, "slots": 53, "d": 29},
    {
        "answer": of("slots d", HALF),
        "slot": of("t 6", slots_or_none),
        "weight": of("t 6", between(0.0, 1.0)),
        "shared": of("t d", HALF),
        "stream": of("t d", HALF),
    },
    moe_combine,
    results=("stream",),
    values={"scale": 2.5},
    slack=3e-2,
)
ninth(
    "sparse_2_4_linear",
    {"m": 500, "n": 4096, "g": 1024},
    {"m": 7, "n": 29, "g": 13},
    {
        "x": doubled("m 4g", F16),
        "value": of("n g 2", narrow_weights(F16)),
        "place": of("n g", two_of_four),
        "bias": of("n", F16),
    },
    sparse_2_4_linear,
    slack=2e-2,
)
ninth(
    "codebook_linear",
    {"m": 16, "n": 11008, "k": 2048},
    {"m": 3, "n": 29, "k": 37},
    {"x": doubled("m 2k", F16), "packed": of("n k", BYTES), "book": of("n 16", narrow(between(-0.1, 0.1), F16))},
    codebook_linear,
    slack=2e-2,
)
ninth(
    "dora_linear",
    {"m": 4096, "k": 2048, "n": 2304, "r": 16},
    {"m": 13, "k": 53, "n": 29, "r": 5},
    {
        "x": of("m k", HALF),
        "w": of("n k", narrow_weights(HALF)),
        "a": of("r k", narrow_weights(HALF)),
        "b": of("n r", narrow_weights(HALF)),
        "length": of("n", between(0.5, 1.5)),
    },
    dora_linear,
    values={"scale": 0.5},
    slack=3e-2,
)

# Training.


def ctc_loss(d, log_p, label, length):
    b, many = d["b"], 2 * d["l"] + 1
    sound = torch.zeros(b, many, dtype=torch.long, device=label.device)
    sound[:, 1::2] = label
    heard = log_p.gather(2, sound.expand(d["t"], -1, -1))
    k = torch.arange(many, device=label.device)
    skips = (k >= 2) & (k % 2 == 1) & (sound != sound.roll(2, 1))
    alpha = torch.where(k < 2, heard[0], -1e30)
    for row in heard[1:]:
        before = F.pad(alpha, (2, 0), value=-1e30)
        two = torch.where(skips, before[:, :-2], -1e30)
        alpha = torch.logaddexp(torch.logaddexp(alpha, before[:, 1:-1]), two) + row
    last = 2 * length.long()[:, None]
    return -torch.logaddexp(alpha.gather(1, last), alpha.gather(1, last - 1))[:, 0]


def shampoo_statistics(d, g, left, right):
    return left.mul_(0.95).add_(g @ g.T, alpha=0.05), right.mul_(0.95).add_(g.T @ g, alpha=0.05)


def stochastic_round_step(d, p, m, g, noise):
    slope = g.float() + 0.001 * p.float()
    m.mul_(0.9).add_(slope)
    exact = p.float() - 0.01 * (slope + 0.9 * m)
    rounded = (exact.view(INT) + (noise.int() & 0xFFFF)) & -65536
    p.copy_(rounded.view(torch.float32))
    return p, m


def gae_advantages(d, reward, value, done):
    goes_on = 1 - done.float()
    delta = reward + 0.99 * goes_on * value[1:] - value[:-1]
    advantage, last = torch.empty_like(delta), torch.zeros_like(delta[0])
    for i in reversed(range(d["t"])):
        last = delta[i] + 0.99 * 0.95 * goes_on[i] * last
        advantage[i] = last
    return (advantage - advantage.mean()) / (advantage.std(correction=0) + 1e-8), advantage + value[:-1]


def ppo_loss(d, logit, value, action, old_log, advantage, target):
    log_p = logit.log_softmax(1)
    change = log_p.gather(1, action.long()[:, None])[:, 0] - old_log
    ratio = change.exp()
    policy = -torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
    entropy = -(log_p.exp() * log_p).sum(1).mean()
    loss = policy + 0.5 * 0.5 * F.mse_loss(value, target) - 0.01 * entropy
    return loss, (ratio - 1 - change).mean(), ((ratio - 1).abs() > 0.2).float().mean()


def skip_gram_gradient(d, centre, word, u, w):
    here, there = u[centre], w[word]
    score = torch.einsum("sc,sjc->sj", here, there)
    true = (torch.arange(d["k"], device=u.device) == 0).float().expand_as(score)
    loss = F.binary_cross_entropy_with_logits(score, true, reduction="sum") / d["b"]
    g = (torch.sigmoid(score) - true) / d["b"]
    du = torch.zeros_like(u).index_add_(0, centre, torch.einsum("sj,sjc->sc", g, there))
    dw = torch.zeros_like(w).index_add_(0, word.flatten(), (g[..., None] * here[:, None]).flatten(0, 1))
    return du, dw, loss


def sounds(shape, dims, device):
    return torch.randint(1, dims["v"], shape, device=device, dtype=INT)


ninth(
    "ctc_loss",
    {"t": 100, "b": 256, "v": 80, "l": 30},
    {"t": 23, "b": 7, "v": 5, "l": 6},
    {"log_p": of("t b v", between(-5.0, -0.1)), "label": of("b l", sounds), "length": of("b", lengths("l"))},
    ctc_loss,
    results=("loss",),
    slack=1e-2,
)
ninth(
    "shampoo_statistics",
    {"m": 2000, "n": 3000},
    {"m": 29, "n": 37},
    {"g": of("m n", HALF), "left": of("m m"), "right": of("n n")},
    shampoo_statistics,
    results=("left", "right"),
    values={"beta": 0.95},
    slack=1e-2,
)
ninth(
    "stochastic_round_step",
    {"n": 20000003},
    {"n": 1003},
    {"p": of("n", HALF), "m": of("n"), "g": of("n", HALF), "noise": of("n", integers(-32768, 32768, torch.int16))},
    stochastic_round_step,
    results=("p", "m"),
    values={"rate": 0.01, "mu": 0.9, "decay": 0.001},
)
ninth(
    "gae_advantages",
    {"t": 128, "n": 40003},
    {"t": 13, "n": 53},
    {"reward": of("t n"), "value": of("t+1 n"), "done": of("t n", bits)},
    gae_advantages,
    results=("advantage", "target"),
    values={"gamma": 0.99, "lambda": 0.95},
    slack=1e-3,
)
ninth(
    "ppo_loss",
    {"n": 300007, "a": 18},
    {"n": 203, "a": 7},
    {
        "logit": of("n a"),
        "value": of("n"),
        "action": of("n", (INT, "a")),
        "old_log": of("n", between(-3.0, -1.0)),
        "advantage": of("n"),
        "target": of("n"),
    },
    ppo_loss,
    results=("loss", "distance", "clipped"),
    values={"clip": 0.2, "value_part": 0.5, "entropy_part": 0.01},
    slack=1e-3,
)
ninth(
    "skip_gram_gradient",
    {"b": 16384, "k": 6, "v": 50003, "d": 100},
    {"b": 37, "k": 4, "v": 29, "d": 13},
    {"centre": of("b", (INT, "v")), "word": of("b k", (INT, "v")), "u": of("v d"), "w": of("v d")},
    skip_gram_gradient,
    results=("du", "dw", "loss"),
)

# Vision.


def group_norm_silu_conv(d, x, gain, shift, f, bias, time):
    return F.conv2d(F.silu(F.group_norm(x, 32, gain, shift)), f, bias, padding=1) + time[..., None, None]


def deformable_conv(d, x, offset, mask, f, bias):
    h, w, taps = d["h"], d["w"], []
    i, j = torch.arange(h, device=x.device)[:, None], torch.arange(w, device=x.device)
    for p in range(3):
        for q in range(3):
            py, px = i + p - 1 + offset[:, p, q, 0], j + q - 1 + offset[:, p, q, 1]
            grid = torch.stack([2 * px / (w - 1) - 1, 2 * py / (h - 1) - 1], -1)
            tap = F.grid_sample(x, grid, "bilinear", "zeros", True)
            taps.append(torch.sigmoid(mask[:, p, q, None]) * tap)
    return F.conv2d(torch.stack(taps, 2).flatten(1, 2), f.flatten(1)[..., None, None], bias)


def roi_align(d, x, roi, image):
    h, w = d["h"], d["w"]
    steps = (torch.arange(14, device=x.device) + 0.5) / 14
    low, size = roi[:, :2] / 16 - 0.5, (roi[:, 2:] - roi[:, :2]) / 16
    px = (low[:, :1] + size[:, :1] * steps).clamp(0, w - 1)
    py = (low[:, 1:] + size[:, 1:] * steps).clamp(0, h - 1)
    x0, y0 = px.long(), py.long()
    x1, y1 = (x0 + 1).clamp(max=w - 1), (y0 + 1).clamp(max=h - 1)
    fx, fy = (px - x0)[:, None, :, None], (py - y0)[:, :, None, None]
    seen, s = x.permute(0, 2, 3, 1), image.long()[:, None, None]

    def at(y, x):
        return seen[s, y[:, :, None], x[:, None]]

    upper = (1 - fx) * at(y0, x0) + fx * at(y0, x1)
    lower = (1 - fx) * at(y1, x0) + fx * at(y1, x1)
    return F.avg_pool2d(((1 - fy) * upper + fy * lower).permute(0, 3, 1, 2), 2)


def cost_volume(d, a, b):
    h, w = d["h"], d["w"]
    padded = F.pad(b, (4, 4, 4, 4))
    rows = [[(a * padded[:, :, p : p + h, q : q + w]).mean(1) for q in range(9)] for p in range(9)]
    return F.leaky_relu(torch.stack([torch.stack(row, 1) for row in rows], 1), 0.1)


def match_anchors(d, anchor, truth):
    def area(box):
        return (box[..., 2] - box[..., 0]) * (box[..., 3] - box[..., 1])

    a, t = anchor[None, :, None], truth[:, None]
    both = (torch.minimum(a[..., 2:], t[..., 2:]) - torch.maximum(a[..., :2], t[..., :2])).clamp(min=0).prod(-1)
    part = both / (area(a) + area(t) - both)
    most, which = part.max(2)
    label = torch.where(most >= 0.7, 1, torch.where(most < 0.3, 0, -1))
    return which.int(), label.to(torch.int8), part.argmax(1).int()


def sauvola_threshold(d, x, total, square):
    def ends(many):
        i = torch.arange(many, device=x.device)
        return (i - 12).clamp(min=0), (i + 13).clamp(max=many)

    (top, bottom), (left, right) = ends(d["h"]), ends(d["w"])
    top, bottom = top[:, None], bottom[:, None]
    many = ((bottom - top) * (right - left)).float()

    def box(sums):
        return (sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left]).float()

    mean = box(total) / many
    deviation = (box(square) / many - mean * mean).clamp(min=0).sqrt()
    return (x > mean * (1 + 0.2 * (deviation / 128 - 1))).to(torch.uint8) * 255


def match_descriptors(d, a, b):
    def signs(x):
        bits = x[..., None] >> torch.arange(32, device=x.device, dtype=INT) & 1
        return (1 - 2 * bits).flatten(1).to(F16)

    far = (256 - (signs(a) @ signs(b).T).int()) // 2
    differ, at = far.min(1)
    second = far.scatter(1, at[:, None], 1000).amin(1)
    return at.int(), differ, (differ < 0.8 * second).to(torch.uint8)


def tv_denoise(d, f, p, q):
    def divergence():
        return p - F.pad(p, (0, 0, 1, 0))[:-1] + q - F.pad(q, (1, 0))[:, :-1]

    for _ in range(10):
        v = f / 0.2 - divergence()
        down = F.pad(v[:-1] - v[1:], (0, 0, 0, 1))
        right = F.pad(v[:, :-1] - v[:, 1:], (0, 1))
        norm = 1 + 0.25 * (down * down + right * right).sqrt()
        p.add_(down, alpha=0.25).div_(norm)
        q.add_(right, alpha=0.25).div_(norm)
    return f - 0.2 * divergence(), p, q


def rois(shape, dims, device):
    """Boxes in pixels of an image that is sixteen times as large as its features."""
    size = 16.0 * torch.tensor([dims["w"], dims["h"]], device=device)
    low = 0.7 * torch.rand((*shape, 2), device=device)
    return torch.cat([size * low, size * (low + 0.05 + 0.25 * torch.rand((*shape, 2), device=device))], -1)


rois.fields = boxes.fields


def page(shape, dims, device):
    """The same page of text every time, since its sums are inputs of their own."""
    i, j = torch.arange(dims["h"], device=device)[:, None], torch.arange(dims["w"], device=device)
    return ((i * 7919 + j * 104729 + i * j * 31) % 223).to(torch.uint8)


def page_sums(power, kind):
    def make(shape, dims, device):
        x = page(shape, dims, device).to(kind) ** power
        return F.pad(x.cumsum(0, dtype=kind).cumsum(1, dtype=kind), (1, 0, 1, 0))

    return make


def any_bits(shape, dims, device):
    return torch.randint(-(2**31), 2**31, shape, device=device, dtype=INT)


CHANNELS = shaped(lambda d: (32 * d["size"],), F16)
ninth(
    "group_norm_silu_conv",
    {"b": 4, "size": 10, "h": 63, "w": 65, "o": 320},
    {"b": 2, "size": 2, "h": 5, "w": 7, "o": 13},
    {
        "x": shaped(lambda d: (d["b"], 32 * d["size"], d["h"], d["w"]), F16),
        "gain": CHANNELS,
        "shift": CHANNELS,
        "f": shaped(lambda d: (d["o"], 32 * d["size"], 3, 3), narrow_weights(F16)),
        "bias": of("o", F16),
        "time": of("b o", F16),
    },
    group_norm_silu_conv,
    slack=2e-2,
)
ninth(
    "deformable_conv",
    {"b": 4, "c": 64, "o": 128, "h": 57, "w": 63},
    {"b": 2, "c": 3, "o": 5, "h": 7, "w": 11},
    {
        "x": of("b c h w"),
        "offset": of("b 3 3 2 h w", between(-2.0, 2.0)),
        "mask": of("b 3 3 h w"),
        "f": of("o c 3 3", weights),
        "bias": of("o"),
    },
    deformable_conv,
    slack=1e-3,
)
ninth(
    "roi_align",
    {"n": 1000, "b": 2, "c": 256, "h": 50, "w": 76},
    {"n": 13, "b": 2, "c": 5, "h": 11, "w": 17},
    {"x": of("b c h w"), "roi": of("n", rois), "image": of("n", (INT, "b"))},
    roi_align,
    values={"scale": 0.0625},
    slack=1e-3,
)
ninth(
    "cost_volume",
    {"n": 8, "c": 64, "h": 55, "w": 121},
    {"n": 2, "c": 5, "h": 7, "w": 12},
    {"a": of("n c h w", F16), "b": of("n c h w", F16)},
    cost_volume,
    slack=2e-3,
)
ninth(
    "match_anchors",
    {"n": 40003, "b": 8, "g": 50},
    {"n": 203, "b": 3, "g": 7},
    {"anchor": of("n", boxes), "truth": of("b g", boxes)},
    match_anchors,
    results=("which", "label", "best"),
    slack=0.0,
)
ninth(
    "sauvola_threshold",
    {"h": 2160, "w": 3841},
    TINY,
    {
        "x": of("h w", page),
        "total": of("h+1 w+1", page_sums(1, INT)),
        "square": of("h+1 w+1", page_sums(2, torch.int64)),
    },
    sauvola_threshold,
    values={"r": 12, "k": 0.2},
    slack=0.0,
)
ninth(
    "match_descriptors",
    {"n": 5000, "m": 6007},
    {"n": 37, "m": 53},
    {"a": of("n 8", any_bits), "b": of("m 8", any_bits)},
    match_descriptors,
    results=("at", "differ", "clear"),
    slack=0.0,
)
ninth(
    "tv_denoise",
    {"h": 1080, "w": 1921},
    TINY,
    {"f": of("h w"), "p": of("h w", between(-0.5, 0.5)), "q": of("h w", between(-0.5, 0.5))},
    tv_denoise,
    results=("u", "p", "q"),
    values={"weight": 0.2, "tau": 0.25, "steps": 10},
    slack=1e-3,
)

# Signals.


def stft_log_mel(d, x, window, cosine, sine, bank):
    power = torch.stft(x, 400, 160, window=window, center=False, return_complex=True).abs().square()
    return (bank @ power).clamp(min=1e-10).log10()


def back_projection(d, sinogram):
    size, r = 512, d["r"]
    places = torch.arange(size, device=sinogram.device) - 0.5 * (size - 1)
    angle = torch.arange(d["angles"], device=sinogram.device)[:, None, None] * (math.pi / d["angles"])
    at = places * angle.cos() + places[:, None] * angle.sin()
    grid = torch.stack([at * (2 / (r - 1)), torch.zeros_like(at)], -1)
    return F.grid_sample(sinogram[:, None, None], grid, "bilinear", "zeros", True).sum(0)[0] * (math.pi / d["angles"])


def waves(of_angle):
    def make(shape, dims, device):
        n, k = torch.arange(400, device=device)[:, None], torch.arange(201, device=device)
        return of_angle(n * k % 400 * (math.pi / 200))

    return make


ninth(
    "stft_log_mel",
    {"b": 8, "t": 1500, "bands": 80},
    {"b": 2, "t": 5, "bands": 7},
    {
        "x": shaped(lambda d: (d["b"], 160 * d["t"] + 240)),
        "window": of("400", lambda shape, dims, device: torch.hann_window(400, device=device)),
        "cosine": of("400 201", waves(torch.cos)),
        "sine": of("400 201", waves(torch.sin)),
        "bank": of("bands 201", between(0.0, 0.05)),
    },
    stft_log_mel,
    slack=1e-3,
)
ninth(
    "back_projection",
    {"angles": 180, "r": 729},
    {"angles": 5, "r": 729},
    {"sinogram": of("angles r")},
    back_projection,
    values={"size": 512},
    slack=1e-2,
)

# Simulations.


def electron_density(d, at, centre, width, density):
    square = (at[:, None] - centre).square().sum(-1)
    phi = torch.exp(-width * square)
    return ((phi @ density.T) * phi).sum(1)


def two_qubit_gate(d, x, gate):
    x, gate = torch.view_as_complex(x), torch.view_as_complex(gate)
    return torch.view_as_real(torch.einsum("pqrs,arbsc->apbqc", gate, x))


def fem_stiffness_apply(d, u, corner, slope, volume, conducts):
    flux = torch.einsum("ec,ecx->ex", u[corner], slope) * (volume * conducts)[:, None]
    return torch.zeros_like(u).index_add_(0, corner.flatten(), torch.einsum("ecx,ex->ec", slope, flux).flatten())


ninth(
    "electron_density",
    {"p": 30011, "m": 240},
    {"p": 53, "m": 13},
    {"at": of("p", VECTORS), "centre": of("m", VECTORS), "width": of("m", between(0.2, 2.0)), "density": of("m m")},
    electron_density,
    results=("rho",),
    slack=1e-3,
)
ninth(
    "two_qubit_gate",
    {"high": 64, "mid": 64, "low": 1024},
    {"high": 3, "mid": 2, "low": 5},
    {"x": of("high 2 mid 2 low", "complex"), "gate": of("2 2 2 2", "complex")},
    two_qubit_gate,
)
ninth(
    "fem_stiffness_apply",
    {"v": 200003, "e": 1000003},
    {"v": 53, "e": 203},
    {
        "u": of("v"),
        "corner": of("e 4", (INT, "v")),
        "slope": of("e 4", VECTORS),
        "volume": of("e", between(0.1, 1.0)),
        "conducts": of("e", between(0.5, 2.0)),
    },
    fem_stiffness_apply,
    slack=1e-3,
)

# Learning.


def sinkhorn(d, cost):
    f, g = torch.zeros_like(cost[:, 0]), torch.zeros_like(cost[0])
    for _ in range(5):
        f = -0.1 * (torch.logsumexp((g - cost) / 0.1, 1) + math.log(d["m"]))
        g = -0.1 * (torch.logsumexp((f[:, None] - cost) / 0.1, 0) + math.log(d["n"]))
    return f, g, torch.exp((f[:, None] + g - cost) / 0.1)


def em_step(d, x, mean, precision, log_weight):
    away = (x * x) @ precision.T - 2 * (x @ (precision * mean).T) + (precision * mean * mean).sum(1)
    part = (log_weight + 0.5 * (precision.log().sum(1) - away)).softmax(1)
    many = part.sum(0) + 1e-6
    next_mean = (part.T @ x) / many[:, None]
    return many / d["n"], next_mean, (part.T @ (x * x)) / many[:, None] - next_mean * next_mean + 1e-3


def farthest_points(d, at):
    rows = torch.arange(d["b"], device=at.device)
    away, last, picked = torch.full_like(at[..., 0], torch.inf), torch.zeros_like(rows), []
    for _ in range(128):
        picked.append(last)
        away = torch.minimum(away, (at - at[rows, last][:, None]).square().sum(-1))
        last = away.argmax(1)
    return torch.stack(picked, 1).int()


def tree_ensemble(d, x, feature, threshold, leaf):
    trees = torch.arange(d["trees"], device=x.device)
    node = torch.zeros(d["n"], d["trees"], dtype=torch.long, device=x.device)
    for _ in range(6):
        right = x.gather(1, feature[trees, node].long()) > threshold[trees, node]
        node = 2 * node + 1 + right
    return torch.sigmoid(leaf[trees, node - 63].sum(1))


ninth(
    "sinkhorn",
    {"m": 1500, "n": 1700},
    {"m": 37, "n": 29},
    {"cost": of("m n", between(0.0, 1.0))},
    sinkhorn,
    results=("f", "g", "plan"),
    values={"eps": 0.1, "steps": 5},
    slack=1e-5,
)
ninth(
    "em_step",
    {"n": 100003, "d": 16, "k": 24},
    {"n": 203, "d": 5, "k": 7},
    {"x": of("n d"), "mean": of("k d"), "precision": of("k d", between(0.5, 2.0)), "log_weight": of("k")},
    em_step,
    results=("weight", "next_mean", "variance"),
    slack=1e-3,
)
ninth(
    "farthest_points",
    {"b": 64, "n": 2000},
    {"b": 3, "n": 203},
    {"at": of("b n", VECTORS)},
    farthest_points,
    results=("picked",),
    values={"m": 128},
    slack=0.0,
)
ninth(
    "tree_ensemble",
    {"n": 40003, "d": 28, "trees": 200},
    {"n": 53, "d": 7, "trees": 13},
    {"x": of("n d"), "feature": of("trees 63", (INT, "d")), "threshold": of("trees 63"), "leaf": of("trees 64")},
    tree_ensemble,
)

# Formats.


def crc32_rows(d, x):
    table = torch.arange(256, device=x.device)
    for _ in range(8):
        table = torch.where(table & 1 == 1, table >> 1 ^ 0xEDB88320, table >> 1)
    crc = torch.full((d["n"],), 0xFFFFFFFF, device=x.device)
    for column in x.T:
        crc = crc >> 8 ^ table[(crc ^ column) & 255]
    return crc ^ 0xFFFFFFFF


def parse_decimals(d, text):
    digits = torch.zeros(d["n"], dtype=torch.int64, device=text.device)
    scale = torch.ones(d["n"], dtype=torch.float64, device=text.device)
    points = (text == 46).cumsum(1)
    for letter, point in zip(text.T, points.T):
        digit = (letter >= 48) & (letter <= 57)
        digits = torch.where(digit, 10 * digits + letter - 48, digits)
        scale = torch.where(digit & (point > 0), 10 * scale, scale)
    known = (text >= 48) & (text <= 57) | (text == 32) | (text == 45) | (text == 46)
    size = digits / scale
    value = torch.where((text == 45).any(1), -size, size).float()
    return value, (known.all(1) & (points[:, -1] <= 1)).to(torch.uint8)


def numbers_as_text(shape, dims, device):
    """Blanks, perhaps a sign, digits and a point; here and there a letter that is wrong."""
    places = torch.arange(12, device=device)
    blanks, point = (torch.randint(low, high, (shape[0], 1), device=device) for low, high in ((0, 6), (6, 13)))
    text = 48 + torch.randint(0, 10, shape, device=device)
    text = torch.where(places == point, 46, torch.where(places < blanks, 32, text))
    text = torch.where((places == blanks) & (torch.rand(shape, device=device) < 0.5), 45, text)
    return torch.where(torch.rand(shape, device=device) < 0.01, 46 + 19 * (places % 2), text).to(torch.uint8)


ninth(
    "crc32_rows",
    {"n": 500003, "size": 64},
    {"n": 203, "size": 13},
    {"x": of("n size", BYTES)},
    crc32_rows,
    slack=0.0,
)
ninth(
    "parse_decimals",
    {"n": 3000001},
    {"n": 203},
    {"text": of("n 12", numbers_as_text)},
    parse_decimals,
    results=("value", "fine"),
)
