#!/usr/bin/env python3
"""Times what people would use instead of Krn: ATen, cuBLAS, CUB, Triton, torch.compile and plain CUDA kernels.

    python3 bench/peers.py --only softmax_f32,copy      prints one line a peer
    python3 bench/peers.py --serve                      for compare.py: one JSON request a line in, one answer a line out

Needs a GPU and some of: torch, triton, cupy, nvcc. What is missing is reported with its peers.
"""

import argparse
import ctypes
import gc
import json
import os
import shutil
import subprocess
import sys
import tempfile
import traceback

import timing
import workloads

HERE = os.path.dirname(os.path.abspath(__file__))


class Missing(Exception):
    """A package or tool that is not installed."""


def need(name):
    try:
        return __import__(name)
    except ImportError as error:
        raise Missing(f"{name} is not installed ({error})") from error


class Machine:
    """What is shared by all peers: packages, compiled CUDA code, the device's properties."""

    def __init__(self, quick):
        self.torch = need("torch")
        self.quick = quick
        if not self.torch.cuda.is_available():
            raise Missing("PyTorch finds no CUDA device")
        self.torch.set_float32_matmul_precision("highest")
        self.properties = self.torch.cuda.get_device_properties(0)
        self.events = timing.Events()
        self.folder = tempfile.mkdtemp(prefix="krn-bench-")
        self.arch = f"sm_{self.properties.major}{self.properties.minor}"
        self.nvcc = shutil.which("nvcc") or next(
            (p for p in ("/usr/local/cuda/bin/nvcc",) if os.path.exists(p)), None
        )
        self.code = None
        self.cub = None
        # Takes half a minute: begun now, waited for when it is wanted.
        self.cub_build = self.build_cub(()) if self.nvcc else None

    def cache_bytes(self):
        return getattr(self.properties, "L2_cache_size", 50 << 20)

    def build_cub(self, defines):
        self.cub_path = os.path.join(self.folder, f"cub_peers{len(defines)}.so")
        command = [self.nvcc, "-O3", "-std=c++17", f"-arch={self.arch}", "-shared", "-Xcompiler", "-fPIC", *defines]
        command += ["-o", self.cub_path, os.path.join(HERE, "cub_peers.cu")]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def cub_library(self):
        """CUB compiled by nvcc."""
        if self.nvcc is None:
            raise Missing("nvcc is not installed")
        if self.cub is None:
            log, _ = self.cub_build.communicate()
            if self.cub_build.returncode != 0:
                print(f"cub_peers.cu did not compile, trying without argmax:\n{log}", file=sys.stderr)
                self.cub_build = self.build_cub(("-DWITHOUT_ARGMAX",))
                log, _ = self.cub_build.communicate()
            if self.cub_build.returncode != 0:
                raise RuntimeError(f"cub_peers.cu did not compile: {log[-2000:]}")
            self.cub = ctypes.CDLL(self.cub_path)
        return self.cub

    def kernel(self, name):
        """A kernel of peers.cu: compiled by nvcc, or by NVRTC where there is no nvcc."""
        cupy = need("cupy")
        if self.code is None:
            source = os.path.join(HERE, "peers.cu")
            if self.nvcc:
                path = os.path.join(self.folder, "peers.cubin")
                command = [self.nvcc, "-O3", "-std=c++17", f"-arch={self.arch}", "-cubin", "-o", path, source]
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode != 0:
                    raise RuntimeError(f"peers.cu did not compile: {done.stdout}{done.stderr}")
                self.code = cupy.RawModule(path=path)
            else:
                with open(source) as file:
                    self.code = cupy.RawModule(code=file.read(), options=("-std=c++17",), backend="nvrtc")
        return self.code.get_function(name)

    @property
    def cuda_name(self):
        return "nvcc" if self.nvcc else "NVRTC"

    def random(self, *shape, dtype=None):
        torch = self.torch
        tensor = torch.empty(shape, device="cuda", dtype=dtype or torch.float32)
        if tensor.dtype == torch.uint8:
            return tensor.random_(0, 256)
        return tensor.random_(-8, 8) if tensor.dtype == torch.int32 else tensor.uniform_(-1, 1)

    def empty(self, *shape, dtype=None):
        return self.torch.empty(shape, device="cuda", dtype=dtype or self.torch.float32)


def launch(kernel, grid, block, *arguments):
    """A call that launches a raw kernel on tensors (by address), ints (32 bits) and floats."""
    import numpy

    def convert(value):
        if isinstance(value, float):
            return numpy.float32(value)
        return numpy.int32(value) if isinstance(value, int) else numpy.uint64(value.data_ptr())

    # The tensors are kept alive with the call.
    converted, pad = tuple(convert(value) for value in arguments), lambda size: tuple(size) + (1,) * (3 - len(size))
    grid, block = pad(grid), pad(block)
    return lambda keep=arguments: kernel(grid, block, converted)


def close(got, expected, tolerance):
    """A peer that computes something else is no peer. The tolerance is relative to the largest value."""
    worst = (got.float() - expected.float()).abs().max().item()
    largest = expected.float().abs().max().item()
    if not worst <= tolerance * largest:
        raise RuntimeError(f"the result is wrong by up to {worst}, where the largest value is {largest}")


# A peer is a function of the machine and the workload's dimensions that gives a function: called, it makes a set of
# arrays and gives the call that is timed. Peers stand under the kernel's name, each with the name in the table.
PEERS = {}


def peer(name, *kernels):
    def register(function):
        for kernel in kernels:
            PEERS.setdefault(kernel, []).append((name, lambda m, d, kernel=kernel: function(m, d, kernel)))
        return function

    return register


@peer("memcpy", "copy")
def memcpy(m, d, kernel):
    driver = ctypes.CDLL("libcuda.so.1")

    def make():
        x, y = m.random(d["n"]), m.empty(d["n"])
        size = ctypes.c_size_t(4 * d["n"])
        to, source, stream = ctypes.c_uint64(y.data_ptr()), ctypes.c_uint64(x.data_ptr()), ctypes.c_void_p(0)

        def call(keep=(x, y)):
            code = driver.cuMemcpyDtoDAsync_v2(to, source, size, stream)
            if code != 0:
                raise RuntimeError(f"cuMemcpyDtoDAsync: error {code}")

        return call

    return make


@peer("ATen", "copy", "add", "axpy", "misaligned_read", "struct_both", "struct_x", "gelu")
def aten_elementwise(m, d, kernel):
    torch, n = m.torch, d["n"]

    def make():
        if kernel == "copy":
            x, y = m.random(n), m.empty(n)
            return lambda: y.copy_(x)
        if kernel == "add":
            a, b, c = m.random(n), m.random(n), m.empty(n)
            return lambda: torch.add(a, b, out=c)
        if kernel == "axpy":
            x, y = m.random(n), m.random(n)
            return lambda: y.add_(x, alpha=1.5)
        if kernel == "misaligned_read":
            a, b, c = m.random(n), m.random(n), m.empty(n - 11)
            return lambda: torch.add(a[11:], b[11:], out=c)
        if kernel == "struct_both":
            p, q, shift = m.random(n, 2), m.empty(n, 2), torch.tensor([10.0, 20.0], device="cuda")
            return lambda: torch.add(p, shift, out=q)
        if kernel == "struct_x":
            p, x = m.random(n, 2), m.empty(n)
            return lambda: torch.add(p[:, 0], 10.0, out=x)
        x, y = m.random(n), m.empty(n)
        return lambda: torch.ops.aten.gelu.out(x, approximate="tanh", out=y)

    return make


@peer("CUDA", "add", "axpy", "misaligned_read", "struct_x")
def cuda_elementwise(m, d, kernel):
    n, threads = d["n"], 512
    blocks = -(-n // threads)
    name = {"misaligned_read": "read_offset", "struct_x": "struct_x_aos"}.get(kernel, kernel)
    function = m.kernel(name)

    def make():
        if kernel == "axpy":
            return launch(function, (blocks,), (threads,), 1.5, m.random(n), m.random(n), n)
        if kernel == "struct_x":
            return launch(function, (blocks,), (threads,), m.random(2 * n), m.empty(n), n)
        offset = (11,) if kernel == "misaligned_read" else ()
        return launch(function, (blocks,), (threads,), m.random(n), m.random(n), m.empty(n), n, *offset)

    return make


@peer("CUDA unroll 4", "add", "misaligned_read")
def cuda_unrolled(m, d, kernel):
    n, threads, offset = d["n"], 512, 11 if kernel == "misaligned_read" else 0
    function, blocks = m.kernel("read_offset_unroll4"), -(-n // (4 * threads))
    return lambda: launch(function, (blocks,), (threads,), m.random(n), m.random(n), m.empty(n), n, offset)


@peer("CUDA AoS", "struct_both")
def struct_aos(m, d, kernel):
    n = d["n"]
    function = m.kernel("struct_both_aos")
    return lambda: launch(function, (-(-n // 128),), (128,), m.random(2 * n), m.empty(2 * n), n)


@peer("CUDA SoA", "struct_both")
def struct_soa(m, d, kernel):
    n = d["n"]
    function = m.kernel("struct_both_soa")
    arrays = lambda: (m.random(n), m.random(n), m.empty(n), m.empty(n))
    return lambda: launch(function, (-(-n // 128),), (128,), *arrays(), n)


@peer("ATen", "transpose")
def aten_transpose(m, d, kernel):
    def make():
        a, b = m.random(d["m"], d["n"]), m.empty(d["n"], d["m"])
        return lambda: b.copy_(a.t())

    return make


for variant, label in (("naive", "naive"), ("shared", "shared"), ("shared_pad", "shared + pad")):

    @peer(f"CUDA {label}", "transpose")
    def cuda_transpose(m, d, kernel, variant=variant):
        rows, cols = d["m"], d["n"]
        function, grid = m.kernel(f"transpose_{variant}"), (-(-cols // 32), -(-rows // 32))

        def make():
            a, b = m.random(rows, cols), m.empty(cols, rows)
            call = launch(function, grid, (32, 8), a, b, rows, cols)
            call()
            close(b, a.t(), 0.0)
            return call

        return make


@peer("ATen", "sum_f32", "sum_i32", "max_f32", "argmax_f32", "row_sums", "column_sums")
def aten_reductions(m, d, kernel):
    torch = m.torch

    def make():
        if kernel == "sum_i32":
            x = m.random(d["n"], dtype=torch.int32)
            return lambda: torch.sum(x, dtype=torch.int32)
        if kernel in ("row_sums", "column_sums"):
            x, axis = m.random(d["rows"], d["cols"]), 1 if kernel == "row_sums" else 0
            return lambda: torch.sum(x, dim=axis)
        x = m.random(d["n"])
        reduce = {"sum_f32": torch.sum, "max_f32": torch.amax, "argmax_f32": torch.argmax}[kernel]
        return lambda: reduce(x)

    return make


CUB_ALGORITHMS = {"sum_f32": 0, "sum_i32": 1, "max_f32": 2, "argmax_f32": 3, "histogram": 4}


@peer("CUB", *CUB_ALGORITHMS)
def cub(m, d, kernel):
    torch, library = m.torch, m.cub_library()
    algorithm, n = CUB_ALGORITHMS[kernel], d["n"]
    dtype = {"sum_i32": torch.int32, "histogram": torch.uint8}.get(kernel, torch.float32)

    def make():
        x = m.random(n, dtype=dtype)
        out = m.empty(256, dtype=torch.float32 if dtype == torch.float32 else torch.int32)
        index = m.empty(1, dtype=torch.int64)
        size = ctypes.c_size_t(0)

        def run(temp):
            address = lambda tensor: ctypes.c_void_p(tensor.data_ptr())
            return library.krn_bench_cub(
                algorithm, temp, ctypes.byref(size), address(x), address(out), address(index), ctypes.c_longlong(n)
            )

        if code := run(None):
            raise RuntimeError(f"CUB: error {code}")
        memory = m.empty(max(size.value, 1), dtype=torch.uint8)

        def call(keep=(x, out, index, memory), temp=ctypes.c_void_p(memory.data_ptr())):
            if code := run(temp):
                raise RuntimeError(f"CUB: error {code}")

        call()
        if kernel == "sum_i32":
            close(out[0], torch.sum(x, dtype=torch.int32), 0.0)
        elif kernel == "max_f32":
            close(out[0], torch.amax(x), 0.0)
        elif kernel == "argmax_f32":
            close(x[index[0]], torch.amax(x), 0.0)
        elif kernel == "histogram" and int(out.sum()) != n:
            raise RuntimeError(f"the bins hold {int(out.sum())} of {n}")
        return call

    return make


@peer("CUB (CuPy)", *CUB_ALGORITHMS, "row_sums")
def cub_of_cupy(m, d, kernel):
    cupy = need("cupy")
    from cupy import _core
    from cupy.cuda import cub as library

    _core.set_reduction_accelerators(["cub"])
    _core.set_routine_accelerators(["cub"])
    dtype = {"sum_i32": m.torch.int32, "histogram": m.torch.uint8}.get(kernel)

    def make():
        if kernel == "row_sums":
            x = cupy.asarray(m.random(d["rows"], d["cols"]))
            return lambda: x.sum(axis=1)
        x = cupy.asarray(m.random(d["n"], dtype=dtype))
        if kernel == "histogram":
            y = cupy.zeros(256, dtype=cupy.int64)
            return lambda: library.device_histogram(x, y, 257)
        if kernel == "sum_i32":
            return lambda: x.sum(dtype=cupy.int32)
        return {"sum_f32": x.sum, "max_f32": x.max, "argmax_f32": x.argmax}[kernel]

    return make


@peer("ATen", "softmax_f32", "softmax_bf16", "layer_norm_f32", "layer_norm_bf16", "rms_norm_bf16")
def aten_rows(m, d, kernel):
    return lambda: rowwise(m, d, kernel)[0]


@peer("torch.compile", "softmax_bf16", "layer_norm_bf16")
def compiled_rows(m, d, kernel):
    if m.quick:
        raise Missing("left out by --quick")
    m.torch._dynamo.reset()
    return lambda: rowwise(m, d, kernel, wrap=m.torch.compile)[0]


def rowwise(m, d, kernel, wrap=lambda function: function):
    """The call, its inputs, and an array for the result."""
    torch, functional = m.torch, m.torch.nn.functional
    dtype = torch.bfloat16 if kernel.endswith("bf16") else torch.float32
    x = m.random(d["rows"], d["cols"], dtype=dtype)
    y = m.empty(d["rows"], d["cols"], dtype=dtype)
    gain, shift = m.random(d["cols"], dtype=dtype), m.random(d["cols"], dtype=dtype)
    shape = (d["cols"],)
    if kernel.startswith("softmax"):
        function = wrap(lambda x: torch.softmax(x, dim=1))
        return (lambda: function(x)), (x, gain, shift), y
    if kernel.startswith("layer_norm"):
        function = wrap(lambda x, gain, shift: functional.layer_norm(x, shape, gain, shift, 1e-5))
        return (lambda: function(x, gain, shift)), (x, gain, shift), y
    function = wrap(lambda x, gain: functional.rms_norm(x, shape, gain, 1e-5))
    return (lambda: function(x, gain)), (x, gain, shift), y


@peer("Triton", "softmax_f32", "softmax_bf16", "layer_norm_f32", "layer_norm_bf16", "rms_norm_bf16", "transpose")
def triton_peers(m, d, kernel):
    need("triton")
    import triton_peers as kernels

    if kernel == "transpose":
        a, b = m.random(d["m"], d["n"]), m.empty(d["n"], d["m"])
        bound = lambda a, b, config: lambda: kernels.transpose(a, b, **config)
        config = tune(m, kernels.CONFIGS[kernel], lambda config: bound(a, b, config))
        bound(a, b, config)()
        close(b, a.t(), 0.0)
        return lambda: bound(m.random(d["m"], d["n"]), m.empty(d["n"], d["m"]), config)

    family = kernel.rsplit("_", 1)[0]

    def bound(inputs, y, config):
        x, gain, shift = inputs
        if family == "softmax":
            return lambda: kernels.softmax(x, y, **config)
        if family == "layer_norm":
            return lambda: kernels.layer_norm(x, gain, shift, y, 1e-5, **config)
        return lambda: kernels.rms_norm(x, gain, y, 1e-5, **config)

    reference, inputs, y = rowwise(m, d, kernel)
    config = tune(m, kernels.CONFIGS[family], lambda config: bound(inputs, y, config))
    bound(inputs, y, config)()
    close(y, reference(), 2e-2 if kernel.endswith("bf16") else 1e-4)
    return lambda: bound(*rowwise(m, d, kernel)[1:], config)


def tune(m, configs, make):
    """The configuration that took the least time."""
    best, least, errors = None, float("inf"), []
    for config in configs:
        try:
            call = make(config)
            call()
            seconds = min(m.events.time_each(5, call))
        except Exception as error:
            errors.append(f"{config}: {type(error).__name__}: {str(error)[:200]}")
            continue
        if seconds < least:
            best, least = config, seconds
    if best is None:
        raise RuntimeError("no configuration runs: " + "; ".join(errors))
    print(f"  Triton: {best} of {len(configs)} configurations", *errors, sep="\n  ", file=sys.stderr)
    return best


@peer("CUDA naive", "stencil_7")
def cuda_stencil(m, d, kernel):
    n, function = d["d"], m.kernel("stencil_7")
    return lambda: launch(function, (-(-n // 128), n, n), (128, 1), m.random(n, n, n), m.empty(n, n, n), n)


@peer("CUDA shared tiles", "n_body")
def cuda_n_body(m, d, kernel):
    n, function = d["n"], m.kernel("n_body")
    return lambda: launch(function, (n // 256,), (256,), m.random(n, 4), m.empty(n, 4), n, 1e-4)


@peer("cuBLAS", "matmul_f32")
def cublas(m, d, kernel):
    def make():
        a, b, c = m.random(d["m"], d["k"]), m.random(d["k"], d["n"]), m.empty(d["m"], d["n"])
        return lambda: m.torch.matmul(a, b, out=c)

    return make


@peer("CUDA tiled", "matmul_f32")
def cuda_matmul(m, d, kernel):
    function, grid = m.kernel("matmul_tiled"), (-(-d["n"] // 32), -(-d["m"] // 32))
    arrays = lambda: (m.random(d["m"], d["k"]), m.random(d["k"], d["n"]), m.empty(d["m"], d["n"]))
    return lambda: launch(function, grid, (32, 32), *arrays(), d["m"], d["n"], d["k"])


def measure_floor(m):
    """What the machine can do: bytes a second of a copy, multiply-adds a second, the clock under that load."""
    n = workloads.N
    copies = {}
    for name, build in PEERS["copy"]:
        calls = [build(m, {"n": n})()]
        runs = timing.measure(m.events, calls, total=0.3)
        copies[name] = 8 * n / timing.quantiles(runs)["median_s"] / 1e9
    answer = {"copy_gb_per_s": max(copies.values()), "copies": copies, "device": m.properties.name}
    units = m.properties.multi_processor_count
    answer["multiprocessors"] = units
    try:
        blocks, threads, rounds = 2 * units, 1024, 4096
        out, cycles = m.empty(blocks * threads), m.empty(blocks, dtype=m.torch.int64)
        call = launch(m.kernel("multiply_add"), (blocks,), (threads,), out, cycles, 0.999, 0.001, rounds)
        seconds = timing.quantiles(timing.measure(m.events, [call], total=0.5))["median_s"]
        answer["clock_hz"] = int(cycles.max()) / seconds
        answer["ffma_tflop_per_s"] = 2 * 128 * units * answer["clock_hz"] / 1e12
        answer["ffma_reached_tflop_per_s"] = 2 * blocks * threads * rounds * 32 * 8 / seconds / 1e12
    except Exception as error:
        answer["ffma_error"] = f"{type(error).__name__}: {error}"
        traceback.print_exc()
    return answer


def measure_peers(m, workload):
    """One entry a peer: its times, or why there are none."""
    entries = []
    for name, build in PEERS.get(workload.kernel, []):
        entry = {"peer": name.replace("CUDA", m.cuda_name), "workload": workload.name}
        try:
            entry.update(measure_peer(m, workload, build))
        except Missing as error:
            entry["missing"] = str(error)
        except Exception as error:
            entry["error"] = f"{type(error).__name__}: {str(error)[:2000]}"
            traceback.print_exc()
        entries.append(entry)
        release(m)
    return entries


def measure_peer(m, workload, build):
    make = build(m, workload.dims)
    # The bytes of the least work stand for the bytes of the arrays: never more, so never too few sets.
    count = timing.sets_wanted(workload.bytes, m.cache_bytes())
    calls = [make() for _ in range(count)]
    limits = (5, 10) if m.quick else (5, 50)
    found = timing.quantiles(timing.measure(m.events, calls, limits=limits))
    return {**found, "sets": count, "rate": workload.rate(found["median_s"]), "unit": workload.unit}


def release(m):
    """Gives all device memory back: Krn runs in a process of its own and wants some."""
    gc.collect()
    m.torch.cuda.empty_cache()
    if "cupy" in sys.modules:
        sys.modules["cupy"].get_default_memory_pool().free_all_blocks()


def serve():
    """Answers requests until the input ends. What libraries print goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    machine = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if machine is None:
                machine = Machine(request["quick"])
            if request["what"] == "floor":
                answer = measure_floor(machine)
                release(machine)
            else:
                answer = {"peers": measure_peers(machine, workloads.BY_NAME[request["what"]])}
        except Missing as error:
            answer = {"missing": str(error)}
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {str(error)[:2000]}"}
        print(json.dumps(answer), file=answers, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="workloads, comma-separated; a prefix selects several")
    parser.add_argument("--quick", action="store_true", help="fewer measurements, no torch.compile")
    parser.add_argument("--serve", action="store_true", help="answer JSON requests on standard input")
    options = parser.parse_args()
    if options.serve:
        return serve()
    try:
        machine = Machine(options.quick)
    except Missing as error:
        raise SystemExit(f"no peers: {error}")
    print(json.dumps(measure_floor(machine)))
    for workload in workloads.select(options.only):
        for entry in measure_peers(machine, workload):
            print(json.dumps(entry), flush=True)


if __name__ == "__main__":
    main()
