"""The smoke set: what must work wherever labelrace is installed, without any of the development tools.

``python tests/smoke/run.py`` tries the labelrace of that Python: every model, every subcommand, and the Python of the
README. It prints a line for each, and the traceback of what fails; it ends with status 1 if anything failed.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from documents import ROOT, read_blocks, run_python, run_shell

import labelrace

Step = Callable[[Path], Any]

# In this order, in one folder: each may use what those before it wrote.
COMMANDS = (
    "labelrace --version",
    "labelrace --help",
    "labelrace models",
    "labelrace data list",
    "labelrace data make rows.arff --rows 300 --features 6 --labels 5 --drift sudden",
    "labelrace data info rows.arff",
    "labelrace data convert rows.arff rows.csv",
    "labelrace data convert rows.arff rows.jsonl",
    "labelrace data convert rows.arff rows.svm",
    "labelrace data convert rows.arff rows.parquet",
    "labelrace run rows.arff --batch-size 100 --model race --model race-cls-fixed --jobs 2 --out run",
    "labelrace run rows.parquet --batch-size 100 --model majority --json --out table",
    "labelrace report run -f html -f csv -f md -f tex",
    "labelrace train rows.arff -o model.safetensors",
    "labelrace predict model.safetensors rows.arff --top 2",
    "labelrace predict model.safetensors rows.csv -o predicted.csv",
    "echo '[1, 0, 2, 0, 1, 0]' | labelrace predict model.safetensors -",
)


def model_steps() -> Iterator[tuple[str, Step]]:
    """Yield a step for every model: it learns, predicts, is saved and loaded, and predicts the same."""
    for name in labelrace.model_names():
        yield f"model {name}", lambda folder, name=name: try_model(name, folder / f"{name}.safetensors")


def try_model(name: str, path: Path) -> None:
    """Let a model learn two batches, or all rows if it is offline, and come back from a file."""
    random = np.random.default_rng(0)
    X = random.normal(size=(120, 6))
    Y = (X @ random.normal(size=(6, 4)) > 0.5).astype(np.int8)
    model = labelrace.make_model(name)
    if hasattr(model, "partial_fit"):
        model.partial_fit(X[:60], Y[:60]).partial_fit(X[60:], Y[60:])
    else:
        model.fit(X, Y)
    predicted, scores = model.predict(X), model.decision_function(X)
    assert predicted.shape == scores.shape == Y.shape
    assert np.isin(predicted, (0, 1)).all()
    assert np.isfinite(scores).all()
    model.save(path)
    loaded = labelrace.load(path)
    np.testing.assert_array_equal(loaded.predict(X), predicted)
    np.testing.assert_array_equal(loaded.decision_function(X), scores)


def command_steps() -> Iterator[tuple[str, Step]]:
    """Yield a step for each command, and for the help of every subcommand there is."""
    from typer.main import get_command

    from labelrace.cli.main import app

    for line in COMMANDS:
        yield line, lambda folder, line=line: run_shell(line, folder)
    for words in subcommands(get_command(app), "labelrace"):
        yield f"{words} --help", lambda folder, words=words: run_shell(f"{words} --help", folder)


def subcommands(command: Any, words: str) -> Iterator[str]:
    """Yield what to type for every subcommand, in groups or not."""
    for name, one in getattr(command, "commands", {}).items():
        yield f"{words} {name}"
        yield from subcommands(one, f"{words} {name}")


def readme_steps() -> Iterator[tuple[str, Step]]:
    """Yield a step for each block of Python in the README; a block may use what those before it made."""
    blocks = read_blocks(ROOT / "README.md", "python", "py", "pycon")
    running: list[Iterator[Any]] = []

    def run_next(folder: Path) -> None:
        if not running:
            running.append(run_python(blocks, folder))
        if next(running[0], None) is None:
            raise RuntimeError("not run: a block before it failed")

    for block in blocks:
        about = f"README.md, line {block.line}"
        yield about + (f" (not run: needs {', '.join(block.missing)})" if block.missing else ""), run_next


def extras_steps() -> Iterator[tuple[str, Step]]:
    """Yield a step for each of these extras that is installed, as it is with the lowest versions."""
    for extra, modules, step in (
        ("serve", ("fastapi", "httptools", "httpx", "sqlalchemy", "uvicorn"), try_service),
        ("plots", ("matplotlib",), try_plots),
        ("excel", ("openpyxl",), try_excel),
    ):
        if all(importlib.util.find_spec(module) for module in modules):
            yield f"extra {extra}", step


def try_service(folder: Path) -> None:
    """Start the service on a port that is free, teach it by the client, ask it, and look at its page."""
    import httpx

    command = [
        sys.executable,
        "-m",
        "labelrace",
        "serve",
        "--new",
        "--tags",
        "tags",
        "--data",
        "journal",
        "--port",
        "0",
    ]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    try:
        url = wait_for_url(process, folder / "log")
        rows = [{"text": text, "tags": [tag]} for text, tag in (("no money", "bill"), ("no light", "power"))] * 20
        with labelrace.Client(url) as client:
            client.learn(rows)
            [row] = client.predict([{"text": "no money"}])
            assert list(row["tags"]) == ["bill"], row
        assert httpx.get(url).status_code == 200
    finally:
        process.terminate()
        process.wait(timeout=60)


def wait_for_url(process: subprocess.Popen[bytes], log: Path) -> str:
    """Return the address that a service tells when it listens."""
    for _ in range(600):
        told = re.search(r"http://[\d.]+:\d+", log.read_text(encoding="utf-8"))
        if told:
            return told[0]
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise AssertionError(f"The service does not listen:\n{log.read_text(encoding='utf-8')}")


def try_plots(folder: Path) -> None:
    """Write the figures of a run."""
    run_shell("labelrace data make rows.arff --rows 300 --features 6 --labels 5", folder)
    run_shell("labelrace run rows.arff --batch-size 100 --model majority --out run", folder)
    run_shell("labelrace report run -f png -f svg", folder)
    assert list((folder / "run").rglob("*.png"))


def try_excel(folder: Path) -> None:
    """Read a table from a workbook and write one."""
    lines = ["text,tags", *["no money,bill", "no light,power"] * 20]
    (folder / "tickets.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    run_shell("labelrace train tickets.csv --tags tags -o tickets.labelrace", folder)
    run_shell("labelrace predict tickets.labelrace tickets.csv -o predicted.xlsx", folder)
    run_shell("labelrace predict tickets.labelrace predicted.xlsx -o again.csv", folder)
    assert "bill" in (folder / "again.csv").read_text(encoding="utf-8")


def main() -> int:
    """Run all steps and return the exit status."""
    version = ".".join(map(str, sys.version_info[:3]))
    print(f"labelrace {importlib.metadata.version('labelrace')} on Python {version}, {Path(labelrace.__file__).parent}")
    passed = failed = 0
    for steps in (model_steps, command_steps, readme_steps, extras_steps):
        with tempfile.TemporaryDirectory() as folder:
            for about, step in steps():
                try:
                    step(Path(folder))
                except Exception:
                    failed += 1
                    print(f"FAIL {about}\n{traceback.format_exc()}", flush=True)
                else:
                    passed += 1
                    print(f"ok   {about}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
