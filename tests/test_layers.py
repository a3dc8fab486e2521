"""Who may know whom: no private names of others, nothing through the package root, no method's parts for a baseline."""

from __future__ import annotations

import ast
import subprocess
import sys
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


def through_the_root(tree: ast.Module) -> Iterator[str]:
    """Yield imports of names through the package root, where the check of layers does not see them."""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module="labelrace", names=names):
                modules = {path.stem for path in SOURCE.iterdir() if path.stem != "__init__"}
                allowed = modules | {"__version__"}
                yield from (f"line {node.lineno}: {one.name}" for one in names if one.name not in allowed)
            case ast.Import(names=names) if any(one.name == "labelrace" for one in names):
                yield f"line {node.lineno}: import labelrace"


def test_the_package_root_is_for_users():
    paths = [path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py"]
    found = {path.name: list(through_the_root(ast.parse(path.read_text(encoding="utf-8")))) for path in paths}
    assert not {name: lines for name, lines in found.items() if lines}
    assert list(through_the_root(ast.parse("import labelrace\nfrom labelrace import Tagger")))


def loaded_by(module: str) -> set[str]:
    """Return our modules that are loaded by importing one of them."""
    code = f"import sys, {module}; print(*(name for name in sys.modules if name.startswith('labelrace')))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_a_constant_needs_no_method_of_others():
    loaded = loaded_by("labelrace.related.constant")
    assert len(loaded) < 25
    rooms = {name.split(".")[1] for name in loaded if "." in name}
    assert rooms <= {"base", "related", "exceptions", "typing"}
