"""The decoder: recursive least squares as running sums.

The paper's recursion (its equation 11) keeps ``β`` and ``(HᵀH)⁻¹`` and inverts an ``n × n`` matrix for every batch. It
solves ``G β = C`` with ``G = Σ HᵀH`` and ``C = Σ HᵀT``, exactly, whatever encoder made ``H``. So the state is the sums
and ``β`` is solved for when somebody wants to decode.

*Sparse labels.* ``HᵀT = 2 HᵀY - (Hᵀ1) 1ᵀ``: the sums kept are ``Σ YᵀH`` and ``Σ Hᵀ1``. A batch touches the labels that
occur in it; its contribution waits in a short list, log-structured, and is folded into the full ``l × k`` array when
somebody reads it or when the list has grown as large as the array. That makes `update` both pure and ``O(nnz(Y) k)``.

*The paper's start.* A recursion that starts from a pseudo-inverse never leaves the range of the first ``G₀``. With
``P`` an orthonormal basis of it, ``β = P (PᵀGP)⁻¹ PᵀC``. The default starts from nothing and uses all of ``G``.

*Forgetting* multiplies all sums by a factor before each batch. Here the sums stay and the new batch is scaled up
instead, with one running scale, so that forgetting costs nothing either.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.base import growth
from labelrace.base.growth import SUM
from labelrace.base.linalg import generalised_inverse
from labelrace.base.sparse import weighted
from labelrace.typing import AnyMatrix, FloatArray, IntArray

# Sums are rescaled before the running scale of forgetting comes near the end of the floating-point range.
_SMALLEST_SCALE = 1e-100


class Pending(NamedTuple):
    """Rows to be added to ``cross``: ``cross[labels[i]] += sums[i]``, labels may repeat."""

    labels: Annotated[IntArray, "_n", "<l"]
    sums: Annotated[FloatArray, "_n k"]


class State(NamedTuple):
    """The sums, each to be multiplied by ``scale``.

    Attributes
    ----------
    gram : (k, k) array
        ``Σ HᵀH``.
    cross : (l, k) array
        ``Σ YᵀH``, less what is pending.
    total : (k,) array
        ``Σ Hᵀ1``.
    rows : float
        Number of rows, ``Σ 1ᵀ1``.
    pending : tuple of Pending
        Recent contributions to ``cross``, the largest first.
    scale : float
        Product of the forgetting factors so far.
    basis : (k, r) array or None
        Basis of the range to which the solution is restricted; None for no restriction.
    """

    gram: Annotated[FloatArray, "k k", SUM]
    cross: Annotated[FloatArray, "l k", SUM]
    total: Annotated[FloatArray, "k", SUM]
    rows: Annotated[float, SUM]
    pending: tuple[Pending, ...]
    scale: float
    basis: Annotated[FloatArray | None, "k _r"]


def init(n_labels: int, n_components: int) -> State:
    """Make a decoder that has seen nothing."""
    k = n_components
    return State(np.zeros((k, k)), np.zeros((n_labels, k)), np.zeros(k), 0.0, (), 1.0, None)


def update(
    decoder: State, H: FloatArray, Y: AnyMatrix, forgetting: float = 1.0, row_weights: FloatArray | None = None
) -> State:
    """Learn from pseudo labels ``H`` and the 0/1 labels ``Y`` that they encode."""
    if decoder.scale * forgetting < _SMALLEST_SCALE:
        decoder = _rescaled(decoder)
    scale = decoder.scale * forgetting
    each, weighted_h = (np.ones(len(H)), H) if row_weights is None else (row_weights, weighted(H, row_weights))
    gram = decoder.gram + H.T @ weighted_h / scale
    total = decoder.total + each @ H / scale
    rows = decoder.rows + each.sum() / scale
    # A batch that mentions labels as often as there are any is added at once: that costs no more than it does itself.
    if not scipy.sparse.issparse(Y) or Y.nnz >= len(decoder.cross):
        cross = decoder.cross + Y.T @ (weighted_h / scale)
        return State(gram, cross, total, rows, decoder.pending, scale, decoder.basis)
    pending = _stack(decoder.pending, _occurring(Y, weighted_h / scale))
    updated = State(gram, decoder.cross, total, rows, pending, scale, decoder.basis)
    waiting = sum(len(block.labels) for block in pending)
    return fold(updated) if waiting >= len(decoder.cross) else updated


def _occurring(Y: AnyMatrix, H: FloatArray) -> Pending:
    """Compute the rows of ``YᵀH`` for the labels that occur, in ``O(nnz(Y) k)``."""
    Y = scipy.sparse.csr_array(Y)
    labels, compact = np.unique(Y.indices, return_inverse=True)
    occurring = scipy.sparse.csr_array((Y.data, compact, Y.indptr), shape=(Y.shape[0], len(labels)))
    return Pending(labels.astype(np.intp, copy=False), np.asarray(occurring.T @ H))


def _stack(pending: tuple[Pending, ...], new: Pending) -> tuple[Pending, ...]:
    """Append a block, joining blocks of like size, so that there are only logarithmically many."""
    blocks = [*pending, new]
    while len(blocks) > 1 and 2 * len(blocks[-1].labels) >= len(blocks[-2].labels):
        right, left = blocks.pop(), blocks.pop()
        joined = (np.concatenate([left.labels, right.labels]), np.concatenate([left.sums, right.sums]))
        blocks.append(Pending(*joined))
    return tuple(blocks)


def fold(decoder: State) -> State:
    """Add what is pending to ``cross``."""
    if not decoder.pending:
        return decoder
    labels = np.concatenate([block.labels for block in decoder.pending])
    sums = np.concatenate([block.sums for block in decoder.pending])
    # A 0/1 matrix that sums the rows of equal labels: faster than np.add.at, and it sums repeated labels right.
    occurring, compact = np.unique(labels, return_inverse=True)
    shape = (len(occurring), len(labels))
    collect = scipy.sparse.csr_array((np.ones(len(labels)), (compact, np.arange(len(labels)))), shape=shape)
    cross = decoder.cross.copy()
    cross[occurring] += collect @ sums
    return decoder._replace(cross=cross, pending=())


def _rescaled(decoder: State) -> State:
    """Multiply the scale into the sums."""
    d = fold(decoder)
    return State(d.gram * d.scale, d.cross * d.scale, d.total * d.scale, d.rows * d.scale, (), 1.0, d.basis)


def merge(one: State, other: State) -> State:
    """Add two decoders of the same encoder."""
    merged: State = growth.add(_rescaled(one), _rescaled(other))
    return merged


def emptied(decoder: State) -> State:
    """Make a decoder that has seen nothing, in the same space."""
    return init(*decoder.cross.shape)._replace(basis=decoder.basis)


def grow(decoder: State, n_new: int) -> State:
    """Add labels that were absent from everything learned so far."""
    n_labels = len(decoder.cross)
    grown: State = growth.take(decoder, growth.Moves({"l": growth.longer(n_labels, n_labels + n_new)}))
    return grown


def first_range(H: FloatArray) -> FloatArray:
    """Compute the basis in which the paper's recursion lives when ``H`` is its first batch.

    Singular values up to ``max(k s_max 2⁻⁵², 2⁻⁵¹¹)`` count as zero, as in the original's pseudo-inverse.
    """
    values, vectors = np.linalg.eigh(H.T @ H)
    threshold = max(len(values) * values[-1] * 2.0**-52, 2.0**-511)
    return np.ascontiguousarray(vectors[:, values > threshold])


def solve(decoder: State, ridge: float = 0.0) -> FloatArray:
    """Solve ``(G + ridge I) β = C`` for ``β``, ``k × l``.

    Where ``G`` is singular, one of the solutions: what it decodes is the same for all pseudo labels that were learned.
    """
    d = fold(decoder)
    gram = d.gram * d.scale
    if ridge:
        gram += ridge * np.eye(len(gram))
    if d.basis is None:
        inverse = generalised_inverse(gram)
    else:
        inverse = d.basis @ generalised_inverse(d.basis.T @ gram @ d.basis) @ d.basis.T
    # inverse @ C with C = 2 cross' - total 1', the rank-one part kept a vector.
    beta = (2.0 * d.scale * inverse) @ d.cross.T
    beta -= (d.scale * inverse @ d.total)[:, None]
    return beta


def solve_labels(decoder: State, ridge: float) -> FloatArray:
    """Solve for ``β``, ``k × l``, that decodes 0/1 labels rather than signs, from ``Σ HᵀY``.

    ``ridge`` is relative to the mean square of a pseudo label, whatever is forgotten; it is not to be zero.
    """
    d = fold(decoder)
    gram = d.gram.copy()
    gram[np.diag_indices_from(gram)] += ridge * max(float(np.trace(gram)) / len(gram), 1e-300)
    # The penalty keeps the inverse safe, and with it many labels are one product: LAPACK solves for them more slowly.
    return np.asarray(np.linalg.inv(gram) @ d.cross.T, dtype=np.float64)
