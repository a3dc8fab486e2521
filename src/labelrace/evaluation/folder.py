"""A run folder opened for writing: new, or to go on where a run was cut off."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from labelrace.evaluation.records import Record, appending, locked, read_run, rewrite_records, write_manifest

__all__ = ["RunFolder", "open_folder"]

# What may differ between the beginning of a run and its end: it does not change a measure.
_MAY_DIFFER = ("created", "machine")


class RunFolder(NamedTuple):
    """Where a run's records go, and which pairs of model and run are complete there already."""

    append: Callable[[Record], None]
    done: frozenset[tuple[str, int]]


@contextmanager
def open_folder(path: str | os.PathLike[str], manifest: Mapping[str, Any], *, resume: bool) -> Iterator[RunFolder]:
    """Open a run folder for writing, and make it if need be.

    Parameters
    ----------
    path : path
    manifest : dict
        What is to be run.
    resume : bool
        Whether to go on with the run that the folder holds. Records of pairs that were cut off or failed are dropped.

    Raises
    ------
    FileExistsError
        If the folder holds something, and it is not to be resumed, or is not a run.
    ValueError
        If the folder's run differs from the one to be resumed; the message tells in what.
    BlockingIOError
        If another process is writing into the folder.
    """
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        _remove_parts(folder)
        done = _resume(folder, manifest) if resume and any(folder.iterdir()) else _begin(folder, manifest)
        with appending(folder) as append:
            yield RunFolder(append, done)


def _begin(folder: Path, manifest: Mapping[str, Any]) -> frozenset[tuple[str, int]]:
    if found := sorted(entry.name for entry in folder.iterdir()):
        raise FileExistsError(
            f"{folder} is not empty: there is {found[0]!r}. Give another folder, or resume=True to go on with its run"
        )
    write_manifest(folder, manifest)
    return frozenset()


def _resume(folder: Path, manifest: Mapping[str, Any]) -> frozenset[tuple[str, int]]:
    try:
        there, records = read_run(folder)
    except FileNotFoundError as error:
        raise FileExistsError(f"cannot resume: {error}, but other files are") from error
    # Written and read again, so that a tuple is as good as a list.
    if differences := _differences(there, json.loads(json.dumps(manifest))):
        raise ValueError(f"cannot resume the run in {folder}, it is another one: {'; '.join(differences)}")
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
            found.append(f"{prefix}{key} is {json.dumps(old)} there and {json.dumps(new)} now")
    return found


def _remove_parts(folder: Path) -> None:
    """Remove what a process left that was killed while it wrote a whole file."""
    for part in folder.glob(".*.part"):
        part.unlink()
