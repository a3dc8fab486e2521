"""ARFF files, dense or sparse as the stream is, with Mulan's XML file of the labels beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np
from scipy.sparse import hstack, issparse

from labelrace.files import write_whole
from labelrace.streams._arff_text import quoted
from labelrace.streams._cells import canonical_rows, check_distinct, code_texts, entry_texts, number_texts
from labelrace.streams._source import new_data, plain_path
from labelrace.streams.stream import Batch, Stream, nominal_texts

__all__ = ["write_arff"]

_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def write_arff(stream: Stream, path: Path, batch_size: int) -> int:
    """Write a stream as an ARFF file, the labels last, and the XML file that names them; return the rows."""
    check_distinct(stream)
    labels = _label_file(stream)
    values = {column: tuple(map(quoted, texts)) for column, texts in nominal_texts(stream).items()}
    rows = 0
    with new_data(path) as file:
        file.write(_header(stream, values).encode())
        for X, Y in stream.batches(batch_size):
            rows += X.shape[0]
            lines = _sparse_lines if issparse(X) else _dense_lines
            file.write("".join(lines((X, Y), values, stream)).encode())
        write_whole(plain_path(path).with_suffix(".xml"), labels)
    return rows


def _label_file(stream: Stream) -> bytes:
    for name in stream.label_names:
        if _NOT_IN_XML.search(name):
            raise ValueError(f"the label {name!r} has a character that no XML file can hold; rename it")
    lines = "".join(f"<label name={quoteattr(name)}></label>\n" for name in stream.label_names)
    root = '<labels xmlns="http://mulan.sourceforge.net/labels">'
    return f'<?xml version="1.0" encoding="utf-8"?>\n{root}\n{lines}</labels>\n'.encode()


def _header(stream: Stream, values: dict[int, tuple[str, ...]]) -> str:
    nominal = {column: "{" + ",".join(texts) + "}" for column, texts in values.items()}
    types = (nominal.get(column, "numeric") for column in range(stream.n_features))
    features = (f"@attribute {quoted(name)} {kind}\n" for name, kind in zip(stream.feature_names, types, strict=True))
    labels = (f"@attribute {quoted(name)} {{0,1}}\n" for name in stream.label_names)
    return f"@relation {quoted(stream.name)}\n\n{''.join(features)}{''.join(labels)}\n@data\n"


def _dense_lines(batch: Batch, values: dict[int, tuple[str, ...]], stream: Stream) -> Iterator[str]:
    X, Y = batch
    columns = [
        code_texts(X[:, column], values[column], stream.feature_names[column], "?")
        if column in values
        else [text.replace("nan", "?") for text in number_texts(X[:, column])]
        for column in range(stream.n_features)
    ]
    labels = np.where(Y.toarray() != 0, "1", "0").tolist()
    for cells, marks in zip(zip(*columns, strict=True), labels, strict=True):
        yield f"{','.join(cells)},{','.join(marks)}\n"


def _sparse_lines(batch: Batch, values: dict[int, tuple[str, ...]], stream: Stream) -> Iterator[str]:
    rows = canonical_rows(hstack(batch, format="csr", dtype=np.float64))
    numbers = [text.replace("nan", "?") for text in number_texts(rows.data)]
    texts = entry_texts(rows, numbers, values, stream.feature_names, "?")
    entries = [f"{column} {text}" for column, text in zip(rows.indices.tolist(), texts, strict=True)]
    starts = rows.indptr.tolist()
    for start, end in pairwise(starts):
        yield "{" + ",".join(entries[start:end]) + "}\n"
