"""Files that are written completely or not at all."""

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

# The names of unfinished files: the target, the machine and the process that writes it.
_PART = re.compile(r"\..*\.labelrace-(?P<host>[^/]*)-(?P<pid>\d+)-[0-9a-f]{8}\.part", re.DOTALL)
# The unfinished files of this process.
_being_written: set[str] = set()


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file atomically; see `whole_file`."""
    with whole_file(path) as file:
        file.write(content)


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a temporary file that replaces `path` once it is written; after an error it is removed.

    At any time, even after a crash, `path` is the complete new file or the old one. An existing file keeps its
    permissions, and a symbolic link is kept: the file that it points to is replaced. Unfinished files of processes that
    were killed are removed from the folder.

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
        # The unfinished file is for its owner only if it is to replace another.
        rights = 0o600 if target.exists() else 0o666
        with open(part, "xb", opener=partial(os.open, mode=rights)) as file:
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
    # The file is complete and in its place: an error while its name is made durable is no failure.
    with suppress(OSError):
        _sync_folder(target.parent)


@contextmanager
def part_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary folder beside a file that is to be written; it is removed at the end."""
    folder = check_target(path).with_name(_part_name(Path(path).name))
    _being_written.add(folder.name)
    try:
        folder.mkdir(mode=0o700)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _being_written.discard(folder.name)


def check_target(path: str | os.PathLike[str]) -> Path:
    """Refuse a path that cannot be written to (no folder, no plain file, no permission); return the target of links.

    Call it before a long computation whose result is to be written.

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
    """Remove the unfinished files of processes that were killed; other files are never touched."""
    for entry in os.listdir(folder):
        match = _PART.fullmatch(entry) if entry.endswith(".part") else None
        if match and match["host"] == _host() and _is_stale(entry, int(match["pid"])):
            with suppress(OSError):
                (shutil.rmtree if (folder / entry).is_dir() else os.unlink)(folder / entry)


def _is_stale(name: str, pid: int) -> bool:
    """Return whether the process that was writing a file no longer exists."""
    if pid == os.getpid():
        return name not in _being_written
    if sys.platform == "win32":
        # There os.kill would end the process.
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def _part_name(name: str) -> str:
    """Return a name with the machine and the process; a long name is shortened."""
    suffix = f".labelrace-{_host()}-{os.getpid()}-{secrets.token_hex(4)}.part"
    room = 250 - len(suffix)
    while len(os.fsencode(name)) > room:
        name = name[:-1]
    return f".{name}{suffix}"


def _host() -> str:
    return re.sub(r"[^\w.]", "_", socket.gethostname())[:64]


def _copy_rights(target: Path, part: Path) -> None:
    """Give the new file the permissions and, if the system allows it, the owner of the old one."""
    if not target.exists():
        return
    old = target.stat()
    with suppress(OSError):
        if hasattr(os, "chown") and (old.st_uid, old.st_gid) != (part.stat().st_uid, part.stat().st_gid):
            os.chown(part, old.st_uid, old.st_gid)
    os.chmod(part, stat.S_IMODE(old.st_mode))


def _sync_folder(folder: Path) -> None:
    """Make the new name durable, if the system can."""
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
