"""More workloads of `breadth.py`: training, signals, tables, and contractions in other people's words."""

import math

import torch
import torch.nn.functional as F
from workloads import FEW, ICONS, IMAGES, N, PLANE, ROWS, SMALL, WORKLOADS, add, contract, of, product  # noqa: F401

TINY = {"h": 37, "w": 53}


def train(name, dims, small, arrays, peer, **more):
    add("training.krn", name, dims, small, arrays, peer, **more)


def bits(shape, dims, device):
    return torch.randint(0, 2, shape, device=device, dtype=torch.uint8)


def batch_norm_inference(d, x, mean, variance, gain, shift):
    return F.relu(F.batch_norm(x, mean, variance, gain, shift))


def focal_loss(d, x, label):
    p = torch.sigmoid(x)
    t = torch.where(label == 1, p, 1 - p)
    return (-0.25 * (1 - t) ** 2 * torch.log(t.clamp(min=1e-7))).mean().reshape(1)


def lion(d, p, m, g):
    update = 0.9 * m + 0.1 * g
    p.mul_(1 - 0.0001).sub_(0.001 * update.sign())
    m.mul_(0.99).add_(g, alpha=0.01)
    return p, m


def clip_by_norm(d, g):
    return g * torch.clamp(1.0 / (torch.linalg.vector_norm(g) + 1e-6), max=1.0)


def swiglu_backward(d, gate, up, dy):
    gate, up, dy = gate.float(), up.float(), dy.float()
    s = torch.sigmoid(gate)
    return (dy * up * s * (1 + gate * (1 - s))).bfloat16(), (dy * gate * s).bfloat16()


def rotary_pairs(d, x, cosine, sine):
    pairs = x.float().unflatten(-1, (-1, 2))
    re, im = pairs[..., 0], pairs[..., 1]
    c, s = cosine[:, None, :], sine[:, None, :]
    return torch.stack([re * c - im * s, re * s + im * c], -1).flatten(-2).bfloat16()


def quantize_groups(d, x):
    scale = x.abs().amax(-1).clamp(min=1e-8) / 127.0
    return (x / scale[..., None]).round().clamp(-127, 127).to(torch.int8), scale


def masked_mean(d, x, mask):
    inside = (mask != 0).float()
    return (x * inside[:, :, None]).sum(1) / inside.sum(1).clamp(min=1)[:, None]


VECTOR = {"n": N}, {"n": 1003}
X = {"x": of("rows cols")}
train("batch_norm", IMAGES, ICONS, {"x": of("b c h w"), "gain": of("c"), "shift": of("c")},
      lambda d, x, gain, shift: F.batch_norm(x, None, None, gain, shift, True))
train("batch_norm_inference", IMAGES, ICONS,
      {"x": of("b c h w"), "mean": of("c"), "variance": of("c", "positive"), "gain": of("c"), "shift": of("c")},
      batch_norm_inference)
train("softmax_backward", {"rows": 16384, "cols": 4000}, FEW, {"y": of("rows cols"), "dy": of("rows cols")},
      lambda d, y, dy: torch.ops.aten._softmax_backward_data(dy, y, 1, torch.float32), results=("dx",), slack=1e-3)
train("log_softmax", {"rows": 8192, "cols": 32000}, FEW, {"x": of("rows cols", torch.bfloat16)},
      lambda d, x: torch.log_softmax(x, 1), slack=5e-2)
train("focal_loss", *VECTOR, {"x": of("n"), "label": of("n", bits)}, focal_loss, results=("loss",))
train("smoothed_cross_entropy", {"rows": 16384, "cols": 5000}, FEW,
      {"x": of("rows cols"), "label": of("rows", (torch.int64, "cols"))},
      lambda d, x, label: F.cross_entropy(x, label, label_smoothing=0.1).reshape(1), results=("loss",))
train("lion", *VECTOR, {"p": of("n"), "m": of("n"), "g": of("n")}, lion, results=("p", "m"))
train("clip_by_norm", *VECTOR, {"g": of("n")}, clip_by_norm)
train("swiglu_backward", *VECTOR, {name: of("n", torch.bfloat16) for name in ("gate", "up", "dy")}, swiglu_backward,
      results=("dgate", "dup"), slack=5e-2)
train("rotary_pairs", {"t": 8192, "heads": 32, "d": 128}, {"t": 5, "heads": 3, "d": 8},
      {"x": of("t heads d", torch.bfloat16), "cosine": of("t d/2"), "sine": of("t d/2")}, rotary_pairs, slack=5e-2)
train("quantize_groups", {"rows": 8192, "groups": 96}, {"rows": 7, "groups": 5}, {"x": of("rows groups 64")},
      quantize_groups, results=("q", "scale"), slack=1.01)
train("bias_gradient", {"rows": 40000, "cols": 3072}, FEW, {"dy": of("rows cols", torch.bfloat16)},
      lambda d, dy: dy.sum(0, dtype=torch.float32), results=("db",))
train("bias_gradient_of_images", IMAGES, ICONS, {"dy": of("b c h w")}, lambda d, dy: dy.sum((0, 2, 3)), results=("db",),
      slack=1e-2)
train("normalize_short", {"n": 1 << 20, "d": 64}, {"n": 37, "d": 11}, {"x": of("n d")}, lambda d, x: F.normalize(x))
train("log_sum_exp", {"b": 16, "c": 21, "p": 512 * 512}, {"b": 3, "c": 5, "p": 77}, {"x": of("b c p")},
      lambda d, x: x.logsumexp(1))
train("predicted", {"rows": 65536, "cols": 1000}, FEW, X, lambda d, x: x.argmax(1))
train("correct", {"rows": 65536, "cols": 1000}, FEW, X | {"label": of("rows", (torch.int64, "cols"))},
      lambda d, x, label: (x.argmax(1) == label).sum().reshape(1), results=("hits",))
train("add_layer_norm", {"rows": 32768, "cols": 1536}, FEW,
      {"x": of("rows cols"), "residual": of("rows cols"), "gain": of("cols"), "shift": of("cols")},
      lambda d, x, residual, gain, shift: F.layer_norm(x + residual, (d["cols"],), gain, shift))
train("masked_mean", {"b": 128, "t": 512, "d": 768}, {"b": 3, "t": 11, "d": 13}, {"x": of("b t d"), "mask": of("b t", bits)},
      masked_mean)


def signal(name, dims, small, arrays, peer, **more):
    add("signals.krn", name, dims, small, arrays, peer, **more)


def yuv(d, x):
    r, g, c = x.unbind(1)
    y = 0.299 * r + 0.587 * g + 0.114 * c
    return torch.stack([y, 0.492 * (c - y), 0.877 * (r - y)], 1)


def jacobi(d, u, f):
    v = u.clone()
    v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - f[1:-1, 1:-1])
    return v


def life(d, x):
    near = sum(x.roll((p, q), (0, 1)) for p in (-1, 0, 1) for q in (-1, 0, 1) if p or q)
    return ((near == 3) | ((near == 2) & (x == 1))).to(torch.uint8)


def autocorrelation(d, x, lags):
    return torch.stack([(x[: d["n"] - k] * x[k:]).sum() for k in range(d["lags"])])


def spectra(d, a, b):
    c = torch.view_as_complex(a) * torch.view_as_complex(b)
    return torch.view_as_real(c)


def energies(d, x, y, z):
    dx, dy, dz = (v[None, :] - v[:, None] for v in (x, y, z))
    r2 = 1 / (dx * dx + dy * dy + dz * dz + 0.01)
    r6 = r2 * r2 * r2
    return (4 * (r6 * r6 - r6)).fill_diagonal_(0.0).sum(1)


def upwind(d, u, a):
    left, right = u.roll(1, 1), u.roll(-1, 1)
    return u - 0.1 * a * torch.where(a > 0, u - left, right - u)


def blur(d, x, f):
    padded = F.pad(x[None, None], (0, 0, 4, 4), mode="replicate")
    return F.conv2d(padded, f[None, None, :, None])


signal("bilinear_2x", {"b": 96, "h": 256, "w": 256}, {"b": 2, "h": 7, "w": 9}, {"x": of("b h w")},
       lambda d, x: F.interpolate(x[:, None], scale_factor=2, mode="bilinear"))
signal("blur_vertical", PLANE, TINY, {"x": of("h w"), "f": of("9")}, blur)
signal("yuv_of_rgb", {"b": 32, "h": 720, "w": 960}, {"b": 2, "h": 7, "w": 9}, {"rgb": of("b 3 h w")}, yuv, results=("yuv",))
signal("pixels_above", {"h": 16000, "w": 16000}, TINY, {"x": of("h w", torch.uint8)},
       lambda d, x: (x > 60).sum().reshape(1), results=("many",), values={"t": 60})
signal("jacobi", {"h": 8000, "w": 8000}, TINY, {"u": of("h w"), "f": of("h w")}, jacobi, results=("v",))
signal("mean_27", {"d": 400, "h": 400, "w": 400}, {"d": 6, "h": 7, "w": 8}, {"x": of("d h w")},
       lambda d, x: F.avg_pool3d(x[None, None], 3, 1, 1))
signal("life", {"h": 8192, "w": 8192}, TINY, {"x": of("h w", bits)}, life)
signal("autocorrelation", {"n": 1 << 22, "lags": 64}, {"n": 200, "lags": 9}, {"x": of("n"), "_lags": of("lags")}, autocorrelation,
       results=("r",), slack=1e-1)
signal("multiply_spectra", {"n": 1 << 25}, {"n": 1003}, {"a": of("n", "complex"), "b": of("n", "complex")}, spectra, results=("c",))
signal("match_template", {"h": 4082, "w": 4082}, TINY, {"x": of("h+14 w+14"), "t": of("15 15")},
       lambda d, x, t: F.conv2d(x[None, None], t[None, None]), slack=1e-3)
signal("im2col", {"b": 32, "c": 32, "h": 64, "w": 64}, {"b": 2, "c": 3, "h": 7, "w": 9}, {"x": of("b c h w")},
       lambda d, x: F.unfold(x, 3, padding=1).transpose(1, 2).contiguous())
signal("dilate_7x7", {"h": 8192, "w": 8192}, TINY, {"x": of("h w", torch.uint8)},
       lambda d, x: F.max_pool2d(x[None].half(), 7, 1, 3).to(torch.uint8))
signal("running_totals", {"rows": 4096, "cols": 4096}, FEW, X, lambda d, x: x.cumsum(1), slack=1e-3)
signal("moving_average", {"series": 512, "n": 100000}, {"series": 3, "n": 100}, {"x": of("series n")},
       lambda d, x: F.conv1d(F.pad(x[:, None], (15, 0)), torch.full((1, 1, 16), 1 / 16, device=x.device)))
signal("lennard_jones", {"n": 16384}, {"n": 100}, {"x": of("n"), "y": of("n"), "z": of("n")}, energies, results=("e",), slack=1e3)
signal("upwind", {"h": 7000, "w": 9000}, TINY, {"u": of("h w"), "a": of("h w")}, upwind, results=("v",))


def table(name, dims, small, arrays, peer, **more):
    add("tables.krn", name, dims, small, arrays, peer, **more)


def starts(shape, dims, device):
    """Where rows begin, in order, from 0 to all entries."""
    return torch.linspace(0, dims["nnz"], shape[0], device=device, dtype=torch.float64).long()


def sparse_times_vector(d, start, column, value, x):
    return torch.sparse_csr_tensor(start, column.long(), value, (d["m"], d["n"])) @ x


def row_correlation(d, x, y):
    x, y = x - x.mean(1, keepdim=True), y - y.mean(1, keepdim=True)
    return (x * y).sum(1) / ((x * x).sum(1) * (y * y).sum(1)).sqrt()


def covariance(d, x):
    x = x - x.mean(0)
    return x.T @ x / (d["n"] - 1)


def ragged_mean(d, x, length):
    inside = torch.arange(d["t"], device=x.device)[None, :] < length[:, None]
    return torch.where(inside, x, 0.0).sum(1) / length.clamp(min=1)


def sum_by_label(d, x, label, clusters):
    total = torch.zeros(d["k"], d["d"], device=x.device).index_add_(0, label, x)
    many = torch.zeros(d["k"], device=x.device, dtype=torch.int32).index_add_(0, label, torch.ones_like(label, dtype=torch.int32))
    return total, many


def histogram(d, x):
    return torch.histc(x, 256, -4.0, 4.0).to(torch.int32)


NNZ = {"m": 1 << 20, "n": 1 << 20, "nnz": 1 << 24}, {"m": 20, "n": 30, "nnz": 100}
table("sparse_times_vector", *NNZ,
      {"start": of("m+1", starts), "column": of("nnz", (torch.int32, "n")), "value": of("nnz"), "x": of("n")}, sparse_times_vector,
      slack=1e-3)
table("pass_messages", {"n": 1 << 16, "m": 1 << 16, "d": 64, "edges": 1 << 20}, {"n": 20, "m": 10, "d": 5, "edges": 40},
      {"x": of("n d"), "source": of("edges", (torch.int64, "n")), "target": of("edges", (torch.int64, "m")), "weight": of("edges"),
       "y": of("m d")}, lambda d, x, source, target, weight, y: y.index_add_(0, target, weight[:, None] * x[source]), slack=1e-3)
table("group_sums", {"n": 1 << 25, "groups": 1000}, {"n": 400, "groups": 10},
      {"key": of("n", (torch.int32, "groups")), "x": of("n"), "_groups": of("groups")},
      lambda d, key, x, groups: torch.zeros(d["groups"], device=x.device).index_add_(0, key, x), slack=1e-1)
table("one_hot", {"n": 1 << 17, "classes": 500}, {"n": 37, "classes": 11},
      {"label": of("n", (torch.int64, "classes")), "_classes": of("classes")},
      lambda d, label, classes: F.one_hot(label, d["classes"]).float())
table("row_correlation", {"rows": 16384, "cols": 2000}, FEW, {"x": of("rows cols"), "y": of("rows cols")}, row_correlation,
      results=("r",))
table("pairwise_l1", {"m": 2048, "n": 2048, "k": 128}, {"m": 37, "n": 29, "k": 53}, {"a": of("m k"), "b": of("n k")},
      lambda d, a, b: torch.cdist(a, b, p=1.0), results=("d",))
table("covariance", {"n": 1 << 17, "d": 256}, {"n": 300, "d": 13}, {"x": of("n d")}, covariance, results=("c",))
table("positives_of_rows", {"rows": 20000, "cols": 3000}, FEW, X, lambda d, x: (x > 0).sum(1))
table("ragged_mean", {"b": 16384, "t": 4096}, {"b": 7, "t": 40},
      {"x": of("b t"), "length": of("b", (torch.int64, "t"))}, ragged_mean)
table("sum_by_label", {"n": 1 << 20, "d": 32, "k": 100}, {"n": 300, "d": 5, "k": 7},
      {"x": of("n d"), "label": of("n", (torch.int64, "k")), "_clusters": of("k")}, sum_by_label, results=("total", "many"), slack=1e-1)
table("standard_scores", {"rows": 3000, "cols": 20000}, FEW, X, lambda d, x: (x - x.mean(1, keepdim=True)) / x.std(
    1, correction=0, keepdim=True))
table("histogram_of_floats", *VECTOR, {"x": of("n")}, histogram, results=("h",), values={"low": -4.0, "high": 4.0}, slack=2.0)
table("mean_and_deviation", *VECTOR, {"x": of("n")}, lambda d, x: tuple(v.reshape(1) for v in reversed(torch.std_mean(x))),
      results=("mean", "deviation"))
table("column_ranges", {"rows": 20000, "cols": 3000}, FEW, X, lambda d, x: torch.aminmax(x, dim=0), results=("low", "high"))
table("equal_pairs", {"n": 1 << 15, "m": 1 << 15}, {"n": 100, "m": 77},
      {"a": of("n", torch.int32), "b": of("m", torch.int32)}, lambda d, a, b: (a[:, None] == b[None, :]).sum(1, dtype=torch.int32))

BTHD = {"b": 4, "h": 16, "t": 1024, "d": 64}, {"b": 2, "h": 3, "t": 11, "d": 5}


def causal(d, q, k):
    mask = torch.ones(d["t"], d["t"], dtype=torch.bool, device=q.device).tril()
    return ((q @ k.mT) * 0.125).masked_fill(~mask, -math.inf)


contract("causal_scores", *BTHD, {"q": of("b h t d"), "k": of("b h t d")}, causal, results=("s",), values={"scale": 0.125})
contract("bilinear", {"b": 512, "o": 64, "m": 256, "n": 256}, {"b": 7, "o": 3, "m": 11, "n": 13},
         {"x": of("b m"), "w": of("o m n"), "z": of("b n")}, lambda d, x, w, z: F.bilinear(x, z, w), slack=1e-1)
contract("batched_matrix_vector", {"b": 512, "m": 512, "n": 512}, {"b": 3, "m": 7, "n": 11}, {"a": of("b m n"), "x": of("b n")},
         lambda d, a, x: (a @ x[:, :, None])[:, :, 0], slack=1e-3)
contract("low_rank_update", {"m": 2048, "k": 2048, "n": 2048, "r": 16}, {"m": 37, "k": 53, "n": 29, "r": 5},
         {"x": of("m k"), "w": of("k n"), "a": of("k r"), "b": of("r n")}, lambda d, x, w, a, b: x @ w + (x @ a) @ b, slack=1e-1)
contract("scores_heads_inside", *BTHD, {"q": of("b t h d"), "k": of("b t h d")},
         lambda d, q, k: torch.einsum("bthd,bshd->bhts", q, k), results=("s",), slack=1e-3)
contract("tensor_times_tensor", {"a": 48, "b": 48, "c": 48, "d": 48, "e": 48, "f": 48},
         {"a": 3, "b": 5, "c": 7, "d": 4, "e": 6, "f": 5}, {"x": of("a b c d"), "y": of("d c e f")},
         lambda d, x, y: torch.einsum("abcd,dcef->abef", x, y), results=("z",), slack=1e-2)
product("with_diagonal", 2048, 2048, 2048, {"a": of("m k"), "d": of("k"), "b": of("k n")},
        lambda dims, a, d, b: (a * d) @ b, results=("c",), slack=1e-2)
contract("gram", {"n": 1 << 17, "d": 256}, {"n": 300, "d": 13}, {"x": of("n d")}, lambda d, x: x.T @ x, results=("g",), slack=1e-1)
contract("conv_relu_5x5", {"b": 16, "c": 48, "o": 96, "h": 60, "w": 60}, SMALL,
         {"x": of("b c h w"), "f": of("o c 5 5"), "bias": of("o")}, lambda d, x, f, bias: F.relu(F.conv2d(x, f, bias, padding=2)),
         slack=1e-2)
contract("depthwise_channels_last", {"b": 32, "h": 112, "w": 112, "c": 96}, SMALL, {"x": of("b h w c"), "f": of("3 3 c")},
         lambda d, x, f: F.conv2d(x.permute(0, 3, 1, 2), f.permute(2, 0, 1)[:, None], padding=1, groups=d["c"]).permute(0, 2, 3, 1))
HALF = torch.bfloat16
product("matmul_bf16", 4096, 4096, 4096, {"a": of("m k", HALF), "b": of("k n", HALF)}, lambda d, a, b: a @ b, results=("c",), slack=1.0)
product("linear_f16", 2048, 5120, 3072, {"x": of("m k", torch.float16), "w": of("n k", torch.float16), "bias": of("n", torch.float16)},
        lambda d, x, w, bias: F.linear(x, w, bias), slack=1.0)
contract("tiny_products", {"b": 1 << 16}, {"b": 7}, {"a": of("b 16 16"), "x": of("b 16 16")}, lambda d, a, x: a @ x, slack=1e-3)
contract("decode_linear", {"k": 8192, "n": 8192}, {"k": 53, "n": 29}, {"x": of("1 k", HALF), "w": of("n k", HALF)},
         lambda d, x, w: x @ w.T, slack=1.0)
contract("outer_product", {"m": 8192, "n": 8192}, {"m": 37, "n": 29}, {"x": of("m"), "y": of("n")},
         lambda d, x, y: torch.outer(x, y), results=("z",))
contract("shortest_steps", {"n": 1024}, {"n": 53}, {"a": of("n n"), "b": of("n n")},
         lambda d, a, b: (a[:, None, :] + b.T[None]).amin(2), results=("c",))
contract("two_layers", {"m": 4096, "k": 784, "h": 1024, "n": 256}, {"m": 37, "k": 53, "h": 19, "n": 29},
         {"x": of("m k"), "w": of("h k"), "v": of("n h")}, lambda d, x, w, v: F.relu(x @ w.T) @ v.T, slack=1e-1)
contract("weight_gradient", {"b": 64, "t": 256, "k": 768, "n": 1024}, {"b": 3, "t": 5, "k": 17, "n": 19},
         {"x": of("b t k"), "dy": of("b t n")}, lambda d, x, dy: dy.flatten(0, 1).T @ x.flatten(0, 1), results=("dw",), slack=1e-1)
product("squared_error_of_product", 2048, 2048, 512, {"a": of("m k"), "b": of("k n"), "c": of("m n")},
        lambda d, a, b, c: ((a @ b - c) ** 2).sum().reshape(1), results=("loss",), slack=1e2)


def complexes(of_complexes):
    """A peer for arrays of structs: PyTorch's complex numbers, of the same bytes."""
    return lambda d, *arrays: torch.view_as_real(of_complexes(*map(torch.view_as_complex, arrays)))


product("complex_product", 2048, 2048, 2048, {"a": of("m k", "complex"), "b": of("k n", "complex")},
        complexes(lambda a, b: a @ b), results=("c",), slack=1e-2)
contract("complex_convolution", {"b": 16, "c": 32, "o": 64, "h": 58, "w": 58}, SMALL,
         {"x": of("b c h w", "complex"), "f": of("o c 3 3", "complex")}, complexes(F.conv2d), slack=1e-2)
product("shortest_and_longest", 1024, 1024, 1024, {"a": of("m k"), "b": of("k n")},
        lambda d, a, b: (a[:, None, :] + b.T[None]).aminmax(dim=2), results=("least", "most"))
