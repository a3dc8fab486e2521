"""What is to be run for which table of the paper."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from labelrace.evaluation import ModelSpec
from labelrace.experiments.published import paper_datasets
from labelrace.experiments.sources import BenchSource

__all__ = ["BASELINES", "HOLDOUT", "SWEPT", "TABLES", "VARIANTS", "Part", "check_tables", "make_plan", "sweep_label"]

VARIANTS = ("race-cls-fixed", "race-cls-adaptive", "race-reg-fixed", "race-reg-adaptive")
BASELINES = ("majority", "negative", "obr", "oecc")
HOLDOUT = ("race-cls-adaptive", "race-cls-adaptive-iter3", "race-offline", "plst")
SWEPT = ("race-cls-adaptive", "race-reg-fixed")

# The parts that a table is made of. Each is recorded in a folder of its own, whatever tables are asked for, so that
# a later call for more tables can go on from there.
TABLES: dict[str, tuple[str, ...]] = {
    "2": ("variants",),
    "3": ("variants", "baselines"),
    "4": ("holdout",),
    "sweep": ("sweep",),
}
_SWEEP_DATASETS = ("CAL500", "enron")
# About how much longer these take than the others, for the estimate of the time left.
_SLOW = {"oecc": 8.0, "race-reg-fixed": 2.0, "race-reg-adaptive": 2.0}
_HOLDOUT_COST = 0.3


@dataclass(frozen=True)
class Part:
    """One call of `labelrace.evaluation.run`: some models on a dataset, under one protocol.

    Parameters
    ----------
    source : BenchSource
    kind : str
        Which of the parts of `TABLES`.
    models : tuple of ModelSpec
    """

    source: BenchSource
    kind: str
    models: tuple[ModelSpec, ...]

    @property
    def protocol(self) -> Literal["prequential", "holdout"]:
        """The evaluation: in Table 4 rows are held out, everywhere else it is test, then train."""
        return "holdout" if self.kind == "holdout" else "prequential"

    @property
    def measures(self) -> str:
        """All measures where the paper's source has all, else those that it prints."""
        return "all" if self.kind in ("variants", "baselines") else "paper"

    @property
    def folder(self) -> str:
        """Where its records go, below the benchmark's folder."""
        return f"runs/{self.source.folder}/{self.kind}"

    @property
    def title(self) -> str:
        """What progress calls it."""
        return f"{self.source.title}, {self.kind}"

    @property
    def cost(self) -> float:
        """About how long one run of all its models takes, in no particular unit."""
        facts, _ = paper_datasets()[self.source.name]
        weights = sum(_SLOW.get(model.name, 1.0) for model in self.models)
        return facts.rows * facts.labels * weights * (_HOLDOUT_COST if self.kind == "holdout" else 1.0)


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
            raise ValueError(f"there is no table {text!r}: give some of {', '.join(TABLES)}")
    return [table for table in TABLES if table in asked]


def make_plan(sources: Sequence[BenchSource], tables: Iterable[str]) -> list[Part]:
    """List what must be run for these tables on these datasets, small datasets first."""
    kinds = {kind for table in check_tables(tables) for kind in TABLES[table]}
    parts = []
    for source in sorted(sources, key=lambda source: paper_datasets()[source.name][0].rows):
        fixed = {"variants": VARIANTS, "baselines": BASELINES, "holdout": HOLDOUT}
        parts += [Part(source, kind, tuple(map(ModelSpec, fixed[kind]))) for kind in fixed if kind in kinds]
        if "sweep" in kinds and source.name in _SWEEP_DATASETS:
            parts.append(Part(source, "sweep", tuple(_sweep(paper_datasets()[source.name][0].labels))))
    return parts


def sweep_label(method: str, n_components: int) -> str:
    """Return what records call a method with this many pseudo labels."""
    return f"{method} k={n_components}"


def _sweep(n_labels: int) -> list[ModelSpec]:
    """List the methods of the sweep with k, 2k, … k² pseudo labels, k being the usual number of them."""
    least = math.ceil(math.log2(n_labels))
    counts = range(least, least**2 + 1, least)
    return [ModelSpec(name, {"n_components": k}, sweep_label(name, k)) for name in SWEPT for k in counts]
