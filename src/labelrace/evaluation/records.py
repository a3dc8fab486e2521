"""A run folder: what was run, in ``manifest.json``, and what came out, line by line, in ``records.jsonl``.

The manifest is written whole, before the first record. A record is one line of JSON, and is on the disk before the next
is written. So whenever a run is cut off, all that can be damaged is the last line, which then has no end: readers leave
it out, with a note, and the next writer cuts it off.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from labelrace.base.files import write_atomic
from labelrace.base.registry import make_report
from labelrace.exceptions import DataFormatError

if sys.platform != "win32":
    import fcntl

Record: TypeAlias = dict[str, Any]

FORMAT = 1

_MANIFEST = "manifest.json"
_RECORDS = "records.jsonl"
# Seconds to wait for another process to finish writing into a folder.
_PATIENCE = 2.0
# What may differ between the beginning of a run and its end: it does not change a measure.
_MAY_DIFFER = ("created", "machine", "feature_seconds")
# Characters of a value in a message.
_SHOWN = 100


class RunFolder(NamedTuple):
    """A run folder open for writing: appends records to the disk; the pairs of model and run that are done already."""

    append: Callable[[Record], None]
    done: frozenset[tuple[str, int]]


class Results(NamedTuple):
    """A manifest, and the records: what was run, and what came out. They show themselves as their report."""

    manifest: dict[str, Any]
    records: list[Record]

    def __repr__(self) -> str:
        return repr(make_report("run", *self))

    def _repr_html_(self) -> str:
        return str(make_report("run", *self)._repr_html_())


def read_run(folder: str | os.PathLike[str]) -> Results:
    """Read a run folder, finished or not.

    Parameters
    ----------
    folder : path

    Returns
    -------
    manifest : dict
    records : list of dict
        Without a last line that was cut off while it was written, for which there is a warning. The pair shows itself,
        in a notebook or a terminal, as the report of the run.

    Raises
    ------
    FileNotFoundError
        If there is no manifest: the folder is not one of a run.
    DataFormatError
        If the manifest or another line than the last is damaged, or if a newer version wrote them.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from labelrace.evaluation import run
    >>> from labelrace.streams.synthetic import SyntheticStream
    >>> stream = SyntheticStream(n_rows=300, n_features=10, n_labels=5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = run(stream, ["majority"], out=Path(folder, "run"), jobs=1, batch_size=100)
    ...     manifest, records = read_run(Path(folder, "run"))
    >>> manifest["batch_size"], [record["kind"] for record in records]
    (100, ['batch', 'batch', 'labels', 'done'])
    """
    manifest, (records, is_torn) = _read_manifest(Path(folder, _MANIFEST)), _read_records(Path(folder, _RECORDS))
    if is_torn:
        path = Path(folder, _RECORDS)
        warnings.warn(f"{path}: the last line was cut off while it was written, and is left out", stacklevel=2)
    return Results(manifest, records)


@contextmanager
def open_folder(path: str | os.PathLike[str], manifest: Mapping[str, Any], *, resume: bool) -> Iterator[RunFolder]:
    """Open a run folder for writing, and create it if necessary; errors are those of `labelrace.evaluation.run`.

    With `resume` the run that the folder holds is continued. Records of pairs that were cut off or failed are dropped.
    """
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        # Nobody else writes here, so these are what a killed run left.
        for name in (_MANIFEST, _RECORDS):
            for part in folder.glob(f".{name}.*.part"):
                part.unlink()
        done, files = frozenset[tuple[str, int]](), sorted(entry.name for entry in folder.iterdir())
        if files and not resume:
            raise FileExistsError(
                f"{folder} is not empty: there is {files[0]!r}. Give another folder, or resume=True to continue its run"
            )
        if files:
            done = _resume(folder, manifest)
        else:
            write_manifest(folder, manifest)
        with appending(folder) as append:
            yield RunFolder(append, done)


def _resume(folder: Path, manifest: Mapping[str, Any]) -> frozenset[tuple[str, int]]:
    try:
        old = _read_manifest(folder / _MANIFEST)
    except FileNotFoundError as error:
        raise FileExistsError(f"cannot resume: {error}, but other files are") from error
    # Written and read again, so that a tuple equals a list.
    if differences := _differences(old, json.loads(json.dumps(manifest))):
        raise ValueError(
            f"cannot resume the run in {folder}, as it was started with other settings: {'; '.join(differences)}"
        )
    # A last line that was cut off needs no warning: it is of a pair that is run again.
    records, _ = _read_records(folder / _RECORDS)
    done = frozenset(_pair(record) for record in records if record["kind"] == "done")
    complete = [record for record in records if _pair(record) in done]
    if len(complete) < len(records):
        rewrite_records(folder, complete)
    return done


def _pair(record: Record) -> tuple[str, int]:
    return record["model"], record["run"]


def _differences(there: Mapping[str, Any], now: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return in which settings two manifests differ, one of them in the folder and one given now."""
    texts: list[str] = []
    for key in sorted({*there, *now} - set(_MAY_DIFFER)):
        old, new = there.get(key), now.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            texts += _differences(old, new, f"{prefix}{key}.")
        elif old != new:
            shown = [text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…" for text in map(json.dumps, (old, new))]
            texts.append(f"{prefix}{key} is {shown[0]} there and {shown[1]} now")
    return texts


def write_manifest(folder: str | os.PathLike[str], manifest: Mapping[str, Any]) -> None:
    """Write the manifest: all of it, or nothing."""
    write_atomic(Path(folder, _MANIFEST), json.dumps(manifest, indent=2, allow_nan=False).encode() + b"\n")


def rewrite_records(folder: str | os.PathLike[str], records: Iterable[Record]) -> None:
    """Replace all records: by all of the new ones, or not at all."""
    write_atomic(Path(folder, _RECORDS), b"".join(map(_line, records)))


@contextmanager
def appending(folder: str | os.PathLike[str]) -> Iterator[Callable[[Record], None]]:
    """Provide a function that appends a record to a run folder; when it returns, the record is on the disk."""
    path = Path(folder, _RECORDS)
    # Unbuffered: a line goes out at once, in one piece as a rule, and nothing is left to write when a run is cut off.
    with path.open("ab", buffering=0) as file:
        # A last line without its end was cut off while it was written.
        os.truncate(path, path.read_bytes().rfind(b"\n") + 1)

        def append(record: Record) -> None:
            rest = memoryview(_line(record))
            while rest:
                rest = rest[file.write(rest) :]
            os.fsync(file.fileno())

        yield append


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other writers out of a run folder, where the system can; the lock ends with the process at the latest."""
    if sys.platform == "win32":
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        _lock(handle, folder)
        yield
    finally:
        os.close(handle)


def _lock(handle: int, folder: Path) -> None:
    """Lock a folder; a process that was killed a moment ago may still be ending, so a busy one gets some time."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            if time.monotonic() > deadline:
                raise BlockingIOError(f"another process is writing into {folder}: wait for it, or end it") from error
            time.sleep(0.05)


def _line(record: Record) -> bytes:
    return json.dumps(record, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _read_manifest(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise FileNotFoundError(f"{path.parent} is not the folder of a run: there is no {path.name} in it")
    try:
        manifest = json.loads(path.read_bytes())
    except ValueError as error:
        raise DataFormatError(f"{path} is damaged: {error}") from error
    if not isinstance(manifest, dict) or not isinstance(manifest.get("format"), int):
        raise DataFormatError(f"{path} is not the manifest of a run: it has no format")
    if manifest["format"] > FORMAT:
        raise DataFormatError(f"{path} has format {manifest['format']}; this version reads {FORMAT}: update labelrace")
    return manifest


def _read_records(path: Path) -> tuple[list[Record], bool]:
    """Return the records, and whether a last line that was cut off is left out."""
    if not path.is_file():
        return [], False
    *lines, torn = path.read_bytes().split(b"\n")
    return [_parse(line, f"{path}, line {number}") for number, line in enumerate(lines, start=1)], bool(torn)


def _parse(line: bytes, where: str) -> Record:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise DataFormatError(f"{where} is damaged: {error}") from error
    if not isinstance(record, dict) or not {"kind", "model", "run"} <= record.keys():
        raise DataFormatError(f"{where} is not a record: it must have a kind, a model and a run")
    return record
