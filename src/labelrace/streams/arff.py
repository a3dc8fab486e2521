"""ARFF files, the format of Weka, Mulan and MEKA, dense or sparse.

The header and the choice of labels are read first, then rows in chunks: all at once where they are plain
(`labelrace.streams._arff_bulk`), one by one where they are not (`labelrace.streams._arff_lines`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import compress, islice
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from labelrace.streams import _arff_bulk, _arff_lines
from labelrace.streams._arff_header import read_header
from labelrace.streams._arff_labels import LabelSource, find_labels
from labelrace.streams._arff_layout import Layout, make_layout, split_dense, split_sparse
from labelrace.streams.batch import Dataset, check_batch_size
from labelrace.streams.categorical import CategoricalMask
from labelrace.typing import AnyMatrix, SparseMatrix

__all__ = ["iter_arff", "read_arff"]

# Enough rows for the bulk parser to pay, few enough for its arrays to stay small.
_CHUNK_ROWS = 4096


def read_arff(path: str | os.PathLike[str], labels: LabelSource = None) -> Dataset:
    r"""Read a whole ARFF file.

    Parameters
    ----------
    path : path
    labels : int, path, sequence of str or None
        Which attributes are labels: the path of a Mulan XML file that names them; a count (n > 0: the last n
        attributes, n < 0: the first); or a list of names. By default the ``.xml`` file beside the ARFF file,
        or MEKA's ``-C`` option in the relation's name. The labels keep the order of the attributes.

    Returns
    -------
    Dataset
        With sparse features if the rows are sparse. Nominal features hold the index of the value in its
        declaration, missing values are NaN.

    Raises
    ------
    DataFormatError
        If the file cannot be read or does not fit `labels`. It names the line.
    FileNotFoundError

    Examples
    --------
    >>> import tempfile
    >>> text = "@relation t\n@attribute size numeric\n@attribute hue {red,green}\n@attribute nice {0,1}\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "toy.arff")
    ...     _ = path.write_text(text + "@data\n1.5,green,1\n?,red,0\n")
    ...     data = read_arff(path, labels=1)
    >>> data
    Dataset('toy': 2 rows, 2 features (1 categorical), 1 labels, cardinality 0.50)
    >>> data.X
    array([[1.5, 1. ],
           [nan, 0. ]])
    """
    layout = _open(path, labels)
    chunks = list(_chunks(layout, _CHUNK_ROWS))
    features = [a for a, label in zip(layout.header.attributes, layout.is_label, strict=True) if not label]
    label_names = tuple(layout.header.attributes[i].name for i in np.flatnonzero(layout.is_label))
    if not chunks:
        chunks = [(np.empty((0, len(features))), csr_array((0, len(label_names)), dtype=np.int8))]
    X = _stack([x for x, _ in chunks])
    Y = _stack([y for _, y in chunks])
    mask = CategoricalMask([len(attribute.values) for attribute in features])
    names = tuple(attribute.name for attribute in features)
    return Dataset(X, Y, names, label_names, mask, layout.header.path.stem)


def iter_arff(
    path: str | os.PathLike[str], labels: LabelSource = None, batch_size: int = 1000
) -> Iterator[tuple[AnyMatrix, SparseMatrix]]:
    """Read an ARFF file batch by batch, so that its size does not matter.

    Parameters
    ----------
    path, labels
        As for `read_arff`. Errors of the header are raised by the call, errors of rows when they are reached.
    batch_size : int
        Rows in a batch; the last one may be shorter.

    Returns
    -------
    iterator of (X, Y)
        As in the `Dataset` that `read_arff` gives.
    """
    check_batch_size(batch_size)
    return _chunks(_open(path, labels), batch_size)


def _open(path: str | os.PathLike[str], labels: LabelSource) -> Layout:
    header = read_header(Path(path))
    return make_layout(header, find_labels(header, labels))


def _chunks(layout: Layout, size: int) -> Iterator[tuple[AnyMatrix, SparseMatrix]]:
    sparse = None
    for numbers, lines in _rows(layout, size):
        if sparse is None:
            sparse = lines[0].startswith(b"{")
        if sparse:
            entries = _arff_bulk.parse_sparse(lines, layout)
            if entries is None:
                entries = _arff_lines.parse_sparse(lines, numbers, layout)
            yield split_sparse(entries, layout)
        else:
            values = _arff_bulk.parse_dense(lines, layout)
            if values is None:
                values = _arff_lines.parse_dense(lines, numbers, layout)
            yield split_dense(values, layout)


def _rows(layout: Layout, size: int) -> Iterator[tuple[list[int], list[bytes]]]:
    """Yield the numbers and the texts of the lines that hold rows, `size` of them at a time."""
    header = layout.header
    with header.path.open("rb") as file:
        file.seek(header.data_offset)
        number, numbers, lines = header.data_line, list[int](), list[bytes]()
        while block := [raw.strip() for raw in islice(file, size - len(lines))]:
            holds_row = [line[:1] not in (b"", b"%") for line in block]
            numbers += compress(range(number + 1, number + 1 + len(block)), holds_row)
            lines += compress(block, holds_row)
            number += len(block)
            if len(lines) == size:
                yield numbers, lines
                numbers, lines = [], []
        if lines:
            yield numbers, lines


def _stack(parts: list[AnyMatrix]) -> AnyMatrix:
    if issparse(parts[0]):
        return vstack(parts, format="csr")
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
