"""Kernels as operators of torch."""

from __future__ import annotations

import pathlib
import shutil
import sysconfig
from typing import Any

import krn
import pytest

torch = pytest.importorskip("torch", reason="no torch here")

import krn.torch as krn_torch  # noqa: E402

DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
TEXT = """
kernel scale(x: f32[n], by: f32) -> y: f32[n] { y[i] = by * x[i] }
kernel scale_backward(grad_y: f32[n], by: f32) -> grad_x: f32[n] { grad_x[i] = by * grad_y[i] }
kernel square(x: f32[n]) -> y: f32[n] { y[i] = x[i] * x[i] }
kernel square_backward(x: f32[n], grad_y: f32[n]) -> grad_x: f32[n] { grad_x[i] = 2.0 * x[i] * grad_y[i] }
kernel add_into(x: f32[n], y: inout f32[n]) { y[i] += x[i] }
kernel matmul(a: f32[m, k], b: f32[k, n]) -> c: f32[m, n] { c[i, j] = sum(p: a[i, p] * b[p, j]) }
kernel both(x: f32[n, 2]) -> low: f32[n], high: f32[n] { low[i] = min(x[i, 0], x[i, 1])
 high[i] = max(x[i, 0], x[i, 1]) }
kernel total(x: f32[n]) -> s: f32 { s = sum(i: x[i]) }
kernel narrow(x: bf16[n]) -> y: f16[n] { y[i] = x[i] }
kernel gather(x: f32[n], at: i32[m]) -> y: f32[m] { y[i] = x[at[i]] }
"""

WHILE = """
kernel halve(x: inout f32[n]) -> turns: i32 {
    var t = 0
    while max(i: x[i]) > 1.0 { x[i] = 0.5 * x[i]
 t += 1 }
    turns = t
}
"""


@pytest.fixture(scope="module")
def kernels() -> krn.Module:
    return krn.compile(TEXT, name="torch.krn")


@pytest.fixture(scope="module")
def ops(kernels: krn.Module) -> dict[str, Any]:
    register = krn_torch.register
    return {
        "scale": register(kernels.scale, "krn_test::scale", backward=kernels.scale_backward),
        "square": register(kernels.square, "krn_test::square", backward=kernels.square_backward),
        "add_into": register(kernels.add_into, "krn_test::add_into"),
        "matmul": register(kernels.matmul, "krn_test::matmul"),
        "both": register(kernels.both, "krn_test::both"),
        "total": register(kernels.total, "krn_test::total"),
    }


@pytest.mark.parametrize("device", DEVICES)
def test_tensors_go_in_and_come_out(kernels: krn.Module, device: str) -> None:
    for n in (3, 1000, 100_000):
        x = torch.randn(n, device=device)
        y = kernels.scale(x, 3.0)
        assert isinstance(y, torch.Tensor) and y.device == x.device
        assert torch.equal(y, 3 * x)
        out = torch.empty_like(x)
        assert kernels.scale(x, 3.0, out) is out and torch.equal(out, y)
    a, b = torch.randn(70, 90, device=device), torch.randn(90, 50, device=device)
    assert torch.allclose(kernels.matmul(a, b), a @ b, rtol=1e-4, atol=1e-4)
    wide = torch.randn(64, device=device).bfloat16()
    assert torch.equal(kernels.narrow(wide), wide.half())
    assert torch.allclose(kernels.total(torch.ones(70_000, device=device)).cpu(), torch.tensor(70_000.0))


@pytest.mark.parametrize("device", DEVICES)
def test_what_does_not_fit_is_refused(kernels: krn.Module, device: str) -> None:
    a = torch.randn(16, 32, device=device)
    with pytest.raises(krn.ArgumentError, match=r"`a` is not contiguous.*pass `a.contiguous\(\)`"):
        kernels.matmul(a.t(), torch.randn(16, 4, device=device))
    with pytest.raises(krn.ArgumentError, match="no multiple of 16 bytes"):
        kernels.scale(torch.randn(100, device=device)[1:], 1.0)
    with pytest.raises(krn.ArgumentError, match="`x` has elements of type `f32`, but `f64` was given"):
        kernels.scale(torch.randn(4, device=device).double(), 1.0)
    x = torch.randn(100, device=device)
    with pytest.raises(krn.ArgumentError, match="is written and is the same memory"):
        kernels.add_into(x, x)
    with pytest.raises(krn.ArgumentError, match="is a scalar, but an array was given"):
        kernels.scale(x, torch.tensor(1.0, device=device))


@pytest.mark.parametrize("device", DEVICES)
def test_tensors_that_lost_their_memory_are_refused(kernels: krn.Module, device: str) -> None:
    x = torch.randn(100, device=device)
    x.untyped_storage().resize_(0)
    with pytest.raises(krn.ArgumentError, match="`x` has no memory any more"):
        kernels.scale(x, 2.0)


def test_kernels_that_are_no_operators_break_graphs(kernels: krn.Module) -> None:
    program = torch.compile(lambda x: kernels.scale(x + 1, 2.0) * 2, backend="aot_eager")
    x = torch.randn(32)
    assert torch.allclose(program(x), 4 * (x + 1))


def test_devices_are_not_mixed(kernels: krn.Module) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    with pytest.raises(krn.ArgumentError, match="`b` is on cpu, but `a` is on cuda:0; move one"):
        kernels.matmul(torch.randn(4, 4, device="cuda"), torch.randn(4, 4))


@pytest.mark.parametrize("device", DEVICES)
def test_torch_finds_nothing_wrong_with_the_operators(ops: dict[str, Any], device: str) -> None:
    x = torch.randn(24, device=device)
    krn_torch.opcheck(ops["scale"], x.clone().requires_grad_(), 2.0)
    krn_torch.opcheck(ops["square"], x.clone().requires_grad_())
    krn_torch.opcheck(ops["add_into"], x, x.clone())
    krn_torch.opcheck(ops["matmul"], torch.randn(4, 8, device=device), torch.randn(8, 4, device=device))
    krn_torch.opcheck(ops["both"], torch.randn(8, 2, device=device))
    krn_torch.opcheck(ops["total"], x)


def test_what_is_written_is_declared(ops: dict[str, Any]) -> None:
    assert str(ops["add_into"].default._schema) == "krn_test::add_into(Tensor x, Tensor(a1!) y) -> ()"
    assert str(ops["both"].default._schema) == "krn_test::both(Tensor x) -> (Tensor, Tensor)"
    assert str(ops["scale"].default._schema) == "krn_test::scale(Tensor x, float by) -> Tensor"


@pytest.mark.parametrize("device", DEVICES)
def test_gradients_come_from_the_named_kernel(ops: dict[str, Any], device: str) -> None:
    x = torch.randn(32, device=device, requires_grad=True)
    ops["square"](x).sum().backward()
    assert torch.allclose(x.grad, 2 * x.detach())
    x.grad = None
    ops["scale"](ops["square"](x), 3.0).sum().backward()
    assert torch.allclose(x.grad, 6 * x.detach())


def test_a_backward_kernel_has_to_fit(kernels: krn.Module) -> None:
    with pytest.raises(krn.ArgumentError, match="`a` is no argument, result or gradient of `square`"):
        krn_torch.register(kernels.square, "krn_test::wrong", backward=kernels.matmul)
    with pytest.raises(krn.ArgumentError, match="the result `y` is no gradient; there can be `grad_x`"):
        krn_torch.register(kernels.square, "krn_test::wrong2", backward=kernels.square)


@pytest.mark.parametrize("device", DEVICES)
def test_operators_are_compiled_into_programs(ops: dict[str, Any], device: str) -> None:
    backend = "inductor" if device == "cuda" else "aot_eager"

    def program(x: Any, y: Any) -> Any:
        ops["add_into"](x, y)
        return ops["scale"](ops["square"](x) + 1, 2.0) + y

    x = torch.randn(40, device=device)
    expected_y = x.clone() + x
    compiled = torch.compile(program, backend=backend, fullgraph=True, dynamic=True)
    for n in (40, 24):
        y = x[:n].clone()
        assert torch.allclose(compiled(x[:n].clone(), y), 2 * (x[:n] ** 2 + 1) + expected_y[:n])
        assert torch.allclose(y, expected_y[:n])
    x = torch.randn(16, device=device, requires_grad=True)
    torch.compile(lambda x: ops["square"](x).sum(), backend=backend, fullgraph=True)(x).backward()
    assert torch.allclose(x.grad, 2 * x.detach())


def test_the_default_backend_compiles_around_operators(
    ops: dict[str, Any], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a CPU, where it writes C++ for the rest of the program."""
    if not any(shutil.which(name) for name in ("g++", "c++", "clang++")):
        pytest.skip("no C++ compiler, which torch's Inductor needs")
    if not pathlib.Path(sysconfig.get_path("include"), "Python.h").is_file():
        pytest.skip("no headers of Python, which torch's Inductor needs")
    from torch._inductor import config

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    # Each set of instructions of the CPU that it knows would be tried by a compilation.
    monkeypatch.setattr(config.cpp, "simdlen", 1)
    program = torch.compile(lambda x: 2 * ops["square"](x + 1), fullgraph=True)
    x = torch.randn(100)
    assert torch.allclose(program(x), 2 * (x + 1) ** 2)
    assert any(tmp_path.rglob("*.cpp"))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_kernels_are_captured_in_graphs(kernels: krn.Module) -> None:
    x, y = torch.randn(70_000, device="cuda"), torch.zeros(70_000, device="cuda")
    kernels.scale(x, 2.0, y)
    kernels.total(y)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernels.scale(x, 2.0, y)
        total = kernels.total(y)
    for _ in range(3):
        x.normal_()
        graph.replay()
        assert torch.equal(y, 2 * x) and torch.allclose(total, y.sum(), rtol=1e-3, atol=1e-1)
    fresh = krn.compile(TEXT).gather
    broken = torch.cuda.CUDAGraph()
    with pytest.raises(krn.DeviceError, match="prepare"), torch.cuda.graph(broken):
        fresh(x, torch.zeros(5, dtype=torch.int32, device="cuda"), y[:5].clone())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_while_is_a_loop_of_the_graph() -> None:
    kernel = krn.compile(WHILE).halve
    x = torch.full((1000,), 4.0, device="cuda")
    # On a stream, and on the default one.
    assert kernel(x).item() == 2 and (x == 1).all()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.mul_(2)
        turns = kernel(x)
        x.add_(1)
    for value, wanted in [(4.0, 3), (0.25, 0), (512.0, 10), (1.0, 1)]:
        x.fill_(value)
        graph.replay()
        assert turns.item() == wanted
        assert (x == 2 * value / 2**wanted + 1).all()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_launches_are_on_the_current_stream(kernels: krn.Module) -> None:
    x = torch.zeros(1 << 20, device="cuda")
    kernels.scale(x, 1.0)
    for stream in [torch.cuda.Stream() for _ in range(70)]:
        with torch.cuda.stream(stream):
            torch.cuda._sleep(200_000)
            x.fill_(3.0)
            y = kernels.scale(x, 2.0)
        stream.synchronize()
        assert (y == 6).all()
        x.zero_()
        torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    y = kernels.scale.on(stream)(x, 2.0)
    stream.synchronize()
    assert (y == 0).all()


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="no two GPUs")
def test_a_kernel_runs_where_its_arrays_are(kernels: krn.Module) -> None:
    assert torch.cuda.current_device() == 0
    for number in (1, 0, 1):
        x = torch.randn(100_000, device=f"cuda:{number}")
        y = kernels.scale(x, 2.0)
        assert y.device == x.device and torch.equal(y, 2 * x)
        assert torch.allclose(kernels.total(torch.ones_like(x)).cpu(), torch.tensor(100_000.0))
    assert torch.cuda.current_device() == 0
    stream = torch.cuda.Stream(device=1)
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000)
        x = torch.full((1 << 20,), 3.0, device="cuda:1")
        y = kernels.scale(x, 2.0)
    stream.synchronize()
    assert (y == 6).all()
    with pytest.raises(krn.ArgumentError, match="`b` is on cuda:1, but `a` is on cuda:0; move one"):
        kernels.matmul(torch.randn(4, 4, device="cuda:0"), torch.randn(4, 4, device="cuda:1"))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_what_kernels_did_wrong_is_told_when_somebody_waits(kernels: krn.Module) -> None:
    x, at = torch.zeros(10, device="cuda"), torch.tensor([3, 12], dtype=torch.int32, device="cuda")
    kernels.gather(x, at)
    with pytest.raises(krn.BoundsError, match="index 12 is outside axis 0 of `x`"):
        krn.synchronize()
    krn.synchronize()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_cupy_and_the_cuda_array_interface(kernels: krn.Module) -> None:
    cupy = pytest.importorskip("cupy")
    x = cupy.arange(1000, dtype="float32")
    y = kernels.scale(x, 2.0)
    assert isinstance(y, cupy.ndarray) and (y == 2 * x).all()
    assert abs(float(kernels.total(cupy.ones(70_000, "float32"))) - 70_000) < 1

    class Interface:
        __cuda_array_interface__ = x.__cuda_array_interface__

    out = cupy.zeros_like(x)
    kernels.scale(Interface(), 2.0, out)
    assert (out == 2 * x).all()
    both = torch.empty(1000, device="cuda")
    kernels.scale(x, 2.0, both)
    assert torch.equal(both, torch.as_tensor(y, device="cuda"))


def test_the_calls_for_the_sanitizer_run() -> None:
    import sanitized

    sanitized.main()
