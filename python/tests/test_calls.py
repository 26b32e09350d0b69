"""Calls: arguments, results, what a kernel says of itself."""

from __future__ import annotations

import inspect
import pathlib
import pickle

import krn
import numpy as np
import pytest

TEXT = """
// Doubles each element.
//
// A second paragraph.
kernel double(x: f32[n]) -> y: f32[n] { y[i] = 2.0 * x[i] }

kernel saxpy(alpha: f32, x: f32[n], y: inout f32[n]) { y[i] += alpha * x[i] }
kernel both(x: f32[n]) -> low: f32, high: f32 { low = min(i: x[i])
 high = max(i: x[i]) }
kernel pairs(x: i32[n], flag: bool) -> y: i32[n / 2] where n % 2 == 0 { y[i] = if flag { x[2 * i] } else { 0 } }
struct Point { x: f32, y: f32 }
kernel shift(p: Point[n], by: Point) -> q: Point[n] { q[i] = Point { x: p[i].x + by.x, y: p[i].y + by.y } }
"""


@pytest.fixture(scope="module")
def kernels() -> krn.Module:
    return krn.compile(TEXT, name="calls.krn")


def test_results_are_made_by_the_arrays_library(kernels: krn.Module) -> None:
    x = np.arange(1000, dtype=np.float32)
    y = kernels.double(x)
    assert isinstance(y, np.ndarray) and y.dtype == np.float32
    assert (y == 2 * x).all()


def test_results_can_be_given_by_place_and_by_name(kernels: krn.Module) -> None:
    x = np.ones(100, np.float32)
    y = np.zeros_like(x)
    assert kernels.double(x, y) is y
    assert (y == 2).all()
    y[:] = 0
    assert kernels.double(y=y, x=x) is y
    assert (y == 2).all()


def test_arrays_are_written_in_place(kernels: krn.Module) -> None:
    for n in (3, 1000):
        x, y = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
        assert kernels.saxpy(2, x, y) is None
        assert (y == 1 + 2 * x).all()


def test_several_results_are_a_tuple(kernels: krn.Module) -> None:
    low, high = kernels.both(np.array([3, -1, 7], np.float32))
    assert low.shape == () and (float(low), float(high)) == (-1, 7)


def test_structs_are_rows_of_their_fields(kernels: krn.Module) -> None:
    p = np.arange(8, dtype=np.float32).reshape(4, 2)
    q = kernels.shift(p, (10, 20))
    assert q.shape == (4, 2) and (q == p + [10, 20]).all()
    named = np.zeros(4, [("x", "f4"), ("y", "f4")])
    assert (kernels.shift(named, {"x": 1, "y": 2}) == [1, 2]).all()


def test_empty_arrays_are_arrays(kernels: krn.Module) -> None:
    assert kernels.double(np.zeros(0, np.float32)).shape == (0,)


def test_a_kernel_says_what_it_takes(kernels: krn.Module) -> None:
    double = kernels.double
    assert double.__name__ == "double"
    assert double.__doc__ == ("kernel double(x: f32[n]) -> y: f32[n]\n\nDoubles each element.\n\nA second paragraph.")
    assert str(inspect.signature(double)) == "(x: 'f32[n]', y: 'f32[n]' = None) -> 'f32[n]'"
    assert str(inspect.signature(kernels.saxpy)) == "(alpha: 'f32', x: 'f32[n]', y: 'inout f32[n]')"
    assert str(inspect.signature(kernels.pairs)) == "(x: 'i32[n]', flag: 'bool', y: 'i32[n / 2]' = None) -> 'i32[n / 2]'"
    assert [kernel.__name__ for kernel in kernels] == ["double", "saxpy", "both", "pairs", "shift"]
    assert "double" in dir(kernels) and kernels["double"] is double


def test_words_of_python_have_an_underscore() -> None:
    kernel = krn.compile("kernel k(from: f32[n]) -> y: f32[n] { y[i] = from[i] }").k
    assert str(inspect.signature(kernel)) == "(from_: 'f32[n]', y: 'f32[n]' = None) -> 'f32[n]'"
    x = np.ones(3, np.float32)
    assert (kernel(from_=x) == x).all() and (kernel(**{"from": x}) == x).all()


def test_plans_are_found_again(kernels: krn.Module) -> None:
    double = krn.compile(TEXT).double
    for n in (8, 16, 8, 16, 8):
        double(np.zeros(n, np.float32))
    assert double.plan_count() == 2
    saxpy = krn.compile(TEXT).saxpy
    for alpha in (1.0, 2.0):
        saxpy(alpha, np.zeros(8, np.float32), np.zeros(8, np.float32))
    assert saxpy.plan_count() == 1


def test_values_are_those_of_each_call(kernels: krn.Module) -> None:
    for alpha in (0.5, -3.0, np.float32(2), 7):
        y = np.zeros(4, np.float32)
        kernels.saxpy(alpha, np.ones(4, np.float32), y)
        assert (y == float(alpha)).all()


def test_files_dims_and_documents(examples: pathlib.Path, tmp_path: pathlib.Path) -> None:
    a, b = (np.random.default_rng(0).random((16, 16), np.float32) for _ in range(2))
    by_path = krn.compile(examples / "matmul.krn")
    by_name = krn.compile(str(examples / "matmul.krn"), dims={"k": 16}, target="sm_80")
    assert by_name.manifest["target"] == "sm_80" and by_path.name.endswith("matmul.krn")
    for module in (by_path, by_name):
        assert np.allclose(module.matmul(a, b), a @ b, rtol=1e-5)
    with pytest.raises(krn.ArgumentError, match="k"):
        by_name.matmul(np.zeros((4, 8), np.float32), np.zeros((8, 4), np.float32))
    document = tmp_path / "matmul.json"
    line = ["krn", "build", str(examples / "matmul.krn"), "--emit", "fat", "--target", "sm_80,sm_90", "-o", str(document)]
    assert krn._krn.tool(line) == 0
    loaded = krn.load(document)
    assert np.allclose(loaded.matmul(a, b), a @ b, rtol=1e-5)
    assert np.allclose(pickle.loads(pickle.dumps(loaded.matmul))(a, b), a @ b, rtol=1e-5)
    with pytest.raises(krn.DocumentError):
        krn.load("{}")


def test_kernels_travel_to_other_processes(kernels: krn.Module) -> None:
    copy = pickle.loads(pickle.dumps(kernels.double))
    assert (copy(np.ones(3, np.float32)) == 2).all()


def test_statics_are_read_and_set(examples: pathlib.Path) -> None:
    counter = krn.compile(examples / "static_counter.krn")
    counter.observe(np.array([1, 5, 2], np.float32))
    assert (int(counter.static("calls")), float(counter.static("largest"))) == (1, 5)
    counter.set_static("calls", 10)
    counter.observe(np.array([1], np.float32))
    assert int(counter.static("calls")) == 11
    with pytest.raises(krn.ArgumentError, match="has no static `colour`; it has"):
        counter.static("colour")


def test_code_is_prepared_ahead(kernels: krn.Module) -> None:
    kernels.double.prepare("cpu", n=4096)
    assert krn.gpus() == [] or "sm_" in krn.gpus()[0]
    krn.synchronize()
