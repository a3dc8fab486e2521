"""A hash table of weights for pairs of a feature and a label: what compressed labels have lost.

Compressed labels share their learners, so a word that raises the score of one label raises those of all with the same
code. For a short list of labels of each row, its candidates, a table learns the difference:

    score_j ← score_j + Σ_f x_f T[h(f, j)].

The error of a candidate is its label minus the score, by the squared hinge loss of `labelrace.linear.rls`. Absent
labels with scores that are hardly above 0 are no error, so that most pairs never need a weight. The step is that of
the same learners: for each label, of the rows of a block where it is wrong, with the precisions ``D`` that the block
leaves,

    (X D⁻¹ Xᵀ + I) a = e,    T[h(f, j)] += Σ_i a_i x_if / d_f.

Most labels are wrong in one row of a block, and ``a = e / (1 + Σ x_f² / d_f)``. Where they are wrong in more, steps of
their own would add up to many times the error, as soon as the rows have words in common, such as a signature.

A slot is a number of 32 bits, at an index that is computed from a hash of the pair:

    sign, exponent and 15 bits of the mantissa: the weight │ 8 bits: the tag of the pair that owns it

*Slots have owners.* A plain hash table adds up the weights of pairs that collide. Here the last eight bits of a
weight's mantissa, which a weight does not need, are a tag of the pair that owns the slot. For other pairs the slot
counts as empty, and they take it over where their step is at least half as large as the weight in it. On a stream of
34,764 labels, with an eighth of the slots that are in use without a limit, nDCG@5 falls from .482 to .478, and to
.466 with a plain hash table (docs/in-depth/extreme.md).

State: the table, (slots, 1), a `VersionedRows` of single precision. Costs: a row with ``z`` non-zeros and ``c``
candidates reads ``z c`` slots. All slots of a row are computed first, and then read by a loop that does nothing else:
its reads, which miss the cache, overlap, which makes them twice as fast.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from labelrace.base.sparse import as_rows, row_range
from labelrace.extreme.blocks import CompiledSparseBlock
from labelrace.extreme.codes import hash32
from labelrace.extreme.kernels import kernel
from labelrace.linear.versioned_rows import VersionedRows, read_all
from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray

# Types of kernels' arguments: the table, and what `_room` makes, of pairs or of changes.
_TABLE, _PAIRS = "float32[:, ::1]", "uint32[::1], uint32[::1], float32[::1]"
_CHANGES = f"{_PAIRS}, float32[::1]"
# Seeds of the hash functions of labels and features; those of the codes are 1 and 2.
_LABEL_SEED, _FEATURE_SEED = 3, 4
# Mask of the bits that are the owner's tag, and the bits of the weight, nearly 0, of a slot that was just taken over.
_TAG_BITS, _NEW_WEIGHT = np.uint32(0xFF), np.uint32(0x0D000000)
# Share of a slot's weight that the step of another pair must exceed to take it over.
_TAKEOVER_SHARE = np.float32(0.5)
# Scores up to which an absent label is no error.
_ABSENT_MARGIN = np.float32(0.06)
# Largest number of slots that are read at once.
_MAX_SLOTS_AT_ONCE = 1 << 17
# Largest number of rows of a block; the time for each row grows with it.
_MAX_BLOCK_ROWS = 128
# Share of a block's rows that a column must have alike to take no step, and rows that this takes.
_COMMON_SHARE, _FEWEST_COMPARED = 0.25, 8
# Largest number of iterations of the conjugate gradients, and the share of the squared residual that is left.
_MAX_ITERATIONS, _SMALL_RESIDUAL = 32, 1e-6


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
    decoder_scores: Array,
    targets: FloatArray,
    precision: FloatArray,
    columns: IntArray | None = None,
    n_known: int | None = None,
) -> VersionedRows:
    """Learn the errors of candidates, block by block.

    Parameters
    ----------
    table : VersionedRows
    Z : (n, m) sparse array
        The transformed rows, in compressed form.
    labels : (n, c) array
        Candidates; no row has a label twice.
    decoder_scores, targets : (n, c) arrays
        Their scores without the table, and 1, 0, or NaN where nothing is to be learned.
    precision : (m,) array
        Precision of the learners' columns before these rows, or of those that occur.
    columns : array of int or None
        The index of each non-zero in ``precision``; None where that has all columns.
    n_known : int or None
        Number of labels of which something is known in these rows; None for all. Others make blocks no smaller.
    """
    precision, columns = precision.copy(), Z.indices if columns is None else columns
    blocks = _blocks(Z, labels.shape[1] if n_known is None else min(n_known, labels.shape[1]))
    # One for all blocks: the system takes longer to provide memory than the loops to write to it.
    size = labels.shape[1] * int(max([Z.indptr[block.stop] - Z.indptr[block.start] for block in blocks], default=0))
    changes, pairs = _room(size), _room(size)[:3]
    by_column = scipy.sparse.csr_array((Z.data, columns, Z.indptr), shape=(Z.shape[0], len(precision)))
    for block in blocks:
        some = row_range(by_column, block.start, block.stop)
        products = CompiledSparseBlock(some)
        precision[products.touched] += products.squares
        variance = 1.0 / precision
        if some.shape[0] >= _FEWEST_COMPARED:
            sums = np.bincount(some.indices, weights=some.data, minlength=len(precision))[products.touched]
            variance[products.touched[sums * sums > _COMMON_SHARE * some.shape[0] * products.squares]] = 0.0
        gram = products.gram(variance[products.touched])
        steps = (some.data * variance[some.indices]).astype(np.float32)
        rows = some.indptr, Z.indices[Z.indptr[block.start] : Z.indptr[block.stop]], some.data
        of_block = labels[block], decoder_scores[block], targets[block]
        n_changes = read_all((table,), _find_changes, *rows, *of_block, steps, gram, *pairs, *changes)
        table = _changed(table, n_changes, *changes)
    return table


def _blocks(Z: AnyMatrix, width: int) -> list[slice]:
    """Cut rows into blocks of a bounded number of slots, and of rows."""
    size = min(_MAX_BLOCK_ROWS, max(1, _MAX_SLOTS_AT_ONCE // max(1, width * (Z.nnz // max(Z.shape[0], 1) + 1))))
    return [slice(first, min(first + size, Z.shape[0])) for first in range(0, Z.shape[0], size)]


def _room(size: int) -> tuple[Array, Array, Array, Array]:
    """Make arrays for changes of the table: slots, tags, steps, and the weights now."""
    return np.empty(size, np.uint32), np.empty(size, np.uint32), np.empty(size, np.float32), np.empty(size, np.float32)


def _changed(table: VersionedRows, n: int, slots: Array, tags: Array, steps: Array, before: Array) -> VersionedRows:
    """Make the first ``n`` of some changes; what the table keeps is copied."""
    slots, before = slots[:n].copy(), before[:n].copy()
    return table.changed(slots, before[:, None], _add_steps, slots, tags[:n], steps[:n], before)


def added(table: VersionedRows, features: IntArray, labels: IntArray, weights: Array) -> VersionedRows:
    """Add weights of single pairs of a feature and a label; where they collide, the largest takes the slot over."""
    order = np.argsort(np.abs(weights), kind="stable")
    pairs = features[order], labels[order], weights[order].astype(np.float32)
    changes = _room(len(order))
    return _changed(table, read_all((table,), _find_additions, *pairs, *changes), *changes)


def weights_of(table: VersionedRows, features: IntArray, labels: IntArray) -> Array:
    """Read the weights of all pairs of some features and labels, (F, L)."""
    parts = np.ones(len(features), np.float32), features, np.arange(len(features) + 1)
    one_each = scipy.sparse.csr_array(parts, shape=(len(features), int(features.max(initial=0)) + 1))
    return scores(table, one_each, np.tile(labels, (len(features), 1)))


def merged(one: Any, other: Any) -> Any:
    """Join two tables of the same size: the mean of weights of the same pair, else three quarters of the larger.

    Half of a weight that only one table has would be right where the other table has seen the pair and did not need it,
    and all of it where it has never seen the pair; three quarters is half-way, as learners are joined.
    """
    weights = [np.asarray(table)[:, 0] for table in (one, other)]
    bits = [part.view(np.uint32) for part in weights]
    is_same = (bits[0] & _TAG_BITS) == (bits[1] & _TAG_BITS)
    is_same &= (weights[0] != 0) & (weights[1] != 0)
    is_first = np.abs(weights[0]) >= np.abs(weights[1])
    larger = np.where(is_first, *weights)
    joint = np.where(is_same, 0.5 * (weights[0] + weights[1]), 0.75 * larger).astype(np.float32)
    tags = np.where(is_first, *bits) & _TAG_BITS
    # An unused slot stays without a tag.
    whole = np.where(joint == 0, 0, (joint.view(np.uint32) & ~_TAG_BITS) | tags).astype(np.uint32)
    return VersionedRows.taking(whole.view(np.float32)[:, None])


@kernel()
def _hash_of_pair(feature_hash: Any, label_hash: Any) -> Any:
    """Hash a pair by the hashes of both: its last bits are the tag, its first ones give the slot."""
    # With the sum alone, two labels that collide for one feature would collide for all.
    bits = np.uint32(label_hash + feature_hash)
    bits ^= np.uint32(bits >> np.uint32(15))
    bits = np.uint32(bits * np.uint32(0x2C1B3C6D))
    return np.uint32(bits ^ np.uint32(bits >> np.uint32(12)))


@kernel()
def _slot(bits: Any, n_slots: Any) -> Any:
    """Compute the slot of a pair from its hash."""
    return np.uint32((np.uint64(bits) * n_slots) >> np.uint64(32))


@kernel()
def _read_slots(table: Any, features: Any, labels: Any, slots: Any, tags: Any, raw: Any) -> None:
    """Compute the slots and tags of all pairs of a row's features and candidates, and read the slots as bits."""
    n_slots, width = np.uint64(len(table)), len(labels)
    label_hashes = np.empty(width, np.uint32)
    for c in range(width):
        label_hashes[c] = hash32(labels[c], _LABEL_SEED)
    for z in range(len(features)):
        feature_hash = hash32(np.int64(features[z]), _FEATURE_SEED)
        for c in range(width):
            bits = _hash_of_pair(feature_hash, label_hashes[c])
            slots[z * width + c] = _slot(bits, n_slots)
            tags[z * width + c] = bits & _TAG_BITS
    for i in range(len(features) * width):
        raw[i] = table[np.uint64(slots[i])]


@kernel()
def _add_up(raw: Any, tags: Any, values: Any, sums: Any) -> None:
    """Add the weights of slots that a row's pairs own, times the row's values, to ``sums``."""
    weights, width = raw.view(np.float32), len(sums)
    for z in range(len(values)):
        for c in range(width):
            i = z * width + c
            is_owned = (raw[i] & _TAG_BITS) == tags[i]
            sums[c] += values[z] * (weights[i] if is_owned else np.float32(0.0))


@kernel()
def add_weights(table: Any, features: Any, values: Any, labels: Any, sums: Any) -> None:
    """Add the weights of a row's candidates, times the row's values, to ``sums``."""
    size = len(features) * len(labels)
    slots, tags, raw = np.empty(size, np.uint32), np.empty(size, np.uint32), np.empty(size, np.uint32)
    _read_slots(table.reshape(-1).view(np.uint32), features, labels, slots, tags, raw)
    _add_up(raw, tags, values, sums)


@kernel()
def _sum_slots(table: Any, indptr: Any, features: Any, values: Any, labels: Any) -> Any:
    """Sum the weights of the candidates of rows, (n, c), times the rows' values; rows are CSR arrays."""
    sums = np.zeros(labels.shape, np.float32)
    for row in range(len(labels)):
        here = slice(indptr[row], indptr[row + 1])
        add_weights(table, features[here], values[here], labels[row], sums[row])
    return sums


@kernel()
def _solve(gram: Any, rows: Any, wrong: Any, errors: Any, work: Any) -> None:
    """Replace the errors of a label, at ``wrong``, by the solution of ``(G + I) a = e``, by conjugate gradients.

    Their ``rows`` ascend; of the symmetric ``gram`` the lower triangle is read.
    """
    n, left = len(rows), 0.0
    solution, residual, direction, product = work[0], work[1], work[2], work[3]
    for i in range(n):
        solution[i], residual[i], direction[i] = 0.0, errors[wrong[i]], errors[wrong[i]]
        left += residual[i] * residual[i]
    least = _SMALL_RESIDUAL * left
    for _ in range(min(n, _MAX_ITERATIONS)):
        curvature, before = 0.0, left
        for i in range(n):
            product[i] = direction[i] * (1.0 + gram[rows[i], rows[i]])
            for j in range(i):
                both = np.float64(gram[rows[i], rows[j]])
                product[i] += both * direction[j]
                product[j] += both * direction[i]
        for i in range(n):
            curvature += direction[i] * product[i]
        step, left = left / curvature, 0.0
        for i in range(n):
            solution[i] += step * direction[i]
            residual[i] -= step * product[i]
            left += residual[i] * residual[i]
        if left <= least:
            break
        for i in range(n):
            direction[i] = residual[i] + left / before * direction[i]
    for i in range(n):
        errors[wrong[i]] = solution[i]


@kernel()
def _solve_by_label(gram: Any, labels: Any, errors: Any) -> None:
    """Replace the errors of candidates, 0 where there is none, by what their labels' systems have for them."""
    width, size, errors = labels.shape[1], errors.size, errors.reshape(-1)
    wrong = np.flatnonzero(errors)
    # By label, and then by row.
    keys = np.sort(np.ascontiguousarray(labels).reshape(-1)[wrong] * size + wrong)
    wrong, of_label = keys % size, keys // size
    rows, work, first = wrong // width, np.empty((4, len(labels))), 0
    for last in range(1, len(keys) + 1):
        if last < len(keys) and of_label[last] == of_label[first]:
            continue
        if last - first == 1:
            errors[wrong[first]] /= np.float32(1.0) + gram[rows[first], rows[first]]
        else:
            _solve(gram, rows[first:last], wrong[first:last], errors, work)
        first = last


@kernel(
    f"int64({_TABLE}, int32[::1], int32[::1], float32[::1], int64[:, ::1], float32[:, ::1], float64[:, ::1],"
    f"float32[::1], float32[:, ::1], {_PAIRS}, {_CHANGES})"
)
def _find_changes(
    table: Any,
    indptr: Any,
    features: Any,
    values: Any,
    labels: Any,
    decoder_scores: Any,
    targets: Any,
    step_sizes: Any,
    gram: Any,
    slots: Any,
    tags: Any,
    weights: Any,
    changed: Any,
    owners: Any,
    steps: Any,
    before: Any,
) -> Any:
    """List the slots that a block of rows changes; return how many there are.

    Parameters
    ----------
    table : (slots, 1) array of float32
    indptr, features, values : arrays
        CSR arrays of the rows.
    labels, decoder_scores, targets : (n, c) arrays
        Candidates, their scores without the table, and 1, 0 or NaN.
    step_sizes : array
        The values over the precision of their columns.
    gram : (n, n) array
        ``X D⁻¹ Xᵀ``, of which the lower triangle is read.
    slots, tags, weights : arrays
        To be written: those of all pairs of a feature and a candidate.
    changed, owners, steps, before : arrays
        To be written: slots, tags, steps and weights before, of those that change.
    """
    bits, (n_rows, width) = table.reshape(-1).view(np.uint32), decoder_scores.shape
    raw, errors = weights.view(np.uint32), np.zeros((n_rows, width), np.float32)
    for row in range(n_rows):
        first, last = indptr[row], indptr[row + 1]
        here, sums = slice(first * width, last * width), errors[row]
        _read_slots(bits, features[first:last], labels[row], slots[here], tags[here], raw[here])
        _add_up(raw[here], tags[here], values[first:last], sums)
        for c in range(width):
            score = decoder_scores[row, c] + sums[c]
            if targets[row, c] > 0:
                sums[c] = max(np.float32(1.0) - score, np.float32(0.0))
            elif targets[row, c] == 0:
                sums[c] = min(_ABSENT_MARGIN - score, np.float32(0.0))
            else:
                # NaN is not learned.
                sums[c] = 0.0
    _solve_by_label(gram, labels, errors)
    # Unsigned, as Numba checks whether signed indices are negative, which takes time.
    n_changed, wrong = np.uint64(0), np.empty(width, np.uint64)
    for row in range(n_rows):
        n_wrong = 0
        for c in range(width):
            wrong[n_wrong] = c
            n_wrong += errors[row, c] != 0
        for z in range(indptr[row], indptr[row + 1]):
            for e in range(n_wrong):
                i, step = np.uint64(z * width) + wrong[e], errors[row, wrong[e]] * step_sizes[z]
                is_owned = (raw[i] & _TAG_BITS) == tags[i]
                changed[n_changed], owners[n_changed] = slots[i], tags[i]
                steps[n_changed], before[n_changed] = step, weights[i]
                # Slots with a larger weight of another pair are not changed.
                n_changed += np.uint64((abs(step) > _TAKEOVER_SHARE * abs(weights[i])) | (is_owned & (step != 0)))
    return np.int64(n_changed)


@kernel()
def _find_additions(
    table: Any, features: Any, labels: Any, weights: Any, slots: Any, tags: Any, steps: Any, before: Any
) -> Any:
    """List the slots that weights of single pairs change, with their tags, these weights, and those before."""
    bits, n_slots, n_changed, raw = table.reshape(-1).view(np.uint32), np.uint64(len(table)), 0, before.view(np.uint32)
    for i in range(len(features)):
        pair = _hash_of_pair(hash32(features[i], _FEATURE_SEED), hash32(labels[i], _LABEL_SEED))
        slot, tag = _slot(pair, n_slots), np.uint32(pair & _TAG_BITS)
        slots[n_changed], tags[n_changed], steps[n_changed] = slot, tag, weights[i]
        raw[n_changed] = bits[np.uint64(slot)]
        is_owned = (raw[n_changed] & _TAG_BITS) == tag
        n_changed += is_owned | (abs(weights[i]) > _TAKEOVER_SHARE * abs(before[n_changed]))
    return n_changed


@kernel(f"void({_TABLE}, {_CHANGES})")
def _add_steps(table: Any, slots: Any, tags: Any, steps: Any, before: Any) -> None:
    """Add steps to slots; those that are taken over start from 0. Of several that take one over, the last gets it."""
    weights, owners = table.reshape(-1), before.view(np.uint32)
    bits = weights.view(np.uint32)
    for i in range(len(slots)):
        if (owners[i] & _TAG_BITS) != tags[i]:
            bits[np.uint64(slots[i])] = tags[i] | _NEW_WEIGHT
    for i in range(len(slots)):
        slot = np.uint64(slots[i])
        if (bits[slot] & _TAG_BITS) == tags[i]:
            weights[slot] += steps[i]
            # The sum has changed the bits of the tag.
            bits[slot] = (bits[slot] & ~_TAG_BITS) | tags[i]
