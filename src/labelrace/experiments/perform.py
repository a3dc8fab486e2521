"""Runs a plan, part by part, and reads what came out."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from labelrace.evaluation import Progress, run
from labelrace.experiments.plan import Part
from labelrace.report import summarize

__all__ = ["Outcome", "Watcher", "perform", "read_outcome"]

Watcher: TypeAlias = Callable[[Part, Progress], object]


@dataclass(frozen=True)
class Outcome:
    """What one part gave.

    Parameters
    ----------
    part : Part
    manifest : dict
    models : dict
        Of each model, by its label, what `labelrace.report.summarize` says of it: measures, seconds, runs.
    failures : list of dict
        ``model``, ``run`` and ``error`` of each run that failed.
    """

    part: Part
    manifest: dict[str, Any]
    models: dict[str, dict[str, Any]]
    failures: list[dict[str, Any]]


def perform(
    plan: Sequence[Part],
    out: str | os.PathLike[str],
    *,
    runs: int = 10,
    seed: int = 0,
    jobs: int | None = None,
    resume: bool = False,
    on_progress: Watcher | None = None,
) -> list[Outcome]:
    """Run all parts of a plan; each is recorded in a folder of its own below `out`.

    Parameters
    ----------
    plan : sequence of Part
    out : path
    runs, seed, jobs, resume
        As `labelrace.evaluation.run` takes them. With `resume`, parts that have not begun are begun.
    on_progress : callable, optional
        Called with the part and its `Progress`.
    """
    outcomes = []
    for part in plan:
        tell = None if on_progress is None else _telling(on_progress, part)
        manifest, records = run(
            part.source.data,
            part.models,
            out=Path(out, part.folder),
            protocol=part.protocol,
            batch_size=part.source.batch_size,
            runs=runs,
            seed=seed,
            measures=part.measures,
            jobs=jobs,
            resume=resume,
            skip_repeats=True,
            on_progress=tell,
        )
        outcomes.append(read_outcome(part, manifest, records))
    return outcomes


def read_outcome(part: Part, manifest: dict[str, Any], records: list[dict[str, Any]]) -> Outcome:
    """Summarize the records of a part."""
    summary = summarize(manifest, records)
    models = {model["name"]: model for model in summary["models"]}
    return Outcome(part, manifest, models, summary["failures"])


def _telling(on_progress: Watcher, part: Part) -> Callable[[Progress], object]:
    return lambda progress: on_progress(part, progress)
