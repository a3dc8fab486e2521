"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

__all__ = ["whole_file", "write_whole"]


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file so that whoever opens it, at any moment and after any crash, finds all of it or the old one."""
    with whole_file(path) as file:
        file.write(content)


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a temporary file that takes the place of `path` once it is written; after an error it is gone.

    Whoever opens `path`, at any moment and after any crash, finds all of the new file or the old one.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole_file(Path(folder, "news.txt")) as file:
    ...         _ = file.write(b"all of it")
    ...     Path(folder, "news.txt").read_text()
    'all of it'
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {target.parent} to write {target.name} into: make it first.")
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files that only their owner can read; the result gets the usual rights.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    # The file is complete and in its place; that its name also survives a crash is as much as can be asked for.
    with suppress(OSError):
        _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a crash, where the system can."""
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
