"""Small files for the tests of streams, written on the spot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def arff(tmp_path: Path) -> Callable[..., Path]:
    """Write attribute lines and rows to a file: line 1 is @relation, then the attributes, then @data."""

    def write(attributes: list[str], rows: list[str], relation: str = "test", name: str = "test.arff") -> Path:
        header = [f"@relation {relation}", *(f"@attribute {text}" for text in attributes), "@data"]
        path = tmp_path / name
        path.write_text("\n".join([*header, *rows]), encoding="utf-8", newline="")
        return path

    return write
