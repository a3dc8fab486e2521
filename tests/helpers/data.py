"""Real datasets and reference results, where they are available."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest


@pytest.fixture(scope="session")
def real_data() -> Callable[..., Path]:
    """Return a function that finds the file of a real dataset, or skips the test."""

    def find(name: str, suffix: str = ".arff") -> Path:
        for folder in filter(None, os.environ.get("LABELRACE_DATA", "").split(os.pathsep)):
            path = Path(folder, f"{name}{suffix}")
            if path.is_file():
                return path
        pytest.skip(f"no {name}{suffix} in the folders of LABELRACE_DATA")

    return find


@pytest.fixture(scope="session")
def golden() -> Callable[[str], dict[str, Any]]:
    """Return a function that reads the reference results of a run, or skips the test."""

    def load(name: str) -> dict[str, Any]:
        path = Path(os.environ.get("LABELRACE_GOLDEN", ""), f"{name}.npz")
        if not path.is_file():
            pytest.skip(f"no {path.name} in the folder LABELRACE_GOLDEN")
        with np.load(path) as file:
            return dict(file)

    return load
