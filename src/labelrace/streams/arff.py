"""ARFF files, the format of Weka, Mulan and MEKA, dense or sparse.

The header and the choice of labels are read first, then rows in chunks: all at once where they are plain
(`labelrace.streams._arff_bulk`), one by one where they are not (`labelrace.streams._arff_lines`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from labelrace.core.categorical import CategoricalMask
from labelrace.streams import _arff_bulk, _arff_lines
from labelrace.streams._arff_header import read_header
from labelrace.streams._arff_labels import LabelSource, find_labels
from labelrace.streams._arff_layout import Layout, make_layout, split_dense, split_sparse
from labelrace.streams._source import line_chunks, open_data, plain_path
from labelrace.streams.batch import Dataset
from labelrace.streams.stream import Batch, FileStream, collect

__all__ = ["iter_arff", "open_arff", "read_arff"]

# Blank lines, and comments.
_NO_ROW = (b"", b"%")


def read_arff(path: str | os.PathLike[str], labels: LabelSource = None) -> Dataset:
    r"""Read a whole ARFF file.

    Parameters
    ----------
    path : path
        Compressed if it ends in ``.gz`` or ``.bz2``.
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
    return collect(open_arff(path, labels))


def iter_arff(path: str | os.PathLike[str], labels: LabelSource = None, batch_size: int = 1000) -> Iterator[Batch]:
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
    return open_arff(path, labels).batches(batch_size)


def open_arff(path: str | os.PathLike[str], labels: LabelSource = None) -> FileStream:
    """Open an ARFF file as a stream; the parameters and errors are those of `read_arff`.

    The header is read at once, and the file is gone through for its encoding: UTF-8, or else Latin-1.
    """
    header = read_header(Path(path))
    layout = make_layout(header, find_labels(header, labels))
    features = [a for a, label in zip(header.attributes, layout.is_label, strict=True) if not label]
    return FileStream(
        name=plain_path(header.path).stem,
        feature_names=tuple(attribute.name for attribute in features),
        label_names=tuple(header.attributes[i].name for i in np.flatnonzero(layout.is_label)),
        categorical=CategoricalMask([len(attribute.values) for attribute in features]),
        read=partial(_batches, layout),
        nominal_values={i: attribute.values for i, attribute in enumerate(features) if attribute.values},
    )


def _batches(layout: Layout, size: int) -> Iterator[Batch]:
    header = layout.header
    with open_data(header.path) as file:
        file.seek(header.data_offset)
        yield from _parsed(layout, line_chunks(file, size, header.data_line, _NO_ROW))


def _parsed(layout: Layout, chunks: Iterable[tuple[list[int], list[bytes]]]) -> Iterator[Batch]:
    sparse = None
    for numbers, lines in chunks:
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
