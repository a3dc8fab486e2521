"""Data files as bytes, compressed or not, and errors that name the file and the line."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple, cast

from labelrace.base import limits
from labelrace.base.files import atomic_file
from labelrace.base.parameters import quoted_list
from labelrace.exceptions import DataFormatError, LabelraceError

# A file that declares more features or labels than this is taken as damaged, before memory is allocated.
MAX_COLUMNS = 10**8

_COMPRESSED = (".gz", ".bz2", ".zip")
# Bytes that are read at once, and bytes up to which any compressed file may unpack.
_BUFFER, _SMALL = 1 << 18, 1 << 26
_TAIL = 1 << 12


class Location(NamedTuple):
    """A line of a file, or a row where the format has no lines, to name in an error."""

    path: Path
    line: int
    unit: str = "line"

    def error(self, what: str) -> DataFormatError:
        """Return the error that says `what` is wrong here."""
        return DataFormatError(f"{self.path}, {self.unit} {self.line}: {what}")


def plain_path(path: Path) -> Path:
    """Return the path without ``.gz``, ``.bz2`` or ``.zip``."""
    return path.with_suffix("") if path.suffix.lower() in _COMPRESSED else path


def suffix_of(path: Path) -> str:
    """Return the suffix that tells the format, in lower case: ``.csv`` for ``NEWS.CSV.gz``, or a zip file with one."""
    if path.suffix.lower() == ".zip" and path.is_file():
        with _zip_errors(path), zipfile.ZipFile(path) as archive:
            return Path(_only_member(archive, path)).suffix.lower()
    return plain_path(path).suffix.lower()


def _only_member(archive: zipfile.ZipFile, path: Path) -> str:
    """Return the name of the one file in a zip file."""
    # Some systems add what they know of files, in a folder of their own.
    names = [name for name in archive.namelist() if not name.endswith("/") and not name.startswith("__MACOSX/")]
    if len(names) != 1:
        what = f"{len(names)} ({quoted_list(names)})" if names else "none"
        raise DataFormatError(f"{path}: a zip file must hold one data file, got {what}; unpack it")
    return names[0]


@contextmanager
def _zip_errors(path: Path) -> Iterator[None]:
    """Turn the errors of zip files into one sentence."""
    try:
        yield
    except zipfile.BadZipFile as error:
        raise DataFormatError(f"{path}: not a zip file, or a damaged one ({error}); fetch it again") from error
    except (RuntimeError, NotImplementedError) as error:
        raise DataFormatError(f"{path}: the zip file cannot be read ({error}); unpack it") from error


@contextmanager
def _unzipped(path: Path, mode: str) -> Iterator[IO[bytes]]:
    with _zip_errors(path), zipfile.ZipFile(path) as archive, archive.open(_only_member(archive, path)) as file:
        yield file


@contextmanager
def open_data(path: Path, *, has_lines: bool = True) -> Iterator[IO[bytes]]:
    """Open a file for reading, decompressed if its suffix is ``.gz``, ``.bz2`` or ``.zip``.

    Lines that are too long (if `has_lines`) and small files that unpack to too much are errors.
    """
    if not path.exists():
        raise FileNotFoundError(f"no such data file: {path}")
    if not path.is_file():
        # Opening a pipe may block for ever, and most files are read twice.
        raise DataFormatError(f"{path} must be a plain file, got a folder, device or pipe: name a file")
    unpack: Any = {".gz": gzip.open, ".bz2": bz2.open, ".zip": _unzipped}.get(
        path.suffix.lower(), partial(open, buffering=0)
    )
    try:
        with unpack(path, "rb") as raw, io.BufferedReader(_LimitedReader(raw, path, has_lines), _BUFFER) as file:
            yield file
    except (EOFError, zlib.error, OSError) as error:
        # Errors of the operating system have an errno, those of damaged compressed files do not.
        if getattr(error, "errno", None) is not None:
            raise
        raise DataFormatError(f"{path}: the compressed file is damaged or cut ({error}); fetch it again") from error


class _LimitedReader(io.RawIOBase):
    """A file that checks the length of its lines and how much it unpacks to, as it is read."""

    def __init__(self, raw: Any, path: Path, has_lines: bool) -> None:
        self._raw, self._path = raw, path
        self._line, self._max_line = 0, limits.LINE.value if has_lines else None
        self._size = path.stat().st_size if plain_path(path) != path else None
        self._unpacked = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._raw.seekable()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._line = 0
        return self._raw.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        count: int = self._raw.readinto(buffer)
        self._unpacked += count
        if self._size is not None and self._unpacked > _SMALL:
            limits.RATIO.check(self._unpacked // max(self._size, 1), f"{self._path}")
        if self._max_line is not None:
            # Most lines are short, so the end of the last one is usually near the end of the buffer.
            start = max(count - _TAIL, 0)
            last = bytes(buffer[start:count]).rfind(b"\n")
            if last < 0:
                start, last = 0, bytes(buffer[:start]).rfind(b"\n")
            self._line = self._line + count if last < 0 else count - start - last - 1
            if self._line > self._max_line:
                limits.LINE.check(self._line, f"{self._path}")
        return count


@contextmanager
def seekable_data(path: Path) -> Iterator[IO[bytes]]:
    """Open a file whose format needs random access; a compressed file is read into memory."""
    with open_data(path, has_lines=False) as file:
        yield file if plain_path(path) == path else io.BytesIO(read_all(file, path))


def read_all(file: IO[bytes], path: Path) -> bytes:
    """Read the rest of a file, unless it is larger than the limit of memory."""
    parts, size = list[bytes](), 0
    # In parts, as read() allocates all that is asked for, whether the file has it or not.
    while part := file.read(_BUFFER):
        parts.append(part)
        size += len(part)
        limits.BYTES.check(size, f"{path}")
    return b"".join(parts)


@contextmanager
def as_format_errors(path: Path, kind: str) -> Iterator[None]:
    """Turn any error that another library raises about the content of a file into a `DataFormatError`.

    Libraries do not document what they raise for damaged files, and it may be nearly anything.
    """
    try:
        yield
    except LabelraceError:
        raise
    except Exception as error:
        # A damaged file may make the library seek to a negative position, which is no error of the system.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        reason = str(error).partition("\n")[0][:200] or type(error).__name__
        raise DataFormatError(f"{path}: not a readable {kind} file, or a damaged one ({reason})") from error


@contextmanager
def new_data(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing, compressed if its suffix says so; it is written completely or not at all."""
    if path.suffix.lower() == ".zip":
        raise ValueError(f"{path} must end in .gz or .bz2 to be compressed: zip files are read, but not written.")
    with atomic_file(path) as file:
        match path.suffix.lower():
            case ".gz":
                # Without name and time in the header, so that the same data makes the same file.
                with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                    yield cast("BinaryIO", packed)
            case ".bz2":
                with bz2.BZ2File(file, "wb") as bz2_packed:
                    yield cast("BinaryIO", bz2_packed)
            case _:
                yield file
