"""Files that are written completely or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO


def write_atomic(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file completely or not at all; see `atomic_file`."""
    with atomic_file(path) as file:
        file.write(content)


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a temporary file that replaces `path` once it is written; after an error it is removed.

    At any time, even after a crash, `path` is the complete new file or the old one. An existing file keeps its
    permissions, and a symbolic link is kept: the file that it points to is replaced. A process that is killed leaves
    its temporary file, ``.NAME.DIGITS.part``, in the folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_file(Path(folder, "news.txt")) as file:
    ...         _ = file.write(b"all of it")
    ...     Path(folder, "news.txt").read_text()
    'all of it'
    """
    target = check_target(path)
    # Names have at most 255 bytes, and a character has at most four.
    part = target.with_name(f".{target.name[:60]}.{secrets.token_hex(4)}.part")
    replaces = target.exists()
    try:
        # The unfinished file is for its owner only if it is to replace another.
        with open(part, "xb", opener=partial(os.open, mode=0o600 if replaces else 0o666)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if replaces:
            os.chmod(part, stat.S_IMODE(target.stat().st_mode))
        os.replace(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    # The file is complete and has its name: an error while the name is made durable is no failure.
    with suppress(OSError):
        _sync_folder(target.parent)


def check_target(path: str | os.PathLike[str], *sources: str | os.PathLike[str] | int) -> Path:
    """Refuse a path that cannot be written to (no folder, no plain file, no permission); return the target of links.

    Call it before a long computation whose result is to be written. `sources` are files that the computation reads, or
    their descriptors: the path must be none of them, whatever their names are. Those that do not exist are ignored.

    Raises
    ------
    OSError
        With a message that says why it cannot be written to.
    ValueError
        If it is one of the sources.
    """
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {target.parent} to write {target.name} into: make it first.")
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        if not os.access(target.parent, os.W_OK | os.X_OK):
            raise PermissionError(
                f"{target.parent} must be a folder that you may write into: choose another."
            ) from None
        return target
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{target} must be a file, got a folder: name a file in it.")
    if not stat.S_ISREG(mode):
        raise OSError(f"{target} must be a plain file, got a device, pipe or socket: name another file.")
    if not os.access(target, os.W_OK):
        raise PermissionError(
            f"{target} must be a file that you may write to: change its permissions, or name another."
        )
    for source in sources:
        with suppress(OSError):
            if os.path.samefile(target, source):
                raise ValueError(f"The file to write must not be one that is read, got {path} for both: name another.")
    return target


def _sync_folder(folder: Path) -> None:
    """Make the new name durable, if the system can."""
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
