"""Predictions and explanations as data frames, of the library that the rows came in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any


def as_frame(columns: Mapping[str, Sequence[Any]], like: Any = None) -> Any:
    """Make a data frame of columns: of polars if ``like`` is one of polars, and of pandas otherwise."""
    library = "polars" if type(like).__module__.partition(".")[0] == "polars" else "pandas"
    try:
        frames = import_module(library)
    except ImportError:
        raise ImportError(f"as_frame=True needs {library}, which is not installed: pip install {library}.") from None
    return frames.DataFrame(dict(columns))


def row_names(like: Any, n_rows: int) -> list[Any]:
    """Name rows: by the index of a pandas data frame, or by their numbers."""
    return list(like.index) if hasattr(like, "iloc") and hasattr(like, "columns") else list(range(n_rows))


def top_frame(top: Sequence[Iterable[tuple[Any, float]]], like: Any) -> Any:
    """Return the most likely labels of each row as a data frame: row, rank (from 1), label, probability.

    Examples
    --------
    >>> top_frame([[("oven", 0.75), ("heat", 0.5)], [("door", 0.25)]], None)
       row  rank label  probability
    0    0     1  oven         0.75
    1    0     2  heat         0.50
    2    1     1  door         0.25
    """
    names = row_names(like, len(top))
    cells = [(name, rank, *pair) for name, row in zip(names, top, strict=True) for rank, pair in enumerate(row, 1)]
    return as_frame(_columns(cells, ("row", "rank", "label", "probability")), like)


def explanation_frame(explained: Mapping[Any, Iterable[tuple[Any, float]]], like: Any) -> Any:
    """Return what contributed to labels as a data frame: label, feature, contribution."""
    cells = [(label, *part) for label, parts in explained.items() for part in parts]
    return as_frame(_columns(cells, ("label", "feature", "contribution")), like)


def records_frame(records: Iterable[Any]) -> Any:
    """Return the batches of an evaluation as a data frame of pandas, one row for each that was tested.

    Parameters
    ----------
    records : iterable
        Checkpoints, as `labelrace.evaluation.prequential` yields them, or the records that
        `labelrace.evaluation.run` and `labelrace.evaluation.read_run` return.

    Returns
    -------
    data frame
        With the columns model and run, if the records tell these; batch, start, end, whole; a column for each measure;
        seconds to predict, learn and measure; and memory.

    Examples
    --------
    >>> import labelrace
    >>> from labelrace.evaluation import prequential, records_frame
    >>> from labelrace.streams.synthetic import SyntheticStream
    >>> stream = SyntheticStream(n_rows=300, n_features=5, n_labels=6, seed=0)
    >>> frame = records_frame(prequential(labelrace.make_model("majority"), stream, batch_size=100))
    >>> frame[["batch", "end", "example_f1"]].round(2)
       batch  end  example_f1
    0      1  200        0.70
    1      2  300        0.67
    """
    plain = (one if isinstance(one, Mapping) else one.to_record() for one in records)
    tested = [one for one in plain if one["kind"] == "batch" and one.get("tested", True)]
    rows = [
        {name: one[name] for name in ("model", "run", "batch", "start", "end", "whole") if name in one}
        | one["measures"]
        | {f"{name}_seconds": value for name, value in one["seconds"].items()}
        | {"memory": one["memory"]}
        for one in tested
    ]
    names = dict.fromkeys(name for row in rows for name in row)
    nan = float("nan")
    return as_frame({name: [nan if (cell := row.get(name)) is None else cell for row in rows] for name in names})


def suggestion_frame(suggested: Sequence[Any], like: Any) -> Any:
    """Return what is suggested for each row as a data frame: row, tags, probabilities, review."""
    names = row_names(like, len(suggested))
    pairs = zip(names, suggested, strict=True)
    cells = [(name, list(one.tags), list(one.tags.values()), one.review) for name, one in pairs]
    return as_frame(_columns(cells, ("row", "tags", "probabilities", "review")), like)


def _columns(cells: list[tuple[Any, ...]], names: tuple[str, ...]) -> dict[str, list[Any]]:
    return {name: [row[number] for row in cells] for number, name in enumerate(names)}
