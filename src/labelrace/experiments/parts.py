"""A plan of experiments: its parts, and how each of them is run and recorded."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labelrace.evaluation import ModelSpec, Progress, run
from labelrace.experiments.datasets import Source
from labelrace.experiments.published import paper_datasets

# About how much longer these take than the others, for the estimate of the time left.
_SLOW = {"oecc": 8.0, "race-reg-fixed": 2.0, "race-reg-adaptive": 2.0}


@dataclass(frozen=True)
class Part:
    """One call of `labelrace.evaluation.run`: some models on a dataset, under one protocol.

    Each kind of part is recorded in a folder of its own, so that a later call for more can continue there.
    """

    source: Source
    models: tuple[ModelSpec, ...]
    options: Mapping[str, Any] = field(default_factory=dict)  # protocol, measures, calibration
    kind: str = ""

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
        """About how long one run of all its models takes, in no particular unit."""
        facts = self.source.facts or paper_datasets()[self.source.name][0]
        return facts.rows * facts.labels * sum(_SLOW.get(model.name, 1.0) for model in self.models)


def run_part(
    part: Part, out: str | os.PathLike[str], on_progress: Callable[[Part, Progress], object] | None, **settings: Any
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Run a part of a plan, recorded in its folder below `out`; return manifest and records.

    The settings are runs, seed, jobs and resume, as `labelrace.evaluation.run` takes them. With resume, a part that
    has not begun is begun.
    """
    return run(
        part.source.data,
        part.models,
        labels=part.source.labels,
        out=Path(out, part.folder),
        batch_size=part.source.batch_size,
        skip_repeats=True,
        on_progress=None if on_progress is None else lambda progress: on_progress(part, progress),
        **part.options,
        **settings,
    )
