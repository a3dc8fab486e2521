"""Data files as bytes and lines, compressed or not, and errors that name the file and the line."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple, TypeVar, cast

from labelrace import limits
from labelrace.exceptions import DataFormatError, LabelraceError
from labelrace.files import whole_file

Item = TypeVar("Item")
Arguments = TypeVar("Arguments", bound=tuple[Any, ...])
Result = TypeVar("Result")

# A file that declares more features or labels than this is damaged, and memory must not be given to it.
MOST_COLUMNS = 10**8

_COMPRESSED = (".gz", ".bz2")
# Bytes that are read at once, and that any compressed file may unpack to.
_BUFFER, _SMALL = 1 << 18, 1 << 26
_TAIL = 1 << 12
# The parsers that take a block of lines at a time pay from the first size on. NumPy's arrays for a block of the second
# one stay in the processor's cache.
_LEAST_BLOCK, SPARSE_BLOCK = 1 << 16, 1 << 17


class Place(NamedTuple):
    """A line of a file, to name in an error; or a row, where lines make no sense."""

    path: Path
    line: int
    unit: str = "line"

    def error(self, what: str) -> DataFormatError:
        """Return the error that says `what` is wrong here."""
        return DataFormatError(f"{self.path}, {self.unit} {self.line}: {what}")


def shown(names: list[str] | tuple[str, ...], most: int = 5) -> str:
    """Return up to `most` names, quoted, to list in an error."""
    listed = ", ".join(map(repr, names[:most]))
    return f"{listed} and {len(names) - most} more" if len(names) > most else listed


def plain_path(path: Path) -> Path:
    """Return the path without ``.gz`` or ``.bz2``."""
    return path.with_suffix("") if path.suffix.lower() in _COMPRESSED else path


@contextmanager
def open_data(path: Path, *, has_lines: bool = True) -> Iterator[IO[bytes]]:
    """Open a file for reading, decompressed if its suffix is ``.gz`` or ``.bz2``.

    Too long a line, if it has lines, and too much that unpacks from a small file are errors.
    """
    if not path.exists():
        raise FileNotFoundError(f"no such data file: {path}")
    if not path.is_file():
        # Whoever opens a pipe may wait for ever, and most files are read twice.
        raise DataFormatError(f"{path} must be a plain file, got a folder, device or pipe: name a file")
    try:
        with _opened(path) as raw, io.BufferedReader(_Watched(raw, path, has_lines), _BUFFER) as file:
            yield file
    except (EOFError, zlib.error, OSError) as error:
        # The system's own errors have a number, those of damaged compressed files do not.
        if getattr(error, "errno", None) is not None:
            raise
        raise DataFormatError(f"{path}: the compressed file is damaged or cut ({error}); fetch it again") from error


def _opened(path: Path) -> Any:
    unpack: Any = {".gz": gzip.open, ".bz2": bz2.open}.get(path.suffix.lower())
    return path.open("rb", buffering=0) if unpack is None else unpack(path, "rb")


class _Watched(io.RawIOBase):
    """A file that is read; checks the length of its lines and how much unpacks from it."""

    def __init__(self, raw: Any, path: Path, has_lines: bool) -> None:
        self._raw, self._path = raw, path
        self._line, self._most_in_line = 0, limits.LINE.value if has_lines else None
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
        if self._most_in_line is not None:
            # Lines are mostly short: copying the end of the buffer is enough to find that of the last one.
            start = max(count - _TAIL, 0)
            last = bytes(buffer[start:count]).rfind(b"\n")
            if last < 0:
                start, last = 0, bytes(buffer[:start]).rfind(b"\n")
            self._line = self._line + count if last < 0 else count - start - last - 1
            if self._line > self._most_in_line:
                limits.LINE.check(self._line, f"{self._path}")
        return count


@contextmanager
def seekable_data(path: Path) -> Iterator[IO[bytes]]:
    """Open a file whose format needs random access; a compressed one is read into memory."""
    with open_data(path, has_lines=False) as file:
        yield file if plain_path(path) == path else io.BytesIO(read_all(file, path))


def read_all(file: IO[bytes], path: Path) -> bytes:
    """Read what is left of a file, unless it is more than there is memory for."""
    parts, size = list[bytes](), 0
    # Some at a time: memory is given for as much as is asked for, whether it is there or not.
    while part := file.read(_BUFFER):
        parts.append(part)
        size += len(part)
        limits.BYTES.check(size, f"{path}")
    return b"".join(parts)


@contextmanager
def foreign(path: Path, kind: str) -> Iterator[None]:
    """Turn whatever another library raises over the content of a file into a `DataFormatError`.

    Such libraries do not say what they raise over damaged files, and it is nearly everything.
    """
    try:
        yield
    except LabelraceError:
        raise
    except Exception as error:
        # A damaged file may send the library to a place before its start; that is not the system's fault.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        reason = str(error).partition("\n")[0][:200] or type(error).__name__
        raise DataFormatError(f"{path}: not a readable {kind} file, or a damaged one ({reason})") from error


@contextmanager
def new_data(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing, whole or not at all, compressed if its suffix says so."""
    with whole_file(path) as file:
        match path.suffix.lower():
            case ".gz":
                # No name and no time in the header: the same data makes the same file.
                with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                    yield cast("BinaryIO", packed)
            case ".bz2":
                with bz2.BZ2File(file, "wb") as bz2_packed:
                    yield cast("BinaryIO", bz2_packed)
            case _:
                yield file


def byte_blocks(file: IO[bytes], size: int, most: int = 1 << 22) -> Iterator[tuple[bytes, int]]:
    """Yield blocks of about `size` lines, if these are neither few nor long, and how many lines they have.

    `most` bounds the bytes of a block, but for the end of its last line, and so the memory of those who parse it.
    """
    amount = _LEAST_BLOCK
    while block := file.read(amount):
        block += file.readline()
        block = block if block.endswith(b"\n") else block + b"\n"
        n_lines = block.count(b"\n")
        yield block, n_lines
        amount = min(max(size * len(block) // n_lines, _LEAST_BLOCK), most)


def ahead(
    function: Callable[..., Result], calls: Iterable[Arguments], threads: int
) -> Iterator[tuple[Arguments, Result]]:
    """Yield the arguments and results of calls, in their order; several threads are as many calls ahead."""
    if threads == 1:
        yield from ((call, function(*call)) for call in calls)
        return
    with ThreadPoolExecutor(threads) as pool:
        pending, error, waiting = deque[tuple[Arguments, Future[Result]]](), None, iter(calls)
        while error is None:
            try:
                call = next(waiting, None)
            except Exception as failure:
                # What comes before it is still delivered.
                error = failure
                break
            if call is None:
                break
            pending.append((call, pool.submit(function, *call)))
            if len(pending) > threads:
                done, result = pending.popleft()
                yield done, result.result()
        for done, result in pending:
            yield done, result.result()
        if error is not None:
            raise error


def rows_in(block: bytes, line: int, skipped: tuple[bytes, ...] = (b"",)) -> tuple[list[int], list[bytes]]:
    """Return the numbers and the stripped texts of a block's lines that hold rows.

    `line` is the number of the line before the block, `skipped` the first bytes of lines that hold no row: an empty
    one for blank lines, the signs of comments.
    """
    lines = enumerate(map(bytes.strip, block.split(b"\n")[:-1]), start=line + 1)
    rows = [(number, text) for number, text in lines if text[:1] not in skipped]
    return [number for number, _ in rows], [text for _, text in rows]


def until_error(rows: Iterable[Item]) -> tuple[list[Item], DataFormatError | None]:
    """Return the rows up to the first that cannot be read, and its error: rows above an error are still delivered."""
    read = list[Item]()
    try:
        read.extend(rows)
    except DataFormatError as error:
        return read, error
    return read, None
