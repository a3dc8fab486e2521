"""`predict`: many rows predicted where they are read; the model is sent to each worker once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from labelrace.base.files import atomic_file
from labelrace.distributed.cluster import connect, engine, send
from labelrace.distributed.sources import pieces_of, read_batches
from labelrace.tables import Tagger


def predict(
    model: Any,
    source: Any,
    *,
    out: Any = None,
    client: Any = None,
    workers: int | None = None,
    scheduler: str | None = None,
    batch_size: int = 500,
    labels: Any = None,
) -> Any:
    """Predict the labels of many rows on a cluster.

    Parameters
    ----------
    model : classifier or Tagger
        A fitted one.
    source
        As for `fit`; of a classifier's pairs ``(X, y)``, ``y`` is not used.
    out : path, default=None
        A folder for Parquet files, one for each piece of the source; by default a Dask data frame is returned, which
        is computed when it is needed.
    client, workers, scheduler
        As for `fit`; they are for writing files, as a data frame is computed where its user wants.
    batch_size : int, default=500
        Rows predicted at once.
    labels : label source, default=None
        As for `fit`.

    Returns
    -------
    dask.dataframe.DataFrame, or list of paths
        A column ``labels`` with the labels of each row, in the order of the rows.
    """
    engine()
    pieces = pieces_of(source, as_tables=isinstance(model, Tagger), labels=labels, batch_size=batch_size)
    if out is None:
        import dask
        import dask.dataframe

        shared = dask.delayed(model, pure=True)
        parts = [dask.delayed(_frame)(shared, piece, batch_size, labels) for piece in pieces]
        return dask.dataframe.from_delayed(parts, meta=_as_frame([]))
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"part-{number:05d}.parquet" for number in range(len(pieces))]
    with connect(client, workers=workers, scheduler=scheduler) as connection:
        tables = predict_pieces(connection, model, pieces, _table, batch_size, labels)
        for path, table in zip(paths, tables, strict=True):
            _write(table, path)
    return paths


def predict_pieces(
    client: Any,
    model: Any,
    pieces: list[Any],
    function: Callable[[Any, Any, int, Any], Any],
    batch_size: int,
    labels: Any,
) -> Iterator[Any]:
    """Yield what a function makes of a model and each piece, in their order, at most two pieces a worker ahead."""
    shared = send(client, model)
    n_ahead = 2 * max(1, len(client.nthreads()))
    waiting = deque[Any]()
    for piece in pieces:
        value = client.compute(piece) if hasattr(piece, "dask") else piece
        waiting.append(client.submit(function, shared, value, batch_size, labels, pure=False))
        if len(waiting) >= n_ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _predict_piece(model: Any, piece: Any, batch_size: int, labels: Any) -> list[list[str]]:
    is_tagger = isinstance(model, Tagger)
    rows = list[list[str]]()
    for batch in read_batches(piece, batch_size, as_tables=is_tagger, labels=labels):
        predicted = model.predict(batch) if is_tagger else model.predict_labels(batch[0])
        rows += [sorted(map(str, names)) for names in predicted]
    return rows


def _frame(model: Any, piece: Any, batch_size: int, labels: Any) -> Any:
    return _as_frame(_predict_piece(model, piece, batch_size, labels))


def _as_frame(rows: list[list[str]]) -> Any:
    """Make a data frame with a column of lists, of a type that Dask does not take for texts."""
    import pandas as pd
    import pyarrow as pa

    lists = pd.ArrowDtype(pa.list_(pa.string()))
    return pd.DataFrame({"labels": pd.Series(pa.array(rows, lists.pyarrow_dtype), dtype=lists)})


def _table(model: Any, piece: Any, batch_size: int, labels: Any) -> Any:
    import pyarrow as pa

    return pa.table({"labels": pa.array(_predict_piece(model, piece, batch_size, labels), pa.list_(pa.string()))})


def _write(table: Any, path: Path) -> None:
    from pyarrow import parquet

    with atomic_file(path) as file:
        parquet.write_table(table, file)
