"""Rows in whatever form the data comes: as batches, or all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from labelrace.streams.dataset import check_batch_size
from labelrace.typing import AnyMatrix

__all__ = ["all_rows", "batches_of", "row_count"]


def batches_of(data: Any, size: int) -> Iterator[tuple[AnyMatrix, AnyMatrix]]:
    """Iterate over the batches (X, Y) of a dataset or stream, or of an iterable that holds them already.

    Parameters
    ----------
    data : object with ``batches(size)``, or iterable of (X, Y)
    size : int
        Rows in a batch; an iterable's batches have the sizes that they have.
    """
    check_batch_size(size)
    return data.batches(size) if hasattr(data, "batches") else iter(data)


def all_rows(data: Any, size: int) -> tuple[AnyMatrix, AnyMatrix]:
    """Return X and Y of all rows: a dataset's own, or what the batches of a stream hold together."""
    if hasattr(data, "X") and hasattr(data, "Y"):
        return data.X, data.Y
    features, labels = [], []
    for X, Y in batches_of(data, size):
        features.append(X)
        labels.append(Y)
    if not features:
        raise ValueError("there are no rows to evaluate on: the data has no batches")
    return _stack(features), _stack(labels)


def row_count(X: AnyMatrix) -> int:
    """Return the number of rows of an array, a sparse matrix, a data frame or a list."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _stack(parts: Sequence[AnyMatrix]) -> AnyMatrix:
    if any(map(scipy.sparse.issparse, parts)):
        return scipy.sparse.csr_array(scipy.sparse.vstack(_sparse(parts), format="csr"))
    return np.vstack(parts)


def _sparse(parts: Iterable[AnyMatrix]) -> list[AnyMatrix]:
    return [scipy.sparse.csr_array(part) for part in parts]
