"""The tool's commands from Python."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import krn
import pytest

TEXT = "kernel scale(x: f32[n], by: f32) -> y: f32[n] { y[i] = by * x[i] }"


@pytest.fixture(scope="module")
def scale() -> krn.Kernel:
    return krn.compile(TEXT, name="scale.krn").scale


def test_bench(scale: krn.Kernel) -> None:
    told = krn.bench(scale, n=1024, by=2.0, device="emulator")
    assert told["kernel"] == "scale" and told["dims"] == {"n": 1024} and told["bytes"] == 8192
    assert told["emulator"] and told["lane_instructions"] > 1024


def test_profile(scale: krn.Kernel) -> None:
    assert isinstance(krn.profile(scale, n=1024), dict)


def test_ladder(scale: krn.Kernel) -> None:
    assert "scale" in krn.ladder(scale, n=256, device="emulator")


def test_a_report_shows_itself(scale: krn.Kernel, tmp_path: pathlib.Path) -> None:
    report = krn.report(scale, n=256)
    assert report._repr_html_().startswith('<iframe srcdoc="') and "scale" in report.html
    report.save(tmp_path / "scale.html")
    assert (tmp_path / "scale.html").read_text(encoding="utf-8") == report.html


def test_what_the_tool_refuses_is_raised(scale: krn.Kernel) -> None:
    with pytest.raises(krn.ToolError) as caught:
        krn.bench(scale, q=3)
    assert caught.value.code == 2 and "q" in str(caught.value)


def test_the_tool_is_a_module() -> None:
    said = subprocess.run([sys.executable, "-m", "krn", "--version"], capture_output=True, text=True)
    assert said.returncode == 0 and said.stdout.startswith("krn 0.")
