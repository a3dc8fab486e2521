"""A run folder: what was run, in ``manifest.json``, and what came out, line by line, in ``records.jsonl``.

The manifest is written whole, before the first record. A record is one line, and is on the disk before the next is
written. So whenever a run is cut off, all that can be damaged is the last line, which then has no end: readers leave it
out, and the next writer cuts it off. Every line ends with a checksum of all lines up to it and of the manifest, which
has one of its own: readers notice whatever else is changed, moved or missing.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from labelrace.base.files import remove_stale_parts, write_whole
from labelrace.exceptions import DataFormatError

if sys.platform != "win32":
    import fcntl

Record: TypeAlias = dict[str, Any]

FORMAT = 1

_MANIFEST = "manifest.json"
_RECORDS = "records.jsonl"
# How a record ends: with the checksum of everything up to it.
_CRC = re.compile(rb',"crc":"([0-9a-f]{8})"}')
_CRC_LENGTH = len(',"crc":"00000000"}')
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
        If the manifest or another line than the last is damaged or was changed, or if a newer version wrote them.
    """
    manifest = _read_manifest(Path(folder, _MANIFEST))
    records, _ = _read_records(Path(folder, _RECORDS), _sum_of(manifest))
    return manifest, records


@contextmanager
def open_folder(path: str | os.PathLike[str], manifest: Mapping[str, Any], *, resume: bool) -> Iterator[RunFolder]:
    """Open a run folder for writing, and create it if necessary; errors are those of `labelrace.evaluation.run`.

    With `resume` the run that the folder holds is continued. Records of pairs that were cut off or failed are dropped.
    """
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        remove_stale_parts(folder)
        done, found = frozenset[tuple[str, int]](), sorted(entry.name for entry in folder.iterdir())
        if found and not resume:
            raise FileExistsError(
                f"{folder} is not empty: there is {found[0]!r}. Give another folder, or resume=True to continue its run"
            )
        if found:
            done = _resume(folder, manifest)
        else:
            write_manifest(folder, manifest)
        with appending(folder) as append:
            yield RunFolder(append, done)


def _resume(folder: Path, manifest: Mapping[str, Any]) -> frozenset[tuple[str, int]]:
    try:
        there, records = read_run(folder)
    except FileNotFoundError as error:
        raise FileExistsError(f"cannot resume: {error}, but other files are") from error
    # Written and read again, so that a tuple equals a list.
    if differences := _differences(there, json.loads(json.dumps(manifest))):
        raise ValueError(
            f"cannot resume the run in {folder}, as it was started with other settings: {'; '.join(differences)}"
        )
    done = frozenset(_pair(record) for record in records if record["kind"] == "done")
    kept = [record for record in records if _pair(record) in done]
    if len(kept) < len(records):
        rewrite_records(folder, kept)
    return done


def _pair(record: Record) -> tuple[str, int]:
    return record["model"], record["run"]


def _differences(there: Mapping[str, Any], now: Mapping[str, Any], prefix: str = "") -> list[str]:
    found: list[str] = []
    for key in sorted({*there, *now} - set(_MAY_DIFFER)):
        old, new = there.get(key), now.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            found += _differences(old, new, f"{prefix}{key}.")
        elif old != new:
            texts = map(json.dumps, (old, new))
            shown = [text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…" for text in texts]
            found.append(f"{prefix}{key} is {shown[0]} there and {shown[1]} now")
    return found


def write_manifest(folder: str | os.PathLike[str], manifest: Mapping[str, Any]) -> None:
    """Write the manifest: all of it, or nothing."""
    content = {**manifest, "checksum": f"{_sum_of(manifest):08x}"}
    write_whole(Path(folder, _MANIFEST), json.dumps(content, indent=2, allow_nan=False).encode() + b"\n")


def rewrite_records(folder: str | os.PathLike[str], records: Iterable[Record]) -> None:
    """Replace all records: by all of the new ones, or not at all."""
    total, lines = _sum_of(_read_manifest(Path(folder, _MANIFEST))), []
    for record in records:
        line, total = _line(record, total)
        lines.append(line)
    write_whole(Path(folder, _RECORDS), b"".join(lines))


@contextmanager
def appending(folder: str | os.PathLike[str]) -> Iterator[Callable[[Record], None]]:
    """Provide a function that appends a record to a run folder; when it returns, the record is on the disk."""
    path = Path(folder, _RECORDS)
    # Unbuffered: a line goes out at once, in one piece as a rule, and nothing is left to write when a run is cut off.
    with path.open("ab", buffering=0) as file:
        # A last line without its end was cut off while it was written.
        os.truncate(path, path.read_bytes().rfind(b"\n") + 1)
        _, total = _read_records(path, _sum_of(_read_manifest(Path(folder, _MANIFEST))))

        def append(record: Record) -> None:
            nonlocal total
            line, total = _line(record, total)
            rest = memoryview(line)
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


def _line(record: Record, total: int) -> tuple[bytes, int]:
    """Make a line of a record, and the sum of all lines up to it from that of those before."""
    text = json.dumps(record, separators=(",", ":"), allow_nan=False).encode()
    total = zlib.crc32(text, total)
    return text[:-1] + f',"crc":"{total:08x}"}}\n'.encode(), total


def _sum_of(manifest: Mapping[str, Any]) -> int:
    """Sum up a manifest, whatever the order of its keys and the spaces between them."""
    as_read = json.loads(json.dumps(manifest, allow_nan=False))
    return zlib.crc32(json.dumps(as_read, sort_keys=True).encode())


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
    if manifest.pop("checksum", None) != f"{_sum_of(manifest):08x}":
        raise DataFormatError(f"{path} is damaged or was changed: its checksum does not match. Start a new run")
    return manifest


def _read_records(path: Path, total: int) -> tuple[list[Record], int]:
    """Read the records that follow a manifest with the given sum; return them with the sum of all."""
    records: list[Record] = []
    if not path.is_file():
        return records, total
    *lines, _torn = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        record, total = _parse(line, total, f"{path}, line {number}")
        records.append(record)
    return records, total


def _parse(line: bytes, total: int, where: str) -> tuple[Record, int]:
    text, end = line[:-_CRC_LENGTH] + b"}", _CRC.fullmatch(line[-_CRC_LENGTH:])
    total = zlib.crc32(text, total)
    if end is None or int(end[1], 16) != total:
        raise DataFormatError(
            f"{where} is damaged, was changed, or does not follow what is before it: its checksum does not match. "
            "Start a new run"
        )
    try:
        record = json.loads(text)
    except ValueError as error:
        raise DataFormatError(f"{where} is damaged: {error}") from error
    if not isinstance(record, dict) or not {"kind", "model", "run"} <= record.keys():
        raise DataFormatError(f"{where} is not a record: it does not tell its kind, its model and its run")
    return record, total
