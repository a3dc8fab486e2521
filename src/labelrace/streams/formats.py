"""Open, load and write data by name or path; the suffix determines the format."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from labelrace.base import plugins
from labelrace.base.parameters import check_whole
from labelrace.exceptions import DataFormatError
from labelrace.streams.arff import open_arff, write_arff
from labelrace.streams.catalog import find_dataset, find_labels
from labelrace.streams.dataset import Batch, Dataset, FileStream, Stream, collect
from labelrace.streams.files import suffix_of
from labelrace.streams.mat import open_mat
from labelrace.streams.npz import open_npz, write_npz
from labelrace.streams.schema import LabelSource
from labelrace.streams.svmlight import is_xc, open_svmlight, open_xc, write_svmlight, write_xc
from labelrace.streams.table_stream import open_arrow, open_csv, open_jsonl
from labelrace.streams.table_write import write_arrow, write_csv, write_jsonl


def open_stream(source: str | os.PathLike[str], labels: LabelSource = None, **options: Any) -> Stream:
    r"""Open data as a stream, of which one batch at a time is in memory.

    Parameters
    ----------
    source : str or path
        The path of a file, or the name of a dataset in one of the folders of ``$LABELRACE_DATA`` or in the user's
        cache folder. The suffix determines the format: ``.arff``; ``.svm``, ``.libsvm`` or ``.svmlight``; ``.xc``, the
        Extreme Classification repository's; ``.txt``, one of these two; ``.mat``; ``.csv`` or ``.tsv``; ``.jsonl``
        or ``.ndjson``; ``.parquet``; ``.arrow`` or ``.feather``; ``.npz``. Any of them may be compressed, with a
        further suffix ``.gz`` or ``.bz2``. ``.mat`` and ``.npz`` files, and compressed Parquet and Arrow files, are
        loaded as a whole, as their formats cannot be read in batches.
    labels : int, str, path, sequence of str or None, default=None
        The labels. By default they are read from the file itself or from one beside it: Mulan's ``.xml`` for ARFF,
        the ``.schema.json`` that `write_dataset` leaves for others. For ARFF and tables: a list of names, or a count
        (n > 0: the last n columns, n < 0: the first). For ARFF: the path of an XML file. For tables: a prefix such
        as ``"label_*"``, or the name of one column that holds label lists. For formats without names: the names.
    **options
        Those of the format's own function, such as `labelrace.streams.svmlight.open_svmlight` or, for tables,
        `open_csv`, `open_jsonl` and `open_arrow` of `labelrace.streams.table_stream`.

    Returns
    -------
    Stream

    Raises
    ------
    DataFormatError
        If the file cannot be read. An error in a row is raised when the row is reached, and names the line; in
        Parquet and Arrow files the row, counted from 1.
    FileNotFoundError

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "toy.csv")
    ...     _ = path.write_text("size,new,hot\n1.5,0,1\n2,1,1\n3,0,0\n")
    ...     stream = open_stream(path, labels=["new", "hot"])
    ...     [X.ravel().tolist() for X, Y in stream.batches(2)]
    [[1.5, 2.0], [3.0]]
    """
    path = Path(source)
    has_folder = path.name != os.fspath(source)
    # The name of a dataset may contain a dot (rcv1.subset1), and a folder may have the name of a dataset.
    if isinstance(source, str) and not (has_folder or has_format(path) or path.is_file()):
        path = find_dataset(source)
        labels = find_labels(source) if labels is None else labels
    if not path.is_file():
        raise FileNotFoundError(f"no such data file: {path}")
    return format_of(path).open(path, labels, **options)


def load_dataset(source: str | os.PathLike[str], labels: LabelSource = None, **options: Any) -> Dataset:
    r"""Load a whole dataset by its name or from a file.

    Parameters
    ----------
    source, labels, **options
        As for `open_stream`.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> load_dataset("enron")  # doctest: +SKIP
    Dataset('enron': 1702 rows, 1001 features (1001 categorical), 53 labels, cardinality 3.38)

    A file of one's own, whose last two columns are labels:

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "weather.csv")
    ...     _ = path.write_text("degrees,wind,warm,kites\n25,1,1,0\n12,7,0,1\n21,8,1,1\n")
    ...     data = load_dataset(path, labels=2)
    >>> data.label_names, data.X.shape
    (('warm', 'kites'), (3, 2))
    """
    return collect(open_stream(source, labels, **options))


def write_dataset(data: Stream, path: str | os.PathLike[str], *, batch_size: int = 500, **options: Any) -> int:
    r"""Write a dataset or stream to a file, batch by batch; the file is written completely or not at all.

    Reading the file gives exactly the same numbers (except for the sign of zeros in sparse formats), names and nominal
    values. To this end a second file is written beside it with what the format cannot express: Mulan's ``.xml`` for
    ARFF, a ``.schema.json`` for svmlight, the Extreme Classification repository's format, CSV and JSONL. Dense data in
    a sparse format is read back as sparse, and vice versa.

    Parameters
    ----------
    data : Stream
        A `Dataset` is one.
    path : path
        Its suffix determines the format, as in `open_stream`; ``.txt`` is the Extreme Classification repository's.
    batch_size : int, default=500
        Rows that are in memory at a time.
    **options
        ``label_column`` for tables: the column for lists of labels. Without it each label has its own column; for JSONL
        it is "labels" by default. ``separator`` for ``.csv`` and ``.tsv``: the text between the labels of a list.
        ``zero_based`` for svmlight: whether feature numbers begin with 0.

    Returns
    -------
    int
        The number of rows.

    Examples
    --------
    >>> import tempfile
    >>> from labelrace.streams import load_dataset
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     source, target = Path(folder, "toy.csv"), Path(folder, "toy.svm")
    ...     _ = source.write_text("size,new,hot\n1.5,0,1\n2,1,1\n")
    ...     write_dataset(load_dataset(source, labels=2), target)
    ...     print(target.read_text())
    2
    1 1:1.5
    0,1 1:2
    <BLANKLINE>
    """
    path = Path(path)
    check_whole("batch_size", batch_size, 1)
    write = format_of(path).write
    if write is None:
        raise DataFormatError(f"{path}: files of this type can be read only; write .npz, which is as compact")
    known = data.name, data.feature_names, data.label_names, data.categorical
    checked = FileStream(
        *known, partial(_checked_batches, data, write is write_arff), getattr(data, "nominal_values", {})
    )
    return write(checked, path, batch_size, **options)


def _checked_batches(data: Stream, takes_missing_labels: bool, size: int) -> Iterator[Batch]:
    for X, Y in data.batches(size):
        if not takes_missing_labels and np.isnan(Y.data).any():
            raise ValueError(
                "a label is missing (NaN), which only .arff files can tell; write one, or leave out the row"
            )
        if np.isinf(X.data if issparse(X) else X).any():
            raise ValueError("a feature is infinite, which our readers refuse; make it finite, or NaN if it is missing")
        yield X, Y


class Format(NamedTuple):
    """How a format is read and written, with the options of its own functions.

    ``open(path, labels, **options)`` returns a stream, ``write(stream, path, batch_size, **options)`` a number of rows.
    """

    open: Callable[..., Stream]
    write: Callable[..., int] | None


def _open_text(path: Path, labels: Any = None, **options: Any) -> Stream:
    """Open a ``.txt`` file, which is an XC or an svmlight file."""
    return (open_xc if is_xc(path) else open_svmlight)(path, labels, **options)


FORMATS: dict[str, Format] = {
    ".arff": Format(open_arff, write_arff),
    ".svm": Format(open_svmlight, write_svmlight),
    ".libsvm": Format(open_svmlight, write_svmlight),
    ".svmlight": Format(open_svmlight, write_svmlight),
    # The Extreme Classification repository's files have this suffix; svmlight files are only written with their own.
    ".txt": Format(_open_text, write_xc),
    ".xc": Format(open_xc, write_xc),
    ".mat": Format(open_mat, None),
    ".csv": Format(open_csv, write_csv),
    ".tsv": Format(open_csv, write_csv),
    ".jsonl": Format(open_jsonl, write_jsonl),
    ".ndjson": Format(open_jsonl, write_jsonl),
    ".parquet": Format(open_arrow, write_arrow),
    ".arrow": Format(open_arrow, write_arrow),
    ".feather": Format(open_arrow, write_arrow),
    ".npz": Format(open_npz, write_npz),
}


_REGISTERED: dict[str, Format] = {}
ENTRY_POINTS = "labelrace.formats"


def register_format(suffix: str, opener: Callable[..., Stream], *, write: Callable[..., int] | None = None) -> None:
    r"""Let `open_stream`, `load_dataset` and the command read files of a further format.

    Parameters
    ----------
    suffix : str
        How the names of the files end, such as ``".log"``. It must be free, but a function that is defined again may be
        registered again.
    opener : callable
        Called with the path of a file, the labels as the user gave them, and options. It returns a stream, such as a
        `Dataset`.
    write : callable, default=None
        Called with a stream, a path and a batch size. It writes the file and returns the number of rows.

    Examples
    --------
    >>> import tempfile
    >>> def open_numbers(path, labels=None):
    ...     rows = np.loadtxt(path, ndmin=2)
    ...     return Dataset.from_arrays(rows[:, :-1], rows[:, -1:], label_names=labels, name=path.stem)
    >>> register_format(".numbers", open_numbers)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "toy.numbers")
    ...     _ = path.write_text("0.5 2 1\n1.5 3 0\n")
    ...     load_dataset(path, labels=["new"])
    Dataset('toy': 2 rows, 2 features (0 categorical), 1 labels, cardinality 0.50)
    """
    plugins.check_new(suffix, opener, FORMATS, {one: known.open for one, known in _REGISTERED.items()})
    if suffix != suffix.lower() or not suffix.startswith(".") or suffix_of(Path(f"x{suffix}")) != suffix:
        raise ValueError(f"suffix must be a dot and small letters, such as '.log', got {suffix!r}.")
    if write is not None and not callable(write):
        raise ValueError(f"write must be a function, got {write!r}.")
    _REGISTERED[suffix] = Format(opener, write)


def _find(suffix: str) -> Format | None:
    """Return a format by its suffix; None if there is none."""
    found = FORMATS.get(suffix) or _REGISTERED.get(suffix)
    # The names of entry points are suffixes without the dot.
    if found is None and suffix[1:] in plugins.entry_points(ENTRY_POINTS):
        opener = plugins.entry_points(ENTRY_POINTS)[suffix[1:]].load()
        found = Format(opener, getattr(opener, "write", None))
    return found


def has_format(path: Path) -> bool:
    """Return whether the path ends in a known suffix, before ``.gz`` or ``.bz2``."""
    return _find(suffix_of(path)) is not None


def is_table(path: Path) -> bool:
    """Return whether the file is a table, whose texts are coded by the values that it holds."""
    return has_format(path) and format_of(path).open in (open_csv, open_jsonl, open_arrow)


def format_of(path: Path) -> Format:
    """Return the format of a file, or raise `DataFormatError`."""
    suffix = suffix_of(path)
    found = _find(suffix)
    if found is None:
        offered = (f".{name}" for name in plugins.entry_points(ENTRY_POINTS))
        raise DataFormatError(
            f"{path}: cannot read or write files of type {suffix!r}; known types are "
            f"{', '.join((*FORMATS, *_REGISTERED, *offered))}, and those with .gz or .bz2 behind"
            + ("; a table with tags needs --tags" if suffix == ".xlsx" else "")
        )
    return found
