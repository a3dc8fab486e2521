"""`predict`: many rows predicted where they are read; the model is sent to each worker once."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from labelrace.base.files import atomic_file
from labelrace.distributed.cluster import connect, engine, send
from labelrace.distributed.sources import naming_files, pieces_of, read_batches
from labelrace.streams.column_matching import features_of
from labelrace.tables import Tagger

_Predicted = TypeVar("_Predicted")


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
        As for `fit`; of a classifier's pairs ``(X, y)``, ``y`` is not used. Columns of files are matched with what the
        model has learned as `labelrace predict` does.
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

    Examples
    --------
    >>> import labelrace
    >>> model = labelrace.make_model("ridge").fit([[0.0], [1.0]], [{"cold"}, {"warm"}])
    >>> frame = predict(model, [([[0.0], [1.0]], [set(), set()]), ([[1.0]], [set()])])
    >>> frame.compute(scheduler="synchronous")["labels"].tolist()
    [['cold'], ['warm'], ['warm']]
    """
    engine()
    pieces = pieces_to_predict(model, source, batch_size, labels)
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


def pieces_to_predict(model: Any, source: Any, batch_size: int, labels: Any) -> list[Any]:
    """List the pieces of a source whose columns a model knows."""
    features = None if isinstance(model, Tagger) else features_of(model)
    return pieces_of(source, as_tables=features is None, labels=labels, batch_size=batch_size, features=features)


def predicted_rows(
    model: Any,
    piece: Any,
    batch_size: int,
    labels: Any,
    function: Callable[[Any, Iterator[Any]], Iterator[list[_Predicted]]],
) -> list[_Predicted]:
    """Return what a function makes of a model and the tables or features of a piece; an error names its file."""
    features = None if isinstance(model, Tagger) else features_of(model)
    batches = read_batches(piece, batch_size, as_tables=features is None, labels=labels, features=features)
    with naming_files(piece), warnings.catch_warnings():
        # A model may have learned from data frames; rows have their features in its order, but not their names.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        inputs = batches if features is None else (X for X, _ in batches)
        return [row for rows in function(model, inputs) for row in rows]


def _predict_piece(model: Any, piece: Any, batch_size: int, labels: Any) -> list[list[str]]:
    return predicted_rows(model, piece, batch_size, labels, _label_lists)


def _label_lists(model: Any, batches: Iterator[Any]) -> Iterator[list[list[str]]]:
    predict_sets = model.predict if isinstance(model, Tagger) else model.predict_labels
    for batch in batches:
        yield [sorted(map(str, names)) for names in predict_sets(batch)]


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
