"""The comparison as one HTML page that needs nothing else: no network, no other file. It looks like a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labelrace.experiments.page import FILTERS, SCRIPTS, STYLES
from labelrace.experiments.quality.charts import FEWEST_ENTRIES, reliability_panels
from labelrace.experiments.quality.models import REFERENCE
from labelrace.experiments.quality.rows import CALIBRATION, MEASURES, QualityBlock
from labelrace.experiments.quality.summary import QualityRanks, QualitySummary, lower_is_better, places
from labelrace.experiments.ranking import OVERALL
from labelrace.report.shell import render
from labelrace.report.text import plural

__all__ = ["render_quality"]


def render_quality(summary: QualitySummary) -> str:
    """Return the page of the comparison of online models."""
    settings, machine = summary.settings, summary.settings["machine"]
    kinds = _kinds(summary.blocks)
    return render(
        "quality.html",
        package="experiments",
        styles=STYLES,
        scripts=SCRIPTS,
        colors=max(map(len, kinds.values())),
        notes=summary.notes,
        filters={**FILTERS, "lower_is_better": lower_is_better},
        brand="labelrace bench",
        title="Online models compared",
        lead=f"{plural(len(summary.models), 'online model')} on {_on(kinds)}, each batch tested first, then learned. "
        f"{_runs(settings['runs'])}",
        footer=f"Made by labelrace {settings['version']}, seed {settings['seed']}, begun {settings['created']} on "
        f"{machine['platform']}, {plural(machine['cpus'], 'processor')}.",
        measures=MEASURES,
        reference=REFERENCE,
        fewest=FEWEST_ENTRIES,
        models=(*summary.models, REFERENCE),
        ranks=[_ranks(ranks, summary.models) for ranks in summary.ranks],
        blocks=[_block(block, summary.models) for block in summary.blocks],
        diagrams=[
            (title, [block.source.title for block in blocks], reliability_panels(blocks, (*summary.models, REFERENCE)))
            for title, blocks in kinds.items()
        ],
        drifting=[block for block in summary.blocks if block.source.synthetic],
    )


def _runs(runs: int) -> str:
    return (
        "Values are those of one run." if runs == 1 else f"Means over {runs} runs; models without randomness ran once."
    )


def _kinds(blocks: Sequence[QualityBlock]) -> dict[str, list[QualityBlock]]:
    """Return datasets and synthetic streams apart, as many of the two as there are."""
    kinds = {
        "Datasets": [block for block in blocks if not block.source.synthetic],
        "Synthetic streams": [block for block in blocks if block.source.synthetic],
    }
    return {title: of_kind for title, of_kind in kinds.items() if of_kind}


def _on(kinds: dict[str, list[QualityBlock]]) -> str:
    words = {"Datasets": "dataset", "Synthetic streams": "synthetic stream"}
    return " and ".join(plural(len(blocks), words[title]) for title, blocks in kinds.items())


def _ranks(ranks: QualityRanks, models: Sequence[str]) -> dict[str, Any]:
    """Return a rank table's rows, the best model first, with the best of each column marked."""
    columns = (*MEASURES, OVERALL)
    best = {c: min((ranks.averages[m, c] for m in models if (m, c) in ranks.averages), default=None) for c in columns}
    ordered = sorted(models, key=lambda model: ranks.averages.get((model, OVERALL), len(models)))
    cells = {
        model: [(ranks.averages.get((model, c)), ranks.averages.get((model, c)) == best[c]) for c in columns]
        for model in ordered
    }
    return {"title": plural(len(ranks.datasets), ranks.kind), "datasets": ranks.datasets, "rows": cells}


def _block(block: QualityBlock, models: Sequence[str]) -> dict[str, Any]:
    """Return a dataset's rows: value, deviation, rank and whether it is the best, measure by measure."""
    ranks = {measure: places(block, models, measure) for measure in MEASURES}
    best = {measure: min(of_measure.values(), default=None) for measure, of_measure in ranks.items()}
    rows = []
    for row in block.rows.values():
        cells = [
            {
                "value": row.values[measure],
                # Where labels are many and rare, what tells calibration errors apart is in the fourth decimal.
                "form": "%.4f" if measure == CALIBRATION else "%.3f",
                "rank": place,
                "best": place is not None and place == best[measure],
            }
            for measure, place in ((measure, ranks[measure].get(row.model)) for measure in MEASURES)
        ]
        rows.append({"row": row, "cells": cells, "reference": row.model == REFERENCE})
    return {"source": block.source, "rows": rows}
