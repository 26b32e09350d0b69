"""Workloads of `breadth.py`, a twenty-second set: points, optimizers, magnets, trades, graphs, robots, streams."""

import functools
import math

import torch
import torch.nn.functional as F
from unseen3_workloads import INT, between, shaped
from unseen4_workloads import directions, narrow, row_starts
from unseen21_workloads import WORKLOADS, words  # noqa: F401
from unseen_workloads import HALF, add, of


def twentysecond(name, dims, small, arrays, peer, **more):
    add("unseen_22.krn", name, dims, small, arrays, peer, **more)


def xyz(kind):
    """The same numbers as structs of three."""
    return Structs("xyz", kind)


class Structs:
    """The last axis of what another makes, as fields of structs."""

    def __init__(self, names, kind):
        self.fields, self.kind = [(name, "f4") for name in names], kind

    def __call__(self, shape, dims, device):
        return self.kind((*shape, len(self.fields)), dims, device)


def axis_first(kind):
    """The same numbers with their last axis first."""
    return lambda shape, dims, device: kind((*shape[1:], shape[0]), dims, device).movedim(-1, 0).contiguous()


# Networks and their training.


def kernel_point_conv(d, at, near, x, spot, w, bias, reach=0.8):
    p = near.clamp(min=0).long()
    off = at[p] - at[:, None]
    far = (off[:, :, None] - spot).square().sum(3).sqrt()
    pull = torch.where((near >= 0)[:, :, None], (1 - far / reach).clamp(min=0), 0)
    mixed = pull.transpose(1, 2).to(HALF) @ x[p]
    return F.leaky_relu(torch.addmm(bias.to(HALF), mixed.flatten(1), w.flatten(0, 1)), 0.1)


def kernel_point_conv_c(d, at, near, x, spot, w, bias):
    return kernel_point_conv(d, at.T, near.T, x, spot.T, w.permute(1, 2, 0), bias)


def sm3_step(d, p, speed, row, column, g, lr=0.01):
    g = g.float()
    v = torch.minimum(row[:, None], column).addcmul_(g, g)
    speed.mul_(0.9).addcdiv_(g, (v + 1e-8).sqrt(), value=0.1)
    p.sub_(speed, alpha=lr)
    return p, speed, row.copy_(v.amax(1)), column.copy_(v.amax(0))


def sm3_step_c(d, p, speed, row, column, g, lr=0.01):
    g = g.float()
    v = torch.minimum(column[:, None], row).addcmul_(g, g)
    speed.mul_(0.9).addcdiv_(g, (v + 1e-8).sqrt(), value=0.1)
    p.sub_(speed, alpha=lr)
    return v.amax(0), v.amax(1), p, speed


def strip(shape, dims, device):
    """Points in a long strip, in its order."""
    along = 0.02 * torch.arange(shape[0], device=device)
    x = torch.rand(shape, device=device)
    x[:, 0] += along
    return x


def around(shape, dims, device):
    """Points that are near in the strip, and some that are none."""
    n = shape[0]
    far = min(40, n - 1)
    near = torch.arange(n, device=device)[:, None] + torch.randint(-far, far + 1, shape, device=device)
    near = near.clamp(0, n - 1)
    return torch.where(torch.rand(shape, device=device) < 0.2, -1, near).to(INT)


def half_normal(shape, dims, device):
    return 0.5 * torch.randn(shape, device=device)


SMALL_HALF = narrow(between(-0.2, 0.2), HALF)
CLOUD, FEW_POINTS = {"n": 40009, "m": 34, "c": 64, "o": 120}, {"n": 103, "m": 11, "c": 17, "o": 23}
for name, axes, at, near, spot, w, peer in (
    ("kernel_point_conv", "n 3", strip, of("n m", around), of("15 3", half_normal), "15 c o", kernel_point_conv),
    (
        "kernel_point_conv_b",
        "n",
        xyz(strip),
        of("n m", around),
        of("15", xyz(half_normal)),
        "15 c o",
        kernel_point_conv,
    ),
    (
        "kernel_point_conv_c",
        "3 n",
        axis_first(strip),
        of("m n", axis_first(around)),
        of("3 15", axis_first(half_normal)),
        "o 15 c",
        kernel_point_conv_c,
    ),
):
    twentysecond(
        name,
        CLOUD,
        FEW_POINTS,
        {
            "at": of(axes, at),
            "near": near,
            "x": of("n c", HALF),
            "spot": spot,
            "w": of(w, SMALL_HALF),
            "bias": of("o"),
        },
        peer,
        values={"reach": 0.8},
        slack=1e-1,
    )
for name, axes, peer, results in (
    ("sm3_step", "m n", sm3_step, ("p", "speed", "row", "column")),
    ("sm3_step_b", "m n", sm3_step, ("p", "speed", "row", "column")),
    ("sm3_step_c", "n m", sm3_step_c, ("next_row", "next_column", "p", "speed")),
):
    twentysecond(
        name,
        {"m": 6151, "n": 4099},
        {"m": 37, "n": 53},
        {
            "p": of(axes),
            "speed": of(axes),
            "row": of("m", "positive"),
            "column": of("n", "positive"),
            "g": of(axes, HALF),
        },
        peer,
        results=results,
        values={"lr": 0.01},
        slack=1e-3,
    )


# Pictures.


def slic_round(d, x, centre, tight=0.002):
    h, w = d["h"], d["w"]
    i, j = (torch.arange(16 * size, device=x.device) for size in (h, w))
    place = torch.stack([i[:, None].expand(-1, 16 * w), j.expand(16 * h, -1)], 2)
    pixel = torch.cat([x, place.to(x.dtype)], 2).view(h, 16, w, 16, 5)
    ring = F.pad(centre, (0, 0, 1, 1, 1, 1), value=1e9)
    own = torch.arange(h, device=x.device)[:, None] * w + torch.arange(w, device=x.device)
    own = own[:, None, :, None]
    least, which = math.inf, 0
    for a in range(3):
        for b in range(3):
            square = (pixel - ring[a : a + h, b : b + w][:, None, :, None]).square()
            far = square[..., :3].sum(4) + tight * square[..., 3:].sum(4)
            which = torch.where(far < least, own + (a - 1) * w + b - 1, which)
            least = far.clamp(max=least)
    label = which.view(16 * h, 16 * w)
    # Pixels in the order of their blocks, as `pixel` has them.
    to = which.flatten()
    total = torch.zeros(h * w, 5, device=x.device).index_add_(0, to, pixel.reshape(-1, 5))
    one = torch.ones((), device=x.device)
    many = torch.zeros(h * w, device=x.device).index_add_(0, to, one.expand(to.shape))[:, None]
    after = torch.where(many > 0, total / many.clamp(min=1), centre.view(h * w, 5))
    return label.to(INT), after.view(h, w, 5)


def slic_round_c(d, x, centre):
    return slic_round(d, x.permute(1, 2, 0), centre)


def middles(shape, dims, device):
    """Centres of superpixels near the middles of their squares."""
    h, w = shape[:2]
    i, j = (16 * torch.arange(size, device=device) + 7.5 for size in (h, w))
    centre = torch.rand(shape, device=device)
    centre[..., 3:] *= 8
    centre[..., 3] += i[:, None] - 4
    centre[..., 4] += j - 4
    return centre


def picture(dims):
    return 16 * dims["h"], 16 * dims["w"]


for name, x, centre, peer in (
    ("slic_round", lambda d: (*picture(d), 3), of("h w 5", middles), slic_round),
    ("slic_round_b", lambda d: (*picture(d), 3), of("h w 5", middles), slic_round),
    ("slic_round_c", lambda d: (3, *picture(d)), of("h w", Structs("labyx", middles)), slic_round_c),
):
    twentysecond(
        name,
        {"h": 135, "w": 240},
        {"h": 3, "w": 5},
        {"x": shaped(x, between(0.0, 1.0)), "centre": centre},
        peer,
        results=("label", "next"),
        values={"tight": 0.002},
        slack=1e-2,
    )


# Physics.


def spin_slope(m, stiff, easy, outside, damping):
    """How fast spins turn, whose planes are of x, y and z."""
    p = F.pad(m[None], (1,) * 6, mode="replicate")[0]
    around = p[:, :-2, 1:-1, 1:-1] + p[:, 2:, 1:-1, 1:-1] + p[:, 1:-1, :-2, 1:-1] + p[:, 1:-1, 2:, 1:-1]
    around = around + p[:, 1:-1, 1:-1, :-2] + p[:, 1:-1, 1:-1, 2:]
    x, y, z = (stiff * (around - 6 * m)).unbind(0)
    on = torch.stack([x + outside[0], y + outside[1], z + outside[2] + easy * m[2]])
    across = torch.linalg.cross(m, on, dim=0)
    return -(across + damping * torch.linalg.cross(m, across, dim=0))


def landau_lifshitz_planes(d, m, outside=(0.1, -0.2, 0.3)):
    def slope(v):
        return spin_slope(v, 0.5, 0.4, outside, 0.1)

    dt, first = 0.05, slope(m)
    v = m + 0.5 * dt * (first + slope(m + dt * first))
    return v / v.square().sum(0).sqrt()


def landau_lifshitz_vectors(d, m, *outside):
    return landau_lifshitz_planes(d, m.movedim(-1, 0), *outside).movedim(0, -1).contiguous()


def a_field(shape, dims, device):
    """The field from outside that the other spellings have by value."""
    return torch.tensor([0.1, -0.2, 0.3], device=device)


MAGNET, SMALL_MAGNET = {"d": 150, "h": 201, "w": 259}, {"d": 5, "h": 7, "w": 11}
MATTER = {"stiff": 0.5, "easy": 0.4, "damping": 0.1, "dt": 0.05}
for name, arrays, peer, outside in (
    (
        "landau_lifshitz_step",
        {"m": of("d h w", xyz(directions))},
        landau_lifshitz_vectors,
        {"outside.x": 0.1, "outside.y": -0.2, "outside.z": 0.3},
    ),
    (
        "landau_lifshitz_step_b",
        {"m": of("3 d h w", axis_first(directions))},
        landau_lifshitz_planes,
        {"ox": 0.1, "oy": -0.2, "oz": 0.3},
    ),
    (
        "landau_lifshitz_step_c",
        {"m": of("d h w 3", directions), "outside": of("3", a_field)},
        landau_lifshitz_vectors,
        {},
    ),
):
    twentysecond(
        name,
        MAGNET,
        SMALL_MAGNET,
        arrays,
        peer,
        results=("next",),
        values={**MATTER, **outside},
    )


# Finance.


def hawkes_likelihood(d, t, mu, alpha, beta, until=40.0):
    mu, alpha, beta = (z[:, None] for z in (mu, alpha, beta))
    late = beta * t
    before = late.logcumsumexp(1)[:, :-1]
    echo = F.pad((before - late[:, 1:]).exp(), (1, 0))
    rate = mu + alpha * echo
    heard = alpha / beta * torch.expm1(late - beta * until)
    return (rate.log() + heard).sum(1) - until * mu[:, 0], (1 / rate).sum(1) - until


def hawkes_likelihood_b(d, t, mu, alpha, beta):
    return hawkes_likelihood(d, t.T, mu, alpha, beta)


def moments_of_trades(axis):
    """Times from 0 to 40, in their order along an axis."""
    return lambda shape, dims, device: (40 * torch.rand(shape, device=device)).sort(axis).values


for name, axes, axis, peer in (
    ("hawkes_likelihood", "n k", 1, hawkes_likelihood),
    ("hawkes_likelihood_b", "k n", 0, hawkes_likelihood_b),
    ("hawkes_likelihood_c", "n k", 1, hawkes_likelihood),
):
    twentysecond(
        name,
        {"n": 20011, "k": 1003},
        {"n": 37, "k": 103},
        {
            "t": of(axes, moments_of_trades(axis)),
            "mu": of("n", between(0.1, 1.0)),
            "alpha": of("n", between(0.1, 0.5)),
            "beta": of("n", between(0.5, 1.5)),
        },
        peer,
        results=("y", "slope"),
        values={"until": 40.0},
        slack=1e-1,
    )


# Graphs.


def bits_of(z):
    """A one or a zero for each bit of the last axis's words, the lowest first."""
    return (z.view(INT)[..., None] >> torch.arange(32, dtype=INT, device=z.device) & 1).flatten(-2)


def searched(n, hit, seen, far, level=3):
    """The rest of a level, from which searches come to which nodes."""
    fresh = hit & (bits_of(seen) == 0)
    place = torch.arange(32, device=hit.device)
    after = (fresh.view(n, 8, 32).long() << place).sum(2).to(INT)
    many = fresh.sum(1, dtype=INT)
    seen.view(INT).bitwise_or_(after)
    far.view(INT).add_(many, alpha=level)
    return after.view(torch.uint32), many.sum(dtype=INT).view(torch.uint32), seen, far


def bit_searches(d, start, origin, front, seen, far):
    n = d["n"]
    one = torch.ones(origin.shape, device=origin.device)
    hit = torch.sparse_csr_tensor(start, origin, one, (n, n)) @ bits_of(front).float()
    return searched(n, hit > 0, seen, far)


def bit_searches_c(d, origin, to, front, seen, far):
    n, hit = d["n"], []
    for b in range(8):
        told = bits_of(front[:, b : b + 1].contiguous()).float()[origin]
        hit.append(torch.zeros((n, 32), device=told.device).index_add_(0, to, told))
    return searched(n, torch.cat(hit, 1) > 0, seen, far)


def few_bits(shape, dims, device):
    """Words of which one bit in sixteen is set."""
    some = [words(shape, dims, device).view(INT) for _ in range(4)]
    return (some[0] & some[1] & some[2] & some[3]).view(torch.uint32)


def small_counts(shape, dims, device):
    return torch.randint(0, 1000, shape, device=device, dtype=INT).view(torch.uint32)


GRAPH, SMALL_GRAPH = {"n": 150001, "nnz": 2000003}, {"n": 103, "nnz": 803}
for name, edges, peer in (
    ("bit_searches", {"start": of("n+1", row_starts), "from": of("nnz", (INT, "n"))}, bit_searches),
    ("bit_searches_b", {"start": of("n+1", row_starts), "from": of("nnz", (INT, "n"))}, bit_searches),
    ("bit_searches_c", {"from": of("nnz", (INT, "n")), "to": of("nnz", (INT, "n"))}, bit_searches_c),
):
    twentysecond(
        name,
        GRAPH,
        SMALL_GRAPH,
        {**edges, "front": of("n 8", few_bits), "seen": of("n 8", words), "far": of("n", small_counts)},
        peer,
        results=("next", "fresh", "seen", "far"),
        values={"level": 3},
        slack=0.0,
    )


# Robots.


def laser_likelihood(d, pose, beam, bearing, field, most=10.0, cell=0.05):
    h, w = d["h"], d["w"]
    angle = pose[:, 2:] + bearing
    x = (pose[:, :1] + beam * angle.cos()) / cell
    y = (pose[:, 1:2] + beam * angle.sin()) / cell
    at = torch.stack([2 * x / (w - 1) - 1, 2 * y / (h - 1) - 1], 2)
    # Beyond the map is nothing nearer than two metres; what is sampled is how much less there is.
    far = 2 + F.grid_sample(field[None, None] - 2, at[None], align_corners=True)[0, 0]
    odds = (0.9 * (-12.5 * far * far).exp() + 0.1).log()
    odds = torch.where(beam < most, odds, 0).sum(1)
    return odds, odds.softmax(0)


def laser_likelihood_c(d, pose, beam, bearing, field):
    return laser_likelihood(d, pose.T, beam, bearing, field)


def guesses(shape, dims, device):
    """Places anywhere on the map, and any direction."""
    wide = (0.05 * dims["w"], 0.05 * dims["h"], 2 * math.pi)
    return torch.rand(shape, device=device) * torch.tensor(wide, device=device)


def walls(shape, dims, device):
    """How far the nearest of 24 pillars is, up to two metres."""
    h, w = shape
    i, j = (0.05 * torch.arange(size, device=device) for size in shape)
    far = torch.full(shape, 2.0, device=device)
    for a, b in torch.rand(24, 2).tolist():
        far = torch.minimum(far, torch.hypot(i[:, None] - 0.05 * h * a, j - 0.05 * w * b))
    return far


for name, pose, peer in (
    ("laser_likelihood", of("n 3", guesses), laser_likelihood),
    ("laser_likelihood_b", of("n", xyz(guesses)), laser_likelihood),
    ("laser_likelihood_c", of("3 n", axis_first(guesses)), laser_likelihood_c),
):
    twentysecond(
        name,
        {"n": 50021, "k": 181, "h": 1500, "w": 2003},
        {"n": 37, "k": 53, "h": 151, "w": 203},
        {
            "pose": pose,
            "beam": of("k", between(0.3, 10.5)),
            "bearing": of("k", between(-2.0, 2.0)),
            "field": of("h w", walls),
        },
        peer,
        results=("odds", "weight"),
        values={"most": 10.0, "cell": 0.05},
        slack=2e-2,
    )


# Compression.


def rans_steps(state, data, often, first, symbol, k=300):
    """Symbols one after another, and how many words they took, of streams whose words are rows."""
    limit = data.shape[1]
    data = F.pad(data.view(torch.int16).long() & 0xFFFF, (0, 1))
    often, first = (z.view(torch.int16).long() for z in (often, first))
    symbol = symbol.long()
    off = torch.arange(4096, device=state.device) - first[symbol]
    often = often[symbol]
    x = state.view(INT).long() & 0xFFFFFFFF
    at, told = torch.zeros_like(x), []
    for _ in range(k):
        slot = x & 4095
        told.append(symbol[slot])
        x = often[slot] * (x >> 12) + off[slot]
        word = data.gather(1, at.clamp(max=limit)[:, None])[:, 0]
        more = x < 65536
        x = torch.where(more, x << 16 | word, x)
        at = at + more
    return told, at.to(INT)


def rans_decode(d, state, data, symbol, often, first):
    told, used = rans_steps(state, data, often, first, symbol)
    return torch.stack(told, 1).to(torch.uint8), used


def rans_decode_b(d, state, data, symbol, often, first):
    told, used = rans_steps(state, data.view(torch.int16).T, often, first, symbol)
    return torch.stack(told).to(torch.uint8), used


def rans_decode_c(d, state, data, often, first):
    last = first.view(torch.int16)[1:].contiguous()
    slot = torch.arange(4096, dtype=torch.int16, device=state.device)
    symbol = torch.searchsorted(last, slot, right=True)
    return rans_decode(d, state, data, symbol, often, first)


@functools.cache
def frequencies():
    """Of 256 symbols, out of 4096: each of them there, and the first ones often."""
    share = [0.97**s for s in range(256)]
    often = [1 + int(3840 * part / sum(share)) for part in share]
    often[0] += 4096 - sum(often)
    return often


def often_of(shape, dims, device):
    return torch.tensor(frequencies(), dtype=torch.int16, device=device).view(torch.uint16)


def first_of(shape, dims, device):
    often = torch.tensor(frequencies(), device=device)
    return (often.cumsum(0) - often).to(torch.int16).view(torch.uint16)


def symbol_of(shape, dims, device):
    often = torch.tensor(frequencies(), device=device)
    return torch.arange(256, device=device).repeat_interleave(often).to(torch.uint8)


def states(shape, dims, device):
    return torch.randint(1 << 16, 1 << 32, shape, device=device).to(INT).view(torch.uint32)


def short_words(shape, dims, device):
    return torch.randint(-(1 << 15), 1 << 15, shape, device=device, dtype=torch.int16).view(torch.uint16)


TABLES = {"often": of("256", often_of), "first": of("256", first_of)}
for name, axes, tables, peer in (
    ("rans_decode", "n w", {"symbol": of("4096", symbol_of), **TABLES}, rans_decode),
    ("rans_decode_b", "w n", {"symbol": of("4096", symbol_of), **TABLES}, rans_decode_b),
    ("rans_decode_c", "n w", TABLES, rans_decode_c),
):
    twentysecond(
        name,
        {"n": 100003, "w": 150},
        {"n": 37, "w": 120},
        {"state": of("n", states), "data": of(axes, short_words), **tables},
        peer,
        results=("y", "used"),
        values={"k": 300},
        slack=0.0,
    )
