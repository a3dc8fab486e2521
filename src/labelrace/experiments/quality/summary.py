"""All that came out: the datasets' rows, and average ranks over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labelrace.evaluation import is_loss, rank
from labelrace.experiments.quality.models import REFERENCE
from labelrace.experiments.quality.rows import CALIBRATION, MEASURES, QualityBlock
from labelrace.experiments.quality.sources import Found
from labelrace.experiments.ranking import OVERALL
from labelrace.measures import PAPER_MEASURES
from labelrace.report.text import listing, plural

__all__ = ["QualityRanks", "QualitySummary", "lower_is_better", "make_summary", "places"]

# Values that differ only by the order in which they were summed are ties.
_TIE_DIGITS = 12


@dataclass(frozen=True)
class QualityRanks:
    """Average ranks over datasets.

    Parameters
    ----------
    kind : str
        Of what: "dataset" or "synthetic stream".
    datasets : tuple of str
    averages : dict
        By model, and measure or "overall", which is the mean over the paper's five. Models that tie share the mean of
        their ranks; one that failed ranks after all others, and one that gives no probabilities has no rank in those.
    """

    kind: str
    datasets: tuple[str, ...]
    averages: dict[tuple[str, str], float]


@dataclass(frozen=True)
class QualitySummary:
    """What is known so far. `settings` are those of the runs and the machine, as manifests have them."""

    settings: dict[str, Any]
    models: tuple[str, ...]
    blocks: list[QualityBlock]
    ranks: list[QualityRanks]
    notes: list[str]


def make_summary(
    blocks: Sequence[QualityBlock], manifest: Mapping[str, Any], found: Found, planned: int
) -> QualitySummary:
    """Put together what is known after some of the datasets.

    Parameters
    ----------
    blocks : sequence of QualityBlock
    manifest : mapping
        Of the last dataset.
    found : Found
        What was looked for.
    planned : int
        How many datasets and streams there are to be.
    """
    settings = {key: manifest[key] for key in ("runs", "seed", "version", "created", "machine")}
    models = tuple(name for name in blocks[0].rows if name != REFERENCE)
    kinds = {
        "dataset": [block for block in blocks if not block.source.synthetic],
        "synthetic stream": [block for block in blocks if block.source.synthetic],
    }
    ranks = [_ranks(kind, of_kind, models) for kind, of_kind in kinds.items() if of_kind and len(models) > 1]
    return QualitySummary(settings, models, list(blocks), ranks, _notes(blocks, found, planned))


def lower_is_better(measure: str) -> bool:
    """Tell whether lower values of a measure of this benchmark are better."""
    return measure == CALIBRATION or is_loss(measure)


def places(block: QualityBlock, models: Sequence[str], measure: str) -> dict[str, float]:
    """Rank the models on one dataset by one measure; nobody is ranked where there is no value at all."""
    rows = [block.rows[model] for model in models]
    ranked = [row for row in rows if row.failed or row.values[measure] is not None]
    estimates = [row.values[measure] for row in ranked]
    if not any(estimates):
        return {}
    values = [np.nan if estimate is None else estimate.mean for estimate in estimates]
    ranks = rank(values, lower_is_better=lower_is_better(measure), ties="average", digits=_TIE_DIGITS)
    return {row.model: float(place) for row, place in zip(ranked, ranks, strict=True)}


def _ranks(kind: str, blocks: Sequence[QualityBlock], models: Sequence[str]) -> QualityRanks:
    averages = {}
    for measure in MEASURES:
        of_blocks = [places(block, models, measure) for block in blocks]
        for model in models:
            ranks = [of_block[model] for of_block in of_blocks if model in of_block]
            if ranks:
                averages[model, measure] = float(np.mean(ranks))
    for model in models:
        of_model = [averages[model, measure] for measure in PAPER_MEASURES if (model, measure) in averages]
        if of_model:
            averages[model, OVERALL] = float(np.mean(of_model))
    return QualityRanks(kind, tuple(block.source.name for block in blocks), averages)


def _notes(blocks: Sequence[QualityBlock], found: Found, planned: int) -> list[str]:
    """Return what a reader must know before believing the numbers, in sentences."""
    notes = []
    if len(blocks) < planned:
        notes.append(f"Not complete: {len(blocks)} of {plural(planned, 'dataset')} so far.")
    if found.missing:
        notes.append(
            f"The paper's datasets that are not at hand, and that nothing stands in for: {listing(found.missing)}."
        )
    notes += [f"{sentence.rstrip('.')}." for sentence in found.unreadable]
    if any(block.source.synthetic for block in blocks):
        notes.append("Synthetic streams are marked, and ranked by themselves.")
    for block in blocks:
        if not any(row.values[PAPER_MEASURES[0]] for row in block.rows.values()):
            notes.append(f"{block.source.title} gave no values: it has no second batch, or every model failed.")
        notes += [
            f"{row.model} failed on {block.source.title}: {row.failed}" for row in block.rows.values() if row.failed
        ]
    return notes
