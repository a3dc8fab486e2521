"""Files for the tests of streams: small ones written on the spot, real ones where they are available."""

from __future__ import annotations

import os
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


@pytest.fixture(scope="session")
def real_data() -> Callable[[str], Path]:
    """Return the path of a real dataset, or skip the test."""

    def find(name: str) -> Path:
        for folder in filter(None, os.environ.get("LABELRACE_DATA", "").split(os.pathsep)):
            path = Path(folder, f"{name}.arff")
            if path.exists():
                return path
        pytest.skip(f"no {name}.arff in the folders of LABELRACE_DATA")

    return find


@pytest.fixture(scope="session")
def golden() -> Callable[[str], Path]:
    """Return the path of a file of reference results, or skip the test."""

    def find(name: str) -> Path:
        path = Path(os.environ.get("LABELRACE_GOLDEN", ""), name)
        if not path.is_file():
            pytest.skip(f"no {name} in the folder LABELRACE_GOLDEN")
        return path

    return find
