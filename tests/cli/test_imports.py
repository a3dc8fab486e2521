"""What the command imports: help and lists of models need nothing heavy."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import sys
sys.argv = ["labelrace", *{arguments!r}]
from labelrace.cli.main import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
heavy = [name for name in ("numpy", "scipy", "sklearn", "pandas", "pyarrow", "river") if name in sys.modules]
assert not heavy, heavy
"""


@pytest.mark.parametrize("arguments", [["--help"], ["models"], ["run", "--help"], ["data", "--help"]], ids=" ".join)
def test_nothing_heavy_is_imported(arguments):
    code = CODE.format(arguments=arguments)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "race" in run.stdout
