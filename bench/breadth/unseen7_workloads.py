"""Workloads of `breadth.py`, a seventh set: layers, gradients, statistics, images, simulations, formats, tables."""

import functools
import math

import torch
import torch.nn.functional as F
from unseen3_workloads import F16, INT, LONG, between, shaped, weights
from unseen4_workloads import BYTES, lengths, narrow
from unseen5_workloads import SIGNED
from unseen6_workloads import WORKLOADS
from unseen_workloads import HALF, TINY, Record, add, of

F64 = torch.float64


def seventh(name, dims, small, arrays, peer, **more):
    add("unseen_7.krn", name, dims, small, arrays, peer, **more)


# Chains of layers.


def conv_subtract_tanh_pool(d, x, f, bias):
    return F.avg_pool2d(torch.tanh(F.conv2d(x, f, bias) - 0.5) - 0.2, 2)


def transposed_conv_3d_norm_pool_gelu(d, x, f, bias, gain, shift):
    t = F.conv_transpose3d(x, f, bias, stride=2, padding=1, output_padding=1) + 0.5
    return F.gelu(F.avg_pool3d(F.layer_norm(t, (2 * d["w"],), gain, shift), 2))


def conv_3d_leaky_gelu_sigmoid(d, x, f, bias, shift):
    return torch.sigmoid(F.gelu(F.leaky_relu(F.conv3d(x, f, bias), 0.01))) + shift[:, None, None, None]


def residual_block_channels_last(d, x, f1, gain1, shift1, f2, gain2, shift2):
    def conv(x, f):
        return F.conv2d(x.permute(0, 3, 1, 2), f.permute(0, 3, 1, 2), padding=1).permute(0, 2, 3, 1)

    t = F.relu(gain1 * conv(x, f1) + shift1)
    return F.relu(gain2 * conv(t, f2) + shift2 + x)


def inception_block(d, x, one, narrow3, three, narrow5, five, pooled):
    def pixels(x, w):
        return F.relu(F.conv2d(x, w[:, :, None, None]))

    third = F.relu(F.conv2d(pixels(x, narrow3), three, padding=1))
    fifth = F.relu(F.conv2d(pixels(x, narrow5), five, padding=2))
    return torch.cat([pixels(x, one), third, fifth, pixels(F.max_pool2d(x, 3, 1, 1), pooled)], 1)


def lstm_cell(d, x, h, c, w, u, bias):
    gates = (F.linear(x, w.flatten(0, 1)) + F.linear(h, u.flatten(0, 1))).float() + bias.flatten()
    enter, keep, fresh, leave = gates.chunk(4, 1)
    cell = torch.sigmoid(keep) * c + torch.sigmoid(enter) * torch.tanh(fresh)
    return (torch.sigmoid(leave) * torch.tanh(cell)).to(HALF), cell


def dense_layer_concat(d, x, mean, variance, gain, shift, f):
    return torch.cat([x, F.conv2d(F.relu(F.batch_norm(x, mean, variance, gain, shift)), f, padding=1)], 1)


def mixer_tokens(d, x, gain, shift, up, bias_up, down, bias_down):
    t = F.layer_norm(x, (d["c"],), gain, shift).transpose(1, 2)
    return x + F.linear(F.gelu(F.linear(t, up, bias_up)), down, bias_down).transpose(1, 2)


def net_vlad(d, x, cluster, gain, shift, centre):
    share = (gain * (x @ cluster) + shift).softmax(2)
    v = x.transpose(1, 2) @ share - share.sum(1)[:, None] * centre
    v = F.normalize(v, dim=1)
    return F.normalize(v.flatten(1), dim=1).view_as(v)


VOLUME = of("b c d+2 h+2 w+2")
seventh("conv_subtract_tanh_pool", {"b": 32, "c": 24, "o": 48, "h": 94, "w": 98},
        {"b": 2, "c": 3, "o": 5, "h": 8, "w": 11},
        {"x": of("b c h+2 w+2"), "f": of("o c 3 3", weights), "bias": of("o")}, conv_subtract_tanh_pool,
        values={"less1": 0.5, "less2": 0.2}, slack=1e-3)
seventh("transposed_conv_3d_norm_pool_gelu", {"b": 8, "c": 16, "o": 30, "d": 12, "h": 30, "w": 32},
        {"b": 2, "c": 3, "o": 5, "d": 3, "h": 4, "w": 7},
        {"x": of("b c d h w"), "f": of("c o 3 3 3", weights), "bias": of("o"), "gain": shaped(lambda d: (2 * d["w"],)),
         "shift": shaped(lambda d: (2 * d["w"],))}, transposed_conv_3d_norm_pool_gelu, values={"more": 0.5}, slack=1e-3)
seventh("linear_gelu_softmax", {"m": 8001, "k": 2048, "n": 3000}, {"m": 37, "k": 53, "n": 29},
        {"x": of("m k", F16), "w": of("n k", narrow(weights, F16)), "bias": of("n", F16)},
        lambda d, x, w, bias: F.gelu(F.linear(x, w, bias)).softmax(1), slack=2e-3)
seventh("conv_3d_leaky_gelu_sigmoid", {"b": 16, "c": 8, "o": 32, "d": 14, "h": 30, "w": 62},
        {"b": 2, "c": 3, "o": 5, "d": 3, "h": 5, "w": 7},
        {"x": VOLUME, "f": of("o c 3 3 3", weights), "bias": of("o"), "shift": of("o")}, conv_3d_leaky_gelu_sigmoid,
        slack=1e-3)
seventh("residual_block_channels_last", {"b": 64, "h": 55, "w": 57, "c": 64}, {"b": 2, "h": 5, "w": 7, "c": 13},
        {"x": of("b h w c", F16), "f1": of("c 3 3 c", narrow(weights, F16)),
         "gain1": of("c", narrow(between(0.5, 1.5), F16)), "shift1": of("c", F16),
         "f2": of("c 3 3 c", narrow(weights, F16)), "gain2": of("c", narrow(between(0.5, 1.5), F16)),
         "shift2": of("c", F16)}, residual_block_channels_last, slack=2e-2)
seventh("inception_block",
        {"b": 24, "c": 190, "h": 27, "w": 29, "o1": 60, "r3": 96, "o3": 120, "r5": 16, "o5": 32, "op": 36},
        {"b": 2, "c": 7, "h": 5, "w": 9, "o1": 3, "r3": 4, "o3": 5, "r5": 2, "o5": 6, "op": 3},
        {"x": of("b c h w"), "one": of("o1 c", weights), "narrow3": of("r3 c", weights),
         "three": of("o3 r3 3 3", weights), "narrow5": of("r5 c", weights), "five": of("o5 r5 5 5", weights),
         "pooled": of("op c", weights)}, inception_block, slack=1e-3)
seventh("lstm_cell", {"b": 2048, "e": 1000, "n": 1504}, {"b": 37, "e": 53, "n": 29},
        {"x": of("b e", HALF), "h": of("b n", HALF), "c": of("b n"),
         "w": of("4 n e", narrow(between(-0.05, 0.05), HALF)),
         "u": of("4 n n", narrow(between(-0.05, 0.05), HALF)), "bias": of("4 n")}, lstm_cell,
        results=("h_next", "c_next"), slack=2e-2)
seventh("dense_layer_concat", {"b": 24, "c": 96, "g": 32, "h": 55, "w": 57}, {"b": 2, "c": 5, "g": 3, "h": 7, "w": 11},
        {"x": of("b c h w"), "mean": of("c"), "variance": of("c", "positive"), "gain": of("c"), "shift": of("c"),
         "f": of("g c 3 3", weights)}, dense_layer_concat, slack=1e-3)
seventh("mixer_tokens", {"b": 128, "t": 196, "c": 512, "e": 256}, {"b": 2, "t": 37, "c": 29, "e": 11},
        {"x": of("b t c", HALF), "gain": of("c", HALF), "shift": of("c", HALF), "up": of("e t", narrow(weights, HALF)),
         "bias_up": of("e", HALF), "down": of("t e", narrow(weights, HALF)), "bias_down": of("t", HALF)}, mixer_tokens,
        slack=5e-2)
seventh("net_vlad", {"b": 1024, "n": 100, "d": 512, "k": 32}, {"b": 3, "n": 13, "d": 29, "k": 5},
        {"x": of("b n d"), "cluster": of("d k", between(-0.1, 0.1)),
         "gain": of("k", between(0.5, 1.5)), "shift": of("k"), "centre": of("d k")}, net_vlad, slack=1e-3)

# Gradients and losses.


def conv_1d_backward(d, x, f, dy):
    return torch.ops.aten.convolution_backward(
        dy, x, f, [d["o"]], [1], [4], [2], False, [0], 1, [True, True, True])


def lstm_cell_backward(d, gate, before, cell, dh, dc):
    enter, keep, fresh, leave = gate.float().unbind(1)
    dh, t = dh.float(), torch.tanh(cell)
    slope = dc + dh * leave * (1 - t * t)
    dgate = torch.stack([slope * fresh * enter * (1 - enter), slope * before * keep * (1 - keep),
                         slope * enter * (1 - fresh * fresh), dh * t * leave * (1 - leave)], 1)
    return dgate.to(HALF), slope * keep, dgate.sum(0)


def weight_norm_backward(d, v, g, dw):
    length = torch.linalg.vector_norm(v, dim=1, keepdim=True)
    way = v / length
    dg = (dw * way).sum(1, keepdim=True)
    return g[:, None] / length * (dw - dg * way), dg[:, 0]


def arc_face_loss(d, x, w, label):
    c = F.linear(F.normalize(x), F.normalize(w))
    own = torch.arange(d["classes"], device=x.device) == label[:, None]
    return F.cross_entropy(30 * torch.where(own, torch.cos(torch.acos(c.clamp(-1, 1)) + 0.5), c), label.long())


def linear_cross_entropy(d, x, w, label):
    return F.cross_entropy(F.linear(x, w).float(), label)


def preference_loss(d, policy, reference, word):
    at = word.clamp(min=0).long()[..., None]

    def log_probability(x):
        x = x.float()
        return x.gather(-1, at)[..., 0] - x.logsumexp(-1)

    gain = torch.where(word >= 0, log_probability(policy) - log_probability(reference), 0.0).sum(2)
    margin = 0.1 * (gain[0] - gain[1])
    return -F.logsigmoid(margin).mean(), margin


def quantile_huber_loss(d, guess, target):
    u = target[:, None] - guess[:, :, None]
    size = u.abs()
    huber = torch.where(size <= 0.7, 0.5 * u * u, 0.7 * (size - 0.5 * 0.7))
    tau = (torch.arange(d["q"], device=u.device) + 0.5) / d["q"]
    return ((tau[:, None] - (u < 0).float()).abs() * huber / 0.7).sum(1).mean()


def gelu_linear_backward(d, x, w, h, dy):
    dh = torch.ops.aten.gelu_backward(dy, h)
    return dh @ w, dh.T @ x, dh.float().sum(0)


def words_or_none(shape, dims, device):
    """Words, a fifth of which are none."""
    return torch.randint(-(dims["v"] // 4), dims["v"], shape, device=device, dtype=INT)


LOGITS = of("2 b t v", HALF)
seventh("conv_1d_backward", {"b": 16, "c": 64, "o": 96, "t": 4001}, {"b": 2, "c": 3, "o": 5, "t": 37},
        {"x": of("b c t"), "f": of("o c 5", weights), "dy": of("b o t")}, conv_1d_backward,
        results=("dx", "df", "dbias"), slack=1e-2)
seventh("lstm_cell_backward", {"b": 4001, "n": 1500}, {"b": 37, "n": 53},
        {"gate": of("b 4 n", narrow(between(0.0, 1.0), HALF)), "before": of("b n"), "cell": of("b n"),
         "dh": of("b n", HALF), "dc": of("b n")}, lstm_cell_backward, results=("dgate", "dbefore", "dbias"), slack=5e-2)
seventh("weight_norm_backward", {"rows": 4096, "cols": 4608}, {"rows": 37, "cols": 53},
        {"v": of("rows cols"), "g": of("rows"), "dw": of("rows cols")}, weight_norm_backward, results=("dv", "dg"))
seventh("arc_face_loss", {"n": 512, "d": 256, "classes": 20003}, {"n": 37, "d": 29, "classes": 53},
        {"x": of("n d"), "w": of("classes d"), "label": of("n", (INT, "classes"))}, arc_face_loss, results=("loss",),
        values={"margin": 0.5, "scale": 30.0}, slack=1e-3)
seventh("linear_cross_entropy", {"n": 2000, "d": 768, "v": 16000}, {"n": 37, "d": 29, "v": 53},
        {"x": of("n d", HALF), "w": of("v d", narrow(weights, HALF)), "label": of("n", (LONG, "v"))},
        linear_cross_entropy, results=("loss",), slack=2e-2)
seventh("preference_loss", {"b": 6, "t": 301, "v": 16003}, {"b": 3, "t": 7, "v": 53},
        {"policy": LOGITS, "reference": LOGITS, "word": of("2 b t", words_or_none)}, preference_loss,
        results=("loss", "margin"), values={"beta": 0.1}, slack=2e-2)
seventh("quantile_huber_loss", {"n": 30011, "q": 51, "r": 64}, {"n": 37, "q": 7, "r": 13},
        {"guess": of("n q"), "target": of("n r")}, quantile_huber_loss, results=("loss",), values={"kappa": 0.7})
seventh("gelu_linear_backward", {"m": 8000, "k": 1000, "n": 2048}, {"m": 37, "k": 29, "n": 53},
        {"x": of("m k", HALF), "w": of("n k", narrow(weights, HALF)), "h": of("m n", HALF), "dy": of("m n", HALF)},
        gelu_linear_backward, results=("dx", "dw", "dbias"), slack=1e-1)

# Statistics.


def spectral_norm_step(d, w, u):
    v = F.normalize(u @ w, dim=0)
    left = w @ v
    u.copy_(F.normalize(left, dim=0))
    return u, v, w / torch.dot(u, left)


def majority_vote(d, x):
    votes = torch.stack([(x == c).sum(0, dtype=INT) for c in range(10)])
    most, winner = votes.max(0)
    return winner.to(torch.uint8), most / d["voters"]


def masked_instance_norm(d, x, length, gain, shift):
    mask = (torch.arange(d["t"], device=x.device) < length[:, None])[..., None]
    many, x = length.clamp(min=1)[:, None, None], x.float()
    mean = torch.where(mask, x, 0.0).sum(1, keepdim=True) / many
    away = x - mean
    variance = torch.where(mask, away * away, 0.0).sum(1, keepdim=True) / many
    return torch.where(mask, away * torch.rsqrt(variance + 1e-5) * gain + shift, 0.0).half()


def digits(shape, dims, device):
    return torch.randint(0, 10, shape, device=device, dtype=torch.uint8)


seventh("spectral_norm_step", {"m": 4001, "n": 6003}, {"m": 37, "n": 53}, {"w": of("m n"), "u": of("m")},
        spectral_norm_step, results=("u", "v", "y"))
seventh("log_mean_exp_columns", {"n": 30011, "cols": 257}, {"n": 203, "cols": 13}, {"x": of("n cols", F64)},
        lambda d, x: torch.logsumexp(x, 0) - math.log(d["n"]))
seventh("majority_vote", {"voters": 31, "n": 4000003}, {"voters": 7, "n": 203}, {"x": of("voters n", digits)},
        majority_vote, results=("winner", "share"))
seventh("masked_instance_norm", {"b": 200, "t": 601, "c": 380}, {"b": 5, "t": 37, "c": 13},
        {"x": of("b t c", F16), "length": of("b", lengths("t")), "gain": of("c"), "shift": of("c")},
        masked_instance_norm, slack=1e-2)

# Images and signals.


def hog_cells(d, x):
    gx, gy = x[1:-1, 2:] - x[1:-1, :-2], x[2:, 1:-1] - x[:-2, 1:-1]
    angle = torch.atan2(gy, gx)
    place = (torch.where(angle < 0, angle + math.pi, angle) * (9 / math.pi)).int().clamp(max=8)
    size = (gx * gx + gy * gy).sqrt()
    sizes = [torch.where(place == k, size, 0.0).view(d["h"], 8, d["w"], 8).sum((1, 3)) for k in range(9)]
    bins = torch.stack(sizes, -1)
    return bins * torch.rsqrt(bins.square().sum(-1, keepdim=True) + 1e-6)


def overlap_add(d, frames, window):
    def added(x):
        parts = x.unflatten(-1, (4, 128))
        return sum(F.pad(parts[..., q, :], (0, 0, q, 3 - q)) for q in range(4)).flatten(-2)

    return added(frames * window) / added((window * window).expand(d["n"], 512)).clamp(min=1e-8)


def lucas_kanade(d, a, b):
    gx, gy = 0.5 * (a[1:-1, 2:] - a[1:-1, :-2]), 0.5 * (a[2:, 1:-1] - a[:-2, 1:-1])
    gt = (b - a)[1:-1, 1:-1]
    products = torch.stack([gx * gx, gx * gy, gy * gy, gx * gt, gy * gt])
    xx, xy, yy, xt, yt = 25 * F.avg_pool2d(products[None], 5, 1)[0]
    det = xx * yy - xy * xy
    u, v = (xy * yt - yy * xt) / det, (xy * xt - xx * yt) / det
    return torch.where((det > 1e-6)[..., None], torch.stack([u, v], -1), 0.0)


def reinhard_tone_map(d, colour):
    r, g, b = colour.unbind(-1)
    light = 0.2126 * r + 0.7152 * g + 0.0722 * b
    scaled = 0.18 / torch.log(light + 1e-4).mean().exp() * light
    mapped = scaled * (1 + scaled / (4 * 4)) / (1 + scaled)
    ratio = mapped / light.clamp(min=1e-6)
    return (255 * (ratio[..., None] * colour).clamp(0, 1).pow(1 / 2.2)).round().to(torch.uint8)


SHIFTED = of("h+6 w+6")
seventh("hog_cells", {"h": 500, "w": 601}, {"h": 3, "w": 5},
        {"x": shaped(lambda d: (8 * d["h"] + 2, 8 * d["w"] + 2))}, hog_cells, slack=1e-3)
seventh("overlap_add", {"b": 32, "n": 1501}, {"b": 2, "n": 7},
        {"frames": of("b n 512"), "window": of("512", between(0.1, 1.0))}, overlap_add)
seventh("lucas_kanade", {"h": 1500, "w": 2003}, TINY, {"a": SHIFTED, "b": SHIFTED}, lucas_kanade, results=("flow",),
        slack=1e-3)
seventh("reinhard_tone_map", {"h": 3000, "w": 4001}, TINY,
        {"colour": of("h w", Record("r", "g", "b", low=0.01, high=8.0))}, reinhard_tone_map,
        values={"key": 0.18, "white": 4.0}, slack=1.0)

# Simulations and linear algebra.


@functools.cache
def odd_cells(d, h, w, device):
    """Where the sum of a cell's coordinates is odd, inside of a box."""
    z, i, j = (torch.arange(1, n - 1, device=device) for n in (d, h, w))
    return (z[:, None, None] + i[:, None] + j) % 2 == 1


def red_black_poisson_3d(d, u, f):
    odd = odd_cells(d["d"], d["h"], d["w"], u.device)
    inner, right = u[1:-1, 1:-1, 1:-1], f[1:-1, 1:-1, 1:-1]
    for color in (~odd, odd):
        columns = u[:-2, 1:-1, 1:-1] + u[2:, 1:-1, 1:-1]
        around = columns + u[1:-1, :-2, 1:-1] + u[1:-1, 2:, 1:-1] + u[1:-1, 1:-1, :-2] + u[1:-1, 1:-1, 2:]
        inner.copy_(torch.where(color, (around - right) / 6, inner))
    return u


def conjugate_gradient_step(d, x, r, p):
    q = 4 * p
    q[1:] -= p[:-1]
    q[:-1] -= p[1:]
    q[:, 1:] -= p[:, :-1]
    q[:, :-1] -= p[:, 1:]
    before = r.square().sum()
    alpha = before / (p * q).sum()
    x.add_(alpha * p)
    r.sub_(alpha * q)
    after = r.square().sum()
    p.mul_(after / before).add_(r)
    return x, r, p, after.sqrt()


def tucker_reconstruct(d, core, u, v, w):
    t = torch.einsum("ibc,jb->ijc", torch.einsum("abc,ia->ibc", core, u), v)
    return torch.einsum("ijc,kc->ijk", t, w)


SHEET = of("h w")
seventh("red_black_poisson_3d", {"d": 161, "h": 200, "w": 250}, {"d": 7, "h": 9, "w": 12},
        {"u": of("d h w", F64), "f": of("d h w", F64)}, red_black_poisson_3d, results=("u",))
seventh("conjugate_gradient_step", {"h": 2001, "w": 3003}, TINY, {"x": SHEET, "r": SHEET, "p": SHEET},
        conjugate_gradient_step, results=("x", "r", "p", "residual"))
seventh("inverse_8x8", {"n": 100003}, {"n": 203}, {"a": of("n 8 8", F64)},
        lambda d, a: torch.linalg.inv_ex(a).inverse.contiguous())
seventh("tucker_reconstruct", {"a": 24, "b": 28, "c": 32, "m": 203, "n": 250, "o": 300},
        {"a": 3, "b": 4, "c": 5, "m": 7, "n": 11, "o": 13},
        {"core": of("a b c"), "u": of("m a"), "v": of("n b"), "w": of("o c")},
        tucker_reconstruct)

# Formats.


def adam_eight_bits(d, p, m, v, m_scale, v_scale, g):
    g = g.float().view(-1, 256)
    first = 0.9 * m_scale[:, None] * m.view(-1, 256).float() + 0.1 * g
    second = 0.999 * v_scale[:, None] * v.view(-1, 256).float() + 0.001 * g * g
    p.sub_((0.01 * first / (second.sqrt() + 1e-8)).flatten())
    m_peak, v_peak = first.abs().amax(1).clamp(min=1e-12), second.amax(1).clamp(min=1e-12)
    m.copy_((first * (127 / m_peak)[:, None]).round().to(torch.int8).flatten())
    v.copy_((second * (255 / v_peak)[:, None]).round().to(torch.uint8).flatten())
    m_scale.copy_(m_peak / 127)
    v_scale.copy_(v_peak / 255)
    return p, m, v, m_scale, v_scale


def ternary_linear(d, x, packed, scale):
    w = torch.stack([packed >> 2 * q & 3 for q in range(4)], 2).flatten(1).half() - 1
    return (F.linear(x, w) * scale).half()


@functools.cache
def letters(device):
    text = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    return torch.tensor(list(text), dtype=torch.uint8, device=device)


def base64_encode(d, x):
    a, b, c = x.view(-1, 3).int().unbind(1)
    six = torch.stack([a >> 2, (a & 3) << 4 | b >> 4, (b & 15) << 2 | c >> 6, c & 63], 1)
    return letters(x.device)[six].flatten()


def blocks_of(kind=torch.float32):
    return shaped(lambda d: (256 * d["blocks"],), kind)


SCALES = of("blocks", between(0.001, 0.01))
seventh("adam_eight_bits", {"blocks": 60001}, {"blocks": 3},
        {"p": blocks_of(), "m": blocks_of(SIGNED), "v": blocks_of(BYTES), "m_scale": SCALES, "v_scale": SCALES,
         "g": blocks_of(HALF)}, adam_eight_bits, results=("p", "m", "v", "m_scale", "v_scale"), values={"rate": 0.01},
        slack=1e-3)
seventh("ternary_linear", {"m": 64, "k": 1024, "n": 8001}, {"m": 7, "k": 13, "n": 53},
        {"x": shaped(lambda d: (d["m"], 4 * d["k"]), F16), "packed": of("n k", BYTES),
         "scale": of("n", between(0.01, 0.02))}, ternary_linear, slack=1e-2)
seventh("base64_encode", {"n": 30000001}, {"n": 203}, {"x": shaped(lambda d: (3 * d["n"],), BYTES)}, base64_encode,
        slack=0.0)

# Tables.


def factorization_machine(d, id, table, weight, bias):
    rows = F.embedding(id, table)
    pairs = (rows.sum(1).square() - rows.square().sum(1)).sum(1)
    return torch.sigmoid(bias + weight[id].sum(1) + 0.5 * pairs)


def scatter_tokens(d, x, slot, weight, y, gate):
    y.index_copy_(0, slot.flatten().long(), x.repeat_interleave(4, 0))
    gate.index_copy_(0, slot.flatten().long(), weight.flatten())
    return y, gate


def hash_grid_encoding(d, at, table, resolution):
    place = at[:, None] * resolution[:, None]
    low = place.floor()
    part, low = place - low, low.long()
    level = torch.arange(d["levels"], device=at.device)
    y = 0.0
    for corner in range(8):
        weight, key = 1.0, 0
        for axis, prime in enumerate((1, 2654435761, 805459861)):
            bit = corner >> axis & 1
            weight = weight * (part[..., axis] if bit else 1 - part[..., axis])
            key = (low[..., axis] + bit) * prime & 0xFFFFFFFF ^ key
        y = y + weight[..., None] * table[level, key % d["size"]]
    return y.half()


def some_places(shape, dims, device):
    """Different places for all, in no order, some of all that there are."""
    return torch.randperm(dims["slots"], device=device, dtype=INT)[: math.prod(shape)].view(shape)


def resolutions(shape, dims, device):
    return (16 * 1.4 ** torch.arange(shape[0], device=device)).int()


seventh("factorization_machine", {"b": 65536, "fields": 39, "v": 1000003, "d": 16},
        {"b": 37, "fields": 7, "v": 53, "d": 5},
        {"id": of("b fields", (INT, "v")), "table": of("v d", between(-0.2, 0.2)),
         "weight": of("v", between(-0.2, 0.2))},
        lambda d, *given: factorization_machine(d, *given, 0.1), values={"bias": 0.1})
seventh("scatter_tokens", {"t": 20000, "d": 1024, "slots": 84000}, {"t": 37, "d": 29, "slots": 203},
        {"x": of("t d", HALF), "slot": of("t 4", some_places), "weight": of("t 4"), "y": of("slots d", HALF),
         "gate": of("slots")}, scatter_tokens, results=("y", "gate"), slack=0.0)
seventh("hash_grid_encoding", {"n": 200003, "levels": 16, "size": 524288}, {"n": 53, "levels": 5, "size": 256},
        {"at": of("n", Record("x", "y", "z", low=0.0)), "table": of("levels size 2", F16),
         "resolution": of("levels", resolutions)}, hash_grid_encoding, slack=5e-3)
