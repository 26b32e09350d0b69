"""Arrays as DLPack describes them, of both forms of its structure, by hand: offsets, strides, flags, versions, deleters."""

from __future__ import annotations

import ctypes
from typing import Any

import krn
import numpy as np
import pytest

READ_ONLY = 1


class DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("rank", ctypes.c_int32),
        ("kind", DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Old(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32 * 2),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


class Array:
    """Some `f32` of an array of NumPy, from an offset on. Counts how often it is given out, and given back."""

    def __init__(
        self,
        array: Any,
        shape: tuple[int, ...],
        *,
        offset: int = 0,
        strides: tuple[int, ...] | None = None,
        old: bool = False,
        flags: int = 0,
        version: tuple[int, int] = (1, 0),
        lanes: int = 1,
    ) -> None:
        self.array = array
        self.given, self.back = 0, 0
        self.asked: list[Any] = []
        self._old = old
        self._shape = (ctypes.c_int64 * len(shape))(*shape)
        self._strides = (ctypes.c_int64 * len(shape))(*strides) if strides is not None else None
        self._deleter = DELETER(self._delete)
        tensor = Tensor(
            array.ctypes.data, (1, 0), len(shape), DataType(2, 32, lanes), self._shape, self._strides, offset
        )
        made = Old(tensor, None, self._deleter) if old else Versioned(version, None, self._deleter, flags, tensor)
        self._made = made

    def _delete(self, _: int) -> None:
        self.back += 1

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:
        self.given += 1
        self.asked.append((stream, max_version))
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self._made), b"dltensor" if self._old else b"dltensor_versioned", None)


@pytest.fixture(scope="module")
def double() -> krn.Kernel:
    return krn.compile("kernel double(x: f32[n]) -> y: f32[n] { y[i] = 2.0 * x[i] }", name="dlpack.krn").double


@pytest.fixture
def memory() -> Any:
    """128 elements, the first on a multiple of 16 bytes."""
    raw = np.zeros(132, np.float32)
    start = -raw.ctypes.data % 16 // 4
    aligned = raw[start : start + 128]
    aligned[:] = np.arange(128)
    return aligned


@pytest.mark.parametrize("old", [False, True])
def test_offsets_count_in_bytes(double: krn.Kernel, memory: Any, old: bool) -> None:
    y = np.zeros(64, np.float32)
    x = Array(memory, (64,), offset=128, old=old)
    double(x, y)
    assert (y == 2 * memory[32:96]).all()
    # What is written is written there.
    out = Array(memory, (64,), offset=256, strides=(1,), old=old)
    double(np.ones(64, np.float32), out)
    assert (memory[64:] == 2).all() and (memory[:64] == np.arange(64)).all()
    assert (x.given, x.back, out.given, out.back) == (1, 1, 1, 1)
    assert x.asked[0] == (None, (1, 0))


@pytest.mark.parametrize("old", [False, True])
def test_what_is_refused_is_given_back(double: krn.Kernel, memory: Any, old: bool) -> None:
    y = np.zeros(64, np.float32)
    for x, text in (
        (Array(memory, (64,), offset=4, old=old), "no multiple of 16 bytes"),
        (Array(memory, (64,), strides=(2,), old=old), "not contiguous"),
        (Array(memory, (8, 8), old=old), "`x` has 1 axes, but an array with 2 was given"),
        (Array(memory, (64,), lanes=2, old=old), "a type that Krn does not have"),
    ):
        with pytest.raises(krn.ArgumentError, match=text):
            double(x, y)
        assert (x.given, x.back) == (1, 1)
    assert (y == 0).all()


def test_read_only_arrays_are_read_alone(double: krn.Kernel, memory: Any) -> None:
    x, y = Array(memory, (64,), flags=READ_ONLY), np.zeros(64, np.float32)
    double(x, y)
    assert (y == 2 * memory[:64]).all()
    with pytest.raises(krn.ArgumentError, match="`y` is written, but the array is read-only"):
        double(y, x)
    assert x.given == x.back


def test_versions(double: krn.Kernel, memory: Any) -> None:
    y = np.zeros(64, np.float32)
    later = Array(memory, (64,), version=(1, 9))
    double(later, y)
    assert (y == 2 * memory[:64]).all() and later.back == 1
    # The structure of another major version is not known, but for its deleter.
    with pytest.raises(BufferError, match=r"DLPack 2\.0 is not known here"):
        double(Array(memory, (64,), version=(2, 0)), y)
