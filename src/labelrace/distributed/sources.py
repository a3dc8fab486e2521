"""What is learned, in pieces that are read where they are needed.

A piece is a file, some rows of a row group of a Parquet file, a partition of a Dask data frame or bag, a delayed batch,
or a batch in memory. Pieces are fixed by the data, whatever the workers are: so is what each of them learns.
"""

from __future__ import annotations

import glob
import itertools
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from labelrace.exceptions import DataFormatError, LabelraceError
from labelrace.streams.column_matching import Features, matched, open_matched
from labelrace.streams.dataset import Stream, row_count
from labelrace.tables.read import Table, as_table

# Number of pieces to aim at, for 8 shares in 24 rounds: row groups and files are cut to come near it.
_N_PIECES = 192
# Minimum number of rows of a piece that is cut from a row group or a file; pieces of files are multiples of it.
_MIN_ROWS = 500


class FilePiece(NamedTuple):
    """A file, some rows of it, or some rows of a Parquet file's row group."""

    path: str  # a path, or an address such as ``s3://bucket/file.parquet``
    group: int | None = None  # the row group; None where a file is not read by row groups
    # The rows of the group or file, without the last one; 0 and 0 for all.
    first: int = 0
    last: int = 0
    n_rows: int = 0  # number of rows of the piece; 0 if it is not known

    def __str__(self) -> str:
        rows = f"rows {self.first} to {self.last - 1}"
        if self.group is None:
            return f"{self.path}, {rows}" if self.last else self.path
        return f"{self.path}, row group {self.group}" + (f", {rows} of it" if self.last else "")


class DelayedPiece:
    """A delayed piece that is computed by the task that learns it, when its turn comes.

    Nothing of it is sent from worker to worker, and only one piece of a share is in memory at a time.

    Attributes
    ----------
    graph : dict from key to task
    key : hashable
        What is wanted of the graph.
    """

    def __init__(self, graph: dict[Any, Any], key: Any) -> None:
        self.graph = graph
        self.key = key

    def compute(self) -> Any:
        """Compute the piece here."""
        import dask

        return dask.get(self.graph, self.key)


def as_delayed_pieces(pieces: list[Any]) -> list[Any]:
    """Make a `DelayedPiece` of each delayed piece whose tasks no other piece needs; others stay what they are.

    What several pieces need is computed once, by Dask, and so is what needs results that a cluster holds already.
    """
    graphs = [_subgraph(piece.dask, piece.key) if hasattr(piece, "dask") else None for piece in pieces]
    needed = Counter(key for graph in graphs for key in graph or ())
    return [
        piece if graph is None or any(needed[key] > 1 for key in graph) else DelayedPiece(graph, piece.key)
        for piece, graph in zip(pieces, graphs, strict=True)
    ]


def _subgraph(tasks: Mapping[Any, Any], key: Any) -> dict[Any, Any] | None:
    """Take the tasks out of a graph that a key needs; None where it needs results that are on a cluster."""
    from dask.optimization import cull
    from distributed import Future

    part: dict[Any, Any] = cull(tasks, [key])[0]
    needs_others = any(
        isinstance(task, Future) or any(needed not in part for needed in getattr(task, "dependencies", ()))
        for task in part.values()
    )
    return None if needs_others else part


def pieces_of(
    source: Any,
    *,
    as_tables: bool,
    labels: Any = None,
    batch_size: int = _MIN_ROWS,
    features: Features | None = None,
    opened: dict[str, Stream] | None = None,
) -> list[Any]:
    """List the pieces of a source: `FilePiece`, Dask's delayed objects, or batches in memory.

    Parquet files are cut into row groups where they are read as tables. Other files, if they are few, are
    read once here to count their rows, and cut by rows; ``labels`` is what the labels of data files are, and
    ``features`` what their columns are matched with, if anything. Cuts are where batches of ``batch_size`` rows begin.
    Data files that are opened here are put into ``opened``, so that nobody need scan them again.

    Raises
    ------
    ValueError
        If there is nothing, or a source is of a kind that is not known.
    """
    if isinstance(source, (str, os.PathLike)):
        return _file_pieces(_matching_files([os.fspath(source)]), as_tables, labels, batch_size, features, opened)
    if hasattr(source, "to_delayed"):
        return list(source.to_delayed())
    if hasattr(source, "batches") and hasattr(source, "label_names"):
        return list((source if features is None else matched(features, source, source.name)).batches(batch_size))
    if isinstance(source, Iterable):
        listed = list(source)
        if listed and all(isinstance(part, (str, os.PathLike)) for part in listed):
            files = _matching_files([os.fspath(part) for part in listed])
            return _file_pieces(files, as_tables, labels, batch_size, features, opened)
        if listed:
            return listed
    raise ValueError(
        "source must be files (a path, a pattern such as 'tickets-*.parquet', or a list of them), a Dask data frame or "
        f"bag, delayed batches, or a list of batches, got {source!r:.60}."
    )


def _matching_files(patterns: Sequence[str]) -> list[str]:
    """List the files that patterns match, each pattern's in alphabetical order."""
    files = []
    for pattern in patterns:
        if _is_remote(pattern):
            filesystem, path = _filesystem(pattern)
            matches = sorted(filesystem.unstrip_protocol(name) for name in filesystem.glob(path))
        elif glob.has_magic(pattern):
            matches = sorted(glob.glob(pattern))
        else:
            matches = [pattern] if Path(pattern).is_file() else []
        if not matches:
            raise ValueError(f"source must name files that exist, got {pattern!r}: there is no such file.")
        files += matches
    return files


def _is_remote(path: str) -> bool:
    return "://" in path


def _filesystem(path: str) -> tuple[Any, str]:
    import fsspec

    filesystem, plain = fsspec.core.url_to_fs(path)
    return filesystem, plain


def _is_parquet(path: str) -> bool:
    return path.lower().endswith(".parquet")


def _file_pieces(
    files: Sequence[str],
    as_tables: bool,
    labels: Any,
    batch_size: int,
    features: Features | None,
    opened: dict[str, Stream] | None,
) -> list[Any]:
    """Make a piece of each file, and several of Parquet files: their row groups, cut where these are few."""
    groups = list[tuple[str, int | None, int]]()
    for path in files:
        if not (_is_parquet(path) and as_tables):
            if _is_remote(path):
                raise DataFormatError(
                    f"{path}: only Parquet files with tags can be read from there; copy the file first."
                )
            n_rows = 0
            if len(files) < _N_PIECES:
                stream = _open(path, as_tables, labels, features)
                # Counted in bounded memory.
                n_rows = sum(map(_n_rows, stream.batches(_MIN_ROWS)))
                if opened is not None and not as_tables:
                    opened[path] = stream
            groups.append((path, None, n_rows))
            continue
        with _parquet(path) as file:
            metadata = file.metadata
            counts = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        groups += [(path, group, count) for group, count in enumerate(counts) if count]
    n_parts = max(1, -(-_N_PIECES // max(len(groups), 1)))
    pieces = list[Any]()
    # Whole batches, of enough rows.
    min_rows = batch_size * -(-_MIN_ROWS // batch_size)
    for path, group, n_rows in groups:
        n_cuts = min(n_parts, max(1, n_rows // min_rows))
        if n_cuts == 1:
            pieces.append(FilePiece(path, group, n_rows=n_rows))
            continue
        bounds = [n_rows * cut // n_cuts for cut in range(n_cuts + 1)]
        if group is None:
            # Where batches of one pass begin, too.
            bounds = [*(bound - bound % min_rows for bound in bounds[:-1]), n_rows]
        pieces += [FilePiece(path, group, a, b, b - a) for a, b in itertools.pairwise(bounds)]
    if not pieces:
        raise ValueError(f"source must have rows, got none in {files[0]}.")
    return pieces


class _Tables(NamedTuple):
    """A file of tables, as a stream without labels."""

    path: str
    label_names: tuple[str, ...] = ()

    def batches(self, size: int) -> Iterator[Table]:
        """Iterate over the tables from the start."""
        from labelrace.tables import file_tables

        return iter(file_tables(self.path, size))


def _open(path: str, as_tables: bool, labels: Any, features: Features | None) -> Any:
    """Open a file as a stream of tables, or of features and labels."""
    if as_tables:
        return _Tables(path)
    from labelrace.streams import open_stream

    return open_stream(path, labels) if features is None else open_matched(features, path, labels)


def _n_rows(batch: Any) -> int:
    return int(batch.n_rows if isinstance(batch, Table) else batch[0].shape[0])


def _parquet(path: str) -> Any:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        if _is_remote(path):
            filesystem, plain = _filesystem(path)
            return parquet.ParquetFile(filesystem.open(plain))
        return parquet.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise DataFormatError(f"{path}: not a Parquet file that can be read ({error}).") from None


@contextmanager
def naming_files(*pieces: Any) -> Iterator[None]:
    """Name the files of pieces in errors about them."""
    try:
        yield
    except (LabelraceError, ValueError) as error:
        if not isinstance(pieces[0], FilePiece):
            raise
        span = str(pieces[0]) if pieces[0] == pieces[-1] else f"{pieces[0]} to {pieces[-1]}"
        # Rows are counted from where a piece begins, which its name tells.
        text = str(error) if span in str(error) else f"{span}: {error}"
        raise (type(error) if isinstance(error, LabelraceError) else ValueError)(text) from None


def read_batches(
    piece: Any, size: int, *, as_tables: bool, labels: Any = None, features: Features | None = None
) -> Iterator[Any]:
    """Yield the batches of a piece: tables for a tagger, pairs of features and labels for a model.

    ``features`` are what columns of files are matched with, if anything.

    Raises
    ------
    DataFormatError
        Names the file, and what is wrong with it.
    """
    if not isinstance(piece, FilePiece):
        value = piece.compute() if isinstance(piece, DelayedPiece) else piece
        yield from batches_of(value, size, as_tables=as_tables)
        return
    with naming_files(piece):
        if as_tables:
            yield from _tables(piece, size)
        else:
            yield from _matrices(piece, size, labels, features)


def _tables(piece: FilePiece, size: int) -> Iterator[Any]:
    if piece.group is None:
        yield from _rows_of(piece, size, as_tables=True)[1]
        return
    import pyarrow as pa

    row = 0
    with _parquet(piece.path) as file:
        try:
            for batch in file.iter_batches(size, row_groups=[piece.group]):
                start, row = row, row + batch.num_rows
                if piece.last and start >= piece.last:
                    return
                first, last = max(piece.first - start, 0), (piece.last or row) - start
                if first < batch.num_rows:
                    yield as_table(batch.slice(first, min(last, batch.num_rows) - first))
        except (pa.ArrowException, OSError) as error:
            raise DataFormatError(f"{piece.path}, row group {piece.group}, row {row}: {error}") from None


def _matrices(piece: FilePiece, size: int, labels: Any, features: Features | None) -> Iterator[Any]:
    """Yield features and named labels of a file: files may have other labels, in another order."""
    from labelrace.base.naming import NamedRows

    stream, batches = _rows_of(piece, size, as_tables=False, labels=labels, features=features)
    names = list(map(str, stream.label_names))
    for X, Y in batches:
        yield X, NamedRows(Y.astype(float), names)


# Files that are being read, and the row that comes next, so that the next piece of a file goes on where one ended, or
# begins again without another scan of the file.
_open_files = dict[tuple[Any, ...], tuple[int, Any, Iterator[Any]]]()


def _file_version(path: str) -> tuple[int, ...]:
    """Return what tells a file from another one of the same name."""
    status = Path(path).stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def _rows_of(
    piece: FilePiece, size: int, *, as_tables: bool, labels: Any = None, features: Features | None = None
) -> tuple[Any, Iterator[Any]]:
    """Return a file as a stream, and the batches of all or some rows of it: those before are read and left out."""
    if not piece.last:
        stream = _open(piece.path, as_tables, labels, features)
        return stream, iter(stream.batches(size))
    key = piece.path, *_file_version(piece.path), repr((labels, features)), size, as_tables
    # Removed: another thread opens the file again.
    row, stream, rows = _open_files.pop(key, (0, None, iter(())))
    if stream is None or row > piece.first:
        stream = stream or _open(piece.path, as_tables, labels, features)
        row, rows = 0, iter(stream.batches(size))

    def between() -> Iterator[Any]:
        start = row
        for batch in rows:
            end = start + _n_rows(batch)
            if end > piece.first:
                yield _slice(batch, max(piece.first - start, 0), min(piece.last, end) - start)
            start = end
            if end >= piece.last:
                _open_files.clear()
                _open_files[key] = end, stream, rows
                return

    return stream, between()


def _slice(batch: Any, first: int, last: int) -> Any:
    """Return some rows of a table or of a pair of matrices; all of them as they are."""
    if (first, last) == (0, _n_rows(batch)):
        return batch
    if isinstance(batch, Table):
        return batch.slice(first, last)
    return tuple(part[first:last] for part in batch)


def batches_of(value: Any, size: int, *, as_tables: bool) -> Iterator[Any]:
    """Yield the batches of what a piece was computed to: a table, or a pair of features and labels."""
    if as_tables:
        from labelrace.tables.read import table_batches

        # A partition of a bag may be any iterable of rows.
        is_table = hasattr(value, "columns") or isinstance(value, (list, tuple, dict, str, Path))
        yield from table_batches(value if is_table else list(value), size)
        return
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise ValueError(f"A batch must be a pair of features and labels, got {type(value).__name__}.")
    X, y = value
    for start in range(0, row_count(X), size):
        rows = slice(start, start + size)
        yield (X.iloc[rows] if hasattr(X, "iloc") else X[rows]), (y.iloc[rows] if hasattr(y, "iloc") else y[rows])
