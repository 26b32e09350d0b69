"""Workloads of `breadth.py`, an eighteenth set: layers, capsules, pages, trains of tensors, pictures, lattices, dates."""

import functools
import math

import torch
import torch.nn.functional as F
from unseen3_workloads import F16, INT, between, integers, shaped, weights
from unseen4_workloads import narrow
from unseen5_workloads import BYTES
from unseen17_workloads import LONG, WORKLOADS  # noqa: F401
from unseen_workloads import HALF, Record, add, of


def eighteenth(name, dims, small, arrays, peer, **more):
    add("unseen_18.krn", name, dims, small, arrays, peer, **more)


# Layers, losses and their gradients.


def sampled(mean, log_variance, noise):
    kl = 0.5 * (mean * mean + log_variance.exp() - 1 - log_variance).sum(1)
    return mean + (0.5 * log_variance).exp() * noise, kl


def dynamic_tanh_backward(d, x, dy, gain, alpha=0.7):
    x, dy = x.float(), dy.float()
    t = (alpha * x).tanh()
    inner = dy * gain * (1 - t * t)
    return (alpha * inner).to(HALF), (dy * t).sum(0), dy.sum(0), (inner * x).sum()


def capsule_round(d, u, logit):
    share = logit.softmax(2)
    pull = torch.einsum("nij,nijd->njd", share, u)
    square = pull.square().sum(2, keepdim=True)
    v = square / (1 + square) * (square + 1e-8).rsqrt() * pull
    logit += torch.einsum("nijd,njd->nij", u, v)
    return v, logit


def philox(block, seed):
    """Four random words of each block, 32 bits in numbers of 64."""
    ones = 0xFFFFFFFF
    a, b = block & ones, block >> 32
    c = e = torch.zeros_like(block)
    k, q = seed & ones, seed >> 32
    for _ in range(10):
        one, other = a * 0xD2511F53, c * 0xCD9E8D57
        a, b, c, e = (other >> 32 & ones) ^ b ^ k, other & ones, (one >> 32 & ones) ^ e ^ q, one & ones
        k, q = (k + 0x9E3779B9) & ones, (q + 0xBB67AE85) & ones
    return torch.stack([a, b, c, e], -1)


def dropout_bits(d, x, keep=0.9, seed=7):
    words = philox(torch.arange(x.numel() // 4, device=x.device), seed)
    stays = ((words >> 8).float() * 2.0**-24 < keep).view(d["n"], d["w"], 8)
    shift = torch.arange(8, dtype=torch.uint8, device=x.device)
    mask = (stays.to(torch.uint8) << shift).sum(2, dtype=torch.uint8)
    return torch.where(stays.view(x.shape), x / keep, 0), mask


def ordinal_loss(d, x, step, rank):
    z = x[:, None] + step
    passed = (torch.arange(d["k"], device=x.device) < rank[:, None]).float()
    slope = (z.sigmoid() - passed) / d["n"]
    loss = F.binary_cross_entropy_with_logits(z, passed, reduction="sum") / d["n"]
    return loss, slope.sum(1), slope.sum(0)


def adam_mini_step(d, p, m, v, g):
    lr, correction = 0.001, 0.9
    g = g.float()
    v.mul_(0.95).add_(g.square().mean(1), alpha=0.05)
    rate = lr / ((v / correction).sqrt() + 1e-8)
    m.copy_(0.9 * m.float() + 0.1 * g)
    p.mul_(1 - 0.1 * lr).sub_(rate[:, None] * m)
    return p, m, v


LATENTS, FEW_LATENTS = {"n": 30011, "d": 1000}, {"n": 37, "d": 53}
eighteenth(
    "vae_sample",
    LATENTS,
    FEW_LATENTS,
    {"stats": shaped(lambda d: (d["n"], 2 * d["d"])), "noise": of("n d")},
    lambda d, stats, noise: sampled(*stats.chunk(2, 1), noise),
    results=("z", "kl"),
    slack=1e-3,
)
eighteenth(
    "vae_sample_b",
    LATENTS,
    FEW_LATENTS,
    {"stats": of("n d", Record("mean", "log_variance")), "noise": of("n d")},
    lambda d, stats, noise: sampled(*stats.unbind(2), noise),
    results=("z", "kl"),
    slack=1e-3,
)
eighteenth(
    "vae_sample_c",
    LATENTS,
    FEW_LATENTS,
    {"stats": of("n 2 d"), "noise": of("n d")},
    lambda d, stats, noise: sampled(*stats.unbind(1), noise),
    results=("z", "kl"),
    slack=1e-3,
)
for name in ("dynamic_tanh_backward", "dynamic_tanh_backward_b", "dynamic_tanh_backward_c"):
    eighteenth(
        name,
        {"n": 30011, "c": 2304},
        {"n": 203, "c": 37},
        {"x": of("n c", HALF), "dy": of("n c", HALF), "gain": of("c")},
        dynamic_tanh_backward,
        results=("dx", "dgain", "dshift", "dalpha"),
        values={"alpha": 0.7},
        slack=2e-2,
    )
for name in ("capsule_round", "capsule_round_b", "capsule_round_c"):
    eighteenth(
        name,
        {"n": 301, "i": 1152, "j": 10, "d": 16},
        {"n": 5, "i": 53, "j": 7, "d": 9},
        {"u": of("n i j d"), "logit": of("n i j")},
        capsule_round,
        results=("v", "logit"),
        slack=1e-3,
    )
eighteenth(
    "dropout_bits",
    {"n": 20000, "w": 625},
    {"n": 37, "w": 13},
    {"x": shaped(lambda d: (d["n"], 8 * d["w"]), F16)},
    dropout_bits,
    results=("y", "mask"),
    values={"keep": 0.9, "seed": 7},
    slack=1e-2,
)
eighteenth(
    "ordinal_loss",
    {"n": 10000019, "k": 9},
    {"n": 403, "k": 5},
    {
        "x": of("n"),
        "step": of("k"),
        "rank": shaped(
            lambda d: (d["n"],),
            lambda shape, dims, device: torch.randint(0, dims["k"] + 1, shape, device=device, dtype=torch.uint8),
        ),
    },
    ordinal_loss,
    results=("loss", "dx", "dstep"),
)
eighteenth(
    "adam_mini_step",
    {"r": 50257, "c": 768},
    {"r": 53, "c": 37},
    {"p": of("r c"), "m": of("r c", HALF), "v": of("r", "positive"), "g": of("r c", HALF)},
    adam_mini_step,
    results=("p", "m", "v"),
    values={"lr": 0.001, "correction": 0.9},
    slack=1e-3,
)


# Inference.


def paged_dequantize(d, page, scale, table, length):
    y = page[table].float() * scale[table].unsqueeze(-1)
    y = y.flatten(1, 2)
    live = torch.arange(16 * d["m"], device=page.device) < length[:, None]
    return torch.where(live[..., None, None], y, 0).to(HALF)


def paged_dequantize_b(d, page, scale, table, length):
    return paged_dequantize(d, page, scale, table, length).unflatten(1, (d["m"], 16))


def paged_dequantize_c(d, page, scale, table, length):
    return paged_dequantize(d, page.unflatten(2, (d["h"], 64)), scale, table, length).flatten(2)


def merge_attention(d, o, lse):
    total = lse.logsumexp(0)
    share = (lse - total).exp()
    return (share[..., None] * o).sum(0).to(HALF), total


def eta_probabilities(d, x, low=0.002):
    logp = x.log_softmax(1, dtype=torch.float32)
    p = logp.exp()
    entropy = -(p * logp).sum(1, keepdim=True)
    keeps = p >= (math.sqrt(low) * (-entropy).exp()).clamp(max=low)
    p = torch.where(keeps, p, 0)
    return p / p.sum(1, keepdim=True), keeps.sum(1, dtype=INT)


@functools.cache
def powers_of_three(device):
    return torch.tensor([1, 3, 9, 27, 81], dtype=torch.uint8, device=device)


def trits_unpack(d, x):
    return ((x[..., None] // powers_of_three(x.device) % 3).to(torch.int8) - 1).flatten(1)


def monarch_product(d, x, left, right):
    u = torch.bmm(x.transpose(0, 1), left.mT)
    return torch.bmm(u.permute(2, 1, 0), right.mT).transpose(0, 1).contiguous()


def tensor_train_rows(d, token, first, second, third):
    b, c, r = d["b"], d["c"], d["r"]
    i, j, k = token // (b * c), token // c % b, token % c
    part = torch.bmm(first[i], second[j].flatten(2))
    return torch.bmm(part.view(-1, 64, r), third[k]).view(-1, 8, 8, 12)


def equivariant_product(d, x, y, w, rule):
    return w[..., None] * torch.bmm(x, torch.einsum("nj,ijk->nik", y, rule))


def paged(name, page, y, **more):
    eighteenth(
        name,
        {"b": 96, "m": 125, "p": 12001, "h": 8, **more},
        {"b": 3, "m": 5, "p": 17, "h": 2, **more},
        {
            "page": (page, integers(-127, 128, torch.int8)),
            "scale": of("p 16 h", narrow(between(0.01, 0.02), F16)),
            "table": of("b m", (INT, "p")),
            "length": of("b", up_to_pages),
        },
        y,
        slack=1e-2,
    )


def up_to_pages(shape, dims, device):
    """How many tokens requests have."""
    return torch.randint(0, 16 * dims["m"] + 1, shape, device=device, dtype=INT)


def tokens_of_train(shape, dims, device):
    return torch.randint(0, dims["a"] * dims["b"] * dims["c"], shape, device=device, dtype=INT)


def by_last(shape, dims, device):
    """Blocks in proportion to what they sum over, their last axis."""
    return torch.randn(shape, device=device) / math.sqrt(shape[-1])


def few_rules(shape, dims, device):
    """Rules of which most are zero."""
    return torch.randn(shape, device=device) * (torch.rand(shape, device=device) < 0.3)


paged("paged_dequantize", of("p 16 h d")[0], paged_dequantize, d=64)
paged("paged_dequantize_b", of("p 16 h d")[0], paged_dequantize_b, d=64)
paged("paged_dequantize_c", lambda d: (d["p"], 16, 64 * d["h"]), paged_dequantize_c)
for name in ("merge_attention", "merge_attention_c"):
    eighteenth(
        name,
        {"s": 12, "b": 1001, "h": 32, "d": 128},
        {"s": 5, "b": 3, "h": 4, "d": 24},
        {"o": of("s b h d"), "lse": of("s b h")},
        merge_attention,
        results=("y", "total"),
        slack=2e-2,
    )
eighteenth(
    "merge_attention_b",
    {"s": 12, "r": 32032, "d": 128},
    {"s": 5, "r": 12, "d": 24},
    {"o": of("s r d"), "lse": of("s r")},
    merge_attention,
    results=("y", "total"),
    slack=2e-2,
)
eighteenth(
    "eta_probabilities",
    {"b": 500, "v": 50257},
    {"b": 7, "v": 203},
    {"x": of("b v", HALF)},
    eta_probabilities,
    results=("y", "kept"),
    values={"low": 0.002},
)
eighteenth("trits_unpack", {"n": 20003, "k": 2000}, {"n": 37, "k": 53}, {"x": of("n k", BYTES)}, trits_unpack)
eighteenth(
    "monarch_product",
    {"n": 20011, "p": 48, "q": 48, "s": 48, "o": 64},
    {"n": 37, "p": 16, "q": 24, "s": 16, "o": 40},
    {
        "x": of("n p q", F16),
        "left": of("p s q", narrow(by_last, F16)),
        "right": of("s o p", narrow(by_last, F16)),
    },
    monarch_product,
    slack=2e-2,
)
eighteenth(
    "tensor_train_rows",
    {"n": 50003, "a": 37, "b": 37, "c": 37, "r": 16},
    {"n": 203, "a": 5, "b": 7, "c": 3, "r": 5},
    {
        "token": of("n", tokens_of_train),
        "first": of("a 8 r"),
        "second": of("b r 8 r", weights),
        "third": of("c r 12"),
    },
    tensor_train_rows,
    slack=1e-3,
)
for name in ("equivariant_product", "equivariant_product_b"):
    eighteenth(
        name,
        {"n": 100003, "u": 64, "i": 5, "j": 5, "k": 5},
        {"n": 53, "u": 7, "i": 5, "j": 3, "k": 5},
        {"x": of("n u i"), "y": of("n j"), "w": of("n u"), "rule": of("i j k", few_rules)},
        equivariant_product,
        results=("z",),
        slack=1e-3,
    )
eighteenth(
    "equivariant_product_c",
    {"n": 100003, "u": 64},
    {"n": 53, "u": 7},
    {"x": shaped(lambda d: (d["n"], 5 * d["u"])), "y": of("n 5"), "w": of("n u"), "rule": of("5 5 5", few_rules)},
    lambda d, x, y, w, rule: equivariant_product(d, x.unflatten(1, (-1, 5)), y, w, rule).flatten(1),
    results=("z",),
    slack=1e-3,
)


# Pictures.


def colour_matrix(d, x, matrix, curve):
    # The sums are whole numbers below 2 ** 24.
    light = (x.view(-1, 3).float() @ matrix.float().T).to(INT) + 512 >> 10
    return curve[light.clamp(0, 1023)].view(x.shape)


def png_filter(d, x):
    p = F.pad(x, (0, 0, 1, 0, 1, 0)).short()
    left, above, corner = p[1:, :-1], p[:-1, 1:], p[:-1, :-1]
    guess = left + above - corner
    a, b, c = (guess - left).abs(), (guess - above).abs(), (guess - corner).abs()
    paeth = torch.where((a <= b) & (a <= c), left, torch.where(b <= c, above, corner))
    guesses = (torch.zeros_like(left), left, above, left + above >> 1, paeth)
    ways = [x - one.to(torch.uint8) for one in guesses]
    cost = torch.stack([one.view(torch.int8).short().abs_().sum((1, 2)) for one in ways])
    # Among equals the first.
    kind = (cost * 8 + torch.arange(5, device=x.device)[:, None]).amin(0) & 7
    row = kind[:, None, None]
    y = ways[0]
    for k in range(1, 5):
        y = torch.where(row == k, ways[k], y)
    return y, kind.to(torch.uint8)


# fmt: off
ZIGZAG = (
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28,
    35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55,
    62, 63,
)
# fmt: on


@functools.cache
def zigzag(device):
    return torch.tensor(ZIGZAG, device=device)


def zigzag_quantize(d, x, table):
    y = (x / table + 0.5).floor().to(torch.int16).flatten(1).index_select(1, zigzag(x.device))
    place = torch.arange(1, 65, dtype=torch.uint8, device=x.device)
    return y, torch.where(y != 0, place, 0).amax(1)


def summed_volume(d, x):
    return x.cumsum(2, dtype=INT).cumsum(1, dtype=INT).cumsum(0, dtype=INT)


for name, dims, small, x in (
    ("colour_matrix", {"h": 4320, "w": 7680}, {"h": 37, "w": 53}, of("h w 3", BYTES)),
    ("colour_matrix_b", {"n": 33177600}, {"n": 1961}, of("n", "pixel")),
    ("colour_matrix_c", {"h": 4320, "w": 7680}, {"h": 37, "w": 53}, shaped(lambda d: (d["h"], 3 * d["w"]), BYTES)),
):
    eighteenth(
        name,
        dims,
        small,
        {"x": x, "matrix": of("3 3", integers(-2048, 6144, torch.int16)), "curve": of("1024", BYTES)},
        colour_matrix,
    )
eighteenth(
    "png_filter",
    {"h": 6001, "w": 8000, "c": 3},
    {"h": 17, "w": 53, "c": 3},
    {"x": of("h w c", BYTES)},
    png_filter,
    results=("y", "kind"),
)
eighteenth(
    "zigzag_quantize",
    {"n": 800003},
    {"n": 103},
    {"x": of("n 8 8", between(-60.0, 60.0)), "table": of("8 8", integers(8, 101, torch.uint8))},
    zigzag_quantize,
    results=("y", "used"),
)
eighteenth(
    "summed_volume",
    {"d": 301, "h": 503, "w": 601},
    {"d": 13, "h": 17, "w": 21},
    {"x": of("d h w", BYTES)},
    summed_volume,
)


# Geometry.


def spread(v):
    v = (v | v << 16) & 0x030000FF
    v = (v | v << 8) & 0x0300F00F
    v = (v | v << 4) & 0x030C30C3
    return (v | v << 2) & 0x09249249


def morton_codes(d, p):
    low, high = p.amin(0), p.amax(0)
    cell = (1024 * ((p - low) / (high - low).clamp(min=1e-9))).to(INT).clamp(0, 1023)
    x, y, z = spread(cell).unbind(1)
    return x << 2 | y << 1 | z, low, high


def project_ellipsoids(d, p, turn, size, view, focal=800.0):
    w, x, y, z = (turn * (turn.square().sum(1, keepdim=True) + 1e-12).rsqrt()).unbind(1)
    rows = (
        1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
        2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
        2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
    )  # fmt: skip
    rotation = torch.stack(rows, 1).view(-1, 3, 3)
    seen = torch.addmm(view[:, 3], p, view[:, :3].T)
    depth = seen[:, 2:].clamp(min=0.2)
    # Rows of the view, as the camera's slope at each point takes them.
    lens = focal / depth[..., None] * (view[None, :2, :3] - (seen[:, :2] / depth)[..., None] * view[2, :3])
    axis = torch.bmm(lens, rotation) * size[:, None]
    a, b = axis.unbind(1)
    xx, xy, yy = 0.3 + (a * a).sum(1), (a * b).sum(1), 0.3 + (b * b).sum(1)
    area, middle = xx * yy - xy * xy, 0.5 * (xx + yy)
    widest = middle + (middle * middle - area).clamp(min=0.1).sqrt()
    conic = torch.stack([yy, -xy, xx], 1) / area[:, None]
    radius = torch.where(seen[:, 2] > 0.2, (3 * widest.sqrt()).ceil(), 0).to(INT)
    return focal * seen[:, :2] / depth, conic, radius


def marching_cubes_cases(d, x, triangles, level=0.3):
    above = (x > level).to(torch.uint8)
    code = 0
    for a in range(2):
        for b in range(2):
            for c in range(2):
                corner = above[a : a + d["d"], b : b + d["h"], c : c + d["w"]]
                code = code | corner << 4 * a + 2 * b + c
    return code, triangles[code.to(INT)].sum()


def camera(shape, dims, device):
    """A camera that looks along the third axis from some way off."""
    view = torch.eye(3, 4, device=device) + 0.1 * torch.randn(shape, device=device)
    view[2, 3] += 4
    return view


for name, p in (
    ("morton_codes", of("n 3")),
    ("morton_codes_b", of("n", Record("x", "y", "z"))),
    ("morton_codes_c", of("3 n")),
):
    eighteenth(
        name,
        {"n": 20000003},
        {"n": 403},
        {"p": p},
        (lambda d, p: morton_codes(d, p.T)) if name.endswith("_c") else morton_codes,
        results=("code", "low", "high"),
    )
eighteenth(
    "project_ellipsoids",
    {"n": 5000003},
    {"n": 203},
    {
        "p": of("n 3", between(-1.0, 1.0)),
        "turn": of("n 4"),
        "size": of("n 3", between(0.01, 0.2)),
        "view": of("3 4", camera),
    },
    project_ellipsoids,
    results=("centre", "conic", "radius"),
    values={"focal": 800.0},
    slack=1e-2,
)
eighteenth(
    "marching_cubes_cases",
    {"d": 399, "h": 401, "w": 403},
    {"d": 13, "h": 17, "w": 21},
    {"x": of("d+1 h+1 w+1"), "triangles": of("256", integers(0, 6, torch.uint8))},
    marching_cubes_cases,
    results=("code", "total"),
    values={"level": 0.3},
)


# Simulation.


def plaquette_energy(d, u):
    u = torch.view_as_complex(u)
    link = [u[..., mu, :, :].contiguous() for mu in range(4)]
    total = 0
    for mu in range(3):
        for nu in range(mu + 1, 4):
            up = link[mu] @ link[nu].roll(-1, mu)
            down = link[nu] @ link[mu].roll(-1, nu)
            total = total + (torch.view_as_real(up) * torch.view_as_real(down)).sum((-3, -2, -1))
    energy = 1 - total / 18
    return energy, energy.mean()


def gas_round(d, x):
    moving, wall = x & 15, x & 16
    turned = (moving << 2 & 12) | moving >> 2
    after = torch.where(moving == 5, 10, torch.where(moving == 10, 5, moving))
    after = torch.where(wall != 0, turned, after).to(torch.uint8)
    up, down = after.roll(-1, 0) & 1, after.roll(1, 0) & 4
    right, left = after.roll(1, 1) & 2, after.roll(-1, 1) & 8
    return up | right | down | left | wall


class Links(Record):
    """Complex matrices that are not far from one."""

    def __init__(self):
        super().__init__("re", "im")

    def __call__(self, shape, dims, device):
        a = 0.2 * torch.randn((*shape, 2), device=device)
        a[..., 0].diagonal(dim1=-2, dim2=-1).add_(1)
        return a


eighteenth(
    "plaquette_energy",
    {"t": 40, "z": 24, "y": 24, "x": 28},
    {"t": 3, "z": 4, "y": 2, "x": 5},
    {"u": shaped(lambda d: (d["t"], d["z"], d["y"], d["x"], 4, 3, 3), Links())},
    plaquette_energy,
    results=("energy", "mean"),
    slack=1e-3,
)
eighteenth(
    "gas_round",
    {"h": 12001, "w": 16001},
    {"h": 37, "w": 53},
    {"x": of("h w", integers(0, 32, torch.uint8))},
    gas_round,
)


# Statistics.


def fading_covariance(d, x, decay=0.94):
    weight = decay ** torch.arange(d["t"] - 1, -1, -1, dtype=torch.float32, device=x.device)
    return torch.bmm((x * weight[:, None]).mT, x) / weight.sum()


def ordinal_patterns(d, x):
    t = d["t"]
    a, b, c, e = (x[:, k : k + t] for k in range(4))
    first = (b < a).to(INT) + (c < a).to(INT) + (e < a).to(INT)
    second = (c < b).to(INT) + (e < b).to(INT)
    order = (6 * first + 2 * second + (e < c).to(INT)).long()
    many = torch.zeros(d["n"], 24, dtype=INT, device=x.device)
    many.scatter_add_(1, order, torch.ones_like(order, dtype=INT))
    share = many / t
    return many, -torch.xlogy(share, share).sum(1)


eighteenth(
    "fading_covariance",
    {"b": 3001, "t": 250, "n": 30},
    {"b": 5, "t": 37, "n": 11},
    {"x": of("b t n")},
    fading_covariance,
    values={"decay": 0.94},
)
eighteenth(
    "ordinal_patterns",
    {"n": 20003, "t": 2000},
    {"n": 37, "t": 203},
    {"x": of("n t+3")},
    ordinal_patterns,
    results=("many", "entropy"),
)


# Tables, graphs, dates.


def hits_round(d, start, to, hub, authority):
    got = torch.zeros_like(hub).index_add_(0, to, hub.index_select(0, start))
    sent = torch.zeros_like(hub).index_add_(0, start, authority.index_select(0, to))
    return sent / sent.square().sum().sqrt().clamp(min=1e-12), got / got.square().sum().sqrt().clamp(min=1e-12)


def mixed(key):
    """A hash of 32 bits, in numbers of 64."""
    ones = 0xFFFFFFFF
    key = ((key ^ key >> 16) * 0x7FEB352D) & ones
    key = ((key ^ key >> 15) * 0x846CA68B) & ones
    return key ^ key >> 16


def cuckoo_lookup(d, key, slot, value):
    first = mixed(key.long())
    second = mixed((first + 0x9E3779B9) & 0xFFFFFFFF)
    bucket = torch.stack([first, second], 1) % d["m"]
    same = slot[bucket].flatten(1) == key[:, None]
    # Keys are in the table once, or more often with other values: the first counts.
    place = torch.where(same, torch.arange(8, device=key.device), 8).amin(1)
    there = place < 8
    held = value[bucket].flatten(1).gather(1, place.clamp(max=7)[:, None])[:, 0]
    return torch.where(there, held, -1), there.sum()


def civil_dates(d, day):
    z = day + 719468
    era = z.div(146097, rounding_mode="floor")
    z = z - era * 146097
    of_era = (z - z // 1460 + z // 36524 - z // 146096) // 365
    z = z - (365 * of_era + of_era // 4 - of_era // 100)
    shifted = (5 * z + 2) // 153
    month = torch.where(shifted < 10, shifted + 3, shifted - 9)
    year = of_era + era * 400 + (month <= 2).to(INT)
    of_month = z - (153 * shifted + 2) // 5 + 1
    byte = torch.uint8
    return year.to(torch.int16), month.to(byte), of_month.to(byte), ((day + 4) % 7).to(byte)


def filled_slots(shape, dims, device):
    """Keys below 8 m, in the first of their two buckets as long as there is room."""
    m = shape[0]
    key = torch.randperm(8 * m, device=device)[: 3 * m]
    bucket, order = (mixed(key) % m).sort()
    key = key[order]
    place = torch.arange(3 * m, device=device) - torch.searchsorted(bucket, bucket)
    fits = place < 4
    slot = torch.full((4 * m,), -1, dtype=INT, device=device)
    slot[(4 * bucket + place)[fits]] = key[fits].to(INT)
    return slot.view(shape)


eighteenth(
    "hits_round",
    {"m": 20000003, "n": 1000003},
    {"m": 403, "n": 53},
    {
        "from": of("m", (INT, "n")),
        "to": of("m", (INT, "n")),
        "hub": of("n", between(0.1, 1.0)),
        "authority": of("n", between(0.1, 1.0)),
    },
    hits_round,
    results=("next_hub", "next_authority"),
)
eighteenth(
    "cuckoo_lookup",
    {"n": 20000003, "m": 1000003},
    {"n": 403, "m": 53},
    {
        "key": shaped(
            lambda d: (d["n"],),
            lambda shape, dims, device: torch.randint(0, 8 * dims["m"], shape, device=device, dtype=INT),
        ),
        "slot": of("m 4", filled_slots),
        "value": of("m 4", integers(0, 1 << 20, INT)),
    },
    cuckoo_lookup,
    results=("y", "found"),
)
eighteenth(
    "civil_dates",
    {"n": 50000003},
    {"n": 4003},
    {"day": of("n", integers(-700000, 2000000, INT))},
    civil_dates,
    results=("year", "month", "of_month", "weekday"),
)


# Strings of numbers, secrets.


def time_warp(d, a, b):
    # Diagonals of the table, by the place in `b`; elements of `a` come from behind.
    n, m = a.shape
    far = torch.full((n, m + 1), math.inf, device=a.device)
    behind = F.pad(a.flip(1), (m - 1, m - 1), value=math.inf)
    before, last = far, far
    for s in range(2 * m - 1):
        cost = (behind[:, 2 * m - 2 - s : 3 * m - 2 - s] - b).abs()
        if s:
            cost = cost + torch.minimum(last[:, 1:], torch.minimum(last[:, :-1], before[:, :-1]))
        before, last = last, torch.cat([far[:, :1], cost], 1)
    return last[:, -1]


PRIME = 2013265921


@functools.cache
def mirrored(device):
    """0 to 63 with their six bits turned round."""
    return torch.tensor([int(f"{i:06b}"[::-1], 2) for i in range(64)], device=device)


def modular_transform(d, x, root):
    a = x.index_select(1, mirrored(x.device)).long()
    for s in range(6):
        half = 1 << s
        even, odd = a.view(-1, 32 // half, 2, half).unbind(2)
        odd = odd * root[half : 2 * half] % PRIME
        a = torch.stack([(even + odd) % PRIME, (even + PRIME - odd) % PRIME], 2)
    return a.flatten(1).to(INT)


# fmt: off
ROUNDS = (
    0x0000000000000001, 0x0000000000008082, 0x800000000000808A, 0x8000000080008000, 0x000000000000808B, 0x0000000080000001,
    0x8000000080008081, 0x8000000000008009, 0x000000000000008A, 0x0000000000000088, 0x0000000080008009, 0x000000008000000A,
    0x000000008000808B, 0x800000000000008B, 0x8000000000008089, 0x8000000000008003, 0x8000000000008002, 0x8000000000000080,
    0x000000000000800A, 0x800000008000000A, 0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008,
)
TURNS = (0, 1, 62, 28, 27, 36, 44, 6, 55, 20, 3, 10, 43, 25, 39, 41, 45, 15, 21, 8, 18, 2, 61, 56, 14)
# fmt: on


@functools.cache
def keccak_tables(device):
    """How far each word turns, the bits that come round, and the word that goes to each place."""
    turns = torch.tensor(TURNS, device=device).view(5, 5)
    source = [0] * 25
    for i in range(5):
        for j in range(5):
            source[j + 5 * ((2 * i + 3 * j) % 5)] = i + 5 * j
    return turns, (1 << turns) - 1, torch.tensor(source, device=device)


def keccak_rows(d, x):
    turns, mask, source = keccak_tables(x.device)
    a = x.view(-1, 5, 5)
    for constant in ROUNDS:
        c = a[:, 0] ^ a[:, 1] ^ a[:, 2] ^ a[:, 3] ^ a[:, 4]
        e = c.roll(-1, 1)
        a = a ^ (c.roll(1, 1) ^ (e << 1 | (e >> 63 & 1)))[:, None]
        a = a << turns | (a >> (64 - turns & 63) & mask)
        b = a.flatten(1).index_select(1, source).view(-1, 5, 5)
        a = b ^ (~b.roll(-1, 2) & b.roll(-2, 2))
        a[:, 0, 0] ^= constant - (constant >> 63 << 64)
    return a.flatten(1)


eighteenth(
    "time_warp",
    {"n": 20011, "m": 100},
    {"n": 37, "m": 21},
    {"a": of("n m"), "b": of("n m")},
    time_warp,
    slack=1e-3,
)
eighteenth(
    "modular_transform",
    {"n": 500003},
    {"n": 37},
    {"x": of("n 64", integers(0, PRIME, INT)), "root": of("64", integers(1, PRIME, INT))},
    modular_transform,
)
eighteenth("keccak_rows", {"n": 500009}, {"n": 37}, {"x": of("n 25", integers(-(1 << 62), 1 << 62, LONG))}, keccak_rows)
