"""Which dimensions can be split, from the index notation alone."""

from __future__ import annotations

import json
from typing import Any

import krn
import pytest


def rules(text: str) -> dict[str, Any]:
    module = krn.compile(text)
    (found,) = json.loads(module._program.sharding()).values()
    return found


def test_a_matmul_is_split_by_rows_by_columns_and_by_terms() -> None:
    found = rules("kernel matmul(a: f32[m, k], b: f32[k, n]) -> c: f32[m, n] { c[i, j] = sum(p: a[i, p] * b[p, j]) }")
    assert found == {
        "m": {"how": "parallel", "axes": {"a": 0, "c": 0}},
        "n": {"how": "parallel", "axes": {"b": 1, "c": 1}},
        "k": {"how": "reduced", "axes": {"a": 1, "b": 0}, "operator": "sum", "partial": ["c"]},
    }


def test_a_softmax_is_split_by_rows_alone() -> None:
    text = """kernel softmax(x: f32[rows, cols]) -> y: f32[rows, cols] {
        let m[r] = max(c: x[r, c])
        let e[r, c] = exp(x[r, c] - m[r])
        let s[r] = sum(c: e[r, c])
        y[r, c] = e[r, c] / s[r]
    }"""
    assert rules(text) == {"rows": {"how": "parallel", "axes": {"x": 0, "y": 0}}}


@pytest.mark.parametrize(
    ("text", "dims"),
    [
        # All pairs of one array: no process has them.
        ("kernel k(x: f32[n]) -> y: f32[n] { y[i] = sum(j: x[i] - x[j]) }", {}),
        ("kernel k(x: f32[m], o: f32[n]) -> y: f32[m] { y[i] = sum(j: x[i] - o[j]) }", {"m": "parallel", "n": "reduced"}),
        # The place counts, or the length.
        ("kernel k(x: f32[n]) -> y: f32[n] { y[i] = x[i] * (i as f32) }", {}),
        ("kernel k(x: f32[n]) -> y: f32[n] { y[i] = x[i] / (n as f32) }", {}),
        ("kernel k(x: f32[n]) -> y: f32 { y = sum(i: x[i]) / (n as f32) }", {}),
        # A neighbour; a part; twice the same.
        ("kernel k(x: f32[n]) -> y: f32[n] { y[i] = x[i] + (x[i + 1] else 0.0) }", {}),
        ("kernel k(x: f32[n]) -> y: f32[n / 2] { forall i in n / 2 { y[i] = x[i] } }", {}),
        ("kernel k(x: f32[n, n]) -> y: f32[n] { y[i] = x[i, i] }", {}),
        # What combines.
        ("kernel k(x: f32[n]) -> y: f32 { y = max(i: x[i]) }", {"n": "reduced"}),
        ("kernel k(x: f32[n]) -> y: i64 { y = argmax(i: x[i]) }", {}),
        ("kernel k(x: f32[n]) -> y: f32 { y = sqrt(sum(i: x[i] * x[i])) }", {}),
        ("kernel k(x: f32[n], h: inout f32[m]) { h[0] += sum(i: x[i]) }", {}),
        # A gather: what is read anywhere stays whole.
        ("kernel k(x: f32[n], at: i32[m]) -> y: f32[m] { y[i] = x[at[i]] }", {"m": "parallel"}),
        # A forall with a loop inside.
        (
            "kernel k(x: f32[n, m]) -> y: f32[n] { forall i in n { var s = 0.0\n for j in 0..m { s += x[i, j] }\n"
            " y[i] = s } }",
            {"n": "parallel"},
        ),
    ],
)
def test_what_can_be_split(text: str, dims: dict[str, str]) -> None:
    assert {dim: rule["how"] for dim, rule in rules(text).items()} == dims
