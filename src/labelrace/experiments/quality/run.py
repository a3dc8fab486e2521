"""Every online model on every dataset, by one call."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from labelrace.evaluation import ModelSpec, Progress, prequential, run
from labelrace.experiments.quality.models import quality_models
from labelrace.experiments.quality.rows import QualityBlock, read_block
from labelrace.experiments.quality.sources import QualitySource, drifting_streams, find_datasets
from labelrace.experiments.quality.summary import QualitySummary, make_summary
from labelrace.streams.synthetic import SyntheticStream

__all__ = ["run_quality"]

Watcher: TypeAlias = Callable[[QualitySource, Progress], object]


def run_quality(
    out: str | os.PathLike[str],
    *,
    models: Iterable[str] | None = None,
    data: Iterable[str | os.PathLike[str]] = (),
    datasets: Sequence[str] = (),
    runs: int = 1,
    seed: int = 0,
    jobs: int = 1,
    resume: bool = False,
    synthetic: bool = False,
    synthetic_rows: int = 4000,
    on_plan: Callable[[Sequence[QualitySource]], object] | None = None,
    on_progress: Watcher | None = None,
    on_summary: Callable[[QualitySummary], object] | None = None,
) -> QualitySummary:
    """Compare online models on all datasets that are at hand: quality, calibration, time and ranks.

    Parameters
    ----------
    out : path
        The folder for the records of all runs.
    models : iterable of str or None
        Names for `labelrace.make_model`; by default all that are online.
    data : iterable of paths
        Folders to look for datasets in, before those of ``$LABELRACE_DATA`` and the cache.
    datasets : sequence of str
        Which datasets, if not all that are found.
    runs, seed, resume
        As `labelrace.evaluation.run` takes them.
    jobs : int
        As `labelrace.evaluation.run` takes it. Times are comparable where it is 1: nothing runs beside a model.
    synthetic : bool
        Whether to add synthetic streams, without drift and with each kind of it.
    synthetic_rows : int
        Rows of each such stream.
    on_plan : callable, optional
        Called once with the data.
    on_progress : callable, optional
        Called with the data and its `labelrace.evaluation.Progress`.
    on_summary : callable, optional
        Called after each dataset with what is known so far.

    Raises
    ------
    FileNotFoundError
        If no dataset is at hand and there are no synthetic streams.
    FileExistsError, ValueError
        If the folder holds runs already and they are not to be resumed, or are others; if a model is not known.
    """
    specs = quality_models(models)
    found = find_datasets([Path(folder) for folder in data], datasets)
    sources = [*found.sources, *(drifting_streams(synthetic_rows, seed) if synthetic else ())]
    if not sources:
        raise FileNotFoundError(
            "no dataset is at hand: see `labelrace data list`, give a folder of them by --data or LABELRACE_DATA, or "
            "run on synthetic streams by --synthetic"
        )
    if on_plan is not None:
        on_plan(sources)
    if jobs == 1:
        _warm_up(specs)
    blocks: list[QualityBlock] = []
    for source in sources:
        manifest, records = run(
            source.data,
            specs,
            out=Path(out, "runs", source.folder),
            labels=source.labels,
            batch_size=source.batch_size,
            runs=runs,
            seed=seed,
            jobs=jobs,
            resume=resume,
            skip_repeats=True,
            calibration=True,
            on_progress=None if on_progress is None else _telling(on_progress, source),
        )
        blocks.append(read_block(source, manifest, records))
        summary = make_summary(blocks, manifest, found, len(sources))
        if on_summary is not None:
            on_summary(summary)
    return summary


def _warm_up(specs: Iterable[ModelSpec]) -> None:
    """Let every model see a few rows, so that none pays for what is imported when it is first used."""
    sizes: dict[str, Any] = {"n_rows": 60, "n_features": 8, "n_labels": 6, "cardinality": 2.0}
    with threadpool_limits(limits=1):
        for stream in (SyntheticStream(**sizes), SyntheticStream(**sizes, density=0.3)):
            for spec in specs:
                # What goes wrong here goes wrong on the datasets too, and is recorded there.
                with suppress(Exception):
                    list(prequential(spec.make(0, stream.categorical), stream, 30))


def _telling(on_progress: Watcher, source: QualitySource) -> Callable[[Progress], object]:
    return lambda progress: on_progress(source, progress)
