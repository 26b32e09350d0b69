"""What the stub says of the native part is what it has."""

from __future__ import annotations

import ast
import importlib.resources
import inspect
from typing import Any

import krn


def members(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    """By name: functions, classes and variables."""
    named = {node.name: node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return {**named, **{node.target.id: node for node in body if isinstance(node, ast.AnnAssign)}}  # type: ignore[union-attr]


def parameters(function: ast.FunctionDef) -> list[str]:
    given = function.args
    return [argument.arg for argument in [*given.args, *given.kwonlyargs] if argument.arg not in ("self", "cls")]


def test_the_stub_and_the_library_have_the_same_names() -> None:
    package = importlib.resources.files(krn)
    assert package.joinpath("py.typed").is_file()
    told = members(ast.parse(package.joinpath("_krn.pyi").read_text(encoding="utf-8")).body)
    assert {name for name in vars(krn._krn) if not name.startswith("__")} | {"__version__"} == set(told)
    for name, node in told.items():
        found: Any = getattr(krn._krn, name)
        if isinstance(node, ast.FunctionDef):
            assert list(inspect.signature(found).parameters) == parameters(node), name
        elif isinstance(node, ast.ClassDef):
            methods = members(node.body)
            public = {method for method in vars(found) if not method.startswith("_")}
            assert public == {method for method in methods if not method.startswith("_")}, name
            for method in public:
                names = [one for one in inspect.signature(getattr(found, method)).parameters if one != "self"]
                assert names == parameters(methods[method]), (name, method)  # type: ignore[arg-type]
