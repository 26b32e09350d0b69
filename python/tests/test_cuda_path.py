"""The way of a call on a GPU, without one: over the driver of the runtime's tests, whose launches do nothing."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT

PROGRAM = """
import ctypes
import krn

driver = ctypes.CDLL("libcuda.so.1")
TEXT = '''
kernel scale(x: f32[n], by: f32) -> y: f32[n] { y[i] = by * x[i] }
kernel total(x: f32[n]) -> s: f32 { s = sum(i: x[i]) }
kernel gather(x: f32[n], at: i32[m]) -> y: f32[m] { y[i] = x[at[i]] }
'''
kernels = krn.compile(TEXT, name="path.krn")
print(krn.gpus())


class Array:
    def __init__(self, *shape, kind="<f4", stream=None, offset=0, read_only=False, memory=True):
        pointer = ctypes.c_uint64()
        if memory:
            assert driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(1 << 16)) == 0
        self.interface = {
            "shape": shape, "typestr": kind, "data": (pointer.value + offset, read_only), "version": 3, "stream": stream
        }

    @property
    def __cuda_array_interface__(self):
        return self.interface


def says(text, call):
    try:
        call()
    except krn.Error as error:
        assert text in str(error), error
    else:
        raise AssertionError("it went through")


x, y = Array(64), Array(64)
for _ in range(3):
    assert kernels.scale(x, 2.0, y) is y
assert kernels.scale.plan_count() == 1
kernels.scale(Array(64, stream=1), 2.0, y)
kernels.scale(Array(64, stream=0x1230), 2.0, y)
kernels.scale.on(0x1240)(x, 2.0, y)
# Scratch memory of our own, since nobody knows how these arrays are allocated.
big, s = Array(1 << 14), Array()
kernels.total(big, s)
kernels.total.on(0x1240)(big, s)
says("no memory can be made for the result `y`", lambda: kernels.scale(x, 2.0))
says("`x` starts at address", lambda: kernels.scale(Array(64, offset=4), 2.0, y))
says("`y` is written, but the array is read-only", lambda: kernels.scale(x, 2.0, Array(64, read_only=True)))
says("`y` is written and is the same memory as `x`", lambda: kernels.scale(x, 2.0, x))
says("`x` has no memory any more", lambda: kernels.scale(Array(64, memory=False), 2.0, y))
# A stream that is captured compiles, loads and allocates nothing.
captured = kernels.gather.on(0xCA0)
at = Array(8, kind="<i4")
says("call `prepare` with these sizes before the capture", lambda: captured(x, at, Array(8)))
captured.prepare("cuda:0", n=64, m=8)
captured(x, at, Array(8))
krn.synchronize()
# The caller's device stays current: here one of nobody's.
current = ctypes.c_void_p()
driver.cuCtxSetCurrent(ctypes.c_void_p(0x7700))
for call in (
    lambda: kernels.scale(x, 2.0, y),
    lambda: kernels.total(big, s),
    lambda: captured.prepare("cuda:0", n=128, m=8),
    krn.synchronize,
    krn.gpus,
):
    call()
    assert driver.cuCtxGetCurrent(ctypes.byref(current)) == 0 and current.value == 0x7700, current
import numpy
says("`y` is on cpu, but `x` is on cuda:0", lambda: kernels.scale(x, 2.0, numpy.zeros(64, "f4")))
print("all went well")
"""


def test_calls_on_a_gpu(tmp_path: pathlib.Path) -> None:
    driver = ROOT / "target" / "debug" / "deps" / "libkrn_fake_driver.so"
    if sys.platform != "linux" or not driver.is_file():
        pytest.skip("the tests' driver is not built here")
    shutil.copy(driver, tmp_path / "libcuda.so.1")
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr + done.stdout
    assert "all went well" in done.stdout and "sm_" in done.stdout
