"""Benchmarks are run by hand: here, that they can be started, and that what they take away of the library is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


def _run(code):
    # In a process of its own, as they limit threads before NumPy is imported.
    done = subprocess.run([sys.executable, "-c", code], cwd=BENCHMARKS, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_all_can_be_imported():
    _run("import " + ", ".join(sorted(path.stem for path in BENCHMARKS.glob("*.py"))))


def test_every_part_that_the_search_takes_away_is_there():
    _run("import search\nfor part in search.PARTS:\n    with search.without(part)():\n        pass")
