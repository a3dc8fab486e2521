"""Open or load data by name or path, whatever its format."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from labelrace.streams._arff_labels import LabelSource
from labelrace.streams.batch import Dataset
from labelrace.streams.catalog import find_dataset, find_labels
from labelrace.streams.formats import format_of, has_format
from labelrace.streams.stream import Stream, collect

__all__ = ["load_dataset", "open_stream"]


def open_stream(source: str | os.PathLike[str], labels: LabelSource = None, **options: Any) -> Stream:
    r"""Open data as a stream, of which no more than a batch is in memory.

    Parameters
    ----------
    source : str or path
        The path of a file, or the name of a dataset in one of the folders of ``$LABELRACE_DATA`` or in the user's
        cache folder. The suffix tells the format: ``.arff``; ``.svm``, ``.libsvm`` or ``.svmlight``; ``.xc``, the
        Extreme Classification repository's; ``.txt``, one of these two; ``.mat``; ``.csv`` or ``.tsv``; ``.jsonl``
        or ``.ndjson``; ``.parquet``; ``.npz``. Any of them may be compressed, with ``.gz`` or ``.bz2`` behind.
        ``.mat`` and ``.npz`` files, and compressed Parquet files, are loaded whole, as their formats do not allow
        otherwise.
    labels : int, str, path, sequence of str or None
        What the labels are. By default the file itself, or the one beside it, tells: Mulan's ``.xml`` for ARFF,
        the ``.schema.json`` that `write_dataset` leaves for others. For ARFF and tables a list of names, or a count
        (n > 0: the last n columns, n < 0: the first). For ARFF the path of an XML file. For tables a prefix such
        as ``"label_*"``, or the name of one column that holds label lists. For formats without names, the names.
    **options
        Those of the format's own function: `open_svmlight`, `open_csv`, `open_jsonl`, `open_parquet` in the modules
        of `labelrace.streams`.

    Returns
    -------
    Stream

    Raises
    ------
    DataFormatError
        If the file cannot be read; errors in rows come when the rows are reached.
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
    if _is_path(source):
        path = Path(source)
    else:
        path = find_dataset(os.fspath(source))
        labels = find_labels(os.fspath(source)) if labels is None else labels
    if not path.is_file():
        raise FileNotFoundError(f"no such data file: {path}")
    return format_of(path).open(path, labels, **options)


def load_dataset(source: str | os.PathLike[str], labels: LabelSource = None, **options: Any) -> Dataset:
    """Load a whole dataset by its name or from a file.

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
    """
    return collect(open_stream(source, labels, **options))


def _is_path(source: str | os.PathLike[str]) -> bool:
    # A dataset's name may have a dot in it (rcv1.subset1), and a folder may have a dataset's name.
    path = Path(source)
    has_folder = path.name != os.fspath(source)
    return not isinstance(source, str) or has_folder or has_format(path) or path.is_file()
