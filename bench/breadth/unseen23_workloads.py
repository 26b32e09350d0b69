"""Workloads of `breadth.py`, a twenty-third set: lattices, trees, integrals, errors, elements, reads, ciphers."""

import math

import torch
import torch.nn.functional as F
from unseen3_workloads import INT, between, integers, shaped
from unseen4_workloads import directions, lengths
from unseen16_workloads import DOUBLE
from unseen22_workloads import WORKLOADS, Structs, words  # noqa: F401
from unseen_workloads import HALF, add, of

SHORT = torch.float16


def twentythird(name, dims, small, arrays, peer, **more):
    add("unseen_23.krn", name, dims, small, arrays, peer, **more)


class Fields(Structs):
    """The last axis of what another makes, as fields of structs of a type."""

    def __init__(self, names, code, kind):
        self.fields, self.kind = [(name, code) for name in names], kind


def backwards(kind):
    """The same numbers with all axes the other way."""

    def make(shape, dims, device):
        z = kind(tuple(reversed(shape)), dims, device)
        return z.permute(*reversed(range(z.ndim))).contiguous()

    return make


def normal(size):
    return lambda shape, dims, device: size * torch.randn(shape, device=device)


# Networks.


def turned(signs):
    """-1 where a number is turned round, for each of eight, from seven bits each."""
    fold = signs ^ signs >> 4
    fold = fold ^ fold >> 2
    eight = signs | ((fold ^ fold >> 1) & 1) << 7
    return 1 - 2 * (eight[:, None] >> torch.arange(8, device=signs.device) & 1)


def lattice_linear(x, row, signs, shift, book, scale):
    sign = turned(torch.arange(128, device=x.device)).to(SHORT)
    w = book[row].mul_(sign[signs]).add_((0.5 * shift - 0.25).to(SHORT)[..., None])
    return (F.linear(x, w.flatten(1)) * scale).to(SHORT)


def quip_e8_linear(d, x, code, book, scale):
    code = code.view(torch.int16).to(INT)
    return lattice_linear(x, code >> 8 & 255, code >> 1 & 127, code & 1, book, scale)


def quip_e8_linear_c(d, x, row, sign, book, scale):
    row, sign = (z.T.contiguous().to(INT) for z in (row, sign))
    return lattice_linear(x.flatten(1), row, sign >> 1, sign & 1, book, scale)


def halves(shape, dims, device):
    """Half integers above 0, as the book of the lattice has them."""
    return (torch.randint(0, 3, shape, device=device) + 0.5).to(SHORT)


def codes(shape, dims, device):
    return torch.randint(-(1 << 15), 1 << 15, shape, device=device, dtype=torch.int16).view(torch.uint16)


BYTE = integers(0, 256, torch.uint8)
for name, x, packed, peer in (
    ("quip_e8_linear", shaped(lambda d: (d["m"], 8 * d["k"]), SHORT), {"code": of("n k", codes)}, quip_e8_linear),
    ("quip_e8_linear_b", shaped(lambda d: (d["m"], 8 * d["k"]), SHORT), {"code": of("n k", codes)}, quip_e8_linear),
    ("quip_e8_linear_c", of("m k 8", SHORT), {"row": of("k n", BYTE), "sign": of("k n", BYTE)}, quip_e8_linear_c),
):
    twentythird(
        name,
        {"m": 5, "k": 1024, "n": 28672},
        {"m": 3, "k": 11, "n": 37},
        {"x": x, **packed, "book": of("256 8", halves), "scale": of("n", between(0.001, 0.01))},
        peer,
        slack=1e-2,
    )


def tree_attention_heads_first(d, q, key, value, own_key, own_value, length, tree, scale=0.0883883):
    """What heads of keys have their places before."""
    b, t, many = d["b"], d["t"], d["l"]
    place = torch.arange(many, device=q.device)
    past = (place < length[:, None])[:, None].expand(b, t, many)
    own = tree.view(INT)[:, None] >> torch.arange(t, dtype=INT, device=q.device) & 1
    mask = torch.cat([past, (own > 0).expand(b, t, t)], 2).repeat(1, 4, 1)[:, None]
    keys, values = torch.cat([key, own_key], 2), torch.cat([value, own_value], 2)
    y = F.scaled_dot_product_attention(q.flatten(2, 3), keys, values, mask, scale=scale)
    return y.view(q.shape)


def tree_attention(d, q, key, value, own_key, own_value, length, tree):
    turned = (z.transpose(1, 2) for z in (key, value, own_key, own_value))
    y = tree_attention_heads_first(d, q.permute(0, 2, 3, 1, 4), *turned, length, tree)
    return y.permute(0, 3, 1, 2, 4).contiguous()


def tree_attention_b(d, q, *others):
    return tree_attention(d, q.unflatten(2, (-1, 4)), *others).flatten(2, 3)


def ancestors(shape, dims, device):
    """Nodes of a tree, each below some node before it: itself, and all above it, as bits."""
    above = []
    for i in range(shape[0]):
        above.append((above[torch.randint(0, i, ()).item()] if i else 0) | 1 << i)
    return torch.tensor(above, device=device).to(INT).view(torch.uint32)


for name, query, cached, own, peer in (
    ("tree_attention", of("b t g 4 d", HALF), "b l g d", "b t g d", tree_attention),
    (
        "tree_attention_b",
        shaped(lambda d: (d["b"], d["t"], 4 * d["g"], d["d"]), HALF),
        "b l g d",
        "b t g d",
        tree_attention_b,
    ),
    ("tree_attention_c", of("b g 4 t d", HALF), "b g l d", "b g t d", tree_attention_heads_first),
):
    twentythird(
        name,
        {"b": 7, "t": 27, "g": 8, "l": 3001, "d": 128},
        {"b": 3, "t": 7, "g": 2, "l": 53, "d": 17},
        {
            "q": query,
            "key": of(cached, HALF),
            "value": of(cached, HALF),
            "own_key": of(own, HALF),
            "own_value": of(own, HALF),
            "length": of("b", lengths("l")),
            "tree": of("t", ancestors),
        },
        peer,
        values={"scale": 0.0883883},
        slack=2e-2,
    )


# Chemistry.


def both_sums(eri, density):
    """Sums over the last two axes, and over the second and the last one."""
    n = density.shape[0]
    last = torch.mv(eri.view(n * n, n * n), density.flatten()).view(n, n)
    return last, (eri @ density[:, :, None])[..., 0].sum(1)


def energy_of(fock, core, density):
    return fock, 0.5 * (density * (core + fock)).sum()


def fock_build(d, eri, core, density):
    coulomb, exchange = both_sums(eri, density)
    return energy_of(core + coulomb - 0.5 * exchange, core, density)


def fock_build_c(d, eri, core, density):
    exchange, coulomb = both_sums(eri, density)
    return energy_of(core + coulomb - 0.5 * exchange, core, density)


for name, peer in (("fock_build", fock_build), ("fock_build_b", fock_build), ("fock_build_c", fock_build_c)):
    twentythird(
        name,
        {"n": 103},
        {"n": 11},
        {"eri": of("n n n n", normal(0.1)), "core": of("n n"), "density": of("n n")},
        peer,
        results=("fock", "energy"),
        slack=1e-3,
    )


# Econometrics.


def newey_west_rows(d, x, error, lags=20):
    u = x * error
    lag = torch.arange(-lags, lags + 1, dtype=DOUBLE, device=x.device)
    smooth = F.conv1d(u[:, None], (1 - lag.abs() / (lags + 1))[None, None], padding=lags)[:, 0]
    return u @ smooth.T / d["t"]


def newey_west(d, x, error):
    return newey_west_rows(d, x.T, error)


for name, axes, peer in (
    ("newey_west", "t p", newey_west),
    ("newey_west_b", "t p", newey_west),
    ("newey_west_c", "p t", newey_west_rows),
):
    twentythird(
        name,
        {"t": 200003, "p": 23},
        {"t": 203, "p": 5},
        {"x": of(axes, DOUBLE), "error": of("t", DOUBLE)},
        peer,
        results=("s",),
        values={"lags": 20},
        slack=1e-6,
    )


# Simulation.

FLOW = (0.8, -0.6)


def dg_advection(d, u, rest, outer, face, metric, normal, grow, dr, ds, lift, dt=0.01, keep=-0.4, gain=0.7):
    (ax, ay), face = FLOW, face.long()
    beyond = torch.where(outer >= 0, u.flatten()[outer.clamp(min=0)], 0)
    inflow = (ax * normal[..., 0] + ay * normal[..., 1]).clamp(max=0) * grow
    jump = inflow.repeat_interleave(5, 1) * (u[:, face] - beyond)
    r, s = (ax * metric[:, i, None] + ay * metric[:, i + 2, None] for i in range(2))
    rate = jump @ lift.T - r * (u @ dr.T) - s * (u @ ds.T)
    rest.mul_(keep).add_(rate, alpha=dt)
    return u + gain * rest, rest


def dg_advection_b(d, u, rest, other, side, face, metric, normal, grow, dr, ds, lift):
    outer = torch.where(other[..., None] >= 0, other[..., None] * 15 + face.flip(1)[side.int()], -1)
    return dg_advection(d, u, rest, outer.flatten(1), face.flatten(), metric, normal, grow, dr, ds, lift.flatten(1))


def dg_advection_c(d, u, rest, outer, face, metric, normal, grow, dr, ds, lift, dt=0.01, keep=-0.4, gain=0.7):
    (ax, ay), face = FLOW, face.long()
    beyond = torch.where(outer >= 0, u.flatten()[outer.clamp(min=0)], 0)
    inflow = (ax * normal[0] + ay * normal[1]).clamp(max=0) * grow
    jump = inflow.repeat_interleave(5, 0) * (u[face] - beyond)
    r, s = (ax * metric[i] + ay * metric[i + 2] for i in range(2))
    rate = lift @ jump - r * (dr @ u) - s * (ds @ u)
    rest.mul_(keep).add_(rate, alpha=dt)
    return u + gain * rest, rest


# Nodes of a triangle in rows of five, four, three, two and one: those of its sides, one after another around it.
SIDES = (0, 1, 2, 3, 4, 4, 8, 11, 13, 14, 14, 12, 9, 5, 0)


def sides(shape, dims, device):
    return torch.tensor(SIDES, dtype=INT, device=device).view(shape)


def neighbours(shape, dims, device):
    """Elements that are not far in memory; a fiftieth of the sides has none."""
    k = shape[0]
    near = torch.arange(k, device=device)[:, None] + torch.randint(-min(700, k - 1), min(701, k), shape, device=device)
    return torch.where(torch.rand(shape, device=device) < 0.02, -1, near.clamp(0, k - 1)).to(INT)


def outer_nodes(shape, dims, device):
    """Which node of a neighbour each node of a side is: those of one of its sides in reverse."""
    k = shape[0]
    other = neighbours((k, 3), dims, device)[..., None]
    side = torch.randint(0, 3, (k, 3), device=device)
    node = sides((3, 5), dims, device).flip(1)[side]
    return torch.where(other >= 0, 15 * other + node, -1).view(k, 15)


def outer_nodes_first(shape, dims, device):
    """The same, in the order of an array whose elements are innermost."""
    k = shape[1]
    outer = outer_nodes((k, 15), dims, device).T
    return torch.where(outer >= 0, outer % 15 * k + outer // 15, -1).contiguous()


GROWTH, MATRIX = between(1.0, 2.0), normal(0.3)
FACTORS = {"dt": 0.01, "keep": -0.4, "gain": 0.7}
SQUARE = of("15 15", MATRIX)
for name, fields, around, shape, lift, flow, peer in (
    (
        "dg_advection",
        "k 15",
        {"outer": of("k 15", outer_nodes), "face": of("15", sides)},
        {"metric": of("k 4", normal(1)), "normal": of("k 3 2", directions), "grow": of("k 3", GROWTH)},
        "15 15",
        {"ax": FLOW[0], "ay": FLOW[1]},
        dg_advection,
    ),
    (
        "dg_advection_b",
        "k 15",
        {
            "other": of("k 3", neighbours),
            "side": of("k 3", integers(0, 3, torch.uint8)),
            "face": of("3 5", sides),
        },
        {
            "metric": of("k", Structs(("rx", "sx", "ry", "sy"), normal(1))),
            "normal": of("k 3", Structs("xy", directions)),
            "grow": of("k 3", GROWTH),
        },
        "15 3 5",
        {"flow.x": FLOW[0], "flow.y": FLOW[1]},
        dg_advection_b,
    ),
    (
        "dg_advection_c",
        "15 k",
        {"outer": of("15 k", outer_nodes_first), "face": of("15", sides)},
        {
            "metric": of("4 k", normal(1)),
            "normal": of("2 3 k", backwards(directions)),
            "grow": of("3 k", GROWTH),
        },
        "15 15",
        {"ax": FLOW[0], "ay": FLOW[1]},
        dg_advection_c,
    ),
):
    twentythird(
        name,
        {"k": 600011},
        {"k": 53},
        {"u": of(fields), "rest": of(fields), **around, **shape, "dr": SQUARE, "ds": SQUARE, "lift": of(lift, MATRIX)},
        peer,
        results=("next", "rest"),
        values={**flow, **FACTORS},
        slack=1e-3,
    )


# Bioinformatics.


def pileup(d, at, first, kind, many, base, quality, reference, least=20):
    """Counts at each place, and how many do not agree; steps use up all bases of a read, as they do in BAM files."""
    n, w, g, steps = (d[name] for name in ("n", "w", "g", "steps"))
    first = first.long()
    of_read, of_genome = (many * (kinds >> kind & 1) for kinds in (0x193, 0x18D))
    before = of_read.cumsum(0) - of_read
    along = of_genome.cumsum(0) - of_genome
    reads = torch.arange(n, device=at.device)
    owner = reads.repeat_interleave(first.diff(), output_size=steps)
    place = at[owner] + along - along[first[:-1]][owner]
    step = torch.arange(steps, device=at.device).repeat_interleave(of_read, output_size=n * w)
    here = (place - before)[step] + torch.arange(n * w, device=at.device)
    good = (0x185 >> kind & 1 > 0)[step] & (quality.flatten() >= least) & (here < g)
    y = torch.zeros(g * 6 + 1, dtype=INT, device=at.device)
    one = torch.ones((), dtype=INT, device=at.device)
    y.scatter_add_(0, torch.where(good, here * 6 + base.flatten(), g * 6), one.expand(n * w))
    y = y[:-1].view(g, 6)
    gone = (kind == 2).to(INT)
    edge = torch.zeros(g + 1, dtype=INT, device=at.device)
    edge.scatter_add_(0, place.clamp(max=g), gone).scatter_add_(0, (place + many).clamp(max=g), -gone)
    y[:, 5] = edge.cumsum(0, dtype=INT)[:g]
    other = y.sum(1, dtype=INT) - y.gather(1, reference.long()[:, None])[:, 0]
    return y.view(torch.uint32), other.view(torch.uint32)


def pileup_counts(d, at, first, cigar, base, quality, reference):
    cigar = cigar.view(INT).long()
    return pileup(d, at, first, cigar & 15, cigar >> 4, base, quality, reference)


def pileup_counts_c(d, at, first, cigar, base, quality, reference):
    many, kind = cigar.view(torch.int16).long().unbind(1)
    y, other = pileup(d, at, first, kind, many, base.T, quality.T, reference)
    return y.view(INT).T.contiguous().view(torch.uint32), other


def starts(shape, dims, device):
    """Places where reads begin, in order."""
    return torch.randint(0, dims["g"], shape, device=device, dtype=INT).sort().values


def steps_of(n):
    """How many steps reads have: one of the first two of each four, then three, then four."""
    return sum((1, 1, 3, 4)[i] * len(range(i, n, 4)) for i in range(4))


def first_steps(shape, dims, device):
    four = torch.tensor([1, 1, 3, 4], device=device).repeat(shape[0] // 4 + 1)[: shape[0] - 1]
    return F.pad(four.cumsum(0), (1, 0)).to(INT)


def steps_made(dims, device):
    """Kinds of steps and their lengths: all aligned, or with some left out, or cut off at the start and put between."""
    n, w = dims["n"], dims["w"]
    r = torch.arange(n, device=device) % 4
    some, cut = (torch.randint(1, top, (n,), device=device) for top in (5, w // 3))
    half = torch.randint(w // 3 + 5, w - 4, (n,), device=device)
    none = torch.zeros_like(r)
    kinds = torch.tensor([[0] * 4, [0] * 4, [0, 2, 0, 0], [4, 0, 1, 0]], device=device)[r]
    three = torch.stack([half, some, w - half, none], 1)
    four = torch.stack([cut, half - cut, some, w - half - some], 1)
    many = torch.where(r[:, None] == 2, three, torch.where(r[:, None] == 3, four, w))
    there = torch.arange(4, device=device) < torch.tensor([1, 1, 3, 4], device=device)[r, None]
    return kinds[there], many[there]


def bam_steps(shape, dims, device):
    kind, many = steps_made(dims, device)
    return (many << 4 | kind).to(INT).view(torch.uint32)


def step_records(shape, dims, device):
    kind, many = steps_made(dims, device)
    return torch.stack([many, kind], 1).to(torch.int16).view(torch.uint16)


GENOME = {"n": 400009, "w": 151, "g": 3000017, "steps": steps_of(400009)}
SMALL_GENOME = {"n": 37, "w": 23, "g": 203, "steps": steps_of(37)}
STEPS = of("steps", bam_steps)
for name, axes, cigar, peer in (
    ("pileup_counts", "n w", STEPS, pileup_counts),
    ("pileup_counts_b", "n w", STEPS, pileup_counts),
    ("pileup_counts_c", "w n", of("steps", Fields(("many", "kind"), "u2", step_records)), pileup_counts_c),
):
    twentythird(
        name,
        GENOME,
        SMALL_GENOME,
        {
            "at": of("n", starts),
            "first": of("n+1", first_steps),
            "cigar": cigar,
            "base": of(axes, integers(0, 5, torch.uint8)),
            "quality": of(axes, integers(10, 42, torch.uint8)),
            "reference": of("g", integers(0, 4, torch.uint8)),
        },
        peer,
        results=("y", "other"),
        values={"least": 20},
        slack=0.0,
    )


# Robots.


def occupancy_lines(d, grid, start, end, hit, free=2, taken=5, limit=100, reach=255):
    h, w = d["h"], d["w"]
    way = end - start[:, None]
    far = way.abs().amax(2)[..., None]
    t = torch.arange(reach, dtype=INT, device=end.device)

    def along(a):
        z = way[..., a, None]
        return start[:, a, None, None] + z.sign() * ((2 * t * z.abs() + far) // (2 * far).clamp(min=1))

    def place(y, x, there):
        inside = there & (y >= 0) & (y < h) & (x >= 0) & (x < w)
        return torch.where(inside, y * w + x, h * w).flatten()

    change = torch.zeros(h * w + 1, dtype=INT, device=end.device)
    for at, much in ((place(along(0), along(1), t < far), -free), (place(end[..., 0], end[..., 1], hit), taken)):
        change.index_add_(0, at, torch.full((), much, dtype=INT, device=end.device).expand(at.shape))
    return grid.add_(change[:-1].view(h, w)).clamp_(-limit, limit)


def occupancy_lines_c(d, grid, start, end, hit):
    return occupancy_lines(d, grid, start.T, end.movedim(0, -1), hit)


def stations(n, dims, device):
    """The way of a robot through the map."""
    i = torch.arange(n, device=device)
    y, x = dims["h"] * (0.1 + 0.8 * i / n), dims["w"] * (0.5 + 0.4 * (0.05 * i).sin())
    return torch.stack([y, x], 1).to(INT)


def beams(shape, dims, device):
    """Where beams end, up to 255 cells away: in all directions, as far as walls of rooms are, more or less."""
    n, k = shape[:2]
    angle = 2 * math.pi * torch.arange(k, device=device) / k
    wall = 40 + 70 * torch.rand((n, 1), device=device)
    far = (wall * (1 + (3 * angle).sin().abs()) + 20 * torch.rand((n, k), device=device)).clamp(max=255)
    off = torch.stack([angle.sin() * far, angle.cos() * far], 2)
    return stations(n, dims, device)[:, None] + off.to(INT)


def first_axis(kind):
    """The same numbers with their last axis first, also of what knows about its shape."""
    return lambda shape, dims, device: kind((*shape[1:], shape[0]), dims, device).movedim(-1, 0).contiguous()


def hits(shape, dims, device):
    return torch.rand(shape, device=device) < 0.8


def station_pairs(shape, dims, device):
    return stations(shape[0], dims, device)


LASER = {"free": 2, "taken": 5, "limit": 100}
for name, start, end, more, peer in (
    ("occupancy_lines", of("n 2", station_pairs), of("n k 2", beams), {}, occupancy_lines),
    (
        "occupancy_lines_b",
        of("n", Fields("yx", "i4", station_pairs)),
        of("n k", Fields("yx", "i4", beams)),
        {},
        occupancy_lines,
    ),
    (
        "occupancy_lines_c",
        of("2 n", first_axis(station_pairs)),
        of("2 n k", first_axis(beams)),
        {"reach": 255},
        occupancy_lines_c,
    ),
):
    twentythird(
        name,
        {"h": 1203, "w": 1601, "n": 211, "k": 1081},
        {"h": 137, "w": 203, "n": 3, "k": 37},
        {"map": of("h w", integers(-100, 101, INT)), "from": start, "to": end, "hit": of("n k", hits)},
        peer,
        results=("map",),
        values={**LASER, **more},
        slack=0.0,
    )


# Cryptography.

ONES = 0xFFFFFFFF


def encrypted(n, sbox, key, iv, first=7):
    """The four words of each block that is counted, from keys and words without a sign."""
    s = sbox.long()
    twice = (s << 1 ^ (s >> 7) * 0x1B) & 255
    table = [twice << 24 | s << 16 | s << 8 | twice ^ s]
    for _ in range(3):
        table.append(table[-1] >> 8 | (table[-1] & 255) << 24)
    count = torch.arange(first, first + n, device=s.device)
    word = [(iv[q] ^ key[0, q]).expand(n) for q in range(3)] + [count & ONES ^ key[0, 3]]
    for r in range(1, 10):
        word = [
            table[0][word[q] >> 24]
            ^ table[1][word[(q + 1) % 4] >> 16 & 255]
            ^ table[2][word[(q + 2) % 4] >> 8 & 255]
            ^ table[3][word[(q + 3) % 4] & 255]
            ^ key[r, q]
            for q in range(4)
        ]
    return [
        (s[word[q] >> 24] << 24 | s[word[(q + 1) % 4] >> 16 & 255] << 16)
        ^ (s[word[(q + 2) % 4] >> 8 & 255] << 8 | s[word[(q + 3) % 4] & 255])
        ^ key[10, q]
        for q in range(4)
    ]


def long_words(z):
    return z.view(INT).long() & ONES


def aes_ctr(d, sbox, key, iv, x):
    stream = torch.stack(encrypted(d["n"], sbox, long_words(key), long_words(iv)), 1).to(INT)
    return (x.view(INT) ^ stream).view(torch.uint32)


def aes_ctr_b(d, sbox, key, iv, x):
    place = torch.arange(24, -1, -8, device=x.device)
    key, iv = ((z.unflatten(-1, (-1, 4)).long() << place).sum(-1) for z in (key, iv))
    stream = torch.stack(encrypted(d["n"], sbox, key, iv), 1)[..., None] >> place & 255
    return x ^ stream.flatten(1).to(torch.uint8)


def aes_ctr_c(d, sbox, key, iv, x):
    stream = encrypted(d["n"], sbox, long_words(key).view(11, 4), long_words(iv))
    return (x.view(INT) ^ torch.stack(stream).to(INT)).view(torch.uint32)


def exchange(shape, dims, device):
    """Any table that exchanges bytes."""
    return torch.randperm(shape[0], device=device).to(torch.uint8)


for name, key, iv, x, peer in (
    ("aes_ctr", of("11 4", words), of("3", words), of("n 4", words), aes_ctr),
    ("aes_ctr_b", of("11 16", BYTE), of("12", BYTE), of("n 16", BYTE), aes_ctr_b),
    ("aes_ctr_c", of("44", words), of("3", words), of("4 n", words), aes_ctr_c),
):
    twentythird(
        name,
        {"n": 2000003},
        {"n": 103},
        {"sbox": of("256", exchange), "key": key, "iv": iv, "x": x},
        peer,
        values={"first": 7},
        slack=0.0,
    )
