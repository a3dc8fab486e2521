"""How fast files are read, as a ratio: this version against another revision of the repository, in one run.

Both versions load the same files by turns, each file in a process of its own: a dense ARFF file and a CSV file of
random numbers, with all their digits and with four decimals, and the sparse delicious.arff and enron.arff if
``$LABELRACE_DATA`` has them. The time of a file is the best of some rounds: elapsed, and of the processor, which other
work on the computer disturbs less but which counts all threads. Usage:

    python benchmarks/reading.py --against 71cc55a
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
LABELS = 20
REAL = ("delicious", "enron")

# What a version runs: loads a file some times and prints the best elapsed and processor seconds.
WORKER = """
import json, sys, time
from labelrace.streams import load_dataset

path, labels, times = json.loads(sys.argv[1])
elapsed, processor = [], []
for _ in range(times):
    start = time.perf_counter(), time.process_time()
    load_dataset(path, labels)
    elapsed.append(time.perf_counter() - start[0])
    processor.append(time.process_time() - start[1])
print(json.dumps([min(elapsed), min(processor)]))
"""


def write_files(folder: Path, rows: int, features: int) -> list[tuple[str, int | None]]:
    """Write the generated files; return their paths and numbers of labels."""
    random = np.random.default_rng(0)
    X, Y = random.normal(size=(rows, features)), (random.random((rows, LABELS)) < 0.2).astype(int)
    names = [f"x{i}" for i in range(features)], [f"y{i}" for i in range(LABELS)]
    declared = [f"@attribute {name} numeric\n" for name in names[0]] + [
        f"@attribute {name} {{0,1}}\n" for name in names[1]
    ]
    headers = {"arff": f"@relation random\n{''.join(declared)}@data\n", "csv": f"{','.join(names[0] + names[1])}\n"}
    files: list[tuple[str, int | None]] = []
    for digits, numbers in (("all digits", X), ("four decimals", np.round(X, 4))):
        lines = [",".join(map(str, [*x, *y])) + "\n" for x, y in zip(numbers.tolist(), Y.tolist(), strict=True)]
        for suffix, header in headers.items():
            path = folder / f"dense, {digits}.{suffix}"
            path.write_text(header + "".join(lines))
            files.append((str(path), LABELS))
    return files


def real_files() -> list[tuple[str, int | None]]:
    """Return the paths of the real files that are available."""
    folders = [Path(folder) for folder in os.environ.get("LABELRACE_DATA", "").split(os.pathsep) if folder]
    found = (folder / f"{name}.arff" for name in REAL for folder in folders)
    return [(str(path), None) for path in found if path.is_file()]


def source_of(revision: str, folder: Path) -> Path:
    """Unpack the sources of a revision; return the folder to import them from."""
    archive = subprocess.run(["git", "archive", revision, "src"], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as content:
        content.extractall(folder, filter="data")
    return folder / "src"


def seconds_of(source: Path, file: tuple[str, int | None], times: int) -> tuple[float, float]:
    """Return the best elapsed and processor time of a file for the version in a folder of sources."""
    command = [sys.executable, "-c", WORKER, json.dumps([*file, times])]
    output = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(source)}, check=True, capture_output=True)
    elapsed, processor = json.loads(output.stdout)
    return elapsed, processor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", default="HEAD", help="the other revision")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        files = write_files(Path(temporary), arguments.rows, arguments.features) + real_files()
        sources = source_of(arguments.against, Path(temporary)), ROOT / "src"
        print(
            f"{'file':26} {arguments.against[:10] + ', ms':>14} {'now, ms':>9} {'ratio':>7} {'of processor time':>19}"
        )
        for file in files:
            rounds = [[seconds_of(source, file, 4) for source in sources] for _ in range(arguments.rounds)]
            # The best of the rounds, by version and by clock.
            before, now = np.array(rounds).min(axis=0)
            ratio, of_processor = before / now
            name = Path(file[0]).name
            print(f"{name:26} {1000 * before[0]:14.0f} {1000 * now[0]:9.0f} {ratio:7.1f} {of_processor:19.1f}")


if __name__ == "__main__":
    main()
