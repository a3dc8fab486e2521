"""The command ``labelrace run`` against an earlier version of itself, as a ratio of CPU times in one run.

    git worktree add /tmp/before 71cc55a
    python benchmarks/run.py /tmp/before enron.arff delicious.arff

Both versions run whole commands, in turn, in one process each (``--jobs 1``) with one thread for BLAS, and with their
bytecode cached, as an installed package has it. The medians of their CPU times, user and system, and of the ratios of
neighbouring runs are printed.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

_HERE = Path(__file__).resolve().parents[1]
_COMMAND = "from labelrace.cli.main import main; main()"
_MODELS = ("race-cls-fixed", "negative")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="a checkout of the earlier version")
    parser.add_argument("files", nargs="+", help="data files, or names of datasets")
    parser.add_argument("--times", type=int, default=5)
    arguments = parser.parse_args()
    print(f"{'file':24}{'before':>8}{'now':>8}{'ratio':>8}")
    for file in arguments.files:
        # The first pair warms up the caches of files and bytecode.
        pairs = [(cpu_seconds(arguments.before, file), cpu_seconds(_HERE, file)) for _ in range(1 + arguments.times)][
            1:
        ]
        before, now = (statistics.median(column) for column in zip(*pairs, strict=True))
        ratio = statistics.median(after / first for first, after in pairs)
        print(f"{Path(file).name:24}{before:8.2f}{now:8.2f}{ratio:8.2f}")


def cpu_seconds(version: Path, file: str) -> float:
    """Return the CPU time of one run of the command by the version in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(version / "src"), "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    models = [part for name in _MODELS for part in ("--model", name)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", _COMMAND, "run", file, *models, "--jobs", "1", "--out", f"{folder}/run"]
        subprocess.run(command, check=True, env=environment, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
