"""The paper's experiments: what is to be run for which of its tables, and one call that runs it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from labelrace.evaluation import ModelSpec
from labelrace.experiments.comparison import (
    BASELINES,
    HOLDOUT,
    RELATED,
    SWEPT,
    TABLES,
    VARIANTS,
    Outcome,
    PaperSummary,
    compare,
)
from labelrace.experiments.datasets import Source, counted, find_paper_datasets
from labelrace.experiments.plan import OnProgress, Part, possible, run_plan, within
from labelrace.experiments.published import paper_datasets
from labelrace.report import summarize

_SWEEP_DATASETS = ("CAL500", "enron")
_METHODS = {"variants": VARIANTS, "baselines": BASELINES, "holdout": HOLDOUT, "related": ("race", *RELATED)}
# In Table 4 rows are held out; everywhere else each batch is tested, then learned. All measures are taken where the
# paper's source has all, else those that it prints.
_OPTIONS: dict[str, dict[str, Any]] = {
    "variants": {"measures": "all"},
    "baselines": {"measures": "all"},
    "holdout": {"measures": "paper", "protocol": "holdout"},
    "sweep": {"measures": "paper"},
    "related": {"measures": "paper"},
}
# The related work runs at most this often, and what takes it beyond this many seconds is left out.
_RELATED_RUNS, _RELATED_SECONDS = 3, 1200.0


def run_paper(
    out: str | os.PathLike[str],
    *,
    data: Iterable[str | os.PathLike[str]] = (),
    tables: Iterable[str] = tuple(TABLES),
    runs: int = 10,
    seed: int = 0,
    jobs: int | None = None,
    resume: bool = False,
    everything: bool = False,
    synthetic: bool = False,
    synthetic_rows: int | None = None,
    on_progress: OnProgress | None = None,
) -> PaperSummary:
    """Run the paper's experiments on those of its datasets that are available.

    Parameters
    ----------
    out : path
        The folder for the records of all runs.
    data : iterable of paths, default=()
        Folders to look for datasets in, before those of ``$LABELRACE_DATA`` and the cache.
    tables : iterable of str, default=("2", "3", "4", "related", "sweep")
        "related" are the methods that the paper names and does not run; "sweep" is its figure of the number of pseudo
        labels.
    runs, seed, jobs, resume
        As `labelrace.evaluation.run` takes them; the related work has at most 3 runs.
    everything : bool, default=False
        Whether to run also what of the related work takes long; otherwise the notes tell what it would take.
    synthetic : bool, default=False
        Whether to run on a synthetic stream of the same shape for each dataset that is not available. Its results are
        called synthetic, and are not compared with the paper's.
    synthetic_rows : int or None, default=None
        Rows of each such stream; None for as many as the dataset has.
    on_progress : callable, default=None
        Called with a `Step` whenever a run starts, has tested a batch, or ends.

    Raises
    ------
    FileNotFoundError
        If none of the datasets is available.
    FileExistsError, ValueError
        If the folder holds runs already and they are not to be resumed, or are others.
    """
    asked = check_tables(tables)
    found = find_paper_datasets(map(Path, data), synthetic=synthetic, synthetic_rows=synthetic_rows)
    if not found.sources:
        raise FileNotFoundError(
            f"none of the paper's datasets is available ({', '.join(found.missing)}): see `labelrace data list`, give "
            "their folder by --data or LABELRACE_DATA, or run on synthetic ones by --synthetic"
        )
    if not make_plan(found.sources, asked):
        raise FileNotFoundError("the sweep is on CAL500 and enron, and neither is available")
    sources = [counted(source) for source in found.sources]
    plan, notes = possible(make_plan(sources, asked))
    if not everything:
        kept, slow = within(
            [part for part in plan if part.kind == "related"], min(runs, _RELATED_RUNS), _RELATED_SECONDS
        )
        plan, notes = [*(part for part in plan if part.kind != "related"), *kept], [*notes, *slow]
    outcomes = [
        Outcome(part.source, part.kind, summarize(manifest, records))
        for part, manifest, records in run_plan(plan, out, on_progress, runs=runs, seed=seed, jobs=jobs, resume=resume)
    ]
    summary = compare(outcomes, {source: source.facts for source in sources if source.facts}, found.missing, asked)
    return replace(summary, notes=[*summary.notes, *notes])


def check_tables(texts: Iterable[str]) -> list[str]:
    """Return the tables asked for, in the paper's order; raise ValueError for one that does not exist.

    Examples
    --------
    >>> check_tables(["sweep", "2"])
    ['2', 'sweep']
    """
    asked = list(texts)
    for text in asked:
        if text not in TABLES:
            raise ValueError(f"tables must be some of {', '.join(TABLES)}, got {text!r}")
    return [table for table in TABLES if table in asked]


def make_plan(sources: Sequence[Source], tables: Iterable[str]) -> list[Part]:
    """List what must be run for these tables on these datasets, small datasets first."""
    kinds = {kind for table in check_tables(tables) for kind in TABLES[table].kinds}
    parts = []
    for source in sorted(sources, key=lambda source: paper_datasets()[source.name][0].rows):
        models = {kind: [ModelSpec(name) for name in methods] for kind, methods in _METHODS.items()}
        if source.name in _SWEEP_DATASETS:
            models["sweep"] = _sweep(paper_datasets()[source.name][0].labels)
        limits = {"related": _RELATED_RUNS}
        parts += [
            Part(source, tuple(models[kind]), _OPTIONS[kind], kind, limits.get(kind))
            for kind in models
            if kind in kinds
        ]
    return parts


def _sweep(n_labels: int) -> list[ModelSpec]:
    """List the methods of the sweep with k, 2k, … k² pseudo labels, k being the usual number of them."""
    least = math.ceil(math.log2(n_labels))
    counts = range(least, least**2 + 1, least)
    return [ModelSpec(name, {"n_components": k}, f"{name} k={k}") for name in SWEPT for k in counts]
