"""Kernels as operators of torch: under `torch.compile`, in CUDA graphs, with gradients.

    softmax = krn.torch.register(kernels.softmax, backward=kernels.softmax_backward)
    y = softmax(x)

What torch has to know of an operator (its schema, what it writes, the shapes of its results) is in the manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from . import manifest
from .errors import ArgumentError
from .module import Kernel

_REGISTERED: dict[str, Operator] = {}


class Operator:
    """A kernel that torch knows as `torch.ops.<name>`. It is called as the kernel is, without results to write into."""

    def __init__(self, kernel: Kernel, name: str, contiguous: bool) -> None:
        self.kernel = kernel
        self.name = name
        self.backward: Operator | None = None
        self._inputs = manifest.inputs(kernel.manifest)
        self._names = [argument["name"] for argument in self._inputs]
        self._results = manifest.results(kernel.manifest)
        self._arrays = [manifest.direction(argument) is not None for argument in self._inputs]
        self._contiguous = contiguous
        mutated = tuple(argument["name"] for argument in self._inputs if manifest.direction(argument) == "in_out")
        self.definition = torch.library.custom_op(name, self._run, mutates_args=mutated, schema=self._schema())
        self.definition.register_fake(self._fake)

    @property
    def default(self) -> Any:
        """The overload that `torch.ops` has."""
        namespace, name = self.name.split("::")
        return getattr(getattr(torch.ops, namespace), name).default

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.definition(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<operator {self.name}{self._schema()}>"

    def _schema(self) -> str:
        parameters: list[str] = []
        for argument in self._inputs:
            direction = manifest.direction(argument)
            if direction is None:
                kind = _scalar_kind(self.kernel, argument)
            else:
                kind = f"Tensor(a{len(parameters)}!)" if direction == "in_out" else "Tensor"
            parameters.append(f"{kind} {argument['name']}")
        count = len(self._results)
        returned = "Tensor" if count == 1 else f"({', '.join(['Tensor'] * count)})"
        return f"({', '.join(parameters)}) -> {returned}"

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            args = (*args, *(kwargs[name] for name in self._names[len(args) :]))
        if self._contiguous:
            args = tuple(argument.contiguous() if isinstance(argument, torch.Tensor) else argument for argument in args)
        return self.kernel(*args)

    def _fake(self, *args: Any, **kwargs: Any) -> Any:
        """Results without memory, of the shapes that the manifest says; symbolic ones where the arguments' are."""
        args = (*args, *(kwargs[name] for name in self._names[len(args) :]))
        told = self.kernel.manifest
        # In the order of the signature, in which results come last.
        symbols = manifest.bind(told, args)
        like = next((argument for argument in args if isinstance(argument, torch.Tensor)), None)
        device = like.device if like is not None else torch.device("cpu")
        for argument, given in zip(self._inputs, args, strict=True):
            if manifest.direction(argument) is not None:
                self._check(argument, given, symbols)
        made = []
        for argument in self._results:
            buffer = argument["kind"]["array"]["buffer"]
            scalar, fields = manifest.row(buffer["element"])
            shape = [manifest.evaluate(extent, symbols) for extent in buffer["extents"]]
            dtype = getattr(torch, manifest.NAMES[scalar])
            made.append(torch.empty([*shape, *fields], dtype=dtype, device=device))
        if not made:
            return None
        return made[0] if len(made) == 1 else tuple(made)

    def _check(self, argument: dict[str, Any], given: torch.Tensor, symbols: Sequence[Any]) -> None:
        buffer = argument["kind"]["array"]["buffer"]
        name, kernel = argument["name"], self.kernel.__name__
        scalar, fields = manifest.row(buffer["element"])
        rank = len(buffer["extents"]) + len(fields)
        if given.dim() != rank:
            raise ArgumentError(f"kernel `{kernel}`: `{name}` has {rank} axes, but an array with {given.dim()} was given")
        if given.dtype != getattr(torch, manifest.NAMES[scalar]):
            wanted, dtype = buffer["element"]["name"], given.dtype
            raise ArgumentError(f"kernel `{kernel}`: `{name}` has elements of type `{wanted}`, but `{dtype}` was given")
        for axis, extent in enumerate(buffer["extents"]):
            torch._check(given.shape[axis] == manifest.evaluate(extent, symbols))


def _scalar_kind(kernel: Kernel, argument: dict[str, Any]) -> str:
    element = argument["kind"]["value"]["element"]
    scalar, fields = manifest.row(element)
    if fields:
        raise ArgumentError(
            f"kernel `{kernel.__name__}`: `{argument['name']}` is a struct by value, which torch's operators do not have; "
            "give its fields as arguments of their own"
        )
    return "bool" if scalar == "bool" else "int" if scalar[0] in "iu" else "float"


def register(
    kernel: Kernel,
    name: str | None = None,
    *,
    backward: Kernel | Operator | None = None,
    contiguous: bool = False,
) -> Operator:
    """Makes an operator of a kernel, `krn::<kernel>` where no other name is given.

    `backward` is the kernel of the gradients. Its arguments have names of the forward kernel's arguments and results, and
    `grad_y` for the gradient of the result `y`; its results are `grad_x` for the argument `x`. Arguments without such a
    result have no gradient. Gradients that torch gives with gaps are copied first.

    `contiguous` copies arguments that are not contiguous, which are refused otherwise.
    """
    name = name or f"krn::{kernel.__name__}"
    operator = Operator(kernel, name, contiguous)
    if backward is not None:
        if isinstance(backward, Kernel):
            backward = Operator(backward, f"{name}_backward", contiguous=False)
        operator.backward = backward
        _register_gradients(operator, backward)
    _REGISTERED[name] = operator
    return operator


def _register_gradients(forward: Operator, backward: Operator) -> None:
    names, results = forward._names, [result["name"] for result in forward._results]
    if any(manifest.direction(argument) == "in_out" for argument in forward._inputs):
        raise ArgumentError(f"kernel `{forward.kernel.__name__}`: what changes its arguments in place has no gradient here")
    given = [f"grad_{name}" for name in results]
    asked = [result["name"] for result in backward._results]
    known = {*names, *results, *given}
    for name in backward._names:
        if name not in known:
            raise ArgumentError(
                f"kernel `{backward.kernel.__name__}`: `{name}` is no argument, result or gradient of "
                f"`{forward.kernel.__name__}`, which has {', '.join(f'`{one}`' for one in sorted(known))}"
            )
    for name in asked:
        if name.removeprefix("grad_") not in names or not name.startswith("grad_"):
            wanted = ", ".join(f"`grad_{one}`" for one in names)
            raise ArgumentError(
                f"kernel `{backward.kernel.__name__}`: the result `{name}` is no gradient; there can be {wanted}"
            )
    is_array = dict(zip(names, forward._arrays, strict=True)) | dict.fromkeys(results, True)
    saved = [name for name in backward._names if is_array.get(name, False)]

    def setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        outputs = output if isinstance(output, tuple) else (output,)
        values = dict(zip(names, inputs, strict=True)) | dict(zip(results, outputs, strict=True))
        ctx.save_for_backward(*(values[name] for name in saved))
        ctx.scalars = {name: value for name, value in values.items() if not is_array[name]}

    def gradients(ctx: Any, *grads: torch.Tensor) -> Any:
        values: dict[str, Any] = dict(zip(saved, ctx.saved_tensors, strict=True)) | ctx.scalars
        values |= {name: grad.contiguous() for name, grad in zip(given, grads, strict=True) if name in backward._names}
        made = backward(*(values[name] for name in backward._names))
        made = dict(zip(asked, made if isinstance(made, tuple) else (made,), strict=True))
        found = tuple(made.get(f"grad_{name}") for name in names)
        return found[0] if len(found) == 1 else found

    forward.definition.register_autograd(gradients, setup_context=setup)


def opcheck(operator: Operator, *args: Any, **kwargs: Any) -> dict[str, str]:
    """torch's own checks of an operator, on such arguments: schema, fake results, gradients, compilation."""
    check: Callable[..., dict[str, str]] = torch.library.opcheck
    return check(operator.definition, args, kwargs)


__all__ = ["Operator", "opcheck", "register"]
