"""What the tests share. They run on the package that is installed, not on its source."""

from __future__ import annotations

import importlib
import importlib.util
import os
import pathlib

import pytest

ROOT = pathlib.Path(os.environ.get("KRN_ROOT", pathlib.Path(__file__).parents[2]))
EXAMPLES = ROOT / "examples"


#: How to have what a test skips for want of it.
ADVICE = {"torch": "`cargo xtask test --torch` installs it; or "}


def pytest_configure() -> None:
    # Said by `cargo xtask test`. What was meant to run must not be skipped.
    if os.environ.get("KRN_TORCH_IS_THERE"):
        try:
            importlib.import_module("torch")
        except Exception as error:
            raise pytest.UsageError(f"torch was installed for these tests, but cannot be imported: {error}") from error


def pytest_report_header() -> list[str]:
    lines = []
    for name in ("torch", "jax", "cupy"):
        if importlib.util.find_spec(name) is None:
            ways = f"{ADVICE.get(name, '')}bench/python.sh runs them on a GPU machine"
            lines.append(f"krn: NO {name.upper()} HERE: its tests are skipped; {ways}")
    return lines


@pytest.fixture
def examples() -> pathlib.Path:
    return EXAMPLES
