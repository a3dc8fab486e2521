"""ARFF files, the format of Weka, Mulan and MEKA, dense or sparse.

The header is read first (`labelrace.streams.arff_header`), then the rows in blocks. A block of dense rows is parsed by
pyarrow's CSV reader, a block of sparse rows by `labelrace.streams.sparse_rows`. A block that these might not read
exactly (with escapes, double quotes or any error) is parsed row by row, by functions that accept everything that the
format allows and raise the exact error for the rest.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, compress, pairwise
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv
from scipy.sparse import hstack, issparse

from labelrace.base.categorical_mask import CategoricalMask
from labelrace.base.parameters import quoted_list
from labelrace.base.sparse import sparse_marks
from labelrace.streams.arff_header import (
    Header,
    find_labels,
    header_text,
    label_file,
    quoted,
    read_header,
    scan,
    skip_space,
)
from labelrace.streams.dataset import (
    Batch,
    FileStream,
    Stream,
    as_label_rows,
    canonical_rows,
    check_distinct,
    nominal_texts,
    rebatch,
)
from labelrace.streams.files import Location, open_data, plain_path
from labelrace.streams.lines import (
    SPARSE_BLOCK,
    byte_blocks,
    code_texts,
    entry_texts,
    finite_number,
    number_matrix,
    number_texts,
    read_cells,
    read_lines,
    write_lines,
)
from labelrace.streams.schema import LabelSource
from labelrace.streams.sparse_rows import ARFF, Pieces, csr_rows, cut_rows, entry_arrays, floats
from labelrace.typing import AnyMatrix, Array, BoolArray, FloatArray, IntArray, SparseMatrix

# Blank lines, and comments.
_NO_ROW = (b"", b"%")
_BARE_DENSE = re.compile(r"[^,]*")
_BARE_SPARSE = re.compile(r"[^,{}]*")
_MAX_DIGITS = 4000
_INDEX = re.compile(r"([^\s,{}]+)\s+")


def open_arff(path: str | os.PathLike[str], labels: LabelSource = None) -> FileStream:
    """Open an ARFF file as a stream.

    The header is read at once and, if it is not plain ASCII, the file is scanned for its encoding: UTF-8, or else
    Latin-1. X is sparse if the rows are. Nominal features hold the index of the value in its declaration,
    missing values and missing labels are NaN.

    Parameters
    ----------
    path : path
        Compressed if it ends in ``.gz`` or ``.bz2``.
    labels : int, path, sequence of str or None, default=None
        Which attributes are labels: the path of a Mulan XML file that names them; a count (n > 0: the last n
        attributes, n < 0: the first); or a list of names. By default the ``.xml`` file beside the ARFF file,
        or MEKA's ``-C`` option in the relation's name. The labels keep the order of the attributes.
    """
    header = read_header(Path(path))
    layout = _make_layout(header, find_labels(header, labels))
    features = [a for a, label in zip(header.attributes, layout.is_label, strict=True) if not label]
    names = tuple(attribute.name for attribute in features)
    label_names = tuple(header.attributes[i].name for i in np.flatnonzero(layout.is_label))
    nominal = {i: attribute.values for i, attribute in enumerate(features) if attribute.values}
    mask = CategoricalMask([len(attribute.values) for attribute in features])
    return FileStream(plain_path(header.path).stem, names, label_names, mask, partial(_batches, layout), nominal)


def write_arff(stream: Stream, path: Path, batch_size: int) -> int:
    """Write a stream as an ARFF file, the labels last, and the XML file that names them; return the rows."""
    check_distinct(stream)
    values = {column: tuple(map(quoted, texts)) for column, texts in nominal_texts(stream).items()}
    labels = {plain_path(path).with_suffix(".xml"): label_file(stream)}
    lines = partial(_lines, values, stream.feature_names)
    return write_lines(stream, path, batch_size, lines, header_text(stream, values), labels)


class Layout(NamedTuple):
    """The columns of a file, prepared for parsing rows.

    ``codes`` has for each column the code of each nominal value, or None if it is numeric. Columns with the same values
    share a ``domain``; domain 0 is that of the numeric columns. ``table[domain, byte]`` is the number that a value of
    this single byte means, or NaN. ``texts`` has the values of each domain. ``inverted`` is 1 for labels that are
    declared as {1,0}, whose value of code 0 is the positive one. ``options`` are those of pyarrow for dense rows.
    """

    header: Header
    is_label: BoolArray
    codes: tuple[dict[str, int] | None, ...]
    domain: IntArray
    table: FloatArray
    texts: tuple[Any, ...]
    inverted: Array
    options: Any


def _make_layout(header: Header, is_label: BoolArray) -> Layout:
    """Prepare the columns; the code of a nominal value is its index in the declaration."""
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
    # pyarrow reads dense rows: numbers, booleans for values {0,1}, and texts.
    kinds = [pa.float64() if c is None else pa.bool_() if _is_binary(c) else pa.string() for c in column_codes]
    options = csv.ConvertOptions(
        column_types={str(column): kind for column, kind in enumerate(kinds)},
        null_values=["?"],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        true_values=["1"],
        false_values=["0"],
    )
    # An empty value must be quoted and is not read in bulk; a newline, which no value can be, keeps its location.
    texts = tuple(pa.array([value or "\n" for value in known], pa.string()) for known in codes)
    labels = (column_codes[column] for column in np.flatnonzero(is_label))
    inverted: Array = np.array([known["1"] == 0 if known else False for known in labels], dtype=np.int8)
    return Layout(header, is_label, column_codes, np.array(domain), table, texts, inverted, options)


def _batches(layout: Layout, size: int) -> Iterator[Batch]:
    header = layout.header
    with open_data(header.path) as file:
        file.seek(header.data_offset)
        for line, raw in enumerate(file, start=header.data_line):
            first = raw.strip()
            if first[:1] in _NO_ROW:
                continue
            is_sparse = first.startswith(b"{")
            parsers: tuple[Callable[..., Any], ...] = (parse_dense, parse_dense_row, _join_dense)
            if is_sparse:
                parsers = (parse_sparse, parse_sparse_row, _join_sparse)
            bulk, row, join = (partial(parser, layout) for parser in parsers)
            rest = byte_blocks(file, size, SPARSE_BLOCK) if is_sparse else byte_blocks(file, size)
            blocks = chain([(first + b"\n", 1)], rest)
            yield from rebatch(read_lines(header.path, blocks, line, _NO_ROW, bulk, row, join), size)


def parse_dense(layout: Layout, text: bytes, n_lines: int) -> Batch | None:
    """Return the features and labels of dense rows, or None if pyarrow might not read them exactly."""
    if b", " in text[: text.find(b"\n")] and b"'" not in text:
        text = text.replace(b", ", b",")
    if any(sign in text for sign in (b'"', b"\\", b"{")):
        return None
    if layout.header.encoding != "utf-8":
        text = text.decode(layout.header.encoding).encode()
    names = list(map(str, range(len(layout.codes))))
    table = read_cells(text, n_lines, names, layout.options, ",", "'")
    return _dense_batch(table, layout) if table is not None and table.num_rows == n_lines else None


def _dense_batch(table: Any, layout: Layout) -> Batch | None:
    """Return a table that pyarrow has read as features and labels, or None if a value is not allowed."""
    columns = table.columns
    for position, codes in enumerate(layout.codes):
        if codes is not None and not _is_binary(codes):
            texts = columns[position]
            columns[position] = pc.index_in(texts, value_set=layout.texts[layout.domain[position]])
            if columns[position].null_count != texts.null_count:
                return None  # an unknown value, or an empty one
    X, marks = (
        number_matrix(list(compress(columns, mask)), table.num_rows) for mask in (~layout.is_label, layout.is_label)
    )
    # A missing label is a question mark, and not the text nan, which pyarrow reads as a number.
    n_missing = sum(column.null_count for column in compress(columns, layout.is_label))
    if np.isinf(X).any() or np.count_nonzero((marks == 0) | (marks == 1)) + n_missing < marks.size:
        return None
    return X, _labels(layout, marks)


def _is_binary(codes: dict[str, int]) -> bool:
    return list(codes) == ["0", "1"]


def _join_dense(layout: Layout, rows: list[list[float]]) -> Batch:
    values = np.array(rows)
    X = np.ascontiguousarray(values[:, ~layout.is_label])
    return X, _labels(layout, values[:, layout.is_label])


def _labels(layout: Layout, marks: FloatArray) -> SparseMatrix:
    """Return labels, of which NaN are missing, in sparse rows; what a column declares as {1,0} is turned around."""
    if np.isnan(marks).any():
        return as_label_rows(np.abs(marks - layout.inverted))
    return sparse_marks(marks.astype(np.int8) ^ layout.inverted)


def _join_sparse(layout: Layout, rows: list[dict[int, float]]) -> Batch:
    return _split_sparse(layout, *entry_arrays(rows))


def _split_sparse(layout: Layout, starts: IntArray, columns: IntArray, values: FloatArray) -> Batch:
    """Split the values of sparse rows, the i-th from ``starts[i]`` on, into features and labels."""

    def selected(is_selected: BoolArray) -> SparseMatrix:
        mask = is_selected[columns]
        new_starts = np.concatenate(([0], np.cumsum(mask)))[starts]
        renumbered = (np.cumsum(is_selected) - 1)[columns[mask]]
        return csr_rows(new_starts, renumbered, values[mask], int(is_selected.sum()))

    X, Y = selected(~layout.is_label), selected(layout.is_label)
    if layout.inverted.any():
        return X, _labels(layout, Y.toarray())
    return X, Y if np.isnan(Y.data).any() else Y.astype(np.int8)


def parse_sparse(layout: Layout, text: bytes, _: int) -> Batch | None:
    """Return the features and labels of sparse rows, or None if the rows are not plain."""
    text = text.replace(b", ", b",").replace(b"\r\n", b"\n")
    rows = cut_rows(text, ARFF)
    if rows is None or (rows.columns >= len(layout.domain)).any():
        return None
    values = _values(cast("Pieces", rows.values), rows.columns, layout)
    return None if values is None else _split_sparse(layout, rows.starts, rows.columns, values)


def _values(pieces: Pieces, columns: IntArray, layout: Layout) -> FloatArray | None:
    """Return the numbers that the pieces mean in their columns, or None if one is not plain."""
    # Nearly all values have one byte, which a table turns into a number.
    first_bytes = np.frombuffer(pieces.text, dtype=np.uint8)[pieces.starts]
    values = layout.table[layout.domain[columns], first_bytes]
    longer = (pieces.ends - pieces.starts > 1) | np.isnan(values)
    if layout.domain[columns[longer]].any():
        return None
    numbers = floats(pieces.at(longer))
    if numbers is None:
        return None
    values[longer] = numbers
    of_labels = values[layout.is_label[columns]]
    return None if ((of_labels != 0) & (of_labels != 1)).any() or np.isnan(numbers).any() else values


def parse_dense_row(layout: Layout, raw: bytes, location: Location) -> list[float]:
    """Return the values of a row, or raise the exact error."""
    line = raw.decode(layout.header.encoding, "replace")
    if line.startswith("{"):
        raise location.error("a sparse row in a file that began with dense rows; write all rows the same way")
    texts: list[tuple[str, bool]] = []
    end = -1
    while end < len(line):
        text, quoted, end = scan(line, skip_space(line, end + 1), _BARE_DENSE, location)
        if not text and not quoted:
            raise location.error(f"value {len(texts) + 1} is empty; write ? if it is missing")
        if end < len(line) and line[end] != ",":
            raise location.error(f"text follows the quoted value {len(texts) + 1}; separate values by commas")
        texts.append((text, quoted))
    if len(texts) != len(layout.codes):
        raise location.error(
            f"the row has {len(texts)} values, but the header declares {len(layout.codes)} attributes; "
            "correct the row, or the file is cut here"
        )
    return [_number(text, quoted, column, layout, location) for column, (text, quoted) in enumerate(texts)]


def parse_sparse_row(layout: Layout, raw: bytes, location: Location) -> dict[int, float]:
    """Return the values of a row by their columns, or raise the exact error."""
    line = raw.decode(layout.header.encoding, "replace")
    if not line.startswith("{"):
        raise location.error("a dense row in a file that began with sparse rows; write all rows the same way")
    entries: dict[int, float] = {}
    end = skip_space(line, 1)
    closed = line.startswith("}", end)
    while not closed:
        column, end = _sparse_index(line, end, layout, location)
        if column in entries:
            raise location.error(f"index {column} appears twice; give each attribute one value")
        text, quoted, end = scan(line, end, _BARE_SPARSE, location)
        if not text and not quoted:
            raise location.error(f"index {column} has no value; write {{INDEX VALUE, ...}}, or the file is cut here")
        entries[column] = _number(text, quoted, column, layout, location)
        closed = line.startswith("}", end)
        if not closed and end < len(line) and line[end] != ",":
            raise location.error(f"expected a comma or }} before {line[end : end + 40]!r}; separate entries by commas")
        end = end if closed else skip_space(line, end + 1)
    if line[end + 1 :].strip():
        raise location.error(f"unexpected text {line[end + 1 :].strip()[:40]!r} after the row's }}; remove it")
    return entries


def _sparse_index(line: str, start: int, layout: Layout, location: Location) -> tuple[int, int]:
    """Read an attribute's index; return it and the position of its value."""
    match = _INDEX.match(line, start)
    if match is None:
        if start >= len(line) or "}" not in line[start:]:
            raise location.error("the sparse row is not closed by }; add it, or the file is cut here")
        raise location.error(f"expected INDEX VALUE, found {line[start : start + 40]!r}; correct the entry")
    index = match[1]
    if not (index.isascii() and index.isdigit()):
        raise location.error(f"{index!r} is not an attribute's index; write {{INDEX VALUE, ...}}")
    # Python refuses to read numbers of thousands of digits.
    if len(index) > _MAX_DIGITS or int(index) >= len(layout.codes):
        raise location.error(
            f"index {index[:40]} is out of range; the header declares {len(layout.codes)} attributes, and the "
            "first has index 0"
        )
    return int(index), match.end()


def _number(text: str, quoted: bool, column: int, layout: Layout, location: Location) -> float:
    """Return the number that the text of a value means in its column."""
    name = layout.header.attributes[column].name
    if text == "?" and not quoted:
        return np.nan
    codes = layout.codes[column]
    if codes is not None:
        if text not in codes:
            raise location.error(
                f"{text!r} is not a declared value of attribute {name!r}, which has {quoted_list([*codes])}"
            )
        return codes[text]
    number = finite_number(text)
    if number is None:
        raise location.error(f"{text!r} is not a finite number, as attribute {name!r} needs; write ? if it is missing")
    if layout.is_label[column] and number not in (0, 1):
        raise location.error(
            f"label {name!r} is {text}, but a label must be 0 or 1; if it is a feature, correct labels="
        )
    return number


def _lines(values: dict[int, tuple[str, ...]], names: Sequence[str], X: AnyMatrix, Y: SparseMatrix) -> Iterator[str]:
    """Yield the lines of a batch, sparse if X is."""
    if not issparse(X):
        features = (
            code_texts(column, values[i], name, "?") if i in values else _number_texts(column)
            for i, (name, column) in enumerate(zip(names, X.T, strict=True))
        )
        marks = Y.toarray().T
        labels = np.where(marks != marks, "?", np.where(marks != 0, "1", "0")).tolist()
        for cells in zip(*features, *labels, strict=True):
            yield f"{','.join(cells)}\n"
        return
    rows = canonical_rows(hstack((X, Y), format="csr", dtype=np.float64))
    texts = entry_texts(rows, _number_texts(rows.data), values, names, "?")
    entries = [f"{column} {text}" for column, text in zip(rows.indices.tolist(), texts, strict=True)]
    for start, end in pairwise(rows.indptr.tolist()):
        yield "{" + ",".join(entries[start:end]) + "}\n"


def _number_texts(values: FloatArray) -> list[str]:
    return [text.replace("nan", "?") for text in number_texts(values)]
