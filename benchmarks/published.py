"""What the paper printed, what its own program gives when it is run again, and whether a value agrees with these.

The numbers are in four files in the folder ``data``:

``published.csv``
    Tables 2 to 4 of Z. Ahmadi and S. Kramer, *Online multi-label classification: a label compression method*,
    arXiv:1804.01491, taken from the LaTeX source there. The source has 14 measures that the print leaves out.
``ranks.csv``
    The average ranks at the foot of its Tables 2 and 3, as printed.
``datasets.csv``
    Its Table 1, and the batch sizes of its section 4.1. A line for each dataset is all that the benchmark needs to
    know of it; files are looked up by the dataset's name.
``rerun.csv``
    Means over runs of the authors' program (Java, on Mulan and Weka), run again by the labelrace developers on the
    public CAL500 and enron.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, get_type_hints

# What labelrace calls the paper's methods, where the names differ: its PLST is MEKA's.
_OUR_NAMES = {"plst": "plst-meka"}
# How often the authors ran each method.
_PAPER_RUNS = 10
# Why a value agrees. "rounding": it rounds to the printed one, or is as near. "chance": the rest is within two
# standard errors of the difference of the two means. "spread": it is within one standard deviation, over runs, of the
# printed mean, but further off than two means of ten runs should be.
Reason: TypeAlias = Literal["rounding", "chance", "spread", "differs"]
REASONS: tuple[Reason, ...] = ("rounding", "chance", "spread", "differs")
_ROUND_OFF = 1e-9
_STANDARD_ERRORS = 2


class Reference(NamedTuple):
    """A number to compare with: known to half a unit of its last decimal, with deviation and rank where printed."""

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

    rows: int = 0
    features: int = 0
    labels: int = 0
    cardinality: float = 0.0
    density: float = 0.0
    label_sets: int = 0


@cache
def published() -> dict[tuple[str, str, str, str], Reference]:
    """Return the paper's numbers by table ("2", "3", "4"), dataset, our name of the method, and measure.

    Table 3 repeats two of Table 2's methods without their standard deviations, which it says are to be looked up there.
    """
    references = {}
    for row in _rows("published.csv"):
        table, method = row["table"].removeprefix("table")[:1], _OUR_NAMES.get(row["method"], row["method"])
        reference = _reference(row["value"], row["std"], _PAPER_RUNS, row["rank"])
        references[table, row["dataset"], method, row["measure"]] = reference
    for (table, dataset, method, measure), reference in references.items():
        repeated = references.get(("2", dataset, method, measure))
        if table == "3" and repeated is not None:
            references[table, dataset, method, measure] = reference._replace(sd=repeated.sd)
    return references


@cache
def rerun() -> dict[tuple[str, str, str], Reference]:
    """Return the rerun's numbers, all of the prequential evaluation, by dataset, method and measure."""
    return {
        (row["dataset"], row["method"], row["measure"]): _reference(row["value"], row["sd"], int(row["runs"]))
        for row in _rows("rerun.csv")
    }


@cache
def printed_ranks() -> dict[tuple[str, str, str], float]:
    """Return the average ranks that the paper printed, by table, method, and measure or "overall"."""
    return {(row["table"], row["method"], row["measure"]): float(row["average_rank"]) for row in _rows("ranks.csv")}


@cache
def paper_datasets() -> dict[str, tuple[Facts, int]]:
    """Return of each of the paper's datasets its facts and the size of its batches."""
    kinds = get_type_hints(Facts)
    return {
        row["dataset"]: (Facts(**{name: kind(row[name]) for name, kind in kinds.items()}), int(row["batch_size"]))
        for row in _rows("datasets.csv")
    }


def judge(mean: float, sd: float | None, runs: int, theirs: Reference) -> tuple[float, Reason]:
    """Compare our mean over runs with a printed one; return ours minus theirs, and why they agree, or that they differ.

    Where no standard deviation was printed, that of our runs stands in for it: if the two programs are the same, so
    are their deviations.
    """
    difference = mean - theirs.value
    # What is left after as much of the difference as rounding explains.
    rest = abs(difference) - 0.5 * 10.0**-theirs.decimals - _ROUND_OFF
    our_sd = sd or 0.0
    their_sd = our_sd if theirs.sd is None else theirs.sd
    error = math.sqrt(our_sd**2 / runs + their_sd**2 / theirs.runs)
    if rest <= 0:
        return difference, "rounding"
    if rest <= _STANDARD_ERRORS * error:
        return difference, "chance"
    if theirs.sd is not None and rest <= theirs.sd:
        return difference, "spread"
    return difference, "differs"


def _rows(name: str) -> Iterator[dict[str, str]]:
    text = (Path(__file__).parent / "data" / name).read_text(encoding="utf-8")
    return iter(csv.DictReader(text.splitlines()))


def _reference(value: str, sd: str, runs: int, rank: str = "") -> Reference:
    decimals = len(value.partition(".")[2])
    return Reference(float(value), decimals, float(sd) if sd else None, runs, int(rank) if rank else None)
