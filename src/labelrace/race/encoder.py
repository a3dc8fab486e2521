"""The encoder: label sets to pseudo labels.

The paper's ``H = T A + b`` with ``T = 2Y - 1``: ``k`` random hyperplanes in the space of the ``l`` labels, made
orthonormal together with a bias coordinate. Written out for 0/1 labels,

    T A + b = 2 Y A + (b - sum_j a_j),

so that encoding a sparse ``Y`` costs ``O(nnz(Y) k)``, whatever the number of labels.

A label that appears later has a row ``a`` and adds that same ``a`` to the bias: ``b - sum_j a_j`` is then what it was,
and so are the pseudo labels of every row without the label, past and future. An adaptive encoder gives the label
another row with every batch; the bias then follows, so that this stays true.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from labelrace.base import random_draws
from labelrace.base.growth import SAME
from labelrace.typing import AnyMatrix, Array, FloatArray


class State(NamedTuple):
    """The hyperplanes.

    Attributes
    ----------
    A : (l, k) array
        One row a label, one column a pseudo label.
    bias : (k,) array
        The bias ``b``.
    column_sums : (k,) array
        ``sum_j a_j``. Kept, since adding up ``A`` for every batch would cost ``O(l k)``.
    n_late : float
        How many labels, the last ones, came later: the bias has their rows in it.
    """

    A: Annotated[FloatArray, "l k", SAME]
    bias: Annotated[FloatArray, "k", SAME]
    column_sums: Annotated[FloatArray, "k", SAME]
    n_late: Annotated[float, "<l+1", SAME] = 0.0


def given(A: FloatArray, bias: FloatArray) -> State:
    """Make an encoder of a given projection."""
    return State(A, bias, A.sum(axis=0))


def draw(n_labels: int, n_components: int, rng: np.random.Generator) -> State:
    """Draw orthonormal random hyperplanes.

    The vectors are uniform in (-1, 1) with ``n_labels + 1`` coordinates, the last of which is the bias. Their
    Gram-Schmidt basis is the ``Q`` of a QR decomposition with the signs that make the diagonal of ``R`` positive.
    """
    Q, R = np.linalg.qr(rng.uniform(-1.0, 1.0, size=(n_labels + 1, n_components)))
    Q *= np.where(np.diag(R) < 0, -1.0, 1.0)
    return given(np.ascontiguousarray(Q[:-1]), Q[-1].copy())


def draw_rows(encoder: State, keys: Array, rng: np.random.Generator) -> FloatArray:
    """Draw rows for new labels, of the size that `draw` gave a row on average: ``|a|² = k / (l + 1)``.

    A row depends on the label's key and on the generator, and not on the labels that came before: models that met the
    same labels in another order have the same rows.
    """
    n_labels, n_components = encoder.A.shape
    # A uniform on (-1, 1) has a variance of 1/3.
    scale = np.sqrt(3.0 / (n_labels - encoder.n_late + 1))
    return scale * (2.0 * random_draws.uniform_for_keys(int(rng.integers(2**62)), keys, n_components) - 1.0)


def encode(encoder: State, Y: AnyMatrix) -> FloatArray:
    """Compute the real-valued pseudo labels ``T A + b`` of dense or sparse 0/1 labels."""
    H = Y @ encoder.A
    H *= 2.0
    H += encoder.bias - encoder.column_sums
    return H


def adapt(encoder: State, beta: FloatArray) -> State:
    """Take the decoder's transpose as the encoder (Algorithm 1, line 16); the random bias stays.

    What late labels have added to the bias is exchanged for what their new rows add.
    """
    A, bias, late = np.ascontiguousarray(beta.T), encoder.bias, len(encoder.A) - int(encoder.n_late)
    if encoder.n_late:
        bias = bias + A[late:].sum(axis=0) - encoder.A[late:].sum(axis=0)
    return given(A, bias)._replace(n_late=encoder.n_late)


def grow(encoder: State, rows: FloatArray) -> State:
    """Add labels with the given rows, leaving the pseudo labels of all rows without them as they are."""
    added = rows.sum(axis=0)
    n_late = encoder.n_late + len(rows)
    return State(np.vstack([encoder.A, rows]), encoder.bias + added, encoder.column_sums + added, n_late)
