"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

__all__ = ["check_target", "part_folder", "remove_stale_parts", "whole_file", "write_whole"]

# The names of files that are being written: whose, on which machine, by which process.
_PART = re.compile(r"\..*\.labelrace-(?P<host>[^/]*)-(?P<pid>\d+)-[0-9a-f]{8}\.part", re.DOTALL)
# The parts that this process is writing.
_being_written: set[str] = set()


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file so that whoever opens it, at any moment and after any crash, finds all of it or the old one."""
    with whole_file(path) as file:
        file.write(content)


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a temporary file that takes the place of `path` once it is written; after an error it is gone.

    Whoever opens `path`, at any moment and after any crash, finds all of the new file or the old one. A file that is
    there keeps its rights, and a symbolic link stays one: the file that it points to is replaced. What a process left
    in the folder that was killed while it wrote is removed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole_file(Path(folder, "news.txt")) as file:
    ...         _ = file.write(b"all of it")
    ...     Path(folder, "news.txt").read_text()
    'all of it'
    """
    target = check_target(path)
    remove_stale_parts(target.parent)
    part = target.with_name(_part_name(target.name))
    _being_written.add(part.name)
    try:
        with open(part, "xb", opener=partial(os.open, mode=_first_rights(target))) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _copy_rights(target, part)
        os.replace(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    finally:
        _being_written.discard(part.name)
    # The file is complete and in its place; that its name also survives a crash is as much as can be asked for.
    with suppress(OSError):
        _sync_folder(target.parent)


@contextmanager
def part_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a folder, beside the file that is to be written, for what is needed meanwhile; then it is gone."""
    folder = check_target(path).with_name(_part_name(Path(path).name))
    _being_written.add(folder.name)
    try:
        folder.mkdir(mode=0o700)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _being_written.discard(folder.name)


def check_target(path: str | os.PathLike[str]) -> Path:
    """Refuse a path that cannot be written to: no folder, not a plain file, no right; return where a link leads.

    Before long work, call it to find out early.

    Raises
    ------
    OSError
        With a message that says why it cannot be written to.
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
        raise PermissionError(f"{target} must be a file that you may write to: change its rights, or name another.")
    return target


def remove_stale_parts(folder: Path) -> None:
    """Remove what processes left that were killed while they wrote a whole file; other files are never touched."""
    for entry in os.listdir(folder):
        match = _PART.fullmatch(entry) if entry.endswith(".part") else None
        if match and match["host"] == _host() and _is_stale(entry, int(match["pid"])):
            with suppress(OSError):
                (shutil.rmtree if (folder / entry).is_dir() else os.unlink)(folder / entry)


def _is_stale(name: str, pid: int) -> bool:
    """Tell whether nobody is writing a part any more."""
    if pid == os.getpid():
        return name not in _being_written
    if sys.platform == "win32":
        # There is no asking there: os.kill would end the process.
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def _part_name(name: str) -> str:
    """Choose a name that tells who is writing; of a long name the beginning is enough."""
    suffix = f".labelrace-{_host()}-{os.getpid()}-{secrets.token_hex(4)}.part"
    room = 250 - len(suffix)
    while len(os.fsencode(name)) > room:
        name = name[:-1]
    return f".{name}{suffix}"


def _host() -> str:
    return re.sub(r"[^\w.]", "_", socket.gethostname())[:64]


def _first_rights(target: Path) -> int:
    """Choose the rights of the file that is being written: no more than its owner's if it is to replace another."""
    return 0o600 if target.exists() else 0o666


def _copy_rights(target: Path, part: Path) -> None:
    """Give the new file the rights and the owner of the old one, as far as the system lets us."""
    if not target.exists():
        return
    old = target.stat()
    with suppress(OSError):
        if hasattr(os, "chown") and (old.st_uid, old.st_gid) != (part.stat().st_uid, part.stat().st_gid):
            os.chown(part, old.st_uid, old.st_gid)
    os.chmod(part, stat.S_IMODE(old.st_mode))


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a crash, where the system can."""
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
