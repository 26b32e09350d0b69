"""What goes wrong is an exception with the tool's text, and nothing is launched."""

from __future__ import annotations

from typing import Any

import krn
import numpy as np
import pytest

TEXT = """
kernel double(x: f32[n]) -> y: f32[n] { y[i] = 2.0 * x[i] }
kernel matmul(a: f32[m, k], b: f32[k, n]) -> c: f32[m, n] { c[i, j] = sum(p: a[i, p] * b[p, j]) }
kernel saxpy(alpha: f32, x: f32[n], y: inout f32[n]) { y[i] += alpha * x[i] }
kernel gather(x: f32[n], at: i32[m]) -> y: f32[m] { y[i] = x[at[i]] }
kernel scatter(at: i32[n], y: inout f32[m]) where injective(at in 0..m) { forall i in n { y[at[i]] = 1.0 } }
kernel count(k: u8, flag: bool, x: i32[n]) -> y: i32[n] { y[i] = if flag { x[i] + (k as i32) } else { x[i] } }
kernel even(x: f32[n]) -> y: f32[n] where n % 4 == 0 { y[i] = x[i] }
kernel asserted(x: f32[n]) -> y: f32[n] { forall i in n { assert x[i] > 0.0; y[i] = 1.0 / x[i] } }
struct Body { x: f32, m: f64 }
kernel mass(b: Body[n]) -> m: f64[n] { m[i] = b[i].m }
kernel split(b: Body[n]) -> m: f64[n] { m[i] = b[i].m }
schedule split { layout b: soa }
"""


@pytest.fixture(scope="module")
def kernels() -> krn.Module:
    return krn.compile(TEXT, name="errors.krn")


def f32(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def says(text: str, call: Any, kind: type[BaseException] = krn.ArgumentError) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value), str(caught.value)


def test_mistakes_in_a_file_have_codes_and_places() -> None:
    with pytest.raises(krn.CompileError) as caught:
        krn.compile("kernel k(x: f32[n]) -> y: f32[n] { y[i] = z[i] }", name="wrong.krn")
    error = caught.value
    assert "wrong.krn:1:43" in str(error) and "error[E" in str(error)
    (found,) = error.diagnostics
    assert (found["primary"]["line"], found["primary"]["column"]) == (1, 43)
    assert error.codes == [found["code"]] and f"error[{error.codes[0]}]" in str(error)
    assert isinstance(error, krn.Error) and isinstance(error, ValueError)
    says("`sm_9` is no target", lambda: krn.compile(TEXT, target="sm_9"), krn.CompileError)
    says("no kernel has a dimension `q`", lambda: krn.compile(TEXT, dims={"q": 3}), krn.CompileError)
    says("cannot read `no/such.krn`", lambda: krn.compile("no/such.krn"), krn.FileError)
    says("cannot read `no/such.json`", lambda: krn.load("no/such.json"), krn.FileError)


def test_warnings_are_data() -> None:
    module = krn.compile("kernel k(x: f32[n]) -> y: f32[n] { if n > 5 { y[i] = x[i] } }")
    assert module.warnings and all(warning["severity"] == "warning" for warning in module.warnings)


def test_names_and_numbers_of_arguments(kernels: krn.Module) -> None:
    says("takes 2 arguments and results, but 3 were given", lambda: kernels.double(1, 2, 3), TypeError)
    says("has no argument `z`; its arguments are `x`, `y`", lambda: kernels.double(z=1), TypeError)
    says("argument `x` was not given", lambda: kernels.double(), TypeError)
    says("got `x` twice", lambda: kernels.double(f32(1), x=f32(1)), TypeError)
    says("has no kernel `triple`; it has `double`", lambda: kernels.triple, krn.UnknownKernel)
    assert not hasattr(kernels, "triple")


def test_types(kernels: krn.Module) -> None:
    says("kernel `double`: `x` has elements of type `f32`, but `f64` was given", lambda: kernels.double(np.zeros(3)))
    says("a type that Krn does not have", lambda: kernels.double(np.zeros(3, np.complex64)))
    says("`x` is an array, but a `list` was given", lambda: kernels.double([1.0]))
    says("`alpha` is a scalar, but an array was given", lambda: kernels.saxpy(f32(1), f32(1), f32(1)))
    says("`alpha` is a `f32`, but 'a' was given", lambda: kernels.saxpy("a", f32(1), f32(1)))
    ints = np.zeros(1, np.int32)
    says("`k` is a `u8`, but 256 was given", lambda: kernels.count(256, True, ints))
    says("`k` is a `u8`, but 1.5 was given", lambda: kernels.count(1.5, True, ints))
    says("`flag` is a `bool`, but 1 was given", lambda: kernels.count(1, 1, ints))
    says("pass an array of structs of 16 bytes", lambda: kernels.mass(f32(3)))
    says("has the layout `soa`", lambda: kernels.split(np.zeros((3, 16), np.uint8)))
    assert kernels.mass(np.zeros((3, 16), np.uint8)).shape == (3,)


def test_shapes(kernels: krn.Module) -> None:
    says(
        "axis 0 of `b` must have extent 70 (k = 70, from axis 1 of `a`), but an array with extent 64 was given",
        lambda: kernels.matmul(f32(8, 70), f32(64, 8)),
    )
    says("`x` has 1 axes, but an array with 2 was given", lambda: kernels.double(f32(2, 2)))
    says("axis 0 of `y` must have extent 4", lambda: kernels.double(f32(4), f32(5)))
    says("`where n % 4 == 0` does not hold (n = 6)", lambda: kernels.even(f32(6)))


def test_strides(kernels: krn.Module) -> None:
    a = f32(16, 32)
    says(
        "`a` is not contiguous: its elements do not follow each other in row-major order; pass "
        "`numpy.ascontiguousarray(a)`",
        lambda: kernels.matmul(a.T, f32(16, 4)),
    )
    says("not contiguous", lambda: kernels.double(f32(8)[::2]))
    says("no multiple of 16 bytes, as kernels need it; pass a copy of that part", lambda: kernels.double(f32(64)[1:]))
    # An axis of one element may have any stride.
    assert kernels.matmul(f32(4, 64)[:, :1].copy()[::2][:1], f32(1, 4)).shape == (1, 4)


def test_memory_that_must_not_be_written(kernels: krn.Module) -> None:
    y = f32(100)
    y.flags.writeable = False
    says("`y` is written, but the array is read-only", lambda: kernels.saxpy(1.0, f32(100), y))
    says("`y` is written, but the array is read-only", lambda: kernels.double(f32(100), y))
    assert kernels.double(y).shape == (100,)
    x = f32(100)
    says("`y` is written and is the same memory as `x`; pass a copy of one", lambda: kernels.saxpy(1.0, x, x))


def test_what_a_kernel_does_wrong(kernels: krn.Module) -> None:
    with pytest.raises(krn.BoundsError) as caught:
        kernels.gather(f32(10), np.array([3, 12], np.int32))
    error = caught.value
    assert "index 12 is outside axis 0 of `x`, whose extent is 10" in str(error)
    assert (error.kernel, error.file, error.line) == ("gather", "errors.krn", 5)
    assert (error.array, error.axis, error.index, error.extent) == ("x", 0, 12, 10)
    with pytest.raises(krn.InjectiveError) as twice:
        kernels.scatter(np.array([1, 1], np.int32), f32(4))
    assert twice.value.array == "at"
    with pytest.raises(krn.AssertionFailed) as false:
        kernels.asserted(np.array([1, 2, 0], np.float32))
    assert (false.value.condition, false.value.indices) == ("x[i] > 0.0", [("i", 2)])
    # And the kernel goes on working.
    assert kernels.gather(f32(10), np.array([3], np.int32)).shape == (1,)


class Foreign:
    """An array of some library, which can be told what to say."""

    def __init__(self, array: Any, error: BaseException | None = None, device: tuple[int, int] = (1, 0)) -> None:
        self.array, self.error, self.device = array, error, device

    def __dlpack__(self, **keywords: Any) -> Any:
        if self.error is not None:
            raise self.error
        if "max_version" in keywords and not hasattr(self.array, "versioned"):
            keywords.pop("max_version")
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


def test_other_libraries_and_what_they_raise(kernels: krn.Module) -> None:
    # The kernel reads it; nobody knows how such a library allocates.
    y = f32(8)
    kernels.double(Foreign(np.ones(8, np.float32)), y)
    assert (y == 2).all()
    says("no memory can be made for the result `y`", lambda: kernels.double(Foreign(f32(8))))
    says("deleted", lambda: kernels.double(Foreign(f32(8), RuntimeError("deleted"))), RuntimeError)
    says("DLPack's kind 4", lambda: kernels.double(Foreign(f32(8), device=(4, 0)), y))

    class Old(Foreign):
        def __dlpack__(self) -> Any:  # type: ignore[override]
            return self.array.__dlpack__()

    kernels.double(Old(np.full(8, 3, np.float32)), y)
    assert (y == 6).all()
    capsule = y.__dlpack__()

    class Used(Foreign):
        def __dlpack__(self, **_: Any) -> Any:
            return capsule

    kernels.double(Used(y), f32(8))
    says("gave no capsule of DLPack, or one that was used before", lambda: kernels.double(Used(y), f32(8)), BufferError)


def test_arrays_are_let_go(kernels: krn.Module) -> None:
    import sys

    x, y = f32(1000), f32(1000)
    before = sys.getrefcount(x), sys.getrefcount(y)
    for _ in range(10):
        kernels.double(x, y)
        with pytest.raises(krn.ArgumentError):
            kernels.double(x, x)
    assert (sys.getrefcount(x), sys.getrefcount(y)) == before


def test_devices_that_are_not_there(kernels: krn.Module) -> None:
    says("`gpu` is no device: use `cpu`, `cuda` or `cuda:1`", lambda: kernels.double.prepare("gpu", n=3))
    if not krn.gpus():
        with pytest.raises(krn.DeviceError):
            kernels.double.prepare("cuda", n=3)
