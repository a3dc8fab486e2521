"""The file formats by suffix: how each is opened and written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from labelrace.exceptions import DataFormatError
from labelrace.streams._arff_write import write_arff
from labelrace.streams._source import plain_path
from labelrace.streams._table_write import write_csv, write_jsonl
from labelrace.streams.arff import open_arff
from labelrace.streams.delimited import open_csv
from labelrace.streams.jsonl import open_jsonl
from labelrace.streams.mat import open_mat
from labelrace.streams.npz import open_npz, write_npz
from labelrace.streams.parquet import open_parquet, write_parquet
from labelrace.streams.stream import Stream
from labelrace.streams.svmlight import open_svmlight, write_svmlight
from labelrace.streams.xc import is_xc, open_xc, write_xc

__all__ = ["FORMATS", "Format", "format_of", "has_format"]


class Format(NamedTuple):
    """``open(path, labels, **options)`` gives a stream, ``write(stream, path, batch_size, **options)`` a row count.

    The options are those of the format's own functions.
    """

    open: Callable[..., Stream]
    write: Callable[..., int] | None


def _open_text(path: Path, labels: Any = None, **options: Any) -> Stream:
    """Open a ``.txt`` file, which is in one format or the other."""
    return (open_xc if is_xc(path) else open_svmlight)(path, labels, **options)


FORMATS: dict[str, Format] = {
    ".arff": Format(open_arff, write_arff),
    ".svm": Format(open_svmlight, write_svmlight),
    ".libsvm": Format(open_svmlight, write_svmlight),
    ".svmlight": Format(open_svmlight, write_svmlight),
    # The repository's own files end so; svmlight's are written under its names only.
    ".txt": Format(_open_text, write_xc),
    ".xc": Format(open_xc, write_xc),
    ".mat": Format(open_mat, None),
    ".csv": Format(open_csv, write_csv),
    ".tsv": Format(open_csv, write_csv),
    ".jsonl": Format(open_jsonl, write_jsonl),
    ".ndjson": Format(open_jsonl, write_jsonl),
    ".parquet": Format(open_parquet, write_parquet),
    ".npz": Format(open_npz, write_npz),
}


def has_format(path: Path) -> bool:
    """Return whether the path ends in a known suffix, before ``.gz`` or ``.bz2``."""
    return plain_path(path).suffix.lower() in FORMATS


def format_of(path: Path) -> Format:
    """Return the format of a file, or raise `DataFormatError`.

    Examples
    --------
    >>> format_of(Path("news.CSV.gz")) is FORMATS[".csv"]
    True
    """
    suffix = plain_path(path).suffix
    if not has_format(path):
        raise DataFormatError(
            f"{path}: cannot read or write files of type {suffix!r}; known types are {', '.join(FORMATS)}, and those "
            "with .gz or .bz2 behind"
        )
    return FORMATS[suffix.lower()]
