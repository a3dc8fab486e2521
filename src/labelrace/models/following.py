"""Following chains: deciding link after link, many rows and several chains at once.

A chain is halved again and again: the first half is a chain itself, and one product tells the second half what it
found. Pieces of few links are followed link by link, in all chains at once.

Marking labels takes no more than the sign of each link's log odds. Single precision halves the work, and finds the sign
wherever the log odds are further from zero than its rounding errors can reach; at the few others, double precision
decides. So the marks are those of double precision throughout.

How far the errors reach: let x be the exact log odds of a link in a row, a start s (from the features, and from absent
labels) plus a term for each of the n labels present before it, and let T be the sum of these terms' magnitudes. In
single precision, the start and each term are rounded once when they are stored, and up to n times when they are added,
in whatever order; labels that are absent add exact zeros. With the unit roundoff u = 2⁻²⁴ and γ = (n + 1)u to first
order,

    |computed - x| ≤ γ(|s| + T) ≤ γ(|x| + 2T),   because |s| ≤ |x| + T.

If the signs differ, the left side is |computed| + |x|, hence |computed| ≤ 2γT: the start, which may be large, does not
matter. T is at most the sum of the magnitudes of all terms before the link. The bound used is 4(n + 4)u times that sum:
twice what is needed, for the higher orders and for the errors of double precision and of the bound itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from labelrace.typing import Array, FloatArray, IntArray

__all__ = ["Links", "log_odds", "marks"]

# Chains of at most so many links are followed link by link, longer ones by halves.
_BLOCK = 32
# Rows of the table worked on at once: what is picked from them is in the processor's cache.
_ROWS = 32
# 4u of single precision: see above.
_ROUNDING = 2.0**-22
# Added to the sum of magnitudes, against numbers too small for single precision.
_TINY = 1e-30
# Numbers looked up at once to decide single links in double precision: 2¹⁸ are 2 MB. If there are more, whole pieces
# are cheaper.
_LOOKUPS = 2**18


class Links(NamedTuple):
    """Chains, and what their links hear.

    Attributes
    ----------
    features : (l, n) array
        What the features say of each label, in each row.
    all_absent : (E, l) array
        For each chain, what a label hears from those before it if all of them are absent.
    present : (l, l) array
        What the presence of a label, a column, adds to that for another, a row.
    orders : (E, l) array
        The chains: labels in the order in which they are predicted.
    """

    features: FloatArray
    all_absent: FloatArray
    present: FloatArray
    orders: IntArray


def log_odds(links: Links) -> FloatArray:
    """Compute the log odds of all links, (E, l, n), in their chain's order."""
    odds, adds = arrange(links, np.float64)
    found = np.empty_like(odds)

    def keep(start: int, piece: FloatArray) -> None:
        found[:, start : start + piece.shape[1]] = piece

    follow(odds, adds, keep)
    return found


def marks(links: Links) -> Array:
    """Tell which links find their label present: 1 or 0, (E, l, n), in their chain's order."""
    odds, adds = arrange(links, np.float32)
    reach = np.stack([magnitudes(table) for table in adds])
    n_present = np.zeros((len(odds), odds.shape[2]), dtype=np.float32)

    def settle(start: int, piece: Array) -> None:
        stop = start + piece.shape[1]
        settle_in_double(links, odds, start, stop, doubtful(piece, reach[:, start:stop], n_present))
        n_present[...] += odds[:, start:stop].sum(axis=1)

    follow(odds, adds, settle)
    return odds


def arrange(links: Links, kind: Any) -> tuple[Array, Array]:
    """Bring what links hear into their chain's order: if all labels are absent, (E, l, n), and from each, (E, l, l)."""
    n_labels, n_rows = links.features.shape
    odds = np.empty((len(links.orders), n_labels, n_rows), dtype=kind)
    adds = np.empty((len(links.orders), n_labels, n_labels), dtype=kind)
    present = links.present.astype(kind, copy=False)
    for chain, order in enumerate(links.orders):
        for start in range(0, n_labels, _ROWS):
            stop = start + _ROWS
            block = order[start:stop]
            # Features far out of single precision's range become infinite, which has the right sign.
            with np.errstate(over="ignore"):
                np.add(
                    links.features[block],
                    links.all_absent[chain, block, None],
                    out=odds[chain, start:stop],
                    casting="same_kind",
                )
            # Of the table only what is used: what a link, a row, hears from those before it.
            present[block].take(order[:stop], axis=1, out=adds[chain, start:stop, :stop], mode="clip")
    return odds, adds


def magnitudes(adds: Array) -> Array:
    """Bound the rounding errors of each link of a chain, for one label present before it."""
    said = np.empty(len(adds), dtype=adds.dtype)
    for start in range(0, len(adds), _ROWS):
        stop = start + _ROWS
        np.abs(adds[start:stop, :stop]).sum(axis=1, out=said[start:stop])
    return np.float32(_ROUNDING) * (said + np.float32(_TINY))


def follow(odds: Array, adds: Array, settle: Callable[[int, Array], None], start: int = 0) -> None:
    """Follow the chains: add to the log odds of each link what the labels present before it add, and decide.

    Decisions, 1 or 0, take the place of log odds in ``odds``. After each piece, from link ``start`` on, ``settle`` gets
    its log odds, and may still change its decisions: no other piece has heard of them.
    """
    n_links = odds.shape[1]
    if n_links > _BLOCK:
        half = n_links // 2
        follow(odds[:, :half], adds[:, :half, :half], settle, start)
        for chain in range(len(odds)):
            odds[chain, half:] += adds[chain, half:, :half] @ odds[chain, :half]
        follow(odds[:, half:], adds[:, half:, half:], settle, start + half)
        return
    piece = odds.copy()
    for i in range(n_links):
        link = piece[:, i]
        if i:
            link += (adds[:, i : i + 1, :i] @ odds[:, :i])[:, 0]
        np.greater_equal(link, 0.0, out=odds[:, i])
    settle(start, piece)


def doubtful(piece: Array, reach: Array, n_present: Array) -> tuple[IntArray, ...]:
    """Find log odds that rounding errors may have brought to the other side of zero: their chains, links and rows."""
    # Labels of the piece itself may be present too.
    n_terms = n_present + np.float32(piece.shape[1] + 4)
    # One bound for all leaves few.
    near = np.flatnonzero(np.abs(piece) <= reach.max(initial=0) * n_terms.max(initial=0))
    chains, numbers, rows = np.unravel_index(near, piece.shape)
    is_doubtful = np.abs(piece[chains, numbers, rows]) <= reach[chains, numbers] * n_terms[chains, rows]
    return chains[is_doubtful], numbers[is_doubtful], rows[is_doubtful]


def settle_in_double(links: Links, marked: Array, start: int, stop: int, found: tuple[IntArray, ...]) -> None:
    """Decide a piece in double precision, in the chains and rows that have a doubtful link in it.

    Most doubtful decisions are right. A row in which all are right, each given the decisions before it, has nothing to
    correct: its first wrong decision would be one of them.
    """
    chains, numbers, rows = found
    if 0 < len(chains) * stop <= _LOOKUPS:
        is_present = single_links(links, marked, stop, chains, start + numbers, rows) >= 0
        is_wrong = is_present != marked[chains, start + numbers, rows]
        chains, rows = chains[is_wrong], rows[is_wrong]
    for chain in np.unique(chains):
        follow_in_double(links, marked[chain], start, stop, chain, np.unique(rows[chains == chain]))


def single_links(
    links: Links, marked: Array, stop: int, chains: IntArray, numbers: IntArray, rows: IntArray
) -> FloatArray:
    """Compute the log odds of single links, given by chain, place in it and row, from the decisions before them."""
    labels = links.orders[chains, numbers]
    # Decisions at and after the link itself count for nothing.
    is_present = marked[chains, :stop, rows] * (np.arange(stop) < numbers[:, None])
    adds = links.present[labels[:, None], links.orders[chains, :stop]]
    heard: FloatArray = np.einsum("ij,ij->i", adds, is_present)
    return heard + (links.features[labels, rows] + links.all_absent[chains, labels])


def follow_in_double(links: Links, marked: Array, start: int, stop: int, chain: int, rows: IntArray) -> None:
    """Follow a piece of one chain from scratch, for some rows, after the decisions before it in ``marked``."""
    order = links.orders[chain]
    piece = order[start:stop]
    adds = links.present[piece[:, None], order[:stop]]
    odds = links.features[piece[:, None], rows] + links.all_absent[chain, piece, None]
    odds += adds[:, :start] @ marked[:start, rows].astype(np.float64)
    follow(odds[None], adds[None, :, start:], lambda start, piece: None)
    marked[start:stop, rows] = odds
