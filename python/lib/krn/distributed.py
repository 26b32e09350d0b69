"""Kernels on several processes, each with its GPU (or, in tests, with the emulator), by `torch.distributed`.

Which dimension can be split, and what that takes, follows from the index notation (`rules`): a name that runs in parallel
splits rows of arrays, and takes no communication; a name that is reduced over gives each process a part of the terms,
and the partial results are combined by the reduction's operator.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh

from . import manifest
from .errors import ArgumentError
from .module import Kernel
from .torch import Operator


@dataclass(frozen=True)
class Rule:
    """How a dimension of a kernel can be split."""

    dim: str
    #: `parallel` or `reduced`
    how: str
    #: By array: the axis that is split. Arrays without one are whole in each process.
    axes: Mapping[str, int]
    #: What combines partial results: `sum`, `product`, `max`, `min`, `and`, `or`, `xor`.
    operator: str | None = None
    #: The results that are partial.
    partial: tuple[str, ...] = field(default=())


def rules(kernel: Kernel) -> dict[str, Rule]:
    """The dimensions of a kernel that can be split, by name."""
    told = json.loads(kernel.module._program.sharding())[kernel.__name__]
    return {
        dim: Rule(dim, rule["how"], rule["axes"], rule.get("operator"), tuple(rule.get("partial", ())))
        for dim, rule in told.items()
    }


def _rule(kernel: Kernel, dim: str) -> Rule:
    known = rules(kernel)
    if dim not in known:
        names = ", ".join(f"`{name}` ({rule.how})" for name, rule in known.items()) or "none"
        raise ArgumentError(f"kernel `{kernel.__name__}`: `{dim}` cannot be split among processes; what can: {names}")
    return known[dim]


_OPERATORS = {
    "sum": dist.ReduceOp.SUM,
    "product": dist.ReduceOp.PRODUCT,
    "max": dist.ReduceOp.MAX,
    "min": dist.ReduceOp.MIN,
}
#: NCCL has no operators on bits. Of truth values, which are bytes of 0 and 1, these do the same.
_TRUTHS = {"and": dist.ReduceOp.MIN, "or": dist.ReduceOp.MAX}
_BITS = {"and": torch.bitwise_and, "or": torch.bitwise_or, "xor": torch.bitwise_xor}


def _keys(values: torch.Tensor, operator: str) -> torch.Tensor:
    """Integers in the order of some floats. The collectives' own `min` and `max` of floats lose NaN, and take -0 for +0;
    here NaN is before all, or after all, so that it stays."""
    wide = values if values.dtype == torch.float64 else values.float()
    bits = wide.view(torch.int64 if wide.dtype == torch.float64 else torch.int32)
    largest = torch.iinfo(bits.dtype).max
    return torch.where(wide.isnan(), largest if operator == "max" else -largest - 1, _turned(bits))


def _values(keys: torch.Tensor) -> torch.Tensor:
    return _turned(keys).view(torch.float64 if keys.dtype == torch.int64 else torch.float32)


def _turned(bits: torch.Tensor) -> torch.Tensor:
    """Negative floats have their order turned round as integers. Doing this twice gives the same again."""
    information = torch.iinfo(bits.dtype)
    return bits ^ ((bits >> (information.bits - 1)) & information.max)


class Sharded:
    """A kernel of which each process computes a part; see `shard`."""

    def __init__(
        self, kernel: Kernel, mesh: DeviceMesh, rule: Rule, mesh_dim: int | str, gather: Mapping[str, int]
    ) -> None:
        self.kernel = kernel
        self.rule = rule
        self._group = mesh.get_group(mesh_dim)
        self._gather = dict(gather)
        self._names = [argument["name"] for argument in kernel.manifest["arguments"]]
        self._results = [result["name"] for result in manifest.results(kernel.manifest)]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Takes and gives this process' parts; arrays that the rule does not split are whole."""
        if self._gather:
            values = dict(zip(self._names, args, strict=False)) | kwargs
            for name, axis in self._gather.items():
                values[name] = self._gathered(values[name], axis)
            args, kwargs = (), values
        made = self.kernel(*args, **kwargs)
        if self.rule.partial:
            results = made if isinstance(made, tuple) else (made,)
            for name, result in zip(self._results, results, strict=True):
                if name in self.rule.partial:
                    self._combine(result)
        return made

    def _combine(self, result: torch.Tensor) -> None:
        operator = self.rule.operator or "sum"
        if operator in ("min", "max") and result.is_floating_point():
            keys = _keys(result, operator)
            dist.all_reduce(keys, op=_OPERATORS[operator], group=self._group)
            result.copy_(_values(keys))
        elif operator in _OPERATORS:
            dist.all_reduce(result, op=_OPERATORS[operator], group=self._group)
        elif result.dtype == torch.bool and operator in _TRUTHS:
            dist.all_reduce(result.view(torch.uint8), op=_TRUTHS[operator], group=self._group)
        elif (size := dist.get_world_size(self._group)) > 1:
            # Of all parts, which are gathered, in the order of the processes.
            parts = [torch.empty_like(result) for _ in range(size)]
            dist.all_gather(parts, result, group=self._group)
            result.copy_(functools.reduce(_BITS[operator], parts))

    def _gathered(self, part: torch.Tensor, axis: int) -> torch.Tensor:
        """All parts, one behind the other. They are of one size: the collective wants it."""
        size = dist.get_world_size(self._group)
        if size == 1:
            return part
        if axis == 0:
            whole = part.new_empty([part.shape[0] * size, *part.shape[1:]])
            dist.all_gather_into_tensor(whole, part, group=self._group)
            return whole
        parts = [torch.empty_like(part) for _ in range(size)]
        dist.all_gather(parts, part, group=self._group)
        return torch.cat(parts, dim=axis)


def shard(
    kernel: Kernel,
    mesh: DeviceMesh,
    dim: str,
    *,
    mesh_dim: int | str = 0,
    gather: Mapping[str, int] | None = None,
) -> Sharded:
    """Splits a dimension of a kernel among the processes of a mesh.

    The result is called with this process' parts of the arrays that have the dimension, and with whole other arrays. Of a
    parallel dimension it gives parts, without communication; of a reduced one it gives whole results, combined by
    `all_reduce`. `gather` names arguments that come in parts, along an axis, and are wanted whole: they are gathered first.
    """
    rule = _rule(kernel, dim)
    for name in gather or {}:
        if name in rule.axes or name not in {argument["name"] for argument in kernel.manifest["arguments"]}:
            raise ArgumentError(
                f"kernel `{kernel.__name__}`: `{name}` is no argument that stays whole where `{dim}` is split"
            )
    return Sharded(kernel, mesh, rule, mesh_dim, gather or {})


def part(whole: torch.Tensor, axis: int, mesh: DeviceMesh, mesh_dim: int | str = 0) -> torch.Tensor:
    """This process' part of an array that all have: a copy, as kernels want it."""
    group = mesh.get_group(mesh_dim)
    parts = whole.chunk(dist.get_world_size(group), dim=axis)
    rank = dist.get_rank(group)
    if rank < len(parts):
        return parts[rank].clone(memory_format=torch.contiguous_format)
    shape = list(whole.shape)
    shape[axis] = 0
    return whole.new_empty(shape)


def register_sharding(operator: Operator) -> None:
    """Tells DTensor how an operator of `krn.torch` can be split, so that calls with DTensors find their way.

    Of each call DTensor takes the way with the least communication, and redistributes arguments that lie otherwise. It
    combines `min` and `max` of floats without their NaN, so it is not told that these have partial results.
    """
    from torch.distributed.tensor import Partial, Replicate, Shard
    from torch.distributed.tensor.experimental import register_sharding as register

    known = rules(operator.kernel)
    inputs = [(argument["name"], manifest.direction(argument) is not None) for argument in operator._inputs]
    results = [result["name"] for result in operator._results]
    combined = {"sum": "sum", "product": "product", "max": "max", "min": "min"}
    elements = {result["name"]: result["kind"]["array"]["buffer"]["element"] for result in operator._results}

    def is_usable(rule: Rule) -> bool:
        scalars = {manifest.row(elements[name])[0] for name in rule.partial}
        is_float = any(getattr(torch, manifest.NAMES[scalar]).is_floating_point for scalar in scalars)
        return rule.operator in combined and not (rule.operator in ("min", "max") and is_float)

    def ways(*_: Any, **__: Any) -> list[tuple[list[Any], list[Any]]]:
        def way(rule: Rule | None) -> tuple[list[Any], list[Any]]:
            axes = rule.axes if rule else {}

            def place(name: str) -> Any:
                return Shard(axes[name]) if name in axes else Replicate()

            outputs = [
                Partial(combined[rule.operator]) if rule and rule.operator and name in rule.partial else place(name)
                for name in results
            ]
            return outputs, [place(name) if is_array else None for name, is_array in inputs]

        usable = [rule for rule in known.values() if rule.operator is None or is_usable(rule)]
        return [way(None), *map(way, usable)]

    register(operator.default)(ways)


__all__ = ["Rule", "Sharded", "part", "register_sharding", "rules", "shard"]
