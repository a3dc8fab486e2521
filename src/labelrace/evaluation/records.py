"""A run folder: what was run, in ``manifest.json``, and what came out, line by line, in ``records.jsonl``.

The manifest is written whole, before the first record. A record is one line, and is on the disk before the next is
written. So whenever a run is cut off, all that can be damaged is the last line, which then has no end: readers leave it
out, and the next writer cuts it off.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from labelrace.exceptions import DataFormatError
from labelrace.files import write_whole

if sys.platform != "win32":
    import fcntl

__all__ = ["FORMAT", "Record", "appending", "locked", "read_run", "rewrite_records", "write_manifest"]

# Seconds that a folder in use is waited for.
_PATIENCE = 2.0

Record: TypeAlias = dict[str, Any]

FORMAT = 1
MANIFEST = "manifest.json"
RECORDS = "records.jsonl"


def read_run(folder: str | os.PathLike[str]) -> tuple[dict[str, Any], list[Record]]:
    """Read a run folder, finished or not.

    Parameters
    ----------
    folder : path

    Returns
    -------
    manifest : dict
    records : list of dict
        Without a last line that was cut off while it was written.

    Raises
    ------
    FileNotFoundError
        If there is no manifest: the folder is not one of a run.
    DataFormatError
        If the manifest or another line than the last is damaged, or if a newer version wrote them.
    """
    return _read_manifest(Path(folder, MANIFEST)), _read_records(Path(folder, RECORDS))


def write_manifest(folder: str | os.PathLike[str], manifest: Mapping[str, Any]) -> None:
    """Write the manifest: all of it, or nothing."""
    write_whole(Path(folder, MANIFEST), json.dumps(manifest, indent=2, allow_nan=False).encode() + b"\n")


def rewrite_records(folder: str | os.PathLike[str], records: Iterable[Record]) -> None:
    """Replace all records: by all of the new ones, or not at all."""
    write_whole(Path(folder, RECORDS), b"".join(map(_line, records)))


@contextmanager
def appending(folder: str | os.PathLike[str]) -> Iterator[Callable[[Record], None]]:
    """Provide a function that appends a record to a run folder; when it returns, the record is on the disk.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_manifest(folder, {"format": 1})
    ...     with appending(folder) as append:
    ...         append({"kind": "failed", "model": "obr", "run": 0, "error": "out of memory"})
    ...     read_run(folder)
    ({'format': 1}, [{'kind': 'failed', 'model': 'obr', 'run': 0, 'error': 'out of memory'}])
    """
    path = Path(folder, RECORDS)
    # Unbuffered: a line goes out at once, in one piece as a rule, and nothing is left to write when a run is cut off.
    with path.open("ab", buffering=0) as file:
        _cut_torn_line(path)

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


def _cut_torn_line(path: Path) -> None:
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)


def _read_manifest(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise FileNotFoundError(f"{path.parent} is not the folder of a run: there is no {path.name} in it")
    try:
        manifest = json.loads(path.read_bytes())
    except ValueError as error:
        raise DataFormatError(f"{path} is damaged: {error}") from error
    if not isinstance(manifest, dict) or not isinstance(manifest.get("format"), int):
        raise DataFormatError(f"{path} is not the manifest of a run: it does not tell its format")
    if manifest["format"] > FORMAT:
        raise DataFormatError(f"{path} has format {manifest['format']}; this version reads {FORMAT}: update labelrace")
    return manifest


def _read_records(path: Path) -> list[Record]:
    if not path.is_file():
        return []
    *lines, _torn = path.read_bytes().split(b"\n")
    return [_parse(line, f"{path}, line {number}") for number, line in enumerate(lines, start=1)]


def _parse(line: bytes, where: str) -> Record:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise DataFormatError(f"{where} is damaged: {error}") from error
    if not isinstance(record, dict) or not {"kind", "model", "run"} <= record.keys():
        raise DataFormatError(f"{where} is not a record: it does not tell its kind, its model and its run")
    return record
