"""Text files of other encodings, read as UTF-8, and what separates their cells.

Programs of offices save CSV in Windows' code page 1252 or in UTF-16, with semicolons or tabs. The readers here know
UTF-8: `as_utf8` turns the bytes of a file into it as they are read, and says which encoding was found.
"""

from __future__ import annotations

import codecs
import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from labelrace.exceptions import DataFormatError

_CHUNK = 1 << 18
_UTF8 = "utf-8"
# What text that is not UTF-8 is taken for: the encoding of Western Windows.
_WINDOWS = "cp1252"
DELIMITERS = (",", ";", "\t")


def check_encoding(encoding: str) -> str:
    """Return the usual name of an encoding."""
    try:
        # Others, such as base64, turn bytes into bytes, and are refused here, too.
        "".encode(encoding)
    except LookupError:
        raise ValueError(
            f"encoding must be the name of an encoding, such as cp1252 or utf-16, got {encoding!r}."
        ) from None
    return codecs.lookup(encoding).name


def as_utf8(file: IO[bytes], path: Path, encoding: str | None = None) -> IO[bytes]:
    """Return a file that reads as UTF-8, whatever its encoding is.

    By default a byte order mark tells UTF-16. Else the first bytes that are not ASCII decide: they are cp1252 if they
    are not UTF-8. What was found is said, as a warning.
    """
    return io.BufferedReader(_Recoded(file, path, encoding), _CHUNK)


class _Recoded(io.RawIOBase):
    """A file whose bytes become UTF-8 as they are read; as long as all are ASCII, its encoding is open."""

    def __init__(self, file: IO[bytes], path: Path, encoding: str | None) -> None:
        self._file, self._path, self._ready, self._has_started = file, path, b"", False
        self._encoding = None if encoding is None else check_encoding(encoding)
        self._decoder: Any = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            chunk = self._file.read(_CHUNK)
            self._ready = self._recode(chunk)
            if not chunk:
                break
        count = min(len(buffer), len(self._ready))
        buffer[:count], self._ready = self._ready[:count], self._ready[count:]
        return count

    def _recode(self, chunk: bytes) -> bytes:
        if self._encoding is None:
            self._encoding = _found(chunk, not self._has_started)
            if self._encoding is not None and self._encoding != _UTF8:
                warnings.warn(f"{self._path} is read as {self._encoding}: its text is not UTF-8.", stacklevel=2)
        self._has_started = True
        # What is not UTF-8 is found by who reads the lines, and can name the line.
        if self._encoding in (None, _UTF8):
            return chunk
        if self._decoder is None:
            self._decoder = codecs.getincrementaldecoder(self._encoding)()
        try:
            return str(self._decoder.decode(chunk, final=not chunk)).encode()
        except UnicodeError as error:
            reason = getattr(error, "reason", error)
            raise DataFormatError(
                f"{self._path}: not text of the encoding {self._encoding} ({reason}); give another one, or save the "
                "file as UTF-8"
            ) from error


def _found(chunk: bytes, is_first: bool) -> str | None:
    """Detect the encoding; None if the bytes do not tell."""
    if is_first and chunk.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if chunk.isascii():
        return None
    text = codecs.getincrementaldecoder(_UTF8)(errors="surrogateescape").decode(chunk)
    others = [char for char in text if not char.isascii()]
    n_wrong = sum("\udc80" <= char <= "\udcff" for char in others)
    # A file with more letters in UTF-8 than bytes that are not is a damaged one.
    if 2 * n_wrong <= len(others) or b"\0" in chunk:
        return _UTF8
    try:
        chunk.decode(_WINDOWS)
    except UnicodeDecodeError:
        return _UTF8
    return _WINDOWS


def find_delimiter(lines: Sequence[str]) -> str:
    r"""Detect the cell separator of a table: a comma, unless the header shows a semicolon or a tab.

    `lines` are the header and the first row, if there is one.

    Examples
    --------
    >>> find_delimiter(["a,b\n"]), find_delimiter(['"a, b";c\n'])
    (',', ';')
    >>> find_delimiter(["price, EUR;day;tag\n", "1,5;Mon;x\n"])
    ';'
    """
    header, *rows = ({sign: _outside_quotes(line).count(sign) for sign in DELIMITERS} for line in lines)
    best = max(DELIMITERS, key=lambda sign: header[sign])
    if header[","] and best != ",":
        # Both are in the header: the more frequent one, if the row has it as often.
        return best if rows and rows[0][best] == header[best] else ","
    return best


def _outside_quotes(line: str) -> str:
    return "".join(line.split('"')[::2])
