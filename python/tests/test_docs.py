"""The examples of the pages about Python, each page's in one program."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import re

import pytest
from conftest import ROOT

PAGES = ["python.md", "python-extensions.md", "several-gpus.md"]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_examples_run(page: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    blocks = list(BLOCK.finditer(text))
    assert blocks
    monkeypatch.chdir(tmp_path)
    # As a file's: torch.compile and Triton read the source of functions.
    namespace: dict[str, object] = {"__name__": "__main__"}
    left_out = set()
    for block in blocks:
        missing = {name for name in ("torch", "jax") if re.search(rf"\b{name}\b", block.group(1)) and not found(name)}
        if page == "several-gpus.md" and not found("torch"):
            missing.add("torch")
        if missing:
            left_out |= missing
            continue
        line = text.count("\n", 0, block.start()) + 1
        code = "\n" * line + block.group(1)
        exec(compile(code, str(ROOT / "docs" / page), "exec"), namespace)
    os.chdir(ROOT)
    if left_out:
        pytest.skip(f"the examples with {' and '.join(sorted(left_out))} were left out; the others ran")


def found(name: str) -> bool:
    return importlib.util.find_spec(name) is not None
