"""What can go wrong, with the texts, codes and places that the tool `krn` gives."""

from __future__ import annotations

from typing import Any


class Error(Exception):
    """Everything that Krn raises of its own."""


class CompileError(Error, ValueError):
    """A file does not compile. Its text draws the mistakes; `diagnostics` has them as data."""

    #: One dictionary a mistake: `code`, `severity`, `message`, `file`, `primary` (with `line` and `column`), `help` …
    diagnostics: list[dict[str, Any]]

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.diagnostics = []

    @property
    def codes(self) -> list[str]:
        """The codes of the mistakes, in the order of the text."""
        return [str(diagnostic["code"]) for diagnostic in self.diagnostics]


class ArgumentError(Error, ValueError):
    """An argument does not fit the kernel: its type, shape, device, or how it lies in memory. Nothing was launched."""


class UnknownKernel(Error, AttributeError):
    """The file has no kernel of this name."""


class FileError(Error, OSError):
    """A file cannot be read."""


class DocumentError(Error, ValueError):
    """A document of compiled kernels is damaged, or has no code for the device."""


class DeviceError(Error, RuntimeError):
    """A device, its driver, or a launch failed."""


class OutOfMemory(DeviceError, MemoryError):
    """Memory of a device ran out."""


class DeviceLost(DeviceError):
    """A fault after which this process cannot use the device any more."""


class BoundsError(Error, IndexError):
    """A kernel read or wrote outside of an array: where, and what."""

    kernel: str
    file: str
    line: int
    column: int
    array: str
    axis: int
    index: int
    extent: int


class InjectiveError(Error, ValueError):
    """Two elements of an array are equal that `where injective(…)` says are not."""

    kernel: str
    file: str
    line: int
    column: int
    array: str


class AssertionFailed(Error, AssertionError):
    """A condition does not hold that a kernel asserts."""

    kernel: str
    file: str
    line: int
    column: int
    #: As the kernel has it.
    condition: str
    #: The index names around it with their values, outermost first.
    indices: list[tuple[str, int]]


class ToolError(Error, RuntimeError):
    """A command of the tool `krn` failed; its text is what the command said."""

    #: As the tool documents it: 1 mistakes in the file, 2 wrong use, 3 a wrong result, 4 a device, 6 not verified.
    code: int

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code
