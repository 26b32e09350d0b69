"""Memory for libraries that want it in a way of their own."""

from __future__ import annotations

import math
from typing import Any

#: What XLA asks of memory that it takes as it is.
ALIGNMENT = 64


def aligned(shape: tuple[int, ...], dtype: str) -> Any:
    """An array of NumPy that starts at a multiple of 64 bytes."""
    import numpy

    kind = numpy.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    memory = numpy.empty(size + ALIGNMENT, "uint8")
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size].view(kind).reshape(shape)
