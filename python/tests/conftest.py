"""What the tests share. They run on the package that is installed, not on its source."""

from __future__ import annotations

import importlib.util
import os
import pathlib

import pytest

ROOT = pathlib.Path(os.environ.get("KRN_ROOT", pathlib.Path(__file__).parents[2]))
EXAMPLES = ROOT / "examples"


def pytest_report_header() -> list[str]:
    lines = []
    for name in ("torch", "jax", "cupy"):
        if importlib.util.find_spec(name) is None:
            lines.append(
                f"krn: NO {name.upper()} HERE: its tests are skipped; bench/python.sh runs them on a GPU machine"
            )
    return lines


@pytest.fixture
def examples() -> pathlib.Path:
    return EXAMPLES
