"""Multiple-output prediction landmark selection (MOPLMS): landmark labels, chosen by group sparsity.

Labels are reconstructed from labels: ``min ½ ‖Y - YW‖² + λ1 Σ_j ‖W_j‖ + λ2 Σ |W_ij|`` with ``W_j`` the rows of ``W``,
``l × l``. The first penalty makes whole rows zero; the labels of the other rows are the landmarks. Landmarks are
learned from the features, by ridge regression, and all labels follow from them, by ``W`` or better by a least-squares
decoder that is refitted on the landmarks alone: the shrunken ``W`` predicts too little.

The problem depends on ``YᵀY`` only, which is among the running sums. It is solved on reading, by accelerated proximal
gradient steps (FISTA) with restarts. ``W`` is zero from ``λ1 = max_j ‖(YᵀY)_j‖`` on, so penalties are given as shares;
or a number of landmarks is given, and ``λ1`` is found by bisection.

Cost: a batch ``n m²`` (sparse rows ``nnz(x)²`` each), ``nnz(x) |y|`` and ``|y|²`` a row; reading ``m³`` and ``l² k`` a
step, some hundred steps, times some 15 where ``k`` is given; a prediction ``(m + l) k``. State: ``m² + m l + l²``.
Online, mergeable, growable, all exact.

References
----------
Balasubramanian, K. and Lebanon, G.: The landmark selection method for multiple output prediction. ICML (2012).

Beck, A. and Teboulle, M.: A fast iterative shrinkage-thresholding algorithm for linear inverse problems. SIAM Journal
on Imaging Sciences 2 (2009).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from labelrace.base import parameters
from labelrace.base.linalg import generalised_inverse, top_eigenpairs
from labelrace.related.compression.base import CODINGS, Code, Compression, CompressionClassifier, Settings, View
from labelrace.typing import FloatArray, IntArray

_MAX_STEPS = 20_000
_BISECTIONS = 15


@dataclass(frozen=True)
class MOPLMS(Compression):
    """The algorithm."""

    n_components: int | None  # largest number of landmarks; None leaves it to the penalties
    # Penalties of rows and of cells, as shares of those that leave no landmark.
    lambda1: float
    lambda2: float
    refit: bool  # whether the decoder is refitted on the landmarks
    coding: str  # "centred", "signs", "binary": labels as numbers
    tol: float  # largest change of a weight at which the solution counts as found
    settings: Settings  # penalty, scaling and forgetting

    needs_exact_yy = True

    def count(self, n_labels: int) -> int:
        """Compute the number of landmarks; all labels could be, where none is given."""
        return n_labels if self.n_components is None else parameters.component_count(self.n_components, n_labels)

    def code(self, view: View) -> Code:
        """Find the landmarks, regress them and find the decoder."""
        coding = view.coding(self.coding)
        gram = view.gram(coding)
        weights = self._weights(gram, view.k)
        chosen = np.flatnonzero(weights.any(axis=1))
        refitted = generalised_inverse(gram[np.ix_(chosen, chosen)]) @ gram[chosen]
        decoder = refitted if self.refit else weights[chosen]
        encoder = np.equal.outer(np.arange(view.n_labels), chosen).astype(float)
        return Code(view.fit(coding, encoder), decoder / coding.scale, coding.centre, chosen)

    def _weights(self, gram: FloatArray, k: int) -> FloatArray:
        """Solve for the penalty, or for the least penalty, to one part in 2¹⁵, that leaves ``k`` landmarks or fewer."""
        largest = float(np.linalg.norm(gram, axis=1).max(initial=0.0))
        cells = self.lambda2 * float(np.abs(gram).max(initial=0.0))
        if self.n_components is None:
            return landmark_weights(gram, self.lambda1 * largest, cells, self.tol)
        low, high, best = 0.0, 1.0, np.zeros_like(gram)
        start = best
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2.0
            start = landmark_weights(gram, middle * largest, cells, self.tol, start)
            if np.count_nonzero(start.any(axis=1)) <= k:
                high, best = middle, start
            else:
                low = middle
        return best


def landmark_weights(
    gram: FloatArray, rows: float, cells: float, tol: float, start: FloatArray | None = None
) -> FloatArray:
    """Minimise ``½ tr (I - W)ᵀ G (I - W) + rows Σ_j ‖W_j‖ + cells Σ |W_ij|``.

    Examples
    --------
    >>> import numpy as np
    >>> landmark_weights(np.diag([4.0, 1.0]), 1.0, 0.0, 1e-10).round(6)
    array([[0.75, 0.  ],
           [0.  , 0.  ]])
    """
    W = np.zeros_like(gram) if start is None else start
    if not gram.any():
        return W
    step = 1.0 / float(top_eigenpairs(gram, 1)[0][0])
    ahead, momentum = W, 1.0
    for _ in range(_MAX_STEPS):
        active = np.flatnonzero(ahead.any(axis=1))
        moved = ahead - step * (gram[:, active] @ ahead[active] - gram)
        if cells:
            moved = np.sign(moved) * np.maximum(np.abs(moved) - step * cells, 0.0)
        lengths = np.linalg.norm(moved, axis=1, keepdims=True)
        moved *= np.maximum(1.0 - step * rows / np.maximum(lengths, 1e-300), 0.0)
        change = moved - W
        if np.abs(change).max() <= tol and ahead is W:
            return moved
        if np.abs(change).max() <= tol or np.vdot(ahead - moved, change) > 0:
            # Momentum points uphill, or hides that there is further to go: start again without it.
            momentum, W = 1.0, moved
            ahead = W
            continue
        following = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        ahead = moved + (momentum - 1.0) / following * change
        W, momentum = moved, following
    return W


class MOPLMSClassifier(CompressionClassifier):
    """Landmark labels, chosen by group sparsity; all labels follow from them.

    Parameters
    ----------
    n_components : int or None, default=None
        Largest number of landmarks, to which `lambda1` is then fitted; None leaves it to the penalties.
    lambda1 : float, default=0.1
        Penalty of the rows, as a share of that which leaves no landmark.
    lambda2 : float, default=0.0
        Penalty of the cells, as a share of the largest product of labels.
    refit : bool, default=True
        Fit the decoder again on the landmarks; otherwise the shrunken weights decode.
    coding : {"centred", "signs", "binary"}, default="centred"
        Labels as numbers: less their means, -1 and 1, or 0 and 1.
    tol : float, default=1e-6
        Largest change of a weight at which the solution counts as found.

    Attributes
    ----------
    selected_ : (k,) array
        Columns of the landmarks.

    See Also
    --------
    CSSPClassifier : Labels drawn by their leverage; much quicker.

    Examples
    --------
    >>> from labelrace import MOPLMSClassifier, measures
    >>> from labelrace.streams.synthetic import SyntheticStream
    >>> (X, Y), (X_test, Y_test) = SyntheticStream(n_rows=600, n_features=20, n_labels=12, seed=0).batches(300)
    >>> predicted = MOPLMSClassifier().partial_fit(X, Y).predict(X_test)
    >>> round(measures.evaluate(Y_test, predicted, measures="micro_f1")["micro_f1"], 2)
    0.75
    """

    published: ClassVar[Mapping[str, Any]] = {"refit": False, "coding": "binary", "tol": 1e-11}

    n_components: int | None = None
    lambda1: float = 0.1
    lambda2: float = 0.0
    refit: bool = True
    coding: str = "centred"
    tol: float = 1e-6

    @property
    def selected_(self) -> IntArray:
        """Columns of the landmarks."""
        selected: IntArray = self.fitted.derived.code.selected
        return selected

    def _algorithm(self, seed: int) -> MOPLMS:
        if self.n_components is not None:
            parameters.check_whole("n_components", self.n_components, 1)
        parameters.check_number("lambda1", self.lambda1, 0, 1)
        parameters.check_number("lambda2", self.lambda2, 0, 1)
        parameters.check_flag("refit", self.refit)
        parameters.check_choice("coding", self.coding, CODINGS)
        parameters.check_number("tol", self.tol, 0, open_low=True)
        penalties = float(self.lambda1), float(self.lambda2)
        k = None if self.n_components is None else int(self.n_components)
        return MOPLMS(k, *penalties, bool(self.refit), self.coding, float(self.tol), self._settings())
