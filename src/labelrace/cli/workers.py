"""``--workers`` and ``--scheduler``: training and predicting by several processes, or on a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from labelrace.cli.messages import Interrupted, say
from labelrace.cli.options import given_of, partial_target

if TYPE_CHECKING:
    from labelrace.streams.table_sources import Reading


class Workers(NamedTuple):
    """Where to work: on a number of processes of this machine, or on the workers of a scheduler."""

    workers: int | None
    scheduler: str | None

    def __bool__(self) -> bool:
        return self.workers is not None or self.scheduler is not None

    def check(self, sources: Iterable[str], reading: Reading) -> None:
        """Refuse what workers do not read."""
        if not self:
            return
        if "-" in sources:
            raise ValueError("--workers and --scheduler are for files: leave them out to read standard input.")
        if given := given_of(reading):
            options = " and ".join(given)
            raise ValueError(f"Workers must find out how to read files, got {options}: leave it out, or --workers.")


def train_on_workers(
    model: Any, name: str, source: str | list[str], out: Path, where: Workers, **settings: Any
) -> None:
    """Learn files in shares and save the model; after Ctrl-C or a lost cluster, the shares merged so far are saved."""
    from labelrace.distributed.fitting import Progress, fit, progress_reporter
    from labelrace.exceptions import DistributedError

    steps = list[Progress]()
    try:
        with progress_reporter(True) as show:

            def report(step: Progress) -> None:
                steps.append(step)
                show(step)

            fit(model, source, on_progress=report, **where._asdict(), **settings)
    except KeyboardInterrupt:
        if not model.is_fitted:
            raise Interrupted("Nothing was merged yet, and no file was written.") from None
        target, kept = partial_target(out)
        model.save(target)
        raise Interrupted(" ".join([*_summary(name, steps[-1], target), *kept])) from None
    except DistributedError as error:
        if not model.is_fitted:
            raise
        target, kept = partial_target(out)
        model.save(target)
        raise DistributedError(" ".join([f"{error} It was saved: {target}.", *kept])) from None
    model.save(out)
    for line in _summary(name, steps[-1], out):
        say(line)


def _summary(name: str, last: Any, out: Path) -> tuple[str, str]:
    rounds = "1 round" if last.round == 1 else f"{last.round} rounds"
    return (
        f"{name} learned {last.rows} rows in {rounds}: {out}",
        f"Prequential quality: example F1 {last.example_f1:.3f}.",
    )


def predict_on_workers(
    model: Any, source: str, where: Workers, *, top: int | None, suffix: str, **settings: Any
) -> Iterator[Any]:
    """Yield the predictions of workers for the pieces of files, in order: tables of a tagger, rows of other models.

    `settings` are labels and batch size.
    """
    from labelrace.distributed.cluster import connect
    from labelrace.distributed.predicting import pieces_to_predict, predict_pieces
    from labelrace.tables import Tagger

    pieces = pieces_to_predict(model, source, **settings)
    first = 0
    with connect(**where._asdict()) as client:
        for rows in predict_pieces(client, model, pieces, partial(_predict_piece, top, suffix), **settings):
            if isinstance(model, Tagger):
                yield from rows
                continue
            for number, row in enumerate(rows, start=first):
                row["row"] = number
            first += len(rows)
            yield rows


def _predict_piece(top: int | None, suffix: str, model: Any, piece: Any, batch_size: int, labels: Any) -> list[Any]:
    """Predict the rows of a piece; runs on a worker."""
    from labelrace.cli.predict import label_rows, tag_tables
    from labelrace.distributed.predicting import predicted_rows
    from labelrace.tables import Tagger

    def tables(tagger: Any, batches: Iterator[Any]) -> Iterator[list[Any]]:
        return ([table] for table in tag_tables(tagger, batches, top=top, suffix=suffix))

    function = tables if isinstance(model, Tagger) else partial(label_rows, top=top)
    return predicted_rows(model, piece, batch_size, labels, function)
