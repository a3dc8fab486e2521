"""The paper's tables, beside ours, by one call."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from labelrace.experiments.perform import Watcher, perform
from labelrace.experiments.plan import TABLES, Part, check_tables, make_plan
from labelrace.experiments.sources import find_sources
from labelrace.experiments.summary import PaperSummary, make_summary

__all__ = ["run_paper"]


def run_paper(
    out: str | os.PathLike[str],
    *,
    data: Iterable[str | os.PathLike[str]] = (),
    tables: Iterable[str] = tuple(TABLES),
    runs: int = 10,
    seed: int = 0,
    jobs: int | None = None,
    resume: bool = False,
    synthetic: bool = False,
    synthetic_rows: int | None = None,
    on_plan: Callable[[Sequence[Part]], object] | None = None,
    on_progress: Watcher | None = None,
) -> PaperSummary:
    """Run the paper's experiments on those of its datasets that are at hand.

    Parameters
    ----------
    out : path
        The folder for the records of all runs.
    data : iterable of paths
        Folders to look for datasets in, before those of ``$LABELRACE_DATA`` and the cache.
    tables : iterable of str
        Some of "2", "3", "4" and "sweep", the paper's figure of the number of pseudo labels.
    runs, seed, jobs, resume
        As `labelrace.evaluation.run` takes them.
    synthetic : bool
        Whether to run on a synthetic stream of the same shape for each dataset that is not at hand. Its results are
        called synthetic, and are not compared with the paper's.
    synthetic_rows : int or None
        Rows of each such stream, if not as many as the dataset has.
    on_plan : callable, optional
        Called once with what is going to be run.
    on_progress : callable, optional
        Called with the part of the plan and its `labelrace.evaluation.Progress`.

    Raises
    ------
    FileNotFoundError
        If none of the datasets is at hand.
    FileExistsError, ValueError
        If the folder holds runs already and they are not to be resumed, or are others.
    """
    asked = check_tables(tables)
    sources, missing = find_sources(
        [Path(folder) for folder in data], synthetic=synthetic, synthetic_rows=synthetic_rows
    )
    if not sources:
        raise FileNotFoundError(
            f"none of the paper's datasets is at hand ({', '.join(missing)}): see `labelrace data list`, give their "
            "folder by --data or LABELRACE_DATA, or run on synthetic ones by --synthetic"
        )
    plan = make_plan(sources, asked)
    if not plan:
        raise FileNotFoundError("the sweep is on CAL500 and enron, and neither is at hand")
    if on_plan is not None:
        on_plan(plan)
    outcomes = perform(plan, out, runs=runs, seed=seed, jobs=jobs, resume=resume, on_progress=on_progress)
    return make_summary(outcomes, sources, missing, asked)
