"""Progress bars: of a run, with the measures so far, and of a model that learns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

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
from labelrace.exceptions import DataFormatError, LabelraceError

if TYPE_CHECKING:
    from labelrace.evaluation import Progress

Item = TypeVar("Item")

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
    batches: Iterable[Item], learn: Callable[[Item], tuple[int, str]]
) -> tuple[int, BaseException | None]:
    """Learn batch by batch and show the progress on standard error, until Ctrl-C or a batch that is wrong.

    `learn` returns the number of rows of a batch, and a text to show beside it. Return the number of all rows, and what
    stopped the learning.
    """
    rows, screen = 0, Console(stderr=True)
    count, text = TextColumn("{task.completed} rows"), TextColumn("[dim]{task.description}")
    columns = SpinnerColumn(), count, TimeElapsedColumn(), text
    with Bars(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task("", total=None)
        try:
            for batch in batches:
                n_rows, quality = learn(batch)
                rows += n_rows
                bar.update(task, completed=rows, description=quality)
        except (KeyboardInterrupt, LabelraceError, ValueError, OSError) as stopped:
            return rows, stopped
    return rows, None


def check_learned(has_learned: bool, stopped: BaseException | None, nothing: str) -> None:
    """If nothing was learned, raise what stopped the learning, or an error with the message `nothing`."""
    if has_learned:
        return
    if isinstance(stopped, KeyboardInterrupt):
        raise Interrupted("Nothing was learned yet, and no file was written.")
    if stopped is None:
        raise ValueError(nothing)
    raise DataFormatError(f"{sentence(stopped)} Nothing was learned, and no file was written.") from stopped
