"""What the tests do where something that they need is missing."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

TESTS = pathlib.Path(__file__).parent


@pytest.mark.parametrize("needed", [True, False])
def test_a_torch_that_was_installed_and_is_not_there_is_no_skip(needed: bool, tmp_path: pathlib.Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('a library of it is missing')", encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    environment = {**os.environ, "PYTHONPATH": path, "KRN_TORCH_IS_THERE": "1" if needed else ""}
    line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(TESTS / "test_sharding.py")]
    done = subprocess.run([*line, "--collect-only"], capture_output=True, text=True, env=environment, cwd=tmp_path)
    if needed:
        assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout + done.stderr
        assert "cannot be imported: a library of it is missing" in done.stdout + done.stderr
    else:
        assert done.returncode == 0, done.stdout + done.stderr
