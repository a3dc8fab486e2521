"""What the writers share: numbers and nominal values as text, sparse rows in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from labelrace.streams.stream import Stream
from labelrace.typing import AnyMatrix, FloatArray, SparseMatrix

__all__ = ["canonical_rows", "check_distinct", "code_texts", "entry_texts", "number_texts"]


def number_texts(values: FloatArray) -> list[str]:
    """Return the shortest texts from which ``float()`` gets the same numbers.

    Examples
    --------
    >>> number_texts(np.array([0.1, 3.0, 1e300, -0.0]))
    ['0.1', '3', '1e+300', '-0']
    """
    texts = map(repr, np.asarray(values, dtype=np.float64).tolist())
    return [text.removesuffix(".0") for text in texts]


def code_texts(codes: FloatArray, texts: tuple[str, ...], name: str, missing: Any) -> list[Any]:
    """Return the texts that codes stand for, and `missing` for NaN.

    Parameters
    ----------
    codes : array of float
    texts : tuple of str
        The text of code i at position i.
    name : str
        The feature, to name in an error.
    missing : str or None
    """
    absent = np.isnan(codes)
    wrong = ~absent & ~np.isin(codes, np.arange(len(texts)))
    if wrong.any():
        raise ValueError(
            f"the nominal feature {name!r} has the code {codes[wrong][0]:g}, but its {len(texts)} values are coded "
            f"as whole numbers from 0 to {len(texts) - 1}; correct the data or its categorical mask"
        )
    known = np.array([*texts, missing], dtype=object)
    return known[np.where(absent, len(texts), codes).astype(np.intp)].tolist()


def entry_texts(
    rows: SparseMatrix, entries: list[Any], values: Mapping[int, tuple[str, ...]], names: Sequence[str], missing: Any
) -> list[Any]:
    """Return the entries of sparse rows, with texts in the place of codes.

    Parameters
    ----------
    rows : csr_array
    entries : list
        What is to be written for each number that is stored in the rows; kept where the column is numeric.
    values : mapping from int to tuple of str
        The texts of each nominal column.
    names : sequence of str
        The columns, to name in an error.
    missing : str or None
        What is to be written for NaN.
    """
    texts = entries.copy()
    order = np.argsort(rows.indices, kind="stable")
    bounds = np.searchsorted(rows.indices[order], np.array([[column, column + 1] for column in values]).reshape(-1, 2))
    for column, (start, end) in zip(values, bounds.tolist(), strict=True):
        positions = order[start:end]
        coded = code_texts(rows.data[positions], values[column], names[column], missing)
        for position, text in zip(positions.tolist(), coded, strict=True):
            texts[position] = text
    return texts


def canonical_rows(matrix: AnyMatrix) -> SparseMatrix:
    """Return a copy by compressed rows, each with its columns in order and no zeros stored."""
    rows = csr_array(matrix, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


def check_distinct(stream: Stream) -> None:
    """Raise ValueError if two columns have the same name, where features and labels share a header."""
    seen: set[str] = set()
    for name in (*stream.feature_names, *stream.label_names):
        if name in seen:
            raise ValueError(
                f"two columns are called {name!r}, but this format tells features and labels apart by their names; "
                "rename one, or write svmlight or .npz"
            )
        seen.add(name)
