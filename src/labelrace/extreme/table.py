"""A hash table of weights for pairs of a feature and a label: what compressed labels have lost.

Compressed labels share their learners, so a word that speaks for one label speaks for all with the same code. For a
short list of labels of each row, its candidates, a table learns the difference:

    score_j ← score_j + Σ_f x_f T[h(f, j)].

The error of a candidate is its label less the score, squared hinge as in `labelrace.linear.rls`, and the step that of
the same learners with a block's precisions ``d``: ``T[h(f, j)] += e_j x_f / d_f / (1 + Σ x_f² / d_f)``. Absent
labels with scores that are hardly above 0 are no error, so that most pairs never need a weight.

*Slots have owners.* A plain hash table adds up what collides. Here the last eight bits of a weight's mantissa, which a
weight does not need, are a tag of the pair that owns the slot. Other pairs find nothing there, and take the slot where
their step is at least half as large as the weight in it. On a stream of 34,764 labels, with an eighth of the slots that
are in use without a limit, nDCG@5 falls from .482 to .478 so, and to .466 with a plain hash table (docs/extreme.md).

Costs: a row with ``z`` non-zeros and ``c`` candidates reads ``z c`` slots; they are computed, not stored.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.base.sparse import as_rows, entry_rows
from labelrace.extreme import table_loops as residual_table_loops
from labelrace.extreme.codes import mixed
from labelrace.linear.versioned import VersionedRows, read_all
from labelrace.typing import AnyMatrix, Array, BoolArray, FloatArray, IntArray

# The bits of a weight that are its owner's tag, and the weight, nearly 0, of a slot that was just taken.
_TAG, _NEW = np.uint32(0xFF), np.uint32(0x0D000000)
# Share of a slot's weight that a step must have to take it.
_TAKES = 0.5
# Scores up to which an absent label is no error.
_SLACK = 0.06
# Slots that are looked at together.
_CELLS = 1 << 17
# Rows of a block at the most, as none of them sees what the others teach: 500 at once go too far where labels are few.
_MOST_ROWS = 128


def init(n_slots: int) -> Any:
    """Make a table without weights."""
    return VersionedRows.taking(np.zeros((n_slots, 1), np.float32))


class _Changes(NamedTuple):
    """What is changed: places, tags of the pairs that change them, steps, and the words there."""

    places: IntArray
    tags: Array
    steps: Array
    words: Array


class _Slots(NamedTuple):
    """The slots of a block: one for each non-zero of a row and each of its candidates, (z, c)."""

    places: IntArray
    tags: Array
    rows: IntArray
    values: Array


def _slots(n_slots: int, Z: AnyMatrix, labels: IntArray) -> _Slots:
    rows = entry_rows(Z)
    hashed = mixed(labels, 3).take(rows, axis=0)
    hashed += mixed(Z.indices, 4)[:, None]
    # The sum alone would let two labels that collide for one feature collide for all.
    hashed ^= hashed >> np.uint32(15)
    hashed *= np.uint32(0x2C1B3C6D)
    hashed ^= hashed >> np.uint32(12)
    places = np.multiply(hashed, np.int64(n_slots), dtype=np.int64)
    places >>= 32
    hashed &= _TAG
    return _Slots(places, hashed, rows, Z.data)


def _read(table: VersionedRows, slots: _Slots) -> tuple[Array, BoolArray]:
    """Read the words of slots, and tell which are owned by who asks."""
    words = table.rows(slots.places.ravel()).reshape(slots.places.shape)
    owner = words.view(np.uint32) & _TAG
    return words, owner == slots.tags


def _sums(Z: AnyMatrix, slots: _Slots, words: Array, owned: BoolArray, width: int, *, compiled: bool) -> Array:
    """Sum the weights of each row's candidates, times the row's values."""
    sums = np.zeros((Z.shape[0], width), np.float32)
    if compiled:
        # The order of the sum is that of the other loops, to the bit.
        residual_table_loops.sum_read(Z.indptr, slots.values, words.view(np.uint32).ravel(), slots.tags.ravel(), sums)
        return sums
    terms = words * owned
    terms *= slots.values[:, None]
    filled = np.flatnonzero(np.diff(Z.indptr))
    if len(filled):
        sums[filled] = np.add.reduceat(terms, Z.indptr[filled], axis=0)
    return sums


def _blocks(Z: AnyMatrix, width: int) -> list[slice]:
    """Cut rows into blocks of a bounded number of slots, and of rows."""
    size = min(_MOST_ROWS, max(1, _CELLS // max(1, width * (Z.nnz // max(Z.shape[0], 1) + 1))))
    return [slice(first, min(first + size, Z.shape[0])) for first in range(0, Z.shape[0], size)]


def scores(table: VersionedRows, Z: AnyMatrix, labels: IntArray, *, compiled: bool = False) -> Array:
    """Compute what the table adds to the scores of candidates ``labels``, (n, c)."""
    Z, sums = as_rows(Z), np.zeros(labels.shape, np.float32)
    if compiled and read_all((table,), residual_table_loops.sum_slots, *_rows(Z, labels), sums):
        return sums
    for here in _blocks(Z, labels.shape[1]):
        z = Z[here]
        slots = _slots(table.shape[0], z, labels[here])
        sums[here] = _sums(z, slots, *_read(table, slots), labels.shape[1], compiled=compiled)
    return sums


class _Rows(NamedTuple):
    """Rows in compressed form, and their candidates, (n, c), for compiled loops."""

    starts: IntArray
    features: Array
    values: Array
    labels: Array

    def some(self, here: slice) -> _Rows:
        """Take some of the rows; the features of all stay."""
        return self._replace(starts=self.starts[here.start : here.stop + 1], labels=self.labels[here])


def _rows(Z: AnyMatrix, labels: IntArray) -> _Rows:
    return _Rows(Z.indptr, Z.indices, Z.data, labels)


def learn(
    table: VersionedRows,
    Z: AnyMatrix,
    labels: IntArray,
    base: Array,
    targets: Array,
    precision: FloatArray,
    columns: IntArray | None = None,
    *,
    compiled: bool = False,
) -> VersionedRows:
    """Learn the errors of candidates.

    Parameters
    ----------
    table : VersionedRows
    Z : (n, m) array or sparse array
        What the learners make of rows.
    labels : (n, c) array
        Candidates; a label is there once in a row.
    base, targets : (n, c) arrays
        Their scores without the table, and 1, 0, or NaN where it is not known whether a label is present.
    precision : (m,) array
        Precision of the learners' columns before these rows, or of those that occur.
    columns : array of int or None
        Where the column of each non-zero is among these; None where all columns are there.
    compiled : bool
        Whether to learn by compiled loops, which do the same.
    """
    Z, precision = as_rows(Z), precision.copy()
    columns = Z.indices if columns is None else columns
    rows = _rows(Z, labels) if compiled else None
    for here in _blocks(Z, labels.shape[1]):
        inside = slice(Z.indptr[here.start], Z.indptr[here.stop])
        of_block = base[here], targets[here], _pulls(precision, columns[inside], Z.data[inside], compiled=compiled)
        changes = None if rows is None else read_all((table,), _compiled_changes, rows.some(here), *of_block)
        if changes is None:
            changes = _changes(table, Z[here], labels[here], *of_block)
        table = _change(table, *changes, compiled=compiled)
    return table


def _pulls(precision: FloatArray, columns: IntArray, values: Array, *, compiled: bool) -> Array:
    """Add the squares of a block's values to the precision of their columns, and divide the values by it."""
    if compiled:
        found: Array = residual_table_loops.pulls(precision, columns, values)
        return found
    np.add.at(precision, columns, np.square(values, dtype=float))
    return (values / precision[columns]).astype(np.float32)


def _errors(found: Array, targets: Array) -> Array:
    """Compute the errors of scores."""
    # Comparisons with NaN are False: what is not known is no error.
    return np.where(targets > 0, np.maximum(1.0 - found, 0.0), np.minimum(_SLACK - found, 0.0) * (targets == 0))


def _changes(
    table: VersionedRows, z: AnyMatrix, labels: IntArray, base: Array, targets: Array, pulls: Array
) -> _Changes:
    """List what a block of rows changes."""
    slots = _slots(table.shape[0], z, labels)
    words, owned = _read(table, slots)
    errors = _errors(base + _sums(z, slots, words, owned, labels.shape[1], compiled=False), targets)
    total = np.bincount(slots.rows, z.data * pulls, minlength=z.shape[0])
    steps = (errors / (1.0 + total)[:, None]).astype(np.float32).take(slots.rows, axis=0)
    steps *= pulls[:, None]
    sizes = np.abs(steps)
    # Of what is no error nothing is changed, nor of slots with a larger weight of another pair.
    changes = np.flatnonzero((sizes > _TAKES * np.abs(words)) | (owned & (sizes > 0)))
    parts: list[Any] = [slots.places, slots.tags, steps, words]
    return _Changes(*(part.ravel().take(changes) for part in parts))


def _compiled_changes(array: Array, rows: _Rows, base: Array, targets: Array, pulls: Array) -> _Changes:
    """List what a block of rows changes, by compiled loops."""
    given = base, targets, pulls, np.float32(_SLACK), np.float32(_TAKES)
    return _Changes(*residual_table_loops.find_changes(array, *rows, *given))


def _change(
    table: VersionedRows, places: IntArray, tags: Array, steps: Array, words: Array, *, compiled: bool
) -> VersionedRows:
    """Add steps to slots; those that are taken begin anew. Of several that take one slot, the last has it."""

    def change(array: Array) -> None:
        if compiled:
            residual_table_loops.add_steps(array, places, tags, steps, words, _NEW)
            return
        taken = (words.view(np.uint32) & _TAG) != tags
        weights = array.reshape(-1)
        bits = weights.view(np.uint32)
        bits[places[taken]] = tags[taken] | _NEW
        mine = np.flatnonzero((bits.take(places) & _TAG) == tags)
        at, of = places[mine], tags[mine]
        np.add.at(weights, at, steps[mine])
        bits[at] = (bits.take(at) & ~_TAG) | of

    return table.changed(places, words[:, None], change)


def added(table: VersionedRows, features: IntArray, labels: IntArray, weights: Array) -> VersionedRows:
    """Add weights to single pairs of a feature and a label; the largest take the slots of others."""
    order = np.argsort(np.abs(weights), kind="stable")
    pairs = scipy.sparse.csr_array(
        (np.ones(len(order), np.float32), features[order], np.arange(len(order) + 1)),
        shape=(len(order), int(features.max(initial=0)) + 1),
    )
    slots = _slots(table.shape[0], pairs, labels[order][:, None])
    words, owned = _read(table, slots)
    steps = weights[order].astype(np.float32)
    changes = owned[:, 0] | (np.abs(steps) > _TAKES * np.abs(words[:, 0]))
    parts: list[Any] = [slots.places[:, 0], slots.tags[:, 0], steps, words[:, 0]]
    return _change(table, *(part[changes] for part in parts), compiled=False)


def weights_of(table: VersionedRows, features: IntArray, labels: IntArray) -> Array:
    """Read the weights of all pairs of some features and labels, (F, L)."""
    ones = np.ones(len(features), np.float32)
    z = scipy.sparse.csr_array((ones, features, [0, len(features)]), shape=(1, int(features.max(initial=0)) + 1))
    slots = _slots(table.shape[0], z, labels[None, :])
    words, owned = _read(table, slots)
    return np.asarray(words * owned)


def merged(one: Any, other: Any) -> Any:
    """Join two tables of as many slots: the mean of weights of one pair, and of others the larger, by three quarters.

    A weight that only one table has is worth something between its half, where the other one had no use for it, and all
    of it, where the other never saw the pair: half-way between, as learners are joined.
    """
    words = [np.asarray(table)[:, 0] for table in (one, other)]
    bits = [part.view(np.uint32) for part in words]
    is_same = (bits[0] & _TAG) == (bits[1] & _TAG)
    is_same &= (words[0] != 0) & (words[1] != 0)
    is_first = np.abs(words[0]) >= np.abs(words[1])
    joint = np.where(is_same, 0.5 * (words[0] + words[1]), 0.75 * np.where(is_first, *words)).astype(np.float32)
    tags = np.where(is_first, *bits) & _TAG
    # A slot that nobody has used stays without a tag.
    whole = np.where(joint == 0, 0, (joint.view(np.uint32) & ~_TAG) | tags).astype(np.uint32)
    return VersionedRows.taking(whole.view(np.float32)[:, None])
