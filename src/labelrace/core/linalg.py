"""Matrices as more than one part of the library needs them."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from labelrace.typing import AnyMatrix, FloatArray

__all__ = ["canonical", "generalised_inverse"]

_NOTHING = 1e-100


def generalised_inverse(gram: FloatArray) -> FloatArray:
    """Invert a symmetric positive semi-definite matrix on its range.

    Rank is judged after scaling to a unit diagonal, so that what is merely small is not lost.

    Examples
    --------
    >>> import numpy as np
    >>> generalised_inverse(np.diag([4.0, 0.0, 1e-30])).diagonal()
    array([2.5e-01, 0.0e+00, 1.0e+30])
    """
    if gram.size == 0:
        return gram
    diagonal = np.sqrt(np.diag(gram))
    # What has faded to nothing beside the rest, as a sum under forgetting does, is zero.
    present = diagonal > _NOTHING * diagonal.max()
    scaling = np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=present)
    values, vectors = np.linalg.eigh(scaling[:, None] * gram * scaling)
    kept = values > len(values) * np.finfo(float).eps * values[-1]
    vectors = scaling[:, None] * vectors[:, kept]
    return (vectors / values[kept]) @ vectors.T


def canonical(X: AnyMatrix) -> AnyMatrix:
    """Return a sparse array in compressed rows, without duplicates; the caller's matrix stays as it is."""
    X = scipy.sparse.csr_array(X)
    if X.indices.dtype != np.int32 and max(*X.shape, X.nnz) <= np.iinfo(np.int32).max:
        # Many of scikit-learn's learners take no wider indices.
        X = scipy.sparse.csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X
