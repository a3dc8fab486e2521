"""A hash table of weights for pairs of a feature and a label: what compressed labels have lost.

Compressed labels share their learners, so a word that speaks for one label speaks for all with the same code. For a
short list of labels of each row, its candidates, a table learns the difference:

    score_j ← score_j + Σ_f x_f T[h(f, j)].

The error of a candidate is its label less the score, squared hinge as in `labelrace.linear.rls`, and the step that of
the same learners with a block's precisions ``d``: ``T[h(f, j)] += e_j x_f / d_f / (1 + Σ x_f² / d_f)``. Absent
labels with scores that are hardly above 0 are no error, so that most pairs never need a weight.

A slot is a number of 32 bits, at an index that a hash of the pair tells:

    sign, exponent and 15 bits of the mantissa: the weight │ 8 bits: the tag of the pair that owns it

*Slots have owners.* A plain hash table adds up what collides. Here the last eight bits of a weight's mantissa, which a
weight does not need, are a tag of the pair that owns the slot. Other pairs find nothing there, and take the slot where
their step is at least half as large as the weight in it. On a stream of 34,764 labels, with an eighth of the slots that
are in use without a limit, nDCG@5 falls from .482 to .478 so, and to .466 with a plain hash table (docs/extreme.md).

State: the table, (slots, 1), a `VersionedRows` of single precision. Costs: a row with ``z`` non-zeros and ``c``
candidates reads ``z c`` slots. All slots of a row are computed first, and then read by a loop that does nothing else:
its reads, of memory that is in no cache, overlap, which makes them twice as fast.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from labelrace.base.sparse import as_rows
from labelrace.extreme.codes import hashed
from labelrace.extreme.kernels import kernel
from labelrace.linear.versioned_rows import VersionedRows, read_all
from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray

# Which of the hash functions labels have, and features: the codes have the first two.
_OF_LABELS, _OF_FEATURES = 3, 4
# The bits of a weight that are its owner's tag, and the weight, nearly 0, of a slot that was just taken.
_TAG, _NEW = np.uint32(0xFF), np.uint32(0x0D000000)
# Share of a slot's weight that a step must have to take it.
_TAKES = np.float32(0.5)
# Scores up to which an absent label is no error.
_SLACK = np.float32(0.06)
# Slots that are looked at together.
_CELLS = 1 << 17
# Rows of a block, as none of them sees what the others teach: 500 at once go too far where labels are few.
_MOST_ROWS = 128


def init(n_slots: int) -> Any:
    """Make a table without weights."""
    return VersionedRows.taking(np.zeros((n_slots, 1), np.float32))


def scores(table: VersionedRows, Z: AnyMatrix, labels: IntArray) -> Array:
    """Compute what the table adds to the scores of candidates ``labels``, (n, c)."""
    Z = as_rows(Z)
    sums: Array = read_all((table,), _sum_slots, Z.indptr, Z.indices, Z.data, labels)
    return sums


def learn(
    table: VersionedRows,
    Z: AnyMatrix,
    labels: IntArray,
    base: Array,
    targets: FloatArray,
    precision: FloatArray,
    columns: IntArray | None = None,
) -> VersionedRows:
    """Learn the errors of candidates, block by block.

    Parameters
    ----------
    table : VersionedRows
    Z : (n, m) array or sparse array
        What the learners make of rows.
    labels : (n, c) array
        Candidates; a label is there once in a row.
    base, targets : (n, c) arrays
        Their scores without the table, and 1, 0, or NaN where nothing is to be learned.
    precision : (m,) array
        Precision of the learners' columns before these rows, or of those that occur.
    columns : array of int or None
        Where the column of each non-zero is among these; None where all columns are there.
    """
    Z, precision = as_rows(Z), precision.copy()
    columns = Z.indices if columns is None else columns
    for block in _blocks(Z, labels.shape[1]):
        rows = Z.indptr[block.start : block.stop + 1], Z.indices, Z.data
        of_block = labels[block], base[block], targets[block]
        changes = read_all((table,), _find_changes, *rows, *of_block, precision, columns)
        table = _changed(table, *changes)
    return table


def _blocks(Z: AnyMatrix, width: int) -> list[slice]:
    """Cut rows into blocks of a bounded number of slots, and of rows."""
    size = min(_MOST_ROWS, max(1, _CELLS // max(1, width * (Z.nnz // max(Z.shape[0], 1) + 1))))
    return [slice(first, min(first + size, Z.shape[0])) for first in range(0, Z.shape[0], size)]


def _changed(table: VersionedRows, slots: IntArray, tags: Array, steps: Array, before: Array) -> VersionedRows:
    """Add steps to the weights of slots, of which ``before`` are those now."""
    return table.changed(slots, before[:, None], _add_steps, slots, tags, steps, before)


def added(table: VersionedRows, features: IntArray, labels: IntArray, weights: Array) -> VersionedRows:
    """Add weights to single pairs of a feature and a label; the largest take the slots of others."""
    order = np.argsort(np.abs(weights), kind="stable")
    pairs = features[order], labels[order], weights[order].astype(np.float32)
    return _changed(table, *read_all((table,), _find_additions, *pairs))


def weights_of(table: VersionedRows, features: IntArray, labels: IntArray) -> Array:
    """Read the weights of all pairs of some features and labels, (F, L)."""
    parts = np.ones(len(features), np.float32), features, np.arange(len(features) + 1)
    one_each = scipy.sparse.csr_array(parts, shape=(len(features), int(features.max(initial=0)) + 1))
    return scores(table, one_each, np.tile(labels, (len(features), 1)))


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


@kernel
def _hash_of_pair(of_feature: Any, of_label: Any) -> Any:
    """Hash a pair by the hashes of both: the tag is in its last bits, the slot in its first ones."""
    # The sum alone would let two labels that collide for one feature collide for all.
    bits = np.uint32(of_label + of_feature)
    bits ^= np.uint32(bits >> np.uint32(15))
    bits = np.uint32(bits * np.uint32(0x2C1B3C6D))
    return np.uint32(bits ^ np.uint32(bits >> np.uint32(12)))


@kernel
def _slot(bits: Any, n_slots: Any) -> Any:
    """Compute the slot of a pair from its hash."""
    return np.uint32((np.uint64(bits) * n_slots) >> np.uint64(32))


@kernel
def _read_slots(table: Any, features: Any, labels: Any, slots: Any, tags: Any, words: Any) -> None:
    """Compute the slots of a row's features and candidates, features first, and read them."""
    n_slots, width = np.uint64(len(table)), len(labels)
    of_labels = np.empty(width, np.uint32)
    for c in range(width):
        of_labels[c] = hashed(labels[c], _OF_LABELS)
    for z in range(len(features)):
        of_feature = hashed(np.int64(features[z]), _OF_FEATURES)
        for c in range(width):
            bits = _hash_of_pair(of_feature, of_labels[c])
            slots[z * width + c] = _slot(bits, n_slots)
            tags[z * width + c] = bits & _TAG
    for i in range(len(features) * width):
        words[i] = table[np.uint64(slots[i])]


@kernel
def _add_up(words: Any, tags: Any, values: Any, sums: Any) -> None:
    """Add the weights that a row's candidates own, times the row's values, to ``sums``."""
    weights, width = words.view(np.float32), len(sums)
    for z in range(len(values)):
        for c in range(width):
            i = z * width + c
            is_owned = (words[i] & _TAG) == tags[i]
            sums[c] += values[z] * (weights[i] if is_owned else np.float32(0.0))


@kernel
def add_weights(table: Any, features: Any, values: Any, labels: Any, sums: Any) -> None:
    """Add the weights of a row's candidates, times the row's values, to ``sums``."""
    size = len(features) * len(labels)
    slots, tags, words = np.empty(size, np.uint32), np.empty(size, np.uint32), np.empty(size, np.uint32)
    _read_slots(table.reshape(-1).view(np.uint32), features, labels, slots, tags, words)
    _add_up(words, tags, values, sums)


@kernel
def _sum_slots(table: Any, starts: Any, features: Any, values: Any, labels: Any) -> Any:
    """Sum the weights of the candidates of rows, (n, c), times the rows' values; rows are in compressed form."""
    sums = np.zeros(labels.shape, np.float32)
    for row in range(len(labels)):
        here = slice(starts[row], starts[row + 1])
        add_weights(table, features[here], values[here], labels[row], sums[row])
    return sums


@kernel
def _steps_of(precision: Any, columns: Any, values: Any) -> Any:
    """Add the squares of a block's values to the precision of their columns, and divide the values by it."""
    for entry in range(len(values)):
        precision[columns[entry]] += np.float64(values[entry]) * np.float64(values[entry])
    steps = np.empty(len(values), np.float32)
    for entry in range(len(values)):
        steps[entry] = values[entry] / precision[columns[entry]]
    return steps


@kernel
def _find_changes(
    table: Any,
    starts: Any,
    features: Any,
    values: Any,
    labels: Any,
    base: Any,
    targets: Any,
    precision: Any,
    columns: Any,
) -> Any:
    """List the slots that a block of rows changes, with their tags, steps and weights before.

    Parameters
    ----------
    table : (slots, 1) array of float32
    starts : (n + 1,) array
        Where the rows of the block begin, and the last one ends.
    features, values : arrays
        All rows in compressed form.
    labels, base, targets : (n, c) arrays
        Candidates, their scores without the table, and 1, 0 or NaN.
    precision, columns : arrays
        As for `learn`; what the block adds to the precision is added.
    """
    bits, (n_rows, width) = table.reshape(-1).view(np.uint32), base.shape
    start, stop = starts[0], starts[n_rows]
    pulls = _steps_of(precision, columns[start:stop], values[start:stop])
    size = np.diff(starts).max() * width
    slots, tags, words = np.empty(size, np.uint32), np.empty(size, np.uint32), np.empty(size, np.uint32)
    weights = words.view(np.float32)
    known, chosen, sums = np.empty(width, np.int64), np.empty(width, labels.dtype), np.empty(width, np.float32)
    # Indices are never negative, and of a type that cannot be: numbers that can are looked at before they are used.
    wrong, errors = np.empty(width, np.uint64), np.empty(width, np.float32)
    room = (stop - start) * width
    changed, owners = np.empty(room, np.uint32), np.empty(room, np.uint32)
    steps, before = np.empty(room, np.float32), np.empty(room, np.float32)
    n_changed = np.uint64(0)
    for row in range(n_rows):
        first, last, total = starts[row], starts[row + 1], 0.0
        n_known = 0
        for c in range(width):
            known[n_known], chosen[n_known], sums[c] = c, labels[row, c], 0.0
            # Of what is not known, NaN, nothing is learned.
            n_known += targets[row, c] == targets[row, c]
        _read_slots(bits, features[first:last], chosen[:n_known], slots, tags, words)
        _add_up(words, tags, values[first:last], sums[:n_known])
        for z in range(first, last):
            total += values[z] * pulls[z - start]
        n_wrong = 0
        for c in range(n_known):
            score = base[row, known[c]] + sums[c]
            if targets[row, known[c]] > 0:
                error = max(np.float32(1.0) - score, np.float32(0.0))
            else:
                error = min(_SLACK - score, np.float32(0.0))
            wrong[n_wrong], errors[n_wrong] = c, np.float32(error / (1.0 + total))
            n_wrong += error != 0
        for z in range(last - first):
            pull = pulls[first - start + z]
            for e in range(n_wrong):
                i, step = np.uint64(z * n_known) + wrong[e], errors[e] * pull
                is_owned = (words[i] & _TAG) == tags[i]
                changed[n_changed], owners[n_changed] = slots[i], tags[i]
                steps[n_changed], before[n_changed] = step, weights[i]
                # Nothing is changed in slots with a larger weight of another pair.
                n_changed += np.uint64((abs(step) > _TAKES * abs(weights[i])) | (is_owned & (step != 0)))
    return changed[:n_changed], owners[:n_changed], steps[:n_changed], before[:n_changed]


@kernel
def _find_additions(table: Any, features: Any, labels: Any, weights: Any) -> Any:
    """List the slots that weights of single pairs change, with their tags, these weights, and those before."""
    bits, n_slots, n_changed = table.reshape(-1).view(np.uint32), np.uint64(len(table)), 0
    words, shape = np.empty(len(features), np.uint32), len(features)
    slots, tags, steps = np.empty(shape, np.uint32), np.empty(shape, np.uint32), np.empty(shape, np.float32)
    before = words.view(np.float32)
    for i in range(len(features)):
        pair = _hash_of_pair(hashed(features[i], _OF_FEATURES), hashed(labels[i], _OF_LABELS))
        slot, tag = _slot(pair, n_slots), np.uint32(pair & _TAG)
        slots[n_changed], tags[n_changed], steps[n_changed] = slot, tag, weights[i]
        words[n_changed] = bits[np.uint64(slot)]
        is_owned = (words[n_changed] & _TAG) == tag
        n_changed += is_owned | (abs(weights[i]) > _TAKES * abs(before[n_changed]))
    return slots[:n_changed], tags[:n_changed], steps[:n_changed], before[:n_changed]


@kernel
def _add_steps(table: Any, slots: Any, tags: Any, steps: Any, before: Any) -> None:
    """Add steps to slots; those that are taken start from 0. Of several that take one slot, the last has it."""
    weights, owners = table.reshape(-1), before.view(np.uint32)
    bits = weights.view(np.uint32)
    for i in range(len(slots)):
        if (owners[i] & _TAG) != tags[i]:
            bits[np.uint64(slots[i])] = tags[i] | _NEW
    for i in range(len(slots)):
        slot = np.uint64(slots[i])
        if (bits[slot] & _TAG) == tags[i]:
            weights[slot] += steps[i]
            # The sum has run into the bits of the tag.
            bits[slot] = (bits[slot] & ~_TAG) | tags[i]
