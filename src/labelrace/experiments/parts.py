"""A plan of experiments: its parts, and how each of them is run and recorded."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from labelrace.evaluation import ModelSpec, Progress, run
from labelrace.experiments.costs import MOST_BYTES, as_text, cost_of
from labelrace.experiments.datasets import Source
from labelrace.report.text import listing


@dataclass(frozen=True)
class Part:
    """One call of `labelrace.evaluation.run`: some models on a dataset, under one protocol.

    Each kind of part is recorded in a folder of its own, so that a later call for more can continue there.
    """

    source: Source
    models: tuple[ModelSpec, ...]
    options: Mapping[str, Any] = field(default_factory=dict)  # protocol, measures, calibration
    kind: str = ""
    runs: int | None = None  # at the most

    @property
    def folder(self) -> str:
        """Where its records go, below the benchmark's folder."""
        return "/".join(filter(None, ["runs", self.source.folder, self.kind]))

    @property
    def title(self) -> str:
        """What progress calls it."""
        return ", ".join(filter(None, [self.source.title, self.kind]))

    @property
    def cost(self) -> float:
        """About how many seconds one run of all its models takes."""
        return sum(cost_of(model.name, self.source).seconds for model in self.models)


class Step(NamedTuple):
    """How far an experiment is, as it is passed to ``on_progress``: what runs now, and how much is done of how much.

    ``error`` tells why a run has failed; it is empty for a step without a failure.
    """

    what: str
    done: float
    total: float
    error: str = ""


OnProgress: TypeAlias = Callable[[Step], object]


def run_plan(
    plan: Sequence[Part], out: str | os.PathLike[str], on_progress: OnProgress | None = None, **settings: Any
) -> Iterator[tuple[Part, dict[str, Any], list[dict[str, Any]]]]:
    """Run the parts of a plan, recorded in their folders below `out`; yield each with its manifest and records.

    The settings are runs, seed, jobs and resume, as `labelrace.evaluation.run` takes them. With resume, a part that
    has not begun is begun. In the progress, each part is as long as it is expected to take.
    """
    total, done = sum(part.cost for part in plan), 0.0
    for part in plan:
        report = None if on_progress is None else partial(_report, on_progress, part, done, total)
        runs = settings["runs"] if part.runs is None else min(settings["runs"], part.runs)
        manifest, records = run(
            part.source.data,
            part.models,
            labels=part.source.labels,
            out=Path(out, part.folder),
            batch_size=part.source.batch_size,
            skip_repeats=True,
            on_progress=report,
            **part.options,
            **settings | {"runs": runs},
        )
        yield part, manifest, records
        done += part.cost


def _report(on_progress: OnProgress, part: Part, before: float, total: float, progress: Progress) -> None:
    done = before + part.cost * progress.finished / max(progress.total, 1)
    what = f"{part.title}: {progress.model}, run {progress.run + 1}"
    on_progress(Step(what, done, total, progress.error or ""))


def within(parts: Sequence[Part], runs: int, budget: float, reference: str = "") -> tuple[list[Part], list[str]]:
    """Leave models out of parts, those first that take longest, until all runs end within a number of seconds.

    Models whose state would not fit into memory are left out, too; the reference is not, unless it would be alone. What
    is left out is told in sentences.
    """
    costs, seconds = {}, {}
    for number, part in enumerate(parts):
        for model in part.models:
            cost = costs[number, model.label] = cost_of(model.name, part.source)
            seconds[number, model.label] = cost.seconds * (runs if model.is_random else 1)
    out = {key for key, cost in costs.items() if cost.bytes > MOST_BYTES and key[1] != reference}
    waiting = {key: time for key, time in seconds.items() if key not in out and key[1] != reference}
    total = sum(waiting.values())
    for key in sorted(waiting, key=lambda key: -waiting[key]):
        if total <= budget:
            break
        out.add(key)
        total -= waiting[key]
    kept, notes = [], []
    for number, part in enumerate(parts):
        models = tuple(model for model in part.models if (number, model.label) not in out)
        left_out = [
            f"{label} ({as_text(costs[of, label])})" for of, label in costs if of == number and (of, label) in out
        ]
        if any(model.label != reference for model in models):
            kept.append(replace(part, models=models))
            where = f"Left out on {part.source.title}, with what a run would take"
            notes += [f"{where}: {listing(left_out)}. --all runs them."] if left_out else []
        else:
            least = min((cost for (of, _), cost in costs.items() if of == number), key=lambda cost: cost.seconds)
            notes.append(
                f"{part.source.title} was left out: each run would take {as_text(least)} or more. --all runs it."
            )
    return kept, notes
