"""How fast a kernel is, and why: the tool's commands, with their results as Python objects.

Each runs in a process of its own, so that clocks, caches and memory are not this program's, and a kernel that never ends
can be stopped.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

from .errors import ToolError
from .module import Kernel


class Report:
    """A page about a kernel. In a notebook it shows itself."""

    def __init__(self, html: str) -> None:
        self.html = html

    def save(self, path: str | pathlib.Path) -> None:
        """Writes the page, which needs nothing beside it."""
        pathlib.Path(path).write_text(self.html, encoding="utf-8")

    def _repr_html_(self) -> str:
        # In a frame of its own: the page has styles for all that is on it.
        inner = self.html.replace("&", "&amp;").replace('"', "&quot;")
        return f'<iframe srcdoc="{inner}" style="width: 100%; height: 48em; border: 0"></iframe>'

    def __repr__(self) -> str:
        return f"<report of {len(self.html)} bytes; `save(path)` writes it>"


def _run(command: str, kernel: Kernel, sizes: dict[str, Any], words: list[str]) -> str:
    module = kernel.module
    text = module.text
    if text is None:
        raise ToolError(f"`{module.name}` was loaded without its source: `krn.{command}` compiles it", 2)
    options = module._options
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, pathlib.Path(module.name).name or "kernels.krn")
        file.write_text(text, encoding="utf-8")
        line = [sys.executable, "-m", "krn", command, str(file), "--kernel", kernel.__name__, *words]
        parameters = {symbol["name"] for symbol in kernel.manifest["symbols"] if "parameter" in symbol["kind"]}
        for name, size in {**options["dims"], **sizes}.items():
            line += ["--set" if name in parameters else "-D", f"{name}={size}"]
        if options["target"]:
            line += ["--target", options["target"]]
        if options["unchecked"]:
            line.append("--unchecked")
        # There, no other module is called `krn`.
        done = subprocess.run(line, capture_output=True, text=True, cwd=folder)
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().replace(str(file), module.name)
            raise ToolError(said, done.returncode)
        return done.stdout


def bench(kernel: Kernel, *, device: str | None = None, **sizes: Any) -> dict[str, Any]:
    """Times a kernel on the device, caches cold: `krn bench --json`. Sizes that are not given are chosen."""
    words = ["--json"] + (["--device", device] if device else [])
    return json.loads(_run("bench", kernel, sizes, words))


def profile(kernel: Kernel, *, gpu: str | None = None, **sizes: Any) -> dict[str, Any]:
    """Counts what a kernel does to memory, by source line, and says what limits it: `krn profile --json`."""
    return json.loads(_run("profile", kernel, sizes, ["--json"] + (["--gpu", gpu] if gpu else [])))


def ladder(kernel: Kernel, *, device: str | None = None, **sizes: Any) -> str:
    """What each pass of the compiler brings: the table of `krn ladder`."""
    return _run("ladder", kernel, sizes, ["--device", device] if device else [])


def report(kernel: Kernel, *, gpu: str | None = None, **sizes: Any) -> Report:
    """One page about a kernel, which shows itself in a notebook: `krn report`."""
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder, "report.html")
        _run("report", kernel, sizes, ["-o", str(page)] + (["--gpu", gpu] if gpu else []))
        return Report(page.read_text(encoding="utf-8"))
