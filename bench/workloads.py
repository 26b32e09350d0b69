"""The benchmarked workloads: kernel, sizes, useful work, peers and aim. Read by compare.py, peers.py and table.py.

Bytes count each input read once and each output written once; operations are counted as is the custom. Aims are what the
generated code should reach: a multiple of a peer measured in the same run, or a rate.
"""

from dataclasses import dataclass, field

N = 1 << 28


@dataclass(frozen=True)
class Aim:
    """At least `factor` times the best of `peers` (any peer if empty), or at least `rate` GB/s or TFLOP/s."""

    factor: float | None = None
    peers: tuple[str, ...] = ()
    rate: float | None = None


@dataclass(frozen=True)
class Workload:
    name: str
    title: str
    kernel: str
    dims: dict
    bytes: int
    aim: Aim
    # Where given, the workload is bound by arithmetic and its rate is in TFLOP/s.
    flops: int | None = None
    set: dict = field(default_factory=dict)
    inputs: dict = field(default_factory=dict)

    @property
    def unit(self):
        return "TFLOP/s" if self.flops else "GB/s"

    def rate(self, seconds):
        """In `unit`."""
        return self.flops / seconds / 1e12 if self.flops else self.bytes / seconds / 1e9


def rows_by_cols(rows, cols, size, outputs=None):
    """Dimensions and bytes of a kernel that reads a matrix and writes one, or `outputs` elements."""
    elements = rows * cols
    return {"rows": rows, "cols": cols}, size * (elements + (elements if outputs is None else outputs))


def matmul(name, title, m, n, k, factor):
    size = 4 * (m * k + k * n + m * n)
    return Workload(name, title, "matmul_f32", {"m": m, "n": n, "k": k}, size, Aim(factor), flops=2 * m * n * k)


SQUARE = 16384
MATRIX, MATRIX_BYTES = rows_by_cols(SQUARE, SQUARE, 4)
NARROW, NARROW_BYTES = rows_by_cols(32768, 4096, 2)

WORKLOADS = [
    Workload("copy", "copy, f32, 2^28", "copy", {"n": N}, 8 * N, Aim(1.0)),
    Workload("add", "add, f32, 2^28", "add", {"n": N}, 12 * N, Aim(1.0, ("ATen",))),
    Workload("axpy", "axpy, f32, 2^28", "axpy", {"n": N}, 12 * N, Aim(1.0, ("ATen",)), set={"alpha": 1.5}),
    Workload(
        "misaligned", "read at offset 11, f32, 2^28", "misaligned_read", {"n": N}, 12 * (N - 11), Aim(rate=4200),
        set={"offset": 11},
    ),
    Workload("struct_both", "struct {x,y}, both fields, 2^27", "struct_both", {"n": N // 2}, 8 * N, Aim(rate=4200)),
    Workload("struct_x", "struct {x,y}, x only, 2^27", "struct_x", {"n": N // 2}, 4 * N, Aim(rate=4200)),
    Workload(
        "transpose", "transpose, f32, 16384²", "transpose", {"m": SQUARE, "n": SQUARE}, 8 * SQUARE * SQUARE,
        Aim(rate=4150),
    ),
    Workload("sum_f32", "sum, f32, 2^28", "sum_f32", {"n": N}, 4 * N + 4, Aim(rate=4350)),
    Workload("sum_i32", "sum, i32, 2^30", "sum_i32", {"n": 4 * N}, 16 * N + 4, Aim(rate=4620)),
    Workload("max_f32", "max, f32, 2^28", "max_f32", {"n": N}, 4 * N + 4, Aim(rate=4350)),
    Workload("argmax_f32", "argmax, f32, 2^28", "argmax_f32", {"n": N}, 4 * N + 8, Aim(rate=4350)),
    Workload("row_sums", "row sums, f32, 16384²", "row_sums", *rows_by_cols(SQUARE, SQUARE, 4, SQUARE), Aim(rate=4300)),
    Workload(
        "column_sums", "column sums, f32, 16384²", "column_sums", *rows_by_cols(SQUARE, SQUARE, 4, SQUARE),
        Aim(rate=4300),
    ),
    Workload("gelu", "gelu (tanh form), f32, 2^28", "gelu", {"n": N}, 8 * N, Aim(1.0)),
    Workload("softmax_f32", "softmax, f32, 16384²", "softmax_f32", MATRIX, MATRIX_BYTES, Aim(rate=4200)),
    Workload("softmax_bf16", "softmax, bf16, 32768×4096", "softmax_bf16", NARROW, NARROW_BYTES, Aim(rate=4150)),
    Workload(
        "layer_norm_bf16", "layer norm, bf16, 32768×4096", "layer_norm_bf16", NARROW, NARROW_BYTES + 4 * 4096,
        Aim(rate=4150), set={"epsilon": 1e-5},
    ),
    Workload(
        "layer_norm_f32", "layer norm, f32, 16384²", "layer_norm_f32", MATRIX, MATRIX_BYTES + 8 * SQUARE,
        Aim(rate=4200), set={"epsilon": 1e-5},
    ),
    Workload(
        "rms_norm_bf16", "RMS norm, bf16, 32768×4096", "rms_norm_bf16", NARROW, NARROW_BYTES + 2 * 4096,
        Aim(rate=4150), set={"epsilon": 1e-5},
    ),
    Workload(
        "histogram", "histogram, u8 → 256 bins, 2^28", "histogram", {"n": N}, N + 1024, Aim(rate=2500),
        inputs={"x": "random(0,256)"},
    ),
    Workload(
        "stencil_7", "7-point stencil, f32, 640³", "stencil_7", {"d": 640, "h": 640, "w": 640}, 8 * 640**3,
        Aim(rate=3700),
    ),
    Workload(
        "n_body", "n-body, 65536 (20 flop a pair)", "n_body", {"n": 65536}, 28 * 65536, Aim(rate=44),
        flops=20 * 65536**2, set={"eps2": 1e-4},
    ),
    matmul("matmul_2048", "matmul, f32, 2048³", 2048, 2048, 2048, 1.05),
    matmul("matmul_4096", "matmul, f32, 4096³", 4096, 4096, 4096, 1.05),
    matmul("matmul_8192", "matmul, f32, 8192³", 8192, 8192, 8192, 1.05),
    matmul("matmul_odd", "matmul, f32, 4095×4093×4097", 4095, 4093, 4097, 1.05),
]

BY_NAME = {workload.name: workload for workload in WORKLOADS}


def select(only):
    """The workloads named in a comma-separated list; all for None. A name also selects those that begin with it."""
    if only is None:
        return WORKLOADS
    chosen = []
    for wanted in only.split(","):
        found = [w for w in WORKLOADS if w.name == wanted] or [w for w in WORKLOADS if w.name.startswith(wanted)]
        if not found:
            raise SystemExit(f"there is no workload `{wanted}`; there are {', '.join(BY_NAME)}")
        chosen += [w for w in found if w not in chosen]
    return chosen
