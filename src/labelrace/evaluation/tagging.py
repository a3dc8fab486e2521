"""How good a tagger is on a tagged table, and how two of them differ; nothing is learned.

F1, precision and recall of tags are scikit-learn's with ``zero_division=0``, over the tags that occur or are predicted.
The example F1 is the mean of `labelrace.tables.state.f1` over rows.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from labelrace.measures import calibration
from labelrace.measures.calibration import Reliability
from labelrace.tables import TagCounts, Tagger
from labelrace.tables.known_rows import row_keys
from labelrace.tables.read import Table
from labelrace.tables.state import F1_OF_NOTHING, count_tested, f1
from labelrace.tables.tag_details import f1_with_parents, parent_of

CONVENTION = (
    "F1, precision and recall as scikit-learn computes them, over the tags that occur or are predicted; "
    f"what is divided by 0 counts as 0. {F1_OF_NOTHING}"
)
PRECISIONS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""The target precisions of a test."""

# The most likely tags of each row, whose probabilities are compared with how often they are right.
_N_LIKELY = 10


class MeasuredRow(NamedTuple):
    """A row of a tagged table: its number, the tags that people gave, and those predicted."""

    number: int
    true: set[str]
    predicted: set[str]

    @property
    def f1(self) -> float:
        """The F1 of the row."""
        return f1(self.true, self.predicted)


class PrecisionResult(NamedTuple):
    """What a target precision gave."""

    target: float
    n_right: int = 0
    n_given: int = 0
    n_handled: int = 0  # rows that got a tag


class Measured(NamedTuple):
    """What a test has shown."""

    rows: list[MeasuredRow]
    reliability: Reliability
    targets: list[PrecisionResult]
    with_parents: float | None  # F1 where a parent is half right; None if no tag has one
    n_known: int = 0  # rows that the tagger has learned

    @property
    def counts(self) -> dict[str, TagCounts]:
        """How often each tag occurred, was predicted, and was right; the most frequent first."""
        counts = count_tested({}, ((row.true, row.predicted) for row in self.rows))
        return dict(sorted(counts.items(), key=lambda pair: (-pair[1].tested, pair[0])))

    @property
    def confusions(self) -> list[tuple[str, str, int]]:
        """A tag that was predicted, one that was missed in the same row, and in how many rows; most rows first."""
        pairs = Counter(
            (wrong, missed)
            for row in self.rows
            for wrong in sorted(row.predicted - row.true)
            for missed in sorted(row.true - row.predicted)
        )
        return [
            (wrong, missed, n) for (wrong, missed), n in sorted(pairs.items(), key=lambda pair: (-pair[1], pair[0]))
        ]

    def measures(self) -> dict[str, float]:
        """Compute all measures."""
        counts = self.counts.values()
        total = reduce(TagCounts.plus, counts, TagCounts())
        found = {
            "example_f1": float(np.mean([row.f1 for row in self.rows])),
            "micro_f1": total.f1(),
            "macro_f1": float(np.mean([one.f1() for one in counts])) if counts else 0.0,
            "precision": total.precision(),
            "recall": total.recall(),
            "calibration_error": self.reliability.error,
        }
        return found if self.with_parents is None else found | {"f1_with_parents": self.with_parents}


def measure_tagger(tagger: Tagger, tables: Iterable[Table], precisions: Sequence[float] = ()) -> Measured:
    """Predict a tagged table and compare.

    Parameters
    ----------
    tagger : Tagger
        It is not changed.
    tables : iterable of Table
        The batches of the table.
    precisions : sequence of float, default=()
        Target precisions, see `PRECISIONS`.

    Raises
    ------
    ValueError
        If no row has tags.

    Examples
    --------
    >>> rows = [{"body": f"My {tag} of {i}", "tags": tag} for i in range(9) for tag in ("oven", "lamp")]
    >>> tagger = Tagger("tags", random_state=0).fit(rows)
    >>> measure_tagger(tagger, [Table({"body": ["The oven"], "tags": ["oven"]}, 1)]).measures()["recall"]
    1.0
    """
    rows, counts, sums = list[MeasuredRow](), calibration.empty(), [PrecisionResult(one) for one in precisions]
    parents, start, state, n_known = list[float](), 0, tagger.state, 0
    askers = [copy.copy(tagger).set_params(precision=one) for one in precisions]
    for whole in tables:
        # All rows with tags: what somebody has corrected is not better tested than the rest.
        for table, tags, _ in tagger.tagged_batches(whole, confirmed=True):
            numbers, truth = state.names.tagged(tags, tagger.untagged)
            part = table.take(numbers)
            if numbers:
                keys = row_keys(state.features.columns, part)
                n_known += int((state.known_rows.find(keys)[0] & (keys != 0)).sum())
                found = tagger.predict(part)
                rows += [
                    MeasuredRow(start + n, *both)
                    for n, both in zip(numbers, zip(truth, found, strict=True), strict=True)
                ]
                parents += [f1_with_parents(one, two, state.details) for one, two in zip(truth, found, strict=True)]
                counts = _with_likely(counts, tagger.predict_top(part, _N_LIKELY), truth)
                sums = [_counted(one, asker.suggest(part), truth) for one, asker in zip(sums, askers, strict=True)]
            start += table.n_rows
    if not rows:
        raise ValueError("The table must have rows with tags to test a tagger, got none.")
    has_parents = any(parent_of(tag, state.details) for tag in state.counts)
    return Measured(rows, counts, sums, float(np.mean(parents)) if has_parents else None, n_known)


def _with_likely(counts: Reliability, likely: list[list[tuple[str, float]]], truth: list[set[str]]) -> Reliability:
    pairs = [(tag in true, p) for row, true in zip(likely, truth, strict=True) for tag, p in row]
    if not pairs:
        return counts
    present, probabilities = np.array(pairs, dtype=float).T
    return calibration.add(counts, present[:, None], probabilities[:, None])


def _counted(sums: PrecisionResult, suggested: list[Any], truth: list[set[str]]) -> PrecisionResult:
    right = sum(len(true.intersection(one.tags)) for one, true in zip(suggested, truth, strict=True))
    given, handled = sum(len(one.tags) for one in suggested), sum(bool(one.tags) for one in suggested)
    return PrecisionResult(sums.target, sums.n_right + right, sums.n_given + given, sums.n_handled + handled)


class Difference(NamedTuple):
    """A measure of two taggers, the second minus the first, and the standard error of that; NaN if none is known."""

    first: float
    second: float
    difference: float
    standard_error: float


def compare_tested(one: Measured, two: Measured) -> dict[str, Difference]:
    """Compare two tests on the same rows, measure by measure; errors are of the paired differences of rows.

    A share of sums, such as precision, changes with a row by ``(a - share · b) / mean of b``, where the row adds ``a``
    to the one sum and ``b`` to the other: the standard error is that of the mean of these.
    """
    found = {}
    values = [one.measures(), two.measures()]
    for name in values[0].keys() & values[1].keys():
        first, second = values[0][name], values[1][name]
        changes = [_influences(tested, name, value) for tested, value in ((one, first), (two, second))]
        error = float("nan")
        if changes[0] is not None and changes[1] is not None and len(one.rows) > 1:
            error = float(np.std(changes[1] - changes[0], ddof=1) / np.sqrt(len(one.rows)))
        found[name] = Difference(first, second, second - first, error)
    return {name: found[name] for name in values[0] if name in found}


def _influences(tested: Measured, measure: str, value: float) -> Any:
    """Compute how much each row moves a measure; None for those that are no means or shares of sums."""
    counts = np.array([(len(row.true & row.predicted), len(row.true), len(row.predicted)) for row in tested.rows])
    right, n_true, n_predicted = counts.T.astype(np.float64)
    if measure == "example_f1":
        return np.array([row.f1 for row in tested.rows])
    shares = {
        "micro_f1": (2 * right, n_true + n_predicted),
        "precision": (right, n_predicted),
        "recall": (right, n_true),
    }
    if measure not in shares or not shares[measure][1].any():
        return None
    above, below = shares[measure]
    return (above - value * below) / below.mean()
