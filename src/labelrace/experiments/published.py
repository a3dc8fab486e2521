"""What the paper printed, and what its own program gives when it is run again.

The numbers are in four files beside this one:

``published.csv``
    Tables 2 to 4 of Z. Ahmadi and S. Kramer, *Online multi-label classification: a label compression method*,
    arXiv:1804.01491, taken from the LaTeX source there. The source has 14 measures that the print leaves out.
``ranks.csv``
    The average ranks at the foot of its Tables 2 and 3, as printed.
``datasets.csv``
    Its Table 1, and the batch sizes of its section 4.1.
``rerun.csv``
    Means over runs of the authors' program (Java, on Mulan and Weka), run again by the labelrace developers on the
    public CAL500 and enron.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import NamedTuple

__all__ = ["PAPER_RUNS", "Facts", "Reference", "paper_datasets", "printed_ranks", "published", "rerun"]

# How often the authors ran each method.
PAPER_RUNS = 10


class Reference(NamedTuple):
    """A number to compare with.

    Parameters
    ----------
    value : float
    decimals : int
        How many were printed: the number is known to half a unit of the last.
    sd : float or None
        Standard deviation over runs, where it was printed.
    runs : int
    rank : int or None
        Among the methods of its table, where it was printed.
    """

    value: float
    decimals: int
    sd: float | None
    runs: int
    rank: int | None = None

    @property
    def text(self) -> str:
        """The number as printed."""
        return f"{self.value:.{self.decimals}f}"


class Facts(NamedTuple):
    """What Table 1 says of a dataset: sizes, mean number and share of labels on a row, distinct label sets."""

    rows: int
    features: int
    labels: int
    cardinality: float
    density: float
    label_sets: int


@cache
def published() -> dict[tuple[str, str, str, str], Reference]:
    """Return the paper's numbers by table ("2", "3", "4"), dataset, method and measure.

    Table 3 repeats two of Table 2's methods without their standard deviations, which it says are to be looked up there.

    Examples
    --------
    >>> published()["2", "CAL500", "race-cls-fixed", "micro_f1"]
    Reference(value=0.35, decimals=2, sd=0.02, runs=10, rank=1)
    """
    found = {}
    for row in _rows("published.csv"):
        table = row["table"].removeprefix("table")[:1]
        rank = int(row["rank"]) if row["rank"] else None
        reference = Reference(*_number(row["value"]), _optional(row["std"]), PAPER_RUNS, rank)
        found[table, row["dataset"], row["method"], row["measure"]] = reference
    for (table, dataset, method, measure), reference in found.items():
        repeated = found.get(("2", dataset, method, measure))
        if table == "3" and repeated is not None:
            found[table, dataset, method, measure] = reference._replace(sd=repeated.sd)
    return found


@cache
def rerun() -> dict[tuple[str, str, str], Reference]:
    """Return the rerun's numbers, all of the prequential evaluation, by dataset, method and measure.

    Examples
    --------
    >>> rerun()["enron", "race-cls-fixed", "example_accuracy"]
    Reference(value=0.195, decimals=3, sd=0.05, runs=10, rank=None)
    """
    return {
        (row["dataset"], row["method"], row["measure"]): Reference(
            *_number(row["value"]), _optional(row["sd"]), int(row["runs"])
        )
        for row in _rows("rerun.csv")
    }


@cache
def printed_ranks() -> dict[tuple[str, str, str], float]:
    """Return the average ranks that the paper printed, by table, method, and measure or "overall".

    Examples
    --------
    >>> printed_ranks()["3", "race-reg-fixed", "overall"]
    2.07
    """
    return {(row["table"], row["method"], row["measure"]): float(row["average_rank"]) for row in _rows("ranks.csv")}


@cache
def paper_datasets() -> dict[str, tuple[Facts, int]]:
    """Return of each of the paper's datasets its facts and the size of its batches.

    Examples
    --------
    >>> facts, batch_size = paper_datasets()["enron"]
    >>> facts.labels, batch_size
    (53, 100)
    """
    found = {}
    for row in _rows("datasets.csv"):
        facts = Facts(
            int(row["rows"]),
            int(row["features"]),
            int(row["labels"]),
            float(row["cardinality"]),
            float(row["density"]),
            int(row["label_sets"]),
        )
        found[row["dataset"]] = facts, int(row["batch_size"])
    return found


def _rows(name: str) -> Iterator[dict[str, str]]:
    text = (resources.files("labelrace.experiments") / name).read_text(encoding="utf-8")
    return iter(csv.DictReader(text.splitlines()))


def _number(text: str) -> tuple[float, int]:
    return float(text), len(text.partition(".")[2])


def _optional(text: str) -> float | None:
    return float(text) if text else None
