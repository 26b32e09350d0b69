"""Krn: kernels in index notation, compiled for NVIDIA GPUs, as Python functions.

    import krn, torch
    kernels = krn.compile("kernel double(x: f32[n]) -> y: f32[n] { y[i] = 2.0 * x[i] }")
    y = kernels.double(torch.ones(1000, device="cuda"))

Arrays of the host run on the emulator, so all of it works without a GPU as well.
"""

from __future__ import annotations

import os as _os

from ._krn import __version__, check_interpreter, forked, gpus, synchronize
from .errors import (
    ArgumentError,
    AssertionFailed,
    BoundsError,
    CompileError,
    DeviceError,
    DeviceLost,
    DocumentError,
    Error,
    FileError,
    InjectiveError,
    OutOfMemory,
    ToolError,
    UnknownKernel,
)
from .measure import Report, bench, ladder, profile, report
from .module import Kernel, Module, compile, load

check_interpreter()
if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(after_in_child=forked)

__all__ = [
    "ArgumentError",
    "AssertionFailed",
    "BoundsError",
    "CompileError",
    "DeviceError",
    "DeviceLost",
    "DocumentError",
    "Error",
    "FileError",
    "InjectiveError",
    "Kernel",
    "Module",
    "OutOfMemory",
    "Report",
    "ToolError",
    "UnknownKernel",
    "__version__",
    "bench",
    "compile",
    "gpus",
    "ladder",
    "load",
    "profile",
    "report",
    "synchronize",
]
