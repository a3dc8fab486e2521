"""No module imports a private name of another, and none but those of its own package touches a private attribute."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "labelrace"
# Public, in spite of the underscore: the methods of NamedTuple, and a function of the standard library.
PUBLIC = {"_asdict", "_fields", "_make", "_replace", "_exit"}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in PUBLIC


def defined_in(tree: ast.Module) -> Iterator[str]:
    """Yield the names that a module defines: functions, classes, methods, fields and attributes of self."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(value=ast.Name(id="self"), attr=name):
                yield name


def private_names_of_others(tree: ast.Module, own: set[str]) -> Iterator[str]:
    """Yield the private names that a module imports, and those it takes from objects of other packages."""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=names) if module.startswith("labelrace"):
                yield from (f"line {node.lineno}: {module}.{one.name}" for one in names if is_private(one.name))
            case ast.Attribute(attr=name) if is_private(name) and name not in own:
                yield f"line {node.lineno}: .{name}"


@pytest.mark.parametrize("package", [SOURCE, *(path.parent for path in sorted(SOURCE.rglob("*/__init__.py")))])
def test_private_names_stay_private(package):
    trees = {path.name: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(package.glob("*.py"))}
    own = {name for tree in trees.values() for name in defined_in(tree)}
    found = [f"{name}, {one}" for name, tree in trees.items() for one in private_names_of_others(tree, own)]
    assert not found
