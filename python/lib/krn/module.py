"""Compiled files and their kernels."""

from __future__ import annotations

import inspect
import json
import keyword
import os
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

from . import _krn, manifest, source
from .errors import ArgumentError, FileError, UnknownKernel


class Kernel(_krn.Kernel):
    """A kernel of a file, called like a function: `c = matmul(a, b)`, `matmul(a=a, b=b, c=c)`.

    Arguments are arrays of any library that speaks DLPack or `__cuda_array_interface__`, and numbers. Results that are not
    given are allocated by the library of the arrays. On a GPU a call queues a launch on the library's current stream and
    returns; arrays of the host run on the emulator.
    """

    module: Module
    __name__: str
    __qualname__: str
    __signature__: inspect.Signature

    def __new__(cls, module: Module, name: str, stream: int | None = None) -> Kernel:
        self = super().__new__(cls, module._program, name, stream)
        self.module = module
        self.__name__ = self.__qualname__ = name
        self.__doc__ = module._docstring(name)
        self.__signature__ = module._signature(name)
        return self

    @property
    def manifest(self) -> dict[str, Any]:
        """The kernel's part of the manifest."""
        return self.module._kernels[self.__name__]

    def on(self, stream: Any) -> Kernel:
        """The same kernel, launched on a stream that you name: of torch, of CuPy, or a handle of the driver's."""
        return Kernel(self.module, self.__name__, _handle(stream))

    def prepare(self, device: str = "cuda", **sizes: float) -> None:
        """Compiles and loads the code for some sizes ahead of the first call, which would wait for it."""
        self.prepare_on(sizes, device)

    def __repr__(self) -> str:
        return f"<kernel {self.__name__}{self.__signature__}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self.module, self.__name__)


def _handle(stream: Any) -> int:
    for attribute in ("cuda_stream", "ptr"):
        handle = getattr(stream, attribute, None)
        if handle is not None:
            return int(handle)
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return int((protocol() if callable(protocol) else protocol)[1])
    return int(stream)


class Module:
    """A compiled file. Its kernels are attributes."""

    def __init__(self, program: _krn.Program, text: str | None, name: str, options: dict[str, Any]) -> None:
        self._program = program
        self._text = text
        self._options = options
        #: The manifest: what each kernel takes and launches (docs/manifest.md).
        self.manifest: dict[str, Any] = json.loads(program.manifest())
        self.name = name
        #: What the compiler warned of, as dictionaries.
        self.warnings: list[dict[str, Any]] = [json.loads(line) for line in program.warnings()]
        self._kernels = {kernel["name"]: kernel for kernel in self.manifest["kernels"]}
        self._docs = source.docstrings(text or "")
        self._heads = source.signatures(text or "")
        self._made: dict[str, Kernel] = {}

    def __getattr__(self, name: str) -> Kernel:
        if name.startswith("_"):
            raise AttributeError(name)
        made: dict[str, Kernel] = self.__dict__["_made"]
        if name not in made:
            if name not in self._kernels:
                known = ", ".join(f"`{kernel}`" for kernel in self._kernels) or "none"
                raise UnknownKernel(f"the module has no kernel `{name}`; it has {known}")
            made[name] = Kernel(self, name)
        return made[name]

    def __getitem__(self, name: str) -> Kernel:
        return self.__getattr__(name)

    def __iter__(self) -> Iterator[Kernel]:
        return (self[name] for name in self._kernels)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._kernels]

    def __repr__(self) -> str:
        return f"<krn module {self.name}: {', '.join(self._kernels)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._text is None:
            return load, (self._options["document"],)
        return _compiled, (self._text, self.name, self._options)

    @property
    def ptx(self) -> str | None:
        """The PTX that was made when the file was compiled; none of a document."""
        return self._program.ptx()

    @property
    def text(self) -> str | None:
        """The source, where the module was compiled from one."""
        return self._text

    def static(self, name: str, device: str = "cpu") -> Any:
        """The value of a `static` on a device, as an array of NumPy. Waits for all work there."""
        import numpy

        dtype, shape = self._static(name)
        return numpy.frombuffer(bytes(self._program.read_static(name, device)), dtype).reshape(shape).copy()

    def set_static(self, name: str, value: Any, device: str = "cpu") -> None:
        """Sets a `static` on a device. Waits for all work there."""
        import numpy

        dtype, shape = self._static(name)
        array = numpy.asarray(value, dtype)
        if list(array.shape) != shape:
            raise ArgumentError(f"the static `{name}` has the shape {shape}, but {list(array.shape)} was given")
        self._program.write_static(name, array.tobytes(), device)

    def _static(self, name: str) -> tuple[str, list[int]]:
        for known in self.manifest["statics"]:
            if known["name"] == name:
                scalar, fields = manifest.row(known["element"])
                if scalar == "bf16":
                    raise ArgumentError(f"the static `{name}` is of `bf16`, which NumPy does not have")
                return manifest.NAMES[scalar], [*known["extents"], *fields]
        names = ", ".join(f"`{known['name']}`" for known in self.manifest["statics"]) or "none"
        raise ArgumentError(f"the module has no static `{name}`; it has {names}")

    def _docstring(self, name: str) -> str:
        parts = [self._heads.get(name, f"kernel {name}"), self._docs.get(name, "")]
        return "\n\n".join(part for part in parts if part)

    def _signature(self, name: str) -> inspect.Signature:
        parameters = []
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        results = []
        for argument in self._kernels[name]["arguments"]:
            ((what, told),) = argument["kind"].items()
            text = _annotation(self._kernels[name], what, told)
            is_result = what == "array" and told["direction"] == "out"
            default = None if is_result else inspect.Parameter.empty
            # A word of Python's gets an underscore, with which calls may write it as well.
            shown = argument["name"] + ("_" if keyword.iskeyword(argument["name"]) else "")
            parameters.append(inspect.Parameter(shown, kind, default=default, annotation=text))
            if is_result:
                results.append(text)
        empty = inspect.Signature.empty
        returned = results[0] if len(results) == 1 else f"({', '.join(results)})" if results else empty
        return inspect.Signature(parameters, return_annotation=returned)


def _annotation(kernel: Mapping[str, Any], what: str, told: Mapping[str, Any]) -> str:
    if what == "value":
        return str(told["element"]["name"])
    buffer = told["buffer"]
    extents = ", ".join(expression(kernel, extent) for extent in buffer["extents"])
    text = f"{buffer['element']['name']}[{extents}]" if extents else str(buffer["element"]["name"])
    return f"inout {text}" if told["direction"] == "in_out" else text


_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "rem": "%"}


def expression(kernel: Mapping[str, Any], tree: Mapping[str, Any]) -> str:
    """An expression of the manifest in words: `n + 1`."""
    ((what, told),) = tree.items()
    if what == "symbol":
        return str(kernel["symbols"][told]["name"])
    if what == "binary":
        sign, left, right = told[0], expression(kernel, told[1]), expression(kernel, told[2])
        return f"{left} {_SIGNS[sign]} {right}" if sign in _SIGNS else f"{sign}({left}, {right})"
    if what == "unary":
        return f"-{expression(kernel, told[1])}"
    return str(told)


def compile(
    source: str | os.PathLike[str],
    *,
    dims: Mapping[str, int] | None = None,
    target: str | None = None,
    unchecked: bool = False,
    prints: bool = False,
    name: str | None = None,
) -> Module:
    """Compiles a file, or the text of one.

    `source` is a path (`pathlib.Path`, or text that ends in `.krn`) or source text. `dims` are dimensions that are known:
    code is made for them, and other extents are refused. `target` is a GPU such as `sm_90`, in the place of the one
    that each device is. `unchecked` leaves checks on the device out. `prints` lets `print` tell values, on standard
    error. `name` is what messages call the text.
    """
    if isinstance(source, os.PathLike) or (source.endswith(".krn") and "\n" not in source):
        name = name or os.fspath(source)
        text = _read(source)
    else:
        text, name = source, name or "kernels.krn"
    options = {"dims": dict(dims or {}), "target": target, "unchecked": unchecked, "prints": prints}
    return _compiled(text, name, options)


def _read(path: str | os.PathLike[str]) -> str:
    try:
        return pathlib.Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"cannot read `{os.fspath(path)}`: {error}") from error


def _compiled(text: str, name: str, options: dict[str, Any]) -> Module:
    named = {key: options[key] for key in ("dims", "target", "unchecked", "prints")}
    program = _krn.compile_source(text, name, **named)
    return Module(program, text, name, options)


def load(document: str | os.PathLike[str]) -> Module:
    """Loads what `krn build --emit fat` wrote: a path, or the document itself. Nothing is compiled."""
    name = "document"
    if isinstance(document, os.PathLike) or not document.lstrip().startswith("{"):
        name = os.fspath(document)
        document = _read(document)
    module = Module(_krn.load_document(document), None, name, {"document": document})
    module.name = module.manifest["source"]
    return module
