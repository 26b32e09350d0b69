"""The manifest's expressions, evaluated over numbers or over torch's symbolic ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any


def _divide(left: Any, right: Any) -> Any:
    return 0 if isinstance(right, int) and right == 0 else left // right


def _remainder(left: Any, right: Any) -> Any:
    return 0 if isinstance(right, int) and right == 0 else left % right


def _least(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        return min(left, right)
    import torch

    return torch.sym_min(left, right)


def _greatest(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        return max(left, right)
    import torch

    return torch.sym_max(left, right)


# Extents are not negative, so division down is division towards zero.
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda left, right: left + right,
    "sub": lambda left, right: left - right,
    "mul": lambda left, right: left * right,
    "div": _divide,
    "rem": _remainder,
    "ceil_div": lambda left, right: _divide(left + right - 1, right),
    "min": _least,
    "max": _greatest,
    "equal": lambda left, right: left == right,
    "not_equal": lambda left, right: left != right,
    "less": lambda left, right: left < right,
    "less_equal": lambda left, right: left <= right,
    "greater": lambda left, right: left > right,
    "greater_equal": lambda left, right: left >= right,
    "and": lambda left, right: left and right,
    "or": lambda left, right: left or right,
}


def evaluate(tree: Mapping[str, Any], symbols: Sequence[Any]) -> Any:
    """The value of an expression."""
    ((what, told),) = tree.items()
    if what == "symbol":
        return symbols[told]
    if what == "binary":
        return _BINARY[told[0]](evaluate(told[1], symbols), evaluate(told[2], symbols))
    if what == "unary":
        value = evaluate(told[1], symbols)
        return not value if told[0] == "not" else -value
    return told


def bind(kernel: Mapping[str, Any], arguments: Sequence[Any]) -> list[Any]:
    """The values of a kernel's symbols for arguments in the order of the signature; arrays have a `shape`."""
    values: list[Any] = []
    for symbol in kernel["symbols"]:
        if symbol["kind"] == "counter":
            values.append(0)
            continue
        ((what, place),) = symbol["kind"].items()
        given = arguments[place["argument"]]
        values.append(dimension(place, given.shape[place["axis"]]) if what == "dim" else given)
    return values


def dimension(place: Mapping[str, Any], extent: int) -> int:
    """The dimension of which an extent is a multiple and a constant, rounded down."""
    linear = place.get("extent")
    return max((extent - linear["offset"]) // linear["factor"], 0) if linear else extent


def inputs(kernel: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The arguments that a call has to give: all but results."""
    return [argument for argument in kernel["arguments"] if not is_result(argument)]


def results(kernel: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The arrays that a call gives back."""
    return [argument for argument in kernel["arguments"] if is_result(argument)]


def is_result(argument: Mapping[str, Any]) -> bool:
    """Whether an argument is a result."""
    return direction(argument) == "out"


def direction(argument: Mapping[str, Any]) -> str | None:
    """`in`, `in_out` or `out`; of arguments by value, nothing."""
    array = argument["kind"].get("array")
    return None if array is None else str(array["direction"])


def row(element: Mapping[str, Any]) -> tuple[str, list[int]]:
    """The scalar type of arrays that hold such elements in Python, and the axes that a struct adds."""
    leaves = element["leaves"]
    if len(leaves) == 1 and leaves[0]["path"] == "" and not leaves[0]["extents"]:
        return str(leaves[0]["scalar"]), []
    scalars = {leaf["scalar"] for leaf in leaves}
    count = 0
    for leaf in leaves:
        fields = 1
        for extent in leaf["extents"]:
            fields *= extent
        count += fields
    (scalar, *others) = sorted(scalars)
    if not others and count * SIZES[scalar] == element["size"]:
        return str(scalar), [count]
    return "u8", [element["size"]]


SIZES = {
    "bool": 1,
    "i8": 1,
    "u8": 1,
    "i16": 2,
    "u16": 2,
    "f16": 2,
    "bf16": 2,
    "i32": 4,
    "u32": 4,
    "f32": 4,
    "i64": 8,
    "u64": 8,
    "f64": 8,
}

#: As NumPy and torch call them.
NAMES = {
    "bool": "bool",
    "i8": "int8",
    "u8": "uint8",
    "i16": "int16",
    "u16": "uint16",
    "f16": "float16",
    "bf16": "bfloat16",
    "i32": "int32",
    "u32": "uint32",
    "f32": "float32",
    "i64": "int64",
    "u64": "uint64",
    "f64": "float64",
}
