"""Each promise of docs/in-depth/reliability.md names a test that exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from labelrace.base import limits

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "in-depth" / "reliability.md").read_text(encoding="utf-8")
TESTS = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT)


@pytest.mark.parametrize(("path", "name"), TESTS)
def test_the_test_of_a_promise_exists(path, name):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_promise_has_a_test():
    promises = [line for line in TEXT.splitlines() if line.startswith("| ") and "---" not in line]
    rows = [line for line in promises if not line.startswith(("| promise", "| environment", "| `LABELRACE"))]
    assert len(rows) > 20
    assert all("`tests/" in line for line in rows)


def test_the_limits_are_those_of_the_code():
    known = {limit.variable: limit.default for limit in vars(limits).values() if isinstance(limit, limits.Limit)}
    told = dict(re.findall(r"\| `(LABELRACE_MAX_\w+)` \|[^|]+\| ([\d,]+(?: [GM]iB)?) \|", TEXT))
    units = {"GiB": 2**30, "MiB": 2**20}
    values = {}
    for name, text in told.items():
        number, _, unit = text.partition(" ")
        values[name] = int(number.replace(",", "")) * units.get(unit, 1)
    assert values == known
