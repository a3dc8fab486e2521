"""Write data to a file of any format but MATLAB's, and convert one format to another."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from labelrace.exceptions import DataFormatError
from labelrace.streams._arff_labels import LabelSource
from labelrace.streams.batch import check_batch_size
from labelrace.streams.formats import format_of
from labelrace.streams.load import open_stream
from labelrace.streams.stream import Batch, FileStream, Stream

__all__ = ["convert", "write_dataset"]


def write_dataset(data: Stream, path: str | os.PathLike[str], *, batch_size: int = 500, **options: Any) -> int:
    r"""Write a dataset or stream to a file, batch by batch; the file is there whole, or not at all.

    What is read back has the same numbers, bit by bit (but for the sign of a zero in sparse formats), the same
    names and the same nominal values. To that end a file with what the format cannot say is written beside it:
    Mulan's ``.xml`` for ARFF, a ``.schema.json`` for svmlight, the Extreme Classification repository's format,
    CSV and JSONL. Dense data in a sparse format come back sparse, and the other way round.

    Parameters
    ----------
    data : Stream
        A `Dataset` is one.
    path : path
        Its suffix tells the format, as for `open_stream`; ``.txt`` is the Extreme Classification repository's.
    batch_size : int
        Rows that are in memory at a time.
    **options
        ``label_column`` for ``.csv``, ``.tsv``, ``.jsonl`` and ``.parquet``: the column for lists of labels. Without
        it each label has a column of its own; for JSONL it is "labels" by default. ``separator`` for ``.csv`` and
        ``.tsv``: what stands between labels in a list. ``zero_based`` for svmlight: whether feature numbers begin
        with 0.

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
    check_batch_size(batch_size)
    write = format_of(path).write
    if write is None:
        raise DataFormatError(f"{path}: files of this type can be read only; write .npz, which is as compact")
    return write(_checked(data), path, batch_size, **options)


def _checked(data: Stream) -> Stream:
    """Return the stream with a check of its numbers."""
    nominal = getattr(data, "nominal_values", {})
    read = partial(_finite_batches, data)
    return FileStream(data.name, data.feature_names, data.label_names, data.categorical, read, nominal)


def _finite_batches(data: Stream, size: int) -> Iterator[Batch]:
    for X, Y in data.batches(size):
        if np.isinf(X.data if issparse(X) else X).any():
            raise ValueError("a feature is infinite, which our readers refuse; make it finite, or NaN if it is missing")
        yield X, Y


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    labels: LabelSource = None,
    *,
    read_options: Mapping[str, Any] | None = None,
    write_options: Mapping[str, Any] | None = None,
) -> int:
    """Write the data of one file to another, in the format that its suffix tells; return the number of rows.

    Parameters
    ----------
    source, labels
        As for `open_stream`.
    target
        As for `write_dataset`.
    read_options, write_options : mapping or None
        Options for the one and for the other.
    """
    stream = open_stream(source, labels, **(read_options or {}))
    return write_dataset(stream, target, **(write_options or {}))
