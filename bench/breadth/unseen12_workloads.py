"""Workloads of `breadth.py`, a twelfth set: inference, training, images, simulation, graphs, statistics, genomes."""

import math

import torch
import torch.nn.functional as F
from unseen3_workloads import F16, INT, between, integers, shaped
from unseen4_workloads import lengths, narrow
from unseen5_workloads import BYTES
from unseen8_workloads import VECTORS, doubled, narrow_weights
from unseen11_workloads import WORKLOADS
from unseen_workloads import HALF, Record, add, of


def twelfth(name, dims, small, arrays, peer, **more):
    add("unseen_12.krn", name, dims, small, arrays, peer, **more)


WORDS = integers(-(2**31), 2**31 - 1, INT)

# Inference.


def awq_linear(d, x, q, zero, scale):
    shift = torch.tensor([0, 16, 4, 20, 8, 24, 12, 28], dtype=INT, device=x.device)
    code = ((q[..., None] >> shift) & 15).flatten(1).unflatten(0, (d["g"], 128))
    low = ((zero[..., None] >> shift) & 15).flatten(1)[:, None]
    return x @ ((code - low) * scale[:, None]).flatten(0, 1)


def three_bit_linear(d, x, plane, scale, low):
    planes = (plane[..., None] >> torch.arange(32, dtype=INT, device=x.device)) & 1
    code = planes[:, :, 0] + 2 * planes[:, :, 1] + 4 * planes[:, :, 2]
    return F.linear(x, (low[..., None] + scale[..., None] * code).flatten(1)).float()


def cross_attention_padded(d, q, k, v, length):
    seen = torch.arange(d["s"], device=q.device) < length[:, None]
    o = F.scaled_dot_product_attention(
        q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), attn_mask=seen[:, None, None], scale=0.125
    )
    return o.transpose(1, 2)


def t5_bias_attention(d, q, k, v, table):
    at = torch.arange(d["t"], device=q.device)
    away = at - at[:, None]
    far = 8 + (torch.log(away.abs().clamp(min=1).float() / 8) / math.log(16) * 8).long()
    bucket = torch.where(away.abs() < 8, away.abs(), far.clamp(max=15)) + 16 * (away > 0)
    bias = table.to(HALF).T[:, bucket]
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias[None], scale=1.0)


def differential_attention(d, q, k, v):
    both = F.scaled_dot_product_attention(
        q.transpose(0, 1), k.transpose(0, 1), v.expand(2, -1, -1, -1), is_causal=True, scale=0.1
    ).float()
    return F.rms_norm(both[0] - 0.6 * both[1], (d["e"],), eps=1e-5).to(HALF)


def linear_attention(d, q, k, v):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    state = torch.bmm(k.mT, v)
    below = torch.bmm(q, k.sum(1, dtype=torch.float32).to(HALF)[..., None])
    return torch.bmm(q, state) / (below + 1e-6)


def router_backward(d, logit, choice, dgate, balance):
    p = logit.softmax(1)
    dp = balance.expand_as(p).scatter_add(1, choice.long(), dgate)
    return torch.ops.aten._softmax_backward_data(dp, p, 1, torch.float32)


def relative_bias_gradient(d, ds):
    at = torch.arange(49, device=ds.device)
    row, column = at // 7, at % 7
    place = (row[:, None] - row + 6) * 13 + column[:, None] - column + 6
    return torch.zeros(169, d["heads"], device=ds.device).index_add_(
        0, place.flatten(), ds.sum(0, dtype=torch.float32).flatten(1).T
    )


twelfth(
    "awq_linear",
    {"m": 24, "g": 64, "c": 3584},
    {"m": 3, "g": 2, "c": 7},
    {
        "x": shaped(lambda d: (d["m"], 128 * d["g"]), F16),
        "q": shaped(lambda d: (128 * d["g"], d["c"]), WORDS),
        "zero": of("g c", WORDS),
        "scale": doubled("g 8c", narrow(between(0.0002, 0.001), F16)),
    },
    awq_linear,
    slack=5e-2,
)
twelfth(
    "three_bit_linear",
    {"m": 2, "n": 28672, "g": 256},
    {"m": 2, "n": 29, "g": 5},
    {
        "x": shaped(lambda d: (d["m"], 32 * d["g"]), F16),
        "plane": of("n g 3", WORDS),
        "scale": of("n g", narrow(between(0.001, 0.004), F16)),
        "low": of("n g", narrow(between(-0.02, 0.0), F16)),
    },
    three_bit_linear,
    slack=5e-2,
)
twelfth(
    "cross_attention_padded",
    {"b": 16, "t": 1500, "s": 400, "heads": 16, "d": 64},
    {"b": 3, "t": 17, "s": 29, "heads": 2, "d": 13},
    {
        "q": of("b t heads d", HALF),
        "k": of("b s heads d", HALF),
        "v": of("b s heads d", HALF),
        "length": of("b", lengths("s")),
    },
    cross_attention_padded,
    results=("o",),
    values={"scale": 0.125},
    slack=2e-2,
)
twelfth(
    "t5_bias_attention",
    {"b": 4, "heads": 12, "t": 1900, "d": 64},
    {"b": 2, "heads": 3, "t": 203, "d": 13},
    {
        "q": of("b heads t d", narrow(between(-0.5, 0.5), HALF)),
        "k": of("b heads t d", HALF),
        "v": of("b heads t d", HALF),
        "table": of("32 heads"),
    },
    t5_bias_attention,
    results=("o",),
    slack=3e-2,
)
twelfth(
    "differential_attention",
    {"heads": 16, "t": 3000, "d": 64, "e": 128},
    {"heads": 3, "t": 37, "d": 13, "e": 16},
    {"q": of("heads 2 t d", HALF), "k": of("heads 2 t d", HALF), "v": of("heads t e", HALF)},
    differential_attention,
    results=("o",),
    values={"scale": 0.1, "lambda": 0.6},
    slack=5e-2,
)
twelfth(
    "linear_attention",
    {"heads": 128, "t": 4000, "d": 64, "e": 64},
    {"heads": 3, "t": 203, "d": 13, "e": 11},
    {"q": of("heads t d", HALF), "k": of("heads t d", HALF), "v": of("heads t e", HALF)},
    linear_attention,
    results=("o",),
    slack=2e-2,
)
twelfth(
    "router_backward",
    {"t": 200000, "experts": 64, "k": 6},
    {"t": 203, "experts": 33, "k": 3},
    {
        "logit": of("t experts"),
        "choice": of("t k", lambda shape, dims, device: torch.randint(0, dims["experts"], shape, device=device, dtype=INT)),
        "dgate": of("t k"),
        "balance": of("experts"),
    },
    router_backward,
    results=("dlogit",),
)
twelfth(
    "relative_bias_gradient",
    {"windows": 4096, "heads": 12},
    {"windows": 20, "heads": 3},
    {"ds": of("windows heads 49 49", HALF)},
    relative_bias_gradient,
    results=("dtable",),
    slack=5e-2,
)

# Training.


def cross_entropy_z_loss(d, x, label):
    wide, label = x.float(), label.long()
    lse = wide.logsumexp(1)
    cost = lse - wide.gather(1, label[:, None])[:, 0] + 1e-4 * lse * lse
    dx = (wide - lse[:, None]).exp_().mul_((1 + 2e-4 * lse)[:, None])
    dx.scatter_add_(1, label[:, None], torch.full_like(lse, -1.0)[:, None])
    return cost.mean(), (dx / d["t"]).to(HALF)


def siglip_loss(d, x, y):
    z = (x @ y.T).float() * 8.0 - 2.0
    own = torch.eye(d["n"], dtype=torch.bool, device=x.device)
    loss = F.softplus(torch.where(own, -z, z)).sum() / d["n"]
    g = (torch.sigmoid(z) - own.float()).to(HALF)
    return loss, (g @ y).float() * (8.0 / d["n"])


def instance_norm_backward(d, x, dy, mean, rstd, gain):
    hat = (x - mean[..., None]) * rstd[..., None]
    shift, along = dy.sum(2), (dy * hat).sum(2)
    dx = (gain * rstd)[..., None] * (dy - (shift[..., None] + hat * along[..., None]) / d["p"])
    return dx, along.sum(0), shift.sum(0)


def lars_step(d, w, g, m):
    weights, slope = torch.linalg.vector_norm(w), torch.linalg.vector_norm(g)
    trust = torch.where((weights > 0) & (slope > 0), 0.001 * weights / (slope + 1e-4 * weights), 1.0)
    m.mul_(0.9).add_(torch.add(g, w, alpha=1e-4) * (0.1 * trust))
    w.sub_(m)
    return w, m


def gru_step(d, x, h, wx, wh, bx, bh):
    from_x = F.linear(x, wx.flatten(0, 1)).float().unflatten(1, (3, d["n"])) + bx
    from_h = F.linear(h, wh.flatten(0, 1)).float().unflatten(1, (3, d["n"])) + bh
    reset, keep = torch.sigmoid(from_x[:, :2] + from_h[:, :2]).unbind(1)
    new = torch.tanh(from_x[:, 2] + reset * from_h[:, 2])
    return ((1 - keep) * new + keep * h).to(HALF)


def ngram_embedding(d, token, word, pair, triple):
    ones = 0xFFFFFFFF
    one = token.long()
    two, three = F.pad(one, (1, 0))[:, :-1], F.pad(one, (2, 0))[:, :-2]
    both = (one * 1000003 + two) & ones
    all3 = (both * 1000003 + three) & ones
    return (word[one].float() + pair[both % d["m"]] + triple[all3 % d["m"]]).to(HALF)


def words(shape, dims, device):
    return torch.randint(0, dims["words"], shape, device=device, dtype=INT)


def classes(shape, dims, device):
    return torch.randint(0, dims["v"], shape, device=device, dtype=INT)


twelfth(
    "cross_entropy_z_loss",
    {"t": 4096, "v": 50257},
    {"t": 13, "v": 301},
    {"x": of("t v", HALF), "label": of("t", classes)},
    cross_entropy_z_loss,
    results=("loss", "dx"),
    values={"penalty": 1e-4},
    slack=2e-3,
)
twelfth(
    "siglip_loss",
    {"n": 4000, "d": 768},
    {"n": 53, "d": 29},
    {"x": of("n d", narrow_weights(HALF)), "y": of("n d", narrow_weights(HALF))},
    siglip_loss,
    results=("loss", "dx"),
    values={"scale": 8.0, "bias": -2.0},
    slack=5e-3,
)
twelfth(
    "instance_norm_backward",
    {"b": 32, "c": 64, "p": 12656},
    {"b": 3, "c": 5, "p": 203},
    {"x": of("b c p"), "dy": of("b c p"), "mean": of("b c"), "rstd": of("b c", "positive"), "gain": of("c")},
    instance_norm_backward,
    results=("dx", "dgain", "dshift"),
    slack=2e-3,
)
twelfth(
    "lars_step",
    {"n": 25000001},
    {"n": 1003},
    {"w": of("n"), "g": of("n"), "m": of("n")},
    lars_step,
    results=("w", "m"),
    values={"rate": 0.1, "decay": 1e-4},
)
twelfth(
    "gru_step",
    {"b": 2000, "k": 1024, "n": 1500},
    {"b": 17, "k": 29, "n": 37},
    {
        "x": of("b k", HALF),
        "h": of("b n", HALF),
        "wx": of("3 n k", narrow(between(-0.03, 0.03), HALF)),
        "wh": of("3 n n", narrow(between(-0.03, 0.03), HALF)),
        "bx": of("3 n"),
        "bh": of("3 n"),
    },
    gru_step,
    slack=2e-2,
)
twelfth(
    "ngram_embedding",
    {"b": 16, "t": 2048, "words": 50257, "m": 100003, "d": 768},
    {"b": 3, "t": 17, "words": 101, "m": 53, "d": 29},
    {"token": of("b t", words), "word": of("words d", HALF), "pair": of("m d", HALF), "triple": of("m d", HALF)},
    ngram_embedding,
    slack=2e-2,
)

# Statistics.


def logistic_newton_terms(d, x, label, beta):
    p = torch.sigmoid(x @ beta)
    return x.T @ (p - label), x.T @ ((p * (1 - p))[:, None] * x)


def hsic(d, x, y):
    k, l = (torch.exp(-0.5 * torch.cdist(v, v).square()) for v in (x, y))
    row = k.mean(1)
    return ((k - row[:, None] - row + row.mean()) * l).sum() / (d["n"] - 1) ** 2


twelfth(
    "logistic_newton_terms",
    {"n": 200003, "k": 97},
    {"n": 203, "k": 13},
    {"x": of("n k"), "label": of("n", integers(0, 2, torch.uint8)), "beta": of("k", between(-0.2, 0.2))},
    logistic_newton_terms,
    results=("gradient", "hessian"),
    slack=5e-3,
)
twelfth(
    "hsic",
    {"n": 5001, "d": 16, "e": 16},
    {"n": 53, "d": 7, "e": 5},
    {"x": of("n d"), "y": of("n e")},
    hsic,
    results=("h",),
    values={"wide": 0.5, "high": 0.5},
    slack=1e-4,
)

# Images.


def kuwahara_filter(d, x):
    p = F.pad(x[None, None], (2, 2, 2, 2), mode="replicate")
    # Corners of 3 x 3 begin at 0 and at 2 of each pixel's 5 x 5.
    mean, square = F.avg_pool2d(p, 3, 1)[0, 0], F.avg_pool2d(p * p, 3, 1)[0, 0]
    spread = square - mean * mean
    corners = [(slice(a, a + d["h"]), slice(b, b + d["w"])) for a in (0, 2) for b in (0, 2)]
    means, spreads = (torch.stack([t[c] for c in corners]) for t in (mean, spread))
    return means.gather(0, spreads.argmin(0, keepdim=True))[0]


def clahe_apply(d, x, table):
    def side(size):
        at = (torch.arange(size, device=x.device) + 0.5) * 8.0 / size - 0.5
        low = at.floor()
        return at - low, low.long().clamp(0, 7), (low.long() + 1).clamp(0, 7)

    fy, r0, r1 = (t[:, None] for t in side(d["h"]))
    fx, c0, c1 = side(d["w"])
    n, v = torch.arange(d["n"], device=x.device)[:, None, None], x.long()
    above = (1 - fx) * table[n, r0, c0, v] + fx * table[n, r0, c1, v]
    below = (1 - fx) * table[n, r1, c0, v] + fx * table[n, r1, c1, v]
    return ((1 - fy) * above + fy * below + 0.5).clamp(0, 255).to(torch.uint8)


def lab_of_rgb(d, rgb):
    v = rgb.float() / 255
    v = torch.where(v <= 0.04045, v / 12.92, ((v + 0.055) / 1.055) ** 2.4)
    white = torch.tensor([0.950456, 1.0, 1.088754], device=v.device)
    mix = [[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]]
    t = v @ torch.tensor(mix, device=v.device).T / white
    t = torch.where(t > 0.008856, t.clamp(min=1e-6) ** (1 / 3), 7.787 * t + 16 / 116)
    x, y, z = t.unbind(1)
    return torch.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], 1)


def otsu_threshold(d, x):
    image = torch.arange(d["n"], device=x.device)[:, None] * 256
    places = (x.flatten(1).int() + image).flatten()
    count = torch.bincount(places, minlength=256 * d["n"]).view(d["n"], 256).float()
    total, b = float(d["h"] * d["w"]), torch.arange(256, device=x.device)
    below, weight = count.cumsum(1), (b * count).cumsum(1)
    away = total * weight - below * weight[:, -1:]
    between = torch.where((below > 0) & (below < total), away * away / (below * (total - below)), 0.0)
    threshold = between.argmax(1).to(INT)
    return threshold, torch.where(x > threshold[:, None, None], 255, 0).to(torch.uint8)


def pyramid_down(d, x):
    taps = torch.tensor([1.0, 4.0, 6.0, 4.0, 1.0], device=x.device)
    p = F.pad(x.permute(2, 0, 1)[:, None].float(), (2, 2, 2, 2), mode="replicate")
    s = F.conv2d(F.conv2d(p, taps.view(1, 1, 5, 1), stride=(2, 1)), taps.view(1, 1, 1, 5), stride=(1, 2))
    return ((s[:, 0] + 128) / 256).floor().to(torch.uint8).permute(1, 2, 0).contiguous()


def integral_image(d, x):
    return x.cumsum(1, dtype=INT).cumsum(0, dtype=INT)


def nv12_of_rgb(d, rgb):
    v = rgb.int()
    r, g, b = v.unbind(-1)
    luma = ((66 * r + 129 * g + 25 * b + 128 >> 8) + 16).to(torch.uint8)
    fours = v.unflatten(1, (d["h"], 2)).unflatten(3, (d["w"], 2)).sum((2, 4), dtype=INT)
    r, g, b = fours.unbind(-1)
    blue = (112 * b - 38 * r - 74 * g + 512 >> 10) + 128
    red = (112 * r - 94 * g - 18 * b + 512 >> 10) + 128
    return luma, torch.stack([blue, red], -1).to(torch.uint8)


def two_humps(shape, dims, device):
    """Bytes of a dark ground and of bright things on it."""
    bright = torch.rand(shape, device=device) < 0.3
    return (70 + 90 * bright + 20 * torch.randn(shape, device=device)).clamp(0, 255).to(torch.uint8)


def in_two_axes(names):
    return doubled(names, BYTES)


twelfth(
    "kuwahara_filter",
    {"h": 4320, "w": 7681},
    {"h": 37, "w": 53},
    {"x": of("h w")},
    kuwahara_filter,
    slack=1e-3,
)
twelfth(
    "clahe_apply",
    {"n": 4, "h": 4000, "w": 6001},
    {"n": 2, "h": 37, "w": 53},
    {"x": of("n h w", BYTES), "table": of("n 8 8 256", BYTES)},
    clahe_apply,
    slack=1.0,
)
twelfth(
    "lab_of_rgb",
    {"n": 16588801},
    {"n": 1003},
    {"rgb": of("n 3", BYTES)},
    lab_of_rgb,
    results=("lab",),
    slack=2e-2,
)
twelfth(
    "otsu_threshold",
    {"n": 32, "h": 1080, "w": 1920},
    {"n": 3, "h": 37, "w": 53},
    {"x": of("n h w", two_humps)},
    otsu_threshold,
    results=("threshold", "y"),
)
twelfth(
    "pyramid_down",
    {"h": 2160, "w": 3840},
    {"h": 19, "w": 27},
    {"x": in_two_axes("2h 2w 3")},
    pyramid_down,
)
twelfth(
    "integral_image",
    {"h": 4000, "w": 6001},
    {"h": 37, "w": 53},
    {"x": of("h w", BYTES)},
    integral_image,
)
twelfth(
    "nv12_of_rgb",
    {"n": 12, "h": 540, "w": 960},
    {"n": 2, "h": 19, "w": 27},
    {"rgb": in_two_axes("n 2h 2w 3")},
    nv12_of_rgb,
    results=("luma", "chroma"),
)

# Genomes, simulation, finance, graphs, signals, points.


def kmer_counts(d, base):
    v = base.short()
    word = v[:, :-3]
    for k in range(1, 4):
        word = word << 2 | v[:, k : k + d["len"] - 3]
    return torch.bincount(word.flatten(), minlength=256).to(INT)


def grid_to_particles(d, at, grid):
    own = at.round()
    near = torch.arange(-1, 2, device=at.device)
    away = at[..., None] - (own[..., None] + near)
    far = away.abs()
    weight = torch.where(far < 0.5, 0.75 - far * far, 0.5 * (1.5 - far).square())
    x, y, z = (own.long()[..., None] + near).unbind(1)
    wx, wy, wz = weight.unbind(1)
    nodes = grid[z[:, :, None, None], y[:, None, :, None], x[:, None, None, :]]
    return torch.einsum("pk,pj,pi,pkjic->pc", wz, wy, wx, nodes)


def elastic_wave_2d(d, vx, vy, sxx, syy, sxy, buoyancy, stiff, mu):
    def left(t):
        return F.pad(t, (1, 0))[:, :-1]

    def right(t):
        return F.pad(t, (0, 1))[:, 1:]

    def above(t):
        return F.pad(t, (0, 0, 1, 0))[:-1]

    def below(t):
        return F.pad(t, (0, 0, 0, 1))[1:]

    vx.add_(buoyancy * (sxx - left(sxx) + sxy - above(sxy)), alpha=0.1)
    vy.add_(buoyancy * (right(sxy) - sxy + below(syy) - syy), alpha=0.1)
    ex, ey = right(vx) - vx, vy - above(vy)
    both = stiff * (ex + ey)
    sxx.add_(both + 2 * mu * ex, alpha=0.1)
    syy.add_(both + 2 * mu * ey, alpha=0.1)
    sxy.add_(mu * (below(vx) - vx + vy - left(vy)), alpha=0.1)
    return vx, vy, sxx, syy, sxy


def kuramoto_step(d, theta, omega):
    pull = torch.sin(theta - theta[:, None]).sum(1)
    return theta.add_(0.01 * (omega + 1.5 / d["n"] * pull))


def heston_call(d, z):
    dt = 1 / d["steps"]
    x, v = torch.zeros(d["n"], device=z.device), torch.full((d["n"],), 0.04, device=z.device)
    mixed = -0.7 * z[:, 0] + math.sqrt(1 - 0.49) * z[:, 1]
    for own, other in zip(z[:, 0], mixed):
        up = v.clamp(min=0)
        root = (up * dt).sqrt()
        x = x - 0.5 * dt * up + root * own
        v = v + 1.5 * dt * (0.04 - up) + 0.3 * root * other
    return (x.exp() - 1.0).clamp(min=0).mean()


def bellman_ford_round(d, start, to, length, far):
    return far.clone().scatter_reduce_(0, to.long(), far[start.long()] + length, "amin")


def edge_softmax_backward(d, to, y, dy):
    along = torch.zeros(500000, d["heads"], device=y.device).index_add_(0, to, y * dy)
    return y * (dy - along[to])


def linear_prediction(d, x, window):
    spectrum = torch.fft.rfft(x * window, 2 * d["len"])
    r = torch.fft.irfft(spectrum.abs().square(), 2 * d["len"])[:, :17]
    at = torch.arange(16, device=x.device)
    system = r[:, (at[:, None] - at).abs()] + 1e-6 * torch.eye(16, device=x.device)
    c = torch.linalg.solve(system, -r[:, 1:])
    a = torch.cat([torch.ones_like(c[:, :1]), c], 1)
    return a, (a * r).sum(1) + 1e-6


def three_interpolate(d, fine, coarse, feature):
    near, at = torch.cdist(fine, coarse, compute_mode="donot_use_mm_for_euclid_dist").topk(3, 2, largest=False)
    weight = 1 / (near.square() + 1e-8)
    weight = weight / weight.sum(2, keepdim=True)
    image = torch.arange(d["b"], device=fine.device)[:, None, None]
    return (weight[..., None] * feature[image, at]).sum(2)


def inside_grid(shape, dims, device):
    """Particles sorted by layers, far enough from the borders."""
    size = torch.tensor([dims["w"], dims["h"], dims["d"]], device=device)
    at = 1.6 + torch.rand((*shape, 3), device=device) * (size - 4.2)
    return at[at[:, 2].argsort()]


class Inside(Record):
    def __init__(self):
        super().__init__("x", "y", "z")

    def __call__(self, shape, dims, device):
        return inside_grid(shape, dims, device)


def nodes(shape, dims, device):
    return torch.randint(0, dims["n"], shape, device=device, dtype=INT)


def speech(shape, dims, device):
    t = torch.arange(shape[1], device=device)
    pitch = 0.05 + 0.2 * torch.rand((shape[0], 1), device=device)
    return torch.sin(pitch * t) + 0.3 * torch.randn(shape, device=device)


def hann(shape, dims, device):
    return torch.hann_window(shape[0], device=device)


twelfth(
    "kmer_counts",
    {"n": 1000000, "len": 151},
    {"n": 37, "len": 53},
    {"base": of("n len", integers(0, 4, torch.uint8))},
    kmer_counts,
    results=("count",),
)
twelfth(
    "grid_to_particles",
    {"n": 4000001, "d": 128, "h": 128, "w": 128},
    {"n": 203, "d": 9, "h": 11, "w": 13},
    {"at": of("n", Inside()), "grid": of("d h w", VECTORS)},
    grid_to_particles,
    results=("v",),
    slack=1e-3,
)
PLANE = of("h w")
twelfth(
    "elastic_wave_2d",
    {"h": 3001, "w": 4000},
    {"h": 37, "w": 53},
    {
        "vx": PLANE,
        "vy": PLANE,
        "sxx": PLANE,
        "syy": PLANE,
        "sxy": PLANE,
        "buoyancy": of("h w", "positive"),
        "lambda": of("h w", "positive"),
        "mu": of("h w", "positive"),
    },
    elastic_wave_2d,
    results=("vx", "vy", "sxx", "syy", "sxy"),
    values={"dt": 0.1},
)
twelfth(
    "kuramoto_step",
    {"n": 20001},
    {"n": 203},
    {"theta": of("n", between(-3.0, 3.0)), "omega": of("n")},
    kuramoto_step,
    results=("theta",),
    values={"coupling": 1.5, "dt": 0.01},
)
twelfth(
    "heston_call",
    {"steps": 252, "n": 100001},
    {"steps": 7, "n": 203},
    {"z": of("steps 2 n", lambda shape, dims, device: torch.randn(shape, device=device))},
    heston_call,
    results=("price",),
    values={"spot": 1.0, "strike": 1.0, "rho": -0.7},
)
twelfth(
    "bellman_ford_round",
    {"n": 1000000, "m": 16000000},
    {"n": 53, "m": 203},
    {"from": of("m", nodes), "to": of("m", nodes), "length": of("m", "positive"), "far": of("n", between(0.0, 10.0))},
    bellman_ford_round,
    results=("next",),
)
twelfth(
    "edge_softmax_backward",
    {"nnz": 8000000, "heads": 4},
    {"nnz": 203, "heads": 3},
    {"to": of("nnz", integers(0, 500000, INT)), "y": of("nnz heads", "positive"), "dy": of("nnz heads")},
    edge_softmax_backward,
    results=("dx",),
    values={"n": 500000},
    slack=1e-3,
)
twelfth(
    "linear_prediction",
    {"frames": 100001, "len": 400},
    {"frames": 37, "len": 203},
    {"x": of("frames len", speech), "window": of("len", hann)},
    linear_prediction,
    results=("a", "error"),
    slack=5e-2,
)
twelfth(
    "three_interpolate",
    {"b": 8, "n": 16384, "m": 2048, "c": 128},
    {"b": 2, "n": 37, "m": 29, "c": 13},
    {"fine": of("b n", VECTORS), "coarse": of("b m", VECTORS), "feature": of("b m c")},
    three_interpolate,
    slack=1e-3,
)
