"""Numbers, codes of nominal values and names as the text of a file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from labelrace.base.parameters import repeated
from labelrace.streams.dataset import Stream
from labelrace.typing import AnyMatrix, FloatArray, SparseMatrix


def number_texts(values: FloatArray) -> list[str]:
    """Return the shortest texts from which ``float()`` gets the same numbers.

    Examples
    --------
    >>> number_texts(np.array([0.1, 3.0, 1e300, -0.0]))
    ['0.1', '3', '1e+300', '-0']
    """
    texts = map(repr, np.asarray(values, dtype=np.float64).tolist())
    return [text.removesuffix(".0") for text in texts]


def finite_number(text: str) -> float | None:
    """Return a text as a number, which may be NaN; None if it is not a finite number."""
    # float() would accept the digits of other scripts, and ignore underscores.
    try:
        number = float(text) if text.isascii() and "_" not in text else math.inf
    except ValueError:
        return None
    return None if math.isinf(number) else number


def code_texts(codes: FloatArray, texts: tuple[str, ...], name: str, missing: Any) -> list[Any]:
    """Return the texts that codes mean, and `missing` for NaN; `name` is the feature, to name in an error."""
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
    """Return the entries of sparse rows, with the codes of nominal columns replaced by texts; see `code_texts`."""
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
    """Return a copy in compressed rows, with columns in order and without stored zeros."""
    rows = csr_array(matrix, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


def check_distinct(stream: Stream) -> None:
    """Raise ValueError if two columns have the same name, where features and labels share a header."""
    if twice := repeated([*stream.feature_names, *stream.label_names]):
        raise ValueError(
            f"two columns are called {twice[0]!r}, but this format tells features and labels apart by their names; "
            "rename one, or write svmlight or .npz"
        )
