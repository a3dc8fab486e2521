"""The best labels of one sparse row, in one call of compiled loops (`labelrace.extreme.row_search_loops`).

A row asked alone takes some tens of microseconds of arithmetic and reading, and several times as long if it goes
through the matrices and checks that many rows share. Here it goes from its numbers to labels and probabilities at once.
What is found is the same up to round-off.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from labelrace.decisions import calibration, rules
from labelrace.decisions.rules import Rule
from labelrace.extreme import candidates, postings, row_search_loops
from labelrace.extreme import decoder as code_decoder
from labelrace.extreme import search as label_search
from labelrace.extreme.candidates import Candidates
from labelrace.extreme.row_search_loops import BLOCK
from labelrace.learners import design as columns
from labelrace.linear import rls
from labelrace.linear.versioned import read_all
from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray

_NO_PROBABILITIES: FloatArray = np.empty(0)


class RowForm(NamedTuple):
    """What the loops are given beside tables and the row."""

    # Intercepts of the learners; of the decoder the inverse, mean, rows and scale.
    learned: tuple[Any, ...]
    # Of the pool and the heads of both lists, one behind the other, each from the beginning of a block: labels, bounds,
    # sums by block, and how many there are of each.
    heads: tuple[IntArray, Array, Array, tuple[int, int, int]]
    # The rests of both lists, and which labels of the second are known from before.
    rests: tuple[Any, ...]
    # Features that offer labels, labels that are taken of these at the most, what bounds are multiplied by, the share
    # of the best score that is subtracted from all, and the largest number of a row.
    limits: tuple[int, int, float, float, float]
    # Probabilities by score: at the centres of bins, the first centre, and bins for each unit.
    calibration: tuple[FloatArray, float, float]


class RowSearch:
    """Finds the best labels of single rows, as long as the tables that it was made with are not changed.

    Parameters
    ----------
    decoder : code_decoder.Derived
    learners : rls.Derived
    tables : tuple
        What the learners have gained, postings, and the residual table.
    rule : Rule
        For probabilities.
    largest : float
        Rows with larger numbers are not searched so.
    """

    def __init__(
        self, decoder: code_decoder.Derived, learners: rls.Derived, tables: tuple[Any, ...], rule: Rule, largest: float
    ) -> None:
        self._decoder, self._learners, self._rule, self._largest = decoder, learners, rule, largest
        gained, lists, table = tables
        self._tables = learners.weights, gained, lists, decoder.sums, decoder.counts, table
        self._width, self._are_offered = len(learners.scaling.n_values), len(lists) > 0
        self._n_labels, self._n_pool = len(decoder.sums), len(decoder.pool.labels)

    @cached_property
    def _form(self) -> RowForm:
        """What the loops are given; made when somebody asks, as many only learn."""
        decoder = self._decoder
        rests = tuple(listed[decoder.n_head :] for listed in decoder.lists)
        return RowForm(
            (self._learners.intercepts, *decoder[:4]),
            _heads(decoder),
            (*rests, decoder.is_listed_before),
            (postings.OFFERING, candidates.OFFERED, label_search.ROUNDING, rules.OF_BEST, self._largest),
            (self._rule.probabilities, calibration.FIRST_CENTRE, calibration.BINS_PER_UNIT),
        )

    def candidates(self, X: AnyMatrix, n_exact: int = candidates.EXACT) -> Candidates | None:
        """Find the candidates of one row, best first; of equal scores, those of the first labels.

        None where it cannot be done so: where ``X`` is another matrix than one compressed row of doubles, a table has
        been changed meanwhile, or more labels are asked for than occurred recently.
        """
        found = self._found(X, n_exact, _NO_PROBABILITIES)
        return found and Candidates(found[0][None], found[1][None], are_ranked=True)

    def best(self, X: Any, k: int) -> tuple[list[int], list[float]] | None:
        """Find the ``k`` most likely labels of a sparse row and their probabilities, best first; None as before."""
        likely = np.empty(k)
        found = self._found(X, max(k, candidates.EXACT), likely)
        return found and (found[0][:k].tolist(), likely.tolist())

    def _found(self, X: Any, n_exact: int, likely: FloatArray) -> tuple[IntArray, Array] | None:
        """Find candidates of a row and their scores."""
        if not columns.is_sparse_row(X, self._width):
            return None
        n_best, n_exact = candidates.wanted(self._n_labels, n_exact, are_offered=self._are_offered)
        if self._n_pool < n_best:
            return None
        labels, scores = np.empty(n_best, np.int64), np.empty(n_best, np.float32)
        given = X.data, X.indices, X.indptr, *self._form, n_exact, labels, scores, likely
        return (labels, scores) if read_all(self._tables, row_search_loops.best_of_row, *given) else None


def is_possible(decoder: code_decoder.Derived, learners: rls.Derived) -> bool:
    """Tell whether single rows are searched so: not where little was learned, nor where data is dense or nominal."""
    scaled = learners.scaling
    return decoder.compiled and not scaled.length and columns.all_numeric(scaled.n_values)


def _heads(decoder: code_decoder.Derived) -> Any:
    """Put the labels that are looked at first one behind the other, in blocks whose sums are stored code by code."""
    parts = decoder.pool, *decoder.heads
    sizes = [-(-len(part.labels) // BLOCK) * BLOCK for part in parts]
    width = parts[0].sums.shape[1]
    names, bounds = np.full(sum(sizes), -1, np.int64), np.zeros(sum(sizes), np.float32)
    sums, first = np.zeros((sum(sizes), width), np.float32), 0
    for part, size in zip(parts, sizes, strict=True):
        here = slice(first, first + len(part.labels))
        names[here], bounds[here], sums[here], first = *part, first + size
    blocks = np.ascontiguousarray(sums.reshape(-1, BLOCK, width).transpose(0, 2, 1))
    return names, bounds, blocks, tuple(len(part.labels) for part in parts)
