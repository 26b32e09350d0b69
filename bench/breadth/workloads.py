"""The workloads of `breadth.py`: a kernel, sizes, inputs by name, and what PyTorch calls the same."""

import functools
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F

N = 1 << 26


@dataclass
class Workload:
    file: str
    name: str
    dims: dict
    small: dict
    # Names of the arrays: shape over the dimensions, and what they hold.
    arrays: dict
    peer: object
    results: tuple = ("y",)
    values: dict = field(default_factory=dict)
    # Absolute tolerance of the comparison with PyTorch.
    slack: float = 1e-4

    def inputs(self, dims, device):
        return [make(kind, shape(dims), dims, device) for shape, kind in self.arrays.values()]

    def host(self, name, array):
        """The array as the tool reads it: a struct of bytes is a record."""
        kind = self.arrays[name][1]
        if hasattr(kind, "fields"):
            return array.view(kind.fields)[..., 0]
        if kind == "complex":
            return array.view([("re", "f4"), ("im", "f4")])[..., 0]
        if kind == "pixel":
            return array.view([("r", "u1"), ("g", "u1"), ("b", "u1")])[..., 0]
        return array


def make(kind, shape, dims, device):
    if callable(kind):
        return kind(shape, dims, device)
    if isinstance(kind, tuple):
        return torch.randint(0, dims[kind[1]], shape, device=device, dtype=kind[0])
    if kind == "pixel":
        return torch.randint(0, 256, (*shape, 3), device=device, dtype=torch.uint8)
    if kind == "complex":
        return torch.randn((*shape, 2), device=device)
    if kind == "positive":
        return torch.rand(shape, device=device) + 0.01
    if kind in (torch.uint8, torch.int8):
        return torch.randint(0, 127, shape, device=device, dtype=kind)
    if kind == torch.int32:
        return torch.randint(-1000, 1000, shape, device=device, dtype=kind)
    return torch.randn(shape, device=device).to(kind)


def of(names, kind=torch.float32):
    """An array with these dimensions, `"rows cols"`; numbers stand for themselves, `d/2` for a half, `h+2` for two more."""

    def shape(dims):
        def extent(name):
            if name.isdigit():
                return int(name)
            head, _, more = name.partition("+")
            head, _, divisor = head.partition("/")
            return dims[head] // int(divisor or 1) + int(more or 0)

        return tuple(extent(name) for name in names.split())

    return shape, kind


WORKLOADS = []


def add(file, name, dims, small, arrays, peer, **more):
    WORKLOADS.append(Workload(file, name, dims, small, arrays, peer, **more))


def line(name, peer, names=("x",), kind=torch.float32, **more):
    """Element by element over one axis."""
    arrays = {one: of("n", kind) for one in names}
    add("elementwise.krn", name, {"n": N}, {"n": 1003}, arrays, lambda d, *given: peer(*given), **more)


def grey(d, x):
    weighed = 77 * x[:, 0].int() + 150 * x[:, 1].int() + 29 * x[:, 2].int()
    return (weighed >> 8).to(torch.uint8)


def adamw(d, p, m, v, g):
    decayed = p * (1.0 - 0.001 * 0.01)
    m.add_(g - m, alpha=0.1)
    v.mul_(0.999).addcmul_(g, g, value=0.001)
    p.copy_(decayed - 0.001 * m / (v.sqrt() + 1e-8))
    return p, m, v


def momentum(d, p, v, g):
    v.mul_(0.9).add_(g)
    p.add_(v, alpha=-0.01)
    return p, v


def quantize_rows(d, x):
    peak = x.abs().amax(1)
    return (x * (127.0 / peak)[:, None]).round().clamp(-127, 127).to(torch.int8), peak / 127.0


def rotary(d, x, cosine, sine):
    a, b = x.chunk(2, -1)
    c, s = cosine[:, None, :], sine[:, None, :]
    return torch.cat([a * c - b * s, b * c + a * s], -1)


def gelu_backward(x, dy):
    return torch.ops.aten.gelu_backward(dy, x)


line("softplus", F.softplus)
line("elu", F.elu)
line("selu", F.selu)
line("hard_sigmoid", F.hardsigmoid)
line("hard_tanh", F.hardtanh)
line("softsign", F.softsign)
line("swish", F.silu)
line("tanh_all", torch.tanh)
line("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), kind=torch.bfloat16, slack=2e-2)
line("gelu_backward", gelu_backward, ("x", "dy"), results=("dx",))
ROWS = {"rows": 8192, "cols": 8192}
FEW = {"rows": 37, "cols": 53}
PLANE = {"h": 8192, "w": 8192}
add("elementwise.krn", "scale_rows_and_columns", PLANE, {"h": 37, "w": 53},
    {"x": of("h w"), "a": of("h"), "b": of("w")}, lambda d, x, a, b: a[:, None] * x * b)
add("elementwise.krn", "adamw", {"n": N}, {"n": 1003},
    {"p": of("n"), "m": of("n"), "v": of("n", "positive"), "g": of("n")}, adamw, results=("p", "m", "v"))
add("elementwise.krn", "momentum", {"n": N}, {"n": 1003}, {"p": of("n"), "v": of("n"), "g": of("n")}, momentum,
    results=("p", "v"))
add("elementwise.krn", "grey", {"n": N}, {"n": 1003}, {"x": of("n", "pixel")}, grey)
add("elementwise.krn", "grey_of_planes", {"b": 64, "p": 512 * 512}, {"b": 3, "p": 77}, {"x": of("b 3 p")},
    lambda d, x: 0.299 * x[:, 0] + 0.587 * x[:, 1] + 0.114 * x[:, 2])
add("elementwise.krn", "quantize_rows", ROWS, FEW, {"x": of("rows cols")}, quantize_rows, results=("q", "scale"), slack=1.01)
add("elementwise.krn", "dequantize_columns", ROWS, FEW, {"q": of("rows cols", torch.int8), "scale": of("cols")},
    lambda d, q, scale: q * scale, results=("x",))
add("elementwise.krn", "nhwc_to_nchw", {"b": 32, "h": 112, "w": 112, "c": 96}, {"b": 2, "h": 5, "w": 7, "c": 11},
    {"x": of("b h w c")}, lambda d, x: x.permute(0, 3, 1, 2).contiguous())
add("elementwise.krn", "swap_outer", {"a": 512, "b": 300, "c": 200}, {"a": 3, "b": 5, "c": 7}, {"x": of("a b c")},
    lambda d, x: x.permute(1, 0, 2).contiguous())
add("elementwise.krn", "reverse_axes", {"a": 500, "b": 300, "c": 200}, {"a": 3, "b": 5, "c": 7}, {"x": of("a b c")},
    lambda d, x: x.permute(2, 1, 0).contiguous())
add("elementwise.krn", "pixel_shuffle", {"b": 16, "c": 16, "h": 180, "w": 180}, {"b": 2, "c": 3, "h": 5, "w": 7},
    {"x": of("b c 2 2 h w")},
    lambda d, x: F.pixel_shuffle(x.reshape(d["b"], 4 * d["c"], d["h"], d["w"]), 2))
add("elementwise.krn", "rotate_quarter", {"h": 8000, "w": 9000}, {"h": 37, "w": 53}, {"x": of("h w", torch.uint8)},
    lambda d, x: torch.rot90(x, -1).contiguous())
add("elementwise.krn", "lower_triangle", {"n": 8192}, {"n": 37}, {"x": of("n n")}, lambda d, x: torch.tril(x))
add("elementwise.krn", "rotary_halves", {"t": 8192, "heads": 32, "d": 128}, {"t": 5, "heads": 3, "d": 8},
    {"x": of("t heads d"), "cosine": of("t d/2"), "sine": of("t d/2")}, rotary)

CUBE = {"a": 128, "b": 512, "c": 1024}
THIS = {"a": 5, "b": 17, "c": 33}


def cube(name, peer):
    add("rows.krn", name, CUBE, THIS, {"x": of("a b c", "positive")}, lambda d, x: peer(x))


def rows(name, peer, arrays=None, dims=ROWS, **more):
    add("rows.krn", name, dims, FEW, arrays or {"x": of("rows cols")}, peer, **more)


def layer_norm_backward(d, x, dy, gain, mean, scale):
    return torch.ops.aten.native_layer_norm_backward(
        dy, x, [d["cols"]], mean[:, None], scale[:, None], gain, None, [True, False, False])[0]


def gain_gradient(d, x, dy, mean, scale):
    return (dy * (x - mean[:, None]) * scale[:, None]).sum(0), dy.sum(0)


def correlation(d, x, y):
    x, y = x - x.mean(), y - y.mean()
    return ((x * y).sum() / ((x * x).sum() * (y * y).sum()).sqrt()).reshape(1)


def entropy(d, x):
    p = torch.log_softmax(x, 1)
    return -(p.exp() * p).sum(1)


cube("mean_of_middle", lambda x: x.mean(1))
cube("least_of_middle", lambda x: x.amin(1))
cube("place_of_least", lambda x: x.argmin(1))
cube("product_of_middle", lambda x: x.prod(1))
add("rows.krn", "frobenius", {"n": N}, {"n": 1003}, {"x": of("n")}, lambda d, x: x / torch.linalg.vector_norm(x))
rows("l1_rows", lambda d, x: x / x.abs().mean(1, keepdim=True))
CHANNELS = {"b": 64, "c": 64, "p": 128 * 128}
SOME = {"b": 3, "c": 5, "p": 77}
add("rows.krn", "rms_middle", CHANNELS, SOME, {"x": of("b c p")},
    lambda d, x: x * torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-5))
add("rows.krn", "softmax_middle", CHANNELS, SOME, {"x": of("b c p")}, lambda d, x: torch.softmax(x, 1))
IMAGES = {"b": 32, "c": 64, "h": 128, "w": 128}
ICONS = {"b": 3, "c": 5, "h": 8, "w": 12}
add("rows.krn", "instance_norm", IMAGES, ICONS, {"x": of("b c h w")}, lambda d, x: F.instance_norm(x))
add("rows.krn", "group_norm_affine", {"b": 32, "g": 8, "c": 8, "p": 128 * 128}, {"b": 3, "g": 2, "c": 3, "p": 77},
    {"x": of("b g c p"), "gain": of("g c"), "shift": of("g c")},
    lambda d, x, gain, shift: F.group_norm(
        x.reshape(d["b"], d["g"] * d["c"], d["p"]), d["g"], gain.flatten(), shift.flatten()))
add("rows.krn", "batch_statistics", IMAGES, ICONS, {"x": of("b c h w")},
    lambda d, x: tuple(reversed(torch.var_mean(x, (0, 2, 3), correction=0))), results=("mean", "variance"))
rows("column_moments", lambda d, x: tuple(reversed(torch.var_mean(x, 0, correction=0))), results=("mean", "variance"))
rows("layer_norm_gain_gradient", gain_gradient,
     {"x": of("rows cols"), "dy": of("rows cols"), "mean": of("rows"), "scale": of("rows", "positive")},
     results=("dgain", "dshift"), slack=1e-3)
rows("layer_norm_backward", layer_norm_backward,
     {"x": of("rows cols"), "dy": of("rows cols"), "gain": of("cols"), "mean": of("rows"), "scale": of("rows", "positive")},
     results=("dx",), slack=1e-3)
rows("rms_norm_wide", lambda d, x, gain: F.rms_norm(x, (d["cols"],), gain, 1e-6),
     {"x": of("rows cols", torch.bfloat16), "gain": of("cols", torch.bfloat16)}, slack=5e-2)
rows("cross_entropy_mean", lambda d, x, label: F.cross_entropy(x, label).reshape(1),
     {"x": of("rows cols"), "label": of("rows", (torch.int64, "cols"))}, results=("loss",))
add("rows.krn", "smooth_l1", {"n": N}, {"n": 1003}, {"x": of("n"), "y": of("n")},
    lambda d, x, y: F.smooth_l1_loss(x, y).reshape(1), results=("loss",))
add("rows.krn", "hinge", {"n": N}, {"n": 1003}, {"x": of("n"), "y": of("n")},
    lambda d, x, y: (1 - x * y).clamp(min=0).mean().reshape(1), results=("loss",))
rows("kl_batch_mean", lambda d, p, q: (q * (q.log() - p.log())).sum().div(d["rows"]).reshape(1),
     {"p": of("rows cols", "positive"), "q": of("rows cols", "positive")}, results=("loss",))
rows("triplet", lambda d, a, p, n: F.triplet_margin_loss(a, p, n).reshape(1),
     {"a": of("rows cols"), "p": of("rows cols"), "n": of("rows cols")}, results=("loss",))
rows("cosine_mean", lambda d, x, y: (1 - F.cosine_similarity(x, y)).mean().reshape(1),
     {"x": of("rows cols"), "y": of("rows cols")}, results=("loss",))
rows("standardize_columns", lambda d, x: (x - x.mean(0)) / x.std(0))
rows("entropy_of_rows", entropy)
rows("short_rows", lambda d, x: torch.softmax(x, 1), {"x": of("rows 28")}, {"rows": 1 << 21})
WORKLOADS[-1].small = {"rows": 37}
rows("ranges_of_rows", lambda d, x: torch.aminmax(x, dim=1), {"x": of("rows cols", torch.int32)}, results=("low", "high"))
add("rows.krn", "correlation", {"n": N}, {"n": 1003}, {"x": of("n"), "y": of("n")}, correlation, results=("r",))


def near(name, dims, small, arrays, peer, **more):
    add("neighbours.krn", name, dims, small, arrays, peer, **more)


@functools.cache
def sobel_kernels(device):
    kernel = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]], device=device)
    return torch.stack([kernel, kernel.t()])[:, None]


def sobel(d, x):
    g = F.conv2d(x[None, None], sobel_kernels(x.device), padding=1)[0]
    return (g * g).sum(0).sqrt()


def heat(d, x):
    p = F.pad(x[None, None], (1, 1, 1, 1, 1, 1), mode="replicate")[0, 0]
    around = p[:-2, 1:-1, 1:-1] + p[2:, 1:-1, 1:-1] + p[1:-1, :-2, 1:-1] + p[1:-1, 2:, 1:-1]
    around = around + p[1:-1, 1:-1, :-2] + p[1:-1, 1:-1, 2:]
    return x + 0.1 * (around - 6 * x)


def wave(d, u, before):
    around = u.roll(1, 0) + u.roll(-1, 0) + u.roll(1, 1) + u.roll(-1, 1)
    return 2 * u - before + 0.2 * (around - 4 * u)


def gravity(d, x, y, z):
    dx, dy, dz = (v[None, :] - v[:, None] for v in (x, y, z))
    s = torch.rsqrt(dx * dx + dy * dy + dz * dz + 0.01) ** 3
    return (dx * s).sum(1), (dy * s).sum(1), (dz * s).sum(1)


def scatter_rows(d, x, at, y):
    return y.index_add_(0, at, x)


def window(name, peer, more):
    near(name, {"b": 16, "c": 32, "h": 256, "w": 256}, {"b": 2, "c": 3, "h": 12, "w": 16}, {"x": of("b c h w"), **more}, peer)


near("max_pool_1d", {"b": 64, "c": 128, "n": 8192}, {"b": 2, "c": 3, "n": 37}, {"x": of("b c n")},
     lambda d, x: F.max_pool1d(x, 2))
window("max_pool_2d", lambda d, x: F.max_pool2d(x, 3, 2, 1), {})
window("mean_pool_2d", lambda d, x: F.avg_pool2d(x, 4), {})
near("mean_pool_3d", {"b": 32, "d": 64, "h": 128, "w": 128}, {"b": 2, "d": 6, "h": 8, "w": 10}, {"x": of("b d h w")},
     lambda d, x: F.avg_pool3d(x[:, None], 2))
near("box_5x5", PLANE, {"h": 37, "w": 53}, {"x": of("h w")}, lambda d, x: F.avg_pool2d(x[None], 5, 1, 2))
near("sobel", PLANE, {"h": 37, "w": 53}, {"x": of("h w")}, sobel)
window("depthwise_3x3", lambda d, x, f: F.conv2d(x, f[:, None], padding=1, groups=d["c"]), {"f": of("c 3 3")})
near("fir_31", {"n": N}, {"n": 1003}, {"x": of("n"), "f": of("31")},
     lambda d, x, f: F.conv1d(x[None, None], f[None, None], padding=15))
window("upsample", lambda d, x: F.interpolate(x, scale_factor=2), {})
near("heat_3d", {"d": 384, "h": 384, "w": 384}, {"d": 6, "h": 7, "w": 8}, {"x": of("d h w")}, heat)
near("wave_2d", PLANE, {"h": 37, "w": 53}, {"u": of("h w"), "before": of("h w")}, wave, results=("next",))
near("gravity", {"n": 16384}, {"n": 100}, {"x": of("n"), "y": of("n"), "z": of("n")}, gravity, results=("ax", "ay", "az"),
     slack=1e-2)
near("bag_of_words", {"vocabulary": 50000, "d": 256, "bags": 16384, "length": 32},
     {"vocabulary": 50, "d": 8, "bags": 16, "length": 5},
     {"table": of("vocabulary d"), "word": of("bags length", (torch.int64, "vocabulary"))},
     lambda d, table, word: F.embedding_bag(word, table, mode="sum"))
near("take_columns", {"rows": 8192, "cols": 4096, "m": 2048}, {"rows": 7, "cols": 40, "m": 20},
     {"x": of("rows cols"), "at": of("m", (torch.int64, "cols"))}, lambda d, x, at: x[:, at])
near("scatter_rows", {"n": 1 << 18, "d": 128, "m": 1 << 15}, {"n": 40, "d": 8, "m": 10},
     {"x": of("n d"), "at": of("n", (torch.int64, "m")), "y": of("m d")}, scatter_rows)
near("lookup", {"n": N, "k": 256}, {"n": 1003, "k": 256}, {"table": of("256"), "x": of("n", torch.uint8)},
     lambda d, table, x: table[x.int()])
near("degree", {"edges": 1 << 24, "n": 1 << 16}, {"edges": 400, "n": 10},
     {"to": of("edges", (torch.int64, "n")), "_nodes": of("n")},
     lambda d, to, nodes: torch.zeros(d["n"], device=to.device, dtype=torch.int32).index_add_(
         0, to, torch.ones_like(to, dtype=torch.int32)))


def contract(name, dims, small, arrays, peer, **more):
    add("contractions.krn", name, dims, small, arrays, peer, **more)


def product(name, m, n, k, arrays, peer, **more):
    contract(name, {"m": m, "n": n, "k": k}, {"m": 37, "n": 29, "k": 53}, arrays, peer, **more)


def distances(a, b):
    return torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")


def triangle(name, cut):
    contract(name, {"n": 4096}, {"n": 53}, {"a": of("n n"), "b": of("n n")}, lambda d, a, b: cut(cut(a) @ cut(b)), results=("c",))


PLAIN = {"a": of("m k"), "b": of("k n")}
product("matmul_large_k", 256, 256, 1 << 17, PLAIN, lambda d, a, b: a @ b, results=("c",), slack=1e-2)
product("matmul_small_k", 16384, 16384, 32, PLAIN, lambda d, a, b: a @ b, results=("c",))
product("matmul_irregular", 8205, 5921, 2949, PLAIN, lambda d, a, b: a @ b, results=("c",), slack=1e-2)
contract("matmul_of_tensor", {"s": 8, "r": 64, "t": 128, "k": 256, "n": 384}, {"s": 2, "r": 3, "t": 5, "k": 17, "n": 21},
         {"a": of("s r t k"), "b": of("k n")}, lambda d, a, b: a @ b, results=("c",))
product("matmul_both_transposed", 2048, 2048, 2048, {"a": of("k m"), "b": of("n k")}, lambda d, a, b: a.T @ b.T, results=("c",),
        slack=1e-3)
contract("matrix_vector", {"m": 256, "k": 1 << 17}, {"m": 7, "k": 300}, {"a": of("m k"), "x": of("k")}, lambda d, a, x: a @ x,
         slack=1e-3)
triangle("upper_times_upper", torch.triu)
triangle("lower_times_lower", torch.tril)
product("swiglu", 1024, 2816, 1024, {"x": of("m k"), "w": of("n k"), "v": of("n k")},
        lambda d, x, w, v: F.silu(x @ w.T) * (x @ v.T), slack=1e-2)
product("quantized_linear", 512, 4096, 4096, {"x": of("m k"), "w": of("n k", torch.int8), "scale": of("n")},
        lambda d, x, w, scale: x @ w.float().T * scale, slack=1e-1)
product("pairwise_l2", 4096, 4096, 256, {"a": of("m k"), "b": of("n k")}, lambda d, a, b: distances(a, b), results=("d",))
contract("nearest", {"n": 1 << 17, "k": 256, "d": 64}, {"n": 300, "k": 7, "d": 5}, {"x": of("n d"), "centre": of("k d")},
         lambda d, x, centre: distances(x, centre).argmin(1))
LINE = {"b": 16, "c": 128, "o": 128, "n": 4096}, {"b": 2, "c": 5, "o": 7, "n": 37}
contract("conv_1d", *LINE, {"x": of("b c n"), "f": of("o c 3")}, lambda d, x, f: F.conv1d(x, f, padding=1))
contract("conv_1d_dilated", *LINE, {"x": of("b c n+8"), "f": of("o c 3")}, lambda d, x, f: F.conv1d(x, f, dilation=4))
SMALL = {"b": 2, "c": 5, "o": 7, "h": 12, "w": 16}
NEAR = {"x": of("b c h w"), "f": of("o c 3 3")}
contract("conv_2d", {"b": 32, "c": 64, "o": 64, "h": 56, "w": 56}, SMALL, NEAR, lambda d, x, f: F.conv2d(x, f, padding=1))
contract("conv_2d_deep", {"b": 32, "c": 256, "o": 256, "h": 14, "w": 14}, SMALL, NEAR,
         lambda d, x, f: F.conv2d(x, f, padding=1), slack=1e-3)
contract("conv_2d_first", {"b": 16, "o": 64, "h": 224, "w": 224}, {"b": 2, "o": 7, "h": 12, "w": 16},
         {"x": of("b 3 h w"), "f": of("o 3 7 7")}, lambda d, x, f: F.conv2d(x, f, stride=2, padding=3))
contract("conv_2d_alexnet", {"b": 64, "o": 96, "h": 224, "w": 224}, {"b": 2, "o": 7, "h": 20, "w": 24},
         {"x": of("b 3 h w"), "f": of("o 3 11 11"), "bias": of("o")},
         lambda d, x, f, bias: F.conv2d(x, f, bias, stride=4, padding=2))
contract("conv_2d_channels_last", {"b": 32, "c": 64, "o": 64, "h": 56, "w": 56}, SMALL, {"x": of("b h w c"), "f": of("3 3 c o")},
         lambda d, x, f: F.conv2d(x.permute(0, 3, 1, 2), f.permute(3, 2, 0, 1), padding=1).permute(0, 2, 3, 1))
contract("conv_2d_pointwise", {"b": 16, "c": 64, "o": 128, "h": 128, "w": 128}, SMALL, {"x": of("b c h w"), "f": of("o c")},
         lambda d, x, f: F.conv2d(x, f[:, :, None, None]))
contract("conv_2d_grouped", {"b": 16, "g": 4, "c": 32, "o": 32, "h": 56, "w": 56}, SMALL | {"g": 3},
         {"x": of("b g c h w"), "f": of("g o c 3 3")},
         lambda d, x, f: F.conv2d(x.flatten(1, 2), f.flatten(0, 1), padding=1, groups=d["g"]).unflatten(1, (d["g"], d["o"])))
contract("conv_3d", {"b": 8, "c": 16, "o": 32, "d": 16, "h": 64, "w": 64}, SMALL | {"d": 6},
         {"x": of("b c d+2 h+2 w+2"), "f": of("o c 3 3 3")}, lambda d, x, f: F.conv3d(x, f))
contract("conv_2d_transposed", {"b": 16, "c": 64, "o": 32, "h": 64, "w": 64}, SMALL, {"x": of("b c h w"), "f": of("c o 3 3")},
         lambda d, x, f: F.conv_transpose2d(x, f))
contract("conv_2d_weight_gradient", {"b": 32, "c": 64, "o": 64, "h": 28, "w": 28}, SMALL,
         {"x": of("b c h+2 w+2"), "dy": of("b o h w"), "_shape": of("3 3")},
         lambda d, x, dy, shape: torch.nn.grad.conv2d_weight(x, (d["o"], d["c"], 3, 3), dy), results=("df",), slack=1e-2)
