"""What the tests of the command share: a small dataset in files, and the command, in this process or in another."""

from __future__ import annotations

import multiprocessing
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.sparse import csr_array

from labelrace.cli.main import main
from labelrace.evaluation.workers import process_context
from labelrace.streams import Dataset, write_dataset

# The command in a process of its own, with files for its standard streams, in a session of its own.
_CHILD = """
import os, signal, sys
# A fork server is deaf to Ctrl-C; a command that somebody starts is not.
signal.signal(signal.SIGINT, signal.default_int_handler)
os.chdir(folder)
os.setsid()
for number, name in enumerate(("in", "out", "err")):
    os.dup2(os.open(f"{base}.{name}", os.O_RDWR), number)
sys.stdin = os.fdopen(0)
sys.argv = ["labelrace", *arguments]
from labelrace.cli.main import main
main()
"""


class Outcome(NamedTuple):
    """How a command ended."""

    status: int
    out: str
    err: str


class Started:
    """A command at work in another process."""

    def __init__(self, folder: Path, base: Path, arguments: tuple[str, ...], stdin: str | None) -> None:
        self.stdin, self.stdout, self._stderr = (Path(f"{base}.{name}") for name in ("in", "out", "err"))
        self.stdout.touch()
        self._stderr.touch()
        if stdin is None:
            os.mkfifo(self.stdin)
        else:
            self.stdin.write_text(stdin)
        names = {"folder": str(folder), "base": str(base), "arguments": arguments}
        # The server that forks it has all modules imported, so that it starts at once.
        self.process = process_context().Process(target=exec, args=(_CHILD, names))
        self.process.start()

    def wait_until(self, condition: Callable[[], Any]) -> None:
        """Wait for something that the command does, or for its end."""
        deadline = time.monotonic() + 60
        while not condition() and self.process.is_alive():
            assert time.monotonic() < deadline, "the command does not do what it should"
            time.sleep(0.002)

    @property
    def pid(self) -> int:
        """The number of the process, and of its group."""
        assert self.process.pid is not None
        return self.process.pid

    def end(self) -> Outcome:
        """Wait for the end."""
        self.process.join(60)
        assert self.process.exitcode is not None, "the command does not end"
        return Outcome(self.process.exitcode, self.stdout.read_text(), self._stderr.read_text())


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Call the command in this process."""

    def call(*arguments: object, stdin: str = "") -> Outcome:
        monkeypatch.setattr(sys, "argv", ["labelrace", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", StringIO(stdin))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        return Outcome(ended.value.code, *capsys.readouterr())

    return call


@pytest.fixture
def works(command: Callable[..., Outcome]) -> Callable[..., str]:
    """Call the command, which must succeed and complain of nothing, and return what it prints."""

    def call(*arguments: object, stdin: str = "") -> str:
        status, out, err = command(*arguments, stdin=stdin)
        # Printed where compressed labels are used for the first time on a machine.
        compiling = "Compiling loops for compressed labels, once: this takes some seconds.\n"
        # What a tagger says after it has predicted.
        told = re.sub(r"^\d+ rows?: \d+ with tags, \d+ for review\.\n", "", err.removeprefix(compiling))
        assert (status, told) == (0, "")
        return out

    return call


@pytest.fixture
def refuses(command: Callable[..., Outcome]) -> Callable[..., str]:
    """Call the command, which must fail with one sentence and nothing else, and return it."""

    def call(*arguments: object, stdin: str = "") -> str:
        status, out, err = command(*arguments, stdin=stdin)
        assert (status, out) == (1, "")
        assert err.startswith("Error: ")
        assert err.endswith(".\n")
        assert err.count("\n") == 1
        return err[len("Error: ") : -1]

    return call


@pytest.fixture
def start(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Started]]:
    """Start the command in another process, which is ended with the test at the latest.

    Its standard input is a text, or, for None, a pipe that stays open.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        pytest.skip("the system cannot fork")
    started: list[Started] = []
    streams = tmp_path_factory.mktemp("streams")

    def begin(*arguments: object, stdin: str | None = "") -> Started:
        base = streams / str(len(started))
        started.append(Started(tmp_path, base, tuple(map(str, arguments)), stdin))
        return started[-1]

    yield begin
    for one in started:
        one.process.kill()
        one.process.join()
        one.process.close()


@pytest.fixture(scope="session")
def data() -> Dataset:
    """Make a small dataset with dense features that are easy to write, some of them 0."""
    rng = np.random.default_rng(3)
    X = np.round(rng.normal(size=(120, 5)), 2) * (rng.random((120, 5)) < 0.8)
    Y = (X @ rng.normal(size=(5, 4)) > 0.5).astype(np.int8)
    features, labels = ("size", "age", "rate", "x 4", "x5"), ("new", "hot", "odd one", "last")
    return Dataset(X, csr_array(Y), features, labels, np.zeros(5, dtype=bool), "toy")


@pytest.fixture(scope="session")
def files(data: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return the path of the dataset in a format, told by its suffix."""
    folder = tmp_path_factory.mktemp("toy")

    def path_of(suffix: str) -> Path:
        path = folder / f"toy{suffix}"
        if not path.exists():
            write_dataset(data, path)
        return path

    return path_of


@pytest.fixture(scope="session")
def model_file(data: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of a model that learned the dataset."""
    from labelrace import make_model

    path = tmp_path_factory.mktemp("model") / "toy.safetensors"
    model = make_model("obr", label_names=list(data.label_names))
    model.partial_fit(data.X, data.Y)
    model.save(path)
    return path
