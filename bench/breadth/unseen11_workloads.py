"""Workloads of `breadth.py`, an eleventh set: inference, gradients, vision, physics, statistics, finance, formats."""

import math

import torch
import torch.nn.functional as F
from unseen3_workloads import F16, INT, between, integers, shaped
from unseen4_workloads import narrow, row_starts
from unseen5_workloads import BYTES
from unseen8_workloads import VECTORS, bits, doubled, narrow_weights
from unseen10_workloads import WORKLOADS
from unseen_workloads import HALF, Record, add, of


def eleventh(name, dims, small, arrays, peer, **more):
    add("unseen_11.krn", name, dims, small, arrays, peer, **more)


# Inference.


def lightning_indexer(d, q, k, weight):
    products = F.relu(F.linear(q.flatten(0, 1), k)).unflatten(0, (d["t"], d["heads"]))
    score = (weight[..., None] * products).sum(1)
    seen = torch.ones(d["t"], d["n"], dtype=torch.bool, device=q.device).tril(d["n"] - d["t"])
    return score.masked_fill(~seen, -torch.inf)


def selected_block_attention(d, q, k, v, block):
    k, v = (x[block.long()].flatten(1, 2)[:, None] for x in (k, v))
    return F.scaled_dot_product_attention(q[:, :, None], k, v, scale=0.1, enable_gqa=True)[:, :, 0]


def q4_k_linear(d, x, scale, low, packed, code):
    first, second, third = packed.split(4, 2)
    gains = torch.cat([first & 63, third & 15 | (first >> 6) << 4], 2)
    lows = torch.cat([second & 63, third >> 4 | (second >> 6) << 4], 2)
    codes = code.unflatten(2, (4, 32))
    codes = torch.stack([codes & 15, codes >> 4], 3).flatten(2, 3)
    w = (scale[..., None] * gains)[..., None] * codes - (low[..., None] * lows)[..., None]
    return F.linear(x, w.flatten(1)).float()


def block_ids(shape, dims, device):
    """Different blocks for each query."""
    return torch.rand((shape[0], dims["blocks"]), device=device).argsort(1)[:, : shape[1]].to(INT)


eleventh(
    "lightning_indexer",
    {"t": 2000, "n": 6000, "heads": 16, "d": 128},
    {"t": 13, "n": 37, "heads": 5, "d": 29},
    {"q": of("t heads d", HALF), "k": of("n d", HALF), "weight": of("t heads")},
    lightning_indexer,
    results=("score",),
    slack=2e-1,
)
eleventh(
    "selected_block_attention",
    {"t": 1500, "heads": 16, "blocks": 127, "chosen": 16, "d": 128},
    {"t": 7, "heads": 3, "blocks": 5, "chosen": 2, "d": 13},
    {
        "q": of("t heads d", HALF),
        "k": of("blocks 64 d", HALF),
        "v": of("blocks 64 d", HALF),
        "block": of("t chosen", block_ids),
    },
    selected_block_attention,
    results=("o",),
    values={"scale": 0.1},
    slack=2e-2,
)
eleventh(
    "q4_k_linear",
    {"m": 4, "n": 28672, "g": 16},
    {"m": 3, "n": 29, "g": 2},
    {
        "x": shaped(lambda d: (d["m"], 256 * d["g"]), F16),
        "scale": of("n g", narrow(between(0.0002, 0.001), F16)),
        "low": of("n g", narrow(between(0.0002, 0.001), F16)),
        "packed": of("n g 12", BYTES),
        "code": of("n g 128", BYTES),
    },
    q4_k_linear,
    slack=1e-1,
)

# Training.


def grouped_weight_gradient(d, x, dy, start):
    """Each expert takes at most twice its even share, so that blocks of that many rows hold them."""
    room = 2 * d["t"] // d["experts"]
    at = start[:-1, None] + torch.arange(room, device=x.device)
    inside, at = (at < start[1:, None])[..., None], at.clamp(max=d["t"] - 1)
    return torch.bmm(torch.where(inside, x[at], 0).mT, dy[at]).float()


def galore_adam_step(d, basis, g, first, second, w):
    low = (basis.T @ g).float()
    first.lerp_(low, 0.1)
    second.mul_(0.99).addcmul_(low, low, value=0.01)
    change = (first / (second.sqrt() + 1e-8)).to(HALF)
    w.sub_(basis @ change, alpha=0.01)
    return first, second, w


def ssd_chunk_scan(d, x, b, c, decay, state):
    score = torch.einsum("siz,sjz->sij", c, b).float()
    along = decay.mT
    causal = torch.ones(d["q"], d["q"], dtype=torch.bool, device=x.device).tril()
    gate = torch.where(causal, along[..., :, None] - along[..., None, :], -torch.inf).exp()
    weight = (score[:, None] * gate).to(HALF)
    before = torch.einsum("siz,shez->sihe", c, state)
    inside = torch.einsum("shij,sjhe->sihe", weight, x)
    return (inside.float() + decay.exp()[..., None] * before.float()).to(HALF)


def batch_hard_triplet_loss(d, x, label):
    square = x.float().square().sum(1)
    away = square[:, None] + square - 2 * (x @ x.T).float()
    same = label[:, None] == label
    far, near = torch.where(same, away, 0.0).amax(1), torch.where(same, torch.inf, away).amin(1)
    return F.relu(far.sqrt() - near.clamp(min=0).sqrt() + 0.3).mean()


def outer_product_mean(d, a, b, w, bias):
    outer = torch.einsum("rie,rjf->ijef", a, b) / d["s"]
    return F.linear(outer.flatten(2), w.flatten(1)).float() + bias


def uneven_starts(shape, dims, device):
    """Where each expert's tokens begin: between half and one and a half times the even share for each."""
    share = torch.linspace(0, 1, shape[0], device=device, dtype=torch.float64)
    return (dims["t"] * (0.6 * share + 0.4 * share * share)).round().to(INT)


def falling(shape, dims, device):
    """Logarithms of what is left, along the second axis."""
    return -torch.rand(shape, device=device).mul_(0.1).cumsum(1)


eleventh(
    "grouped_weight_gradient",
    {"t": 16000, "experts": 24, "k": 1024, "n": 1536},
    {"t": 203, "experts": 3, "k": 29, "n": 37},
    {"x": of("t k", HALF), "dy": of("t n", HALF), "start": of("experts+1", uneven_starts)},
    grouped_weight_gradient,
    results=("dw",),
    slack=5e-1,
)
eleventh(
    "galore_adam_step",
    {"m": 3000, "n": 8008, "r": 128},
    {"m": 37, "n": 53, "r": 13},
    {
        "basis": of("m r", narrow_weights(HALF)),
        "g": of("m n", HALF),
        "first": of("r n"),
        "second": of("r n", "positive"),
        "w": of("m n"),
    },
    galore_adam_step,
    results=("first", "second", "w"),
    values={"rate": 0.01},
    slack=2e-2,
)
eleventh(
    "ssd_chunk_scan",
    {"chunks": 64, "q": 256, "heads": 24, "p": 64, "n": 128},
    {"chunks": 3, "q": 17, "heads": 2, "p": 13, "n": 11},
    {
        "x": of("chunks q heads p", HALF),
        "b": of("chunks q n", narrow(between(-0.3, 0.3), HALF)),
        "c": of("chunks q n", narrow(between(-0.3, 0.3), HALF)),
        "decay": of("chunks q heads", falling),
        "state": of("chunks heads p n", HALF),
    },
    ssd_chunk_scan,
    slack=5e-2,
)
eleventh(
    "batch_hard_triplet_loss",
    {"n": 8000, "d": 512},
    {"n": 53, "d": 29},
    {"x": of("n d", F16), "label": of("n", integers(0, 40, INT))},
    batch_hard_triplet_loss,
    results=("loss",),
    values={"margin": 0.3},
    slack=2e-2,
)
eleventh(
    "outer_product_mean",
    {"s": 128, "n": 250, "c": 32, "z": 128},
    {"s": 13, "n": 7, "c": 5, "z": 11},
    {
        "a": of("s n c", HALF),
        "b": of("s n c", HALF),
        "w": of("z c c", narrow_weights(HALF)),
        "bias": of("z"),
    },
    outer_product_mean,
    slack=2e-2,
)

# Vision.


def raft_lookup(d, volume, at):
    h, w, step = d["h"], d["w"], torch.arange(-4, 5, device=at.device)
    x = (at[..., 0].view(-1, 1, 1) + step[:, None]).expand(-1, 9, 9)
    y = (at[..., 1].view(-1, 1, 1) + step).expand(-1, 9, 9)
    grid = torch.stack([2 * x / (w - 1) - 1, 2 * y / (h - 1) - 1], -1)
    seen = F.grid_sample(volume.float().view(-1, 1, h, w), grid, align_corners=True)
    return seen.view(h, w, 9, 9)


def distance_transform(d, mask):
    i, j = (torch.arange(d[name], device=mask.device, dtype=torch.float32) for name in "hw")
    rows, columns = (i[:, None] - i).square(), (j[:, None] - j).square()
    column = torch.where(mask[None] != 0, rows[..., None], 1e9).amin(1)
    return (column[:, None] + columns).amin(2).sqrt()


def tsdf_integrate(d, distance, weight, depth, pose):
    z, y, x = (torch.arange(d[name], device=depth.device) for name in "dhw")
    x, y, z = (x + 0.5) / d["w"] - 0.5, (y[:, None] + 0.5) / d["h"] - 0.5, (z[:, None, None] + 0.5) / d["d"] + 0.5
    px, py, pz = (own + p[0] * x + p[1] * y + p[2] * z + p[3] for own, p in zip((x, y, z), pose))
    front = pz > 0.1
    safe = torch.where(front, pz, 1.0)
    rows, cols = d["rows"], d["cols"]
    c = (500.0 * px / safe + 0.5 * cols + 0.5).floor().long()
    r = (500.0 * py / safe + 0.5 * rows + 0.5).floor().long()
    inside = front & (c >= 0) & (c < cols) & (r >= 0) & (r < rows)
    seen = torch.where(inside, depth[r.clamp(0, rows - 1), c.clamp(0, cols - 1)], 0.0)
    far = seen - pz
    hit = (seen > 0) & (far > -0.1)
    mixed = (weight * distance + (far / 0.1).clamp(max=1)) / (weight + 1)
    distance.copy_(torch.where(hit, mixed, distance))
    weight.copy_(torch.where(hit, (weight + 1).clamp(max=64), weight))
    return distance, weight


def near_pixels(shape, dims, device):
    """Where a flow of a few pixels leads."""
    i, j = torch.arange(shape[0], device=device)[:, None], torch.arange(shape[1], device=device)
    own = torch.stack([j.expand(shape[:2]), i.expand(shape[:2])], -1)
    return own + 3 * torch.randn(shape, device=device)


def slanted(shape, dims, device):
    """A surface of which neighbouring pixels are much alike: which of two a voxel meets, roundings may decide."""
    i, j = torch.arange(shape[0], device=device)[:, None], torch.arange(shape[1], device=device)
    return 1.2 + 0.5 * torch.sin(i / 3000 + j / 4000)


def rare(shape, dims, device):
    return (torch.rand(shape, device=device) < 0.02).to(torch.uint8)


eleventh(
    "raft_lookup",
    {"h": 55, "w": 127},
    {"h": 7, "w": 11},
    {"volume": of("h w h w", F16), "at": of("h w 2", near_pixels)},
    raft_lookup,
    slack=2e-3,
)
eleventh(
    "distance_transform",
    {"h": 700, "w": 803},
    {"h": 37, "w": 53},
    {"mask": of("h w", rare)},
    distance_transform,
    results=("far",),
    slack=1e-3,
)
eleventh(
    "tsdf_integrate",
    {"d": 240, "h": 250, "w": 260, "rows": 480, "cols": 640},
    {"d": 9, "h": 11, "w": 13, "rows": 480, "cols": 640},
    {
        "distance": of("d h w", between(-1.0, 1.0)),
        "weight": of("d h w", integers(0, 5, torch.float32)),
        "depth": of("rows cols", slanted),
        "pose": of("3 4", between(-0.05, 0.05)),
    },
    tsdf_integrate,
    results=("distance", "weight"),
    values={"focal": 500.0, "reach": 0.1},
    slack=5e-3,
)

# Simulation and signals.


def spectral_element_laplacian(d, u, g, der):
    ur = torch.einsum("il,nkjl->nkji", der, u)
    us = torch.einsum("jl,nkli->nkji", der, u)
    ut = torch.einsum("kl,nlji->nkji", der, u)
    g = g.unbind(1)
    vr = g[0] * ur + g[1] * us + g[2] * ut
    vs = g[1] * ur + g[3] * us + g[4] * ut
    vt = g[2] * ur + g[4] * us + g[5] * ut
    back = torch.einsum("li,nkjl->nkji", der, vr) + torch.einsum("lj,nkli->nkji", der, vs)
    return back + torch.einsum("lk,nlji->nkji", der, vt)


def ultrasound_beamform(d, echo, place, depth, across):
    z, side = depth[:, None, None], across[:, None] - place
    at = 20.0 * (z + (z * z + side * side).sqrt())
    low = at.floor()
    part, low, t = at - low, low.long(), d["t"]
    seen, channel = side.abs() <= 0.5 * z, torch.arange(d["channels"], device=echo.device)

    def sample(place):
        return torch.where(seen & (place < t), echo[:, channel, place.clamp(max=t - 1)], 0.0)

    return ((1 - part) * sample(low) + part * sample(low + 1)).sum(3)


eleventh(
    "spectral_element_laplacian",
    {"e": 15001},
    {"e": 7},
    {"u": of("e 8 8 8"), "g": of("e 6 8 8 8"), "d": of("8 8")},
    spectral_element_laplacian,
    slack=1e-2,
)
eleventh(
    "ultrasound_beamform",
    {"frames": 8, "channels": 128, "t": 3000, "h": 1000, "w": 383},
    {"frames": 2, "channels": 7, "t": 2003, "h": 11, "w": 13},
    {
        "echo": of("frames channels t"),
        "place": of("channels", between(-20.0, 20.0)),
        "depth": of("h", between(1.0, 60.0)),
        "across": of("w", between(-20.0, 20.0)),
    },
    ultrasound_beamform,
    results=("image",),
    values={"rate": 20.0},
    slack=5e-2,
)

# Learning and statistics.


def als_user_step(d, start, item, rating, factor):
    f = factor[item]
    user = torch.repeat_interleave(torch.arange(d["users"], device=f.device), start.diff(), output_size=d["nnz"])
    a = 0.5 * torch.eye(16, device=f.device).repeat(d["users"], 1, 1)
    a.index_add_(0, user, f[:, :, None] * f[:, None])
    b = torch.zeros(d["users"], 16, device=f.device).index_add_(0, user, rating[:, None] * f)
    return torch.linalg.solve_ex(a, b)[0]


def tsne_gradient(d, p, at):
    difference = at[:, None] - at
    w = 1 / (1 + difference.square().sum(-1))
    w.fill_diagonal_(0)
    return 4 * (((p - w / w.sum()) * w)[..., None] * difference).sum(1)


def cox_gradient(d, risk, event):
    hazard = risk.exp()
    within = hazard.cumsum(0)
    share = event / within
    after = share.sum() - share.cumsum(0) + share
    return (event * (within.log() - risk)).sum(), hazard * after - event


eleventh(
    "als_user_step",
    {"users": 40000, "nnz": 2000003, "items": 20000},
    {"users": 13, "nnz": 203, "items": 37},
    {
        "start": of("users+1", row_starts),
        "item": of("nnz", (INT, "items")),
        "rating": of("nnz", between(1.0, 5.0)),
        "factor": of("items 16", between(-0.5, 0.5)),
    },
    als_user_step,
    results=("x",),
    values={"ridge": 0.5},
    slack=1e-3,
)
eleventh(
    "tsne_gradient",
    {"n": 7001},
    {"n": 53},
    {"p": of("n n", between(0.0, 1e-3)), "at": of("n", Record("x", "y", low=-5.0, high=5.0))},
    tsne_gradient,
    results=("gradient",),
    slack=1e-4,
)
eleventh(
    "cox_gradient",
    {"n": 10000003},
    {"n": 1003},
    {"risk": of("n", between(-1.0, 1.0)), "event": of("n", bits)},
    cox_gradient,
    results=("loss", "gradient"),
    slack=1e-3,
)

# Finance.


def american_put(d, spot):
    cash = (1.02 - spot[-1]).clamp(min=0)
    for t in range(d["steps"] - 2, -1, -1):
        cash = 0.999 * cash
        now, x = 1.02 - spot[t], spot[t] - 1
        inside = (now > 0).float()
        basis = torch.stack([torch.ones_like(x), x, x * x])
        weighted = inside * basis
        a = weighted @ basis.T + 1e-3 * torch.eye(3, device=x.device)
        c = torch.linalg.solve_ex(a, weighted @ cash)[0]
        cash = torch.where((now > 0) & (now > c @ basis), now, cash)
    return 0.999 * cash.mean()


def expected_exposure(d, start, value):
    held = torch.zeros(d["sets"], d["times"], d["scenarios"], device=value.device)
    owner = torch.repeat_interleave(torch.arange(d["sets"], device=value.device), start.diff(), output_size=d["trades"])
    return held.index_add_(0, owner, value).clamp(min=0).mean(2)


def paths(shape, dims, device):
    """Prices that wander from 1."""
    return (0.02 * torch.randn(shape, device=device)).cumsum(0).exp()


def trade_starts(shape, dims, device):
    share = torch.linspace(0, 1, shape[0], device=device, dtype=torch.float64)
    return (dims["trades"] * (0.5 * share + 0.5 * share * share)).round().to(INT)


eleventh(
    "american_put",
    {"steps": 50, "n": 500003},
    {"steps": 5, "n": 303},
    {"spot": of("steps n", paths)},
    american_put,
    results=("price",),
    values={"strike": 1.02, "discount": 0.999},
    slack=1e-3,
)
eleventh(
    "expected_exposure",
    {"sets": 40, "trades": 500, "times": 60, "scenarios": 2000},
    {"sets": 5, "trades": 37, "times": 3, "scenarios": 53},
    {"start": of("sets+1", trade_starts), "value": of("trades times scenarios")},
    expected_exposure,
    results=("exposure",),
)

# Graphs and genomes.


def rotate_scores(d, entity, phase, head, relation):
    entity = torch.view_as_complex(entity)
    turned = entity[head] * torch.polar(torch.ones_like(phase), phase)[relation]
    return 6 - (turned[:, None] - entity).abs().sum(2)


def linkage_window(d, g):
    x = g.float()
    x = x - x.mean(1, keepdim=True)
    spread = x.square().sum(1)
    later = F.pad(x, (0, 0, 0, 64)).unfold(0, 65, 1)[..., 1:]
    both = torch.einsum("is,isk->ik", x, later)
    return both.square() / (spread[:, None] * F.pad(spread, (0, 64)).unfold(0, 65, 1)[:, 1:]).clamp(min=1e-6)


def phylo_partials(d, a, b, pa, pb):
    both = torch.einsum("rij,srj->sri", pa, a) * torch.einsum("rij,srj->sri", pb, b)
    most = both.amax((1, 2)).clamp(min=1e-30)
    return both / most[:, None, None], most.log()


CHANCE = between(0.0, 1.0)
eleventh(
    "rotate_scores",
    {"b": 100, "entities": 14541, "relations": 237, "d": 250},
    {"b": 5, "entities": 37, "relations": 3, "d": 13},
    {
        "entity": of("entities d", Record("re", "im")),
        "phase": of("relations d", between(-math.pi, math.pi)),
        "head": of("b", (INT, "entities")),
        "relation": of("b", (INT, "relations")),
    },
    rotate_scores,
    results=("score",),
    values={"margin": 6.0},
    slack=1e-3,
)
eleventh(
    "linkage_window",
    {"snps": 20000, "samples": 2504},
    {"snps": 103, "samples": 37},
    {"g": of("snps samples", integers(0, 3, torch.uint8))},
    linkage_window,
    results=("r2",),
    slack=1e-4,
)
eleventh(
    "phylo_partials",
    {"sites": 1000003, "rates": 4},
    {"sites": 203, "rates": 3},
    {
        "a": of("sites rates 4", CHANCE),
        "b": of("sites rates 4", CHANCE),
        "pa": of("rates 4 4", CHANCE),
        "pb": of("rates 4 4", CHANCE),
    },
    phylo_partials,
    results=("partial", "log_scale"),
    slack=1e-5,
)

# Geometry.


def icp_normal_equations(d, point, match, surface, normal):
    found = match >= 0
    at = match.clamp(min=0)
    v = normal[at]
    away = torch.where(found, (v * (point - surface[at])).sum(1), 0.0)
    weight = torch.where(found, 0.1 / away.abs().clamp(min=0.1), 0.0)
    j = torch.cat([torch.linalg.cross(point, v), v], 1)
    weighted = weight[:, None] * j
    return weighted.T @ j, weighted.T @ away


def matches(shape, dims, device):
    """Neighbours on the surface lie near each other; about one point in ten has none."""
    at = torch.arange(shape[0], device=device) * dims["m"] // shape[0] + torch.randint(-8, 9, shape, device=device)
    return torch.where(torch.rand(shape, device=device) < 0.1, -1, at.clamp(0, dims["m"] - 1)).to(INT)


eleventh(
    "icp_normal_equations",
    {"n": 5000003, "m": 4000001},
    {"n": 203, "m": 153},
    {"point": of("n", VECTORS), "match": of("n", matches), "surface": of("m", VECTORS), "normal": of("m", VECTORS)},
    icp_normal_equations,
    results=("h", "g"),
    values={"limit": 0.1},
    slack=1e-3,
)

# Formats.


def utf8_decode(d, byte):
    n, starts = d["n"], byte & 0xC0 != 0x80
    a, b, c, e = (F.pad(byte, (0, 3))[k : k + n].int() for k in range(4))
    b, c, e = b & 63, c & 63, e & 63
    two, three = (a & 31) << 6 | b, (a & 15) << 12 | b << 6 | c
    four = (a & 7) << 18 | b << 12 | c << 6 | e
    point = torch.where(a < 0x80, a, torch.where(a < 0xE0, two, torch.where(a < 0xF0, three, four)))
    place = starts.cumsum(0)
    found = torch.zeros(n + 1, dtype=INT, device=byte.device)
    found.scatter_(0, torch.where(starts, place - 1, n), point)
    return found[:n], starts.sum()


def bc1_encode(d, image):
    x = image.unfold(0, 4, 4).unfold(1, 4, 4).int()
    low, high = x.amin((3, 4)), x.amax((3, 4))
    span = high - low
    length = span.square().sum(2)
    along = ((x - low[..., None, None]) * span[..., None, None]).sum(2).flatten(2)
    many = length[..., None].clamp(min=1)
    third = torch.where(length[..., None] > 0, (6 * along + many) // (2 * many), 3)
    code = (0x2D >> 2 * third & 3).long()
    second = (code << 2 * torch.arange(16, device=x.device)).sum(2)

    def packed(v):
        return ((v[..., 0] >> 3) << 11 | (v[..., 1] >> 2) << 5 | v[..., 2] >> 3).long()

    return torch.stack([packed(high) | packed(low) << 16, second], 2)


def text(shape, dims, device):
    """Characters of one to four bytes, the last perhaps cut off."""
    size = torch.randint(1, 5, shape, device=device)
    ends = size.cumsum(0)
    start = torch.zeros(4 * shape[0] + 1, dtype=torch.uint8, device=device)
    start[ends - size] = torch.tensor([0, 0x41, 0xC3, 0xE2, 0xF0], dtype=torch.uint8, device=device)[size]
    noise = torch.randint(0x80, 0xC0, start.shape, device=device).to(torch.uint8)
    return torch.where(start == 0, noise, start)[: shape[0]].contiguous()


eleventh(
    "utf8_decode",
    {"n": 20000003},
    {"n": 203},
    {"byte": of("n", text)},
    utf8_decode,
    results=("point", "many"),
    slack=0.0,
)
eleventh(
    "bc1_encode",
    {"h": 1000, "w": 1001},
    {"h": 7, "w": 11},
    {"image": doubled("4h 4w 3", BYTES)},
    bc1_encode,
    results=("block",),
    slack=0.0,
)
