"""The command on a cluster, or on several processes of this machine: training and predicting in shares."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from labelrace.cli.options import Interrupted


def train_shared(
    model: Any,
    name: str,
    source: str,
    out: Path,
    labels: Any,
    batch_size: int,
    workers: int | None,
    scheduler: str | None,
) -> str:
    """Learn files in shares and save the model; return a message. After Ctrl-C, what was merged so far is saved."""
    from labelrace.distributed.fitting import Progress, fit, progress_reporter
    from labelrace.exceptions import DistributedError

    steps = list[Progress]()
    settings: dict[str, Any] = {"workers": workers, "scheduler": scheduler, "batch_size": batch_size, "labels": labels}
    try:
        with progress_reporter(True) as show:

            def keep(step: Progress) -> None:
                steps.append(step)
                show(step)

            fit(model, source, on_progress=keep, **settings)
    except KeyboardInterrupt:
        if not model.is_fitted:
            raise Interrupted("Nothing was merged yet, and no file was written.") from None
        model.save(out)
        raise Interrupted(_summary(name, steps, out)) from None
    except DistributedError as error:
        if not model.is_fitted:
            raise
        model.save(out)
        raise DistributedError(f"{error} It was saved: {out}") from None
    model.save(out)
    return _summary(name, steps, out)


def _summary(name: str, steps: list[Any], out: Path) -> str:
    last = steps[-1]
    rounds = "1 round" if last.round == 1 else f"{last.round} rounds"
    text = f"{name} learned {last.rows} rows in {rounds}: {out}"
    return f"{text}\nPrequential quality: example F1 {last.example_f1:.3f}."


def shared_predictions(
    model: Any,
    source: str,
    labels: Any,
    batch_size: int,
    top: int | None,
    as_csv: bool,
    workers: int | None,
    scheduler: str | None,
) -> Iterator[list[dict[str, Any]]]:
    """Yield what workers predict for the pieces of files, in their order."""
    from labelrace.distributed.cluster import connect
    from labelrace.distributed.predicting import predict_pieces
    from labelrace.distributed.sources import pieces_of
    from labelrace.tables import Tagger

    if source == "-":
        raise ValueError("--workers and --scheduler are for files: leave them out to read standard input.")
    pieces = pieces_of(source, as_tables=isinstance(model, Tagger), labels=labels, batch_size=batch_size)
    first = 0
    with connect(workers=workers, scheduler=scheduler) as client:
        for rows in predict_pieces(client, model, pieces, partial(_rows, top, as_csv), batch_size, labels):
            for number, row in enumerate(rows, start=first):
                if "row" in row:
                    row["row"] = number
            first += len(rows)
            yield rows


def _rows(top: int | None, as_csv: bool, model: Any, piece: Any, batch_size: int, labels: Any) -> list[dict[str, Any]]:
    """Predict the rows of a piece; runs on a worker."""
    from labelrace.cli import tagging, train
    from labelrace.distributed.sources import read_batches
    from labelrace.tables import Tagger

    is_tagger = isinstance(model, Tagger)
    batches = read_batches(piece, batch_size, as_tables=is_tagger, labels=labels)
    if is_tagger:
        parts = tagging.predictions(model, batches, top=top, as_csv=as_csv)
    else:
        parts = train.predictions(model, (X for X, _ in batches), top)
    return [row for part in parts for row in part]
