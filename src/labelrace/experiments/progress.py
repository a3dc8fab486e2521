"""Progress of a benchmark: how far, what is running, and how long it may take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars

from labelrace.evaluation import Progress

__all__ = ["Piece", "PlanBar", "bench_bars"]


class Piece(Protocol):
    """A part of a plan: which one, what it is called, and about how long it takes."""

    @property
    def folder(self) -> str: ...  # noqa: D102
    @property
    def title(self) -> str: ...  # noqa: D102
    @property
    def cost(self) -> float: ...  # noqa: D102


@contextmanager
def bench_bars(console: Console) -> Iterator[Bars]:
    """Show bars with the time left; a bar's field ``now`` says what is running."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("[dim]left"),
        TimeRemainingColumn(compact=True),
        TextColumn("[dim]{task.fields[now]}"),
    )
    # The speed is that of the last ten minutes: parts are of different lengths, and so are their runs.
    with Bars(*columns, console=console, transient=True, speed_estimate_period=600) as bars:
        yield bars


class PlanBar:
    """One bar for a whole plan, in which each part has the length that it is expected to take."""

    def __init__(self, bars: Bars, runs: int) -> None:
        self._bars, self._runs = bars, runs
        self._task = bars.add_task("looking for datasets", total=None, now="")
        self._before: dict[str, float] = {}

    def set_plan(self, plan: Sequence[Piece]) -> None:
        """Take the plan's length."""
        total = 0.0
        for part in plan:
            self._before[part.folder] = total
            total += part.cost
        self._bars.update(self._task, total=total)

    def show(self, part: Piece, progress: Progress) -> None:
        """Tell how far a part is."""
        done = progress.finished / max(progress.total, 1)
        now = f"{progress.model}, run {progress.run + 1} of {self._runs}"
        self._bars.update(
            self._task,
            description=part.title,
            completed=self._before[part.folder] + part.cost * done,
            now=now,
        )
        if progress.kind == "failed":
            text = f"{part.title}, {now}: {progress.error}"
            self._bars.console.print(text, style="red", markup=False)
