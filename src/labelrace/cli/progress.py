"""Progress bars: of a run, with the measures so far, and of a model that learns."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars

from labelrace.cli.messages import Interrupted, sentence
from labelrace.exceptions import DataFormatError, LabelraceError, TableError

if TYPE_CHECKING:
    from labelrace.evaluation import Progress

# The arguments of a learner: features and labels, or a table with its tags.
Batch: TypeAlias = tuple[Any, ...]
Learn: TypeAlias = Callable[..., object]  # of a learner and the parts of a batch

_REFUSALS = (LabelraceError, ValueError)
# From this number and this share of refused rows in a batch on, it is not the rows that are wrong.
_MAX_REFUSED, _REFUSED = 20, 0.1
_MEASURES = ("example_f1", "micro_f1", "hamming_loss")


@contextmanager
def run_bars(console: Console) -> Iterator[Callable[[Progress], None]]:
    """Show a bar for all runs and one for each active model; yield the function to call with the progress."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(compact=True),
        TextColumn("[dim]{task.fields[now]}"),
    )
    with Bars(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        overall = bars.add_task("all runs", total=None, now="")
        active: dict[tuple[str, int], TaskID] = {}

        def show(progress: Progress) -> None:
            pair = (progress.model, progress.run)
            bars.update(overall, completed=progress.finished, total=progress.total)
            if progress.kind == "started":
                name = f"{progress.model}, run {progress.run + 1}"
                active[pair] = bars.add_task(name, total=progress.total_rows, now="")
            elif progress.kind == "batch" and pair in active:
                bars.update(active[pair], completed=progress.rows, now=_measures(progress.measures))
            else:
                if pair in active:
                    bars.remove_task(active.pop(pair))
                if progress.kind == "failed":
                    reason = (progress.error or "").partition("\n")[0]
                    text = f"{progress.model}, run {progress.run + 1}: {reason}"
                    bars.console.print(text, style="red", markup=False, soft_wrap=True)

        yield show


def _measures(measures: dict[str, float]) -> str:
    names = [name for name in _MEASURES if name in measures] or list(measures)[:2]
    return "  ".join(f"{name} {measures[name]:.3f}" for name in names)


def learn_batches(
    learner: Any,
    batches: Iterable[Batch],
    learn: Learn,
    describe: Callable[[], str] = str,
    on_bad_row: Callable[[DataFormatError], None] | None = None,
) -> tuple[int, BaseException | None]:
    """Learn batch by batch and show the progress on standard error, until Ctrl-C or a row that is wrong.

    All rows before one that cannot be read, or that the learner refuses, are learned. With `on_bad_row`, which gets the
    error, a row that the learner refuses is left out, unless many of a batch are. `describe` returns a text to show
    beside the number of rows. Return that number, and what stopped the learning.
    """
    rows, n_skipped, screen = 0, 0, Console(stderr=True)
    count, text = TextColumn("{task.completed} rows"), TextColumn("[dim]{task.description}")
    columns = SpinnerColumn(), count, TimeElapsedColumn(), text
    with Bars(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task("", total=None)
        try:
            for batch in batches:
                n_refused, rest = 0, batch
                while n_left := _n_rows(rest):
                    learned, refused = _learn_accepted(learner, rest, learn)
                    rows += learned
                    # Who no longer reads what is printed does not end the learning.
                    with suppress(OSError):
                        bar.update(task, completed=rows, description=describe())
                    if refused is None:
                        break
                    error = DataFormatError(f"Row {rows + n_skipped + 1}: {refused}")
                    n_refused += 1
                    if on_bad_row is None or n_refused > max(_MAX_REFUSED, _n_rows(batch) * _REFUSED):
                        # If nothing was learned, the model may be wrong, and not the row.
                        raise error if rows else refused
                    on_bad_row(error)
                    n_skipped += 1
                    rest = _some_rows(rest, learned + 1, n_left)
        except (KeyboardInterrupt, *_REFUSALS, OSError) as stopped:
            return rows, stopped
    return rows, None


def _n_rows(batch: Batch) -> int:
    return int(batch[0].n_rows if hasattr(batch[0], "n_rows") else batch[0].shape[0])


def _learn_accepted(learner: Any, batch: Batch, learn: Learn) -> tuple[int, Exception | None]:
    """Learn a batch up to a row that the learner refuses; return the number of rows, and the error."""
    n_rows = _n_rows(batch)
    try:
        learn(learner, *batch)
    except TableError:
        raise
    except _REFUSALS as error:
        n_accepted, n_refused = 0, n_rows
        while n_refused - n_accepted > 1:
            middle = (n_accepted + n_refused) // 2
            try:
                learn(copy.copy(learner), *_some_rows(batch, 0, middle))
                n_accepted = middle
            except _REFUSALS:
                n_refused = middle
        if n_accepted:
            learn(learner, *_some_rows(batch, 0, n_accepted))
        return n_accepted, error
    return n_rows, None


def _some_rows(batch: Batch, start: int, stop: int) -> Batch:
    """Return rows of a table, or of features and labels."""
    return tuple(part.slice(start, stop) if hasattr(part, "slice") else part[start:stop] for part in batch)


def check_learned(has_learned: bool, stopped: BaseException | None, nothing: str) -> None:
    """If nothing was learned, raise what stopped the learning, or an error with the message `nothing`."""
    if has_learned:
        return
    if isinstance(stopped, KeyboardInterrupt):
        raise Interrupted("Nothing was learned yet, and no file was written.")
    if stopped is None:
        raise ValueError(nothing)
    raise DataFormatError(f"{sentence(stopped)} Nothing was learned, and no file was written.") from stopped
