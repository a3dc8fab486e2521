"""What svmlight's format and that of the Extreme Classification repository share.

Both write a row as ``LABEL,LABEL INDEX:VALUE INDEX:VALUE``, by numbers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from labelrace.streams._cells import canonical_rows, number_texts
from labelrace.streams._source import Place
from labelrace.streams.stream import Batch, NumberedNames, Stream
from labelrace.typing import Array, FloatArray, IntArray, SparseMatrix

__all__ = ["Frame", "Pairs", "batch_from", "label_names_from", "lines_from"]


class Pairs(NamedTuple):
    """Parsed rows: row i has ``labels[label_starts[i]:label_starts[i + 1]]``, and so its columns and values."""

    label_starts: IntArray
    labels: IntArray
    starts: IntArray
    columns: IntArray
    values: FloatArray


class Frame(NamedTuple):
    """The columns that rows must fit into; the ids of the first ones are 0 or 1."""

    path: Path
    n_features: int
    n_labels: int
    first_feature: int = 0
    first_label: int = 0


def batch_from(pairs: Pairs, numbers: list[int], frame: Frame) -> Batch:
    """Return parsed rows as sparse X and Y; `numbers` are their lines in the file."""
    _check_range(pairs.columns, pairs.starts, numbers, frame, "feature")
    _check_range(pairs.labels, pairs.label_starts, numbers, frame, "label")
    kept = pairs.values != 0
    starts = np.concatenate(([0], np.cumsum(kept)))[pairs.starts]
    X = _csr(pairs.values[kept], pairs.columns[kept] - frame.first_feature, starts, frame.n_features)
    ones = np.ones(len(pairs.labels), dtype=np.int8)
    Y = _csr(ones, pairs.labels - frame.first_label, pairs.label_starts, frame.n_labels)
    Y.sum_duplicates()
    Y.data[:] = 1  # a label named twice is there once
    return X, Y


def _csr(values: Array, columns: IntArray, starts: IntArray, width: int) -> SparseMatrix:
    # 32 bits are enough for a chunk of rows, and scikit-learn's estimators often take no others.
    parts = (values, columns.astype(np.int32), starts.astype(np.int32))
    return csr_array(parts, shape=(len(starts) - 1, width))


def _check_range(ids: IntArray, starts: IntArray, numbers: list[int], frame: Frame, what: str) -> None:
    first, count = (frame.first_feature, frame.n_features) if what == "feature" else (frame.first_label, frame.n_labels)
    wrong = np.flatnonzero((ids < first) | (ids >= first + count))
    if wrong.size:
        row = int(np.searchsorted(starts, wrong[0], side="right")) - 1
        raise Place(frame.path, numbers[row]).error(
            f"{what} {ids[wrong[0]]} is out of range; there are {count} {what}s, numbered from {first}. Correct "
            "the number, or what the file or the call says about the numbers"
        )


def label_names_from(labels: int | Sequence[str] | None, n_labels: int, first: int, path: Path) -> Sequence[str]:
    """Return the names that were given for the labels, else their numbers."""
    if isinstance(labels, (str, os.PathLike)):
        raise ValueError(f"{path}: labels= must be a list of names, or their number, for a file without names")
    given = n_labels if labels is None else int(labels) if isinstance(labels, (int, np.integer)) else len(labels)
    if given != n_labels:
        raise ValueError(f"{path}: labels= tells {given} labels, but there are {n_labels}")
    if labels is None or isinstance(labels, (int, np.integer)):
        return NumberedNames("y", first, n_labels)
    return tuple(labels)


def lines_from(stream: Stream, batch_size: int, first: int) -> Iterator[list[str]]:
    """Yield the lines of each batch of rows; `first` is the id of the first feature."""
    for X, Y in stream.batches(batch_size):
        features, labels = canonical_rows(X), canonical_rows(Y)
        indices = (features.indices + first).tolist()
        pairs = [f"{index}:{text}" for index, text in zip(indices, number_texts(features.data), strict=True)]
        ids = list(map(str, labels.indices.tolist()))
        starts, label_starts = features.indptr.tolist(), labels.indptr.tolist()
        yield [
            f"{','.join(ids[label_starts[i] : label_starts[i + 1]])} {' '.join(pairs[starts[i] : starts[i + 1]])}\n"
            for i in range(len(starts) - 1)
        ]
