"""How the columns of an ARFF file become features and labels, and their texts numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from labelrace.streams._arff_header import Header
from labelrace.streams._source import Place
from labelrace.typing import AnyMatrix, BoolArray, FloatArray, IntArray, SparseMatrix

__all__ = ["Entries", "Layout", "make_layout", "split_dense", "split_sparse"]


class Layout(NamedTuple):
    """The columns of a file, prepared for parsing rows.

    ``codes`` holds, per column, the number of each nominal value (None if numeric). Columns with the same
    values share a ``domain``, and ``table[domain, byte]`` is the number that a value of that one byte stands
    for, NaN where it stands for none. Domain 0 is that of the numeric columns.
    """

    header: Header
    is_label: BoolArray
    codes: tuple[dict[str, int] | None, ...]
    domain: IntArray
    table: FloatArray

    def place(self, line: int) -> Place:
        """Return a line of this file, to name in an error."""
        return Place(self.header.path, line)


class Entries(NamedTuple):
    """The stored values of sparse rows: those of row i are at ``starts[i]:starts[i + 1]``, by column."""

    starts: IntArray
    columns: IntArray
    values: FloatArray


def make_layout(header: Header, is_label: BoolArray) -> Layout:
    """Prepare the columns: give each nominal value its number, its index in the declaration."""
    domains: dict[tuple[str, ...], int] = {(): 0}
    domain = [domains.setdefault(attribute.values, len(domains)) for attribute in header.attributes]
    codes = [{value: code for code, value in enumerate(values)} for values in domains]
    # A bare question mark is a missing value, even where '?' is declared.
    bytewise = [{value: code for value, code in known.items() if value != "?"} for known in codes]
    bytewise[0] = {str(digit): digit for digit in range(10)}
    table = np.full((len(domains), 256), np.nan)
    for row, known in zip(table, bytewise, strict=True):
        for value, code in known.items():
            if len(value) == 1 and value.isascii():
                row[ord(value)] = code
    column_codes = tuple(codes[number] if number else None for number in domain)
    return Layout(header, is_label, column_codes, np.array(domain), table)


def split_dense(rows: FloatArray, layout: Layout) -> tuple[AnyMatrix, SparseMatrix]:
    """Split parsed rows into dense features and labels."""
    labels = rows[:, layout.is_label].astype(np.int8)
    return np.ascontiguousarray(rows[:, ~layout.is_label]), csr_array(labels ^ _inverted(layout))


def split_sparse(entries: Entries, layout: Layout) -> tuple[AnyMatrix, SparseMatrix]:
    """Split parsed sparse rows into sparse features and labels."""
    X = _select(entries, ~layout.is_label)
    Y = _select(entries, layout.is_label).astype(np.int8)
    inverted = _inverted(layout)
    if inverted.any():
        Y = csr_array(Y.toarray() ^ inverted)
    return X, Y


def _inverted(layout: Layout) -> AnyMatrix:
    """Return 1 for the labels declared as {1,0}, whose value number 0 is the positive one."""
    labels = (layout.codes[column] for column in np.flatnonzero(layout.is_label))
    return np.array([codes["1"] == 0 if codes else False for codes in labels], dtype=np.int8)


def _select(entries: Entries, wanted: BoolArray) -> SparseMatrix:
    """Return the wanted columns of the entries as a sparse array without stored zeros."""
    kept = wanted[entries.columns] & (entries.values != 0)
    # 32 bits are enough for a chunk of rows, and scikit-learn's estimators often take no others.
    starts = np.concatenate(([0], np.cumsum(kept)))[entries.starts].astype(np.int32)
    renumbered = (np.cumsum(wanted) - 1)[entries.columns[kept]].astype(np.int32)
    shape = (len(starts) - 1, int(wanted.sum()))
    return csr_array((entries.values[kept], renumbered, starts), shape=shape)
