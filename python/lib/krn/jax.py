"""Kernels in programs of JAX: `krn.jax.call`, also under `jax.jit`.

    @jax.jit
    def f(x):
        return krn.jax.call(kernels.softmax, x) + 1

The call is one of XLA's own (its foreign function interface): it runs on XLA's stream, on XLA's memory. On a CPU it
runs on the emulator. Outside of `jit` kernels also take arrays of JAX as they are (DLPack).
"""

from __future__ import annotations

import hashlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import _krn, manifest
from .errors import ArgumentError
from .module import Kernel

_TARGET = "krn_launch"
_registered = False


def _register() -> None:
    global _registered
    if not _registered:
        jax.ffi.register_ffi_target(_TARGET, _krn.xla_handler("cpu"), platform="cpu")
        jax.ffi.register_ffi_target(_TARGET, _krn.xla_handler("CUDA"), platform="CUDA")
        _registered = True


def _number(kernel: Kernel) -> int:
    """The same number for the same kernel, in whatever process."""
    module = kernel.module
    text = repr((_krn.versions, module.text, sorted(module._options.items(), key=str), kernel.__name__))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little", signed=True)


def call(kernel: Kernel, *args: Any, **kwargs: Any) -> Any:
    """Calls a kernel with arrays of JAX, traced or not, and gives new ones.

    Arguments that the kernel writes come back as results, in front of the others, in the order of the signature:
    JAX's arrays never change. Numbers are Python's own, known when the program is traced.
    """
    _register()
    told = kernel.manifest
    inputs, results = manifest.inputs(told), manifest.results(told)
    names = [argument["name"] for argument in inputs]
    if len(args) > len(names) or any(name not in names for name in kwargs):
        raise TypeError(f"kernel `{kernel.__name__}`: its arguments are {', '.join(f'`{name}`' for name in names)}")
    given = dict(zip(names, args, strict=False)) | kwargs
    missing = [name for name in names if name not in given]
    if missing:
        raise TypeError(f"kernel `{kernel.__name__}`: argument `{missing[0]}` was not given")
    arrays: list[Any] = []
    values = b""
    symbols_of: list[Any] = []
    written: list[tuple[int, Any]] = []
    for argument in inputs:
        name, direction = argument["name"], manifest.direction(argument)
        if direction is None:
            values += _bytes(kernel, argument, given[name])
            symbols_of.append(given[name])
            continue
        array = jnp.asarray(given[name])
        _check(kernel, argument, array)
        if direction == "in_out":
            written.append((len(arrays), jax.ShapeDtypeStruct(array.shape, array.dtype)))
        arrays.append(array)
        symbols_of.append(array)
    symbols = manifest.bind(told, symbols_of)
    made = [shape for _, shape in written]
    for result in results:
        buffer = result["kind"]["array"]["buffer"]
        scalar, fields = manifest.row(buffer["element"])
        shape = [manifest.evaluate(extent, symbols) for extent in buffer["extents"]]
        made.append(jax.ShapeDtypeStruct((*shape, *fields), jnp.dtype(manifest.NAMES[scalar])))
    number = _number(kernel)
    kernel.xla_register(number)
    aliases = {place: at for at, (place, _) in enumerate(written)}
    launch = jax.ffi.ffi_call(
        _TARGET, made, input_output_aliases=aliases, vmap_method="sequential", has_side_effect=not made
    )
    outputs = launch(*arrays, kernel=np.int64(number), values=np.frombuffer(values, np.uint8))
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _check(kernel: Kernel, argument: dict[str, Any], array: Any) -> None:
    buffer = argument["kind"]["array"]["buffer"]
    scalar, fields = manifest.row(buffer["element"])
    name, rank = argument["name"], len(buffer["extents"]) + len(fields)
    if array.dtype != jnp.dtype(manifest.NAMES[scalar]):
        wanted = buffer["element"]["name"]
        raise ArgumentError(
            f"kernel `{kernel.__name__}`: `{name}` has elements of type `{wanted}`, but `{array.dtype}` was given"
        )
    if array.ndim != rank:
        raise ArgumentError(
            f"kernel `{kernel.__name__}`: `{name}` has {rank} axes, but an array with {array.ndim} was given"
        )


def _bytes(kernel: Kernel, argument: dict[str, Any], value: Any) -> bytes:
    scalar, fields = manifest.row(argument["kind"]["value"]["element"])
    if isinstance(value, jax.core.Tracer):
        raise ArgumentError(
            f"kernel `{kernel.__name__}`: `{argument['name']}` is a number that the program must know when it is traced; "
            "name it in `static_argnames` of `jax.jit`"
        )
    array = np.asarray(value, dtype=jnp.dtype(manifest.NAMES[scalar]))
    if list(array.shape) != fields:
        raise ArgumentError(f"kernel `{kernel.__name__}`: `{argument['name']}` has the shape {fields}, not {array.shape}")
    bytes_ = array.tobytes()
    return bytes_ + bytes(-len(bytes_) % 8)


__all__ = ["call"]
